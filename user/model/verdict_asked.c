// SPDX-License-Identifier: Apache-2.0
/* What sockets leave in doubt: a request may be another process's, what is sent cannot be seen, and
 * the answer to a client comes when the server's main loop has the time for it. */
#include "model/asked.h"

/* Rooms looked at to tell whether a forward pass may be under way. */
#define MAX_LOOK 1000

static bool computes(const struct model *m, const struct life *l)
{
	if (l->shared || l->fake)
		return false;
	return l->stage == STAGE_READY ||
	       (l->stage == STAGE_INFLIGHT && !l->nbusy && !life_complete(m, l));
}

bool loop_unseen(const struct model *m, const struct life *l, uint64_t since, uint64_t now)
{
	uint64_t longest = m->cfg.stage_ns[STAGE_READY];
	int look = MAX_LOOK;

	if (l->proc->reply_ns > since + LAG_NS || (longest && since + longest <= now))
		return false;
	for (const struct life *o = l->proc->lives; o; o = o->next)
		if (o != l && (computes(m, o) || !look--))
			return true;
	return false;
}

/* Should this process's be the alert for a room that has shown itself nowhere? The one whose
 * bootstrap thread is dead, else the one with the lowest number. */
static bool stands_for_all(struct model *m, const struct life *l)
{
	int look = MAX_RANKS;

	for (const struct proc *p = m->procs; p && look--; p = p->hh.next) {
		const struct room *r =
			p == l->proc || p->halted ? NULL : room_find(m, p->pid, l->room->name);
		const struct life *o = r ? r->first : NULL;

		while (o && !o->shared)
			o = o->rnext;
		if (!o)
			continue;
		if (!p->boot_dead_ns != !l->proc->boot_dead_ns) {
			if (p->boot_dead_ns)
				return false;
		} else if (p->pid < l->proc->pid) {
			return false;
		}
	}
	return true;
}

static void doubt(struct choice *c)
{
	if (c->conf > CONF_POSSIBLE)
		c->conf = CONF_POSSIBLE;
	if (c->pin == 1)
		c->pin = -1;
}

/* An announcement may have gone by in a stream that could not be read. */
static bool unheard(const struct model *m, const struct life *l)
{
	const struct proc *p = l->proc;

	return proc_deaf(m, p) && proc_dim(p, l->opened_ns);
}

void asked_cap(const struct model *m, const struct life *l, struct choice *c)
{
	struct model *any = (struct model *)m; /* room_find hands out what may be changed */

	if (l->shared && l->elsewhere) {
		doubt(c);
		c->pin = -1;
		return;
	}
	if (l->shared && !stands_for_all(any, l))
		doubt(c);
	if (l->stage != STAGE_BOOTSTRAP) {
		if (proc_blind(m, l->proc) && !still_held(m, l))
			doubt(c);
		return;
	}
	if (unheard(m, l) &&
	    (c->cause == CAUSE_DECODE_ABSENT || c->cause == CAUSE_QUORUM_INCOMPLETE))
		doubt(c);
}
