// SPDX-License-Identifier: Apache-2.0
/* Compiled things in words a person reads, for `silentpin check`. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "profile/profile_priv.h"

struct text {
	char *buf;
	size_t len, at;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (t->at >= t->len)
		return;
	va_start(ap, fmt);
	n = vsnprintf(t->buf + t->at, t->len - t->at, fmt, ap);
	va_end(ap);
	t->at += n > 0 ? (size_t)n : 0;
}

static void put_op(struct text *t, const struct sp_op *op)
{
	switch (op->code) {
	case SP_OP_ARG:
		put(t, "arg%d", op->n);
		break;
	case SP_OP_RET:
		put(t, "return value");
		break;
	case SP_OP_STACK:
		put(t, "stack word %d", op->n);
		break;
	case SP_OP_SP:
		put(t, "stack pointer");
		break;
	case SP_OP_IMM:
		put(t, "%d", op->imm);
		break;
	case SP_OP_DEREF:
		put(t, ", pointer at %+d", op->imm);
		break;
	case SP_OP_EACH:
		put(t, "%s", op->n ? "outer element" : "element");
		break;
	case SP_OP_ADD:
		put(t, ", %+d", op->imm);
		break;
	default:
		break;
	}
}

void fetch_print(const struct sp_fetch *f, char *buf, size_t len)
{
	struct text t = {.buf = buf, .len = len};

	if (len)
		buf[0] = '\0';
	for (int i = 0; i < f->nops; i++)
		put_op(&t, &f->op[i]);
	if (f->type >= SP_T_STRING)
		put(&t, ", %s at %+d, at most %u bytes", type_name(f->type, false), f->off, f->max);
	else if (f->flags & SP_F_MEM)
		put(&t, ", %s at %+d", type_name(f->type, false), f->off);
	else
		put(&t, " as %s", type_name(f->type, false));
	if (f->flags & SP_F_COND && f->max)
		put(&t, ", bits %#x", f->max);
	if (f->flags & SP_F_ZERO)
		put(&t, ", is 0");
}

/* Literal braces are doubled, as they were written. */
static void put_literal(struct text *t, const struct pat_part *part)
{
	for (size_t i = 0; i < part->literal_len; i++) {
		char c = part->literal[i];

		if (c == '{' || c == '}')
			put(t, "%c", c);
		put(t, "%c", c);
	}
}

void pattern_print(const struct pattern *p, char *buf, size_t len)
{
	struct text t = {.buf = buf, .len = len};

	if (len)
		buf[0] = '\0';
	if (p->any)
		put(&t, "*");
	else if (!p->nparts)
		put(&t, "(empty)");
	for (int i = 0; i < p->nparts; i++) {
		const struct pat_part *part = &p->part[i];

		if (part->is_capture)
			put(&t, "{%s:%s}", part->name, pattern_shape_name(part->shape));
		else
			put_literal(&t, part);
	}
}
