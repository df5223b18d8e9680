/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_MODEL_WORDS_H
#define SP_MODEL_WORDS_H

#include "model/lives.h"

/* "kv chunk 2 last rank 0" */
void words_op(const struct model *m, const struct op *o, char *buf, size_t len);
/* "op 0x7f.. in progress for 31.2 s" */
void words_span(const struct op *o, uint64_t now, char *buf, size_t len);
void evidence_words(struct model *m, const struct life *l, const struct choice *c, uint64_t now,
		    struct model_verdict *v);

#endif
