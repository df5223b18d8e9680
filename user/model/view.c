// SPDX-License-Identifier: Apache-2.0
/*
 * Rounds of looks at a process, and the lives that wait for them: those whose deadline has passed,
 * to be judged by facts of that moment, and those that seem to be over, to be seen gone.
 */
#include <errno.h>
#include <string.h>

#include "model/loose.h"
#include "model/seen.h"

static void wait_in(struct seen *s)
{
	struct proc *p = s->life->proc;

	if (s->waits)
		return;
	s->waits = true;
	s->next = NULL;
	/* as with lives: the first one's prev is the last */
	if (p->waits) {
		s->prev = p->waits->prev;
		s->prev->next = s;
		p->waits->prev = s;
	} else {
		s->prev = s;
		p->waits = s;
	}
}

static void wait_out(struct seen *s)
{
	struct proc *p = s->life->proc;

	if (!s->waits || s->ask_ns || s->gone_ns)
		return;
	s->waits = false;
	if (s->next)
		s->next->prev = s->prev;
	else
		p->waits->prev = s->prev;
	if (p->waits == s)
		p->waits = s->next;
	else
		s->prev->next = s->next;
	s->prev = s->next = NULL;
}

int view_ask(struct model *m, struct life *l, uint64_t ns)
{
	struct seen *s = seen_get(m, l);

	if (!s)
		return -ENOMEM;
	s->ask_ns = ns;
	s->asks = true;
	m->nasks++;
	wait_in(s);
	return 0;
}

static void answered(struct model *m, struct seen *s)
{
	if (s->asks)
		m->nasks--;
	s->asks = false;
}

void view_unask(struct model *m, struct seen *s)
{
	answered(m, s);
	s->ask_ns = 0;
	wait_out(s);
}

static void begin_rounds(struct seen *s, uint64_t ns)
{
	s->gone_ns = ns;
	s->rounds = 0;
}

void view_watch_end(struct model *m, struct life *l, uint64_t ns)
{
	struct seen *s = seen_get(m, l);

	if (!s || s->gone_ns)
		return;
	begin_rounds(s, ns);
	wait_in(s);
}

void view_unwait(struct model *m, struct seen *s)
{
	answered(m, s);
	s->ask_ns = s->gone_ns = 0;
	s->rounds = 0;
	wait_out(s);
}

/* ---- a round ------------------------------------------------------------------------------- */

static bool asked_before(const struct seen *s, const struct sp_event *ev)
{
	return s->ask_ns && s->ask_ns <= ev->ns;
}

/* Both looks that agree began after it was asked. The one before the last may have seen a request
 * that was let go before the deadline, and that only the next look shows to be gone. */
static bool answers(const struct seen *s, const struct sp_event *ev)
{
	return s->ask_ns && ev->code > 0 && s->ask_ns <= (uint64_t)ev->code;
}

/* The round began after it was to be seen gone, and has not seen it. */
static bool gone_for(const struct seen *s, const struct sp_event *ev)
{
	return s->gone_ns && ev->code > 0 && s->gone_ns <= (uint64_t)ev->code;
}

/* Judge l, whose deadline passed at s->ask_ns. */
static void judge(struct model *m, struct life *l)
{
	uint64_t at = l->seen->ask_ns;

	view_unask(m, l->seen);
	life_judge(m, l, at);
}

/* A confirmed round: what does it say of a life that waits for it? */
static void look_at(struct model *m, struct seen *s, const struct sp_event *ev)
{
	struct life *l = s->life;
	bool asked = answers(s, ev);
	bool gone = l->stage == STAGE_RELEASING ? !seen_listed(l) : seen_unheld(m, l);

	if (asked && !gone) {
		judge(m, l);
		return;
	}
	/* not judged before it is sure that the server does not hold it */
	if (asked && !s->gone_ns)
		view_watch_end(m, l, s->ask_ns);
	if (asked)
		answered(m, s);
	if (!gone_for(s, ev) || ++s->rounds < GONE_ROUNDS)
		return;
	if (gone) {
		life_park(m, l, inferred_outcome(m, l));
		return;
	}
	/* a question of meanwhile still waits for its answer */
	s->gone_ns = 0;
	s->rounds = 0;
	wait_out(s);
}

static bool concerns(const struct proc *p, const struct sp_event *ev, bool ok)
{
	for (const struct seen *s = p->waits; s; s = s->next)
		if (ok ? answers(s, ev) || gone_for(s, ev) : asked_before(s, ev))
			return true;
	return false;
}

/* The view is there (again): what is stuck may be judged with certainty, or is not held at all. */
static void look_around(struct model *m, struct proc *p)
{
	struct life *next;

	for (struct life *l = p->lives; l; l = next) {
		next = l->next;
		if (!l->stuck)
			continue;
		if (seen_unheld(m, l))
			view_watch_end(m, l, m->now);
		stall_again(m, l, m->now);
	}
}

