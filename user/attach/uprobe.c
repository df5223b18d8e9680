// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/uprobe.h"
#include "util/cleanup.h"

int links_add(struct links *l, int fd)
{
	int *grown = realloc(l->fd, sizeof(*grown) * (size_t)(l->n + 1));

	if (!grown) {
		close(fd);
		return -ENOMEM;
	}
	l->fd = grown;
	l->fd[l->n++] = fd;
	return 0;
}

void links_cut(struct links *l, int n)
{
	while (l->n > n)
		close(l->fd[--l->n]);
}

void links_close(struct links *l)
{
	links_cut(l, 0);
	free(l->fd);
	memset(l, 0, sizeof(*l));
}

#define CLOSERS 32

struct closer {
	pthread_t thread;
	int *fd;
	int n, first;
};

static void *close_some(void *arg)
{
	const struct closer *c = arg;

	for (int i = c->first; i < c->n; i += CLOSERS)
		close(c->fd[i]);
	return NULL;
}

void links_close_all(struct links *l)
{
	struct closer c[CLOSERS];
	bool started[CLOSERS];

	for (int i = 0; i < CLOSERS; i++) {
		c[i] = (struct closer){.fd = l->fd, .n = l->n, .first = i};
		started[i] = i < l->n && !pthread_create(&c[i].thread, NULL, close_some, &c[i]);
		if (!started[i])
			close_some(&c[i]);
	}
	for (int i = 0; i < CLOSERS; i++)
		if (started[i])
			pthread_join(c[i].thread, NULL);
	free(l->fd);
	memset(l, 0, sizeof(*l));
}

static void *close_later(void *arg)
{
	struct links *l = arg;

	links_close_all(l);
	free(l);
	return NULL;
}

void links_close_later(struct links *l)
{
	struct links *copy = l->n ? malloc(sizeof(*copy)) : NULL;
	pthread_t thread;

	if (!copy) {
		links_close(l);
		return;
	}
	*copy = *l;
	memset(l, 0, sizeof(*l));
	if (pthread_create(&thread, NULL, close_later, copy))
		close_later(copy);
	else
		pthread_detach(thread);
}

bool uprobe_is(const struct plan_site *s, struct uprobe_kind kind)
{
	return s->at_return == kind.at_return && s->each == kind.each;
}

static bool any_of(struct uprobe_kind kind, const struct plan_site *site, int n)
{
	for (int i = 0; i < n; i++)
		if (uprobe_is(&site[i], kind))
			return true;
	return false;
}

static int link_kind(const struct uprobe_progs *progs, int file_fd, pid_t pid,
		     struct uprobe_kind kind, const struct plan_site *site, int n,
		     struct links *out)
{
	int prog = kind.each ? progs->each : progs->hit;

	if (!any_of(kind, site, n))
		return 0;
	if (prog < 0)
		return -ENOEXEC; /* the kernel refuses the program */
	if (progs->backend == BACKEND_PERF)
		return uprobe_perf_link(prog, file_fd, pid, kind, site, n, out);
	return uprobe_multi_link(prog, file_fd, pid, kind, site, n, out);
}

static int link_kinds(const struct uprobe_progs *progs, int file_fd, pid_t pid,
		      const struct plan_site *site, int n, struct links *out)
{
	/* Entries first: a return whose entry was not saved counts as an oddity. */
	static const struct uprobe_kind kinds[] = {
		{false, false}, {false, true}, {true, false}, {true, true}};
	int err = 0, had = out->n;

	for (size_t i = 0; i < ARRAY_SIZE(kinds) && !err; i++)
		err = link_kind(progs, file_fd, pid, kinds[i], site, n, out);
	if (err)
		links_cut(out, had);
	return err;
}

/* A refusal that has nothing to do with the place. */
static bool hopeless(int err)
{
	return err == -EPERM || err == -EACCES || err == -ESRCH || err == -ENOMEM ||
	       err == -EMFILE || err == -ENFILE;
}

/* One link is all or nothing, and does not say which place it was: try the probes one by one. */
static int find_culprits(const struct uprobe_progs *progs, const struct plan *plan, pid_t pid,
			 int *err)
{
	int good = 0;

	for (int p = 0; p < plan->nprobe; p++) {
		struct links try = {0};
		int first = 0, n = 0;

		while (first < plan->nsite && plan->site[first].probe != p)
			first++;
		while (first + n < plan->nsite && plan->site[first + n].probe == p)
			n++; /* a probe's sites lie together */
		if (n == 0)
			continue;
		err[p] = link_kinds(progs, plan->fd, pid, plan->site + first, n, &try);
		links_close(&try);
		good += !err[p];
	}
	return good;
}

int uprobe_attach(const struct uprobe_progs *progs, const struct plan *plan, pid_t pid,
		  struct links *out, int *err)
{
	__free struct plan_site *left = NULL;
	int n = 0, good = 0, rc;

	memset(err, 0, sizeof(*err) * (size_t)plan->nprobe);
	if (plan->fd < 0 || plan->nsite == 0)
		return 0;
	for (int i = 0; i < plan->nprobe; i++)
		good += plan->probe[i].ok;
	rc = link_kinds(progs, plan->fd, pid, plan->site, plan->nsite, out);
	if (!rc)
		return good;
	for (int i = 0; i < plan->nprobe; i++)
		err[i] = rc;
	if (hopeless(rc) || !find_culprits(progs, plan, pid, err))
		return 0;
	left = calloc((size_t)plan->nsite, sizeof(*left));
	if (!left)
		return 0;
	for (int i = 0; i < plan->nsite; i++)
		if (!err[plan->site[i].probe])
			left[n++] = plan->site[i];
	rc = link_kinds(progs, plan->fd, pid, left, n, out);
	good = 0;
	for (int i = 0; i < plan->nprobe; i++) {
		if (!err[i])
			err[i] = rc;
		good += plan->probe[i].ok && !err[i];
	}
	return good;
}

void uprobe_reason(int err, enum attach_backend backend, char *buf, size_t len)
{
	switch (-err) {
	case EPERM:
	case EACCES:
		if (backend == BACKEND_PERF)
			snprintf(buf, len, "not permitted: perf uprobes need CAP_SYS_ADMIN");
		else
			snprintf(buf, len, "not permitted: give CAP_BPF and CAP_PERFMON");
		break;
	case ESRCH:
		snprintf(buf, len, "the process is gone");
		break;
	case EIO:
		snprintf(buf, len, "the file system that holds it allows no probes");
		break;
	case ENOEXEC:
		snprintf(buf, len,
			 "the kernel refuses the program for it: run with -v for its reason");
		break;
	case EMFILE:
	case ENFILE:
		snprintf(buf, len, "too many open files: raise ulimit -n");
		break;
	case EINVAL:
	case EOPNOTSUPP:
	case 524: /* the kernel's ENOTSUPP */
	case ENOSYS:
		snprintf(buf, len, "the kernel allows no probe on this instruction (%s)",
			 strerror(err == -524 ? EOPNOTSUPP : -err));
		break;
	default:
		snprintf(buf, len, "the kernel refused the probe: %s", strerror(-err));
	}
}
