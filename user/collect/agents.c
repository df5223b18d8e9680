// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/agents.h"

#define MAX_AGENTS 16384

static void key_fill(struct agent_id *key, uint32_t pid, const char *first)
{
	memset(key, 0, sizeof(*key)); /* the padding is part of the key */
	key->pid = pid;
	snprintf(key->first, sizeof(key->first), "%s", first);
}

const char *agents_name(const struct conn_agent *a)
{
	return a->name[0] ? a->name : a->id.first;
}

void agents_free(struct agents *t)
{
	struct conn_agent *a, *next;

	HASH_ITER (hh, t->by_id, a, next)
		agents_drop(t, a);
}

void agents_drop(struct agents *t, struct conn_agent *a)
{
	HASH_DEL(t->by_id, a);
	free(a);
}

static struct conn_agent *first_as(const struct agents *t, uint32_t pid, const char *first)
{
	struct conn_agent *a;
	struct agent_id key;

	key_fill(&key, pid, first);
	HASH_FIND(hh, t->by_id, &key, sizeof(key), a);
	return a;
}

/* The youngest with this address: it may be the successor of one that has not been seen to go. */
static struct conn_agent *at(const struct agents *t, uint32_t pid, const char *peer)
{
	struct conn_agent *found = NULL;

	for (struct conn_agent *a = t->by_id; a; a = a->hh.next)
		if (a->id.pid == pid && !strcmp(a->peer, peer))
			found = a;
	return found;
}

static struct conn_agent *named(const struct agents *t, const struct sp_event *ev)
{
	struct conn_agent *a = first_as(t, ev->pid, ev->agent);

	if (a || !ev->peer[0])
		return a;
	a = first_as(t, ev->pid, ev->peer); /* an abort, without the name, came before it */
	return a && (!a->name[0] || !strcmp(a->name, ev->agent)) ? a : NULL;
}

struct conn_agent *agents_find(struct agents *t, const struct sp_event *ev)
{
	struct conn_agent *a;

	if (!ev->agent[0])
		return ev->peer[0] ? at(t, ev->pid, ev->peer) : NULL;
	a = named(t, ev);
	if (!a)
		return NULL;
	snprintf(a->name, sizeof(a->name), "%s", ev->agent);
	if (ev->peer[0])
		snprintf(a->peer, sizeof(a->peer), "%s", ev->peer);
	return a;
}

struct conn_agent *agents_get(struct agents *t, const struct sp_event *ev)
{
	struct conn_agent *a = agents_find(t, ev);

	if (a || (!ev->agent[0] && !ev->peer[0]) || HASH_COUNT(t->by_id) >= MAX_AGENTS)
		return a;
	a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	snprintf(a->name, sizeof(a->name), "%s", ev->agent);
	snprintf(a->peer, sizeof(a->peer), "%s", ev->peer);
	key_fill(&a->id, ev->pid, ev->agent[0] ? ev->agent : ev->peer);
	HASH_ADD(hh, t->by_id, id, sizeof(a->id), a);
	if (!a->hh.tbl) {
		free(a);
		return NULL;
	}
	return a;
}

bool agents_share(const struct agents *t, const struct conn_agent *a)
{
	for (const struct conn_agent *b = t->by_id; b; b = b->hh.next)
		if (b != a && b->id.pid == a->id.pid && !strcmp(b->peer, a->peer))
			return true;
	return false;
}
