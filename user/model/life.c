// SPDX-License-Identifier: Apache-2.0
/* One life of a room: opening, progress, stages, what completes it, and its end. */
#include <string.h>

#include "model/asked.h"
#include "model/calls.h"

static size_t life_bytes(const struct model *m)
{
	return sizeof(struct life) + (size_t)m->cfg.profile->nneeds * sizeof(struct need_count);
}

struct rare *life_rare(struct model *m, struct life *l)
{
	if (!l->rare)
		l->rare = mem_new(m, sizeof(*l->rare));
	return l->rare;
}

/* How often each need must be seen: once for each announced peer that takes data. Without
 * announcements (the life is older than the watch) the ranks that were seen stand for them. */
uint32_t life_takers(const struct life *l)
{
	uint32_t n = l->npeers ? l->ndata : (uint32_t)__builtin_popcountll(l->ranks);

	return n ? n : 1;
}

/* Most likely over for the server, though its end cannot be seen. */
bool life_doomed(const struct life *l)
{
	return l->abort_ns || l->error_ns || (l->rare && l->rare->create_failed_ns);
}

/* Needs are posted in the profile's order: in a life seen half-way, a later one tells that the
 * earlier ones happened before the attach. */
static bool need_assumed(const struct model *m, const struct life *l, int i)
{
	if (!l->late || l->need[i].seen)
		return false;
	for (int k = i + 1; k < m->cfg.profile->nneeds; k++)
		if (l->need[k].seen)
			return true;
	return false;
}

bool need_met(const struct model *m, const struct life *l, int i)
{
	uint32_t times = m->cfg.profile->needs[i].once ? 1 : life_takers(l);

	return l->need[i].done >= times || need_assumed(m, l, i);
}

static bool parts_missing(const struct life *l)
{
	for (uint32_t i = 0; l->nsplit && i < l->ngroups; i++)
		if (l->groups[i].parts > 1 && l->groups[i].created % l->groups[i].parts)
			return true;
	return false;
}

bool life_complete(const struct model *m, const struct life *l)
{
	if (!l->ndone || l->nbusy || l->error_ns)
		return false;
	/* how much there is to send is not known: its end is told */
	if (!m->cfg.profile->nneeds && m->told_ends)
		return false;
	for (int i = 0; i < m->cfg.profile->nneeds; i++)
		if (!need_met(m, l, i))
			return false;
	return !parts_missing(l);
}

void life_settle(struct model *m, struct life *l)
{
	if (l->stage != STAGE_INFLIGHT || !life_complete(m, l))
		return;
	if (sees_release(m, l))
		life_releasing(m, l);
	else
		life_end(m, l, OUTCOME_DONE);
}

void life_releasing(struct model *m, struct life *l)
{
	life_stage(m, l, STAGE_RELEASING);
	/* it may be over before any snapshot has seen it */
	if (view_active(l->proc) && !seen_listed(l))
		view_watch_end(m, l, m->now);
}

void life_stage(struct model *m, struct life *l, enum sp_stage stage)
{
	l->stage = (uint8_t)stage;
	timer_arm(m, l);
}

void life_progress(struct model *m, struct life *l, const struct did *did)
{
	if (l->stuck)
		stall_clear(m, l);
	if (l->seen && l->seen->waits)
		view_unwait(m, l->seen);
	l->progress_ns = m->now;
	l->progress_id = m->next_life + 1;
	l->waits = l->deferred = false;
	l->did = *did;
	/* what was stuck, or waited for a look, was to be seen to later than this */
	timer_arm(m, l);
}

/* Lives of a process are listed in order of opening; the first one's prev is the last. */
static void link_to_proc(struct life *l, struct proc *p)
{
	struct life *after = p->lives ? p->lives->prev : NULL;

	p->nopen++;
	while (after && after->id > l->id)
		after = after == p->lives ? NULL : after->prev;
	l->next = after ? after->next : p->lives;
	if (after)
		l->prev = after;
	else
		l->prev = p->lives ? p->lives->prev : l;
	if (l->next)
		l->next->prev = l;
	else if (after)
		p->lives->prev = l;
	if (after)
		after->next = l;
	else
		p->lives = l;
}

static void link_life(struct life *l, struct room *r, struct proc *p)
{
	struct life **at = &r->first;

	while (*at && (*at)->id < l->id)
		at = &(*at)->rnext;
	l->rnext = *at;
	*at = l;
	r->nopen++;
	link_to_proc(l, p);
}

static void unlink_life(struct life *l)
{
	struct life **at = &l->room->first;
	struct proc *p = l->proc;

	while (*at != l)
		at = &(*at)->rnext;
	*at = l->rnext;
	l->room->nopen--;
	p->nopen--;
	if (l->next)
		l->next->prev = l->prev;
	else
		p->lives->prev = l->prev;
	if (p->lives == l)
		p->lives = l->next;
	else
		l->prev->next = l->next;
}

void life_overlap(struct model *m, struct life *old, struct life *young)
{
	bool doubt = life_doomed(old) || old->stuck;
	struct rare *o, *y;

	if (old->rare && old->rare->overlap_ns && young->rare && young->rare->overlap_ns)
		return;
	o = life_rare(m, old);
	y = life_rare(m, young);
	if (o) {
		o->overlap_ns = m->now;
		o->other_life = young->number;
		o->reuse_doubt |= doubt;
	}
	if (y) {
		y->overlap_ns = m->now;
		y->other_life = old->number;
		y->reuse_doubt |= doubt;
	}
}

/* The room is opened again while a life of it is open. One that is complete has most likely been
 * let go already: the view, which shows it, comes a moment later. */
