// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "collect/agents.h"
#include "collect/conns.h"

/* An ended connection is kept as long as a message that came over it may still be told. */
#define ENDED_NS     600000000000ull
#define MAX_LINKS    256 /* agents of one connection */
#define NO_RULE      0xff
#define DIR_BIT(dir) (1u << (dir))

struct conn {
	uint64_t id, ended_ns;
	uint32_t pid, home; /* which used it last, which was the first (of those that live) */
	uint8_t rule, decode;
	uint8_t follows;     /* DIR_BIT: decoded now */
	bool opened, spoken; /* told so; what it speaks is known */
	bool ended, reset;
	bool untrusted, unreadable; /* counted as such */
	bool dim;                   /* told that not all of it is read */
	char addr[64];              /* of the other side */
	struct conn_agent **agent;
	uint32_t nagents;
	struct conn *prev, *next;
	UT_hash_handle hh;
};

struct conn_list {
	struct conn *first, *last;
};

struct conns {
	const struct profile *p;
	const struct sock_out *out;
	struct conn *by_id;
	struct conn_list open, ended; /* by the last sign of life; by the end */
	struct agents agents;
	uint64_t seen, untrusted, unreadable, over;
};

struct conns *conns_new(const struct profile *p, const struct sock_out *out)
{
	struct conns *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->p = p;
	c->out = out;
	return c;
}

/* ---- the table ---------------------------------------------------------------------------- */

static void list_del(struct conn_list *l, struct conn *k)
{
	if (k->prev)
		k->prev->next = k->next;
	else
		l->first = k->next;
	if (k->next)
		k->next->prev = k->prev;
	else
		l->last = k->prev;
}

static void list_add(struct conn_list *l, struct conn *k)
{
	k->prev = l->last;
	k->next = NULL;
	if (l->last)
		l->last->next = k;
	else
		l->first = k;
	l->last = k;
}

static struct conn *find(const struct conns *c, uint64_t id)
{
	struct conn *k;

	HASH_FIND(hh, c->by_id, &id, sizeof(id), k);
	return k;
}

static void drop(struct conns *c, struct conn *k)
{
	for (uint32_t i = 0; i < k->nagents; i++) {
		struct conn_agent *a = k->agent[i];

		if (++a->forgotten >= a->open)
			agents_drop(&c->agents, a);
	}
	list_del(k->ended ? &c->ended : &c->open, k);
	HASH_DEL(c->by_id, k);
	free(k->agent);
	free(k);
}

void conns_free(struct conns *c)
{
	if (!c)
		return;
	while (c->open.first)
		drop(c, c->open.first);
	while (c->ended.first)
		drop(c, c->ended.first);
	agents_free(&c->agents);
	free(c);
}

static struct conn *get(struct conns *c, uint64_t id, uint32_t pid)
{
	struct conn *k = find(c, id);

	if (k) {
		if (!k->ended) {
			list_del(&c->open, k);
			list_add(&c->open, k);
		}
		return k;
	}
	if (HASH_COUNT(c->by_id) >= SP_MAX_CONNS) {
		c->over += !c->ended.first;
		drop(c, c->ended.first ? c->ended.first : c->open.first);
	}
	k = calloc(1, sizeof(*k));
	if (!k)
		return NULL;
	k->id = id;
	k->pid = k->home = pid;
	k->rule = NO_RULE;
	HASH_ADD(hh, c->by_id, id, sizeof(k->id), k);
	if (!k->hh.tbl) {
		free(k);
		return NULL;
	}
	list_add(&c->open, k);
	c->seen++;
	return k;
}

/* ---- events ------------------------------------------------------------------------------- */

static const struct sock_entry *entry_of(const struct conns *c, const struct conn *k)
{
	if (!c->p->sockets || k->rule >= c->p->sockets->nentries)
		return NULL;
	return &c->p->sockets->entry[k->rule];
}

static void say(const struct conns *c, const struct conn *k, uint64_t ns, const char *kind,
		const struct conn_agent *a, const char *note)
{
	const struct sock_entry *e = entry_of(c, k);
	struct sp_event ev;

	sp_event_init(&ev);
	ev.ns = ns;
	ev.pid = a ? a->id.pid : k->pid;
	ev.role = ROLE_PEER;
	ev.probe = e ? (int16_t)e->probe : -1;
	snprintf(ev.kind, sizeof(ev.kind), "%s", kind);
	snprintf(ev.note, sizeof(ev.note), "%s", note);
	/* an address that another agent has taken over would name that one, too */
	snprintf(ev.peer, sizeof(ev.peer), "%s",
		 a && a->peer[0] && !agents_share(&c->agents, a) ? a->peer : k->addr);
	if (a)
		snprintf(ev.agent, sizeof(ev.agent), "%s", agents_name(a));
	owners_emit(c->out, &ev);
}

/* A fact about a stream of messages, for each agent behind it and, last, for itself. A client of
 * HTTP is no peer: what is lost there is said of its rooms. */
