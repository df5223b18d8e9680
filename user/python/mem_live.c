// SPDX-License-Identifier: Apache-2.0
/* The memory of a running process. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "attach/target.h"
#include "python/mem.h"
#include "util/cleanup.h"

struct live {
	struct pymem mem;
	struct target_id id;
	int fd; /* /proc/PID/mem, opened when process_vm_readv is refused; else -1 */
};

static int open_mem(pid_t pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	return errno == ENOENT ? -ESRCH : errno == EACCES ? -EPERM : -errno;
}

static int pread_span(int fd, const struct pymem_span *s)
{
	uint8_t *buf = s->buf;
	size_t done = 0;

	while (done < s->len) {
		ssize_t n = pread(fd, buf + done, s->len - done, (off_t)(s->addr + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0 && done == 0)
			return -ESRCH; /* the address space is gone: exit or exec */
		if (n <= 0)
			return -EFAULT;
		done += (size_t)n;
	}
	return 0;
}

static int read_by_file(struct live *l, struct pymem_span *span, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		l->mem.calls++;
		span[i].rc = pread_span(l->fd, &span[i]);
		if (span[i].rc == -ESRCH)
			return -ESRCH;
	}
	return 0;
}

/*
 * One call, at most IOV_MAX spans. Number of spans it has dealt with (the last one may be the one
 * that failed), or -errno. The kernel stops at the first page it cannot read and reports the bytes
 * before it, also in the middle of a span; what fails at the very first byte is EFAULT.
 */
static ssize_t read_call(struct live *l, struct pymem_span *span, size_t n)
{
	struct iovec local[IOV_MAX], remote[IOV_MAX];
	ssize_t got;
	size_t i;

	for (i = 0; i < n; i++) {
		local[i] = (struct iovec){span[i].buf, span[i].len};
		remote[i] = (struct iovec){(void *)(uintptr_t)span[i].addr, span[i].len};
		span[i].rc = 0;
	}
	l->mem.calls++;
	got = process_vm_readv(l->id.pid, local, n, remote, n, 0);
	if (got < 0 && errno != EFAULT)
		return -errno;
	got = got < 0 ? 0 : got;
	for (i = 0; i < n && got >= (ssize_t)span[i].len; i++)
		got -= (ssize_t)span[i].len;
	if (i == n)
		return (ssize_t)n;
	span[i].rc = -EFAULT;
	return (ssize_t)i + 1;
}

static int live_readv(void *ctx, struct pymem_span *span, size_t n)
{
	struct live *l = ctx;
	size_t done = 0;

	while (done < n && l->fd < 0) {
		size_t part = n - done < IOV_MAX ? n - done : IOV_MAX;
		ssize_t got = read_call(l, span + done, part);

		if (got == -ENOMEM)
			return -ENOMEM;
		if (got == -ESRCH)
			return -ESRCH;
		if (got < 0) {
			/* A seccomp filter may refuse the call and leave the file. */
			int fd = open_mem(l->id.pid);

			if (fd < 0)
				return fd == -ESRCH          ? -ESRCH
				       : (int)got == -ENOSYS ? -EPERM
							     : (int)got;
			l->fd = fd;
			break;
		}
		done += (size_t)got;
	}
	if (done < n) {
		int err = read_by_file(l, span + done, n - done);

		if (err)
			return err;
	}
	/* The pid could name another process only after this one has ended: it had not. */
	return target_alive(&l->id) ? 0 : -ESRCH;
}

static void live_close(struct pymem *m)
{
	struct live *l = m->ctx;

	target_close(&l->id);
	if (l->fd >= 0)
		close(l->fd);
	free(l);
}

/* ---- why not --------------------------------------------------------------------------------- */

static bool have_ptrace_cap(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};

	return !syscall(SYS_capget, &head, data) &&
	       (data[CAP_SYS_PTRACE / 32].effective & (1u << (CAP_SYS_PTRACE % 32)));
}

static int yama_scope(void)
{
	__fclose FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	int scope = 0;

	return f && fscanf(f, "%d", &scope) == 1 ? scope : 0;
}

/* /proc/PID/mem of a process that may not be dumped belongs to root, /proc/PID never does. */
static bool undumpable(pid_t pid)
{
	struct stat task, mem;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (stat(path, &mem))
		return false;
	snprintf(path, sizeof(path), "/proc/%d", pid);
	return !stat(path, &task) && task.st_uid == geteuid() && mem.st_uid == 0 && geteuid() != 0;
}

static int refuse(pid_t pid, int rc, struct sp_err *err)
{
	static const char what[] = "process %d: its memory cannot be read: %s";

	if (rc != -EPERM)
		return sp_err_set(err, SP_EXIT_NOATTACH, rc, what, pid, strerror(-rc));
	if (yama_scope() == 3)
		return sp_err_set(
			err, SP_EXIT_NOATTACH, rc, what, pid,
			"kernel.yama.ptrace_scope is 3, which forbids it to everyone: set "
			"it lower at boot");
	if (have_ptrace_cap())
		return sp_err_set(
			err, SP_EXIT_NOATTACH, rc, what, pid,
			"a security module (AppArmor, SELinux), a seccomp filter, or a user "
			"namespace it does not share with us forbids it");
	if (undumpable(pid))
		return sp_err_set(
			err, SP_EXIT_NOATTACH, rc, what, pid,
			"it has made itself undumpable (PR_SET_DUMPABLE): CAP_SYS_PTRACE is "
			"needed (run as root)");
	if (yama_scope() > 0)
		return sp_err_set(
			err, SP_EXIT_NOATTACH, rc, what, pid,
			"CAP_SYS_PTRACE is missing, and kernel.yama.ptrace_scope is not 0: "
			"run as root");
	return sp_err_set(err, SP_EXIT_NOATTACH, rc, what, pid,
			  "CAP_SYS_PTRACE is missing: run as root");
}

/* Any read that is allowed proves the right, even one of an address that does not exist. */
static int probe(struct live *l)
{
	uint64_t word;
	struct pymem_span s = {.addr = 0, .buf = &word, .len = sizeof(word)};

	return live_readv(l, &s, 1);
}

int pymem_open(pid_t pid, struct pymem **out, struct sp_err *err)
{
	struct live *l = calloc(1, sizeof(*l));
	int rc;

	*out = NULL;
	if (!l)
		return sp_err_set(err, SP_EXIT_FAIL, -ENOMEM, "out of memory");
	l->fd = -1;
	rc = target_open(pid, &l->id, err);
	if (rc) {
		free(l);
		return rc;
	}
	l->mem.readv = live_readv;
	l->mem.close = live_close;
	l->mem.ctx = l;
	pymem_budget(&l->mem, 0, 0);
	rc = probe(l);
	if (rc) {
		live_close(&l->mem);
		return refuse(pid, rc, err);
	}
	*out = &l->mem;
	return 0;
}
