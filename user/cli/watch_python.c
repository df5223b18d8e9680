// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/watch.h"
#include "cli/watch_python.h"
#include "python/patience.h"
#include "python/view.h"
#include "util/clock.h"
#include "util/log.h"

/* A server that is starting: its libraries, then its event loop. Looking costs a walk over its
 * threads, so the pauses grow. */
#define RETRY_FIRST_NS (250 * NS_PER_MS)
#define RETRY_MAX_NS   (10 * NS_PER_SEC)
/* Two snapshots closer together confirm nothing (python/view.h). */
#define GAP_NS (PYTHON_EVERY_MIN_NS + 1 * NS_PER_MS)
/* Stacks of one process are read once for alerts that come together. */
#define STACKS_FRESH_NS (100 * NS_PER_MS)
/* At most this share of the time goes into one process's snapshots: 1 in so many. */
#define DUTY 10

struct proc_view {
	struct proc_view *next;
	uint32_t pid;
	struct pyreader *reader; /* NULL: not (yet) read */
	struct pyview *view;
	uint64_t due_ns, last_ns, retry_ns;
	struct patience patience;
	bool active; /* the model has been told "ok" and nothing worse since */
	bool told;   /* why it cannot be read, or what is missing */
	char *why;   /* the same, while it is not known that watching goes on */
	struct py_stack *stacks;
	size_t nstacks;
	uint64_t stacks_ns;
};

struct watch_python {
	struct watch *w;
	struct proc_view *first;
	bool started;
};

struct watch_python *watch_python_new(struct watch *w)
{
	struct watch_python *wp;

	if (!w->profile->python)
		return NULL;
	wp = calloc(1, sizeof(*wp));
	if (wp)
		wp->w = w;
	return wp;
}

static void forget_stacks(struct proc_view *p)
{
	py_stacks_free(p->stacks, p->nstacks);
	p->stacks = NULL;
	p->nstacks = 0;
	p->stacks_ns = 0;
}

static void proc_free(struct proc_view *p)
{
	forget_stacks(p);
	pyreader_close(p->reader);
	pyview_free(p->view);
	free(p->why);
	free(p);
}

void watch_python_free(struct watch_python *wp)
{
	struct proc_view *next;

	if (!wp)
		return;
	for (struct proc_view *p = wp->first; p; p = next) {
		next = p->next;
		proc_free(p);
	}
	free(wp);
}

static struct proc_view *find(const struct watch_python *wp, uint32_t pid)
{
	struct proc_view *p = wp->first;

	while (p && p->pid != pid)
		p = p->next;
	return p;
}

static void on_event(void *ctx, const struct sp_event *ev)
{
	struct watch_python *wp = ctx;

	collect_inject(wp->w->collect, ev);
}

/* "ok", "unstable" or "lost": how the model may judge from now on. */
static void tell_model(struct watch_python *wp, const struct proc_view *p, const char *kind,
		       uint64_t ns, int64_t code, const char *why)
{
	struct sp_event ev;

	sp_event_init(&ev);
	ev.ns = ns;
	ev.pid = p->pid;
	ev.role = ROLE_VIEW;
	ev.code = code;
	snprintf(ev.kind, sizeof(ev.kind), "%s", kind);
	snprintf(ev.note, sizeof(ev.note), "%.*s", (int)sizeof(ev.note) - 1, why);
	collect_inject(wp->w->collect, &ev);
}

/* ---- opening --------------------------------------------------------------------------------- */

static int try_open(struct watch_python *wp, struct proc_view *p, uint64_t now, struct sp_err *err)
{
	int rc = pyreader_open((pid_t)p->pid, wp->w->profile, &p->reader, err);

	if (!rc) {
		pr_info("pid %u: CPython %s: the server's own state is read every %.0f ms", p->pid,
			pyreader_version(p->reader), (double)wp->w->o.python_every_ns / 1e6);
		p->retry_ns = 0;
		p->due_ns = now;
		p->told = false;
		watch_target_seen(wp->w, p->pid, "the server's own view");
		return 0;
	}
	p->reader = NULL;
	p->retry_ns = p->retry_ns ? 2 * p->retry_ns : RETRY_FIRST_NS;
	if (p->retry_ns > RETRY_MAX_NS)
		p->retry_ns = RETRY_MAX_NS;
	p->due_ns = now + p->retry_ns;
	if (rc == -EPERM || rc == -ENOTSUP) {
		p->due_ns = UINT64_MAX; /* that does not change while it runs */
		if (!p->told && wp->started)
			pr_warn("%s", err->text);
		else if (!p->told)
			p->why = strdup(err->text);
		p->told = true;
	} else if (!p->told) {
		pr_debug("%s", err->text);
		p->told = true;
	}
	return rc;
}