static void say_stream(struct conns *c, struct conn *k, uint64_t ns, const char *kind,
		       const char *note)
{
	if (k->decode != SP_DEC_ZMTP || k->ended)
		return;
	for (uint32_t i = 0; i < k->nagents; i++)
		say(c, k, ns, kind, k->agent[i], note);
	say(c, k, ns, kind, NULL, note);
}

static const char *end_kind(const struct conn *k)
{
	return k->reset ? "reset" : "closed";
}

static void end(struct conns *c, struct conn *k, uint64_t ns, bool reset)
{
	bool alone = (!k->nagents && k->opened) || k->dim;

	if (k->ended)
		return;
	list_del(&c->open, k);
	list_add(&c->ended, k);
	k->ended = true;
	k->reset = reset;
	k->ended_ns = ns;
	for (uint32_t i = 0; i < k->nagents; i++) {
		struct conn_agent *a = k->agent[i];

		if (--a->open > a->forgotten)
			continue;
		if (!a->forgotten)
			say(c, k, ns, end_kind(k), a, "");
		agents_drop(&c->agents, a);
	}
	k->nagents = 0;
	if (alone)
		say(c, k, ns, end_kind(k), NULL, "");
}

static unsigned int wanted(const struct conns *c, const struct conn *k)
{
	const struct sock_entry *e = entry_of(c, k);

	if (k->decode == SP_DEC_HTTP || !e || !e->rule.dirs)
		return DIR_BIT(SP_DIR_IN) | DIR_BIT(SP_DIR_OUT);
	return e->rule.dirs;
}

static void count_untrusted(struct conns *c, struct conn *k)
{
	bool is = k->spoken && !k->unreadable && (k->follows & wanted(c, k)) != wanted(c, k);

	if (is && !k->untrusted)
		c->untrusted++;
	else if (!is && k->untrusted)
		c->untrusted--;
	k->untrusted = is;
}

/* ---- agents ------------------------------------------------------------------------------- */

static bool introduces(const struct sp_event *ev)
{
	return (ev->role == ROLE_ANNOUNCE || ev->role == ROLE_REGISTER || ev->role == ROLE_ABORT) &&
	       (ev->agent[0] || ev->peer[0]);
}

/* The agent of this connection that a message without a name comes from. */
static struct conn_agent *behind(const struct conn *k, const struct sp_event *ev)
{
	if (ev->agent[0])
		return NULL;
	for (uint32_t i = 0; i < k->nagents; i++)
		if (k->agent[i]->id.pid == ev->pid && !strcmp(k->agent[i]->peer, ev->peer))
			return k->agent[i];
	return NULL;
}

static void join(struct conns *c, struct conn *k, const struct sp_event *ev)
{
	struct conn_agent *a = behind(k, ev), **more;

	if (!a)
		a = agents_get(&c->agents, ev);
	for (uint32_t i = 0; a && i < k->nagents; i++)
		if (k->agent[i] == a)
			return;
	more = a && k->nagents < MAX_LINKS
		       ? realloc(k->agent, (k->nagents + 1) * sizeof(struct conn_agent *))
		       : NULL;
	if (!more) {
		c->over++;
		if (a && !a->open)
			agents_drop(&c->agents, a);
		return;
	}
	k->agent = more;
	k->agent[k->nagents++] = a;
	a->open++;
	say(c, k, ev->ns, "opened", a, "");
}

void conns_message(struct conns *c, const struct sp_event *ev, uint64_t conn)
{
	struct conn *k = get(c, conn, ev->pid);

	if (!k)
		return;
	if (k->rule == NO_RULE && ev->probe >= 0 && ev->probe < c->p->nprobes)
		k->rule = (uint8_t)c->p->probes[ev->probe].socket;
	k->decode = SP_DEC_ZMTP;
	k->spoken = true;
	k->follows |= DIR_BIT(SP_DIR_IN); /* or it would not have been seen */
	if (!k->ended)
		count_untrusted(c, k);
	if (!k->ended && introduces(ev))
		join(c, k, ev);
}

void conns_told(struct conns *c, const struct sp_event *ev, uint64_t conn, uint64_t ns)
{
	const struct conn *k = find(c, conn);
	struct conn_agent gone = {.id.pid = ev->pid};

	if (!k || !k->ended || !introduces(ev) || ev->role == ROLE_ABORT ||
	    agents_find(&c->agents, ev))
		return;
	snprintf(gone.name, sizeof(gone.name), "%s", ev->agent[0] ? ev->agent : ev->peer);
	snprintf(gone.peer, sizeof(gone.peer), "%s", ev->peer);
	say(c, k, ns + 1, end_kind(k), &gone, "");
}

/* ---- records ------------------------------------------------------------------------------ */

static void opened(struct conns *c, struct conn *k, const struct sp_rec_conn *rec)
{
	if (rec->num)
		k->follows = DIR_BIT(SP_DIR_IN) | DIR_BIT(SP_DIR_OUT);
	if (k->opened || k->decode != SP_DEC_ZMTP || k->ended)
		return;
	k->opened = true;
	say(c, k, rec->h.ns, "opened", NULL, rec->num ? "" : "it had begun before");
}

static const char *dir_name(unsigned int dir)
{
	return dir == SP_DIR_OUT ? "sent" : "received";
}

