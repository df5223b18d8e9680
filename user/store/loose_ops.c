// SPDX-License-Identifier: Apache-2.0
/*
 * Operations posted without a room, when not everything is recorded. Which life one of them was for
 * may show later, and what a verdict said may have hung on it: so its post, and what is told of it
 * while it is of no life, are kept while it is open, and for KEPT_NS from then on; for good when a
 * verdict was made meanwhile.
 */
#include <stdlib.h>

/* Without memory an operation stays out of the table: what is told of it is kept. */
#define HASH_NONFATAL_OOM        1
#define uthash_nonfatal_oom(elt) ((elt)->hh.tbl = NULL)
#include <uthash.h>
#include <utlist.h>

#include "store/buffer.h"
#include "util/clock.h"

#define KEPT_NS  (600 * NS_PER_SEC) /* longer than any deadline of a stage */
#define OPS_MAX  65536u             /* the oldest are kept for good */
#define TOLD_MAX 4                  /* events of one operation that are dropped with it */

struct loose_op {
	UT_hash_handle hh;
	struct loose_op *prev, *next; /* closed ones, in that order */
	struct {
		uint64_t op, pid;
	} key;
	uint64_t seq[TOLD_MAX];
	uint64_t post_ns, closed_ns;
	int n;
};

static void drop_closed(struct loose *s, struct loose_op *o)
{
	DL_DELETE(s->closed, o);
	s->nops--;
	free(o);
}

static struct loose_op *find(const struct loose *s, const struct sp_event *ev)
{
	struct loose_op *o, key = {.key = {.op = ev->op, .pid = ev->pid}};

	HASH_FIND(hh, s->ops, &key.key, sizeof(key.key), o);
	return o;
}

bool loose_op_wanted(const struct loose *s, const struct sp_event *ev)
{
	if (ev->role == ROLE_POST)
		return !ev->room[0];
	return (ev->role == ROLE_STATUS || ev->role == ROLE_CLOSE) && ev->op && find(s, ev);
}

static void close_op(struct loose *s, struct loose_op *o, uint64_t now_ns)
{
	HASH_DEL(s->ops, o);
	o->closed_ns = now_ns;
	DL_APPEND(s->closed, o);
}

static struct loose_op *posted(struct loose *s, const struct sp_event *ev, uint64_t now_ns)
{
	struct loose_op *o = ev->op ? find(s, ev) : NULL;

	if (o && !(ev->flags & EV_CREATED))
		return o; /* created before, posted now */
	if (o)
		close_op(s, o, now_ns); /* the handle is used anew */
	if (s->nops >= OPS_MAX)
		return NULL;
	o = calloc(1, sizeof(*o));
	if (!o)
		return NULL;
	o->key.op = ev->op;
	o->key.pid = ev->pid;
	o->post_ns = now_ns;
	s->nops++;
	if (!ev->op) { /* nothing more will be told of it */
		o->closed_ns = now_ns;
		DL_APPEND(s->closed, o);
		return o;
	}
	HASH_ADD(hh, s->ops, key, sizeof(o->key), o);
	if (o->hh.tbl)
		return o;
	s->nops--;
	free(o);
	return NULL;
}

void loose_op_note(struct loose *s, const struct sp_event *ev, uint64_t now_ns, uint64_t seq,
		   bool of_life)
{
	struct loose_op *o = NULL;

	if (ev->role == ROLE_POST && !ev->room[0] && !of_life)
		o = posted(s, ev, now_ns);
	else if ((ev->role == ROLE_STATUS || ev->role == ROLE_CLOSE) && ev->op)
		o = find(s, ev);
	if (!o)
		return;
	if (!of_life && o->n < TOLD_MAX)
		o->seq[o->n++] = seq;
	if (ev->role == ROLE_CLOSE)
		close_op(s, o, now_ns);
}

void loose_op_verdict(struct loose *s, uint64_t now_ns)
{
	s->verdict_ns = now_ns;
}

void loose_ops_expire(struct loose *s, uint64_t now_ns, struct batch *b)
{
	while (s->closed && now_ns - s->closed->closed_ns > KEPT_NS) {
		struct loose_op *o = s->closed;

		for (int i = 0; i < o->n && o->post_ns > s->verdict_ns; i++)
			batch_unwant(b, o->seq[i]);
		drop_closed(s, o);
	}
}

void loose_ops_free(struct loose *s)
{
	while (s->closed)
		drop_closed(s, s->closed);
	while (s->ops) {
		struct loose_op *o = s->ops;

		HASH_DEL(s->ops, o);
		s->nops--;
		free(o);
	}
}
