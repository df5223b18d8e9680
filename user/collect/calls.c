// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM        1
#define uthash_nonfatal_oom(elt) ((elt)->hh.tbl = NULL)
#include <uthash.h>

#include "collect/calls.h"

struct call_key {
	uint32_t pid;
	int32_t probe;
	char room[SP_ROOM_MAX]; /* zero behind its end */
};

struct entry {
	struct call_key key;
	struct call_sum sum, doubtful; /* doubtful: for a room by such means */
	uint32_t told, failed;         /* in this second */
	UT_hash_handle hh;
};

struct calls {
	struct entry *table;
	struct entry *last; /* the one found last: calls come in bursts */
	calls_emit emit;
	void *ctx;
};

struct calls *calls_new(calls_emit emit, void *ctx)
{
	struct calls *c = calloc(1, sizeof(*c));

	if (c) {
		c->emit = emit;
		c->ctx = ctx;
	}
	return c;
}

static void drop(struct calls *c, struct entry *e)
{
	if (c->last == e)
		c->last = NULL;
	HASH_DEL(c->table, e);
	free(e);
}

void calls_free(struct calls *c)
{
	if (!c)
		return;
	while (c->table)
		drop(c, c->table);
	free(c);
}

void call_sum_add(struct call_sum *s, const struct sp_event *ev)
{
	uint32_t n = ev->count ? ev->count : 1;

	s->n += n;
	s->bytes += ev->bytes;
	if (ev->status == OPS_ERROR)
		s->failed += n;
	if (ev->ns > s->ns)
		s->ns = ev->ns;
}

void call_sum_join(struct call_sum *s, const struct call_sum *more)
{
	s->n += more->n;
	s->bytes += more->bytes;
	s->failed += more->failed;
	if (more->ns > s->ns)
		s->ns = more->ns;
}

static struct entry *make(struct calls *c, const struct call_key *key)
{
	struct entry *e;

	if (key->room[0] && HASH_COUNT(c->table) >= CALLS_ENTRIES)
		return NULL;
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->key = *key;
	HASH_ADD(hh, c->table, key, sizeof(e->key), e);
	if (e->hh.tbl)
		return e;
	free(e);
	return NULL;
}

static struct entry *get(struct calls *c, uint32_t pid, int probe, const char *room)
{
	struct call_key key = {.pid = pid, .probe = probe};
	struct entry *e = c->last;

	if (e && e->key.pid == pid && e->key.probe == probe && !strcmp(e->key.room, room))
		return e;
	memcpy(key.room, room, strnlen(room, sizeof(key.room) - 1));
	HASH_FIND(hh, c->table, &key, sizeof(key), e);
	if (!e)
		e = make(c, &key);
	if (e)
		c->last = e;
	return e;
}

/* Its own entry, else its process's. */
static struct entry *get_any(struct calls *c, uint32_t pid, int probe, const char *room)
{
	struct entry *e = get(c, pid, probe, room);

	return e || !room[0] ? e : get(c, pid, probe, "");
}

static bool told(struct entry *e, const struct sp_event *ev)
{
	if (ev->room[0] && e->told < CALLS_TOLD) {
		e->told++;
		return true;
	}
	if (ev->status == OPS_ERROR && e->failed < CALLS_FAILED) {
		e->failed++;
		return true;
	}
	return false;
}

void calls_take(struct calls *c, const struct sp_event *ev, bool doubtful)
{
	struct entry *e;

	if (ev->flags & EV_MARK) {
		c->emit(c->ctx, ev, doubtful);
		return;
	}
	e = get_any(c, ev->pid, ev->probe, ev->room);
	if (!e)
		return;
	if (told(e, ev))
		c->emit(c->ctx, ev, doubtful);
	else
		call_sum_add(doubtful ? &e->doubtful : &e->sum, ev);
}

void calls_count(struct calls *c, uint32_t pid, int probe, const char *room,
		 const struct call_sum *sum, bool doubtful)
{
	struct entry *e = get_any(c, pid, probe, room);

	if (e)
		call_sum_join(doubtful ? &e->doubtful : &e->sum, sum);
}

/* now_ns 0: at the time of the newest that was counted */
static void tell(struct calls *c, struct entry *e, uint64_t now_ns)
{
	struct sp_event ev;
	bool doubtful = e->doubtful.n;

	call_sum_join(&e->sum, &e->doubtful);
	sp_event_init(&ev);
	ev.ns = now_ns ? now_ns : e->sum.ns;
	ev.role = ROLE_CALL;
	ev.pid = e->key.pid;
	ev.probe = (int16_t)e->key.probe;
	ev.count = e->sum.n < UINT32_MAX ? (uint32_t)e->sum.n : UINT32_MAX;
	ev.bytes = e->sum.bytes;
	ev.code = (int64_t)e->sum.failed;
	snprintf(ev.kind, sizeof(ev.kind), "count");
	memcpy(ev.room, e->key.room, sizeof(ev.room));
	c->emit(c->ctx, &ev, doubtful);
}

void calls_flush(struct calls *c, uint64_t now_ns)
{
	struct entry *next;

	for (struct entry *e = c->table; e; e = next) {
		bool idle = !e->sum.n && !e->doubtful.n && !e->told && !e->failed;

		next = e->hh.next;
		if (idle) {
			drop(c, e);
			continue;
		}
		if (e->sum.n || e->doubtful.n)
			tell(c, e, now_ns);
		e->sum = e->doubtful = (struct call_sum){.n = 0};
		e->told = e->failed = 0;
	}
}

void calls_gone(struct calls *c, uint32_t pid)
{
	struct entry *next;

	for (struct entry *e = c->table; e; e = next) {
		next = e->hh.next;
		if (e->key.pid != pid)
			continue;
		if (e->sum.n || e->doubtful.n)
			tell(c, e, 0);
		drop(c, e);
	}
}

void calls_doubt(struct calls *c, uint32_t pid)
{
	for (struct entry *e = c->table; e; e = e->hh.next) {
		struct entry *all;

		if (!e->doubtful.n || !e->key.room[0] || (pid && e->key.pid != pid))
			continue;
		all = get(c, e->key.pid, e->key.probe, "");
		if (all)
			call_sum_join(&all->sum, &e->doubtful);
		e->doubtful = (struct call_sum){.n = 0};
	}
}

size_t calls_entries(const struct calls *c)
{
	return HASH_COUNT(c->table);
}
