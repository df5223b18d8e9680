// SPDX-License-Identifier: Apache-2.0
/* The tables of a view: rooms by name, request objects by (address, room, rid), workers by tid. */
#include <stdlib.h>
#include <string.h>

/* Without memory an element stays out of its table, and is given up: no exit() below main.c. */
#define HASH_NONFATAL_OOM        1
#define uthash_nonfatal_oom(elt) ((elt)->hh.tbl = NULL)

#include <utlist.h>

#include "python/view_priv.h"

#define KEY_FIXED (sizeof(uint64_t) + sizeof(void *))

struct view_room *view_room_find(const struct pyview *v, const char *name)
{
	struct view_room *r;

	HASH_FIND(hh, v->rooms, name, strlen(name), r);
	return r;
}

static size_t room_bytes(const struct view_room *r)
{
	return sizeof(*r) + strlen(r->name) + 1;
}

struct view_room *view_room_add(struct pyview *v, const char *name)
{
	size_t len = strlen(name);
	struct view_room *r = calloc(1, sizeof(*r) + len + 1);

	if (!r)
		return NULL;
	memcpy(r->name, name, len + 1);
	HASH_ADD_KEYPTR(hh, v->rooms, r->name, len, r);
	if (!r->hh.tbl) {
		free(r);
		return NULL;
	}
	v->bare++;
	v->bytes += room_bytes(r);
	return r;
}

void view_room_del(struct pyview *v, struct view_room *r)
{
	HASH_DEL(v->rooms, r);
	v->bare--;
	v->bytes -= room_bytes(r);
	free(r);
}

static bool is_item(const struct view_item *it, const struct pyview_request *q)
{
	return it && it->addr == q->addr && !strcmp(it->room->name, q->room) &&
	       !strcmp(it->rid, q->rid);
}

struct view_item *view_item_find(struct pyview *v, const struct pyview_request *q)
{
	struct view_item *it = v->cursor ? v->cursor->hh.next : v->items;
	struct {
		uint64_t addr;
		const struct view_room *room;
		char rid[sizeof(q->rid)];
	} key = {.addr = q->addr};

	/* queues keep their order, and so does the table */
	if (!is_item(it, q)) {
		key.room = view_room_find(v, q->room);
		if (!key.room)
			return NULL;
		memcpy(key.rid, q->rid, sizeof(key.rid));
		HASH_FIND(hh, v->items, &key, KEY_FIXED + strlen(q->rid), it);
	}
	if (it)
		v->cursor = it;
	return it;
}

static size_t item_bytes(const struct view_item *it)
{
	return sizeof(*it) + strlen(it->rid) + 1;
}

struct view_item *view_item_add(struct pyview *v, const struct pyview_request *q)
{
	struct view_room *r = view_room_find(v, q->room);
	size_t len = strlen(q->rid);
	struct view_item *it;

	if (!r)
		r = view_room_add(v, q->room);
	it = r ? calloc(1, sizeof(*it) + len + 1) : NULL;
	if (!it)
		return NULL; /* the room goes with the next round */
	it->addr = q->addr;
	it->room = r;
	memcpy(it->rid, q->rid, len + 1);
	HASH_ADD(hh, v->items, addr, KEY_FIXED + len, it);
	if (!it->hh.tbl) {
		free(it);
		return NULL;
	}
	if (!r->items)
		v->bare--;
	DL_APPEND(r->items, it);
	v->bytes += item_bytes(it);
	return it;
}

void view_item_del(struct pyview *v, struct view_item *it)
{
	struct view_room *r = it->room;

	HASH_DEL(v->items, it);
	DL_DELETE(r->items, it);
	if (!r->items)
		v->bare++;
	v->bytes -= item_bytes(it);
	v->cursor = NULL;
	free(it);
}

struct view_worker *view_worker_find(const struct pyview *v, uint32_t tid)
{
	struct view_worker *w;

	HASH_FIND(hh, v->workers, &tid, sizeof(tid), w);
	return w;
}

struct view_worker *view_worker_add(struct pyview *v, uint32_t tid)
{
	struct view_worker *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->tid = tid;
	HASH_ADD(hh, v->workers, tid, sizeof(tid), w);
	if (!w->hh.tbl) {
		free(w);
		return NULL;
	}
	v->bytes += sizeof(*w);
	return w;
}

void view_worker_del(struct pyview *v, struct view_worker *w)
{
	HASH_DEL(v->workers, w);
	v->bytes -= sizeof(*w);
	free(w);
}

void view_table_free(struct pyview *v)
{
	struct view_item *it, *next_item;
	struct view_room *r, *next_room;
	struct view_worker *w, *next_worker;

	HASH_ITER (hh, v->items, it, next_item) {
		view_item_del(v, it);
	}
	HASH_ITER (hh, v->rooms, r, next_room) {
		view_room_del(v, r);
	}
	HASH_ITER (hh, v->workers, w, next_worker) {
		view_worker_del(v, w);
	}
}
