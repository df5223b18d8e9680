// SPDX-License-Identifier: Apache-2.0
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach/sock_front.h"
#include "util/cleanup.h"

#define CMDLINE_MAX  4096
#define CHILDREN_MAX 512 /* of one parent */
#define DEPTH_MAX    64  /* ancestors: a tree that changes meanwhile must not lead in circles */
#define LISTEN_MAX   (1u << 20) /* listening sockets of a network namespace, a host's too */
#define TCP_LISTEN   0x0a

/* Read a small file of a process; its length, 0 when it cannot be read. Ends in NUL. */
static size_t read_of(const char *proc, pid_t pid, const char *name, char *buf, size_t len)
{
	char path[256];
	ssize_t n = 0;
	int fd;

	snprintf(path, sizeof(path), "%s/%d/%s", proc, pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, buf, len - 1);
		close(fd);
	}
	n = n > 0 ? n : 0;
	buf[n] = 0;
	return (size_t)n;
}

pid_t front_parent(const char *proc, pid_t pid)
{
	char buf[1024], *p;
	int parent;

	if (!read_of(proc, pid, "stat", buf, sizeof(buf)))
		return 0;
	/* The second field is the comm in parentheses, which may hold anything. */
	p = strrchr(buf, ')');
	return p && sscanf(p, ") %*c %d", &parent) == 1 ? parent : 0;
}

/* As target_cmdline: arguments joined by blanks, what setproctitle leaves behind cut off. */
static bool cmdline_fits(const char *proc, const char *glob, pid_t pid)
{
	char text[CMDLINE_MAX];
	size_t n = read_of(proc, pid, "cmdline", text, sizeof(text));

	while (n > 0 && (text[n - 1] == 0 || text[n - 1] == ' '))
		text[--n] = 0;
	for (size_t i = 0; i < n; i++)
		if (!isprint((unsigned char)text[i]) && !(text[i] & 0x80))
			text[i] = ' ';
	if (n && !fnmatch(glob, text, 0))
		return true;
	read_of(proc, pid, "comm", text, sizeof(text));
	text[strcspn(text, "\n")] = 0;
	return !fnmatch(glob, text, 0);
}

bool front_same_exe(const char *proc, pid_t a, pid_t b)
{
	char pa[256], pb[256], la[512], lb[512];
	struct stat sa, sb;
	ssize_t na, nb;

	if (a == b)
		return true;
	snprintf(pa, sizeof(pa), "%s/%d/exe", proc, a);
	snprintf(pb, sizeof(pb), "%s/%d/exe", proc, b);
	if (!stat(pa, &sa) && !stat(pb, &sb))
		return sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
	na = readlink(pa, la, sizeof(la));
	nb = readlink(pb, lb, sizeof(lb));
	return na > 0 && na == nb && (size_t)na < sizeof(la) && !memcmp(la, lb, (size_t)na);
}

/* ---- descriptors ----------------------------------------------------------------------------- */

/* Does any of its descriptors fit? link: what it stands for, "socket:[123]". */
static bool any_fd(const char *proc, pid_t pid, bool (*fits)(const void *ctx, const char *link),
		   const void *ctx)
{
	char path[256], link[128];
	const struct dirent *d;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/%d/fd", proc, pid);
	dir = opendir(path);
	while (dir && !found && (d = readdir(dir))) {
		ssize_t n;

		if (d->d_name[0] == '.')
			continue;
		n = readlinkat(dirfd(dir), d->d_name, link, sizeof(link) - 1);
		link[n > 0 ? n : 0] = 0;
		found = fits(ctx, link);
	}
	if (dir)
		closedir(dir);
	return found;
}

static bool is_uring(const void *ctx, const char *link)
{
	return !strcmp(link, "anon_inode:[io_uring]");
}

bool front_has_uring(const char *proc, pid_t pid)
{
	return any_fd(proc, pid, is_uring, NULL);
}

struct listening {
	uint64_t *ino;
	size_t n, cap;
};

static bool keep(struct listening *l, uint64_t ino)
{
	size_t cap = l->cap ? l->cap * 2 : 256;
	uint64_t *grown;

	if (l->n == l->cap) {
		grown = l->n < LISTEN_MAX ? realloc(l->ino, cap * sizeof(*grown)) : NULL;
		if (!grown)
			return false;
		l->ino = grown;
		l->cap = cap;
	}
	l->ino[l->n++] = ino;
	return true;
}

