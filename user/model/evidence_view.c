// SPDX-License-Identifier: Apache-2.0
/* What the server's own view adds to the evidence. */
#include <inttypes.h>
#include <stdio.h>

#include "model/facts.h"
#include "model/seen.h"
#include "model/words.h"

/* "in the server's queue inflight since +12.1 s, status 3 (moving) since +12.6 s" */
static void say_where(struct scene *s)
{
	const struct seen *v = s->l->seen;
	const char *state = seen_state(s->m, v->code);
	char where[80], status[80] = "";

	if (v->listed)
		snprintf(where, sizeof(where), "in the server's queue %s since +%.1f s",
			 s->m->kinds[v->kind], scene_at(s, v->queue_ns));
	else if (v->ever && v->lost)
		snprintf(where, sizeof(where), "last seen in the server's queue %s",
			 s->m->kinds[v->kind]);
	else if (v->ever)
		snprintf(where, sizeof(where), "in none of the server's queues since +%.1f s",
			 scene_at(s, v->queue_ns));
	else
		snprintf(where, sizeof(where), "not seen in any of the server's queues");
	if (v->code == HELD_NO_ENTRY)
		snprintf(status, sizeof(status), ", without a status entry since +%.1f s",
			 scene_at(s, v->code_ns));
	else if (v->code != HELD_UNKNOWN)
		snprintf(status, sizeof(status), ", status %" PRId64 "%s%s%s since +%.1f s",
			 v->code, state[0] ? " (" : "", state, state[0] ? ")" : "",
			 scene_at(s, v->code_ns));
	say(s, !v->listed && !v->lost, "%s%s", where, status);
}

static void say_busy(struct scene *s, const struct worker *w)
{
	double busy = (double)(s->now - w->at_ns) / (double)NS_S;
	uint32_t life = worker_at_life(w);

	if (life)
		say(s, false,
		    "it waits for thread %u, which has been at room %s life %u for %.1f s",
		    w->key.tid, w->at->name, life, busy);
	else
		say(s, false, "it waits for thread %u, which has been at room %s for %.1f s",
		    w->key.tid, w->at->name, busy);
}

static void say_thread(struct scene *s)
{
	const struct seen *v = s->l->seen;
	const struct worker *w = seen_worker(s->m, s->l);

	if (v->at)
		say(s, false, "thread %u has been at work on it since +%.1f s", v->tid,
		    scene_at(s, v->tid_ns));
	else if (v->orphan)
		say(s, false,
		    "what is to be sent waits in a queue that no thread serves, since "
		    "+%.1f s",
		    scene_at(s, v->tid_ns));
	else if (v->queued)
		say(s, false,
		    "what is to be sent waits for a thread since +%.1f s; which one "
		    "serves its queue is not known",
		    scene_at(s, v->tid_ns));
	else if (v->cut_off)
		say(s, false, "the thread that was at work on it has exited at +%.1f s",
		    scene_at(s, v->tid_ns));
	else if (v->tid && w && w->at)
		say_busy(s, w);
	else if (v->tid)
		say(s, false, "it waits for thread %u since +%.1f s", v->tid,
		    scene_at(s, v->tid_ns));
	else if (seen_in(s->l, Q_INFLIGHT) && seen_idle(s->m, s->l))
		say(s, s->c->cause == CAUSE_TRANSFER_STALLED,
		    "no thread is at work on it, and nothing of it waits for one");
}

/* What takes the certainty away: perhaps the profile has slipped, not the server. */
static void say_slip(struct scene *s)
{
	const struct proc *p = s->l->proc;
	const struct seen *v = s->l->seen;

	if (!seen_in(s->l, Q_INFLIGHT))
		return;
	if (s->c->cause == CAUSE_STATUS_LOST && p->misfit)
		say(s, true,
		    "no room of that queue has been in the status table, which has "
		    "others: perhaps they are not the same kind of room");
	else if (p->unsure && !v->tid && !v->at && !v->orphan && !v->queued)
		say(s, true, "whether a thread is at work on it is not known: %s", p->unsure_why);
}

static void say_counts(struct scene *s)
{
	const struct seen *v = s->l->seen;

	if (v->sent >= 0 && v->total > 0 && seen_in(s->l, Q_INFLIGHT))
		say(s, false, "handed to the threads: %d of %d", v->sent, v->total);
	if (v->announced >= 0 && seen_in(s->l, Q_BOOTSTRAP)) {
		if (v->need > 0)
			say(s, false, "the server counts %d of %d peers announced", v->announced,
			    v->need);
		else
			say(s, false, "the server counts %d peers announced", v->announced);
	}
}

static void say_rank(struct scene *s)
{
	const struct choice *c = s->c;

	if (c->cause != CAUSE_RANK_DIVERGED || !c->other)
		return;
	if (c->rank)
		say(s, false, "process %u has not finished the same room: %s, life %u",
		    c->other->pid, sp_stage_name(c->rank->stage), c->rank->number);
	else
		say(s, false, "process %u ended the same room at +%.1f s", c->other->pid,
		    scene_at(s, c->other->ended_ns));
}

static void say_boot(struct scene *s)
{
	const struct proc *p = s->l->proc;

	if (p->boot_missing && seen_in(s->l, Q_BOOTSTRAP))
		say(s, false, "the thread that receives announcements is not there");
}

/* The server as a whole. */
static void say_doubt(struct scene *s)
{
	const struct life *l = s->l;
	const struct proc *p = l->proc;

	switch (p->view) {
	case VIEW_UNSTABLE:
		say(s, true, "the server's own state could not be read at that moment");
		break;
	case VIEW_LOST:
		say(s, true, "the server's own state can no longer be read");
		break;
	default:
		break;
	}
	if (!view_active(p) || seen_listed(l))
		return;
	if (seen_entry(s->m, l))
		say(s, true,
		    "it has a status entry and is in no queue: it may be in its forward "
		    "pass");
	else if (seen_unheld(s->m, l))
		say(s, true, "the server has neither a request nor a status entry of it");
}

void evidence_view(struct scene *s)
{
	const struct life *l = s->l;

	if (l->seen && l->seen->listed) {
		say_rank(s);
		if (s->c->cause == CAUSE_STATUS_LOST || s->c->cause == CAUSE_DONE_NOT_RELEASED) {
			say_where(s);
			say_slip(s);
			say_thread(s);
		} else {
			say_boot(s);
			say_thread(s);
			say_slip(s);
			say_counts(s);
			say_where(s);
		}
		if (s->c->conf == CONF_POSSIBLE && seen_in(l, Q_INFLIGHT) && l->proc->nforward &&
		    (s->c->cause == CAUSE_DONE_NOT_RELEASED ||
		     s->c->cause == CAUSE_ABORT_NOT_REAPED))
			say(s, true,
			    "the server may be in a forward pass and not have looked since");
	} else if (l->seen && (l->seen->ever || l->seen->code != HELD_UNKNOWN)) {
		say_where(s);
	}
	say_doubt(s);
}
