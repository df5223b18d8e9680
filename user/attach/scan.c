// SPDX-License-Identifier: Apache-2.0
/* One process: find its libraries, link their probes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/sockets.h"
#include "util/clock.h"

#define YOUNG_NS  (10 * NS_PER_SEC) /* a program that is still loading its libraries */
#define YOUNG_GAP (50 * NS_PER_MS)  /* between two scans */
#define OLD_GAP   NS_PER_SEC
#define FORCE_GAP (5 * NS_PER_SEC) /* a scan even when the number of pages is the same */
#define WAITS_MAX 4
#define DUTY      20 /* at most a twentieth of the time in scans */

static struct plan *find_plan(const struct attach *a, bool no_return, const struct map_file *f)
{
	for (int i = 0; i < a->nplan; i++)
		if (a->plan[i]->fd >= 0 && a->plan[i]->no_return == no_return &&
		    plan_is_for(a->plan[i], f))
			return a->plan[i];
	return NULL;
}

static struct plan *get_plan(struct attach *a, const struct watched *w,
			     const struct map_files *files, const struct map_file *f)
{
	struct plan *plan = find_plan(a, w->no_return, f), **grown;
	pid_t pid = w->id.pid;
	char why[160] = "";
	int fd;

	if (plan)
		return plan;
	fd = maps_open(pid, f, why, sizeof(why));
	grown = realloc(a->plan, sizeof(void *) * (size_t)(a->nplan + 1)); /* of pointers */
	if (grown)
		a->plan = grown;
	if (plan_make(a->profile, f, w->no_return, fd, why, &plan))
		return NULL;
	if (!grown || pointer_plan(a->profile, pid, files, plan)) {
		plan_free(plan);
		return NULL;
	}
	a->plan[a->nplan++] = plan;
	return plan;
}

static bool has_plan(const struct watched *w, const struct map_file *f)
{
	for (int i = 0; i < w->nlib; i++)
		if (plan_is_for(w->lib[i].plan, f))
			return true;
	return false;
}

static void say_failures(const struct attach *a, const struct watched *w,
			 const struct watched_lib *lib)
{
	struct attach_notice n = {
		.what = NOTICE_FAILED, .ns = mono_ns(), .pid = (uint32_t)w->id.pid};
	char why[160];

	for (int i = 0; i < lib->plan->nprobe; i++) {
		const struct plan_probe *p = &lib->plan->probe[i];
		const struct profile_probe *pp = &a->profile->probes[p->index];

		if (p->off || p->hidden || (p->ok && !lib->err[i]) ||
		    (!p->ok && pointer_found(w, p->index)))
			continue;
		if (p->ok)
			uprobe_reason(lib->err[i], a->bpf.progs.backend, why, sizeof(why));
		snprintf(n.text, sizeof(n.text), "probe %.32s in %.40s: %.150s%s", pp->name,
			 strrchr(lib->plan->path, '/') + 1, p->ok ? why : p->reason,
			 pp->required ? "" : " (not required)");
		attach_notify(a, &n);
	}
}

/* Probes of its own that lead to functions behind pointers: not the profile's. */
static int finders(const struct attach *a, const struct watched_lib *lib)
{
	int n = 0;

	for (int i = 0; i < lib->plan->nprobe && lib->good; i++)
		n += lib->plan->probe[i].ok && !lib->err[i] &&
		     lib->plan->probe[i].index >= a->pointers.given;
	return n;
}

/* Link one library's probes. Their number, or -ENOMEM. */
static int add_lib(struct attach *a, struct watched *w, struct plan *plan)
{
	struct watched_lib *grown = realloc(w->lib, sizeof(*grown) * (size_t)(w->nlib + 1)), *lib;

	if (!grown)
		return -ENOMEM;
	w->lib = grown;
	lib = &w->lib[w->nlib];
	memset(lib, 0, sizeof(*lib));
	lib->plan = plan;
	lib->err = calloc((size_t)plan->nprobe + 1, sizeof(*lib->err));
	if (!lib->err)
		return -ENOMEM;
	lib->good =
		uprobe_attach(bpfload_progs(&a->bpf, plan), plan, w->id.pid, &lib->links, lib->err);
	lib->good -= finders(a, lib);
	w->nlib++;
	return lib->good;
}

int watched_add_plan(struct attach *a, struct watched *w, struct plan *plan)
{
	int n = add_lib(a, w, plan);

	if (n >= 0)
		say_failures(a, w, &w->lib[w->nlib - 1]);
	return n;
}

