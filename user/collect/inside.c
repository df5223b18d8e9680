// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM        1
#define uthash_nonfatal_oom(elt) ((elt)->hh.tbl = NULL)
#include <uthash.h>

#include "collect/collect.h"
#include "collect/inside.h"

#define NESTED_MAX 8 /* enclosing calls looked at; the kernel side keeps fewer */

struct told {
	struct {
		uint32_t pid, tid;
		uint64_t enter_ns;
		int64_t probe;
	} key;
	uint64_t look; /* the last in which it was there */
	uint64_t ns;   /* told then */
	bool unsure, doubtful;
	char room[SP_ROOM_MAX], object[32];
	UT_hash_handle hh;
};

struct inside {
	const struct profile *p;
	const struct decoder *d;
	struct scope *scope;
	calls_emit emit;
	void *ctx;
	struct told *told;
	uint64_t look;
	/* during a look: by process, thread, time of entry */
	const struct attach_inside **row;
	int n;
};

struct inside *inside_new(const struct profile *p, const struct decoder *d, struct scope *s,
			  calls_emit emit, void *ctx)
{
	struct inside *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->p = p;
	w->d = d;
	w->scope = s;
	w->emit = emit;
	w->ctx = ctx;
	return w;
}

static void drop(struct inside *w, struct told *t)
{
	HASH_DEL(w->told, t);
	free(t);
}

void inside_free(struct inside *w)
{
	if (!w)
		return;
	while (w->told)
		drop(w, w->told);
	free(w);
}

/* ---- what the registers tell --------------------------------------------------------------- */

static uint64_t as_type(uint64_t v, uint8_t type)
{
	switch (type) {
	case SP_T_U8:
		return (uint8_t)v;
	case SP_T_U16:
		return (uint16_t)v;
	case SP_T_U32:
		return (uint32_t)v;
	case SP_T_S8:
		return (uint64_t)(int8_t)v;
	case SP_T_S16:
		return (uint64_t)(int16_t)v;
	case SP_T_S32:
		return (uint64_t)(int32_t)v;
	default:
		return v;
	}
}

/* A number that is an argument as it is: nothing has to be read, and no condition asked. */
static bool is_plain(const struct sp_fetch *f, const struct attach_inside *in)
{
	int n = f->op[0].n;

	return f->nops == 1 && f->op[0].code == SP_OP_ARG && !(f->flags & SP_F_MEM) && !f->off &&
	       f->type < SP_T_STRING && n >= 1 && n <= in->nargs && n <= SP_MAX_SAVED &&
	       !(in->bad >> (n - 1) & 1);
}

static void registers(const struct profile_probe *pr, const struct attach_inside *in,
		      struct sp_rec_hit *rec)
{
	bool asked = false; /* a condition stands before this program */

	for (int i = 0; i < SP_MAX_ARGS; i++)
		rec->len[i] = SP_LEN_UNSET;
	for (int i = 0; i < pr->prog.nfetch; i++) {
		const struct sp_fetch *f = &pr->prog.fetch[i];

		if (f->flags & SP_F_COND) {
			asked = true;
			continue;
		}
		if (!asked && f->arg < SP_MAX_ARGS && rec->len[f->arg] == SP_LEN_UNSET &&
		    is_plain(f, in)) {
			rec->val[f->arg] = as_type(in->arg[f->op[0].n - 1], f->type);
			rec->len[f->arg] = 0;
			rec->alt[f->arg] = (uint8_t)i;
		}
		asked = false;
	}
}

