// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM        1
#define uthash_nonfatal_oom(elt) ((elt)->hh.tbl = NULL)
#include <uthash.h>
#include <utlist.h>

#include "collect/places.h"

#define PAGES_MAX (SP_SLOT_MAX / 4)
#define BASES_MAX (SP_SLOT_MAX / 8)

/* The pages of a room at one peer. */
struct claim {
	struct claim *prev, *next;   /* of the agent, oldest first */
	struct claim *rnext;         /* of the room */
	struct claim *older, *newer; /* of all */
	struct agent *agent;
	struct room *room;
	uint64_t number; /* of announcement */
	bool cut;
	uint32_t n;
	uint64_t page[PAGES_MAX];
};

struct name {
	uint32_t pid;
	char text[SP_ROOM_MAX]; /* zero behind its end */
};

struct room {
	struct name key;
	struct claim *claims;
	UT_hash_handle hh;
};

struct agent {
	struct name key;
	uint64_t item; /* 0: its registration was not seen */
	uint32_t n;
	uint64_t base[BASES_MAX]; /* ascending */
	struct claim *claims;
	UT_hash_handle hh;
};

struct segment {
	struct {
		uint64_t pid, id;
	} key;
	struct name agent;
	UT_hash_handle hh;
};

struct places {
	struct room *rooms;
	struct agent *agents;
	struct segment *segments;
	struct claim *claims; /* oldest first */
	size_t nclaims;
	uint64_t number;
};

_Static_assert(sizeof(((struct sp_event *)0)->agent) == SP_ROOM_MAX, "struct name");

struct places *places_new(void)
{
	return calloc(1, sizeof(struct places));
}

static struct name name_of(uint32_t pid, const char *text)
{
	struct name n = {.pid = pid};

	memcpy(n.text, text, strnlen(text, sizeof(n.text) - 1));
	return n;
}

/* ---- tables -------------------------------------------------------------------------------- */

static void claim_drop(struct places *p, struct claim *c)
{
	DL_DELETE2(p->claims, c, older, newer);
	DL_DELETE(c->agent->claims, c);
	LL_DELETE2(c->room->claims, c, rnext);
	if (!c->room->claims) {
		HASH_DEL(p->rooms, c->room);
		free(c->room);
	}
	p->nclaims--;
	free(c);
}

static void claims_drop(struct places *p, struct agent *a)
{
	while (a->claims)
		claim_drop(p, a->claims);
}

static void agent_drop(struct places *p, struct agent *a)
{
	claims_drop(p, a);
	HASH_DEL(p->agents, a);
	free(a);
}

static struct agent *agent_find(const struct places *p, const struct name *key)
{
	struct agent *a;

	HASH_FIND(hh, p->agents, key, sizeof(*key), a);
	return a;
}

static struct agent *agent_get(struct places *p, uint32_t pid, const char *text)
{
	struct name key = name_of(pid, text);
	struct agent *a = agent_find(p, &key);

	if (a)
		return a;
	while (HASH_COUNT(p->agents) >= PLACES_AGENTS)
		agent_drop(p, p->agents);
	a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	a->key = key;
	HASH_ADD(hh, p->agents, key, sizeof(a->key), a);
	if (a->hh.tbl)
		return a;
	free(a);
	return NULL;
}

static struct room *room_find(const struct places *p, uint32_t pid, const char *text)
{
	struct name key = name_of(pid, text);
	struct room *r;

	HASH_FIND(hh, p->rooms, &key, sizeof(key), r);
	return r;
}

static struct room *room_get(struct places *p, uint32_t pid, const char *text)
{
	struct room *r = room_find(p, pid, text);

	if (r)
		return r;
	r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->key = name_of(pid, text);
	HASH_ADD(hh, p->rooms, key, sizeof(r->key), r);
	if (r->hh.tbl)
		return r;
	free(r);
	return NULL;
}

static void segment_drop(struct places *p, struct segment *s)
{
	HASH_DEL(p->segments, s);
	free(s);
}

static struct segment *segment_find(const struct places *p, uint32_t pid, uint64_t id)
{
	struct segment *s, probe = {.key = {.pid = pid, .id = id}};

	HASH_FIND(hh, p->segments, &probe.key, sizeof(probe.key), s);
	return s;
}

