// SPDX-License-Identifier: Apache-2.0
/*
 * The frames of one thread, which may call and return while they are read. A frame that has just
 * been left still looks like one, and the chain may end in it: a generator that has yielded has
 * nobody behind it. So a stack is believed when the thread did not move meanwhile, or when it ends
 * in the same outermost frame twice in a row.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "python/raw.h"
#include "python/threads.h"
#include "util/cleanup.h"

#define WALKS_MAX          12
#define SKIPS_MAX          64 /* entry frames between two Python frames */
#define OWNED_BY_GENERATOR 1  /* 3.11 to 3.13 */
#define STATE_EXECUTING    0  /* 3.10, also of a frame that waits for one it has called */

struct link { /* what a frame says of itself */
	uint64_t code, back, lasti;
	uint8_t owner;
};
struct stack {
	struct py_frame f[PY_FRAMES_MAX + 1];            /* innermost first */
	struct link link[PY_FRAMES_MAX + SKIPS_MAX + 1]; /* of all, entry frames included */
	uint64_t at[PY_FRAMES_MAX + SKIPS_MAX + 1];
	int n, nlinks;
	uint64_t top; /* where the chain began */
};

static uint64_t word(const uint8_t *raw, size_t offset)
{
	uint64_t v;

	memcpy(&v, raw + offset, sizeof(v));
	return v;
}

static int top_frame(struct py_runtime *rt, uint64_t thread, uint64_t *frame)
{
	const struct py_layout *l = &rt->lay;
	uint64_t cframe;
	int err;

	if (l->thread.cframe == PY_NO_OFFSET)
		return pymem_u64(rt->mem, thread + l->thread.frame, frame);
	err = pymem_u64(rt->mem, thread + l->thread.cframe, &cframe);
	if (!err && !cframe)
		return -EAGAIN;
	return err ? err : pymem_u64(rt->mem, cframe + l->cframe_frame, frame);
}

/* -EAGAIN: whatever this is, it is no code object. */
static int check_code(struct py_runtime *rt, uint64_t code)
{
	struct py_typeinfo ti;
	uint64_t type;
	char name[8];
	int err = pymem_u64(rt->mem, code + PY_OB_TYPE, &type);

	if (err)
		return err;
	if (rt->type.code)
		return type == rt->type.code ? 0 : -EAGAIN;
	err = py_typeinfo(rt, type, &ti);
	if (!err)
		err = py_typename(rt, &ti, name, sizeof(name));
	if (err)
		return err;
	if (strcmp(name, "code") != 0)
		return -EAGAIN;
	rt->type.code = type;
	return 0;
}

static size_t frame_size(const struct py_layout *l)
{
	return l->frame.locals < PY_FRAME_RAW ? l->frame.locals : PY_FRAME_RAW;
}

static int parse_frame(const struct py_layout *l, const uint8_t *raw, struct link *out)
{
	out->code = word(raw, l->frame.code);
	out->back = word(raw, l->frame.back);
	out->lasti = word(raw, l->frame.lasti);
	if (l->minor == 10) /* an int */
		out->lasti &= UINT32_MAX;
	out->owner = l->frame.owner == PY_NO_OFFSET ? 0 : raw[l->frame.owner];
	if (l->frame.state != PY_NO_OFFSET && raw[l->frame.state] != STATE_EXECUTING)
		return -EAGAIN;
	return out->owner == OWNED_BY_GENERATOR && !out->back ? -EAGAIN : 0;
}

/* A frame, and in the same call the type of the code object of the one before (0: of none). */
static int read_frame(struct py_runtime *rt, uint64_t at, uint64_t code, struct link *out)
{
	uint8_t raw[PY_FRAME_RAW];
	uint64_t type;
	struct pymem_span span[2] = {
		py_span(at, raw, frame_size(&rt->lay)),
		py_span(code + PY_OB_TYPE, &type, sizeof(type)),
	};
	int err = py_readv(rt, span, code ? 2 : 1);

	if (!err && code && type != rt->type.code)
		err = -EAGAIN;
	return err ? err : parse_frame(&rt->lay, raw, out);
}

/* -EAGAIN, -EFAULT: it moved. */
static int read_stack(struct py_runtime *rt, uint64_t thread, struct stack *s)
{
	int err = top_frame(rt, thread, &s->top);
	uint64_t at = err ? 0 : s->top, code = 0;

	s->n = s->nlinks = 0;
	while (!err && at && s->n < PY_FRAMES_MAX) {
		struct link *l = &s->link[s->nlinks];

		if (s->nlinks - s->n > SKIPS_MAX)
			return -EAGAIN;
		err = read_frame(rt, at, code, l);
		s->at[s->nlinks++] = at;
		code = 0;
		if (!err && (!rt->lay.owner_skip || l->owner != rt->lay.owner_skip)) {
			s->f[s->n++] = (struct py_frame){.addr = at,
							 .code = l->code,
							 .locals = at + rt->lay.frame.locals,
							 .lasti = l->lasti};
			if (rt->type.code)
				code = l->code;
			else
				err = check_code(rt, l->code);
		}
		at = l->back;
	}
	return !err && code ? check_code(rt, code) : err;
}

/* Everything is as it was: the same frames, at the same instructions. */
static bool stands_still(struct py_runtime *rt, uint64_t thread, const struct stack *s)
{
	size_t n = (size_t)s->nlinks, len = frame_size(&rt->lay);
	__free uint8_t *raw = malloc(n * len + 1);
	__free struct pymem_span *span = malloc((n + 1) * sizeof(*span));
	uint64_t top;

	if (!raw || !span || top_frame(rt, thread, &top) || top != s->top)
		return false;
	for (size_t i = 0; i < n; i++)
		span[i] = py_span(s->at[i], raw + i * len, len);
	if (py_readv(rt, span, n))
		return false;
	for (size_t i = 0; i < n; i++) {
		struct link l;

		if (parse_frame(&rt->lay, raw + i * len, &l) || l.code != s->link[i].code ||
		    l.back != s->link[i].back || l.lasti != s->link[i].lasti)
			return false;
	}
	return true;
}

static int settle(struct py_runtime *rt, uint64_t thread, struct stack *s)
{
	uint64_t before = 0, outermost;
	int err = -EAGAIN;

	for (int i = 0; i < WALKS_MAX && py_torn(err); i++) {
		err = read_stack(rt, thread, s);
		/* A stack that is cut has no outermost frame to compare. */
		if (err || s->n == PY_FRAMES_MAX || stands_still(rt, thread, s))
			continue;
		outermost = s->nlinks ? s->at[s->nlinks - 1] : 0;
		if (!outermost || outermost != before)
			err = -EAGAIN;
		before = outermost;
	}
	return err;
}

int py_stack(struct py_runtime *rt, struct py_thread *t)
{
	__free struct stack *s = malloc(sizeof(*s));
	int err = s ? settle(rt, t->addr, s) : -ENOMEM;

	if (err || !s->n)
		return err;
	t->frame = malloc(sizeof(s->f[0]) * (size_t)s->n);
	if (!t->frame)
		return -ENOMEM;
	memcpy(t->frame, s->f, sizeof(s->f[0]) * (size_t)s->n);
	t->nframes = s->n;
	return 0;
}