/* Of alternatives, which are told apart by texts, only the operation is taken. */
static void describe(const struct inside *w, const struct attach_inside *in, struct sp_event *ev)
{
	const struct profile_probe *pr = &w->p->probes[in->probe];
	const struct field_plan *plan = decoder_plan(w->d, in->probe);
	struct sp_rec_hit rec = {.h = {.type = SP_REC_HIT, .probe = (uint16_t)in->probe}};
	struct captures caps = {.n = 0};
	struct event_more more = {.work = WORK_NONE};
	struct sp_event got;

	sp_event_init(ev);
	if (pr->is_frames)
		return;
	sp_event_init(&got);
	registers(pr, in, &rec);
	if (fields_fill(w->p, pr, plan, &rec, sizeof(rec), &caps, &got, &more) < 0)
		return;
	ev->op = got.op;
	if (pr->nmatch)
		return;
	memcpy(ev->room, got.room, sizeof(ev->room));
	memcpy(ev->object, got.object, sizeof(ev->object));
	ev->bytes = got.bytes;
}

/* ---- rooms --------------------------------------------------------------------------------- */

static int compare(const struct attach_inside *a, uint32_t pid, uint32_t tid, uint64_t enter_ns)
{
	if (a->pid != pid)
		return a->pid < pid ? -1 : 1;
	if (a->tid != tid)
		return a->tid < tid ? -1 : 1;
	return a->enter_ns < enter_ns ? -1 : a->enter_ns > enter_ns;
}

static int in_order(const void *a, const void *b)
{
	const struct attach_inside *x = *(const struct attach_inside *const *)a;
	const struct attach_inside *y = *(const struct attach_inside *const *)b;

	return compare(x, y->pid, y->tid, y->enter_ns);
}

