// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "attach/flow.h"

#define STEPS_MAX  65536
#define VISITS_MAX 8192 /* of one walk; more is given up */
/* Of all walks of one piece: visits and comparisons. A real function's take 50,000. */
#define WORK_MAX (4 << 20)

struct jump {
	int to, from; /* steps */
};

/* Wanted: what reg + off was just before a step, or (loaded) the 8 bytes there, plus a number. */
struct want {
	int step;
	uint8_t reg;
	bool loaded;
	int64_t off, plus;
};

struct flow {
	enum insn_machine machine;
	struct flow_step *step;
	int n;
	struct jump *jump; /* sorted by to */
	int njumps;
	uint64_t addr;
	/* of a walk */
	struct want *visit;
	int cap;
	uint64_t *seen; /* of each step, to search less: bit reg, and (loaded) bit 32 + reg */
	long work;
};

uint8_t flow_argument(enum insn_machine m, int n)
{
	static const uint8_t x86[] = {7, 6, 2, 1, 8, 9}; /* rdi rsi rdx rcx r8 r9 */

	if (m == MACHINE_X86_64)
		return n >= 1 && n <= 6 ? x86[n - 1] : FLOW_NONE;
	return n >= 1 && n <= 8 ? (uint8_t)(n - 1) : FLOW_NONE;
}

static int by_target(const void *a, const void *b)
{
	const struct jump *x = a, *y = b;

	return x->to < y->to ? -1 : x->to > y->to;
}

