/* SPDX-License-Identifier: Apache-2.0 */
/* What a view remembers: the parts of view.c among themselves. */
#ifndef SP_PYTHON_VIEW_PRIV_H
#define SP_PYTHON_VIEW_PRIV_H

#include <uthash.h>

#include "python/view.h"

/* What a snapshot says about a room. */
struct view_facts {
	int64_t code;       /* value, HELD_NO_ENTRY or HELD_UNKNOWN */
	bool entry;         /* the status table has one, whatever its value */
	int32_t seen, need; /* peers; -1 unknown */
	uint32_t tid;
	uint8_t flags; /* EV_AT, EV_ORPHAN, EV_WAITS */
};

/* A room that the status table or an item names. */
struct view_item;
struct view_room {
	UT_hash_handle hh;
	struct view_item *items;
	/* this snapshot, the accepted one before, what two of them agreed on last */
	struct view_facts now, before, sure;
	int64_t told;          /* without an item: the code last said; HELD_UNKNOWN: none */
	uint32_t round, born;  /* `now` was filled in; first seen in */
	uint32_t listed_round; /* an item of it that was known before was listed in */
	uint8_t no_entry;      /* complete snapshots in a row without an entry; at most 2 */
	bool code_agreed;      /* sure.code comes from this snapshot */
	char name[];
};

/* A request object. */
struct view_item {
	UT_hash_handle hh;
	struct view_item *prev, *next; /* of the same room */
	uint64_t gone_ns;              /* start of the first snapshot without it */
	struct {
		int64_t code;
		int32_t seen, need, sent, total;
		uint32_t tid;
		int8_t queue; /* -1: in none */
		uint8_t flags;
	} told;                                  /* the last event */
	int32_t sent, sent_before, sent_sure;    /* -1 unknown */
	int32_t total, total_before, total_sure; /* -1 unknown */
	uint32_t round, born;                    /* last listed in; first listed in */
	int8_t queue, queue_before;              /* this snapshot's and the one's before; -1 */
	uint8_t gone;                            /* complete snapshots in a row without it */
	bool sure;                               /* confirmed once; then `told` is set */
	bool had_entry;                          /* be it in an earlier queue */
	/* the key, contiguous */
	uint64_t addr;
	struct view_room *room;
	char rid[];
};

struct view_worker {
	UT_hash_handle hh;
	uint32_t tid, round, born;
	uint32_t before_round; /* of `before` */
	bool has_told;
	char room[SP_ROOM_MAX], before[SP_ROOM_MAX], told[SP_ROOM_MAX];
};

struct pyview {
	const struct profile_python *py;
	uint32_t pid;
	uint32_t round;   /* accepted snapshots so far */
	uint64_t last_ns; /* start of the last accepted one */
	bool last_complete;
	bool failed;                       /* out of memory in this round */
	bool boot_missing;                 /* told so */
	uint8_t boot_absent, boot_present; /* accepted snapshots in a row, at most 2 */
	uint8_t sure_rounds;               /* the same, of those in which all workers are known */
	/* Queues, by bit: a request of it has been seen with an entry; none of its rooms seems to
	 * be of the table, told so; perhaps told so, before a reset. Rounds without that, at
	 * most 2.
	 */
	uint8_t fits, misfit, misfit_perhaps, fit_rounds[PY_MAX_QUEUES];
	/* told so; after a reset it may have been, and the next round says which it is */
	enum { WORKERS_SURE, WORKERS_UNSURE, WORKERS_PERHAPS } workers_told;
	uint32_t boot_tid;
	struct view_room *rooms;
	struct view_item *items;
	struct view_worker *workers;
	size_t bare;   /* rooms without an item */
	size_t listed; /* confirmed items that are in a queue */
	size_t gone;   /* confirmed items that are in none */
	size_t bytes;
	struct view_item *cursor; /* the last one found in this round */
};

/* A snapshot being taken. */
struct view_take {
	struct pyview *v;
	const struct py_snapshot *s;
	pyview_fn fn;
	void *ctx;
	size_t surplus; /* requests in no queue that are to be forgotten */
};

#define VIEW_TWICE 2 /* snapshots that must agree */
static inline uint8_t view_twice(uint8_t n)
{
	return n < VIEW_TWICE ? n + 1 : n;
}

/* view_agree.c */
void view_event_init(const struct view_take *t, struct sp_event *ev, enum sp_role role,
		     const char *room);
/* What the snapshot being taken says of a room: nothing at first. */
struct view_facts *view_facts_of(const struct view_take *t, struct view_room *r);
/* Compare all that was noted with the snapshot before, and say what is confirmed and new. */
void view_agree(struct view_take *t);

/* view_threads.c */
void view_agree_threads(const struct view_take *t);

/* view_table.c; add: NULL means out of memory. */
struct view_room *view_room_find(const struct pyview *v, const char *name);
struct view_room *view_room_add(struct pyview *v, const char *name);
void view_room_del(struct pyview *v, struct view_room *r);
struct view_item *view_item_find(struct pyview *v, const struct pyview_request *q);
struct view_item *view_item_add(struct pyview *v, const struct pyview_request *q);
void view_item_del(struct pyview *v, struct view_item *it);
struct view_worker *view_worker_find(const struct pyview *v, uint32_t tid);
struct view_worker *view_worker_add(struct pyview *v, uint32_t tid);
void view_worker_del(struct pyview *v, struct view_worker *w);
void view_table_free(struct pyview *v);

#endif
