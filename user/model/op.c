// SPDX-License-Identifier: Apache-2.0
/* Operations of the transport: by (pid, handle) from their creation until they are closed, and at
 * most as long as their life, but while in progress they outlive it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "model/loose.h"

struct group *group_find(const struct life *l, uint8_t kind, int32_t chunk)
{
	for (uint32_t i = l->ngroups; i-- > 0;)
		if (l->groups[i].chunk == chunk && l->groups[i].kind == kind)
			return &l->groups[i];
	return NULL;
}

static struct group *group_get(struct model *m, struct life *l, const struct op *o)
{
	struct group *g = group_find(l, o->kind, o->chunk);

	if (g)
		return g;
	if (l->ngroups >= MAX_GROUPS_OF_LIFE ||
	    mem_append(m, (void **)&l->groups, sizeof(*g), l->ngroups)) {
		l->uncertain = true;
		return NULL;
	}
	g = &l->groups[l->ngroups++];
	*g = (struct group){.chunk = o->chunk, .kind = o->kind, .last = o->last};
	return g;
}

/* Has l seen this operation before, for every peer that takes data? Then one more of the kind
 * belongs to another life of the room. */
bool op_seen(const struct life *l, uint8_t kind, const struct sp_event *ev)
{
	const struct group *g = group_find(l, kind, ev->chunk);
	uint32_t takers = life_takers(l);
	bool ranks_tell = takers == 1 || (l->ranks & (l->ranks - 1));

	if (!g)
		return false;
	if (g->created >= takers * (ev->parts > 1 ? (uint32_t)ev->parts : 1u))
		return true;
	if (!ranks_tell || (ev->rank < 0 && takers > 1))
		return false;
	for (const struct op *o = l->ops; o; o = o->lnext)
		if (o->kind == kind && o->chunk == ev->chunk && o->rank == ev->rank &&
		    o->part == ev->part)
			return true;
	return false;
}

/* Is this post about the work that o stands for, as far as it says? */
bool op_same(struct model *m, const struct op *o, const struct sp_event *ev)
{
	if (ev->kind[0] && o->kind != kind_index(m, ev->kind))
		return false;
	return (ev->chunk < 0 || ev->chunk == o->chunk) && (ev->rank < 0 || ev->rank == o->rank) &&
	       (ev->part < 0 || ev->part == o->part);
}

static uint8_t needs_of(const struct model *m, const struct sp_event *ev)
{
	const struct profile *p = m->cfg.profile;
	uint8_t bits = 0;

	for (int i = 0; i < p->nneeds; i++)
		if ((ev->covers >> i & 1) ||
		    (!strcmp(p->needs[i].kind, ev->kind) && (!p->needs[i].last || ev->last == 1)))
			bits |= (uint8_t)(1u << i);
	return bits;
}

/* ---- what a life knows of its operations --------------------------------------------------- */

static void count_up(uint16_t *n)
{
	if (*n < UINT16_MAX)
		(*n)++;
}

/* A split chunk seen half-way for the first time: its earlier parts went by before the attach. */
static void group_assume(struct group *g, const struct life *l, const struct op *o)
{
	if (l->late && !g->created && o->part > 0 && o->part < o->parts)
		g->created = g->done = (uint16_t)o->part;
}

static void group_created(struct model *m, struct life *l, const struct op *o)
{
	struct group *g = group_get(m, l, o);

	if (!g)
		return;
	if (o->parts > 1) {
		if (g->parts <= 1)
			l->nsplit++;
		g->parts = (uint16_t)o->parts;
		group_assume(g, l, o);
	}
	if (o->last == 1)
		g->last = 1;
	count_up(&g->created);
}

static void group_done(struct life *l, const struct op *o)
{
	struct group *g = group_find(l, o->kind, o->chunk);

	if (!g)
		return;
	count_up(&g->done);
	/* a split chunk counts once all its parts are done */
	if (g->parts > 1 && g->done % g->parts)
		return;
	for (int i = 0; i < PROFILE_MAX_NEEDS; i++)
		if (o->needs >> i & 1)
			count_up(&l->need[i].done);
}

static void unlink_from_life(struct op *o)
{
	struct op **at = &o->life->ops;

	while (*at != o)
		at = &(*at)->lnext;
	*at = o->lnext;
	o->life->nops--;
}

void op_free(struct model *m, struct op *o)
{
	if (o->agent && o->state == OP_BUSY)
		o->agent->over++;
	worker_let_go(o);
	if (o->worker->unbound == o)
		o->worker->unbound = NULL;
	optab_remove(m, o);
	if (o->loose) {
		loose_remove(m, o);
	} else if (o->orphan) {
		m->norphans--;
		room_unref(m, o->room);
	} else {
		o->life->nbusy -= o->state <= OP_BUSY;
		unlink_from_life(o);
	}
	worker_unref(m, o->worker);
	if (o->agent)
		agent_unref(m, o->agent);
	m->nops--;
	mem_free(m, o, sizeof(*o));
}

