// SPDX-License-Identifier: Apache-2.0
/* What the server's threads are at: transfer workers, and the thread that takes announcements. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "python/reader.h"

int pyreader_threads(struct pyreader *r, bool names, struct py_threads *out)
{
	int err = -EAGAIN;

	for (int i = 0; i < PY_TRIES && (err == -EAGAIN || err == -EFAULT); i++)
		err = py_threads(&r->rt, r->pid, names, out);
	return err;
}

/* ---- one worker ------------------------------------------------------------------------------
 */

static bool unfit(int err)
{
	return err == -ENODATA || err == -EINVAL;
}

/* A local, then the rest of the path. */
static int local_path(struct pyreader *r, const struct py_frame *f, const struct py_path *p,
		      uint64_t *obj)
{
	int err = py_local(&r->rt, f, p->head, obj);

	return err || !p->nsteps ? err : pyquery_path(r->batch, *obj, p, obj);
}

static int first_path(struct pyreader *r, const struct py_frame *f, const struct py_path *p, int n,
		      uint64_t *obj)
{
	int err = -ENODATA;

	for (int i = 0; i < n && unfit(err); i++)
		err = local_path(r, f, &p[i], obj);
	return err;
}

/* A path that leads nowhere: *none, because something on it is None, which says that there is no
 * work. */
static int ends_in_none(struct pyreader *r, uint64_t obj, const struct py_path *p, bool *none)
{
	for (int i = 0; i <= p->nsteps; i++) {
		struct py_path one = {.nsteps = 1};
		enum py_type kind;
		char name[8];
		int err = py_type_of(&r->rt, obj, &kind, name, sizeof(name));

		*none = !err && kind == PY_T_NONE;
		if (err || *none || i == p->nsteps)
			return err;
		one.step[0] = p->step[i];
		err = pyquery_path(r->batch, obj, &one, &obj);
		if (err)
			return unfit(err) ? 0 : err;
	}
	return 0;
}

/* None of the alternatives leads to a room. Has the thread nothing to do (a local that the function
 * has is unbound, or None), or is this not how the function names it? */
static int busy_nowhere(struct pyreader *r, const struct py_frame *f,
			const struct py_thread_spec *spec, bool *unknown)
{
	bool declared = false;

	for (int i = 0; i < spec->nbusy; i++) {
		bool none = true;
		uint64_t obj;
		int err = py_local(&r->rt, f, spec->busy[i].head, &obj);

		if (!err)
			err = ends_in_none(r, obj, &spec->busy[i], &none);
		else if (err == -ENODATA)
			err = py_local_declared(&r->rt, f, spec->busy[i].head);
		if (err && !unfit(err))
			return err;
		declared |= !err;
		*unknown |= !none;
	}
	*unknown |= !declared;
	return 0;
}

/* The room that a worker's locals name: read, and the local once more. None is none. */
static int busy_room(struct pyreader *r, const struct py_frame *f,
		     const struct py_thread_spec *spec, struct pyview_worker *w)
{
	struct pycell cell = {0};
	struct pyvalue value;
	uint64_t again = 0;
	int err = first_path(r, f, spec->busy, spec->nbusy, &cell.v);

	if (unfit(err))
		return busy_nowhere(r, f, spec, &w->unknown);
	if (!err)
		err = pybatch_values(r->batch, &cell, 1, &value);
	if (!err)
		err = pyvalue_room(&value, w->room);
	if (err == -EINVAL || err == -ERANGE || (err == -E2BIG && !pybatch_fatal(r->batch, err))) {
		w->unknown = true;
		return 0;
	}
	if (err == -ENOENT)
		return 0;
	if (!err)
		err = first_path(r, f, spec->busy, spec->nbusy, &again);
	return !err && again != cell.v ? -EAGAIN : err;
}

static int read_worker(struct pyreader *r, const struct py_thread *t, int f,
		       const struct py_thread_spec *spec, int bit, struct pyview_worker *w)
{
	const struct pycode *inner = f ? pycodes_get(r, t->frame[f - 1].code) : NULL;
	bool idle = inner && inner->idle >> bit & 1;
	int err = 0;

	memset(w, 0, sizeof(*w));
	w->tid = t->tid;
	r->ever[bit] = true;
	r->idle_ever[bit] |= idle;
	if (spec->nserves) {
		err = first_path(r, &t->frame[f], spec->serves, spec->nserves, &w->serves);
		if (unfit(err) || err == -ENOENT) {
			w->serves = 0;
			err = 0;
		}
	}
	if (err || idle)
		return err;
	for (int i = 0; i < PY_TRIES && spec->nbusy; i++) {
		w->room[0] = '\0';
		w->unknown = false;
		err = busy_room(r, &t->frame[f], spec, w);
		if (err != -EAGAIN && err != -EFAULT)
			break;
	}
	if (w->unknown)
		w->room[0] = '\0';
	return err;
}

/* ---- what waits behind it, for servers without a backlog that the root leads to ---------------
 */

static int read_behind(struct pyreader *r, const struct py_frame *f,
		       const struct py_thread_spec *spec, const struct pyview_worker *w,
		       struct py_snapshot *s, bool *stable)
{
	struct pyrows rows;
	uint64_t start;
	int err = -ENODATA;

