// SPDX-License-Identifier: Apache-2.0
/*
 * One snapshot. The queues are read in the order in which a request passes through them: one that
 * moves on meanwhile is seen twice, and the later sighting counts, but it is never missed. Then the
 * status table, which has an entry before the request is in a queue; then the backlog, and after it
 * the workers, so that a chunk which is taken meanwhile is seen in one of the two.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "python/reader.h"
#include "python/walk.h"
#include "util/cleanup.h"
#include "util/clock.h"

/* An element that was freed, and its place used again while it was read, may look as if all of its
 * kind lacked an attribute. */
#define UNFIT_TRIES 3
#define ROOT_AGE_NS (10 * NS_PER_SEC) /* then it must be found in a frame again */

/* ---- one declared container -------------------------------------------------------------------
 */

struct take {
	struct pyreader *r;
	struct py_snapshot *s;
	bool stable;
};

static void say_missing(struct take *t, const struct py_alts *alts)
{
	char text[sizeof(t->s->missing) + 16];

	t->s->complete = false;
	if (t->s->missing[0])
		return;
	py_query_print(&alts->query[0], text, sizeof(text));
	snprintf(t->s->missing, sizeof(t->s->missing), "%.*s", (int)sizeof(t->s->missing) - 1,
		 text);
}

static bool unfit(int err)
{
	return err == -ENODATA || err == -EINVAL;
}

/* The alternative that fits, the last one that did first. 0: rows holds what it gave, *found says
 * whether there is one. */
static int run_alts(struct take *t, const struct py_alts *alts, int *last, struct pymemory *mem,
		    struct pyrows *rows, bool *found)
{
	int err = -ENODATA;

	memset(rows, 0, sizeof(*rows));
	*found = false;
	for (int i = 0; i < UNFIT_TRIES * alts->n && unfit(err); i++) {
		int k = (*last + i) % alts->n;

		if (strcmp(alts->query[k].path.head, t->r->root.local) != 0)
			continue; /* begins at another root */
		err = pyquery_run(t->r->batch, t->r->root.obj, &alts->query[k], mem, rows);
		if (!unfit(err))
			*last = k;
	}
	if (unfit(err))
		return 0;
	*found = true;
	if (err && !pybatch_fatal(t->r->batch, err)) {
		t->s->unstable++;
		t->stable = false;
		return 0;
	}
	t->s->unstable += rows->unstable;
	t->stable &= !rows->unstable;
	return err;
}

/* ---- queues -----------------------------------------------------------------------------------
 */

/* Grows the array as a whole: queues are few. */
static int make_room(void **array, size_t have, size_t more, size_t size)
{
	void *grown = realloc(*array, (have + more + 1) * size);

	if (!grown)
		return -ENOMEM;
	*array = grown;
	return 0;
}

/* Does no way to the container exist? That it does, and its elements are not as declared, is
 * another matter. 0: *absent is set. */
static int look_absent(struct take *t, const struct py_alts *alts, bool *absent)
{
	*absent = true;
	for (int i = 0; i < alts->n && *absent; i++) {
		struct pyelems v;
		int err = strcmp(alts->query[i].path.head, t->r->root.local)
				  ? -ENODATA
				  : pywalk(t->r->batch, t->r->root.obj, &alts->query[i].path, &v);

		if (pybatch_fatal(t->r->batch, err))
			return err;
		if (!err)
			free(v.e);
		*absent = err == -ENODATA;
	}
	return 0;
}

static int not_found(struct take *t, int queue)
{
	const struct py_alts *alts = &t->r->spec->queue[queue].alts;
	bool *absent = &t->s->queue_absent[queue];
	int err = 0;

	if (t->r->spec->queue[queue].optional && !t->r->queue_ever[queue])
		err = look_absent(t, alts, absent);
	if (!err && !*absent)
		say_missing(t, alts);
	return err;
}

static int read_queue(struct take *t, int queue)
{
	struct py_snapshot *s = t->s;
	struct pyrows rows;
	bool found;
	int err = run_alts(t, &t->r->spec->queue[queue].alts, &t->r->queue_alt[queue],
			   &t->r->queue_rows[queue], &rows, &found);

	s->queue_found[queue] = found;
	t->r->queue_ever[queue] |= found;
	if (!err && !found)
		err = not_found(t, queue);
	if (!err)
		err = make_room((void **)&s->request, s->nrequest, rows.n, sizeof(*s->request));
	for (size_t i = 0; i < rows.n && !err; i++) {
		struct pyview_request *x = &s->request[s->nrequest++];

		memset(x, 0, sizeof(*x));
		x->addr = rows.row[i].elem;
		x->queue = queue;
		memcpy(x->room, rows.row[i].room, sizeof(x->room));
		memcpy(x->rid, rows.row[i].rid, sizeof(x->rid));
		x->sent = rows.row[i].num[PY_SENT];
		x->total = rows.row[i].num[PY_TOTAL];
	}
	pyrows_free(&rows);
	return err;
}

