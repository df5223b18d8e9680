// SPDX-License-Identifier: Apache-2.0
/* A verdict in words: the last progress, what should have come next, the culprit. The evidence is
 * in evidence.c. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "model/calls.h"
#include "model/facts.h"
#include "model/seen.h"
#include "model/words.h"

static void copy(char *to, size_t len, const char *from)
{
	snprintf(to, len, "%.*s", (int)len - 1, from);
}

void words_op(const struct model *m, const struct op *o, char *buf, size_t len)
{
	struct sp_event ev;
	char what[VERDICT_TEXT_MAX];

	sp_event_init(&ev);
	ev.role = ROLE_POST;
	copy(ev.kind, sizeof(ev.kind), m->kinds[o->kind]);
	ev.chunk = o->chunk;
	ev.last = o->last;
	ev.rank = o->rank;
	ev.part = o->part;
	ev.parts = o->parts;
	sp_event_describe(&ev, what, sizeof(what));
	/* without the verb in front */
	snprintf(buf, len, "%s", strncmp(what, "post ", 5) ? what : what + 5);
}

static void last_words(const struct model *m, const struct life *l, char *buf, size_t len)
{
	const struct did *d = &l->did;
	struct sp_event ev;

	sp_event_init(&ev);
	ev.role = d->role;
	ev.status = d->status;
	ev.flags = d->flags;
	ev.chunk = d->chunk;
	ev.last = d->last;
	ev.rank = d->rank;
	ev.need = d->need;
	if (d->role == ROLE_POST || d->role == ROLE_STATUS)
		ev.op = d->op;
	if (d->role == ROLE_HELD || d->role == ROLE_REPLY)
		ev.code = d->code;
	if (d->role == ROLE_POST || d->role == ROLE_HELD || d->role == ROLE_REPLY)
		copy(ev.kind, sizeof(ev.kind), m->kinds[d->kind]);
	if (d->role == ROLE_ANNOUNCE && d->agent) {
		copy(ev.agent, sizeof(ev.agent), d->agent->key.id);
		copy(ev.peer, sizeof(ev.peer), d->agent->peer);
	}
	if (d->role == ROLE_STATUS) {
		struct op o = {
			.kind = d->kind,
			.chunk = d->chunk,
			.last = d->last,
			.rank = d->rank,
			.part = -1,
			.parts = -1,
		};
		char what[VERDICT_TEXT_MAX];

		words_op(m, &o, what, sizeof(what));
		copy(ev.note, sizeof(ev.note), what);
		if (d->status == OPS_ERROR && l->rare)
			ev.code = l->rare->error_code;
	}
	sp_event_describe(&ev, buf, len);
}

static void expect_sent(const struct model *m, const struct life *l, char *buf, size_t len)
{
	const struct op *o = fact_created(l);
	const struct group *g = fact_parts(l);
	int i = fact_unmet(m, l);
	char what[64];

	if (o) {
		words_op(m, o, what, sizeof(what));
		snprintf(buf, len, "post of op 0x%" PRIx64 " (%s)", o->handle, what);
	} else if (g) {
		snprintf(buf, len, "post of %d more of the %u parts of %s chunk %d",
			 g->parts - g->created % g->parts, g->parts, m->kinds[g->kind], g->chunk);
	} else if (i >= 0) {
		const struct profile_need *n = &m->cfg.profile->needs[i];

		snprintf(buf, len, "post %s%s", n->kind, n->last ? ", last chunk" : "");
	} else {
		snprintf(buf, len, "%s",
			 m->told_ends ? "its peers are told how it ended" : "the end of the room");
	}
}

/* The last chunk is there: what should have come with it. */
static void expect_other(const struct model *m, const struct life *l, char *buf, size_t len)
{
	const struct profile *p = m->cfg.profile;

	for (int i = 0; i < p->nneeds; i++) {
		if (p->needs[i].last || need_met(m, l, i))
			continue;
		snprintf(buf, len, "post %s", p->needs[i].kind);
		return;
	}
	expect_sent(m, l, buf, len);
}

static void expect_peers(const struct life *l, char *buf, size_t len)
{
	uint32_t need = life_quorum_need(l), have = life_announced(l);
	uint32_t more;

	if (!need)
		need = 1;
	more = need > have ? need - have : 0;
	snprintf(buf, len, "announce from %u more peer%s (%u of %u so far)", more,
		 more == 1 ? "" : "s", have, need);
}

/* From the thread that has died. */
static void expect_thread(const struct model *m, const struct life *l, char *buf, size_t len)
{
	if (l->stage == STAGE_BOOTSTRAP)
		expect_peers(l, buf, len);
	else
		expect_sent(m, l, buf, len);
}

static void expect_status(const struct model *m, const struct op *o, char *buf, size_t len)
{
	char what[64];

	words_op(m, o, what, sizeof(what));
	snprintf(buf, len, "status done of op 0x%" PRIx64 " (%s)", o->handle, what);
}

static void expect_end(const struct model *m, const struct life *l, char *buf, size_t len)
{
	if (fact_busy(l))
		expect_status(m, fact_busy(l), buf, len);
	else
		snprintf(buf, len, "the end of what %s",
			 seen_listed(l) ? "the thread is at" : "is in progress");
}

