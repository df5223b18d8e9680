// SPDX-License-Identifier: Apache-2.0
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/attach.h"
#include "attach/target.h"
#include "util/cleanup.h"

#define CMDLINE_MAX 4096

/* Read a small file of /proc/PID whole; got (may be NULL): its length. Always ends in NUL. -ESRCH
 * when the process is gone. */
static int read_proc(pid_t pid, const char *name, char *buf, size_t len, size_t *got)
{
	char path[64];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		n = read(fd, buf, len - 1);
	buf[n > 0 ? n : 0] = 0;
	if (got)
		*got = n > 0 ? (size_t)n : 0;
	if (n < 0)
		n = errno == ENOENT ? -ESRCH : -errno;
	if (fd >= 0)
		close(fd);
	return n < 0 ? (int)n : 0;
}

int target_start(pid_t pid, uint64_t *start)
{
	char buf[1024], *p;
	int err = read_proc(pid, "stat", buf, sizeof(buf), NULL);

	if (err)
		return err;
	/* The second field is the comm in parentheses, which may hold anything. */
	p = strrchr(buf, ')');
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	if (!p || sscanf(p, "%" SCNu64, start) != 1)
		return -EINVAL;
	return 0;
}

bool target_stopped(pid_t pid, uint64_t *spent)
{
	uint64_t utime, stime;
	char buf[1024], *p;
	char state;

	*spent = 0;
	if (read_proc(pid, "stat", buf, sizeof(buf), NULL))
		return false;
	p = strrchr(buf, ')');
	if (!p || sscanf(p, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64,
			 &state, &utime, &stime) != 3)
		return false;
	*spent = utime + stime;
	return state == 'T' || state == 't';
}

uint64_t target_pages(pid_t pid)
{
	char buf[128];
	uint64_t pages;

	if (read_proc(pid, "statm", buf, sizeof(buf), NULL) || sscanf(buf, "%" SCNu64, &pages) != 1)
		return 0;
	return pages;
}

bool target_alive(const struct target_id *id)
{
	struct pollfd p = {.fd = id->pidfd, .events = POLLIN};

	return poll(&p, 1, 0) == 0;
}

int target_open(pid_t pid, struct target_id *id, struct sp_err *err)
{
	int rc;

	id->pid = pid;
	id->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (id->pidfd < 0) {
		rc = -errno;
		if (rc == -ESRCH)
			return sp_err_set(err, SP_EXIT_NOATTACH, rc,
					  "process %d: does not exist: check the pid (ps -e), or "
					  "use --find",
					  pid);
		/* A thread's number gives EINVAL, from 6.9 on ENOENT. */
		if ((rc == -EINVAL || rc == -ENOENT) && !kill(pid, 0))
			return sp_err_set(err, SP_EXIT_NOATTACH, -EINVAL,
					  "process %d: is a thread of another process: give the "
					  "number of the process (Tgid in /proc/%d/status)",
					  pid, pid);
		return sp_err_set(err, SP_EXIT_NOATTACH, rc, "process %d: cannot be opened: %s",
				  pid, strerror(-rc));
	}
	rc = target_start(pid, &id->start);
	if (!rc && !target_alive(id))
		rc = -ESRCH;
	if (rc) {
		target_close(id);
		return sp_err_set(err, SP_EXIT_NOATTACH, rc, "process %d: %s: attach while it runs",
				  pid, rc == -ESRCH ? "has ended" : strerror(-rc));
	}
	return 0;
}

void target_close(struct target_id *id)
{
	if (id->pidfd >= 0)
		close(id->pidfd);
	id->pidfd = -1;
}

int target_cmdline(pid_t pid, char *buf, size_t len)
{
	char comm[32];
	size_t end;
	int err = read_proc(pid, "cmdline", buf, len, &end);

	if (err)
		return err;
	/* setproctitle leaves NULs or blanks behind the new title. */
	while (end > 0 && (buf[end - 1] == 0 || buf[end - 1] == ' '))
		buf[--end] = 0;
	for (size_t i = 0; i < end; i++)
		if (!isprint((unsigned char)buf[i]) && !(buf[i] & 0x80))
			buf[i] = ' ';
	if (end > 0)
		return 0;
	err = read_proc(pid, "comm", comm, sizeof(comm), NULL);
	if (err)
		return err;
	comm[strcspn(comm, "\n")] = 0;
	snprintf(buf, len, "[%s]", comm);
	return 0;
}

static bool fits(const struct profile *p, pid_t pid)
{
	char text[CMDLINE_MAX];

	if (!target_cmdline(pid, text, sizeof(text)) && text[0] != '[' &&
	    !fnmatch(p->match_cmdline, text, 0))
		return true;
	if (read_proc(pid, "comm", text, sizeof(text), NULL))
		return false;
	text[strcspn(text, "\n")] = 0;
	return fnmatch(p->match_cmdline, text, 0) == 0;
}

struct found {
	pid_t pid;
	uint64_t start;
};

static int by_age(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

int target_find(const struct profile *p, pid_t *pids, int max)
{
	__free struct found *all = NULL;
	DIR *proc = opendir("/proc");
	const struct dirent *d;
	int n = 0, cap = 0;

	if (!proc || !p->match_cmdline) {
		if (proc)
			closedir(proc);
		return 0;
	}
	while ((d = readdir(proc))) {
		pid_t pid = (pid_t)strtol(d->d_name, NULL, 10);
		struct found f = {.pid = pid};

		if (pid <= 0 || pid == getpid() || !fits(p, pid) || target_start(pid, &f.start))
			continue;
		if (n == cap) {
			struct found *grown = realloc(all, sizeof(f) * (size_t)(cap + 64));

			if (!grown)
				break;
			all = grown;
			cap += 64;
		}
		all[n++] = f;
	}
	closedir(proc);
	if (n)
		qsort(all, (size_t)n, sizeof(*all), by_age);
	if (n > max)
		n = max;
	for (int i = 0; i < n; i++)
		pids[i] = all[i].pid;
	return n;
}

static bool thread_filtered(pid_t pid, const char *tid)
{
	char name[64], text[16384]; /* its groups come before, any number of them */
	const char *p;
	unsigned mode;
	size_t got;
	int err;

	snprintf(name, sizeof(name), "task/%.16s/status", tid);
	err = read_proc(pid, name, text, sizeof(text), &got);
	if (err)
		return err != -ESRCH; /* that one has ended */
	p = strstr(text, "\nSeccomp:");
	if (!p && got == sizeof(text) - 1)
		return true; /* not known */
	/* a kernel that has no filters does not say */
	return p && (sscanf(p, "\nSeccomp: %u", &mode) != 1 || mode);
}

bool target_filtered(pid_t pid)
{
	const struct dirent *d;
	bool filtered = false;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return true;
	while (!filtered && (d = readdir(dir)))
		filtered = d->d_name[0] != '.' && thread_filtered(pid, d->d_name);
	closedir(dir);
	return filtered;
}

static int children_of_thread(pid_t pid, const char *tid, uint32_t *out, int max)
{
	char path[64];
	int n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%.16s/children", pid, tid);
	f = fopen(path, "re");
	while (f && n < max && fscanf(f, "%u", &out[n]) == 1)
		n++;
	if (f)
		fclose(f);
	return n;
}

int target_children(pid_t pid, uint32_t *out, int max)
{
	const struct dirent *d;
	char path[64];
	int n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && n < max && (d = readdir(dir)))
		if (d->d_name[0] != '.')
			n += children_of_thread(pid, d->d_name, out + n, max - n);
	if (dir)
		closedir(dir);
	return n;
}
