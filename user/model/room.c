// SPDX-License-Identifier: Apache-2.0
/*
 * Rooms by (pid, name). A room without an open life is remembered for its number of lives and for
 * an abort that came before the room did, within a bound: the longest idle is forgotten first.
 */
#include <stddef.h>
#include <string.h>

#include "model/lives.h"

_Static_assert(offsetof(struct room, name) == offsetof(struct room, pid) + sizeof(uint32_t),
	       "pid and name are one key");

#define KEY_LEN(name_len) (sizeof(uint32_t) + (name_len))

struct key {
	uint32_t pid;
	char name[SP_ROOM_MAX];
};

size_t room_bytes(const struct room *r)
{
	return sizeof(*r) + r->len + 1u;
}

static size_t key_fill(struct key *k, uint32_t pid, const char *name)
{
	size_t len = strnlen(name, SP_ROOM_MAX - 1);

	memset(k, 0, sizeof(*k));
	k->pid = pid;
	memcpy(k->name, name, len);
	return len;
}

static struct room *find(struct model *m, const struct key *k, size_t len)
{
	struct room *r;

	HASH_FIND(hh, m->rooms, k, KEY_LEN(len), r);
	return r;
}

struct room *room_find(struct model *m, uint32_t pid, const char *name)
{
	struct key k;
	size_t len = key_fill(&k, pid, name);

	return find(m, &k, len);
}

static void idle_remove(struct model *m, struct room *r)
{
	if (!r->idle)
		return;
	if (r->iprev)
		r->iprev->inext = r->inext;
	else
		m->idle_first = r->inext;
	if (r->inext)
		r->inext->iprev = r->iprev;
	else
		m->idle_last = r->iprev;
	r->iprev = r->inext = NULL;
	r->idle = false;
	m->nidle--;
}

static void room_free(struct model *m, struct room *r)
{
	idle_remove(m, r);
	HASH_DELETE(hh, m->rooms, r);
	mem_free(m, r, room_bytes(r));
}

static void idle_append(struct model *m, struct room *r)
{
	if (r->idle)
		return;
	r->idle = true;
	r->inext = NULL;
	r->iprev = m->idle_last;
	if (m->idle_last)
		m->idle_last->inext = r;
	else
		m->idle_first = r;
	m->idle_last = r;
	m->nidle++;
	/* rooms on this list have no references, so the first can always go */
	if (m->nidle > MAX_IDLE_ROOMS)
		room_free(m, m->idle_first);
}

/* Find it or make it; made rooms are nowhere listed until referenced or given an abort to keep. */
struct room *room_get(struct model *m, uint32_t pid, const char *name)
{
	struct key k;
	size_t len = key_fill(&k, pid, name);
	struct room *r = find(m, &k, len);

	if (r)
		return r;
	r = mem_new(m, sizeof(*r) + len + 1);
	if (!r)
		return NULL;
	r->pid = pid;
	r->len = (uint8_t)len;
	memcpy(r->name, name, len);
	HASH_ADD(hh, m->rooms, pid, KEY_LEN(len), r);
	if (!r->hh.tbl) {
		mem_free(m, r, room_bytes(r));
		return NULL;
	}
	idle_append(m, r);
	return r;
}

void room_ref(struct model *m, struct room *r)
{
	idle_remove(m, r);
	r->refs++;
}

void room_unref(struct model *m, struct room *r)
{
	if (!--r->refs)
		idle_append(m, r);
}

void room_keep_abort(struct model *m, struct room *r)
{
	r->abort_ns = m->now;
	/* the freshest again: it must outlive the rooms that merely ended */
	if (r->idle) {
		idle_remove(m, r);
		idle_append(m, r);
	}
}