/* A request seen in two queues went on from the earlier to the later. */
static int drop_earlier(struct py_snapshot *s)
{
	size_t size = 16, kept = 0;
	__free uint32_t *slot = NULL;
	__free bool *drop = calloc(s->nrequest + 1, sizeof(*drop));

	while (size < 2 * s->nrequest)
		size *= 2;
	slot = calloc(size, sizeof(*slot));
	if (!slot || !drop)
		return -ENOMEM;
	for (size_t i = 0; i < s->nrequest; i++) {
		size_t k = ((s->request[i].addr * 0x9e3779b97f4a7c15ull) >> 20) & (size - 1);

		while (slot[k] && s->request[slot[k] - 1].addr != s->request[i].addr)
			k = (k + 1) & (size - 1);
		if (slot[k])
			drop[slot[k] - 1] = true;
		slot[k] = (uint32_t)i + 1;
	}
	for (size_t i = 0; i < s->nrequest; i++)
		if (!drop[i])
			s->request[kept++] = s->request[i];
	s->nrequest = kept;
	return 0;
}

/* ---- tables -----------------------------------------------------------------------------------
 */

static int by_room(const void *a, const void *b)
{
	return strcmp(((const struct pyview_status *)a)->room,
		      ((const struct pyview_status *)b)->room);
}

static int read_status(struct take *t)
{
	struct py_snapshot *s = t->s;
	struct pyrows rows;
	int err;

	if (!t->r->spec->status.n)
		return 0;
	err = run_alts(t, &t->r->spec->status, &t->r->status_alt, NULL, &rows, &s->has_status);
	if (!err && !s->has_status)
		say_missing(t, &t->r->spec->status);
	if (!err)
		err = make_room((void **)&s->status, 0, rows.n, sizeof(*s->status));
	for (size_t i = 0; i < rows.n && !err; i++) {
		struct pyview_status *x = &s->status[s->nstatus++];

		memset(x, 0, sizeof(*x));
		memcpy(x->room, rows.row[i].room, sizeof(x->room));
		x->code = rows.row[i].num[PY_STATUS];
	}
	pyrows_free(&rows);
	if (!err && s->nstatus)
		qsort(s->status, s->nstatus, sizeof(*s->status), by_room);
	return err;
}

static int32_t small(int64_t v)
{
	return v < 0 || v > INT32_MAX ? -1 : (int32_t)v;
}

static int read_announced(struct take *t)
{
	struct py_snapshot *s = t->s;
	struct pyrows rows;
	int err;

	if (!t->r->spec->announced.n)
		return 0;
	err = run_alts(t, &t->r->spec->announced, &t->r->announced_alt, &t->r->announced_rows,
		       &rows, &s->has_announced);
	if (!err)
		err = make_room((void **)&s->announced, 0, rows.n, sizeof(*s->announced));
	for (size_t i = 0; i < rows.n && !err; i++) {
		struct pyview_announced *x = &s->announced[s->nannounced++];

		memset(x, 0, sizeof(*x));
		memcpy(x->room, rows.row[i].room, sizeof(x->room));
		x->seen = small(rows.row[i].num[PY_SEEN]);
		x->need = small(rows.row[i].num[PY_NEED]);
	}
	pyrows_free(&rows);
	return err;
}

/*
 * The path up to its queue objects: they are what the outermost [*] leads to, or, where what waits
 * is in it, the container before it.
 */
bool pybacklog_queues(const struct py_path *p, struct py_path *out)
{
	int first = -1;
	bool more = false;

	for (int i = 0; i < p->nsteps; i++) {
		if (p->step[i].kind != PY_EACH && p->step[i].kind != PY_ITEMS)
			continue;
		more = first >= 0;
		if (first < 0)
			first = i;
	}
	*out = *p;
	out->nsteps = more ? first + 1 : first;
	return more;
}

/* Also of those in which nothing waits: a worker that serves one proves that the profile fits. */
static int read_backlog_queues(struct take *t, bool *many)
{
	struct py_snapshot *s = t->s;
	struct py_path path;
	struct pyelems v;
	int err;

	*many = pybacklog_queues(&t->r->spec->backlog.query[t->r->backlog_alt].path, &path);
	err = pywalk(t->r->batch, t->r->root.obj, &path, &v);
	if (err && !pybatch_fatal(t->r->batch, err)) {
		s->unstable++;
		t->stable = false;
		return 0;
	}
	if (!err)
		err = make_room((void **)&s->backlog, 0, v.n, sizeof(*s->backlog));
	for (size_t i = 0; i < v.n && !err; i++)
		s->backlog[s->nbacklog++] = v.e[i].elem;
	free(v.e);
	return err;
}

