// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM        1
#define uthash_nonfatal_oom(elt) ((elt)->hh.tbl = NULL)
#include <uthash.h>

#include "collect/collect.h"
#include "collect/confirm.h"
#include "collect/shown.h"
#include "util/cleanup.h"
#include "util/clock.h"

#define MAX_ITEMS 8192 /* in each state */

enum is {
	IS_WAITING = 0, /* the socket has shown it; the probe is to confirm it */
	IS_UNREAD,      /* and has not, within its time; told so */
	IS_TOLD,        /* the socket's event has gone on; the probe's is not to */
	IS_NATIVE,      /* the probe's has gone on; the socket's is not to */
	IS_MAX,
};

/* How long an item stays in its state. A server that looks at its socket again only after ten
 * minutes has long been told of. */
static const uint64_t stays_ns[IS_MAX] = {
	[IS_WAITING] = NS_PER_SEC,
	[IS_UNREAD] = 600 * NS_PER_SEC,
	[IS_TOLD] = 600 * NS_PER_SEC,
	[IS_NATIVE] = 60 * NS_PER_SEC,
};

struct key {
	uint32_t pid;
	int32_t chunk, need;
	int16_t probe; /* the uprobe */
	uint8_t role;
	char room[SP_ROOM_MAX], who[64], kind[16];
};

struct item {
	struct sp_event ev;
	uint64_t conn, since_ns;
	bool sent;
	bool first; /* of its process: the call that takes it may have begun before the attach */
	bool alone; /* ... and of such a one the probe shows nothing */
	struct equal *equal;
	struct item *after;       /* equal, in the same state, younger */
	struct item *prev, *next; /* in the same state, by age: in the order of the equal, too */
};

/* Equal messages. */
struct equal {
	struct key key;
	struct item *first[IS_MAX], *last[IS_MAX];
	uint32_t n;
	UT_hash_handle hh;
};

struct confirm {
	const struct profile *p;
	const struct sock_out *out;
	confirm_told told;
	void *ctx;
	struct equal *equals;
	struct shown *shown;
	struct {
		struct item *first, *last;
		size_t n;
	} all[IS_MAX];
	size_t alone; /* such items that wait */
	uint64_t confirmed, unread, over;
};

struct confirm *confirm_new(const struct profile *p, const struct sock_out *out, confirm_told told,
			    void *ctx)
{
	struct confirm *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->p = p;
	c->out = out;
	c->told = told;
	c->ctx = ctx;
	return c;
}

/* ---- queues ------------------------------------------------------------------------------- */

static const struct sock_entry *entry_of(const struct confirm *c, int probe)
{
	int at = probe >= 0 && probe < c->p->nprobes ? c->p->probes[probe].socket : -1;

	return c->p->sockets && at >= 0 && at < c->p->sockets->nentries ? &c->p->sockets->entry[at]
									: NULL;
}

/* Do sockets show this uprobe's messages, too? */
static bool is_shared(const struct confirm *c, int probe)
{
	for (int i = 0; c->p->sockets && probe >= 0 && i < c->p->sockets->nentries; i++)
		if (c->p->sockets->entry[i].same_as == probe)
			return true;
	return false;
}

static struct equal *equal_of(const struct confirm *c, const struct sp_event *ev, int probe,
			      struct key *key)
{
	struct equal *q;

	memset(key, 0, sizeof(*key)); /* the padding is part of the key */
	key->pid = ev->pid;
	key->probe = (int16_t)probe;
	key->role = ev->role;
	key->chunk = ev->chunk;
	key->need = ev->need;
	snprintf(key->room, sizeof(key->room), "%s", ev->room);
	snprintf(key->who, sizeof(key->who), "%s", ev->agent[0] ? ev->agent : ev->peer);
	snprintf(key->kind, sizeof(key->kind), "%s", ev->kind);
	HASH_FIND(hh, c->equals, key, sizeof(*key), q);
	return q;
}

static void enqueue(struct confirm *c, struct item *it, enum is is, uint64_t ns)
{
	struct equal *q = it->equal;

	it->since_ns = ns;
	it->after = NULL;
	if (q->last[is])
		q->last[is]->after = it;
	else
		q->first[is] = it;
	q->last[is] = it;
	it->next = NULL;
	it->prev = c->all[is].last;
	if (it->prev)
		it->prev->next = it;
	else
		c->all[is].first = it;
	c->all[is].last = it;
	c->all[is].n++;
	if (is == IS_WAITING && it->alone)
		c->alone++;
}

/* Take an item out of its queues: the oldest of its equals in this state. */
static void dequeue(struct confirm *c, struct item *it, enum is is)
{
	struct equal *q = it->equal;

	if (is == IS_WAITING && it->alone)
		c->alone--;
	q->first[is] = it->after;
	if (!q->first[is])
		q->last[is] = NULL;
	if (it->prev)
		it->prev->next = it->next;
	else
		c->all[is].first = it->next;
	if (it->next)
		it->next->prev = it->prev;
	else
		c->all[is].last = it->prev;
	c->all[is].n--;
}

