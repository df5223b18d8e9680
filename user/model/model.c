// SPDX-License-Identifier: Apache-2.0
/* The model from outside: new, event, advance, look, free. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/asked.h"
#include "model/calls.h"

/* Flows merge completions closer together than a 64th of the shortest deadline they are asked
 * about. */
#define FLOW_STEPS  64
#define QUANTUM_MIN 1000000ull

/* A life that is blind to its operations may wait longer, see stage_span. */
static void widen(struct model *m)
{
	m->window = m->longest + m->cfg.stage_ns[STAGE_INFLIGHT];
}

static void set_spans(struct model *m)
{
	uint64_t shortest = NEVER, longest = 0;

	for (int s = STAGE_READY; s <= STAGE_RELEASING; s++) {
		uint64_t span = m->cfg.stage_ns[s];

		if (span && span < shortest)
			shortest = span;
		if (span > longest)
			longest = span;
	}
	m->quantum = shortest == NEVER ? NS_S : shortest / FLOW_STEPS;
	if (m->quantum < QUANTUM_MIN)
		m->quantum = QUANTUM_MIN;
	m->longest = longest;
	m->window = longest;
	if (m->cfg.no_posts || m->pulls)
		widen(m);
}

static bool gives(const struct profile *p, enum sp_role role)
{
	for (int i = 0; i < p->nprobes; i++) {
		if (p->probes[i].event.role == role)
			return true;
		for (int k = 0; k < p->probes[i].nmatch; k++)
			if (p->probes[i].match[k].event.role == role)
				return true;
	}
	return false;
}

struct model *model_new(const struct model_cfg *cfg, const struct model_ops *ops, void *ctx)
{
	struct model *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->cfg = *cfg;
	m->ops = *ops;
	m->ctx = ctx;
	m->nkinds = 1; /* kind 0: unknown, "" */
	m->pulls = cfg->profile->nuprobes && !gives(cfg->profile, ROLE_POST);
	m->told_ends = gives(cfg->profile, ROLE_TOLD);
	set_spans(m);
	return m;
}

void model_free(struct model *m)
{
	struct room *r, *next;

	if (!m)
		return;
	/* nothing ends here: it is only no longer looked at */
	memset(&m->ops, 0, sizeof(m->ops));
	while (m->procs)
		proc_drop(m, m->procs);
	while (m->agents)
		agent_drop_pid(m, m->agents->key.pid);
	for (r = m->rooms; r; r = next) {
		next = r->hh.next;
		HASH_DELETE(hh, m->rooms, r);
		mem_free(m, r, room_bytes(r));
	}
	optab_free(m);
	free(m->heap);
	free(m);
}

void model_advance(struct model *m, uint64_t now_ns)
{
	timer_run(m, now_ns);
}

uint64_t model_next(const struct model *m)
{
	return m->nheap ? m->heap[0].ns : NEVER;
}

/* Every deadline begins anew when the process goes on. */
static int halt(struct model *m, struct proc *p, bool halted)
{
	int rc = 0;

	if (p->halted == halted)
		return 0;
	p->halted = halted;
	for (struct life *l = p->lives; l && !halted; l = l->next) {
		l->ahead_ns = m->now;
		if (l->stuck && l->stuck->again_ns < m->now)
			l->stuck->again_ns = m->now;
		if (timer_arm(m, l))
			rc = -ENOMEM;
	}
	return rc;
}

/* Whether operations are seen decides how long a life may wait for what. */
static int sight(struct model *m, uint32_t pid, int64_t code)
{
	struct proc *p = proc_get(m, pid);
	int rc = 0;

	if (!p)
		return -ENOMEM;
	p->blind = code & TARGET_BLIND;
	p->deaf = code & TARGET_DEAF;
	if (p->blind)
		widen(m);
	for (struct life *l = p->lives; l; l = l->next)
		if (timer_arm(m, l))
			rc = -ENOMEM;
	return rc;
}

/* The process is watched from here on. What was seen of it while the probes were being placed is a
 * part: of a room that was announced then, its companions may have been just before. */
static void began(struct model *m, struct proc *p)
{
	if (!p->attached_ns)
		p->attached_ns = m->now;
	for (struct life *l = p->lives; l; l = l->next)
		l->blurred = true;
}

static int target(struct model *m, const struct sp_event *ev)
{
	bool halted = !strcmp(ev->kind, "stopped");
	bool over = !strcmp(ev->kind, "exited") || !strcmp(ev->kind, "exec");
	bool attached;
	struct proc *p;

	tell_taken(m, ev, NULL);
	if (!strcmp(ev->kind, "blind") || !strcmp(ev->kind, "sighted"))
		return sight(m, ev->pid, ev->kind[0] == 'b' ? ev->code : 0);
	tell_target(m, ev, ev->kind);
	if (over) {
		HASH_FIND(hh, m->procs, &ev->pid, sizeof(ev->pid), p);
		if (p)
			proc_drop(m, p);
	}
	if (halted || !strcmp(ev->kind, "continued")) {
		p = proc_get(m, ev->pid);
		return p ? halt(m, p, halted) : -ENOMEM;
	}
	attached = !strcmp(ev->kind, "attached");
	if (!attached && !(ev->flags & EV_GAP))
		return 0;
	p = proc_get(m, ev->pid);
	if (!p)
		return -ENOMEM;
	if (attached)
		began(m, p);
	if (!(ev->flags & EV_GAP))
		return 0;
	p->gap_ns = m->now;
	return 0;
}