/* The kernel lists listening sockets before all others (net/ipv4/tcp_ipv4.c, tcp_seq_start): there
 * is no need to read through thousands of connections. */
static void read_listening(const char *proc, pid_t pid, const char *name, struct listening *l)
{
	char path[256], line[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%d/net/%s", proc, pid, name);
	f = fopen(path, "re");
	if (f && !fgets(line, sizeof(line), f)) /* the heading */
		line[0] = 0;
	while (f && fgets(line, sizeof(line), f)) {
		unsigned state;
		uint64_t ino;

		if (sscanf(line,
			   " %*d: %*[0-9A-Fa-f:] %*[0-9A-Fa-f:] %x %*s %*s %*s %*d %*d %" SCNu64,
			   &state, &ino) != 2 ||
		    state != TCP_LISTEN || !keep(l, ino))
			break;
	}
	if (f)
		fclose(f);
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static bool is_listening(const void *ctx, const char *link)
{
	const struct listening *l = ctx;
	uint64_t ino;

	return sscanf(link, "socket:[%" SCNu64 "]", &ino) == 1 &&
	       bsearch(&ino, l->ino, l->n, sizeof(ino), by_number);
}

bool front_listens(const char *proc, pid_t pid)
{
	struct listening l = {.n = 0};
	bool found;

	read_listening(proc, pid, "tcp", &l);
	read_listening(proc, pid, "tcp6", &l);
	if (l.n)
		qsort(l.ino, l.n, sizeof(*l.ino), by_number);
	found = l.n && any_fd(proc, pid, is_listening, &l);
	free(l.ino);
	return found;
}

/* ---- relations ------------------------------------------------------------------------------- */

static bool fits(const char *proc, const struct sock_process *want, pid_t of, pid_t pid)
{
	if (want->same_exe && !front_same_exe(proc, of, pid))
		return false;
	if (want->cmdline && !cmdline_fits(proc, want->cmdline, pid))
		return false;
	return !want->listens || front_listens(proc, pid);
}

bool front_self(const char *proc, const struct sock_process *want, pid_t pid)
{
	return want->is & SOCK_IS_SELF && fits(proc, want, pid, pid);
}

/*
 * Process 1 adopts orphans, so that it is nobody's front but where it is known to be the same
 * program: the server as a container's first process, seen from inside.
 */
static bool may_be(const char *proc, const struct sock_process *want, pid_t of, pid_t pid)
{
	return pid > 1 || (pid == 1 && want->same_exe && front_same_exe(proc, of, pid));
}

static int children_of_task(const char *path, pid_t *out, int max)
{
	__fclose FILE *f = fopen(path, "re");
	int n = 0;

	while (f && n < max && fscanf(f, "%d", &out[n]) == 1)
		n++;
	return n;
}

static int children(const char *proc, pid_t pid, pid_t *out, int max)
{
	const struct dirent *d;
	char path[256];
	int n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/%d/task", proc, pid);
	dir = opendir(path);
	while (dir && n < max && (d = readdir(dir))) {
		snprintf(path, sizeof(path), "%.128s/%d/task/%.16s/children", proc, pid, d->d_name);
		if (d->d_name[0] != '.')
			n += children_of_task(path, out + n, max - n);
	}
	if (dir)
		closedir(dir);
	return n;
}

int front_find(const char *proc, const struct sock_process *want, pid_t pid,
	       bool (*skip)(void *ctx, pid_t pid), void *ctx, pid_t out[FRONTS_MAX])
{
	pid_t parent = front_parent(proc, pid), sibling[CHILDREN_MAX], up = parent;
	int depth = want->is & SOCK_IS_ANCESTOR ? DEPTH_MAX : want->is & SOCK_IS_PARENT ? 1 : 0;
	int n = 0, nsiblings = 0;

	while (depth-- > 0 && n == 0 && may_be(proc, want, pid, up)) {
		if (!(skip && skip(ctx, up)) && fits(proc, want, pid, up))
			out[n++] = up;
		up = front_parent(proc, up);
	}
	if (want->is & SOCK_IS_SIBLING && may_be(proc, want, pid, parent))
		nsiblings = children(proc, parent, sibling, CHILDREN_MAX);
	for (int i = 0; i < nsiblings && n < FRONTS_MAX; i++)
		if (sibling[i] != pid && sibling[i] != (n ? out[0] : 0) &&
		    !(skip && skip(ctx, sibling[i])) && fits(proc, want, pid, sibling[i]))
			out[n++] = sibling[i];
	return n;
}
