// SPDX-License-Identifier: Apache-2.0
#include "model/facts.h"

uint64_t fact_since(const struct life *l, uint64_t now)
{
	return l->stuck ? l->stuck->since_ns : now + 1;
}

bool fact_aborted(const struct life *l, uint64_t now)
{
	return l->abort_ns && l->abort_ns < fact_since(l, now);
}

const struct op *fact_busy(const struct life *l)
{
	const struct op *best = NULL;

	for (const struct op *o = l->ops; o; o = o->lnext)
		if (o->state == OP_BUSY && (!best || o->since_ns <= best->since_ns))
			best = o;
	return best;
}

const struct op *fact_created(const struct life *l)
{
	for (const struct op *o = l->ops; o; o = o->lnext)
		if (o->state == OP_CREATED)
			return o;
	return NULL;
}

const struct group *fact_parts(const struct life *l)
{
	for (uint32_t i = 0; l->nsplit && i < l->ngroups; i++)
		if (l->groups[i].parts > 1 && l->groups[i].created % l->groups[i].parts)
			return &l->groups[i];
	return NULL;
}

int fact_unmet(const struct model *m, const struct life *l)
{
	for (int i = 0; i < m->cfg.profile->nneeds; i++)
		if (!need_met(m, l, i))
			return i;
	return -1;
}

static const struct op *blocked(const struct life *l, uint64_t now, uint64_t span, bool all)
{
	const struct proc *p = l->proc;
	const struct op *oldest = NULL;

	if (p->nposters > MAX_POSTERS || (all && p->nposters < 2))
		return NULL;
	for (const struct worker *w = p->workers; w; w = w->next) {
		const struct op *o;

		if (!w->posts || w->exited_ns)
			continue;
		o = worker_blocked(w, l, now, span);
		if (!o && all)
			return NULL;
		if (o && (!oldest || o->since_ns < oldest->since_ns ||
			  (o->since_ns == oldest->since_ns && o->life_id < oldest->life_id)))
			oldest = o;
	}
	return oldest;
}

const struct op *fact_all_blocked(const struct life *l, uint64_t now, uint64_t span)
{
	return blocked(l, now, span, true);
}

const struct op *fact_any_blocked(const struct life *l, uint64_t now, uint64_t span)
{
	return blocked(l, now, span, false);
}
