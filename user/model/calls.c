// SPDX-License-Identifier: Apache-2.0
/* Calls of the transport's surroundings: what is kept of them, for whom. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "model/calls.h"
#include "model/loose.h"
#include "model/seen.h"

static void copy(char *to, size_t len, const char *from)
{
	snprintf(to, len, "%.*s", (int)len - 1, from);
}

/* People know a function by its name; a glob, or a name that a compiler has made, is none. */
const char *call_name(const struct model *m, int probe)
{
	const struct profile *p = m->cfg.profile;
	const char *symbol;

	if (probe < 0 || probe >= p->nprobes)
		return "a call";
	symbol = p->probes[probe].symbol;
	if (!symbol || strpbrk(symbol, "*?[") || !strncmp(symbol, "_Z", 2))
		return p->probes[probe].name;
	return symbol;
}

static bool waits(const struct model *m, int probe)
{
	const struct profile *p = m->cfg.profile;

	return probe >= 0 && probe < p->nprobes && p->probes[probe].waits;
}

static struct proc_calls *calls_of(struct model *m, struct proc *p)
{
	if (!p->calls)
		p->calls = mem_new(m, sizeof(*p->calls));
	return p->calls;
}

/* Do its events tell of work that was handed over, and not of the call itself? */
static bool completes(const struct model *m, int probe)
{
	const struct profile *p = m->cfg.profile;

	return probe >= 0 && probe < p->nprobes && p->probes[probe].each.tally == SP_TALLY_DONE;
}

/* ---- calls that are over ------------------------------------------------------------------- */

static void note(struct model *m, struct call_note *n, const struct sp_event *ev, bool failed)
{
	n->ns = m->now;
	n->code = ev->code;
	n->tid = ev->tid;
	n->probe = ev->probe;
	n->kind = kind_index(m, ev->kind);
	copy(n->text, sizeof(n->text), failed ? ev->note : ev->object);
}

static void count(struct model *m, struct calls *c, const struct sp_event *ev)
{
	uint32_t n = ev->count ? ev->count : 1;

	if (ev->flags & EV_MARK)
		return;
	c->n += n;
	c->bytes += ev->bytes;
	if (ev->status == OPS_ERROR) {
		c->failed += n;
		note(m, &c->fail, ev, true);
	} else {
		note(m, &c->last, ev, false);
	}
}

static struct worked *worked_find(const struct proc_calls *c, const char *object)
{
	for (uint32_t i = 0; c && i < c->nworked; i++)
		if (!strcmp(c->worked[i].object, object))
			return &c->worked[i];
	return NULL;
}

/* Of those where nothing is open the one that failed first, or never has; NULL: none is. */
static struct worked *worked_idle(const struct proc_calls *c)
{
	struct worked *best = NULL;

	for (uint32_t i = 0; i < c->nworked; i++) {
		struct worked *w = &c->worked[i];

		if (w->open <= 0 && (!best || w->fail.ns < best->fail.ns))
			best = w;
	}
	return best;
}

static struct worked *worked_get(struct model *m, struct proc_calls *c, const char *object)
{
	struct worked *w = worked_find(c, object);

	if (w)
		return w;
	if (c->nworked >= MAX_WORKED)
		w = worked_idle(c);
	else if (!mem_grow(m, (void **)&c->worked, sizeof(*w), &c->worked_cap, c->nworked + 1))
		w = &c->worked[c->nworked++];
	if (!w)
		return NULL;
	memset(w, 0, sizeof(*w));
	copy(w->object, sizeof(w->object), object);
	return w;
}

/* ---- calls under way ----------------------------------------------------------------------- */

static void inside_drop(struct model *m, struct proc_calls *c, struct inside **at)
{
	struct inside *in = *at;

	*at = in->next;
	c->ninside--;
	if (in->room)
		room_unref(m, in->room);
	mem_free(m, in, sizeof(*in));
}

/* What thread tid entered at enter_ns, or before, it has left. */
static bool left(struct model *m, struct proc *p, const struct sp_event *ev, uint64_t enter_ns)
{
	struct inside **at = p->calls ? &p->calls->inside : NULL;
	bool any = false;

	while (at && *at) {
		if ((*at)->tid != ev->tid || (*at)->probe != ev->probe ||
		    (*at)->since_ns > enter_ns) {
			at = &(*at)->next;
			continue;
		}
		inside_drop(m, p->calls, at);
		any = true;
	}
	return any;
}

