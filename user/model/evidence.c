// SPDX-License-Identifier: Apache-2.0
/* The evidence of a verdict, for and against, the decisive lines first. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "model/asked.h"
#include "model/calls.h"
#include "model/facts.h"

/* A worker in its polling loop asks thousands of times a second (NIXL under SGLang: 12,000). */
#define POLL_FRESH_NS NS_S
/* Counting neighbours in a list is for evidence only: stop early. */
#define MAX_COUNT 1000u

void say(struct scene *s, bool against, const char *fmt, ...)
{
	struct model_verdict *v = s->v;
	va_list ap;

	if (v->nevidence >= VERDICT_EVIDENCE_MAX)
		return;
	v->evidence[v->nevidence].against = against;
	va_start(ap, fmt);
	vsnprintf(v->evidence[v->nevidence].text, VERDICT_TEXT_MAX, fmt, ap);
	va_end(ap);
	v->nevidence++;
}

static double sec(uint64_t ns)
{
	return (double)ns / (double)NS_S;
}

/* Seconds since the life opened, as the timeline counts. */
double scene_at(const struct scene *s, uint64_t ns)
{
	return ns >= s->l->opened_ns ? sec(ns - s->l->opened_ns) : -sec(s->l->opened_ns - ns);
}

static void say_poll(struct scene *s, const struct op *o)
{
	uint64_t ns = 0;
	uint32_t tid = 0;

	if (!s->m->ops.last_poll || !s->m->ops.last_poll(s->m->ctx, o->pid, o->handle, &ns, &tid) ||
	    !ns)
		return;
	if (ns + POLL_FRESH_NS >= s->now)
		say(s, false, "thread %u still polls it", tid);
	else
		say(s, false, "last polled %.1f s ago, by thread %u: nobody looks at it now",
		    sec(s->now - ns), tid);
}

/* Operations posted after o to the same peer that are over: the peer is well, o is not. */
static void say_overtaken(struct scene *s, const struct op *o)
{
	const struct agent *a = o->agent;
	uint64_t after, over;

	if (!a || o->state != OP_BUSY)
		return;
	after = a->posted - 1 - o->seq;
	over = (uint32_t)a->over - o->over_at_post;
	if (over > after)
		over = after;
	if (over)
		say(s, false,
		    "%" PRIu64 " of the %" PRIu64 " operations posted later to the same peer are "
		    "over",
		    over, after);
	else if (after)
		say(s, false,
		    "none of the %" PRIu64 " operations posted later to the same peer is "
		    "over either",
		    after);
}

static void say_stalled(struct scene *s)
{
	const struct op *o = fact_busy(s->l);
	char what[64];
	uint32_t n = 0;

	if (!o) {
		if (!seen_listed(s->l))
			evidence_loose(s);
		return;
	}
	words_op(s->m, o, what, sizeof(what));
	say(s, false,
	    "op 0x%" PRIx64 " (%s) posted by thread %u at +%.1f s, in progress for %.1f s",
	    o->handle, what, o->worker->key.tid, scene_at(s, o->since_ns),
	    sec(s->now - o->since_ns));
	say_poll(s, o);
	for (const struct op *b = s->l->ops; b; b = b->lnext)
		n += b->state == OP_BUSY;
	if (n > 1)
		say(s, false, "%u more of its operations are in progress", n - 1);
	say_overtaken(s, o);
}

static void say_behind(struct scene *s)
{
	const struct op *o = s->c->op;
	const struct life *l = s->l;
	const struct worker *w = l->worker ? l->worker : worker_inferred(l);

	if (s->c->worker)
		return;
	if (s->c->call) {
		say_call_ahead(s, s->c->call);
		return;
	}
	if (!o) {
		o = fact_any_blocked(l, s->now, stage_span(s->m, l));
		if (o)
			say(s, true,
			    "thread %u is kept busy by room %s: whether it is this room's thread "
			    "is not known",
			    o->worker->key.tid, op_room(o));
		return;
	}
	say(s, false,
	    "thread %u is busy with room %s life %u: op 0x%" PRIx64 " in progress for %.1f s",
	    o->worker->key.tid, op_room(o), o->life_number, o->handle, sec(s->now - o->since_ns));
	if (l->worker)
		say(s, false, "thread %u posted this room's earlier operations",
		    l->worker->key.tid);
	else if (w)
		say(s, false,
		    "thread %u serves this room by the rule that all %u rooms seen before followed",
		    w->key.tid, l->proc->served);
	else
		say(s, false, "all %u threads that post are kept busy", l->proc->nposters);
	if (o->orphan)
		say(s, false, "that room has ended, its transfer goes on");
	say_poll(s, o);
}

