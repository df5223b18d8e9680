// SPDX-License-Identifier: Apache-2.0
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/features.h"
#include "attach/returns.h"
#include "attach/target.h"
#include "attach/uprobe.h"
#include "util/cleanup.h"

#if defined(__x86_64__)
#define X86 true
#else
#define X86 false
#endif

/* Of x86-64; the headers of the build machine may be older. */
#define NR_URETPROBE 335
#define NR_UPROBE    336

#define TRIAL_MS 5000 /* it takes one; a machine may be emulated, or busy */
#define CALLS    3    /* a place may be changed by its first hit */

/* ---- the child ------------------------------------------------------------------------------- */

/* Where the call is refused it returns to its own result, which must be no address. */
static __attribute__((noinline)) long returning_function(long x)
{
	__asm__ volatile("" : "+r"(x));
	return x;
}

static void crashed(int sig)
{
	(void)sig;
	_exit(CHILD_CRASHED);
}

static int take_filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NR_URETPROBE, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NR_UPROBE, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	};
	const struct sock_fprog filter = {.len = ARRAY_SIZE(code), .filter = code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0))
		return errno == EINVAL ? CHILD_NO_FILTER : CHILD_REFUSED;
	return CHILD_LIVED;
}

/* What crashes here ends by its own handler: no core file, no line in the kernel's log. Other
 * threads of silentpin may hold any lock: only system calls from here on. */
static void run_child(int go)
{
	static const int deaths[] = {SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGSYS};
	const struct rlimit none = {0, 0};
	sigset_t open;
	int rc;
	char c;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (size_t i = 0; i < ARRAY_SIZE(deaths); i++)
		signal(deaths[i], crashed);
	sigemptyset(&open);
	sigprocmask(SIG_SETMASK, &open, NULL);
	if (read(go, &c, 1) != 1)
		_exit(CHILD_IDLE);
	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_DUMPABLE, 0); /* a core file may go to a program, which has no limit */
	rc = take_filter();
	for (int i = 0; i < CALLS && rc == CHILD_LIVED; i++)
		returning_function(0);
	_exit(rc);
}

/* ---- the trial ------------------------------------------------------------------------------- */

static pid_t start_child(int *go)
{
	int pipe[2];
	pid_t pid;

	if (pipe2(pipe, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (pid == 0) {
		close(pipe[1]);
		run_child(pipe[0]);
	}
	if (pid < 0) {
		pid = -errno;
		close(pipe[1]);
	}
	close(pipe[0]);
	*go = pipe[1];
	return pid;
}

/* As waitpid says; a child that does not end is killed. */
static int end_child(pid_t pid)
{
	__closefd int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int status = 0, rc = 0;

	if (fd >= 0)
		do
			rc = poll(&p, 1, TRIAL_MS);
		while (rc < 0 && errno == EINTR);
	if (rc <= 0)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* A return probe on the child's function: 0 or -errno. */
static int link_child(enum attach_backend backend, int prog, pid_t pid, struct links *links)
{
	const struct uprobe_kind kind = {.at_return = true};
	struct plan_site site = {.at_return = true};
	__closefd int fd = features_own_file((uint64_t)(uintptr_t)returning_function, &site.offset);

	if (fd < 0)
		return fd;
	return backend == BACKEND_MULTI ? uprobe_multi_link(prog, fd, pid, kind, &site, 1, links)
					: uprobe_perf_link(prog, fd, pid, kind, &site, 1, links);
}

static int try_child(enum attach_backend backend, int *status, uint64_t *hits)
{
	__closefd int map = features_counter_map();
	__closefd int prog = -1;
	struct links links = {0};
	uint32_t zero = 0;
	int go = -1, err;
	pid_t pid;

	if (map < 0)
		return map;
	prog = features_counter(map, backend);
	if (prog < 0)
		return prog;
	pid = start_child(&go);
	if (pid < 0)
		return pid;
	err = link_child(backend, prog, pid, &links);
	if (!err && write(go, "g", 1) != 1)
		err = -errno;
	close(go); /* without the word the child ends */
	*status = end_child(pid);
	if (!err && bpf_map_lookup_elem(map, &zero, hits))
		err = -errno;
	links_close_later(&links);
	return err;
}

enum attach_returns returns_judge(int status, uint64_t hits, char *why, size_t len)
{
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : CHILD_CRASHED;

	why[0] = 0;
	if (code == CHILD_NO_FILTER || (code == CHILD_LIVED && hits))
		return RETURNS_FINE;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		snprintf(why, len, "it could not be tried: the trial was killed");
	else if (code == CHILD_CRASHED)
		snprintf(why, len,
			 "this kernel's would crash it (a fault of 6.11 to 6.14-rc1, mended "
			 "in 6.12.14 and 6.13.3)");
	else if (code == CHILD_REFUSED)
		snprintf(why, len, "it could not be tried: silentpin may not use seccomp itself");
	else
		snprintf(why, len, "it could not be tried: the trial's probe was not hit");
	return RETURNS_UNFILTERED;
}

enum attach_returns returns_try(enum attach_backend backend, char *why, size_t len)
{
	static enum attach_returns known;
	static char known_why[96];
	uint64_t hits = 0;
	int status = 0, err = 0;

	if (!known && !X86) {
		known = RETURNS_FINE; /* there they are traps */
	} else if (!known) {
		err = try_child(backend, &status, &hits);
		known = returns_judge(status, hits, known_why, sizeof(known_why));
	}
	if (err) {
		known = RETURNS_UNFILTERED;
		snprintf(known_why, sizeof(known_why), "it could not be tried: %s", strerror(-err));
	}
	snprintf(why, len, "%s", known_why);
	return known;
}

bool attach_may_return(enum attach_returns r, pid_t pid)
{
	return r == RETURNS_UNFILTERED ? !target_filtered(pid) : r != RETURNS_NEVER;
}

bool attach_has_returns(const struct profile *p)
{
	for (int i = 0; i < p->nprobes; i++) {
		const struct profile_probe *pp = &p->probes[i];

		if (pp->off)
			continue;
		if (pp->on == ON_RETURN && pp->library >= 0)
			return true;
		for (int k = 0; k < pp->npointers; k++)
			if (pp->pointer[k].at_call)
				return true; /* a finder, see pointer.h */
	}
	return false;
}