static void note_overlap(struct model *m, struct room *r, struct life *young)
{
	for (struct life *l = r->first; l && l != young; l = l->rnext)
		if (l->stage != STAGE_RELEASING || l->stuck || m->cfg.sees_release || l->tracked)
			life_overlap(m, l, young);
}

static void take_early_abort(struct model *m, struct room *r, struct life *l)
{
	struct rare *x;

	if (r->abort_ns && m->now - r->abort_ns <= ABORT_KEPT_NS) {
		x = life_rare(m, l);
		if (x)
			x->abort_early_ns = r->abort_ns;
	}
	r->abort_ns = 0;
}

static void make_room_for_life(struct model *m, struct room *r, struct proc *p)
{
	struct life *l = p->lives;
	int look = 64;

	if (r->nopen >= MAX_LIVES_OF_ROOM)
		life_forget(m, r->first);
	if (m->st.open_lives < MAX_LIVES)
		return;
	while (l && look-- && l->stuck && l->stuck->pin == 1)
		l = l->next;
	if (l)
		life_forget(m, l);
}

struct life *life_open(struct model *m, struct room *r, struct proc *p, bool late)
{
	struct life *l;

	room_ref(m, r);
	make_room_for_life(m, r, p);
	l = mem_new(m, life_bytes(m));
	if (!l) {
		room_unref(m, r);
		return NULL;
	}
	l->id = ++m->next_life;
	l->uncertain = m->now < m->lossy_ns;
	l->room = r;
	l->proc = p;
	l->number = ++r->nlives;
	l->opened_ns = l->progress_ns = l->last_ns = m->now;
	l->progress_id = m->next_life + 1;
	l->quorum = -1;
	l->stage = STAGE_BOOTSTRAP;
	l->late = l->arrived = late;
	l->blurred = p->gap_ns && m->now - p->gap_ns < GAP_BLUR_NS;
	l->straggles = late && r->done_ns && m->now - r->done_ns < STRAGGLE_NS;
	l->fake = profile_room_is_fake(m->cfg.profile, r->name);
	link_life(l, r, p);
	if (r->first != l)
		note_overlap(m, r, l);
	take_early_abort(m, r, l);
	m->st.open_lives++;
	m->st.lives++;
	timer_arm(m, l);
	return l;
}

/* All that was seen of it was the first chunk: one forward pass made it. */
static bool sent_at_once(const struct life *l)
{
	for (uint32_t i = 0; i < l->ngroups; i++)
		if (l->groups[i].chunk > 0)
			return false;
	return true;
}

/* Another life of the room ended well while these were open: the server's one entry for the room
 * went with it. */
static void note_reuse(struct model *m, const struct life *ended)
{
	for (struct life *l = ended->room->first; l; l = l->rnext) {
		struct rare *r;

		if (l == ended)
			continue;
		r = life_rare(m, l);
		if (!r || r->reused_ns)
			continue;
		r->reused_ns = m->now;
		r->other_life = ended->number;
		r->one_pass = sent_at_once(ended);
	}
}

void life_free(struct model *m, struct life *l)
{
	struct op *next;

	for (struct op *o = l->ops; o; o = next) {
		next = o->lnext;
		op_orphan(m, o);
	}
	for (uint32_t i = 0; i < l->npeers; i++)
		agent_unref(m, l->peers[i].agent);
	m->npeers -= l->npeers;
	if (l->worker)
		worker_unref(m, l->worker);
	mem_free(m, l->peers, mem_appended(sizeof(*l->peers), l->npeers));
	mem_free(m, l->groups, mem_appended(sizeof(*l->groups), l->ngroups));
	mem_free(m, l->rare, sizeof(*l->rare));
	seen_free(m, l);
	mem_free(m, l->calls, sizeof(*l->calls));
	mem_free(m, l->rid, l->rid ? strlen(l->rid) + 1 : 0);
	room_unref(m, l->room);
	mem_free(m, l, life_bytes(m));
}

void life_unsee(struct model *m, struct life *l)
{
	struct seen *s = l->seen;

	if (!s)
		return;
	if (s->waits)
		view_unwait(m, s);
	if (s->listed && s->queue == Q_WAITING)
		flow_push(m, &l->proc->waitq, s->waitq, m->now);
	l->proc->nforward -= s->forward;
	s->listed = s->forward = s->at = s->orphan = s->queued = false;
	s->tid = 0;
}

void life_close(struct model *m, struct life *l, enum sp_outcome outcome)
{
	if (l->stuck)
		stall_clear(m, l);
	if (outcome == OUTCOME_DONE) {
		l->room->done_ns = m->now;
		flow_push(m, &l->proc->flow, l->id, m->now);
		note_reuse(m, l);
		peer_note_end(l);
	}
	l->room->ended_ns = m->now;
	timer_drop(m, l);
	life_unsee(m, l);
	if (m->at_hand == l)
		m->at_hand = NULL;
	l->stage = STAGE_ENDED;
	l->waits = false;
	if (m->recovered == l)
		tell_recovered(m, l, outcome);
	tell_ended(m, l, outcome);
	unlink_life(l);
	m->st.open_lives--;
	m->st.ended++;
}

void life_end(struct model *m, struct life *l, enum sp_outcome outcome)
{
	life_close(m, l, outcome);
	life_free(m, l);
}

void life_reopen(struct model *m, struct life *l, enum sp_stage stage)
{
	make_room_for_life(m, l->room, l->proc);
	l->stage = (uint8_t)stage;
	link_life(l, l->room, l->proc);
	m->st.open_lives++;
	m->st.lives++;
}

/* Bounds: it is not known to have ended, but it is no longer followed. */
void life_forget(struct model *m, struct life *l)
{
	m->st.forgotten++;
	life_end(m, l, OUTCOME_FAILED);
}
