// SPDX-License-Identifier: Apache-2.0
/* What calls and operations of no known room add to the evidence. */
#include <inttypes.h>
#include <stdio.h>

#include "model/calls.h"
#include "model/facts.h"
#include "model/loose.h"
#include "model/seen.h"
#include "model/words.h"

/* Lines about the process as a whole: evidence has a dozen. */
#define MAX_OF_PROCESS 2

static double sec(uint64_t ns)
{
	return (double)ns / (double)NS_S;
}

/* " (stream 0x7f..)" */
static void words_object(const char *object, char *buf, size_t len)
{
	snprintf(buf, len, "%s%s%s", object[0] ? " (" : "", object, object[0] ? ")" : "");
}

static const char *doubt_of(const struct inside *in)
{
	return in->unsure ? " (not verified)" : "";
}

/* ---- calls under way ----------------------------------------------------------------------- */

void say_blocked(struct scene *s)
{
	const struct inside *in = inside_of_life(s->m, s->l, s->now, INSIDE_MIN_NS);
	char object[40];

	if (!in || s->blocked == in->tid)
		return;
	words_object(in->object, object, sizeof(object));
	say(s, false, "blocked in %.60s%s for %.1f s, thread %u%s", call_name(s->m, in->probe),
	    object, sec(s->now - in->since_ns), in->tid, doubt_of(in));
	s->blocked = in->tid;
}

/* tid: what it is to the room, in words. */
static void say_thread(struct scene *s, uint32_t tid, const char *which)
{
	const struct inside *in = inside_of_thread(s->m, s->l->proc, tid, s->now, INSIDE_MIN_NS);
	const struct room *r = in ? inside_room(s->m, s->l->proc, in) : NULL;
	char object[40];

	if (!in || s->blocked == tid)
		return;
	words_object(in->object, object, sizeof(object));
	say(s, false, "thread %u%s has been in %.60s%s for %.1f s%s%.64s%s", tid, which,
	    call_name(s->m, in->probe), object, sec(s->now - in->since_ns),
	    r && r != s->l->room ? " for room " : "", r && r != s->l->room ? r->name : "",
	    doubt_of(in));
	s->blocked = tid;
}

void say_call_ahead(struct scene *s, const struct inside *in)
{
	say_thread(s, in->tid, ", which posts for this room,");
}

static void say_inside_process(struct scene *s)
{
	const struct proc *p = s->l->proc;
	char object[40];
	int n = 0;

	for (const struct inside *in = p->calls->inside; in && n < MAX_OF_PROCESS; in = in->next) {
		if (in->tid == s->blocked || inside_room(s->m, p, in) ||
		    in != inside_of_thread(s->m, p, in->tid, s->now, INSIDE_MIN_NS))
			continue;
		words_object(in->object, object, sizeof(object));
		say(s, false,
		    "in this process thread %u has been in %.60s%s for %.1f s; for which room is "
		    "not known%s",
		    in->tid, call_name(s->m, in->probe), object, sec(s->now - in->since_ns),
		    doubt_of(in));
		n++;
	}
}

/* ---- calls that are over ------------------------------------------------------------------- */

/* "copy: 700 illegal address" */
static void words_failure(const struct scene *s, const struct call_note *n, char *buf, size_t len)
{
	const char *kind = s->m->kinds[n->kind];

	snprintf(buf, len, "%s: %" PRId64 "%s%s", kind[0] ? kind : call_name(s->m, n->probe),
		 n->code, n->text[0] ? " " : "", n->text);
}

static void say_failures(struct scene *s)
{
	const struct life *l = s->l;
	const struct proc_calls *c = l->proc->calls;
	char what[120];

	if (l->calls && l->calls->fail.ns) {
		words_failure(s, &l->calls->fail, what, sizeof(what));
		say(s, false, "failed: %s (%.40s, thread %u, at +%.1f s)", what,
		    call_name(s->m, l->calls->fail.probe), l->calls->fail.tid,
		    scene_at(s, l->calls->fail.ns));
	}
	if (c && c->sum.fail.ns >= l->opened_ns && c->sum.fail.ns) {
		words_failure(s, &c->sum.fail, what, sizeof(what));
		say(s, false,
		    "in this process failed: %s (%.40s, thread %u, at +%.1f s); for which room is "
		    "not known",
		    what, call_name(s->m, c->sum.fail.probe), c->sum.fail.tid,
		    scene_at(s, c->sum.fail.ns));
	}
}

static void say_work(struct scene *s, const struct worked *w)
{
	char what[120];

	if (w->open > 0 && w->since_ns + INSIDE_MIN_NS <= s->now)
		say(s, false, "%s: %" PRId64 " posted and not completed, none for %.0f s%s",
		    w->object, w->open, sec(s->now - w->since_ns),
		    w->life_id ? "" : "; for which room is not known");
	if (w->dropped_ns > s->l->opened_ns)
		say(s, false, "%s: %" PRIu64 " posted were lost with %.40s at +%.1f s%s", w->object,
		    w->dropped, call_name(s->m, w->dropped_by), scene_at(s, w->dropped_ns),
		    w->life_id ? "" : "; for which room is not known");
	if (!w->failed || w->fail.ns < s->l->opened_ns)
		return;
	words_failure(s, &w->fail, what, sizeof(what));
	say(s, false, "%s: %" PRIu64 " failed, the last at +%.1f s: %s", w->object, w->failed,
	    scene_at(s, w->fail.ns), what);
}