/* A library that this file's probes need is not mapped yet: look again soon. */
static bool must_wait(const struct attach *a, struct watched *w, const struct map_files *files,
		      const struct map_file *f)
{
	if (w->waited == WAITS_MAX || !pointer_waits(a->profile, files, f))
		return false;
	w->waited++;
	w->pages = 0; /* so that the next scan is not skipped */
	return true;
}

static bool filtered(const struct attach *a, const struct watched *w)
{
	return a->returns != RETURNS_UNKNOWN && !attach_may_return(a->returns, w->id.pid);
}

/* A filter is mostly there from the start. One that comes later must not meet a return probe: they
 * are gone before this returns, and others come in their place. A call that is under way returns
 * through the kernel's page all the same. */
static void settle_returns(const struct attach *a, struct watched *w)
{
	if (w->no_return || !filtered(a, w))
		return;
	w->no_return = true;
	for (int i = 0; i < w->nlib; i++)
		links_close_all(&w->lib[i].links);
	watched_drop_libs(w);
}

/*
 * When to look again. A scan that is dear is made less often, by what it takes of a CPU: that it
 * had to wait for one says nothing. One that placed probes is no measure, and what it found seldom
 * comes alone.
 */
static void set_due(struct watched *w, uint64_t began, uint64_t cpu_ns, bool placed)
{
	uint64_t gap = began - w->born_ns < YOUNG_NS ? YOUNG_GAP : OLD_GAP;

	if (!placed && cpu_ns * DUTY > gap)
		gap = cpu_ns * DUTY;
	w->due_ns = mono_ns() + gap;
	w->forced_ns = began + FORCE_GAP;
}

int watched_scan(struct attach *a, struct watched *w)
{
	uint64_t began = mono_ns(), cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	struct map_files files;
	int added = 0, rc;

	if (a->opts.no_probes)
		return target_alive(&w->id) ? 0 : -ESRCH;
	if (!a->opts.no_uprobes)
		settle_returns(a, w);
	w->pages = target_pages(w->id.pid);
	rc = maps_read(w->id.pid, &files);
	/* The pid is still that process, or this was another's map. */
	if (!rc && !target_alive(&w->id))
		rc = -ESRCH;
	for (int i = 0; !rc && !a->opts.no_uprobes && i < files.n; i++) {
		struct plan *plan;

		if (!plan_wants(a->profile, &files.file[i]) || has_plan(w, &files.file[i]) ||
		    must_wait(a, w, &files, &files.file[i]))
			continue;
		plan = get_plan(a, w, &files, &files.file[i]);
		rc = plan ? watched_add_plan(a, w, plan) : -ENOMEM;
		if (rc < 0)
			break;
		added += rc;
		rc = 0;
	}
	/* after the probes, whose programs are ready sooner */
	if (!rc) {
		sock_watch_set(a, w->id.pid, &w->sock, socks_rules(a, w->id.pid));
		sock_watch_scan(a, w->id.pid, &w->sock, &files);
	}
	maps_free(&files);
	set_due(w, began, clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns, added > 0);
	return rc ? rc : added;
}

int watched_inherit(struct attach *a, struct watched *w, const struct watched *parent)
{
	int added = 0;

	/* a sandboxed child: its libraries are found anew at the next tick */
	w->no_return = parent->no_return || filtered(a, w);
	for (int i = 0; i < parent->nlib && w->no_return == parent->no_return; i++) {
		int n = add_lib(a, w, parent->lib[i].plan);

		if (n < 0)
			return n;
		added += n;
	}
	sock_watch_inherit(a, w->id.pid, &w->sock, &parent->sock);
	return added;
}

int watched_uprobes(const struct watched *w)
{
	int n = 0;

	for (int i = 0; i < w->nlib; i++)
		n += w->lib[i].good;
	return n;
}

int watched_probes(const struct watched *w)
{
	return watched_uprobes(w) + w->sock.in_place;
}

int watched_link_error(const struct watched *w)
{
	for (int i = 0; i < w->nlib; i++)
		for (int k = 0; k < w->lib[i].plan->nprobe; k++)
			if (w->lib[i].err[k])
				return w->lib[i].err[k];
	return w->sock.link_err;
}

void watched_drop_libs(struct watched *w)
{
	for (int i = 0; i < w->nlib; i++) {
		links_close_later(&w->lib[i].links);
		free(w->lib[i].err);
	}
	free(w->lib);
	free(w->pointer);
	w->lib = NULL;
	w->nlib = 0;
	w->pointer = NULL;
	w->npointers = w->waited = 0;
}