static void say_error(struct scene *s)
{
	const struct rare *r = s->l->rare;

	if (!r)
		return;
	if (s->l->error_ns && r->told_failed)
		say(s, false, "a peer was told at +%.1f s that the room has failed",
		    scene_at(s, s->l->error_ns));
	else if (s->l->error_ns)
		say(s, false, "an operation ended with error %" PRId64 "%s%s%s at +%.1f s",
		    r->error_code, r->error_note[0] ? " (" : "", r->error_note,
		    r->error_note[0] ? ")" : "", scene_at(s, s->l->error_ns));
	if (r->create_failed_ns)
		say(s, false, "an operation could not be created at +%.1f s (error %" PRId64 ")",
		    scene_at(s, r->create_failed_ns), r->create_code);
	if (r->abandoned_ns)
		say(s, false, "an operation was closed in progress at +%.1f s",
		    scene_at(s, r->abandoned_ns));
	if (!still_held(s->m, s->l))
		say(s, true,
		    "the server has most likely failed the room at once: its release "
		    "cannot be seen from here");
}

static void say_needs(struct scene *s)
{
	const struct profile *p = s->m->cfg.profile;
	const struct life *l = s->l;
	const struct group *g = l->ngroups ? &l->groups[l->ngroups - 1] : NULL;

	/* of one that is known by the view alone nothing was counted */
	if (!g && seen_listed(l))
		return;

	for (int i = 0; i < p->nneeds; i++)
		if (!need_met(s->m, l, i))
			say(s, false, "%s%s: %u created, %u done, %u needed", p->needs[i].kind,
			    p->needs[i].last ? " last" : "", l->need[i].seen, l->need[i].done,
			    life_takers(l));
	/* a transport may not say of what kind its operations are */
	if (g && s->m->kinds[g->kind][0])
		say(s, false, "newest operation: %s%s", s->m->kinds[g->kind],
		    g->chunk >= 0 ? "" : ", once");
}

static void say_reuse(struct scene *s)
{
	const struct rare *r = s->l->rare;

	if (!r || !r->overlap_ns)
		return;
	say(s, false,
	    "the room was opened again at +%.1f s while an earlier life was open (other "
	    "life: %u)",
	    scene_at(s, r->overlap_ns), r->other_life);
	if (r->reused_ns)
		say(s, false,
		    "life %u ended well at +%.1f s: the server's entry for the room went "
		    "with it",
		    r->other_life, scene_at(s, r->reused_ns));
	if (r->one_pass && !s->l->ngroups && !still_held(s->m, s->l))
		say(s, true,
		    "life %u was sent in one chunk: had both gone through the same forward pass "
		    "or the next, both have ended",
		    r->other_life);
	if (r->both_seen)
		say(s, false, "the server's queues held both at once");
	if (r->reuse_doubt && !seen_listed(s->l))
		say(s, true,
		    "the earlier life was aborted, failed or overdue by then, and may have "
		    "been gone");
}

static void say_thread(struct scene *s)
{
	const struct proc *p = s->l->proc;
	const struct worker *w = s->l->worker ? s->l->worker : worker_inferred(s->l);

	if (s->l->stage == STAGE_BOOTSTRAP && p->boot_tid)
		say(s, false, "thread %u, which received the announcements, exited at +%.1f s",
		    p->boot_tid, scene_at(s, p->boot_dead_ns));
	else if (s->l->stage != STAGE_BOOTSTRAP && w && w->exited_ns)
		say(s, false, "thread %u, which posts for this room, exited at +%.1f s", w->key.tid,
		    scene_at(s, w->exited_ns));
}

/* Of rooms for which nothing has gone wrong yet. */
static void say_waiting(struct scene *s)
{
	switch (s->c->cause) {
	case CAUSE_DECODE_ABSENT:
		say(s, false, "the request is here, no peer has announced itself");
		break;
	case CAUSE_FAKE_ROOM:
		say(s, true, "%s as fake (health check or warm-up)",
		    profile_room_is_fake(s->m->cfg.profile, s->l->room->name)
			    ? "the profile lists this room"
			    : "its bootstrap host marks this room");
		break;
	case CAUSE_BACKPRESSURE:
		say(s, true, "what is ahead of it in its queue moved %.1f s ago",
		    sec(s->now - s->l->ahead_ns));
		break;
	default:
		break;
	}
}

static void say_done(struct scene *s)
{
	if (s->l->ndone)
		say(s, false, "all operations are complete since +%.1f s",
		    scene_at(s, s->l->progress_ns));
	else if (!seen_listed(s->l))
		say(s, false, "every peer was told that it is done");
	else
		say(s, false, "the server's status says that it is done");
}

static void say_never_sent(struct scene *s)
{
	if (call_blocks(s->m, s->l, s->now))
		say_blocked(s);
	else if (seen_in(s->l, Q_WAITING))
		say(s, true, "it waits for its forward pass, and nothing ahead of it moves");
	else if (s->l->stage == STAGE_READY && !seen_listed(s->l))
		say(s, true,
		    "it may still wait for its forward pass, which cannot be seen from here");
	if (s->m->pulls)
		say(s, false, "nothing has told that its peer has read it");
}