static void item_free(struct confirm *c, struct item *it)
{
	struct equal *q = it->equal;

	free(it);
	if (--q->n)
		return;
	HASH_DEL(c->equals, q);
	free(q);
}

static void discard(struct confirm *c, struct item *it, enum is is)
{
	dequeue(c, it, is);
	item_free(c, it);
}

void confirm_free(struct confirm *c)
{
	if (!c)
		return;
	for (enum is is = 0; is < IS_MAX; is++)
		while (c->all[is].first)
			discard(c, c->all[is].first, is);
	shown_free(&c->shown);
	free(c);
}

static struct item *item_new(struct confirm *c, const struct sp_event *ev, int probe)
{
	struct item *it = calloc(1, sizeof(*it));
	struct key key;

	if (!it)
		return NULL;
	it->ev = *ev;
	it->equal = equal_of(c, ev, probe, &key);
	if (!it->equal) {
		it->equal = calloc(1, sizeof(*it->equal));
		if (!it->equal) {
			free(it);
			return NULL;
		}
		it->equal->key = key;
		HASH_ADD(hh, c->equals, key, sizeof(key), it->equal);
		if (!it->equal->hh.tbl) {
			free(it->equal);
			free(it);
			return NULL;
		}
	}
	it->equal->n++;
	return it;
}

/* ---- the ends of an item ------------------------------------------------------------------- */

static void tell(const struct confirm *c, const struct sp_event *ev, uint64_t conn, bool sent)
{
	owners_emit(c->out, ev);
	if (!sent)
		c->told(c->ctx, ev, conn, ev->ns);
}

static void keep(struct confirm *c, struct item *it, enum is is, uint64_t ns)
{
	enqueue(c, it, is, ns);
	if (c->all[is].n > MAX_ITEMS) {
		c->over++;
		discard(c, c->all[is].first, is);
	}
}

static void tell_unread(struct confirm *c, const struct item *it, uint64_t now_ns)
{
	struct sp_event ev;

	sp_event_init(&ev);
	ev.ns = now_ns;
	ev.pid = it->ev.pid;
	ev.role = ROLE_PEER;
	ev.probe = it->ev.probe;
	snprintf(ev.kind, sizeof(ev.kind), "unread");
	memcpy(ev.room, it->ev.room, sizeof(ev.room));
	memcpy(ev.agent, it->ev.agent, sizeof(ev.agent));
	memcpy(ev.peer, it->ev.peer, sizeof(ev.peer));
	snprintf(ev.note, sizeof(ev.note), "%s", sp_role_name(it->ev.role));
	owners_emit(c->out, &ev);
	c->unread++;
}

/* The probe does not confirm it: by its time, or (given up) for lack of room. */
static void unconfirmed(struct confirm *c, struct item *it, uint64_t now_ns, bool given_up)
{
	bool whole = shown_whole(c->shown, it->ev.pid, it->equal->key.probe);

	dequeue(c, it, IS_WAITING);
	if (!given_up && !it->sent && !it->first && whole) {
		tell_unread(c, it, now_ns);
		keep(c, it, IS_UNREAD, now_ns);
		return;
	}
	it->ev.ns = now_ns; /* its own time has been released */
	tell(c, &it->ev, it->conn, it->sent);
	keep(c, it, IS_TOLD, now_ns);
}

/* ---- both sides ---------------------------------------------------------------------------- */

void confirm_socket(struct confirm *c, const struct sp_event *ev, uint64_t conn, bool sent)
{
	const struct sock_entry *e = entry_of(c, ev->probe);
	struct item *it = e && e->same_as >= 0 ? item_new(c, ev, e->same_as) : NULL;

	if (!it) {
		tell(c, ev, conn, sent);
		return;
	}
	if (it->equal->first[IS_NATIVE]) {
		c->confirmed++;
		discard(c, it->equal->first[IS_NATIVE], IS_NATIVE);
		if (!sent)
			c->told(c->ctx, ev, conn, ev->ns);
		item_free(c, it);
		return;
	}
	it->conn = conn;
	it->sent = sent;
	it->first = shown_first(&c->shown, ev->pid, e->same_as);
	it->alone = it->first && !sent && !frames_cut_tells(&c->p->probes[e->same_as], ev->role);
	if (e->wins == SOCK_WINS_SOCKET || !c->out->ops.has_probe ||
	    !c->out->ops.has_probe(c->out->ops_ctx, ev->pid, e->same_as)) {
		tell(c, ev, conn, sent);
		keep(c, it, IS_TOLD, ev->ns);
		return;
	}
	enqueue(c, it, IS_WAITING, ev->ns);
	if (c->all[IS_WAITING].n > MAX_ITEMS) {
		c->over++;
		unconfirmed(c, c->all[IS_WAITING].first, ev->ns, true);
	}
}