static int entered(struct model *m, struct proc *p, const struct sp_event *ev, const struct life *l)
{
	struct proc_calls *c = calls_of(m, p);
	struct room *r = ev->room[0] ? room_get(m, ev->pid, ev->room) : NULL;
	struct inside *in;

	if (!c || (ev->room[0] && !r))
		return -ENOMEM;
	if (r)
		room_ref(m, r);
	left(m, p, ev, m->now);
	in = c->ninside < MAX_INSIDE ? mem_new(m, sizeof(*in)) : NULL;
	if (!in) {
		if (r)
			room_unref(m, r);
		return c->ninside < MAX_INSIDE ? -ENOMEM : 0;
	}
	in->room = r;
	in->since_ns = ev->code > 0 && (uint64_t)ev->code < m->now ? (uint64_t)ev->code : m->now;
	in->life_id = l ? l->id : 0;
	in->life_number = l ? l->number : r ? r->nlives : 0;
	in->tid = ev->tid;
	in->probe = ev->probe;
	in->unsure = ev->note[0] != 0;
	copy(in->object, sizeof(in->object), ev->object);
	in->next = c->inside;
	c->inside = in;
	c->ninside++;
	return 0;
}

void calls_thread_gone(struct model *m, const struct sp_event *ev)
{
	struct inside **at;
	struct proc *p;

	HASH_FIND(hh, m->procs, &ev->pid, sizeof(ev->pid), p);
	at = p && p->calls ? &p->calls->inside : NULL;
	while (at && *at) {
		if ((*at)->tid == ev->tid)
			inside_drop(m, p->calls, at);
		else
			at = &(*at)->next;
	}
}

void calls_drop(struct model *m, struct proc *p)
{
	struct proc_calls *c = p->calls;

	if (!c)
		return;
	while (c->inside)
		inside_drop(m, c, &c->inside);
	mem_free(m, c->worked, c->worked_cap * sizeof(*c->worked));
	mem_free(m, c, sizeof(*c));
	p->calls = NULL;
}

/* ---- events -------------------------------------------------------------------------------- */

/* Of several lives of a room, the newest. */
static struct life *called_life(struct model *m, const struct sp_event *ev)
{
	struct room *r = ev->room[0] ? room_find(m, ev->pid, ev->room) : NULL;
	struct life *l = r ? r->first : NULL;

	while (l && l->rnext)
		l = l->rnext;
	return l;
}

static struct calls *calls_for(struct model *m, struct proc *p, struct life *l)
{
	struct proc_calls *c = calls_of(m, p);

	if (!l)
		return c ? &c->sum : NULL;
	if (!l->calls)
		l->calls = mem_new(m, sizeof(*l->calls));
	return c ? l->calls : NULL;
}

/* When it was entered, though it may be told later than it returned. */
static uint64_t entry_ns(const struct sp_event *ev)
{
	return ev->took_ns < ev->ns ? ev->ns - ev->took_ns : ev->ns;
}

/* A call that has returned. */
static int called(struct model *m, struct proc *p, const struct sp_event *ev, struct life *l,
		  bool *changes)
{
	struct calls *sum = calls_for(m, p, l);
	struct worked *w = NULL;

	if (!sum)
		return -ENOMEM;
	*changes = left(m, p, ev, entry_ns(ev)) || ev->status == OPS_ERROR;
	if (ev->object[0] && ev->status == OPS_ERROR && completes(m, ev->probe))
		w = worked_get(m, p->calls, ev->object);
	if (w) {
		w->failed += ev->count ? ev->count : 1;
		note(m, &w->fail, ev, true);
		w->life_id = l ? l->id : 0;
	} else {
		count(m, sum, ev);
	}
	return 0;
}

static int counted(struct model *m, struct proc *p, const struct sp_event *ev, struct life *l)
{
	struct calls *c = calls_for(m, p, l);

	if (!c)
		return -ENOMEM;
	c->n += ev->count ? ev->count : 1;
	c->bytes += ev->bytes;
	if (ev->code > 0)
		c->failed += (uint64_t)ev->code;
	c->last = (struct call_note){.ns = m->now, .tid = ev->tid, .probe = ev->probe};
	return 0;
}

static int tallied(struct model *m, struct proc *p, const struct sp_event *ev, const struct life *l)
{
	struct proc_calls *c = calls_of(m, p);
	struct worked *w = !c         ? NULL
			   : ev->code ? worked_get(m, c, ev->object)
				      : worked_find(c, ev->object);

	if (!c)
		return -ENOMEM;
	if (!w)
		return 0;
	w->open = ev->code;
	w->since_ns = ev->op && ev->op < m->now ? ev->op : m->now;
	w->life_id = l ? l->id : 0;
	return 0;
}

/* Reset or destroyed with work open on it. */
static int dropped(struct model *m, struct proc *p, const struct sp_event *ev)
{
	struct proc_calls *c = calls_of(m, p);
	struct worked *w = c ? worked_get(m, c, ev->object) : NULL;

	if (!c)
		return -ENOMEM;
	if (!w)
		return 0;
	w->open = 0;
	w->dropped = ev->code > 0 ? (uint64_t)ev->code : 0;
	w->dropped_ns = m->now;
	w->dropped_by = ev->probe;
	return 0;
}

/* What is told of calls that were before, of a process that may have gone since: it is not there
 * again for that. */
