// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM        1
#define uthash_nonfatal_oom(elt) ((elt)->hh.tbl = NULL)
#include <uthash.h>

#include "collect/tallies.h"

/* The kernel counts a post a moment before its record is made. */
#define SAME_POST_NS 1000000

struct key {
	uint64_t key, within;
	uint32_t pid, id;
};

/* The last posts, as far as they are of one room. */
struct run {
	uint64_t n, entry_ns; /* entry of the last one */
	char room[SP_ROOM_MAX];
	uint32_t tid;
	uint64_t enter_ns; /* not 0: the room of this call of tid, which is not known yet */
	int probe;
};

struct tally {
	struct key key;
	struct run run;
	char object[32];
	uint64_t early_asked; /* as of the last look */
	uint64_t told, told_op;
	char told_room[SP_ROOM_MAX];
	uint64_t look;
	int grew; /* looks at which more had completed than was asked */
	bool moving;
	UT_hash_handle hh;
};

struct tallies {
	const struct profile *p;
	calls_emit emit;
	void *ctx;
	struct tally *table;
	uint64_t look;
};

struct tallies *tallies_new(const struct profile *p, calls_emit emit, void *ctx)
{
	struct tallies *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->p = p;
	t->emit = emit;
	t->ctx = ctx;
	return t;
}

static void drop(struct tallies *t, struct tally *k)
{
	HASH_DEL(t->table, k);
	free(k);
}

void tallies_free(struct tallies *t)
{
	if (!t)
		return;
	while (t->table)
		drop(t, t->table);
	free(t);
}

static struct tally *find(const struct tallies *t, const struct key *want)
{
	struct tally *k;

	HASH_FIND(hh, t->table, want, sizeof(*want), k);
	return k;
}

static struct tally *get(struct tallies *t, const struct key *want)
{
	struct tally *k = find(t, want);

	if (k)
		return k;
	while (HASH_COUNT(t->table) >= TALLIES_MAX)
		drop(t, t->table);
	k = calloc(1, sizeof(*k));
	if (!k)
		return NULL;
	k->key = *want;
	k->run.probe = -1;
	HASH_ADD(hh, t->table, key, sizeof(k->key), k);
	if (k->hh.tbl)
		return k;
	free(k);
	return NULL;
}

/* ---- posts --------------------------------------------------------------------------------- */

static bool same_run(const struct run *r, const struct sp_rec *h, const char *room,
		     uint64_t enter_ns)
{
	if (enter_ns)
		return r->enter_ns == enter_ns && r->tid == h->tid;
	return !r->enter_ns && r->room[0] && !strcmp(r->room, room);
}

/* Which one the record is of. False: it does not say. */
static bool key_of(const struct tallies *t, const struct sp_rec_hit *rec, struct key *key)
{
	const struct sp_each *each = &t->p->probes[rec->h.probe].each;

	*key = (struct key){.pid = rec->h.pid, .id = each->tally_id};
	if (each->tally_arg >= SP_MAX_ARGS || rec->len[each->tally_arg])
		return false;
	key->key = rec->val[each->tally_arg];
	if (!each->has_within)
		return true;
	if (each->within_arg >= SP_MAX_ARGS || rec->len[each->within_arg])
		return false;
	key->within = rec->val[each->within_arg];
	return true;
}

void tallies_post(struct tallies *t, const struct sp_rec_hit *rec, const char *room,
		  uint64_t enter_ns, const char *object)
{
	struct tally *k;
	struct run *r;
	struct key key;

	k = key_of(t, rec, &key) ? get(t, &key) : NULL;
	if (!k)
		return;
	r = &k->run;
	if (!same_run(r, &rec->h, room, enter_ns)) {
		r->n = 0;
		r->enter_ns = enter_ns;
		snprintf(r->room, sizeof(r->room), "%s", enter_ns ? "" : room);
	}
	r->tid = rec->h.tid;
	r->probe = rec->h.probe;
	r->entry_ns = rec->h.enter_ns ? rec->h.enter_ns : rec->h.ns;
	r->n += rec->h.posted;
	if (object[0])
		snprintf(k->object, sizeof(k->object), "%s", object);
}

