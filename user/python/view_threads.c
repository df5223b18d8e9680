// SPDX-License-Identifier: Apache-2.0
/* What two consecutive snapshots agree on about the server's threads. The rules are in view.h. */
#include <stdio.h>
#include <string.h>

#include "python/view_priv.h"

static void say_at(const struct view_take *t, struct view_worker *w)
{
	struct sp_event ev;

	view_event_init(t, &ev, ROLE_THREAD, w->room);
	snprintf(ev.kind, sizeof(ev.kind), "at");
	ev.tid = w->tid;
	ev.flags = !w->has_told && w->born == 1 ? EV_CUT : 0;
	memcpy(w->told, w->room, sizeof(w->told));
	w->has_told = true;
	t->fn(t->ctx, &ev);
}

static void roll_workers(const struct view_take *t)
{
	struct pyview *v = t->v;
	struct view_worker *w, *next;

	for (w = v->workers; w; w = next) {
		next = w->hh.next;
		if (w->round + 1 < v->round) {
			view_worker_del(v, w); /* the kernel tells of its end */
			continue;
		}
		if (w->round != v->round)
			continue;
		/* at the same twice; or twice not at what was said, and so on the move */
		if (w->before_round && w->before_round == v->round - 1 &&
		    (!w->has_told ? !strcmp(w->room, w->before)
				  : strcmp(w->room, w->told) && strcmp(w->before, w->told)))
			say_at(t, w);
		memcpy(w->before, w->room, sizeof(w->before));
		w->before_round = v->round;
	}
}

static void roll_bootstrap(const struct view_take *t)
{
	struct pyview *v = t->v;
	const struct py_snapshot *s = t->s;
	struct sp_event ev;
	bool change;

	if (!s->bootstrap_declared)
		return;
	if (s->bootstrap_alive) {
		v->boot_tid = s->bootstrap_tid;
		v->boot_present = view_twice(v->boot_present);
		v->boot_absent = 0;
	} else {
		/* a worker that is found shows that the profile's names fit this server */
		v->boot_absent = s->nworker ? view_twice(v->boot_absent) : 0;
		v->boot_present = 0;
	}
	change = v->boot_missing ? v->boot_present == VIEW_TWICE : v->boot_absent == VIEW_TWICE;
	if (!change)
		return;
	v->boot_missing = !v->boot_missing;
	view_event_init(t, &ev, ROLE_THREAD, "");
	ev.tid = v->boot_tid;
	snprintf(ev.kind, sizeof(ev.kind), "%s", v->boot_missing ? "missing" : "found");
	for (int i = 0; i < v->py->nthreads; i++)
		if (v->py->thread[i].role == PY_THREAD_BOOTSTRAP)
			snprintf(ev.note, sizeof(ev.note), "%s", v->py->thread[i].frame);
	t->fn(t->ctx, &ev);
}

/* Why there may be work that is not seen; NULL: there is none. */
static const char *unsure(const struct view_take *t, char *buf, size_t len)
{
	const struct profile_python *py = t->v->py;

	for (int i = 0; i < py->nthreads; i++) {
		const struct py_thread_spec *spec = &py->thread[i];
		const struct pyview_declared *d = &t->s->thread[i];

		if (spec->role != PY_THREAD_WORKER || (d->ever && !d->unknown))
			continue;
		if (d->ever)
			snprintf(buf, len, "busy of %.40s is unreadable", spec->frame);
		else
			snprintf(buf, len, "no thread is in %.40s", spec->frame);
		return buf;
	}
	return NULL;
}

/* Doubt counts at once, as it only takes certainty away. */
static void roll_doubt(const struct view_take *t)
{
	struct pyview *v = t->v;
	struct sp_event ev;
	char why[sizeof(ev.note)];
	const char *note = unsure(t, why, sizeof(why));

	v->sure_rounds = note ? 0 : view_twice(v->sure_rounds);
	if (note ? v->workers_told == WORKERS_UNSURE
		 : v->workers_told == WORKERS_SURE || v->sure_rounds < VIEW_TWICE)
		return;
	v->workers_told = note ? WORKERS_UNSURE : WORKERS_SURE;
	view_event_init(t, &ev, ROLE_THREAD, "");
	snprintf(ev.kind, sizeof(ev.kind), "%s", note ? "unsure" : "sure");
	snprintf(ev.note, sizeof(ev.note), "%s", note ? note : "");
	t->fn(t->ctx, &ev);
}

void view_agree_threads(const struct view_take *t)
{
	roll_doubt(t);
	roll_workers(t);
	roll_bootstrap(t);
}