/* Of rounds that a replay knows too. */
static void note_lag(struct proc *p, const struct sp_event *ev)
{
	uint64_t began = ev->code > 0 ? (uint64_t)ev->code : 0;

	if (began && began < ev->ns && 2 * (ev->ns - began) > p->lag_ns)
		p->lag_ns = 2 * (ev->ns - began);
}

/* A replay may ask at other moments than this run does, and finds only what was taken. */
static bool due(const struct model *m, const struct proc *p)
{
	return p->nopen && m->now - p->ok_ns >= OK_MAX_NS;
}

static void ok(struct model *m, struct proc *p, const struct sp_event *ev)
{
	bool back = p->view != VIEW_OK || p->rejudge;
	struct seen *next;

	p->rejudge = false;
	if (back || due(m, p) || concerns(p, ev, true) || loose_asks(p, ev)) {
		tell_taken(m, ev, NULL);
		p->ok_ns = m->now;
		p->looked_ns = ev->code > 0 ? (uint64_t)ev->code : 0;
		note_lag(p, ev);
	}
	p->view = VIEW_OK;
	loose_look(m, p, ev);
	if (back)
		look_around(m, p);
	for (struct seen *s = p->waits; s; s = next) {
		next = s->next;
		look_at(m, s, ev);
	}
}

/* Those who asked are judged by what is known. */
static void no_answer(struct model *m, struct proc *p, const struct sp_event *ev)
{
	struct seen *next;

	for (struct seen *s = p->waits; s; s = next) {
		next = s->next;
		if (asked_before(s, ev))
			judge(m, s->life);
	}
}

/* Nobody will look. What is stuck already has been judged by better facts. */
static void give_up(struct model *m, struct proc *p)
{
	struct seen *next;

	for (struct seen *s = p->waits; s; s = next) {
		next = s->next;
		if (!s->asks || s->life->stuck)
			continue;
		/* as when no look comes in time, see life_overdue */
		if (p->view == VIEW_OK)
			p->view = VIEW_UNSTABLE;
		judge(m, s->life);
	}
}

void model_answer(struct model *m, uint32_t pid)
{
	for (struct proc *p = m->procs; p; p = p->hh.next)
		if (!pid || p->pid == pid)
			give_up(m, p);
	doubt_trim(m);
}

static void unstable(struct model *m, struct proc *p, const struct sp_event *ev)
{
	if (p->view == VIEW_OK || concerns(p, ev, false))
		tell_taken(m, ev, NULL);
	if (p->view == VIEW_OK)
		p->view = VIEW_UNSTABLE;
	no_answer(m, p, ev);
}

/* What was seen holds no longer; it is kept to tell what is new when the view comes back. */
static void forget_facts(struct model *m, struct proc *p)
{
	for (struct life *l = p->lives; l; l = l->next) {
		struct seen *s = l->seen;

		if (!s)
			continue;
		s->listed = s->forward = s->at = s->orphan = s->queued = false;
		s->tid = 0;
		s->lost = true;
	}
	p->nforward = 0;
	for (struct worker *w = p->workers; w; w = w->next) {
		worker_set_at(m, w, NULL, 0);
		w->at_ns = 0;
	}
	for (struct room *r = m->rooms; r; r = r->hh.next)
		if (r->pid == p->pid)
			r->entry = ENTRY_UNKNOWN;
}

/* Without a view the end of a terminal life cannot be seen, so that is its end. */
static void end_terminal(struct model *m, struct proc *p)
{
	struct life *next;

	for (struct life *l = p->lives; l; l = next) {
		next = l->next;
		bool over = l->stage == STAGE_RELEASING || (l->rare && l->rare->reply_ns);

		if (over && !l->stuck && !m->cfg.sees_release && !l->tracked)
			life_park(m, l, inferred_outcome(m, l));
		else if (l->seen && l->seen->gone_ns)
			begin_rounds(l->seen, m->now);
	}
}

static void lost(struct model *m, struct proc *p, const struct sp_event *ev)
{
	bool was = view_active(p);

	tell_taken(m, ev, NULL);
	p->view = VIEW_LOST;
	p->lag_ns = 0;
	if (!was)
		return;
	forget_facts(m, p);
	end_terminal(m, p);
	no_answer(m, p, ev);
}

/* Whether the table is one of the rooms in the inflight queue. */
static void note_fit(struct model *m, struct proc *p, const struct sp_event *ev, bool fits)
{
	tell_taken(m, ev, NULL);
	p->rejudge |= p->misfit && fits;
	p->misfit = !fits;
}

int view_event(struct model *m, const struct sp_event *ev)
{
	struct proc *p = proc_get(m, ev->pid);

	if (!p)
		return -ENOMEM;
	if (!strcmp(ev->kind, "ok"))
		ok(m, p, ev);
	else if (!strcmp(ev->kind, "unstable"))
		unstable(m, p, ev);
	else if (!strcmp(ev->kind, "lost"))
		lost(m, p, ev);
	else if (!strcmp(ev->kind, "fits") || !strcmp(ev->kind, "misfit"))
		note_fit(m, p, ev, ev->kind[0] == 'f');
	else
		tell_taken(m, ev, NULL);
	return 0;
}
