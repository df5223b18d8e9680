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

	for (int i = 0; i < n && (err == -ENODATA || err == -EINVAL); i++)
		err = local_path(r, f, &p[i], obj);
	return err;
}

/* The room that a worker's locals name: read, and the local once more. */
static int busy_room(struct pyreader *r, const struct py_frame *f,
		     const struct py_thread_spec *spec, char room[SP_ROOM_MAX])
{
	struct pycell cell = {0};
	struct pyvalue value;
	uint64_t again = 0;
	int err = first_path(r, f, spec->busy, spec->nbusy, &cell.v);

	if (err == -ENODATA || err == -EINVAL) /* it has had none yet */
		return 0;
	if (!err)
		err = pybatch_values(r->batch, &cell, 1, &value);
	if (!err)
		err = pyvalue_room(&value, room);
	if (err == -ENOENT || err == -EINVAL || err == -ERANGE)
		return 0;
	if (!err)
		err = first_path(r, f, spec->busy, spec->nbusy, &again);
	return !err && again != cell.v ? -EAGAIN : err;
}

static int read_worker(struct pyreader *r, const struct py_thread *t, int f,
		       const struct py_thread_spec *spec, int bit, struct pyview_worker *w)
{
	const struct pycode *inner = f ? pycodes_get(r, t->frame[f - 1].code) : NULL;
	int err = 0;

	memset(w, 0, sizeof(*w));
	w->tid = t->tid;
	if (spec->nserves) {
		err = first_path(r, &t->frame[f], spec->serves, spec->nserves, &w->serves);
		if (err == -ENODATA || err == -EINVAL)
			err = 0;
	}
	if (err || (inner && inner->idle >> bit & 1))
		return err;
	for (int i = 0; i < PY_TRIES; i++) {
		w->room[0] = '\0';
		err = busy_room(r, &t->frame[f], spec, w->room);
		if (err != -EAGAIN && err != -EFAULT)
			break;
	}
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

/* Which worker serves the queue that each chunk waits in. */
static void match_backlog(const struct pyreader *r, struct py_snapshot *s)
{
	bool serving = false;

	for (int i = 0; i < r->spec->nthreads; i++)
		serving |= r->spec->thread[i].nserves > 0;
	for (size_t i = 0; i < s->nwaiting; i++) {
		struct pyview_waiting *x = &s->waiting[i];

		x->served = !serving; /* nothing says who does: then nobody is missing */
		for (size_t k = 0; k < s->nworker && !x->served; k++) {
			if (s->worker[k].serves != x->queue)
				continue;
			x->served = true;
			x->tid = s->worker[k].tid;
		}
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
	if (backlog)
		match_backlog(r, s);
	return 0;
}