/* The ends of a message say less than the whole: role, room and sender must do. */
static bool may_be(const struct item *it, const struct sp_event *cut)
{
	const struct sp_event *ev = &it->ev;

	if (it->equal->key.probe != cut->probe || ev->pid != cut->pid || ev->role != cut->role ||
	    strcmp(ev->room, cut->room) != 0)
		return false;
	if (ev->agent[0] && cut->agent[0])
		return !strcmp(ev->agent, cut->agent);
	if (ev->peer[0] && cut->peer[0])
		return !strcmp(ev->peer, cut->peer);
	return cut->room[0] != '\0';
}

/* The probe's message began before the attach: the socket's, which is whole, takes its place. */
static bool native_cut(struct confirm *c, const struct sp_event *cut)
{
	static const enum is from[] = {IS_WAITING, IS_UNREAD, IS_TOLD};

	for (size_t i = 0; i < ARRAY_SIZE(from); i++)
		for (struct item *it = c->all[from[i]].first; it; it = it->next) {
			if (!may_be(it, cut))
				continue;
			it = it->equal->first[from[i]]; /* the same but, perhaps, its address */
			c->confirmed++;
			dequeue(c, it, from[i]);
			it->ev.ns = cut->ns;
			it->ev.tid = cut->tid;
			if (from[i] != IS_TOLD)
				tell(c, &it->ev, it->conn, it->sent);
			item_free(c, it);
			return false;
		}
	return true;
}

/* Messages of one connection are taken in their order: those before this one have been, though the
 * probe has shown nothing of them (it came in their middle). */
static void taken_before(struct confirm *c, const struct item *taken, uint64_t now_ns)
{
	static const enum is from[] = {IS_UNREAD, IS_WAITING};

	for (size_t i = 0; i < ARRAY_SIZE(from); i++)
		for (struct item *it = c->all[from[i]].first, *next; it; it = next) {
			next = it->next;
			if (it->equal == taken->equal || it->conn != taken->conn || it->sent ||
			    it->ev.ns > taken->ev.ns || it->equal->first[from[i]] != it)
				continue;
			dequeue(c, it, from[i]);
			it->ev.ns = now_ns;
			tell(c, &it->ev, it->conn, it->sent);
			keep(c, it, IS_TOLD, now_ns);
		}
}

/* No socket message was there before it: one may follow. */
static void native_first(struct confirm *c, const struct sp_event *ev)
{
	struct item *it = item_new(c, ev, ev->probe);

	if (it)
		keep(c, it, IS_NATIVE, ev->ns);
}

bool confirm_native(struct confirm *c, const struct sp_event *ev)
{
	/* what has not been told before what has: so the number of events is right even where the
	 * probe has missed one of several equal messages */
	static const enum is from[] = {IS_WAITING, IS_UNREAD, IS_TOLD};
	struct equal *q;
	struct key key;

	if (!is_shared(c, ev->probe))
		return true;
	if (ev->flags & EV_CUT)
		return native_cut(c, ev);
	shown_message(&c->shown, ev->pid, ev->probe);
	q = equal_of(c, ev, ev->probe, &key);
	for (size_t i = 0; q && i < ARRAY_SIZE(from); i++) {
		struct item *it = q->first[from[i]];

		if (!it)
			continue;
		c->confirmed++;
		if (from[i] != IS_TOLD && !it->sent) {
			taken_before(c, it, ev->ns);
			c->told(c->ctx, &it->ev, it->conn, ev->ns);
		}
		discard(c, it, from[i]);
		return from[i] != IS_TOLD;
	}
	native_first(c, ev);
	return true;
}

/* What perhaps only the socket shows keeps its own time, as soon as all that is older has come in:
 * what the server does next is told by others, and must not come before it. */
static void tell_alone(struct confirm *c, uint64_t now_ns)
{
	for (struct item *it = c->all[IS_WAITING].first, *next; it && c->alone; it = next) {
		next = it->next;
		if (!it->alone || it->ev.ns > now_ns || it->equal->first[IS_WAITING] != it)
			continue;
		dequeue(c, it, IS_WAITING);
		tell(c, &it->ev, it->conn, it->sent);
		keep(c, it, IS_TOLD, it->ev.ns);
	}
}

void confirm_tick(struct confirm *c, uint64_t now_ns)
{
	tell_alone(c, now_ns);
	for (enum is is = 0; is < IS_MAX; is++) {
		struct item *it;

		while ((it = c->all[is].first) && it->since_ns + stays_ns[is] <= now_ns) {
			if (is == IS_WAITING)
				unconfirmed(c, it, now_ns, false);
			else
				discard(c, it, is);
		}
	}
}

void confirm_process_gone(struct confirm *c, uint32_t pid)
{
	for (enum is is = 0; is < IS_MAX; is++)
		for (struct item *it = c->all[is].first, *then; it; it = then) {
			then = it->next;
			if (it->ev.pid == pid)
				discard(c, it, is);
		}
	shown_gone(&c->shown, pid);
}

void confirm_stats(const struct confirm *c, struct collect_stats *st)
{
	st->confirmed = c->confirmed;
	st->unread = c->unread;
	st->sockets_over += c->over;
}