/* Where what is sent cannot be seen, the answer is what tells. */
static void expect_post(const struct model *m, const struct life *l, char *buf, size_t len)
{
	bool unseen = proc_blind(m, l->proc) && !seen_listed(l);

	if (m->pulls)
		snprintf(buf, len, "its peer's word that it has read all");
	else
		snprintf(buf, len, "%s", unseen ? "a reply to the client" : "its first post");
}

/* The thread that is to do it does not come back from a call. */
static size_t expect_return(const struct model *m, const struct life *l, const struct choice *c,
			    uint64_t now, char *buf, size_t len)
{
	const struct inside *in = NULL;
	int n;

	if (c->cause == CAUSE_NEVER_SENT || c->cause == CAUSE_SEND_INCOMPLETE ||
	    c->cause == CAUSE_AUX_MISSING || c->cause == CAUSE_TRANSFER_STALLED)
		in = inside_of_life(m, l, now, INSIDE_MIN_NS);
	if (!in)
		return 0;
	n = snprintf(buf, len, "return of %.60s, then ", call_name(m, in->probe));
	return n > 0 && (size_t)n < len ? (size_t)n : 0;
}

static void expected_words(const struct model *m, const struct life *l, const struct choice *c,
			   char *buf, size_t len)
{
	switch (c->cause) {
	case CAUSE_THREAD_DIED:
		expect_thread(m, l, buf, len);
		break;
	case CAUSE_TRANSFER_STALLED:
		expect_end(m, l, buf, len);
		break;
	case CAUSE_QUEUED_BEHIND:
		snprintf(buf, len, "its turn on the thread that posts for it");
		break;
	case CAUSE_CONTROL_LOST:
		snprintf(buf, len, "the reply to its staging request");
		break;
	case CAUSE_STATUS_LOST:
		snprintf(buf, len, "a status entry that says how it ended");
		break;
	case CAUSE_ROOM_REUSED:
		if (l->stage == STAGE_READY)
			expect_post(m, l, buf, len);
		else
			expect_sent(m, l, buf, len);
		break;
	case CAUSE_SEND_INCOMPLETE:
		expect_sent(m, l, buf, len);
		break;
	case CAUSE_AUX_MISSING:
		expect_other(m, l, buf, len);
		break;
	case CAUSE_TRANSFER_ERROR:
	case CAUSE_ABORT_NOT_REAPED:
		snprintf(buf, len, "the server lets the room go");
		break;
	case CAUSE_DONE_NOT_RELEASED:
		snprintf(buf, len, "the reply to the client, and the release");
		break;
	case CAUSE_NEVER_SENT:
	case CAUSE_PEER_GONE:
		expect_post(m, l, buf, len);
		break;
	case CAUSE_ABORT_BEFORE_OPEN:
	case CAUSE_QUORUM_INCOMPLETE:
	case CAUSE_DECODE_ABSENT:
		expect_peers(l, buf, len);
		break;
	case CAUSE_RANK_DIVERGED:
		snprintf(buf, len, "the same end on every rank");
		break;
	case CAUSE_FAKE_ROOM:
		snprintf(buf, len, "nothing: a fake room has no peer traffic");
		break;
	case CAUSE_BACKPRESSURE:
		snprintf(buf, len, "its turn");
		break;
	default:
		break;
	}
}

void words_inside(const struct model *m, const struct inside *in, uint64_t now, char *buf,
		  size_t len)
{
	snprintf(buf, len, "in %.24s for %.1f s", call_name(m, in->probe),
		 (double)(now - in->since_ns) / (double)NS_S);
}

void words_span(const struct op *o, uint64_t now, char *buf, size_t len)
{
	snprintf(buf, len, "op 0x%" PRIx64 " in progress for %.1f s", o->handle,
		 (double)(now - o->since_ns) / (double)NS_S);
}

static void culprit_words(const struct op *o, uint64_t now, struct model_culprit *c)
{
	c->set = true;
	c->pid = o->pid;
	c->tid = o->worker->key.tid;
	c->life = o->life_number;
	copy(c->room, sizeof(c->room), op_room(o));
	words_span(o, now, c->state, sizeof(c->state));
}

/* By the view: the thread is at a room, perhaps one that has ended. */
static void culprit_at(const struct worker *w, uint64_t now, struct model_culprit *c)
{
	c->set = true;
	c->pid = w->key.pid;
	c->tid = w->key.tid;
	c->life = worker_at_life(w);
	copy(c->room, sizeof(c->room), w->at->name);
	snprintf(c->state, sizeof(c->state), "at work on it for %.1f s",
		 (double)(now - w->at_ns) / (double)NS_S);
}

/* In a call for another room. */
static void culprit_call(const struct model *m, const struct life *l, const struct inside *in,
			 uint64_t now, struct model_culprit *c)
{
	const struct room *r = inside_room(m, l->proc, in);
	const struct worker *w = worker_find(m, l->proc->pid, in->tid);

	c->set = true;
	c->pid = l->proc->pid;
	c->tid = in->tid;
	c->life = in->room || !w ? in->life_number : worker_at_life(w);
	copy(c->room, sizeof(c->room), r ? r->name : "");
	words_inside(m, in, now, c->state, sizeof(c->state));
}

