// SPDX-License-Identifier: Apache-2.0
/*
 * Ends that were concluded from the server's view, not seen. Such a life is kept aside with all
 * that is known of it, within bounds: the same request seen again continues it.
 */
#include <string.h>

#include "model/loose.h"
#include "model/seen.h"

#define MAX_PARKED         4096u
#define MAX_PARKED_OF_ROOM 64u

static void unlist(struct model *m, struct seen *s)
{
	if (s->prev)
		s->prev->next = s->next;
	else
		m->parked_first = s->next;
	if (s->next)
		s->next->prev = s->prev;
	else
		m->parked_last = s->prev;
	s->prev = s->next = NULL;
	s->life->room->nparked--;
	m->nparked--;
}

static void drop(struct model *m, struct seen *s)
{
	unlist(m, s);
	life_free(m, s->life);
}

static void trim(struct model *m)
{
	while (m->parked_first &&
	       (m->nparked > MAX_PARKED || m->parked_first->gone_ns + PARKED_NS < m->now))
		drop(m, m->parked_first);
}

void park_drop(struct model *m, const struct proc *p)
{
	struct seen *next;

	for (struct seen *s = m->parked_first; s; s = next) {
		next = s->next;
		if (s->life->proc == p)
			drop(m, s);
	}
}

/* How did it end, when nothing has told? */
enum sp_outcome inferred_outcome(const struct model *m, const struct life *l)
{
	bool native = l->npeers || l->ngroups;

	if (l->shared)
		return OUTCOME_NONE; /* most likely it was another process's */
	if (l->rare && l->rare->reply_ns)
		return l->rare->reply_failed ? OUTCOME_FAILED : OUTCOME_DONE;
	if (l->rare && l->rare->gone_early)
		return OUTCOME_FAILED; /* the server aborts what its client has given up */
	if (l->stage == STAGE_RELEASING || life_complete(m, l) || seen_done(m, l))
		return OUTCOME_DONE;
	if (life_doomed(l) || (l->rare && l->rare->abandoned_ns) || seen_failed(m, l))
		return OUTCOME_FAILED;
	/* nothing is sent for a fake room; of a process without native events nothing can be known
	 */
	if (l->fake || (!native && !l->proc->native))
		return OUTCOME_DONE;
	/* what is sent cannot be seen, or not that it is for this room, or not how much it must be
	 */
	if (l->stage != STAGE_BOOTSTRAP &&
	    (proc_blind(m, l->proc) || life_loose(l) || (l->ndone && !m->cfg.profile->nneeds)))
		return OUTCOME_DONE;
	/* it has never come as far as being sent: a timeout, or an abort that was not seen */
	if (!l->ngroups && !(l->seen && l->seen->sent_once))
		return OUTCOME_FAILED;
	if (l->late || l->uncertain || !native)
		return OUTCOME_DONE;
	/* seen from its start, and something it needs was never sent */
	return OUTCOME_FAILED;
}

/* Operations in progress outlive it, as ever; the others are of no more interest. */
static void part_with_ops(struct model *m, struct life *l)
{
	uint32_t busy = l->nbusy;
	struct op *next;

	for (struct op *o = l->ops; o; o = next) {
		next = o->lnext;
		op_orphan(m, o);
	}
	l->seen->hole = l->nbusy != busy;
}

void life_park(struct model *m, struct life *l, enum sp_outcome outcome)
{
	struct seen *s = seen_get(m, l);
	uint8_t stage = l->stage;

	if (!s || l->room->nparked >= MAX_PARKED_OF_ROOM) {
		life_end(m, l, outcome);
		return;
	}
	life_close(m, l, outcome);
	l->user = NULL;
	part_with_ops(m, l);
	s->stage = stage;
	s->gone_ns = m->now;
	s->next = NULL;
	s->prev = m->parked_last;
	if (s->prev)
		s->prev->next = s;
	else
		m->parked_first = s;
	m->parked_last = s;
	m->nparked++;
	l->room->nparked++;
	trim(m);
}

static bool is_request(const struct life *l, const struct sp_event *ev)
{
	if (ev->rid[0])
		return l->rid && !strcmp(l->rid, ev->rid);
	return !l->rid && ev->op && l->seen->op == ev->op;
}

/* The same request, ended a moment ago as far as anybody knew. */
struct life *park_find(struct model *m, const struct room *r, const struct sp_event *ev)
{
	trim(m);
	if (!r->nparked)
		return NULL;
	for (struct seen *s = m->parked_last; s; s = s->prev)
		if (s->life->room == r && is_request(s->life, ev) && !seen_begins_anew(s, ev))
			return s->life;
	return NULL;
}

static void adopt_ops(struct model *m, struct life *l)
{
	uint32_t n = 0;

	for (const struct worker *w = l->proc->workers; w; w = w->next) {
		struct op *next;

		for (struct op *o = w->busy; o; o = next) {
			next = o->wnext;
			if (!o->orphan || o->life_id != l->id)
				continue;
			op_adopt(m, o, l);
			n++;
		}
	}
	/* what came to its end meanwhile was not counted */
	if (l->seen->hole || n != l->nbusy)
		l->uncertain = true;
	l->nbusy = n;
}

void park_reopen(struct model *m, struct life *l)
{
	struct seen *s = l->seen;

	unlist(m, s);
	s->gone_ns = 0;
	life_reopen(m, l, s->stage);
	adopt_ops(m, l);
}