/* The step at an offset of the code; -1. */
static int step_at(const struct flow *f, uint64_t at)
{
	int lo = 0, hi = f->n;

	while (lo < hi) {
		int mid = lo + (hi - lo) / 2;

		if (f->step[mid].at < at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < f->n && f->step[lo].at == at ? lo : -1;
}

int flow_step_at(const struct flow *f, uint64_t addr)
{
	return addr < f->addr ? -1 : step_at(f, addr - f->addr);
}

static bool read_jumps(struct flow *f)
{
	int n = 0;

	for (int i = 0; i < f->n; i++)
		n += insn_is_direct(&f->step[i].in);
	f->jump = calloc((size_t)n + 1, sizeof(*f->jump));
	if (!f->jump)
		return false;
	for (int i = 0; i < f->n; i++) {
		int to = insn_is_direct(&f->step[i].in) ? step_at(f, f->step[i].in.target) : -1;

		if (to >= 0)
			f->jump[f->njumps++] = (struct jump){to, i};
	}
	qsort(f->jump, (size_t)f->njumps, sizeof(*f->jump), by_target);
	return true;
}

static bool decode(struct flow *f, const struct insn_part *part)
{
	struct insn_reader r;
	struct flow_reader fr;
	bool good = flow_reader_open(&fr, f->machine);
	size_t at = 0;

	insn_open(&r, f->machine);
	while (good && at < part->len && f->n < STEPS_MAX) {
		struct flow_step *s = &f->step[f->n];

		s->at = (uint32_t)at;
		good = !insn_decode(&r, part->code, part->len, at, 0, f->n ? &s[-1].in : NULL,
				    &s->in) &&
		       flow_decode(&fr, part, s);
		at += s->in.len;
		f->n += good;
	}
	insn_close(&r);
	flow_reader_close(&fr);
	return good && at >= part->len;
}

struct flow *flow_open(enum insn_machine m, const struct insn_part *part)
{
	struct flow *f = calloc(1, sizeof(*f));
	size_t most = m == MACHINE_ARM64 ? part->len / 4 : part->len;

	if (!f)
		return NULL;
	f->machine = m;
	f->addr = part->addr;
	f->step = calloc((most < STEPS_MAX ? most : STEPS_MAX) + 1, sizeof(*f->step));
	if (f->step && decode(f, part) && read_jumps(f))
		f->seen = calloc((size_t)f->n + 1, sizeof(*f->seen));
	if (!f->seen) {
		flow_close(f);
		return NULL;
	}
	return f;
}

void flow_close(struct flow *f)
{
	if (!f)
		return;
	free(f->step);
	free(f->jump);
	free(f->visit);
	free(f->seen);
	free(f);
}

int flow_steps(const struct flow *f)
{
	return f->n;
}

const struct flow_step *flow_step(const struct flow *f, int i)
{
	return &f->step[i];
}

/* ---- walking back ---------------------------------------------------------------------------- */

struct walk {
	struct flow *f;
	int nvisits, next;
	struct flow_value *out;
	int n, max;
};

static void emit(struct walk *w, enum flow_kind kind, uint8_t reg, int64_t off)
{
	for (int i = 0; i < w->n; i++)
		if (w->out[i].kind == kind && w->out[i].reg == reg && w->out[i].off == off)
			return;
	if (w->n < w->max)
		w->out[w->n++] = (struct flow_value){kind, reg, off};
}

static void unknown(struct walk *w)
{
	emit(w, FLOW_UNKNOWN, 0, 0);
}

static void emit_want(struct walk *w, bool is_entry, const struct want *want, int64_t off)
{
	uint8_t reg = is_entry ? want->reg : 0;

	if (!want->loaded)
		emit(w, is_entry ? FLOW_ENTRY : FLOW_CONST, reg, off);
	else if (!want->plus)
		emit(w, is_entry ? FLOW_LOAD_ENTRY : FLOW_LOAD_CONST, reg, off);
	else
		unknown(w);
}

static bool same(const struct want *a, const struct want *b)
{
	return a->step == b->step && a->reg == b->reg && a->loaded == b->loaded &&
	       a->off == b->off && a->plus == b->plus;
}

static bool visited(const struct walk *w, const struct want *want)
{
	for (int i = w->nvisits - 1; i >= 0; i--)
		if (same(&w->f->visit[i], want))
			return true;
	w->f->work += w->nvisits;
	return false;
}

static bool has_room(const struct walk *w)
{
	struct flow *f = w->f;
	int cap = f->cap ? 2 * f->cap : 64;
	struct want *grown;

	if (w->nvisits == VISITS_MAX || f->work > WORK_MAX)
		return false;
	if (w->nvisits < f->cap)
		return true;
	grown = realloc(f->visit, (size_t)cap * sizeof(*grown));
	if (!grown)
		return false;
	f->visit = grown;
	f->cap = cap;
	return true;
}

/* Go on with it just before a step. A loop that adds would never end. */
static void push(struct walk *w, struct want want)
{
	uint64_t bit = 1ull << (want.reg % FLOW_REGS + (want.loaded ? FLOW_REGS : 0));

	if (w->f->seen[want.step] & bit && visited(w, &want))
		return;
	if (!has_room(w)) {
		unknown(w);
		return;
	}
	w->f->seen[want.step] |= bit;
	w->f->work++;
	w->f->visit[w->nvisits++] = want;
}

static bool is_saved_by_callee(enum insn_machine m, uint8_t reg)
{
	if (m == MACHINE_ARM64)
		return reg >= 19;
	return (reg >= 3 && reg <= 5) || reg >= 12; /* rbx rsp rbp r12-r15 */
}

/* The step before writes what is wanted. */
static void through(struct walk *w, const struct flow_step *s, struct want want)
{
	switch (s->def) {
	case FLOW_DEF_CONST:
		emit_want(w, false, &want, flow_plus(s->off, want.off));
		return;
	case FLOW_DEF_COPY:
		want.off = flow_plus(want.off, s->off);
		want.reg = s->src;
		push(w, want);
		want.reg = s->src2;
		if (s->src2 != FLOW_NONE)
			push(w, want);
		return;
	case FLOW_DEF_LOAD:
		if (want.loaded)
			break;
		want = (struct want){want.step, s->src, true, s->off, want.off};
		if (s->src == FLOW_NONE)
			emit_want(w, false, &want, s->off);
		else
			push(w, want);
		return;
	default:
		break;
	}
	unknown(w);
}

/* Wanted is a word of the function's frame, and this step stores something on the stack. A frame's
 * words for spilled registers are written by plain stores alone, never through other pointers. */
static bool back_over_store(struct walk *w, const struct flow_step *s, struct want want)
{
	uint8_t sp = FLOW_SP(w->f->machine);

	if (!want.loaded || want.reg != sp)
		return false;
	if (s->spills) {
		unknown(w);
		return true;
	}
	if (s->store_base != sp || s->off != want.off)
		return false;
	push(w, (struct want){want.step, s->store_src, false, want.plus, 0});
	return true;
}

/* Over step `over`, backwards. */
static void back_over(struct walk *w, int over, struct want want)
{
	const struct flow_step *s = &w->f->step[over];
	bool lost;

	want.step = over;
	if (back_over_store(w, s, want))
		return;
	lost = s->in.kind == INSN_CALL && !is_saved_by_callee(w->f->machine, want.reg);
	if (!lost && !(s->writes >> want.reg & 1))
		push(w, want);
	else if (!lost && s->reg == want.reg)
		through(w, s, want);
	else
		unknown(w);
}

static bool falls_through(const struct flow_step *s)
{
	switch (s->in.kind) {
	case INSN_JUMP:
	case INSN_INDIRECT:
	case INSN_TABLE:
	case INSN_RET:
	case INSN_RET_AUTH:
	case INSN_STOP:
		return false;
	default:
		return true;
	}
}

static void back_from(struct walk *w, struct want want)
{
	const struct flow *f = w->f;
	int lo = 0, hi = f->njumps, ways = 0;

	if (want.step == 0) {
		emit_want(w, true, &want, want.off);
		ways++; /* and from where it loops back to its first instruction */
	} else if (falls_through(&f->step[want.step - 1])) {
		back_over(w, want.step - 1, want);
		ways++;
	}
	while (lo < hi) {
		int mid = lo + (hi - lo) / 2;

		if (f->jump[mid].to < want.step)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < f->njumps && f->jump[lo].to == want.step; lo++, ways++)
		back_over(w, f->jump[lo].from, want);
	if (!ways)
		unknown(w); /* a case of a switch, or reached from a cold part */
}

int flow_values(struct flow *f, int i, uint8_t reg, struct flow_value *out, int max)
{
	struct walk w = {.f = f, .out = out, .max = max};

	push(&w, (struct want){i, reg, false, 0, 0});
	while (w.next < w.nvisits)
		back_from(&w, f->visit[w.next++]);
	for (int k = 0; k < w.nvisits; k++)
		f->seen[f->visit[k].step] = 0;
	return w.n;
}