/* Its life ends. What is in progress still holds its thread; the rest is of no more interest. */
void op_orphan(struct model *m, struct op *o)
{
	struct op *oldest = o->worker->busy;
	struct room *r = o->life->room;

	if (o->state != OP_BUSY || !o->holds) {
		op_free(m, o);
		return;
	}
	unlink_from_life(o);
	o->orphan = true;
	o->room = r;
	room_ref(m, r);
	m->norphans++;
	if (m->norphans > MAX_ORPHANS && oldest->orphan)
		op_free(m, oldest);
}

void op_adopt(struct model *m, struct op *o, struct life *l)
{
	m->norphans--;
	room_unref(m, o->room);
	o->orphan = false;
	o->life = l;
	o->lnext = l->ops;
	l->ops = o;
	l->nops++;
}

/* It counts no longer: the same operation may be created anew. */
static void uncount(struct op *o)
{
	struct life *l = op_life(o);
	struct group *g = l ? group_find(l, o->kind, o->chunk) : NULL;

	if (g && g->created)
		g->created--;
	for (int i = 0; l && i < PROFILE_MAX_NEEDS; i++)
		if ((o->needs >> i & 1) && l->need[i].seen)
			l->need[i].seen--;
}

/* The handle stays unknown (0) when only the entry of the call was seen: the thread's next post
 * names it. */
int op_bind(struct model *m, struct op *o, uint64_t handle)
{
	struct op *old = handle ? op_find(m, o->pid, handle) : NULL;

	if (old) {
		/* the address is in use again: its release was not seen, nor, perhaps, its end */
		if (old->state <= OP_BUSY && op_life(old))
			old->life->uncertain = true;
		op_close(m, old);
	}
	if (!handle) {
		/* a creation that failed is followed by another one, or by nothing */
		if (o->worker->unbound) {
			uncount(o->worker->unbound);
			op_free(m, o->worker->unbound);
		}
		o->worker->unbound = o;
		return 0;
	}
	o->handle = handle;
	return optab_add(m, o);
}

struct did did_op(const struct op *o, uint8_t role, uint8_t status)
{
	return (struct did){
		.role = role,
		.status = status,
		.kind = o->kind,
		.chunk = o->chunk,
		.rank = o->rank,
		.last = o->last,
		.op = o->handle,
		.need = -1,
	};
}

static void moved(struct model *m, struct op *o)
{
	o->worker->act_ns = m->now;
	if (o->loose)
		return;
	flow_push(m, &o->worker->flow, o->life_id, m->now);
	if (!o->orphan)
		flow_push(m, &o->life->proc->flow, o->life_id, m->now);
}

static void create_failed(struct model *m, struct life *l, const struct sp_event *ev)
{
	struct did did = {.role = ROLE_POST, .status = OPS_ERROR, .flags = EV_CREATED, .need = -1};
	struct rare *r = life_rare(m, l);

	if (r) {
		r->create_failed_ns = m->now;
		r->create_code = ev->code;
		snprintf(r->error_note, sizeof(r->error_note), "%.*s",
			 (int)sizeof(r->error_note) - 1, ev->note);
	}
	did.kind = kind_index(m, ev->kind);
	did.chunk = ev->chunk;
	did.rank = ev->rank;
	did.last = ev->last;
	life_progress(m, l, &did);
}

static void op_fill(struct model *m, struct op *o, const struct sp_event *ev)
{
	o->pid = ev->pid;
	o->chunk = ev->chunk;
	o->rank = ev->rank;
	o->part = (int16_t)(ev->part < INT16_MAX ? ev->part : INT16_MAX);
	o->parts = (int16_t)(ev->parts < INT16_MAX ? ev->parts : INT16_MAX);
	o->last = ev->last;
	o->kind = kind_index(m, ev->kind);
	o->needs = needs_of(m, ev);
	o->since_ns = m->now;
	o->state = OP_CREATED;
}

static void life_takes(struct life *l, const struct op *o)
{
	l->nops++;
	l->nbusy++;
	if (o->rank >= 0)
		l->ranks |= 1ull << (o->rank & 63);
	for (int i = 0; i < PROFILE_MAX_NEEDS; i++)
		if (o->needs >> i & 1)
			count_up(&l->need[i].seen);
	if (l->rare)
		l->rare->create_failed_ns = 0;
	if (l->stage != STAGE_INFLIGHT)
		l->stage = STAGE_INFLIGHT;
}

struct op *op_new(struct model *m, struct worker *w, const struct sp_event *ev)
{
	struct op *o = mem_new(m, sizeof(*o));

	if (!o)
		return NULL;
	op_fill(m, o, ev);
	o->worker = w;
	worker_ref(w);
	m->nops++;
	return o;
}

void op_join(struct model *m, struct op *o, struct life *l)
{
	o->life = l;
	o->life_id = l->id;
	o->life_number = l->number;
	o->agent = life_agent(l);
	if (o->agent)
		agent_ref(m, o->agent);
	o->lnext = l->ops;
	l->ops = o;
	life_takes(l, o);
	group_created(m, l, o);
}

