// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "attach/insn.h"

#define PROLOGUE_INSNS 24  /* how far to look for a better place */
#define MAX_SHIFT      255 /* words; the cookie has a byte for them */
#define LITERAL_BYTES  16  /* the widest literal load */

void insn_open(struct insn_reader *r, enum insn_machine m)
{
	*r = (struct insn_reader){.machine = m};
	if (m == MACHINE_X86_64)
		insn_open_x86(r);
}

void insn_close(struct insn_reader *r)
{
	if (r->machine == MACHINE_X86_64)
		insn_close_x86(r);
}

int insn_decode(const struct insn_reader *r, const uint8_t *code, size_t len, size_t at,
		unsigned depth, const struct insn *prev, struct insn *out)
{
	switch (r->machine) {
	case MACHINE_X86_64:
		return insn_decode_x86(r, code, len, at, depth, prev, out);
	case MACHINE_ARM64:
		return insn_decode_arm64(code, len, at, depth, prev, out);
	default:
		return -EILSEQ;
	}
}

int insn_walk(enum insn_machine m, const struct insn_part *parts, int nparts, insn_fn fn, void *ctx)
{
	struct insn_reader r;
	int rc = 0;

	insn_open(&r, m);
	for (int i = 0; i < nparts && !rc; i++) {
		struct insn in, prev;
		size_t at = 0;

		while (at < parts[i].len) {
			rc = insn_decode(&r, parts[i].code, parts[i].len, at, 0, at ? &prev : NULL,
					 &in);
			if (!rc)
				rc = fn(ctx, &parts[i], at, &in);
			if (rc)
				break;
			at += in.len;
			prev = in;
		}
	}
	insn_close(&r);
	return rc;
}

bool insn_is_direct(const struct insn *in)
{
	return in->kind == INSN_JUMP || in->kind == INSN_BRANCH;
}

/* ---- entry ----------------------------------------------------------------------------------- */

struct span {
	uint64_t lo, hi; /* addresses, lo < x <= hi */
};

static int jumps_into(void *ctx, const struct insn_part *part, size_t at, const struct insn *in)
{
	const struct span *s = ctx;
	uint64_t target = part->addr + in->target;

	return insn_is_direct(in) && target > s->lo && target <= s->hi;
}

bool insn_straight(enum insn_machine m, const struct insn_part *parts, int nparts, uint64_t from,
		   uint64_t to)
{
	struct span s = {from, to};

	return insn_walk(m, parts, nparts, jumps_into, &s) == 0;
}

/* Does every call pass parts[0].addr + at exactly once? */
static bool passed_once(enum insn_machine m, const struct insn_part *parts, int nparts, bool whole,
			size_t at)
{
	return at == 0 ||
	       (whole && insn_straight(m, parts, nparts, parts[0].addr, parts[0].addr + at));
}

static void site_set(struct insn_site *out, const struct insn_part *part, size_t at, unsigned shift,
		     const struct insn *in)
{
	const char *name = in && in->name && in->name[0] ? in->name : "";

	out->addr = part->addr + at;
	out->shift = shift;
	out->emulated = in && in->emulated;
	if (at)
		snprintf(out->where, sizeof(out->where), "entry+%zu%s%s", at, *name ? ", " : "",
			 name);
	else
		snprintf(out->where, sizeof(out->where), "entry%s%s", *name ? ", " : "", name);
}

/* The first place from the entry on that the kernel emulates, if every call passes it once. */
static void better_entry(const struct insn_reader *r, const struct insn_part *parts, int nparts,
			 bool whole, struct insn_site *out)
{
	const struct insn_part *p = &parts[0];
	struct insn in;
	unsigned depth = 0;
	size_t at = 0;

	for (int i = 0; i < PROLOGUE_INSNS && at < p->len; i++) {
		if (insn_decode(r, p->code, p->len, at, depth, NULL, &in))
			return;
		if (in.emulated) {
			if (passed_once(r->machine, parts, nparts, whole, at))
				site_set(out, p, at, depth, &in);
			return;
		}
		switch (in.kind) {
		case INSN_GROW:
			depth += in.words;
			if (depth > MAX_SHIFT)
				return;
			break;
		case INSN_LANDING:
		case INSN_NOP:
		case INSN_PLAIN:
			break;
		default:
			return;
		}
		at += in.len;
	}
}

void insn_entry(enum insn_machine m, const struct insn_part *parts, int nparts, bool whole,
		struct insn_site *out)
{
	const struct insn_part *p = &parts[0];
	struct insn_reader r;
	struct insn first;

	insn_open(&r, m);
	if (insn_decode(&r, p->code, p->len, 0, 0, NULL, &first))
		memset(&first, 0, sizeof(first));
	site_set(out, p, 0, 0, &first);
	better_entry(&r, parts, nparts, whole, out);
	insn_close(&r);
}

void insn_return_entry(enum insn_machine m, const struct insn_part *parts, int nparts, bool whole,
		       struct insn_site *out)
{
	const struct insn_part *p = &parts[0];
	struct insn in, next;
	struct insn_reader r;

