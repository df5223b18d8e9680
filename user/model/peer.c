// SPDX-License-Identifier: Apache-2.0
/* Peers: agents by name, and which of them have announced themselves to a life. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "model/asked.h"

static size_t agent_key_fill(struct agent_key *k, uint32_t pid, const char *id)
{
	size_t len = strnlen(id, sizeof(k->id) - 1);

	memset(k, 0, sizeof(*k));
	k->pid = pid;
	memcpy(k->id, id, len);
	return offsetof(struct agent_key, id) + len;
}

static void idle_remove(struct model *m, struct agent *a)
{
	if (!a->idle)
		return;
	if (a->iprev)
		a->iprev->inext = a->inext;
	else
		m->guest_first = a->inext;
	if (a->inext)
		a->inext->iprev = a->iprev;
	else
		m->guest_last = a->iprev;
	a->idle = false;
}

static void idle_append(struct model *m, struct agent *a)
{
	a->inext = NULL;
	a->iprev = m->guest_last;
	if (a->iprev)
		a->iprev->inext = a;
	else
		m->guest_first = a;
	m->guest_last = a;
	a->idle = true;
}

static void agent_free(struct model *m, struct agent *a)
{
	idle_remove(m, a);
	HASH_DELETE(hh, m->agents, a);
	if (a->worker)
		worker_unref(m, a->worker);
	flow_free(m, &a->flow);
	mem_free(m, a, sizeof(*a));
}

/* The agent of an announcement or registration; a peer without a name is its address. */
struct agent *agent_get(struct model *m, uint32_t pid, const struct sp_event *ev)
{
	struct agent_key key;
	size_t len = agent_key_fill(&key, pid, ev->agent[0] ? ev->agent : ev->peer);
	struct agent *a;

	HASH_FIND(hh, m->agents, &key, len, a);
	if (!a) {
		if (HASH_COUNT(m->agents) >= MAX_AGENTS && m->guest_first)
			agent_free(m, m->guest_first);
		a = mem_new(m, sizeof(*a));
		if (!a)
			return NULL;
		a->key = key;
		a->num = m->next_agent++;
		HASH_ADD_KEYPTR(hh, m->agents, &a->key, len, a);
		if (!a->hh.tbl) {
			mem_free(m, a, sizeof(*a));
			return NULL;
		}
		idle_append(m, a);
	}
	if (ev->peer[0])
		snprintf(a->peer, sizeof(a->peer), "%s", ev->peer);
	a->gone_ns = 0; /* it speaks */
	return a;
}

/* Its address as everywhere else, and the name that the transport has for it, which may well be
 * another address. */
void agent_words(const struct agent *a, char *buf, size_t len)
{
	if (a->peer[0] && strcmp(a->peer, a->key.id) != 0)
		snprintf(buf, len, "%.40s (agent %.40s)", a->peer, a->key.id);
	else
		snprintf(buf, len, "%.40s", a->key.id);
}

void agent_ref(struct model *m, struct agent *a)
{
	idle_remove(m, a);
	a->refs++;
}

/* Kept after the last life, within a bound: it remembers which thread served the peer. */
void agent_unref(struct model *m, struct agent *a)
{
	if (!--a->refs)
		idle_append(m, a);
}

void agent_drop_pid(struct model *m, uint32_t pid)
{
	struct agent *a, *next;

	for (a = m->agents; a; a = next) {
		next = a->hh.next;
		if (a->key.pid == pid && !a->refs)
			agent_free(m, a);
	}
}

/* One agent that stands for the decode instance of a life, whatever the order in which its ranks
 * announced themselves: the one known longest. Peers that take no data have no queue. */
struct agent *life_agent(const struct life *l)
{
	struct agent *a = NULL;

	for (uint32_t i = 0; i < l->npeers; i++)
		if (!(l->peers[i].flags & PEER_NODATA) && (!a || l->peers[i].agent->num < a->num))
			a = l->peers[i].agent;
	return a;
}

bool life_quorum(const struct life *l)
{
	return l->npeers >= (l->quorum > 0 ? (uint32_t)l->quorum : 1u);
}

static bool has_peer(const struct life *l, const struct agent *a)
{
	for (uint32_t i = 0; i < l->npeers; i++)
		if (l->peers[i].agent == a)
			return true;
	return false;
}

/* May a's announcement belong to l? Else it opens the room a second time. */
bool life_accepts(const struct life *l, const struct agent *a)
{
	if (l->abort_ns || life_doomed(l) || has_peer(l, a))
		return false;
	if (l->quorum > 0)
		return l->npeers < (uint32_t)l->quorum;
	return l->stage <= STAGE_READY && !l->nops;
}

int life_announce(struct model *m, struct life *l, struct agent *a, const struct sp_event *ev)
{
	struct peer *p;

	if (ev->need > 0)
		l->quorum = ev->need;
	if (l->npeers >= MAX_PEERS_OF_LIFE || m->npeers >= MAX_PEERS) {
		l->uncertain = true;
		return 0;
	}
	if (mem_append(m, (void **)&l->peers, sizeof(*l->peers), l->npeers))
		return -ENOMEM;
	p = &l->peers[l->npeers++];
	p->agent = a;
	p->flags = ev->flags & EV_NODATA ? PEER_NODATA : 0;
	agent_ref(m, a);
	m->npeers++;
	if (!p->flags)
		l->ndata++;
	return 0;
}