static bool waits_for(const struct tally *k, uint32_t pid, uint32_t tid, uint64_t enter_ns)
{
	return k->key.pid == pid && k->run.tid == tid && k->run.enter_ns == enter_ns;
}

void tallies_known(struct tallies *t, uint32_t pid, uint32_t tid, uint64_t enter_ns,
		   const char *room)
{
	for (struct tally *k = t->table; k; k = k->hh.next) {
		if (!waits_for(k, pid, tid, enter_ns))
			continue;
		k->run.enter_ns = 0;
		snprintf(k->run.room, sizeof(k->run.room), "%s", room);
	}
}

void tallies_moved(struct tallies *t, uint32_t pid, uint32_t tid, uint64_t from_ns, uint64_t to_ns)
{
	for (struct tally *k = t->table; k; k = k->hh.next)
		if (waits_for(k, pid, tid, from_ns))
			k->run.enter_ns = to_ns;
}

/* As a template "NAME {KEY}" over the argument reads. */
static void name_key(const struct tallies *t, const struct key *key, char *buf, size_t len)
{
	bool hex = false;

	if ((int)key->id >= t->p->ntallies)
		return;
	for (int i = 0; i < t->p->nuprobes; i++) {
		const struct profile_probe *pr = &t->p->probes[i];

		if (pr->each.tally != SP_TALLY_NONE && pr->each.tally_id == key->id &&
		    pr->each.tally_arg < pr->nargs)
			hex = pr->args[pr->each.tally_arg].is_hex;
	}
	snprintf(buf, len, hex ? "%.20s 0x%" PRIx64 : "%.20s %" PRIu64, t->p->tallies[key->id].name,
		 key->key);
}

static void say_key(const struct tallies *t, const struct tally *k, char *buf, size_t len)
{
	if (k->object[0])
		snprintf(buf, len, "%s", k->object);
	else
		name_key(t, &k->key, buf, len);
}

/* What was open for long is lost, and no more open. */
static void tell_dropped(struct tallies *t, struct tally *k, const struct sp_rec *h)
{
	struct sp_event ev;

	sp_event_init(&ev);
	ev.ns = h->ns;
	ev.role = ROLE_CALL;
	ev.pid = h->pid;
	ev.tid = h->tid;
	ev.probe = (int16_t)h->probe;
	ev.code = (int64_t)k->told;
	snprintf(ev.kind, sizeof(ev.kind), "dropped");
	say_key(t, k, ev.object, sizeof(ev.object));
	memcpy(ev.room, k->told_room, sizeof(ev.room));
	k->told = k->told_op = 0;
	k->moving = false;
	t->emit(t->ctx, &ev, false);
}

static bool same_value(const struct sp_fetch *a, const struct sp_fetch *b)
{
	return a->nops == b->nops && a->off == b->off && a->type == b->type &&
	       (a->flags & SP_F_MEM) == (b->flags & SP_F_MEM) &&
	       !memcmp(a->op, b->op, a->nops * sizeof(a->op[0]));
}

/* The tally's `if`, as the kernel has decided it, where an argument has its value. */
static bool asks(const struct profile_probe *pr, const struct sp_rec_hit *rec)
{
	const struct sp_fetch *cond = &pr->each.asks;

	for (int i = 0; pr->each.has_asks && i < pr->prog.nfetch; i++) {
		const struct sp_fetch *f = &pr->prog.fetch[i];
		uint64_t v;

		if (f->flags & SP_F_COND || !same_value(f, cond) || rec->len[f->arg])
			continue;
		v = rec->val[f->arg];
		if (cond->max)
			v &= cond->max;
		return cond->flags & SP_F_ZERO ? !v : v;
	}
	return true;
}

bool tallies_end(struct tallies *t, const struct sp_rec_hit *rec)
{
	struct tally *k;
	struct key key;

	if (!asks(&t->p->probes[rec->h.probe], rec))
		return false;
	k = key_of(t, rec, &key) ? find(t, &key) : NULL;
	if (!k)
		return true;
	if (k->told)
		tell_dropped(t, k, &rec->h);
	k->run = (struct run){.probe = k->run.probe};
	k->early_asked = 0;
	k->grew = 0;
	return true;
}

