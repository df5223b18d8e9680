// SPDX-License-Identifier: Apache-2.0
/*
 * Which thread will post for a room that has posted nothing yet? Servers choose it by the peer, or
 * by the room modulo the number of threads, version by version; so both rules are tried against
 * every room that is seen to be served, and one that has held every time, often enough, may speak
 * for the next room. With W threads a wrong rule survives LEARN_MIN rooms with a chance of W to the
 * power of -LEARN_MIN.
 */
#include <errno.h>
#include <stdlib.h>

#include "model/lives.h"

static bool room_number(const struct room *r, uint64_t *n)
{
	char *end;

	errno = 0;
	*n = strtoull(r->name, &end, 10);
	return r->name[0] >= '0' && r->name[0] <= '9' && !*end && !errno;
}

static void remember(struct model *m, struct worker **slot, struct worker *w)
{
	if (*slot == w)
		return;
	worker_ref(w);
	if (*slot)
		worker_unref(m, *slot);
	*slot = w;
}

/* One more room of which w is the thread. */
static void check_rule(struct model *m, struct rule *rule, struct worker **slot, struct worker *w)
{
	if (rule->broken)
		return;
	if (*slot && *slot != w)
		rule->broken = true;
	else if (*slot)
		rule->held++;
	remember(m, slot, w);
}

void learn_served(struct model *m, struct worker *w, const struct life *l)
{
	struct proc *p = w->proc;
	struct agent *a = life_agent(l);
	uint64_t n;

	p->served++;
	if (a)
		check_rule(m, &p->by_peer, &a->worker, w);
	if (!room_number(l->room, &n))
		return;
	if (!p->modulo)
		p->modulo = mem_new(m, LEARN_MODULI * sizeof(*p->modulo));
	for (uint32_t i = 0; p->modulo && i < LEARN_MODULI; i++)
		check_rule(m, &p->modulo[i].rule, &p->modulo[i].worker[n % (i + 1)], w);
}

static struct worker *by_modulo(const struct life *l)
{
	const struct proc *p = l->proc;
	struct worker *found = NULL;
	uint64_t n;

	if (!p->modulo || !room_number(l->room, &n))
		return NULL;
	for (uint32_t i = 0; i < LEARN_MODULI; i++) {
		const struct modulo *mod = &p->modulo[i];
		struct worker *w = mod->worker[n % (i + 1)];

		if (mod->rule.broken || mod->rule.held < LEARN_MIN || !w)
			continue;
		if (found && found != w)
			return NULL;
		found = w;
	}
	return found;
}

struct worker *worker_inferred(const struct life *l)
{
	const struct proc *p = l->proc;
	const struct agent *a = life_agent(l);
	struct worker *w = by_modulo(l);
	struct worker *peers = NULL;

	if (a && !p->by_peer.broken && p->by_peer.held >= LEARN_MIN)
		peers = a->worker;
	if (w && peers && w != peers)
		return NULL;
	return w ? w : peers;
}

void learn_free(struct model *m, struct proc *p)
{
	if (!p->modulo)
		return;
	for (uint32_t i = 0; i < LEARN_MODULI; i++)
		for (uint32_t k = 0; k <= i; k++)
			if (p->modulo[i].worker[k])
				worker_unref(m, p->modulo[i].worker[k]);
	mem_free(m, p->modulo, LEARN_MODULI * sizeof(*p->modulo));
	p->modulo = NULL;
}