int watch_python_add(struct watch_python *wp, uint32_t pid, struct sp_err *err)
{
	struct proc_view *p = wp ? find(wp, pid) : NULL;

	if (!wp || p)
		return 0;
	p = calloc(1, sizeof(*p));
	if (p)
		p->view = pyview_new(wp->w->profile, pid);
	if (!p || !p->view) {
		free(p);
		return sp_err_set(err, SP_EXIT_FAIL, -ENOMEM,
				  "pid %u: out of memory: its Python state is not read", pid);
	}
	p->pid = pid;
	p->next = wp->first;
	wp->first = p;
	return try_open(wp, p, mono_ns(), err);
}

void watch_python_started(struct watch_python *wp)
{
	for (struct proc_view *p = wp ? wp->first : NULL; p; p = p->next)
		if (p->why)
			pr_warn("%s", p->why);
	if (wp)
		wp->started = true;
}

void watch_python_drop(struct watch_python *wp, uint32_t pid)
{
	struct proc_view **at = wp ? &wp->first : NULL;

	while (at && *at && (*at)->pid != pid)
		at = &(*at)->next;
	if (at && *at) {
		struct proc_view *p = *at;

		*at = p->next;
		proc_free(p);
	}
}

/* What was known of it is no longer so; perhaps it comes back. */
static void lose(struct watch_python *wp, struct proc_view *p, uint64_t now, int why)
{
	pyreader_close(p->reader);
	p->reader = NULL;
	pyview_reset(p->view);
	forget_stacks(p);
	patience_ok(&p->patience);
	p->retry_ns = 0;
	p->due_ns = now + RETRY_FIRST_NS;
	if (p->active)
		tell_model(wp, p, "lost", now, why, strerror(-why));
	p->active = false;
}

void watch_python_exec(struct watch_python *wp, uint32_t pid)
{
	struct proc_view *p = wp ? find(wp, pid) : NULL;

	if (!p)
		return;
	lose(wp, p, mono_ns(), -ESRCH);
	p->told = false;
}

/* ---- snapshots ------------------------------------------------------------------------------- */

static void incomplete(struct watch_python *wp, struct proc_view *p, const struct py_snapshot *s)
{
	if (!p->told)
		pr_warn("pid %u: the server's own view is incomplete: %s is not in this server: "
			"verdicts rest on the transport's events (profile %s)",
			p->pid, s->missing, wp->w->profile->name);
	p->told = true;
	if (p->active)
		tell_model(wp, p, "lost", s->start_ns, -ENODATA, s->missing);
	p->active = false;
}

static void round_done(struct watch_python *wp, struct proc_view *p, const struct py_snapshot *s,
		       int rc, uint64_t since_ns)
{
	if (rc == -ENODATA) {
		incomplete(wp, p, s);
		return;
	}
	if (rc == -EAGAIN) {
		if (patience_unstable(&p->patience, s->start_ns) && p->active)
			tell_model(wp, p, "unstable", s->start_ns, -EAGAIN, "");
		return;
	}
	patience_ok(&p->patience);
	/* what nobody waits for need not be recorded */
	if (rc == 1 && (!p->active || model_open_lives(wp->w->model, p->pid))) {
		tell_model(wp, p, "ok", s->start_ns, (int64_t)since_ns, "");
		p->active = true;
	}
}