/* What there is to tell of it: the sooner in this order, and the older, the more it says. */
enum news { NEWS_OPEN, NEWS_LOST, NEWS_FAILED, NEWS_NONE };

static enum news news_of(const struct scene *s, const struct worked *w, uint64_t *ns)
{
	if (w->open > 0 && w->since_ns + INSIDE_MIN_NS <= s->now) {
		*ns = w->since_ns;
		return NEWS_OPEN;
	}
	if (w->dropped_ns > s->l->opened_ns) {
		*ns = w->dropped_ns;
		return NEWS_LOST;
	}
	*ns = w->fail.ns;
	return w->failed && w->fail.ns >= s->l->opened_ns ? NEWS_FAILED : NEWS_NONE;
}

/* The life's own come first: of the others there may be hundreds. */
static bool says_more(const struct scene *s, const struct worked *a, const struct worked *b)
{
	uint64_t a_ns, b_ns;
	enum news a_news = news_of(s, a, &a_ns), b_news = news_of(s, b, &b_ns);

	if (!a->life_id != !b->life_id)
		return a->life_id;
	return a_news != b_news ? a_news < b_news : a_ns < b_ns;
}

static void say_worked(struct scene *s)
{
	const struct proc_calls *c = s->l->proc->calls;
	const struct worked *first[MAX_OF_PROCESS] = {NULL};
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->nworked; i++) {
		const struct worked *w = &c->worked[i];
		uint64_t ns;

		if ((w->life_id && w->life_id != s->l->id) || news_of(s, w, &ns) == NEWS_NONE)
			continue;
		n++;
		for (int k = 0; k < MAX_OF_PROCESS && w; k++) {
			const struct worked *less = first[k];

			if (less && !says_more(s, w, less))
				continue;
			first[k] = w;
			w = less;
		}
	}
	for (int k = 0; k < MAX_OF_PROCESS && first[k]; k++)
		say_work(s, first[k]);
	if (n > MAX_OF_PROCESS)
		say(s, false, "%u more have work that was not completed, was lost or failed",
		    n - MAX_OF_PROCESS);
}

static void say_sum(struct scene *s)
{
	const struct calls *c = s->l->calls;
	const struct call_note *n = c->last.ns >= c->fail.ns ? &c->last : &c->fail;
	char object[48];

	words_object(n == &c->last ? n->text : "", object, sizeof(object));
	say(s, false,
	    "calls: %" PRIu64 ", %" PRIu64 " bytes, %" PRIu64
	    " failed; the last was %.60s%s at +%.1f s",
	    c->n, c->bytes, c->failed, call_name(s->m, n->probe), object, scene_at(s, n->ns));
}

void evidence_calls(struct scene *s)
{
	const struct life *l = s->l;
	const struct worker *w = seen_worker(s->m, l);

	if (l->proc->calls) {
		say_blocked(s);
		if (s->v->culprit.set && s->v->culprit.pid == l->proc->pid)
			say_thread(s, s->v->culprit.tid, "");
		else if (w)
			say_thread(s, w->key.tid, ", for which it waits,");
		else if (l->worker)
			say_thread(s, l->worker->key.tid, ", which posts for this room,");
		say_inside_process(s);
	}
	say_failures(s);
	if (l->proc->calls && l->stage != STAGE_BOOTSTRAP)
		say_worked(s);
	if (l->calls)
		say_sum(s);
}

/* ---- operations of no known room ----------------------------------------------------------- */

void evidence_loose(struct scene *s)
{
	const struct life *l = s->l;
	const struct loose *x = l->proc->loose;
	const struct op *o;

	if (!x || l->stage == STAGE_BOOTSTRAP)
		return;
	o = loose_of(l, s->now, NS_S);
	if (o)
		say(s, false,
		    "an operation of an unknown room, op 0x%" PRIx64
		    ", has been in progress for %.1f s on thread %u",
		    o->handle, sec(s->now - o->since_ns), o->worker->key.tid);
	if (x->error_ns >= l->opened_ns && x->error_ns)
		say(s, false,
		    "an operation of an unknown room ended with error %" PRId64
		    "%s%s%s at +%.1f s, thread %u",
		    x->error_code, x->error_note[0] ? " (" : "", x->error_note,
		    x->error_note[0] ? ")" : "", scene_at(s, x->error_ns), x->error_tid);
	if (life_loose(l) && s->c->conf == CONF_POSSIBLE && is_absence(s->c->cause))
		say(s, true,
		    "operations whose room is not known were posted since: what is missing may be "
		    "among them");
}
