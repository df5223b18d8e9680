// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/flow.h"
#include "attach/func.h"
#include "attach/optable.h"
#include "attach/reloc.h"
#include "attach/unwind.h"

#define IMPORTS_MAX 8
#define CALLS_MAX   64
#define VALUES_MAX  16
#define PAIRS_MAX   512
#define PIECE_MAX   (1 << 20)
#define HOPS_MAX    4
#define STEPS_ALL   (1 << 18) /* instructions of all callers; beyond, tables are not told */

/* ---- the slot -------------------------------------------------------------------------------- */

struct pair {
	int64_t to, from; /* offsets in the first argument, in the table */
};

static bool one_value(struct flow *f, int i, uint8_t reg, enum flow_kind kind, uint8_t from,
		      int64_t *off)
{
	struct flow_value v[2];

	if (flow_values(f, i, reg, v, 2) != 1 || v[0].kind != kind || v[0].reg != from)
		return false;
	*off = v[0].off;
	return true;
}

/* What the function copies from its table into its first argument. */
static int read_pairs(struct flow *f, uint8_t first, uint8_t table, struct pair *pair)
{
	int n = 0;

	for (int i = 0; i < flow_steps(f) && n < PAIRS_MAX; i++) {
		const struct flow_step *s = flow_step(f, i);
		int64_t base, from;

		if (s->store_base == FLOW_NONE ||
		    !one_value(f, i, s->store_base, FLOW_ENTRY, first, &base) ||
		    !one_value(f, i, s->store_src, FLOW_LOAD_ENTRY, table, &from))
			continue;
		pair[n++] = (struct pair){flow_plus(base, s->off), from};
	}
	return n;
}

static int pick_pair(const struct pair *pair, int n, int64_t copied_to, int64_t *slot)
{
	int found = 0;

	if (copied_to < 0) {
		int64_t end = 0;

		for (int i = 0; i < n; i++)
			if (flow_plus(pair[i].to, 8) > end)
				end = flow_plus(pair[i].to, 8);
		copied_to = flow_plus(copied_to, end);
	}
	for (int i = 0; i < n; i++) {
		if (pair[i].to != copied_to || (found && pair[i].from == *slot))
			continue;
		*slot = pair[i].from;
		found++;
	}
	return found == 1 ? 0 : -ENOENT;
}

int optable_slot(const struct elf_file *ef, const char *function, int argument, int64_t copied_to,
		 int64_t *slot, char why[OPTABLE_WHY_LEN])
{
	enum insn_machine m = elf_machine(ef);
	struct elf_sym sym[2];
	struct insn_part part;
	struct pair *pair;
	struct flow *f;
	int n, err = -ENOENT;

	n = elf_find(ef, function, sym, 2);
	if (n != 1 || !sym[0].size || sym[0].size > PIECE_MAX ||
	    elf_code(ef, sym[0].addr, sym[0].size, &part)) {
		snprintf(why, OPTABLE_WHY_LEN, "no function %.60s in it", function);
		return -ENOENT;
	}
	pair = calloc(PAIRS_MAX, sizeof(*pair));
	f = flow_open(m, &part);
	if (pair && f) {
		n = read_pairs(f, flow_argument(m, 1), flow_argument(m, argument), pair);
		err = pick_pair(pair, n, copied_to, slot);
	}
	if (err)
		snprintf(why, OPTABLE_WHY_LEN,
			 "the code of %.60s does not tell what it copies to %lld", function,
			 (long long)copied_to);
	flow_close(f);
	free(pair);
	return err;
}

/* ---- the calls ------------------------------------------------------------------------------- */

struct calls {
	uint64_t at[CALLS_MAX]; /* addresses of call (or tail jump) instructions */
	int n;
	uint64_t stub[IMPORTS_MAX * 2]; /* where entries of the PLT for it begin */
	int nstubs;
	uint64_t got[IMPORTS_MAX];
	int ngot;
};

/* The function that was decoded last: often it holds the next call, too. */
struct caller {
	struct unwind_piece piece;
	struct flow *flow;
	int steps; /* of all that were decoded */
};

static bool is_in(const uint64_t *list, int n, uint64_t x)
{
	for (int i = 0; i < n; i++)
		if (list[i] == x)
			return true;
	return false;
}