static bool of_before(const struct sp_event *ev)
{
	return !strcmp(ev->kind, "count") || !strcmp(ev->kind, "left");
}

/* A call is evidence: it moves nothing, and of a life that stands still only what changes the
 * evidence is worth another look. */
int route_call(struct model *m, const struct sp_event *ev)
{
	struct life *l = called_life(m, ev);
	bool changes = true;
	struct proc *p;
	int rc = 0;

	HASH_FIND(hh, m->procs, &ev->pid, sizeof(ev->pid), p);
	if (!p && of_before(ev)) {
		tell_taken(m, ev, NULL);
		return 0;
	}
	if (!p)
		p = proc_get(m, ev->pid);
	if (!p)
		return -ENOMEM;
	if (l)
		route_give(m, ev, l);
	else
		tell_taken(m, ev, NULL);
	if (!strcmp(ev->kind, "inside"))
		rc = entered(m, p, ev, l);
	else if (!strcmp(ev->kind, "left"))
		left(m, p, ev, ev->code > 0 ? (uint64_t)ev->code : m->now);
	else if (!strcmp(ev->kind, "count"))
		rc = counted(m, p, ev, l);
	else if (!strcmp(ev->kind, "tally"))
		rc = tallied(m, p, ev, l);
	else if (!strcmp(ev->kind, "dropped"))
		rc = dropped(m, p, ev);
	else
		rc = called(m, p, ev, l, &changes);
	if (!changes)
		m->at_hand = NULL;
	route_settle(m);
	return rc;
}

/* ---- questions ----------------------------------------------------------------------------- */

/* Did the view show where the thread is while it was in this call? It is in one place as long. */
static bool seen_in_call(const struct proc *p, const struct worker *w, const struct inside *in)
{
	return w && w->at && (w->at_ns > in->since_ns || p->looked_ns >= in->since_ns);
}

const struct room *inside_room(const struct model *m, const struct proc *p, const struct inside *in)
{
	const struct worker *w;

	if (in->room)
		return in->room;
	w = worker_find(m, p->pid, in->tid);
	return seen_in_call(p, w, in) ? w->at : NULL;
}

static bool is_of(const struct model *m, const struct inside *in, const struct life *l)
{
	const struct room *r = inside_room(m, l->proc, in);

	if (!r || r != l->room)
		return false;
	if (in->room)
		return in->life_id == l->id;
	/* by the view: the life that it has shown so, else the only one */
	if (l->seen && l->seen->at)
		return l->seen->tid == in->tid;
	return r->nopen == 1;
}

/* The innermost call is where the thread is. */
static bool better(const struct model *m, const struct inside *in, const struct inside *best,
		   uint64_t now, uint64_t least)
{
	return in->since_ns + least <= now && !waits(m, in->probe) &&
	       (!best || in->since_ns > best->since_ns);
}

const struct inside *inside_of_thread(const struct model *m, const struct proc *p, uint32_t tid,
				      uint64_t now, uint64_t least)
{
	const struct inside *best = NULL;

	for (const struct inside *in = p->calls ? p->calls->inside : NULL; in; in = in->next)
		if (in->tid == tid && better(m, in, best, now, least))
			best = in;
	return best;
}

const struct inside *inside_of_life(const struct model *m, const struct life *l, uint64_t now,
				    uint64_t least)
{
	const struct proc *p = l->proc;
	const struct inside *best = NULL;

	for (const struct inside *in = p->calls ? p->calls->inside : NULL; in; in = in->next)
		if (better(m, in, best, now, least) && is_of(m, in, l))
			best = in;
	return best;
}

const struct inside *call_blocks(const struct model *m, const struct life *l, uint64_t now)
{
	uint64_t span = stage_span(m, l);
	const struct inside *in = span ? inside_of_life(m, l, now, span) : NULL;

	return in && !in->unsure ? in : NULL;
}

const struct inside *call_ahead(const struct model *m, const struct life *l, const struct worker *w,
				uint64_t now)
{
	uint64_t span = stage_span(m, l);
	const struct inside *in =
		w && span ? inside_of_thread(m, l->proc, w->key.tid, now, span) : NULL;
	const struct room *r = in && !in->unsure ? inside_room(m, l->proc, in) : NULL;

	return r && r != l->room ? in : NULL;
}

uint64_t call_ripens(const struct model *m, const struct life *l, const struct worker *w,
		     uint64_t now)
{
	uint64_t span = stage_span(m, l), when = NEVER;
	const struct proc *p = l->proc;

	for (const struct inside *in = p->calls ? p->calls->inside : NULL; span && in;
	     in = in->next) {
		uint64_t ripe = in->since_ns + span;

		if (in->unsure || waits(m, in->probe) || ripe <= now || ripe >= when)
			continue;
		if ((w && in->tid == w->key.tid) || is_of(m, in, l))
			when = ripe;
	}
	return when;
}