static void say_decisive(struct scene *s)
{
	const struct rare *r = s->l->rare;

	switch (s->c->cause) {
	case CAUSE_THREAD_DIED:
		say_thread(s);
		break;
	case CAUSE_TRANSFER_ERROR:
		say_error(s);
		break;
	case CAUSE_QUEUED_BEHIND:
		say_behind(s);
		break;
	case CAUSE_TRANSFER_STALLED:
		say_stalled(s);
		break;
	case CAUSE_CONTROL_LOST:
		if (r)
			say(s, false, "staging request sent at +%.1f s, no reply since",
			    scene_at(s, r->control_out_ns));
		break;
	case CAUSE_STATUS_LOST:
		say(s, false,
		    "the server's list still holds the request, its status table has no "
		    "entry for the room");
		break;
	case CAUSE_ROOM_REUSED:
		say_reuse(s);
		break;
	case CAUSE_SEND_INCOMPLETE:
	case CAUSE_AUX_MISSING:
		say_needs(s);
		break;
	case CAUSE_DONE_NOT_RELEASED:
		say_done(s);
		break;
	case CAUSE_NEVER_SENT:
		say_never_sent(s);
		break;
	case CAUSE_ABORT_BEFORE_OPEN:
		if (!r || !r->abort_early_ns)
			say(s, false,
			    "the abort came before the server knew the request, and was dropped");
		else
			say(s, false, "an abort came %.1f s before the room: the server drops it",
			    sec(s->l->opened_ns - r->abort_early_ns));
		break;
	default:
		say_waiting(s);
	}
}

static void say_peers(struct scene *s)
{
	const struct life *l = s->l;
	char names[150] = "", one[96];
	size_t n = 0;
	uint32_t i;

	if (!l->npeers)
		return;
	for (i = 0; i < l->npeers && i < 4; i++) {
		agent_words(l->peers[i].agent, one, sizeof(one));
		if (n + strlen(one) + 2 >= sizeof(names)) /* whole names only */
			break;
		n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", i ? ", " : "", one);
	}
	say(s, false, "%u of %d peers announced: %s%s", l->npeers, l->quorum > 0 ? l->quorum : 1,
	    names, i < l->npeers ? ", ..." : "");
	if (l->ndata < l->npeers)
		say(s, l->ndata == 0, "%u of them take no data", l->npeers - l->ndata);
}

static void say_abort(struct scene *s)
{
	const struct life *l = s->l;

	if (!l->abort_ns || (l->rare && l->rare->client_gone_ns == l->abort_ns))
		return;
	if (!fact_aborted(l, s->now))
		say(s, false, "the abort at +%.1f s did not free it", scene_at(s, l->abort_ns));
	else if (still_held(s->m, l))
		say(s, false, "abort at +%.1f s, no release since", scene_at(s, l->abort_ns));
	else
		say(s, true,
		    "abort at +%.1f s: the server may have ended the room, which cannot "
		    "be seen from here",
		    scene_at(s, l->abort_ns));
}

/* Other processes (ranks) that have had the room and let it go. */
static void say_ranks(struct scene *s)
{
	const struct room *own = s->l->room;
	int look = 64;

	for (const struct proc *p = s->m->procs; p && look--; p = p->hh.next) {
		const struct room *r;

		if (p == s->l->proc)
			continue;
		r = room_find(s->m, p->pid, own->name);
		if (r && r->nlives && !r->nopen)
			say(s, false, "process %u has ended the same room", p->pid);
	}
}

static void say_doubts(struct scene *s)
{
	const struct life *l = s->l;

	/* what is certain needs no history */
	if (s->c->conf == CONF_CERTAIN)
		return;
	if (l->late)
		say(s, true, "first seen half-way: what came before the watch is not known");
	if (l->straggles)
		say(s, true, "the room's previous life had just ended well: this may be its rest");
	if (l->uncertain)
		say(s, true, "events were lost while this life was open");
	if (l->blurred && s->c->cause == CAUSE_QUORUM_INCOMPLETE)
		say(s, true,
		    "opened right after a gap in what was seen: an earlier announcement may have "
		    "been "
		    "missed");
}

void evidence_words(struct model *m, const struct life *l, const struct choice *c, uint64_t now,
		    struct model_verdict *v)
{
	struct scene s = {.m = m, .l = l, .c = c, .now = now, .v = v};

	v->nevidence = 0;
	say_decisive(&s);
	evidence_view(&s);
	if (c->cause != CAUSE_TRANSFER_STALLED || fact_busy(l) || seen_listed(l))
		evidence_loose(&s);
	evidence_calls(&s);
	if (l->ngroups)
		say(&s, false, "operations: %u done, %u not over", l->ndone, l->nbusy);
	say_abort(&s);
	if (c->cause != CAUSE_ROOM_REUSED)
		say_reuse(&s);
	if (c->cause != CAUSE_TRANSFER_ERROR && seen_listed(l))
		say_error(&s);
	evidence_asked(&s);
	say_doubts(&s);
	say_peers(&s);
	say_ranks(&s);
}