	for (int i = 0; i < spec->behind.n && (err == -ENODATA || err == -EINVAL); i++) {
		const struct py_query *q = &spec->behind.query[i];

		err = py_local(&r->rt, f, q->path.head, &start);
		if (!err)
			err = pyquery_run(r->batch, start, q, NULL, &rows);
	}
	if (err)
		return err == -ENODATA || err == -EINVAL ? 0 : err;
	s->has_backlog = true;
	*stable &= !rows.unstable;
	for (size_t i = 0; i < rows.n && !err; i++) {
		struct pyview_waiting *x =
			pyreader_grow((void **)&s->waiting, s->nwaiting, sizeof(*x));

		if (!x) {
			err = -ENOMEM;
			break;
		}
		s->nwaiting++;
		memset(x, 0, sizeof(*x));
		memcpy(x->room, rows.row[i].room, sizeof(x->room));
		x->queue = w->serves;
		x->tid = w->tid;
		x->served = true;
	}
	pyrows_free(&rows);
	return err;
}

/* ---- all threads -----------------------------------------------------------------------------
 */

static int add_worker(struct pyreader *r, const struct py_thread *t, int f, int bit,
		      struct py_snapshot *s, bool backlog, bool *stable)
{
	const struct py_thread_spec *spec = &r->spec->thread[bit];
	struct pyview_worker *w = pyreader_grow((void **)&s->worker, s->nworker, sizeof(*w));
	int err;

	if (!w)
		return -ENOMEM;
	err = read_worker(r, t, f, spec, bit, w);
	if (err && pybatch_fatal(r->batch, err))
		return err;
	s->nworker++;
	s->thread[bit].found++;
	s->thread[bit].unknown += w->unknown;
	s->thread[bit].cannot_serve += !err && spec->nserves && !w->serves;
	if (!err && !backlog && spec->behind.n)
		err = read_behind(r, &t->frame[f], spec, w, s, stable);
	if (err && !pybatch_fatal(r->batch, err)) {
		*stable = false;
		err = 0;
	}
	return err;
}

/* The innermost frame of a thread that the profile speaks of. */
static int one_thread(struct pyreader *r, const struct py_thread *t, struct py_snapshot *s,
		      bool backlog, bool *stable)
{
	for (int f = 0; f < t->nframes; f++) {
		const struct pycode *c = pycodes_get(r, t->frame[f].code);

		for (int i = 0; c && i < r->spec->nthreads; i++) {
			if (!(c->threads >> i & 1))
				continue;
			if (r->spec->thread[i].role == PY_THREAD_WORKER)
				return add_worker(r, t, f, i, s, backlog, stable);
			s->bootstrap_alive = true;
			s->bootstrap_tid = t->tid;
			s->thread[i].found++;
			r->ever[i] = true;
			return 0;
		}
	}
	return 0;
}

static int look(struct pyreader *r, struct py_snapshot *s, bool backlog, bool *stable)
{
	struct py_threads t;
	int err = pyreader_threads(r, false, &t);

	if (err)
		return err;
	err = pycodes_update(r, &t);
	for (size_t i = 0; i < t.n && !err; i++)
		err = one_thread(r, &t.t[i], s, backlog, stable);
	py_threads_free(&t);
	return err;
}

static const struct pyview_worker *server_of(const struct py_snapshot *s, uint64_t queue)
{
	for (size_t k = 0; k < s->nworker; k++)
		if (s->worker[k].serves == queue)
			return &s->worker[k];
	return NULL;
}

/* Do the profile's words for who serves what fit this server? A slip in them must not make every
 * queue one that nobody serves. */
static bool serving_proved(struct pyreader *r, const struct py_snapshot *s)
{
	for (size_t i = 0; i < s->nbacklog; i++)
		r->serving_proved |= server_of(s, s->backlog[i]) != NULL;
	for (int i = 0; i < r->spec->nthreads; i++)
		if (r->spec->thread[i].role == PY_THREAD_WORKER &&
		    (!r->ever[i] || s->thread[i].cannot_serve))
			return false;
	return r->serving_proved;
}

/* Which worker serves the queue that each chunk waits in. */
static void match_backlog(struct pyreader *r, struct py_snapshot *s)
{
	s->serving_proved = serving_proved(r, s);
	for (size_t i = 0; i < s->nwaiting; i++) {
		struct pyview_waiting *x = &s->waiting[i];
		const struct pyview_worker *w = server_of(s, x->queue);

		x->served = w || !s->serving_proved;
		x->tid = w ? w->tid : 0;
	}
}

/*
 * A stack that changes while it is read may break off before the frame we look for: a thread that
 * should be there is looked for again before it is missed.
 */
int pyworkers_read(struct pyreader *r, struct py_snapshot *s, bool *stable)
{
	const bool backlog = s->has_backlog;
	int err = 0;

	for (int i = 0; i < r->spec->nthreads; i++)
		s->bootstrap_declared |= r->spec->thread[i].role == PY_THREAD_BOOTSTRAP;
	if (!r->spec->nthreads)
		return 0;
	for (int i = 0; i < PY_TRIES && !err; i++) {
		s->nworker = 0;
		memset(s->thread, 0, sizeof(s->thread));
		if (!backlog)
			s->nwaiting = 0;
		err = look(r, s, backlog, stable);
		if (s->nworker >= r->nworkers && s->bootstrap_alive >= s->bootstrap_declared)
			break;
	}
	if (err && pybatch_fatal(r->batch, err))
		return err;
	if (err) {
		*stable = false;
		return 0;
	}
	r->nworkers = s->nworker;
	for (int i = 0; i < r->spec->nthreads; i++) {
		s->thread[i].ever = r->ever[i];
		s->thread[i].idle_ever = r->idle_ever[i];
	}
	if (backlog)
		match_backlog(r, s);
	return 0;
}