	insn_open(&r, m);
	if (insn_decode(&r, p->code, p->len, 0, 0, NULL, &in))
		memset(&in, 0, sizeof(in));
	site_set(out, p, 0, 0, &in);
	if (in.kind == INSN_LANDING && passed_once(m, parts, nparts, whole, in.len) &&
	    !insn_decode(&r, p->code, p->len, in.len, 0, NULL, &next))
		site_set(out, p, in.len, 0, &next);
	insn_close(&r);
}

/* ---- returns --------------------------------------------------------------------------------- */

struct rets {
	const struct insn_part *parts;
	int nparts;
	uint64_t *ret;
	int n;
	char *why;
};

static bool inside(const struct rets *r, uint64_t addr)
{
	for (int i = 0; i < r->nparts; i++)
		if (addr >= r->parts[i].addr && addr < r->parts[i].addr + r->parts[i].len)
			return true;
	return false;
}

static int note_ret(void *ctx, const struct insn_part *part, size_t at, const struct insn *in)
{
	struct rets *r = ctx;
	unsigned long from = (unsigned long)(part->addr - r->parts[0].addr + at);

	switch (in->kind) {
	case INSN_RET:
		if (r->n == INSN_MAX_RETS) {
			snprintf(r->why, INSN_WHY_LEN, "more than %d returns", INSN_MAX_RETS);
			return -E2BIG;
		}
		r->ret[r->n++] = part->addr + at;
		return 0;
	case INSN_RET_AUTH:
		snprintf(r->why, INSN_WHY_LEN, "the kernel allows no probe on the return at +0x%lx",
			 from);
		return -EOPNOTSUPP;
	case INSN_INDIRECT:
		snprintf(r->why, INSN_WHY_LEN,
			 "the indirect jump at +0x%lx may leave the function unseen (tail call)",
			 from);
		return -ELOOP;
	case INSN_JUMP:
	case INSN_BRANCH:
		if (inside(r, part->addr + in->target))
			return 0;
		snprintf(
			r->why, INSN_WHY_LEN,
			"the jump at +0x%lx leaves the function (tail call, or a cold part without "
			"a symbol)",
			from);
		return -ELOOP;
	default:
		return 0;
	}
}

struct leaving {
	struct rets r;
	uint64_t target;
	bool conditional;
};

static int note_leaving(void *ctx, const struct insn_part *part, size_t at, const struct insn *in)
{
	struct leaving *l = ctx;

	if (!insn_is_direct(in) || inside(&l->r, part->addr + in->target))
		return 0;
	l->target = part->addr + in->target;
	l->conditional = in->kind == INSN_BRANCH;
	return 1;
}

bool insn_leaves(enum insn_machine m, const struct insn_part *parts, int nparts, uint64_t *target,
		 bool *conditional)
{
	struct leaving l = {.r = {.parts = parts, .nparts = nparts}};

	if (insn_walk(m, parts, nparts, note_leaving, &l) != 1)
		return false;
	*target = l.target;
	*conditional = l.conditional;
	return true;
}

#define STUB_INSNS 4 /* arm64: adrp, ldr, add, br; x86-64: endbr64, jmp */

bool insn_is_stub(enum insn_machine m, const struct insn_part *part)
{
	struct insn in = {0};
	struct insn_reader r;
	size_t at = 0;

	insn_open(&r, m);
	for (int i = 0; i < STUB_INSNS && in.kind != INSN_INDIRECT; i++) {
		/* No previous instruction is given: a jump behind an add is no jump table here. */
		if (insn_decode(&r, part->code, part->len, at, 0, NULL, &in) ||
		    in.kind == INSN_GROW || in.kind == INSN_RET || in.kind == INSN_CALL ||
		    insn_is_direct(&in))
			break;
		at += in.len;
	}
	insn_close(&r);
	return in.kind == INSN_INDIRECT;
}

/* Data between arm64 instructions that looks like a ret must not be overwritten. */
static int drop_literal(void *ctx, const struct insn_part *part, size_t at, const struct insn *in)
{
	struct rets *r = ctx;
	uint64_t lo = part->addr + in->target;
	int kept = 0;

	if (in->kind != INSN_LITERAL)
		return 0;
	for (int i = 0; i < r->n; i++)
		if (r->ret[i] < lo || r->ret[i] >= lo + LITERAL_BYTES)
			r->ret[kept++] = r->ret[i];
	r->n = kept;
	return 0;
}

int insn_rets(enum insn_machine m, const struct insn_part *parts, int nparts,
	      uint64_t rets[INSN_MAX_RETS], char why[INSN_WHY_LEN])
{
	struct rets r = {.parts = parts, .nparts = nparts, .ret = rets, .why = why};
	int rc;

	why[0] = 0;
	rc = insn_walk(m, parts, nparts, note_ret, &r);
	if (rc == -EILSEQ)
		snprintf(why, INSN_WHY_LEN, "its code cannot be decoded");
	if (rc)
		return rc;
	insn_walk(m, parts, nparts, drop_literal, &r);
	if (r.n == 0) {
		snprintf(why, INSN_WHY_LEN, "it has no return instruction");
		return -ENOENT;
	}
	return r.n;
}