/* Over when it is seen, and without a handle: nothing more will come of it. */
static bool at_once(const struct sp_event *ev)
{
	return !ev->op && !(ev->flags & EV_CREATED) &&
	       (ev->status == OPS_DONE || ev->status == OPS_ERROR);
}

/* A new operation for l. Not known afterwards when it was refused (bounds): l is then uncertain. */
int op_create(struct model *m, struct life *l, const struct sp_event *ev)
{
	struct worker *w = worker_get(m, l->proc, ev->tid);
	struct did did;
	struct op *o;

	if (!w)
		return -ENOMEM;
	if (ev->status == OPS_ERROR && (ev->flags & EV_CREATED)) {
		create_failed(m, l, ev);
		return 0;
	}
	if (l->nops >= MAX_OPS_OF_LIFE || m->nops >= MAX_OPS) {
		l->uncertain = true;
		return 0;
	}
	o = op_new(m, w, ev);
	if (!o)
		return -ENOMEM;
	worker_serves(m, w, l);
	op_join(m, o, l);
	if (!at_once(ev) && op_bind(m, o, ev->op)) {
		op_free(m, o);
		return -ENOMEM;
	}
	did = did_op(o, ROLE_POST, OPS_UNKNOWN);
	moved(m, o);
	life_progress(m, l, &did);
	timer_arm(m, l);
	if (!(ev->flags & EV_CREATED))
		op_post(m, o, ev);
	return 0;
}

static void op_final(struct model *m, struct op *o, enum op_state state, const struct sp_event *ev)
{
	struct life *l = op_life(o);
	struct did did = did_op(o, ROLE_STATUS, state == OP_DONE ? OPS_DONE : OPS_ERROR);

	if (o->agent && o->state == OP_BUSY) {
		o->agent->over++;
		flow_push(m, &o->agent->flow, o->seq, m->now);
	}
	worker_let_go(o);
	o->state = (uint8_t)state;
	o->since_ns = m->now;
	moved(m, o);
	if (!l) {
		if (o->loose && state == OP_ERROR)
			loose_failed(m, o, ev);
		op_free(m, o);
		return;
	}
	l->nbusy--;
	if (state == OP_DONE) {
		l->ndone++;
		group_done(l, o);
	} else {
		struct rare *r = life_rare(m, l);

		if (r && !l->error_ns) {
			r->error_code = ev->code;
			snprintf(r->error_note, sizeof(r->error_note), "%.*s",
				 (int)sizeof(r->error_note) - 1, ev->note);
		}
		if (!l->error_ns)
			l->error_ns = m->now;
		/* the thread gives up the whole batch: nobody polls the others any more */
		for (struct op *b = l->ops; b; b = b->lnext)
			worker_let_go(b);
	}
	life_progress(m, l, &did);
	life_settle(m, l);
}

/* It is in its thread's hands now, and in its peer's queue. */
static void op_posted(struct model *m, struct op *o)
{
	o->state = OP_BUSY;
	o->since_ns = m->now;
	if (o->agent) {
		o->seq = o->agent->posted++;
		o->over_at_post = (uint32_t)o->agent->over;
	}
	worker_hold(m, o->worker, o);
}

/* The return of the post call: in progress, done at once, or refused. */
void op_post(struct model *m, struct op *o, const struct sp_event *ev)
{
	if (o->state != OP_CREATED) {
		/* posted again: no progress, and only its answer counts */
		op_status(m, o, ev);
		return;
	}
	op_posted(m, o);
	moved(m, o);
	if (ev->status == OPS_ERROR) {
		op_final(m, o, OP_ERROR, ev);
		return;
	}
	if (op_life(o)) {
		struct did did = did_op(o, ROLE_POST, OPS_UNKNOWN);

		life_progress(m, o->life, &did);
	}
	if (ev->status == OPS_DONE)
		op_final(m, o, OP_DONE, ev);
}

void op_status(struct model *m, struct op *o, const struct sp_event *ev)
{
	if (o->state >= OP_DONE)
		return;
	/* an answer for an operation whose post was not seen: it must have been posted */
	if (o->state == OP_CREATED && ev->status != OPS_UNKNOWN)
		op_posted(m, o);
	if (ev->status == OPS_DONE)
		op_final(m, o, OP_DONE, ev);
	else if (ev->status == OPS_ERROR)
		op_final(m, o, OP_ERROR, ev);
}

/* Closed before it was over: given up by the server. The chunk may still be sent anew. */
static void abandoned(struct model *m, struct op *o)
{
	struct rare *r = life_rare(m, o->life);

	if (r)
		r->abandoned_ns = m->now;
	uncount(o);
}

void op_close(struct model *m, struct op *o)
{
	if (op_life(o) && o->state <= OP_BUSY)
		abandoned(m, o);
	op_free(m, o);
}
