// SPDX-License-Identifier: Apache-2.0
/* Interpreters -> threads. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "python/raw.h"
#include "python/threads.h"
#include "util/cleanup.h"

/* Words of a thread that are looked at, and the rest of the list. */
struct walk {
	struct py_runtime *rt;
	struct py_threads *out;
	struct py_ident *id;
	size_t cap;
};

static int grow(struct walk *w)
{
	size_t cap = w->cap ? w->cap * 2 : 64;
	struct py_thread *t;
	struct py_ident *id;

	if (w->out->n >= PY_THREADS_MAX)
		return -E2BIG;
	if (w->out->n < w->cap)
		return 0;
	t = realloc(w->out->t, cap * sizeof(*t));
	if (t)
		w->out->t = t;
	id = realloc(w->id, cap * sizeof(*id));
	if (id)
		w->id = id;
	if (!t || !id)
		return -ENOMEM;
	w->cap = cap;
	return 0;
}

static int add_thread(struct walk *w, uint64_t interp, uint64_t addr, uint64_t *next)
{
	const struct py_layout *l = &w->rt->lay;
	struct py_thread *t;
	struct py_ident *id;
	uint64_t back;
	struct pymem_span span[4];
	int err = grow(w);

	if (err)
		return err;
	t = &w->out->t[w->out->n];
	id = &w->id[w->out->n];
	memset(t, 0, sizeof(*t));
	memset(id, 0, sizeof(*id));
	t->addr = addr;
	span[0] = py_span(addr + l->thread.interp, &back, sizeof(back));
	span[1] = py_span(addr + l->thread.next, next, sizeof(*next));
	span[2] = py_span(addr + l->thread.thread_id, &id->pthread, sizeof(id->pthread));
	span[3] = py_span(addr + l->thread.native_id, &id->native, sizeof(id->native));
	err = py_readv(w->rt, span, l->thread.native_id == PY_NO_OFFSET ? 3 : 4);
	if (err)
		return err;
	if (back != interp)
		return -EAGAIN; /* it has gone, and its memory serves something else */
	w->out->n++;
	return 0;
}

static int add_interp(struct walk *w, uint64_t interp, uint64_t *next)
{
	const struct py_layout *l = &w->rt->lay;
	uint64_t at = 0, head = 0, again;
	int err = pymem_u64(w->rt->mem, interp + l->interp.next, next);

	if (!err)
		err = pymem_u64(w->rt->mem, interp + l->interp.threads_head, &head);
	for (at = head; at && !err;)
		err = add_thread(w, interp, at, &at);
	if (err)
		return err;
	err = pymem_u64(w->rt->mem, interp + l->interp.threads_head, &again);
	return !err && again != head ? -EAGAIN : err; /* started or ended meanwhile */
}

/* Both lists have the newest first. */
static void reverse(struct walk *w)
{
	for (size_t i = 0, j = w->out->n; i + 1 < j; i++) {
		struct py_thread t = w->out->t[i];
		struct py_ident id = w->id[i];

		j--;
		w->out->t[i] = w->out->t[j];
		w->out->t[j] = t;
		w->id[i] = w->id[j];
		w->id[j] = id;
	}
}

static int walk_all(struct walk *w)
{
	uint64_t interp = 0;
	int n = 0, err = pymem_u64(w->rt->mem, w->rt->addr + w->rt->lay.runtime.interpreters_head,
				   &interp);

	if (!err && !interp)
		err = -EAGAIN;
	while (interp && !err) {
		if (n++ == PY_INTERPS_MAX)
			return -E2BIG;
		err = add_interp(w, interp, &interp);
	}
	if (err)
		return err;
	if (w->id)
		reverse(w);
	for (size_t i = 0; i < w->out->n && !err; i++)
		err = py_stack(w->rt, &w->out->t[i]);
	return err;
}

int py_threads(struct py_runtime *rt, pid_t pid, bool names, struct py_threads *out)
{
	int err = -EAGAIN;

	memset(out, 0, sizeof(*out));
	for (int i = 0; i < PY_TRIES && py_torn(err); i++) {
		struct walk w = {.rt = rt, .out = out};

		py_threads_free(out);
		err = walk_all(&w);
		if (!err)
			err = py_tids(rt, pid, w.id, out);
		if (!err && names)
			py_names(rt, pid, w.id, out);
		free(w.id);
	}
	if (err)
		py_threads_free(out);
	/* Garbage where a frame was is a torn stack as well. */
	return err == -EFAULT ? -EAGAIN : err;
}

void py_threads_free(struct py_threads *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->t[i].frame);
	free(t->t);
	memset(t, 0, sizeof(*t));
}