/* ---- connections --------------------------------------------------------------------------- */

uint64_t life_gone_ns(const struct life *l)
{
	uint64_t first = 0;

	for (uint32_t i = 0; i < l->npeers; i++) {
		uint64_t ns = l->peers[i].agent->gone_ns;

		if (ns && (!first || ns < first))
			first = ns;
	}
	return first;
}

bool life_gone_well(const struct life *l)
{
	for (uint32_t i = 0; i < l->npeers; i++)
		if (l->peers[i].agent->gone_ns && !l->peers[i].agent->goes)
			return false;
	return true;
}

void peer_note_end(const struct life *l)
{
	for (uint32_t i = 0; i < l->npeers; i++)
		if (l->peers[i].agent->gone_ns)
			l->peers[i].agent->goes = true;
}

static void connection_ended(struct model *m, struct agent *a, const struct sp_event *ev, bool tell)
{
	if (!a->gone_ns)
		a->gone_ns = m->now;
	/* one that does so after every request is of no interest */
	if (tell && a->refs && !a->goes)
		tell_peer(m, ev, ev->kind);
}

/* Its name is not known: an address that a peer has announced, perhaps. */
static void address_ended(struct model *m, struct proc *p, const struct sp_event *ev)
{
	bool told = false;

	for (struct life *l = p->lives; l; l = l->next) {
		for (uint32_t i = 0; i < l->npeers; i++) {
			struct agent *a = l->peers[i].agent;

			if (a->gone_ns || strcmp(a->peer, ev->peer) != 0)
				continue;
			connection_ended(m, a, ev, !told);
			told = true;
		}
	}
}

static struct agent *agent_find(struct model *m, const struct sp_event *ev)
{
	struct agent_key key;
	size_t len = agent_key_fill(&key, ev->pid, ev->agent);
	struct agent *a = NULL;

	if (ev->agent[0])
		HASH_FIND(hh, m->agents, &key, len, a);
	return a;
}

/* ---- streams that are not read to the end -------------------------------------------------- */

static void dim_begins(struct proc *p, const char *peer)
{
	for (int i = 0; i < p->ndim; i++)
		if (!strcmp(p->dim_peer[i], peer))
			return;
	if (p->ndim == MAX_DIM || !peer[0]) {
		p->dim_more = true;
		return;
	}
	snprintf(p->dim_peer[p->ndim++], sizeof(p->dim_peer[0]), "%s", peer);
}

static bool dim_ends(struct proc *p, const char *peer)
{
	for (int i = 0; i < p->ndim; i++) {
		if (strcmp(p->dim_peer[i], peer) != 0)
			continue;
		memmove(p->dim_peer[i], p->dim_peer[--p->ndim], sizeof(p->dim_peer[0]));
		return true;
	}
	return false;
}

/* What passed, or passes, in this stream is not known to the end. */
static void note_dim(struct model *m, struct proc *p, const struct sp_event *ev, bool still)
{
	p->dim_ns = m->now;
	if (still)
		dim_begins(p, ev->peer);
	else
		dim_ends(p, ev->peer);
	if (still || !proc_dim(p, UINT64_MAX))
		snprintf(p->dim_last, sizeof(p->dim_last), "%s", ev->peer);
}

void peer_unfollowed(struct model *m)
{
	for (struct proc *p = m->procs; p; p = p->hh.next) {
		p->dim_ns = m->now;
		p->dim_more = true;
		p->dim_last[0] = '\0';
	}
}

bool proc_dim(const struct proc *p, uint64_t since_ns)
{
	return p->ndim || p->dim_more || p->dim_ns >= since_ns;
}

static bool is_kind(const struct sp_event *ev, const char *a, const char *b)
{
	return !strcmp(ev->kind, a) || !strcmp(ev->kind, b);
}

/* Events of a connection: facts about a peer, whatever its lives do. */
void peer_event(struct model *m, const struct sp_event *ev)
{
	struct proc *p = proc_get(m, ev->pid);
	struct agent *a = agent_find(m, ev);
	bool ended = is_kind(ev, "closed", "reset"), dim = is_kind(ev, "lost", "unreadable");

	if (!p)
		return;
	if (dim || !strcmp(ev->kind, "trusted"))
		note_dim(m, p, ev, dim);
	if (ended && dim_ends(p, ev->peer))
		p->dim_ns = m->now;
	if (ended && !ev->agent[0] && ev->peer[0])
		address_ended(m, p, ev);
	if (!a)
		return;
	if (ended)
		connection_ended(m, a, ev, true);
	else if (is_kind(ev, "opened", "trusted"))
		a->gone_ns = 0;
	if (dim || is_kind(ev, "opened", "trusted"))
		a->dim = dim;
}
