// SPDX-License-Identifier: Apache-2.0
/* Which functions the frames are in. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "python/reader.h"
#include "util/cleanup.h"

static struct pycode *slot_of(struct pycodes *c, uint64_t code)
{
	size_t i = (code * 0x9e3779b97f4a7c15ull) >> 40;

	for (i %= PYCODES_SLOTS; c->slot[i].code && c->slot[i].code != code;)
		i = (i + 1) % PYCODES_SLOTS;
	return &c->slot[i];
}

const struct pycode *pycodes_get(const struct pyreader *r, uint64_t code)
{
	const struct pycode *c = slot_of((struct pycodes *)&r->codes, code);

	return code && c->code == code && c->round == r->round ? c : NULL;
}

static int classify(struct pyreader *r, struct pycode *c)
{
	const struct profile_python *spec = r->spec;
	struct py_code code;
	int err = py_code(&r->rt, c->code, &code);

	if (err)
		return err;
	c->roots = c->threads = c->idle = 0;
	for (int i = 0; i < spec->nroots; i++)
		c->roots |= (uint8_t)(py_code_matches(&code, spec->root[i].frame) << i);
	for (int i = 0; i < spec->nthreads; i++) {
		const struct py_thread_spec *t = &spec->thread[i];

		c->threads |= (uint8_t)(py_code_matches(&code, t->frame) << i);
		if (t->idle[0])
			c->idle |= (uint8_t)(py_code_matches(&code, t->idle) << i);
	}
	return 0;
}

/* The distinct code objects of all frames. */
static int gather(struct pyreader *r, const struct py_threads *t, struct pycode ***list, size_t *n)
{
	size_t frames = 0;

	for (size_t i = 0; i < t->n; i++)
		frames += (size_t)t->t[i].nframes;
	*n = 0;
	*list = malloc((frames + 1) * sizeof(struct pycode *));
	if (!*list)
		return -ENOMEM;
	for (size_t i = 0; i < t->n; i++)
		for (int f = 0; f < t->t[i].nframes && r->codes.n < PYCODES_MAX; f++) {
			uint64_t code = t->t[i].frame[f].code;
			struct pycode *c;

			if (!code)
				continue;
			c = slot_of(&r->codes, code);
			if (c->code && c->round == r->round)
				continue;
			if (!c->code) {
				c->code = code;
				c->name[0] = 0;
				r->codes.n++;
			}
			c->round = r->round;
			(*list)[(*n)++] = c;
		}
	return 0;
}

int pycodes_update(struct pyreader *r, const struct py_threads *t)
{
	__free struct pycode **list = NULL;
	__free struct pymem_span *span = NULL;
	__free uint64_t *name = NULL;
	size_t n = 0;
	int err;

	r->round++;
	if (r->codes.n >=
	    PYCODES_MAX / 2) /* many have gone: begin anew, at the price of one walk */
		memset(&r->codes, 0, sizeof(r->codes));
	err = gather(r, t, &list, &n);
	if (err)
		return err;
	span = malloc((n + 1) * sizeof(*span));
	name = malloc((n + 1) * 2 * sizeof(*name));
	if (!span || !name)
		return -ENOMEM;
	/* The name, and the word behind it: the qualified name, or before 3.11 the line table. */
	for (size_t i = 0; i < n; i++)
		span[i] = py_span(list[i]->code + r->rt.lay.code.name, name + 2 * i, 16);
	err = pybatch_read(r->batch, span, n);
	for (size_t i = 0; i < n && !err; i++) {
		struct pycode *c = list[i];

		if (!span[i].rc && c->name[0] && !memcmp(c->name, name + 2 * i, 16))
			continue;
		err = span[i].rc ? span[i].rc : classify(r, c);
		memcpy(c->name, name + 2 * i, 16);
		if (!err)
			continue;
		c->name[0] = 0;
		c->round = 0; /* not known: no answer this time */
		err = pybatch_fatal(r->batch, err) ? err : 0;
	}
	return err;
}