static void snapshot(struct watch_python *wp, struct proc_view *p)
{
	struct py_snapshot s = {0};
	uint64_t since_ns = 0, now = mono_ns();
	int rc = pyreader_snapshot(p->reader, &s);

	p->last_ns = now;
	if (rc) {
		pr_debug("pid %u: its Python state: %s", p->pid, strerror(-rc));
		py_snapshot_free(&s);
		if (rc == -ESRCH || rc == -ENOENT || rc == -EPERM)
			lose(wp, p, now, rc);
		return;
	}
	/* the first alone says nothing: the second comes as soon as it can */
	if (!p->active && !p->told)
		p->due_ns = now + GAP_NS;
	rc = pyview_take(p->view, &s, on_event, wp, &since_ns);
	if (rc == -ENOMEM)
		pr_warn("pid %u: out of memory: a look at its Python state is lost", p->pid);
	else
		round_done(wp, p, &s, rc, since_ns);
	py_snapshot_free(&s);
}

void watch_python_turn(struct watch_python *wp, uint64_t now_ns)
{
	bool asked = wp && model_asks(wp->w->model);

	for (struct proc_view *p = wp ? wp->first : NULL; p; p = p->next) {
		struct sp_err err = {0};
		uint64_t took;

		if (!p->reader) {
			if (now_ns >= p->due_ns)
				try_open(wp, p, now_ns, &err);
			continue;
		}
		if (now_ns < p->due_ns && !(asked && now_ns >= p->last_ns + GAP_NS))
			continue;
		p->due_ns = now_ns + wp->w->o.python_every_ns;
		snapshot(wp, p);
		took = mono_ns() - now_ns;
		if (p->reader && now_ns + took * DUTY > p->due_ns)
			p->due_ns = now_ns + took * DUTY;
		now_ns += took;
	}
}

void watch_python_last(struct watch_python *wp)
{
	for (struct proc_view *p = wp ? wp->first : NULL; p; p = p->next)
		if (p->reader && mono_ns() >= p->last_ns + GAP_NS)
			snapshot(wp, p);
}

/* ---- stacks ---------------------------------------------------------------------------------- */

static void fresh_stacks(struct proc_view *p)
{
	uint64_t now = mono_ns();

	if (p->stacks_ns && now - p->stacks_ns < STACKS_FRESH_NS)
		return;
	forget_stacks(p);
	if (!pyreader_stacks(p->reader, &p->stacks, &p->nstacks))
		p->stacks_ns = now;
}

void watch_python_alert(struct watch_python *wp, const struct model_alert *a)
{
	const struct model_verdict *v = a->life ? a->life->verdict : NULL;
	struct proc_view *p;

	if (!wp || !wp->w->store || a->type != ALERT_STUCK || !v || !v->ntids)
		return;
	p = find(wp, a->pid);
	if (!p || !p->reader)
		return;
	fresh_stacks(p);
	for (size_t i = 0; i < p->nstacks; i++) {
		const struct py_stack *s = &p->stacks[i];

		for (int k = 0; k < v->ntids; k++)
			if (v->tids[k] == s->tid)
				store_stack(wp->w->store, a->life, p->stacks_ns, p->pid, s->tid,
					    s->name, s->line, s->nlines);
	}
}

/* ---- what others ask ------------------------------------------------------------------------- */

const char *watch_python_why(const struct watch_python *wp)
{
	for (const struct proc_view *p = wp ? wp->first : NULL; p; p = p->next)
		if (p->why)
			return p->why;
	return NULL;
}

size_t watch_python_readers(const struct watch_python *wp)
{
	size_t n = 0;

	for (const struct proc_view *p = wp ? wp->first : NULL; p; p = p->next)
		n += p->reader != NULL;
	return n;
}

void watch_python_tell(const struct watch_python *wp)
{
	for (const struct proc_view *p = wp ? wp->first : NULL; p; p = p->next) {
		struct pyreader_stats s;

		if (!p->reader)
			continue;
		pyreader_stats(p->reader, &s);
		if (s.snapshots)
			pr_debug("pid %u: %lu snapshots, %.2f ms each (longest %.2f ms), %lu "
				 "unstable, %lu failed; %lu KiB in %lu calls; %zu requests held",
				 p->pid, s.snapshots, (double)s.ns / 1e6 / (double)s.snapshots,
				 (double)s.max_ns / 1e6, s.unstable, s.failed, s.bytes >> 10,
				 s.calls, pyview_requests(p->view));
	}
}