/* Stuck lives may have lost confidence. */
static void loss(struct model *m, const struct sp_event *ev)
{
	uint64_t before = m->next_life;

	tell_taken(m, ev, NULL);
	tell_loss(m, ev);
	if (!strcmp(ev->kind, SP_LOSS_TALLIES))
		return;
	if (m->lossy_ns < ev->op)
		m->lossy_ns = ev->op;
	if (!strcmp(ev->kind, SP_LOSS_CONNECTIONS))
		peer_unfollowed(m);
	for (struct proc *p = m->procs; p; p = p->hh.next) {
		struct life *next;

		for (struct life *l = p->lives; l && l->id <= before; l = next) {
			next = l->next;
			if (l->stuck)
				stall_again(m, l, m->now);
			else
				tell_changed(m, l);
		}
	}
}

static int registered(struct model *m, const struct sp_event *ev)
{
	tell_taken(m, ev, NULL);
	/* the process first: an agent goes with it */
	return proc_get(m, ev->pid) && agent_get(m, ev->pid, ev) ? 0 : -ENOMEM;
}

static int take(struct model *m, const struct sp_event *ev)
{
	switch (ev->role) {
	case ROLE_POST:
	case ROLE_STATUS:
	case ROLE_CLOSE:
		return route_op(m, ev);
	case ROLE_ANNOUNCE:
	case ROLE_ARRIVE:
	case ROLE_HELD:
	case ROLE_ABORT:
	case ROLE_TOLD:
	case ROLE_REPLY:
	case ROLE_RELEASE:
	case ROLE_CONTROL:
		return route_room(m, ev);
	case ROLE_REGISTER:
		return registered(m, ev);
	case ROLE_THREAD:
		return thread_event(m, ev);
	case ROLE_VIEW:
		return view_event(m, ev);
	case ROLE_CALL:
		return route_call(m, ev);
	case ROLE_PEER:
		if (ev->room[0] && !strcmp(ev->kind, "unread"))
			return route_unread(m, ev);
		if (ev->room[0] && !strcmp(ev->kind, "untracked"))
			return route_untracked(m, ev);
		tell_taken(m, ev, NULL);
		peer_event(m, ev);
		return 0;
	case ROLE_TARGET:
		return target(m, ev);
	case ROLE_LOSS:
		loss(m, ev);
		return 0;
	case ROLE_STALL:
		tell_taken(m, ev, NULL);
		/* what is asked meanwhile can be answered only then */
		if (ev->code > 0 && ev->ns + (uint64_t)ev->code > m->blind_ns)
			m->blind_ns = ev->ns + (uint64_t)ev->code;
		return 0;
	default:
		tell_taken(m, ev, NULL);
		return 0;
	}
}

int model_event(struct model *m, const struct sp_event *ev)
{
	int rc;

	timer_run(m, ev->ns);
	m->st.events++;
	rc = take(m, ev);
	doubt_trim(m);
	return rc;
}

int model_number(struct model *m, uint32_t pid, const char *room, uint32_t n)
{
	struct room *r = n > 1 ? room_get(m, pid, room) : NULL;

	if (r && r->nlives < n - 1)
		r->nlives = n - 1;
	return r || n <= 1 ? 0 : -ENOMEM;
}

void model_each(struct model *m, bool (*fn)(void *ctx, const struct model_life *l), void *ctx)
{
	struct model_life v;

	for (struct proc *p = m->procs; p; p = p->hh.next) {
		for (struct life *l = p->lives; l; l = l->next) {
			life_view(m, l, &v);
			if (!fn(ctx, &v))
				return;
		}
	}
}

size_t model_asks(const struct model *m)
{
	return m->nasks;
}

size_t model_open_lives(const struct model *m, uint32_t pid)
{
	const struct proc *p;

	HASH_FIND(hh, m->procs, &pid, sizeof(pid), p);
	return p ? p->nopen : 0;
}

size_t model_stuck(const struct model *m, enum sp_confidence min)
{
	size_t n = 0;

	for (const struct proc *p = m->procs; p; p = p->hh.next)
		for (const struct life *l = p->lives; l; l = l->next)
			if (l->stuck && !l->fake && l->stuck->conf >= (uint8_t)min)
				n++;
	return n;
}

static size_t table_bytes(const UT_hash_table *t)
{
	return t ? sizeof(*t) + t->num_buckets * sizeof(struct UT_hash_bucket) : 0;
}

void model_stats(const struct model *m, struct model_stats *s)
{
	*s = m->st;
	s->bytes += sizeof(*m);
	s->bytes += table_bytes(m->procs ? m->procs->hh.tbl : NULL);
	s->bytes += table_bytes(m->rooms ? m->rooms->hh.tbl : NULL);
	s->bytes += table_bytes(m->agents ? m->agents->hh.tbl : NULL);
	s->bytes += table_bytes(m->workers ? m->workers->hh.tbl : NULL);
}