static const struct attach_inside *find(const struct inside *w, uint32_t pid, uint32_t tid,
					uint64_t enter_ns)
{
	int lo = 0, hi = w->n;

	while (lo < hi) {
		int mid = (lo + hi) / 2;
		int c = compare(w->row[mid], pid, tid, enter_ns);

		if (!c)
			return w->row[mid];
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

/* False: not known. doubtful: not by its own argument. */
static bool room_of(const struct inside *w, const struct attach_inside *in, char *room,
		    bool *doubtful)
{
	const struct profile_probe *pr = &w->p->probes[in->probe];
	const struct attach_inside *at = in;
	const char *known = NULL;
	struct sp_event ev;

	*doubtful = true;
	for (int i = 0; i < NESTED_MAX && at; i++) {
		describe(w, at, &ev);
		*doubtful = !ev.room[0];
		known = ev.room[0] ? ev.room : scope_op_room(w->scope, at->pid, ev.op);
		if (known ||
		    (at == in && pr->scope == SCOPE_NONE && !(pr->prog.flags & SP_P_SCOPE)))
			break;
		if (!at->scope_ns && pr->scope == SCOPE_THREAD)
			known = scope_thread_room(w->scope, in->pid, in->tid, in->enter_ns);
		if (!at->scope_ns || at->scope_ns >= at->enter_ns)
			break;
		at = find(w, at->pid, at->tid, at->scope_ns);
	}
	if (known)
		memcpy(room, known, strlen(known) + 1);
	return known;
}

/* ---- events -------------------------------------------------------------------------------- */

static void tell(struct inside *w, const struct told *t, const char *kind, uint64_t ns,
		 uint64_t bytes, uint64_t took_ns)
{
	struct sp_event ev;

	sp_event_init(&ev);
	ev.ns = ns;
	ev.role = ROLE_CALL;
	ev.pid = t->key.pid;
	ev.tid = t->key.tid;
	ev.probe = (int16_t)t->key.probe;
	ev.code = (int64_t)t->key.enter_ns;
	ev.bytes = bytes;
	ev.took_ns = took_ns;
	snprintf(ev.kind, sizeof(ev.kind), "%s", kind);
	memcpy(ev.room, t->room, sizeof(ev.room));
	memcpy(ev.object, t->object, sizeof(ev.object));
	if (t->unsure && !strcmp(kind, "inside"))
		snprintf(ev.note, sizeof(ev.note), "%s", INSIDE_UNSURE);
	w->emit(w->ctx, &ev, t->room[0] && t->doubtful);
}

static void left(struct inside *w, struct told *t, uint64_t ns, uint64_t took_ns)
{
	/* a call that returned while it was looked at has been told with a later time */
	tell(w, t, "left", ns > t->ns ? ns : t->ns + 1, 0, took_ns);
	drop(w, t);
}

static struct told *told_find(const struct inside *w, uint32_t pid, uint32_t tid, int probe,
			      uint64_t enter_ns)
{
	struct told *t, key = {.key = {pid, tid, enter_ns, probe}};

	HASH_FIND(hh, w->told, &key.key, sizeof(key.key), t);
	return t;
}

static void take(struct inside *w, const struct attach_inside *in, uint64_t now_ns)
{
	struct told *t = told_find(w, in->pid, in->tid, in->probe, in->enter_ns);
	struct sp_event ev;

	if (t) {
		t->look = w->look;
		if (t->unsure && !in->unsure) {
			t->unsure = false;
			t->ns = now_ns;
			tell(w, t, "inside", now_ns, 0, 0);
		}
		return;
	}
	if (HASH_COUNT(w->told) >= INSIDE_MAX)
		return;
	t = calloc(1, sizeof(*t));
	if (!t)
		return;
	t->key.pid = in->pid;
	t->key.tid = in->tid;
	t->key.enter_ns = in->enter_ns;
	t->key.probe = in->probe;
	HASH_ADD(hh, w->told, key, sizeof(t->key), t);
	if (!t->hh.tbl) {
		free(t);
		return;
	}
	t->look = w->look;
	t->ns = now_ns;
	t->unsure = in->unsure;
	describe(w, in, &ev);
	memcpy(t->object, ev.object, sizeof(t->object));
	room_of(w, in, t->room, &t->doubtful);
	tell(w, t, "inside", now_ns, ev.bytes, 0);
}

static bool is_there(void *ctx, uint32_t pid, uint32_t tid, uint64_t enter_ns)
{
	return find(ctx, pid, tid, enter_ns);
}

/* What waits for a call that does not return goes by what is known of it now. */
static void resolve(struct inside *w, const struct attach_inside *in)
{
	char room[SP_ROOM_MAX];
	bool doubtful;

	if ((w->p->probes[in->probe].prog.flags & SP_P_SCOPE) && room_of(w, in, room, &doubtful))
		scope_resolve(w->scope, in->pid, in->tid, in->enter_ns, room);
}

void inside_look(struct inside *w, const struct attach_inside *in, int n, uint64_t now_ns)
{
	struct told *next;

	w->row = calloc((size_t)n + 1, sizeof(const struct attach_inside *));
	if (!w->row)
		return;
	w->look++;
	for (w->n = 0; n > 0; in++, n--)
		if (in->probe >= 0 && in->probe < w->p->nprobes)
			w->row[w->n++] = in;
	qsort(w->row, (size_t)w->n, sizeof(const struct attach_inside *), in_order);
	for (int i = 0; i < w->n; i++) {
		resolve(w, w->row[i]);
		if (w->row[i]->enter_ns + INSIDE_NS <= now_ns &&
		    !w->p->probes[w->row[i]->probe].waits)
			take(w, w->row[i], now_ns);
	}
	scope_check(w->scope, now_ns > INSIDE_NS ? now_ns - INSIDE_NS : 0, is_there, w);
	for (struct told *t = w->told; t; t = next) {
		next = t->hh.next;
		if (t->look != w->look)
			left(w, t, now_ns, 0);
	}
	free(w->row);
	w->row = NULL;
	w->n = 0;
}

void inside_returned(struct inside *w, const struct sp_rec *rec)
{
	struct told *t;

	if (!w->told || !rec->enter_ns)
		return;
	t = told_find(w, rec->pid, rec->tid, rec->probe, rec->enter_ns);
	if (t)
		left(w, t, rec->ns, rec->ns - rec->enter_ns);
}

void inside_gone(struct inside *w, uint32_t pid, uint32_t tid, uint64_t ns)
{
	struct told *next;

	for (struct told *t = w->told; t; t = next) {
		next = t->hh.next;
		if (t->key.pid == pid && (!tid || t->key.tid == tid))
			left(w, t, ns, 0);
	}
}