void places_free(struct places *p)
{
	if (!p)
		return;
	while (p->agents)
		agent_drop(p, p->agents);
	while (p->segments)
		segment_drop(p, p->segments);
	free(p);
}

/* ---- what is told -------------------------------------------------------------------------- */

static uint64_t element(const struct array_ref *a, size_t i)
{
	uint64_t v = 0;
	int32_t s;

	if (a->size == 8) {
		memcpy(&v, a->raw + i * 8, 8);
		return v;
	}
	memcpy(&s, a->raw + i * 4, 4);
	return s < 0 ? UINT64_MAX : (uint64_t)s;
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint32_t take_array(const struct array_ref *from, uint64_t *to, uint32_t max)
{
	uint32_t n = 0;

	for (size_t i = 0; i < from->n && n < max; i++) {
		uint64_t v = element(from, i);

		if (v != UINT64_MAX)
			to[n++] = v;
	}
	qsort(to, n, sizeof(*to), ascending);
	return n;
}

static const char *identity(const struct sp_event *ev)
{
	return ev->agent[0] ? ev->agent : ev->peer;
}

static void learn_agent(struct places *p, const struct sp_event *ev, const struct event_more *more)
{
	struct agent *a = agent_get(p, ev->pid, identity(ev));
	uint64_t base[BASES_MAX];
	uint32_t n = take_array(&more->bases, base, BASES_MAX);

	if (!a)
		return;
	if (a->item &&
	    (a->item != more->item || a->n != n || memcmp(a->base, base, n * sizeof(*base)) != 0))
		claims_drop(p, a); /* it has begun anew: its old pages mean nothing */
	a->item = more->item;
	a->n = n;
	memcpy(a->base, base, n * sizeof(*base));
}

static void learn_segment(struct places *p, const struct sp_event *ev, uint64_t id)
{
	struct segment *s = segment_find(p, ev->pid, id);

	if (s) {
		s->agent = name_of(ev->pid, identity(ev));
		return;
	}
	while (HASH_COUNT(p->segments) >= PLACES_SEGMENTS)
		segment_drop(p, p->segments);
	s = calloc(1, sizeof(*s));
	if (!s)
		return;
	s->key.pid = ev->pid;
	s->key.id = id;
	s->agent = name_of(ev->pid, identity(ev));
	HASH_ADD(hh, p->segments, key, sizeof(s->key), s);
	if (!s->hh.tbl)
		free(s);
}

/* The same announcement may be seen twice, by a probe and on the socket, which shows less of it. */
static bool says_no_more(const struct claim *c, const uint64_t *page, uint32_t n, bool cut)
{
	if (!cut || n > c->n)
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (!bsearch(&page[i], c->page, c->n, sizeof(*page), ascending))
			return false;
	return true;
}

static struct claim *claim_of(const struct room *r, const struct agent *a)
{
	struct claim *c = r->claims;

	while (c && c->agent != a)
		c = c->rnext;
	return c;
}

static void learn_pages(struct places *p, const struct sp_event *ev, const struct array_ref *pages)
{
	struct agent *a = agent_get(p, ev->pid, identity(ev));
	struct room *r = a ? room_find(p, ev->pid, ev->room) : NULL;
	struct claim *c = r ? claim_of(r, a) : NULL;
	uint64_t page[PAGES_MAX];
	uint32_t n = take_array(pages, page, PAGES_MAX);

	if (!a || (c && says_no_more(c, page, n, pages->cut)))
		return;
	if (c)
		claim_drop(p, c); /* the room may be gone with it */
	while (p->nclaims >= PLACES_CLAIMS)
		claim_drop(p, p->claims);
	r = room_get(p, ev->pid, ev->room);
	c = r ? calloc(1, sizeof(*c)) : NULL;
	if (!c) {
		if (r && !r->claims) {
			HASH_DEL(p->rooms, r);
			free(r);
		}
		return;
	}
	c->agent = a;
	c->room = r;
	c->number = ++p->number;
	c->cut = pages->cut || n < pages->n;
	c->n = n;
	memcpy(c->page, page, n * sizeof(*page));
	DL_APPEND(a->claims, c);
	LL_PREPEND2(r->claims, c, rnext);
	DL_APPEND2(p->claims, c, older, newer);
	p->nclaims++;
}

static bool is_end(const struct sp_event *ev)
{
	switch (ev->role) {
	case ROLE_TOLD:
		return ev->status != OPS_BUSY;
	case ROLE_REPLY:
		return !strcmp(ev->kind, "end");
	case ROLE_RELEASE:
	case ROLE_ABORT:
		return true;
	default:
		return false;
	}
}

void places_learn(struct places *p, const struct sp_event *ev, const struct event_more *more)
{
	if (ev->room[0] && is_end(ev)) {
		struct room *r = room_find(p, ev->pid, ev->room);

		for (struct claim *c = r ? r->claims : NULL, *next; c; c = next) {
			next = c->rnext; /* the room goes with its last claim */
			claim_drop(p, c);
		}
		return;
	}
	if (!more || !identity(ev)[0])
		return;
	if (ev->role == ROLE_ANNOUNCE && ev->room[0] && more->pages.raw)
		learn_pages(p, ev, &more->pages);
	if (ev->role != ROLE_REGISTER)
		return;
	if (more->bases.raw && more->has_item)
		learn_agent(p, ev, more);
	if (more->has_segment)
		learn_segment(p, ev, more->segment);
}

/* ---- what an address tells ----------------------------------------------------------------- */

/* The buffer that begins last before the address is the one that it is in: they do not overlap.
 * Behind the known ones' ends lie pages that no room has. */
static bool page_at(const struct agent *a, uint64_t address, uint64_t *page)
{
	uint32_t i = a->n;

	while (i && a->base[i - 1] > address)
		i--;
	if (!i)
		return false;
	*page = (address - a->base[i - 1]) / a->item;
	return true;
}

enum found { FOUND_NONE, FOUND_ONE, FOUND_DOUBT };

/* Adds to *claim what this peer's rooms say. */
static enum found look(const struct agent *a, uint64_t address, const struct claim **claim)
{
	bool cut_later = false;
	uint64_t page;

	if (a->claims && !a->item)
		return FOUND_DOUBT;
	if (!a->item || !page_at(a, address, &page))
		return FOUND_NONE;
	/* the newest first */
	for (const struct claim *c = a->claims ? a->claims->prev : NULL; c;
	     c = c == a->claims ? NULL : c->prev) {
		if (bsearch(&page, c->page, c->n, sizeof(page), ascending)) {
			if (cut_later || (*claim && (*claim)->room != c->room))
				return FOUND_DOUBT;
			*claim = c;
		}
		cut_later |= c->cut;
	}
	return *claim ? FOUND_ONE : FOUND_NONE;
}

static const struct claim *owner(const struct places *p, uint32_t pid,
				 const struct event_more *more)
{
	const struct claim *claim = NULL;
	const struct agent *a;

	if (more->has_segment) {
		const struct segment *s = segment_find(p, pid, more->segment);

		a = s ? agent_find(p, &s->agent) : NULL;
		return a && look(a, more->address, &claim) == FOUND_ONE ? claim : NULL;
	}
	for (a = p->agents; a; a = a->hh.next)
		if (a->key.pid == pid && look(a, more->address, &claim) == FOUND_DOUBT)
			return NULL;
	return claim;
}

bool places_tie(const struct places *p, struct sp_event *ev, const struct event_more *more)
{
	const struct claim *c;

	if (ev->role != ROLE_POST || ev->room[0] || !more->has_address)
		return false;
	c = owner(p, ev->pid, more);
	if (!c)
		return false;
	memcpy(ev->room, c->room->key.text, sizeof(ev->room));
	if (!ev->note[0] && ev->status != OPS_ERROR) /* there it is the error's name */
		snprintf(ev->note, sizeof(ev->note), "%s", PLACES_NOTE);
	return true;
}

/* ---- what befalls it ----------------------------------------------------------------------- */

void places_loss(struct places *p, uint32_t pid)
{
	for (struct agent *a = p->agents; a; a = a->hh.next)
		if (!pid || a->key.pid == pid)
			claims_drop(p, a);
}

void places_gone(struct places *p, uint32_t pid)
{
	struct segment *snext;
	struct agent *next;

	for (struct agent *a = p->agents; a; a = next) {
		next = a->hh.next;
		if (a->key.pid == pid)
			agent_drop(p, a);
	}
	for (struct segment *s = p->segments; s; s = snext) {
		snext = s->hh.next;
		if (s->key.pid == pid)
			segment_drop(p, s);
	}
}

size_t places_claims(const struct places *p)
{
	return p->nclaims;
}
