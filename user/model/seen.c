// SPDX-License-Identifier: Apache-2.0
/* What the server's own view says of a life: the facts, and the questions asked about them. */
#include <string.h>

#include "model/seen.h"

struct seen *seen_get(struct model *m, struct life *l)
{
	struct seen *s = l->seen;

	if (s)
		return s;
	s = mem_new(m, sizeof(*s));
	if (!s)
		return NULL;
	s->life = l;
	s->code = HELD_UNKNOWN;
	s->announced = s->need = s->sent = s->total = -1;
	l->seen = s;
	return s;
}

void seen_free(struct model *m, struct life *l)
{
	mem_free(m, l->seen, sizeof(*l->seen));
	l->seen = NULL;
}

enum queue queue_of(const char *kind)
{
	if (strstr(kind, "inflight"))
		return Q_INFLIGHT;
	if (strstr(kind, "waiting"))
		return Q_WAITING;
	if (strstr(kind, "bootstrap"))
		return Q_BOOTSTRAP;
	return kind[0] ? Q_OTHER : Q_NONE;
}

bool seen_entry(const struct model *m, const struct life *l)
{
	const struct profile_python *py = m->cfg.profile->python;

	if (l->room->entry == ENTRY_UNKNOWN)
		return py && !py->status.n;
	/* it may as well be the entry of another request */
	for (const struct life *o = l->room->first; o; o = o->rnext)
		if (o != l && seen_listed(o))
			return false;
	return l->room->entry == ENTRY_YES;
}

bool seen_unheld(const struct model *m, const struct life *l)
{
	if (!view_active(l->proc) || seen_listed(l) || seen_entry(m, l))
		return false;
	return (l->seen && l->seen->ever) || l->proc->proved;
}

#define STATE_IS(name)                                                                             \
	bool seen_##name(const struct model *m, const struct life *l)                              \
	{                                                                                          \
		const struct profile_python *py = m->cfg.profile->python;                          \
                                                                                                   \
		return py && l->seen && py_state_is(py->states.name, l->seen->code);               \
	}
STATE_IS(failed)
STATE_IS(bootstrap)
STATE_IS(ready)
STATE_IS(moving)
STATE_IS(done)

const char *seen_state(const struct model *m, int64_t code)
{
	const struct profile_python *py = m->cfg.profile->python;

	if (!py)
		return "";
	if (py_state_is(py->states.failed, code))
		return "failed";
	if (py_state_is(py->states.bootstrap, code))
		return "bootstrap";
	if (py_state_is(py->states.ready, code))
		return "ready";
	if (py_state_is(py->states.moving, code))
		return "moving";
	return py_state_is(py->states.done, code) ? "done" : "";
}

bool backlog_known(const struct model *m)
{
	const struct profile_python *py = m->cfg.profile->python;

	if (!py)
		return false;
	for (int i = 0; i < py->nthreads; i++)
		if (py->thread[i].role == PY_THREAD_WORKER && py->thread[i].behind.n)
			return true;
	return py->backlog.n > 0;
}

bool seen_idle(const struct model *m, const struct life *l)
{
	const struct seen *s = l->seen;

	return s && backlog_known(m) && !l->proc->unsure && !s->tid && !s->at && !s->orphan &&
	       !s->queued;
}

struct worker *seen_worker(const struct model *m, const struct life *l)
{
	if (!seen_listed(l) || !l->seen->tid)
		return NULL;
	return worker_find(m, l->proc->pid, l->seen->tid);
}

/* A forward pass keeps the loop from everything else. While one may be under way, only something
 * that the loop has done since tells that it has looked; and that is confirmed late. */
bool loop_busy(const struct model *m, const struct proc *p, uint64_t since)
{
	uint64_t longest = m->cfg.stage_ns[STAGE_READY];

	if (longest && p->forward_ns + longest < m->now)
		return false;
	return p->nforward && p->loop_ns <= since + (p->lag_ns > LAG_NS ? p->lag_ns : LAG_NS);
}

uint32_t life_announced(const struct life *l)
{
	uint32_t n = l->seen && l->seen->announced > 0 ? (uint32_t)l->seen->announced : 0;

	return l->npeers > n ? l->npeers : n;
}

uint32_t life_quorum_need(const struct life *l)
{
	if (l->quorum > 0)
		return (uint32_t)l->quorum;
	return l->seen && l->seen->need > 0 ? (uint32_t)l->seen->need : 0;
}