static void trusted(struct conns *c, struct conn *k, const struct sp_rec_conn *rec)
{
	unsigned int bit = DIR_BIT(rec->dir & 1);
	bool dim = k->dim, nothing = rec->why == SP_WHY_NOTHING;

	k->spoken &= !nothing;
	k->follows |= nothing ? 0 : bit;
	if (!nothing && !(wanted(c, k) & bit))
		return;
	k->dim = false;
	if (dim && k->decode != SP_DEC_ZMTP)
		say(c, k, rec->h.ns, "trusted", NULL, conns_why(rec->why));
	else if (!nothing)
		say_stream(c, k, rec->h.ns, "trusted", dir_name(rec->dir));
}

static void lost(struct conns *c, struct conn *k, const struct sp_rec_conn *rec)
{
	unsigned int bit = DIR_BIT(rec->dir & 1);
	char note[80];

	snprintf(note, sizeof(note), "%s: %s", dir_name(rec->dir), conns_why(rec->why));
	/* unix: how the server's own processes talk to each other */
	if (rec->why == SP_WHY_BEFORE && !k->dim && rec->family != AF_UNIX) {
		k->dim = true;
		say(c, k, rec->h.ns, "lost", NULL, note);
	}
	if (!(k->follows & bit))
		return;
	k->follows &= ~bit;
	if (!(wanted(c, k) & bit)) /* no message of interest travels there */
		return;
	k->dim = k->decode == SP_DEC_ZMTP;
	say_stream(c, k, rec->h.ns, "lost", note);
}

static void unreadable(struct conns *c, struct conn *k, const struct sp_rec_conn *rec)
{
	if (rec->why == SP_WHY_LONG)
		k->follows &= ~DIR_BIT(rec->dir & 1);
	else if (rec->why != SP_WHY_ENCODED) /* that is one request's body */
		k->follows = 0;
	if (k->unreadable)
		return;
	k->unreadable = true;
	k->dim = k->decode == SP_DEC_ZMTP;
	c->unreadable++;
	say_stream(c, k, rec->h.ns, "unreadable", conns_why(rec->why));
}

static void take(struct conns *c, struct conn *k, const struct sp_rec_conn *rec)
{
	/* one from its very beginning has said nothing yet */
	k->spoken |= rec->what != SP_CONN_OPEN || (!rec->num && rec->decode);
	switch (rec->what) {
	case SP_CONN_KIND:
		opened(c, k, rec);
		break;
	case SP_CONN_TRUST:
		trusted(c, k, rec);
		break;
	case SP_CONN_LOST:
		lost(c, k, rec);
		break;
	case SP_CONN_UNREADABLE:
		unreadable(c, k, rec);
		break;
	case SP_CONN_EOF:
		/* a client of HTTP may close its direction and wait for the reply */
		if (k->decode == SP_DEC_ZMTP)
			end(c, k, rec->h.ns, false);
		break;
	case SP_CONN_CLOSED:
	case SP_CONN_RESET:
		end(c, k, rec->h.ns, rec->what == SP_CONN_RESET);
		break;
	default:
		break;
	}
	if (!k->ended)
		count_untrusted(c, k);
}

void conns_record(struct conns *c, const struct sp_rec_conn *rec)
{
	bool begins = rec->what == SP_CONN_KIND || rec->what == SP_CONN_TRUST ||
		      rec->what == SP_CONN_UNREADABLE ||
		      (rec->what == SP_CONN_LOST && rec->why == SP_WHY_BEFORE) ||
		      (rec->what == SP_CONN_OPEN && rec->rule != NO_RULE);
	struct conn *k = begins ? get(c, rec->conn, rec->h.pid) : find(c, rec->conn);

	if (!k)
		return;
	if (rec->rule != NO_RULE)
		k->rule = rec->rule;
	if (rec->decode)
		k->decode = rec->decode;
	if (rec->h.pid)
		k->pid = rec->h.pid;
	if (!k->addr[0])
		conns_address(rec->family, rec->raddr, rec->rport, k->addr, sizeof(k->addr));
	take(c, k, rec);
}

bool conns_follows(const struct conns *c, uint64_t conn, int dir)
{
	const struct conn *k = find(c, conn);

	return k && k->follows & DIR_BIT(dir);
}

void conns_tick(struct conns *c, uint64_t now_ns)
{
	while (c->ended.first && c->ended.first->ended_ns + ENDED_NS <= now_ns)
		drop(c, c->ended.first);
}

void conns_process_gone(struct conns *c, uint32_t pid)
{
	struct conn *k, *next;

	HASH_ITER (hh, c->by_id, k, next) {
		if (k->home == pid)
			k->home = k->pid;
		else if (k->pid == pid)
			k->pid = k->home; /* a child that it had been shared with */
		if (k->pid == pid)
			drop(c, k);
	}
}

void conns_stats(const struct conns *c, struct collect_stats *st)
{
	st->conns = c->seen;
	st->untrusted = c->untrusted;
	st->unreadable_conns = c->unreadable;
	st->sockets_over += c->over;
}
