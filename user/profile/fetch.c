// SPDX-License-Identifier: Apache-2.0
/*
 * The fetch compiler: the notation of the kernel's uprobe events (Documentation/trace/
 * uprobetracer.rst) into the ops of sp_shared.h.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile_priv.h"
#include "util/cleanup.h"

#define FETCH_STACK_MAX 127 /* farthest $stackN: arguments lie within the caller's frame */

static const struct type_info types[] = {
	{"u8", SP_T_U8, 1, false, false, false, 0},
	{"u16", SP_T_U16, 2, false, false, false, 0},
	{"u32", SP_T_U32, 4, false, false, false, 0},
	{"u64", SP_T_U64, 8, false, false, false, 0},
	{"s8", SP_T_S8, 1, true, false, false, 0},
	{"s16", SP_T_S16, 2, true, false, false, 0},
	{"s32", SP_T_S32, 4, true, false, false, 0},
	{"s64", SP_T_S64, 8, true, false, false, 0},
	{"x8", SP_T_U8, 1, false, true, false, 0},
	{"x16", SP_T_U16, 2, false, true, false, 0},
	{"x32", SP_T_U32, 4, false, true, false, 0},
	{"x64", SP_T_U64, 8, false, true, false, 0},
	{"string", SP_T_STRING, 0, false, false, true, 64},
	{"stdstring", SP_T_STDSTRING, 0, false, false, true, 64},
	{"bytes", SP_T_BYTES, 0, false, false, true, 0},
	{"zmqmsg", SP_T_ZMQMSG, 0, false, false, true, 64},
};

const struct type_info *type_by_name(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (strlen(types[i].name) == len && !memcmp(types[i].name, name, len))
			return &types[i];
	return NULL;
}

const char *type_name(uint8_t type, bool is_hex)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (types[i].type == type && types[i].is_hex == is_hex)
			return types[i].name;
	return "?";
}

void type_names(char *buf, size_t len)
{
	size_t at = 0;

	for (size_t i = 0; i < ARRAY_SIZE(types) && at < len; i++) {
		int n = snprintf(buf + at, len - at, "%s%s", i ? ", " : "", types[i].name);

		at += n > 0 ? (size_t)n : 0;
	}
}

struct compiler {
	struct sp_fetch *f;
	const struct fetch_where *where;
	bool composite;
	char *why;
	size_t why_len;
};

