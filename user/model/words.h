/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_MODEL_WORDS_H
#define SP_MODEL_WORDS_H

#include "model/lives.h"

/* "kv chunk 2 last rank 0" */
void words_op(const struct model *m, const struct op *o, char *buf, size_t len);
/* "op 0x7f.. in progress for 31.2 s" */
void words_span(const struct op *o, uint64_t now, char *buf, size_t len);
/* "in cuStreamSynchronize for 41.0 s" */
void words_inside(const struct model *m, const struct inside *in, uint64_t now, char *buf,
		  size_t len);
/* One verdict while its evidence is collected. */
struct scene {
	struct model *m;
	const struct life *l;
	const struct choice *c;
	uint64_t now;
	struct model_verdict *v;
	uint32_t blocked; /* the thread whose call under way has been told */
};
void say(struct scene *s, bool against, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
double scene_at(const struct scene *s, uint64_t ns); /* seconds since the life opened */
void evidence_view(struct scene *s);
/* evidence_calls.c */
void evidence_calls(struct scene *s);
void say_blocked(struct scene *s); /* a call of its own */
void say_call_ahead(struct scene *s, const struct inside *in);
void evidence_loose(struct scene *s);
void evidence_words(struct model *m, const struct life *l, const struct choice *c, uint64_t now,
		    struct model_verdict *v);

#endif