static int read_backlog(struct take *t)
{
	struct py_snapshot *s = t->s;
	struct pyrows rows;
	bool many = false;
	int err;

	if (!t->r->spec->backlog.n)
		return 0;
	err = run_alts(t, &t->r->spec->backlog, &t->r->backlog_alt, NULL, &rows, &s->has_backlog);
	if (!err && s->has_backlog)
		err = read_backlog_queues(t, &many);
	if (!err)
		err = make_room((void **)&s->waiting, 0, rows.n, sizeof(*s->waiting));
	for (size_t i = 0; i < rows.n && !err; i++) {
		struct pyview_waiting *x = &s->waiting[s->nwaiting++];

		memset(x, 0, sizeof(*x));
		memcpy(x->room, rows.row[i].room, sizeof(x->room));
		x->queue = many ? rows.row[i].owner : s->nbacklog ? s->backlog[0] : 0;
	}
	pyrows_free(&rows);
	return err;
}

/* ---- all of it --------------------------------------------------------------------------------
 */

static int read_all(struct take *t)
{
	int err = 0;

	for (int i = 0; i < t->r->spec->nqueues && !err; i++)
		err = read_queue(t, i);
	if (!err)
		err = drop_earlier(t->s);
	if (!err)
		err = read_status(t);
	if (!err)
		err = read_announced(t);
	if (!err)
		err = read_backlog(t);
	if (!err)
		err = pyworkers_read(t->r, t->s, &t->stable);
	return err;
}

/* A root that was found just now may be the one before it: of the process that was forked, or of a
 * server that is about to start another. So it is believed for as long as it has been there. */
static bool root_is_fresh(const struct pyreader *r)
{
	uint64_t known = r->root.seen_ns - r->root.first_ns;

	return r->root.obj &&
	       mono_ns() - r->root.seen_ns < (known < ROOT_AGE_NS ? known : ROOT_AGE_NS);
}

static int have_root(struct pyreader *r)
{
	int err;

	if (root_is_fresh(r) && !pyroot_check(r))
		return 0;
	/* Either it is another program by now, or the server made another root, or it is time to
	 * look, also at what was learned once. */
	pyreader_forget(r);
	err = pyreader_same_program(r);
	return err ? err : pyroot_find(r, NULL);
}

static int take(struct pyreader *r, struct py_snapshot *s)
{
	struct take t = {.r = r, .s = s, .stable = true};
	int err;

	pymem_budget(r->mem, 0, 0);
	if (r->doubt)
		pyreader_forget(r);
	r->doubt = true; /* until all is well */
	pybatch_begin(r->batch);
	err = have_root(r);
	if (err)
		return err;
	s->complete = true;
	err = read_all(&t);
	if (!err)
		err = pyroot_check(r); /* what was read from a root that has gone is nothing */
	if (err == -E2BIG) {           /* the budget: what there is has gaps */
		t.stable = false;
		err = 0;
	}
	s->stable = t.stable;
	r->doubt = err || !s->stable || !s->complete;
	return err;
}

int pyreader_snapshot(struct pyreader *r, struct py_snapshot *s)
{
	uint64_t bytes = r->mem->bytes, calls = r->mem->calls, began = mono_ns(), took;
	int err = -ENOENT;

	/* Again when the root went while it was read. */
	for (int i = 0; i < 2 && err == -ENOENT; i++) {
		memset(s, 0, sizeof(*s));
		s->start_ns = mono_ns();
		err = take(r, s);
		s->took_ns = mono_ns() - s->start_ns;
		if (err)
			py_snapshot_free(s);
	}
	took = mono_ns() - began;
	r->stats.snapshots++;
	r->stats.failed += err != 0;
	r->stats.unstable += !err && !s->stable;
	r->stats.ns += took;
	if (took > r->stats.max_ns)
		r->stats.max_ns = took;
	r->stats.bytes += r->mem->bytes - bytes;
	r->stats.calls += r->mem->calls - calls;
	return err;
}

void py_snapshot_free(struct py_snapshot *s)
{
	free(s->request);
	free(s->status);
	free(s->announced);
	free(s->waiting);
	free(s->backlog);
	free(s->worker);
	memset(s, 0, sizeof(*s));
}