__attribute__((format(printf, 2, 3))) static int no(const struct compiler *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(c->why, c->why_len, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static int emit(const struct compiler *c, enum sp_op_code code, int n, int64_t imm)
{
	struct sp_op *op;

	if (c->f->nops == SP_MAX_OPS)
		return no(c,
			  "too many steps: at most %d, one for the start and one for each "
			  "inner +OFF()",
			  SP_MAX_OPS);
	op = &c->f->op[c->f->nops++];
	op->code = (uint8_t)code;
	op->n = (uint8_t)n;
	op->imm = (int32_t)imm;
	return 0;
}

/* Digits of $argN, $stackN; -1 when there are none or too many. */
static long variable_number(const char *s, size_t len)
{
	long v = 0;

	if (!len || len > 4)
		return -1;
	for (size_t i = 0; i < len; i++) {
		if (s[i] < '0' || s[i] > '9')
			return -1;
		v = v * 10 + (s[i] - '0');
	}
	return v;
}

/* Elements of `each:`. In the inner level's expressions the outer one is the one at hand. */
static int element(const struct compiler *c, const char *s, size_t len)
{
	bool outer = len == 6;

	if (c->where->each == EACH_NONE)
		return no(c, "%.*s is for probes with each: add each, or start from $argN",
			  (int)len, s);
	if (outer && c->where->each == EACH_ONE)
		return no(c, "$outer needs two levels: make each a list of an outer and an inner "
			     "one, or write $each");
	return emit(c, SP_OP_EACH, outer || c->where->each == EACH_INNER, 0);
}

static int variable(const struct compiler *c, const char *s, size_t len)
{
	long n;

	if ((len == 5 && !memcmp(s, "$each", 5)) || (len == 6 && !memcmp(s, "$outer", 6)))
		return element(c, s, len);
	if (len == 7 && !memcmp(s, "$retval", 7)) {
		if (!c->where->at_return)
			return no(c, "$retval exists only at a return: set on: ret or on: return");
		return emit(c, SP_OP_RET, 0, 0);
	}
	if (len == 6 && !memcmp(s, "$stack", 6))
		return emit(c, SP_OP_SP, 0, 0);
	if (len > 6 && !memcmp(s, "$stack", 6)) {
		n = variable_number(s + 6, len - 6);
		if (n < 0 || n > FETCH_STACK_MAX)
			return no(c, "%.*s: the number must be 0 to %d", (int)len, s,
				  FETCH_STACK_MAX);
		return emit(c, SP_OP_STACK, (int)n, 0);
	}
	if (len >= 4 && !memcmp(s, "$arg", 4)) {
		n = variable_number(s + 4, len - 4);
		if (n < 1 || n > SP_MAX_SAVED)
			return no(c, "%.*s: arguments are $arg1 to $arg%d", (int)len, s,
				  SP_MAX_SAVED);
		return emit(c, SP_OP_ARG, (int)n, 0);
	}
	return no(c, "%.*s: unknown variable: use $arg1 to $arg%d, $retval, $stack or $stackN",
		  (int)(len < 32 ? len : 32), s, SP_MAX_SAVED);
}

/* A number that fills [s, s+len) and fits in 32 bits. */
static bool number32(const char *s, size_t len, int64_t *out)
{
	char buf[24];

	if (!len || len >= sizeof(buf))
		return false;
	memcpy(buf, s, len);
	buf[len] = '\0';
	return number_parse(buf, out) && *out >= INT32_MIN && *out <= INT32_MAX;
}

/* What does not begin with +, -, $ or \. */
static int foreign(const struct compiler *c, const char *s, size_t len)
{
	int shown = (int)(len < 32 ? len : 32);

	if (!len)
		return no(c, "an expression is missing: for example +24($arg7)");
	if (*s == '@')
		return no(c, "%.*s: @ADDRESS and @SYMBOL are not supported: start from an argument",
			  shown, s);
	if (*s == '%')
		return no(c, "%.*s: registers differ between machines: use $argN or $retval", shown,
			  s);
	return no(c,
		  "%.*s: not a fetch expression: use $argN, $retval, $stackN, \\IMM or "
		  "+OFF(EXPR)",
		  shown, s);
}

/*
 * [s, s+len). The outermost +OFF() is not an op: it gives the place of the value or object.
 * Loops instead of recursing: the offsets come from outside in, the ops run from inside out.
 */
static int expression(const struct compiler *c, const char *s, size_t len)
{
	int64_t off[SP_MAX_OPS + 1];
	int n = 0, rc;

	while (len && (*s == '+' || *s == '-')) {
		const char *paren = memchr(s, '(', len);
		size_t skip = len > 1 && s[1] == 'u' ? 2 : 1; /* +u: user memory, as all here */

		if (!paren || s[len - 1] != ')')
			return no(c, "%.*s: parentheses do not match: write +OFF(EXPR)",
				  (int)(len < 32 ? len : 32), s);
		if (n > SP_MAX_OPS)
			return no(c, "too many steps: at most %d nested +OFF()", SP_MAX_OPS);
		if (s + skip >= paren || s[skip] < '0' || s[skip] > '9' ||
		    !number32(s + skip, (size_t)(paren - s) - skip, &off[n]))
			return no(c, "%.*s: the offset must be a number: +24(EXPR), -8(EXPR)",
				  (int)(paren - s < 32 ? paren - s : 32), s);
		if (*s == '-')
			off[n] = -off[n];
		n++;
		len = (size_t)(s + len - 1 - (paren + 1));
		s = paren + 1;
	}
	if (len && *s == '$') {
		rc = variable(c, s, len);
	} else if (len && *s == '\\') {
		int64_t imm;

		if (len > 1 && (s[1] == '"' || s[1] == '\''))
			return no(c, "%.*s: an immediate text is not supported: use a number",
				  (int)(len < 32 ? len : 32), s);
		if (!number32(s + 1, len - 1, &imm))
			return no(c, "%.*s: an immediate must be a number of 32 bits",
				  (int)(len < 32 ? len : 32), s);
		rc = emit(c, SP_OP_IMM, 0, imm);
	} else {
		rc = foreign(c, s, len);
	}
	for (int i = n - 1; !rc && i > 0; i--)
		rc = emit(c, SP_OP_DEREF, 0, off[i]);
	if (!rc && n) {
		c->f->off = (int32_t)off[0];
		if (!c->composite)
			c->f->flags |= SP_F_MEM;
	}
	if (!rc && !n && c->composite)
		return no(c,
			  "a text or object lies in memory: write +0(%.*s) for the address in "
			  "%.*s",
			  (int)(len < 32 ? len : 32), s, (int)(len < 32 ? len : 32), s);
	return rc;
}

/* The type: of the suffix, of the argument, or both when they agree. NULL: why is set. */
static const struct type_info *find_type(const struct compiler *c, const char *suffix,
					 const char *type)
{
	const char *name = suffix ? suffix : type;
	const struct type_info *t = name ? type_by_name(name, strlen(name)) : NULL;
	char known[160];

	if (!name) {
		no(c, "no type: add type: u64 (or another)");
	} else if (suffix && type && strcmp(suffix, type) != 0) {
		no(c, "type %.24s and the suffix :%.24s differ: keep one", type, suffix);
		return NULL;
	} else if (!t && strchr(name, '[')) {
		no(c, "%.24s: arrays are not supported: use bytes with max", name);
	} else if (!t && *name == 'b' && name[1] >= '0' && name[1] <= '9') {
		no(c, "%.24s: bitfields are not supported: fetch the whole number", name);
	} else if (!t) {
		type_names(known, sizeof(known));
		no(c, "unknown type \"%.24s\": use %s", name, known);
	}
	return t;
}

static int find_max(const struct compiler *c, const struct type_info *t, uint16_t max)
{
	if (!t->is_composite) {
		if (max)
			return no(c, "max is for texts and bytes: a %s has its own size", t->name);
		return 0;
	}
	if (!max)
		max = t->max;
	if (!max)
		return no(c, "%s needs max: how many bytes to copy, at most %d", t->name,
			  SP_SLOT_MAX);
	if (max > SP_SLOT_MAX)
		return no(c, "max %u is too large: at most %d bytes of one argument are copied",
			  max, SP_SLOT_MAX);
	c->f->max = (uint16_t)((max + 7) & ~7);
	return 0;
}

int fetch_compile(const char *expr, const char *type, uint16_t max, bool at_return,
		  struct sp_fetch *f, char *why, size_t why_len)
{
	const struct fetch_where where = {.at_return = at_return};

	return fetch_compile_in(expr, type, max, &where, f, why, why_len);
}

int fetch_compile_in(const char *expr, const char *type, uint16_t max,
		     const struct fetch_where *where, struct sp_fetch *f, char *why, size_t why_len)
{
	const char *close = strrchr(expr, ')');
	const char *colon = strchr(close ? close : expr, ':');
	struct compiler c = {
		.f = f,
		.where = where,
		.why = why,
		.why_len = why_len,
	};
	const struct type_info *t;
	int rc;

	memset(f, 0, sizeof(*f));
	t = find_type(&c, colon ? colon + 1 : NULL, type);
	if (!t)
		return -EINVAL;
	f->type = t->type;
	c.composite = t->is_composite;
	rc = find_max(&c, t, max);
	if (rc)
		return rc;
	if (!strcmp(expr, "$comm"))
		return no(&c, "$comm is not supported: events carry their thread anyway");
	return expression(&c, expr, colon ? (size_t)(colon - expr) : strlen(expr));
}