static int32_t s32_at(const uint8_t *p)
{
	int32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static void add_stub(struct calls *c, uint64_t addr)
{
	if (c->nstubs < IMPORTS_MAX * 2 && !is_in(c->stub, c->nstubs, addr))
		c->stub[c->nstubs++] = addr;
}

static void add_call(struct calls *c, uint64_t addr)
{
	if (c->n < CALLS_MAX && !is_in(c->at, c->n, addr))
		c->at[c->n++] = addr;
}

/*
 * x86-64, byte by byte, which may also find what is in the middle of an instruction: each place is
 * looked at again by decoding its function from the start. ff 25: jmp *(rip), in a PLT behind an
 * endbr64 or a bnd prefix, or a tail call without PLT; ff 15: call *(rip).
 */
static void scan_got_x86(const struct insn_part *p, struct calls *c)
{
	for (size_t i = 0; i + 6 <= p->len; i++) {
		const uint8_t *b = p->code + i;
		uint64_t addr = p->addr + i;

		if (b[0] != 0xff || (b[1] != 0x25 && b[1] != 0x15) ||
		    !is_in(c->got, c->ngot, addr + 6 + (uint64_t)(int64_t)s32_at(b + 2)))
			continue;
		add_call(c, addr);
		if (b[1] == 0x15)
			continue;
		add_stub(c, addr);
		if (i >= 1 && b[-1] == 0xf2)
			addr--;
		add_stub(c, addr);
		if (addr - p->addr >= 4 &&
		    !memcmp(p->code + (addr - p->addr) - 4, "\xf3\x0f\x1e\xfa", 4))
			add_stub(c, addr - 4);
	}
}

static void scan_calls_x86(const struct insn_part *p, struct calls *c)
{
	for (size_t i = 0; i + 5 <= p->len; i++) {
		const uint8_t *b = p->code + i;

		if ((b[0] == 0xe8 || b[0] == 0xe9) &&
		    is_in(c->stub, c->nstubs, p->addr + i + 5 + (uint64_t)(int64_t)s32_at(b + 1)))
			add_call(c, p->addr + i);
	}
}

static uint32_t word_at(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Sign-extend the n low bits. */
static int64_t extend(uint64_t v, int n)
{
	return (int64_t)(v << (64 - n)) >> (64 - n);
}

/* arm64: an entry of the PLT is adrp x16, PAGE; ldr x17, [x16, #OFF], behind a bti c or not. */
static void scan_got_arm64(const struct insn_part *p, struct calls *c)
{
	for (size_t i = 0; i + 8 <= p->len; i += 4) {
		uint32_t adrp = word_at(p->code + i), ldr = word_at(p->code + i + 4);
		uint64_t addr = p->addr + i;
		int64_t page = extend((uint64_t)(adrp >> 5 & 0x7ffff) << 2 | (adrp >> 29 & 3), 21);

		if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
			continue;
		if (!is_in(c->got, c->ngot,
			   (addr & ~0xfffull) + (uint64_t)page * 4096 +
				   (uint64_t)(ldr >> 10 & 0xfff) * 8))
			continue;
		add_stub(c, addr);
		if (i >= 4 && word_at(p->code + i - 4) == 0xd503245f)
			add_stub(c, addr - 4);
	}
}

static void scan_calls_arm64(const struct insn_part *p, struct calls *c)
{
	for (size_t i = 0; i + 4 <= p->len; i += 4) {
		uint32_t w = word_at(p->code + i);

		if ((w & 0x7c000000) == 0x14000000 &&
		    is_in(c->stub, c->nstubs,
			  p->addr + i + (uint64_t)extend(w & 0x3ffffff, 26) * 4))
			add_call(c, p->addr + i);
	}
}

static void find_calls(const struct elf_file *ef, struct calls *c)
{
	bool is_arm = elf_machine(ef) == MACHINE_ARM64;
	struct insn_part p;

	for (int i = 0; elf_text(ef, i, &p); i++)
		is_arm ? scan_got_arm64(&p, c) : scan_got_x86(&p, c);
	for (int i = 0; elf_text(ef, i, &p); i++)
		is_arm ? scan_calls_arm64(&p, c) : scan_calls_x86(&p, c);
}

/* ---- the tables ------------------------------------------------------------------------------ */

/* The call's step in the function that holds it. -1: none, or the call is no instruction of it. */
static int open_caller(const struct elf_file *ef, uint64_t call, struct caller *c)
{
	struct unwind_piece piece;
	struct insn_part part;

	if (unwind_piece(ef, call, &piece) || piece.len > PIECE_MAX)
		return -1;
	if (!c->flow || c->piece.addr != piece.addr || c->piece.len != piece.len) {
		flow_close(c->flow);
		c->flow = NULL;
		c->piece = piece;
		if (c->steps < STEPS_ALL && !elf_code(ef, piece.addr, piece.len, &part))
			c->flow = flow_open(elf_machine(ef), &part);
		c->steps += c->flow ? flow_steps(c->flow) : 0;
	}
	return c->flow ? flow_step_at(c->flow, call) : -1;
}

bool optable_function(const struct elf_file *ef, uint64_t addr, uint64_t *real)
{
	struct unwind_piece piece;
	struct insn_part part;
	struct insn in, next;
	struct insn_reader r;
	bool jumps;

	for (int hop = 0; hop < HOPS_MAX; hop++) {
		size_t at = 0;

		if (unwind_piece(ef, addr, &piece) || piece.addr != addr || piece.framed ||
		    elf_code(ef, addr, piece.len, &part))
			return false;
		*real = addr;
		insn_open(&r, elf_machine(ef));
		if (!insn_decode(&r, part.code, part.len, 0, 0, NULL, &in) &&
		    in.kind == INSN_LANDING)
			at = in.len;
		jumps = !insn_decode(&r, part.code, part.len, at, 0, NULL, &next) &&
			next.kind == INSN_JUMP && next.target >= part.len;
		insn_close(&r);
		if (!jumps)
			return true;
		addr += next.target;
		if (unwind_piece(ef, addr, &piece) || piece.addr != addr || piece.framed)
			return true; /* its own cold part, or another library's: stay */
	}
	return true;
}

static void add_entry(const struct elf_file *ef, uint64_t table, int64_t slot, struct optable *out)
{
	uint64_t at = table + (uint64_t)slot, addr, real;

	if (!reloc_pointer(ef, at, &addr) || !optable_function(ef, addr, &real))
		return; /* this table has no such entry: another one does */
	if (out->n < OPTABLE_FUNCTIONS && !is_in(out->addr, out->n, real))
		out->addr[out->n++] = real;
}

static void add_tables(const struct elf_file *ef, uint64_t call, int argument, int64_t slot,
		       struct caller *c, struct optable *out)
{
	struct flow_value v[VALUES_MAX];
	int i = open_caller(ef, call, c), n;
	bool told = true;

	if (i < 0)
		return; /* the bytes only looked like a call */
	n = flow_values(c->flow, i, flow_argument(elf_machine(ef), argument), v, VALUES_MAX);
	for (int k = 0; k < n; k++) {
		uint64_t table = (uint64_t)v[k].off;

		/* the second: its address is in the GOT */
		if (v[k].kind == FLOW_CONST ||
		    (v[k].kind == FLOW_LOAD_CONST && reloc_pointer(ef, table, &table)))
			add_entry(ef, table, slot, out);
		else
			told = false;
	}
	if (flow_step(c->flow, i)->in.kind != INSN_INDIRECT) { /* else it may be the PLT's jump */
		out->calls++;
		out->opaque += !told || n == 0;
	}
}

int optable_find(const struct elf_file *ef, const char *function, int argument, int64_t slot,
		 struct optable *out, char why[OPTABLE_WHY_LEN])
{
	struct calls *c = calloc(1, sizeof(*c));
	struct caller caller = {.flow = NULL};

	memset(out, 0, sizeof(*out));
	why[0] = 0;
	if (!c)
		return -ENOMEM;
	c->ngot = reloc_imports(ef, function, c->got, IMPORTS_MAX);
	if (!c->ngot)
		snprintf(why, OPTABLE_WHY_LEN, "it does not import %.60s", function);
	else if (flow_argument(elf_machine(ef), argument) != FLOW_NONE)
		find_calls(ef, c);
	for (int i = 0; i < c->n; i++)
		add_tables(ef, c->at[i], argument, slot, &caller, out);
	flow_close(caller.flow);
	free(c);
	if (out->n)
		return 0;
	if (!why[0] && out->opaque)
		snprintf(why, OPTABLE_WHY_LEN,
			 "the table that it gives %.60s is chosen at run time", function);
	else if (!why[0])
		snprintf(why, OPTABLE_WHY_LEN, "no table for %.60s, or none with this entry, in it",
			 function);
	return -ENOENT;
}
