// SPDX-License-Identifier: Apache-2.0
/* What the outside is told: snapshots of lives, alerts, callbacks. */
#include <string.h>

#include "model/lives.h"

/* Rooms named in one loss alert; the total is told too. */
#define LOSS_ROOMS 16

static const struct model_verdict no_verdict;

static void current_verdict(struct model *m, struct life *l)
{
	const struct stuck *s = l->stuck;
	struct choice c;

	verdict_choose(m, l, m->now, &c);
	if (s) {
		if (c.cause != s->cause)
			c = (struct choice){0};
		c.cause = s->cause;
		c.conf = s->conf;
		c.pin = (int)s->pin;
	}
	verdict_words(m, l, &c, m->now, &m->verdict);
}

static const char *peer_words(const struct life *l)
{
	const struct agent *a;

	if (!l->npeers)
		return "";
	a = l->peers[0].agent;
	return a->peer[0] ? a->peer : a->key.id;
}

static void view_facts(struct life *l, struct model_life *v)
{
	*v = (struct model_life){
		.pid = l->proc->pid,
		.life = l->number,
		.room = l->room->name,
		.stage = l->stage,
		.opened_ns = l->opened_ns,
		.progress_ns = l->progress_ns,
		.last_ns = l->last_ns,
		.observed_late = l->late,
		.uncertain = l->uncertain,
		.fake = l->fake,
		.ever_stuck = l->ever_stuck,
		.rid = l->rid ? l->rid : "",
		.peer = peer_words(l),
		.verdict = &no_verdict,
		.id = l->id,
		.user = &l->user,
	};
}

/* The verdict is put in words in the model's one buffer: valid until the next snapshot. */
void life_view(struct model *m, struct life *l, struct model_life *v)
{
	view_facts(l, v);
	if (!l->stuck && !l->waits)
		return;
	current_verdict(m, l);
	v->verdict = &m->verdict;
}

void tell_taken(struct model *m, const struct sp_event *ev, struct life *l)
{
	struct model_life v;

	if (!m->ops.event_taken)
		return;
	if (l)
		life_view(m, l, &v);
	m->ops.event_taken(m->ctx, ev, l ? &v : NULL);
}

void tell_changed(struct model *m, struct life *l)
{
	struct model_life v;

	if (!m->ops.life_changed)
		return;
	life_view(m, l, &v);
	m->ops.life_changed(m->ctx, &v);
}

static void emit(struct model *m, const struct model_alert *a)
{
	if (m->ops.alert)
		m->ops.alert(m->ctx, a);
}

void tell_stuck(struct model *m, struct life *l, uint64_t ns)
{
	struct model_life v;
	struct model_alert a = {
		.type = ALERT_STUCK,
		.ns = ns,
		.pid = l->proc->pid,
		.life = &v,
		.age_ns = ns - l->opened_ns,
		.idle_ns = ns - l->progress_ns,
	};

	life_view(m, l, &v);
	emit(m, &a);
}

void tell_recovered(struct model *m, struct life *l, enum sp_outcome outcome)
{
	struct model_life v;
	struct model_alert a = {
		.type = ALERT_RECOVERED,
		.ns = m->now,
		.pid = l->proc->pid,
		.life = &v,
		.age_ns = m->now - l->opened_ns,
		.stalled_ns = m->recovered_idle_ns,
		.outcome = outcome,
	};

	m->recovered = NULL;
	view_facts(l, &v);
	v.verdict = &m->withdrawn;
	if (l->stage == STAGE_ENDED) {
		v.ended_ns = m->now;
		v.outcome = outcome;
	}
	emit(m, &a);
}

void tell_ended(struct model *m, struct life *l, enum sp_outcome outcome)
{
	struct model_life v;
	struct model_alert a = {
		.type = ALERT_ENDED,
		.ns = m->now,
		.pid = l->proc->pid,
		.life = &v,
		.age_ns = m->now - l->opened_ns,
		.idle_ns = m->now - l->progress_ns,
		.outcome = outcome,
	};

	view_facts(l, &v);
	v.ended_ns = m->now;
	v.outcome = outcome;
	emit(m, &a);
	if (m->ops.life_ended)
		m->ops.life_ended(m->ctx, &v);
}

static void tell_event(struct model *m, const struct sp_event *ev, enum model_alert_type type,
		       const char *what)
{
	struct model_alert a = {
		.type = type,
		.ns = m->now,
		.pid = ev->pid,
		.tid = ev->tid,
		.what = what,
		.note = ev->note,
		.peer = ev->peer,
		.agent = ev->agent,
	};

	emit(m, &a);
}

void tell_target(struct model *m, const struct sp_event *ev, const char *what)
{
	tell_event(m, ev, ALERT_TARGET, what);
}

void tell_peer(struct model *m, const struct sp_event *ev, const char *what)
{
	tell_event(m, ev, ALERT_PEER, what);
}

/* Whatever was lost may have concerned any open life; what is not counted of a queue is evidence
 * at most. */
void tell_loss(struct model *m, const struct sp_event *ev)
{
	const char *rooms[LOSS_ROOMS];
	struct model_alert a = {
		.type = ALERT_LOSS,
		.ns = m->now,
		.pid = ev->pid,
		.lost = ev->code > 0 ? (uint64_t)ev->code : 0,
		.why = ev->kind,
		.rooms = rooms,
		.note = ev->note,
	};

	bool doubt = strcmp(ev->kind, SP_LOSS_TALLIES) != 0;

	for (struct proc *p = m->procs; p && doubt; p = p->hh.next) {
		for (struct life *l = p->lives; l; l = l->next) {
			if (l->uncertain)
				continue;
			l->uncertain = true;
			if (a.nrooms < LOSS_ROOMS)
				rooms[a.nrooms++] = l->room->name;
			a.total_rooms++;
		}
	}
	emit(m, &a);
}
