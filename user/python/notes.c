// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "python/notes.h"
#include "python/reader.h"
#include "util/cleanup.h"

#define PATH_TEXT 80 /* of a path, in a note */

struct notes {
	const struct profile_python *py;
	const struct py_snapshot *s;
	struct py_note *out;
	int n;
};

__attribute__((format(printf, 3, 4))) static void note(struct notes *w, bool slip, const char *fmt,
						       ...)
{
	va_list ap;

	if (w->n == PY_NOTES_MAX)
		return;
	w->out[w->n].slip = slip;
	va_start(ap, fmt);
	vsnprintf(w->out[w->n++].text, sizeof(w->out[0].text), fmt, ap);
	va_end(ap);
}

/* ---- threads -------------------------------------------------------------------------------- */

static void paths_text(const struct py_path *p, int n, char buf[PATH_TEXT])
{
	py_path_print(p, buf, PATH_TEXT);
	if (n > 1)
		snprintf(buf + strlen(buf), PATH_TEXT - strlen(buf), " (and others)");
}

static void note_thread(struct notes *w, int i)
{
	const struct py_thread_spec *spec = &w->py->thread[i];
	const struct pyview_declared *d = &w->s->thread[i];
	bool worker = spec->role == PY_THREAD_WORKER;
	char path[PATH_TEXT];

	if (!d->ever)
		note(w, worker,
		     "threads.%s: no thread is in %s: correct frame, `py --stacks` shows what each "
		     "thread is in",
		     worker ? "worker" : "bootstrap", spec->frame);
	if (d->unknown) {
		paths_text(spec->busy, spec->nbusy, path);
		note(w, true,
		     "threads.worker: busy: %s cannot be read in %d of %d threads in %s: name a "
		     "local of that function that holds a room",
		     path, d->unknown, d->found, spec->frame);
	}
	if (d->cannot_serve) {
		paths_text(spec->serves, spec->nserves, path);
		note(w, true,
		     "threads.worker: serves: no local %s in %d of %d threads in %s: name one that "
		     "holds its queue",
		     path, d->cannot_serve, d->found, spec->frame);
	}
}

/* All could be read, and none is one of the backlog's. */
static void note_serving(struct notes *w)
{
	struct py_path queue;
	char path[PATH_TEXT];
	bool serves = false;

	for (int i = 0; i < w->py->nthreads; i++) {
		if (w->py->thread[i].role != PY_THREAD_WORKER)
			continue;
		if (!w->s->thread[i].ever || w->s->thread[i].cannot_serve)
			return;
		serves |= w->py->thread[i].nserves && w->s->thread[i].found;
	}
	if (!serves || !w->s->nbacklog || w->s->serving_proved)
		return;
	pybacklog_queues(&w->py->backlog.query[0].path, &queue);
	paths_text(&queue, w->py->backlog.n, path);
	note(w, true,
	     "backlog: no worker serves what it names: what waits is in %s, and `serves` of "
	     "threads.worker must lead to the same object",
	     path);
}

/* ---- rooms ---------------------------------------------------------------------------------- */

static int by_room(const void *key, const void *entry)
{
	return strcmp(key, ((const struct pyview_status *)entry)->room);
}

static const struct pyview_status *entry_of(const struct py_snapshot *s, const char *room)
{
	return s->nstatus ? bsearch(room, s->status, s->nstatus, sizeof(*s->status), by_room)
			  : NULL;
}

/* Entries of the table that are no listed request's. */
static size_t others(const struct py_snapshot *s)
{
	__free bool *taken = calloc(s->nstatus + 1, sizeof(*taken));
	size_t n = s->nstatus;

	if (!taken)
		return 0;
	for (size_t i = 0; i < s->nrequest; i++) {
		const struct pyview_status *st = entry_of(s, s->request[i].room);

		if (st && !taken[st - s->status]) {
			taken[st - s->status] = true;
			n--;
		}
	}
	return n;
}

/* None of the rooms of an inflight queue is in the table, which has others: how many. */
static size_t strangers(const struct profile_python *py, const struct py_snapshot *s, int queue,
			size_t *n)
{
	*n = 0;
	if (!strstr(py->queue[queue].name, "inflight") || !s->nstatus)
		return 0;
	for (size_t i = 0; i < s->nrequest; i++) {
		if (s->request[i].queue != queue)
			continue;
		if (entry_of(s, s->request[i].room))
			return 0;
		(*n)++;
	}
	return *n ? others(s) : 0;
}

bool py_other_table(const struct profile_python *py, const struct py_snapshot *s, int queue)
{
	size_t n;

	return strangers(py, s, queue, &n) > 0;
}

static void note_table(struct notes *w, int queue)
{
	const char *name = w->py->queue[queue].name;
	size_t n, foreign = strangers(w->py, w->s, queue, &n);

	if (foreign)
		note(w, false,
		     "queues.%s: none of its %zu rooms is in the status table, which has %zu that "
		     "no request has: is its room the table's key?",
		     name, n, foreign);
}

static bool is_over(const struct notes *w, const char *room)
{
	const struct pyview_status *st = entry_of(w->s, room);

	for (size_t i = 0; i < w->s->nrequest; i++)
		if (!strcmp(w->s->request[i].room, room))
			return false;
	return !st || py_state_is(w->py->states.done, st->code) ||
	       py_state_is(w->py->states.failed, st->code);
}

/* A thread whose wait is not recognised seems to be at its last room for ever. */
static void note_idle(struct notes *w)
{
	const struct py_thread_spec *spec = NULL;

	for (int i = 0; i < w->py->nthreads; i++) {
		const struct py_thread_spec *t = &w->py->thread[i];

		if (t->role != PY_THREAD_WORKER)
			continue;
		if (spec || !t->idle[0] || w->s->thread[i].idle_ever)
			return; /* which of several a worker is, is not known */
		spec = t;
	}
	for (size_t i = 0; spec && i < w->s->nworker; i++) {
		const struct pyview_worker *x = &w->s->worker[i];

		if (!x->room[0] || !is_over(w, x->room))
			continue;
		note(w, false,
		     "threads.worker: idle: no thread is in %s, and thread %u is at room %.40s, "
		     "which no queue has: is %s the function in which it waits for work?",
		     spec->idle, x->tid, x->room, spec->idle);
		return;
	}
}

int py_notes(const struct profile_python *py, const struct py_snapshot *s,
	     struct py_note out[PY_NOTES_MAX])
{
	struct notes w = {.py = py, .s = s, .out = out};

	if (!s->stable)
		return 0;
	for (int i = 0; i < py->nthreads; i++)
		note_thread(&w, i);
	note_serving(&w);
	for (int i = 0; i < py->nqueues; i++)
		note_table(&w, i);
	note_idle(&w);
	return w.n;
}