/* What holds the culprit's thread, where that is a call. */
static void culprit_state(const struct model *m, const struct life *l, uint64_t now,
			  struct model_culprit *c)
{
	const struct inside *in = inside_of_thread(m, l->proc, c->tid, now, INSIDE_MIN_NS);

	if (in && !in->unsure)
		words_inside(m, in, now, c->state, sizeof(c->state));
}

static void culprit_rank(const struct choice *choice, struct model_culprit *c)
{
	const struct life *o = choice->rank;

	c->set = true;
	c->pid = choice->other->pid;
	c->life = o ? o->number : choice->other->nlives;
	copy(c->room, sizeof(c->room), choice->other->name);
	snprintf(c->state, sizeof(c->state), "%s", o ? sp_stage_name(o->stage) : "ended");
}

static void add_tid(struct model_verdict *v, uint32_t tid)
{
	for (int i = 0; i < v->ntids; i++)
		if (v->tids[i] == tid)
			return;
	if (tid && v->ntids < VERDICT_TIDS_MAX)
		v->tids[v->ntids++] = tid;
}

static void threads(const struct model *m, const struct life *l, const struct choice *c,
		    uint64_t now, struct model_verdict *v)
{
	const struct worker *w = seen_worker(m, l);
	const struct inside *in = inside_of_life(m, l, now, INSIDE_MIN_NS);

	if (!w)
		w = l->worker;
	if (w && !w->exited_ns)
		add_tid(v, w->key.tid);
	if (in)
		add_tid(v, in->tid);
	if (v->culprit.set && v->culprit.pid == l->proc->pid)
		add_tid(v, v->culprit.tid);
	switch (c->cause) {
	case CAUSE_STATUS_LOST:
	case CAUSE_DONE_NOT_RELEASED:
	case CAUSE_ABORT_NOT_REAPED:
	case CAUSE_NEVER_SENT:
	case CAUSE_RANK_DIVERGED:
		add_tid(v, l->proc->pid);
		break;
	default:
		break;
	}
	if (l->stage == STAGE_BOOTSTRAP && !l->proc->boot_dead_ns)
		add_tid(v, l->proc->boot_tid);
}

static uint64_t decisive(const struct life *l, const struct choice *c)
{
	switch (c->cause) {
	case CAUSE_TRANSFER_STALLED:
	case CAUSE_QUEUED_BEHIND:
		if (c->worker)
			return c->worker->at_ns;
		if (c->call)
			return c->call->since_ns;
		return c->op ? c->op->since_ns : 0;
	case CAUSE_STATUS_LOST:
		return l->seen ? l->seen->code_ns : 0;
	case CAUSE_TRANSFER_ERROR:
		if (l->error_ns)
			return l->error_ns;
		return l->rare ? l->rare->create_failed_ns + l->rare->abandoned_ns : 0;
	case CAUSE_ABORT_NOT_REAPED:
		return l->abort_ns;
	case CAUSE_ABORT_BEFORE_OPEN:
		return l->rare ? l->rare->abort_early_ns : 0;
	case CAUSE_THREAD_DIED:
		if (l->stage == STAGE_BOOTSTRAP)
			return l->proc->boot_dead_ns;
		return l->worker ? l->worker->exited_ns : 0;
	case CAUSE_ROOM_REUSED:
		return l->rare ? l->rare->overlap_ns : 0;
	case CAUSE_CONTROL_LOST:
		return l->rare ? l->rare->control_out_ns : 0;
	default:
		return 0;
	}
}

void verdict_words(struct model *m, const struct life *l, const struct choice *c, uint64_t now,
		   struct model_verdict *v)
{
	size_t skip;

	memset(v, 0, offsetof(struct model_verdict, evidence));
	v->cause = c->cause;
	v->confidence = c->conf;
	v->pin = c->pin;
	last_words(m, l, v->last, sizeof(v->last));
	skip = expect_return(m, l, c, now, v->expected, sizeof(v->expected));
	expected_words(m, l, c, v->expected + skip, sizeof(v->expected) - skip);
	if (c->cause == CAUSE_QUEUED_BEHIND && c->worker)
		culprit_at(c->worker, now, &v->culprit);
	else if (c->cause == CAUSE_QUEUED_BEHIND && c->call)
		culprit_call(m, l, c->call, now, &v->culprit);
	else if (c->cause == CAUSE_QUEUED_BEHIND && c->op)
		culprit_words(c->op, now, &v->culprit);
	else if (c->cause == CAUSE_RANK_DIVERGED && c->other)
		culprit_rank(c, &v->culprit);
	if (c->cause == CAUSE_QUEUED_BEHIND && v->culprit.set)
		culprit_state(m, l, now, &v->culprit);
	threads(m, l, c, now, v);
	v->decisive_ns = decisive(l, c);
	evidence_words(m, l, c, now, v);
}