void tallies_loss(struct tallies *t, uint32_t pid)
{
	for (struct tally *k = t->table; k; k = k->hh.next)
		if (!pid || k->key.pid == pid)
			k->run = (struct run){.probe = k->run.probe, .tid = k->run.tid};
}

void tallies_gone(struct tallies *t, uint32_t pid)
{
	struct tally *next;

	for (struct tally *k = t->table; k; k = next) {
		next = k->hh.next;
		if (k->key.pid == pid)
			drop(t, k);
	}
}

/* ---- looks --------------------------------------------------------------------------------- */

/* What is open, at least. all: of all posts, not only of those with a completion asked for. */
static uint64_t open_of(const struct sp_tally *n, bool all)
{
	uint64_t in = all ? n->posted + n->early : n->asked + n->early_asked;

	return in > n->completed ? in - n->completed : 0;
}

/* Is all that is open of the room of the last posts? */
static const char *room_of(const struct tally *k, const struct sp_tally *n, uint64_t open, bool all)
{
	const struct run *r = &k->run;
	uint64_t unasked = all || n->posted < n->asked ? 0 : n->posted - n->asked;

	if (r->enter_ns || n->post_ns > r->entry_ns + SAME_POST_NS || r->n < open + unasked)
		return "";
	return r->room;
}

static void tell(struct tallies *t, struct tally *k, const struct sp_tally *n, uint64_t open,
		 bool all, uint64_t now_ns)
{
	struct sp_event ev;

	sp_event_init(&ev);
	ev.ns = now_ns;
	ev.role = ROLE_CALL;
	ev.pid = k->key.pid;
	ev.tid = n->tid;
	ev.probe = (int16_t)k->run.probe;
	ev.code = (int64_t)open;
	ev.op = n->post_ns > n->done_ns ? n->post_ns : n->done_ns;
	snprintf(ev.kind, sizeof(ev.kind), "tally");
	say_key(t, k, ev.object, sizeof(ev.object));
	snprintf(ev.room, sizeof(ev.room), "%s", open ? room_of(k, n, open, all) : "");
	memcpy(k->told_room, ev.room, sizeof(k->told_room));
	k->told = open;
	k->told_op = ev.op;
	t->emit(t->ctx, &ev, false);
}

static void look_at(struct tallies *t, const struct attach_tally *row, uint64_t now_ns)
{
	struct tally *k = get(t, &(struct key){.key = row->key,
					       .within = row->within,
					       .pid = row->pid,
					       .id = (uint32_t)row->id});
	const struct sp_tally *n = &row->n;
	uint64_t last = n->post_ns > n->done_ns ? n->post_ns : n->done_ns;
	uint64_t open;
	bool all;

	if (!k)
		return;
	k->look = t->look;
	if (n->early_asked > k->early_asked && k->grew < TALLIES_LOOKS)
		k->grew++;
	k->early_asked = n->early_asked;
	/* nobody stops after posts of which none tells him that it is complete */
	all = k->grew >= TALLIES_LOOKS || (!n->asked && n->completed);
	open = open_of(n, all);
	if (!open) {
		k->moving = false;
		if (k->told)
			tell(t, k, n, 0, all, now_ns);
	} else if (now_ns >= last + TALLIES_NS) {
		k->moving = false;
		if (open != k->told || last != k->told_op)
			tell(t, k, n, open, all, now_ns);
	} else if (k->told && !k->moving && n->done_ns > k->told_op) {
		k->moving = true; /* completions go on: said once */
		tell(t, k, n, open, all, now_ns);
	}
}

void tallies_look(struct tallies *t, const struct attach_tally *row, int n, uint64_t now_ns)
{
	static const struct sp_tally none;
	struct tally *next;

	t->look++;
	for (int i = 0; i < n; i++)
		look_at(t, &row[i], now_ns);
	/* what the kernel side counts no more: it is over */
	for (struct tally *k = t->table; k; k = next) {
		next = k->hh.next;
		if (k->look == t->look)
			continue;
		if (k->told)
			tell(t, k, &none, 0, false, now_ns);
		drop(t, k);
	}
}
