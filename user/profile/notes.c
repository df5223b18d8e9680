// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "profile/notes.h"
#include "profile/profile_priv.h"

/* Each event that a probe may give, with the alternative (NULL: every hit) that gives it. */
typedef bool (*event_is)(const struct profile_probe *p, const struct evt_match *m,
			 const struct evt_spec *ev, const void *ctx);

static bool any_event(const struct profile *p, event_is is, const void *ctx)
{
	bool yes = false;

	for (int i = 0; i < p->nprobes; i++) {
		const struct profile_probe *pp = &p->probes[i];

		if (pp->off)
			continue;
		if (!pp->nmatch)
			yes |= is(pp, NULL, &pp->event, ctx);
		for (int k = 0; k < pp->nmatch; k++)
			yes |= is(pp, &pp->match[k], &pp->match[k].event, ctx);
	}
	return yes;
}

/* Can the field have this value? What comes from an argument or a capture may be anything. */
static bool may_be(const struct profile_probe *p, const struct evt_match *m,
		   const struct evt_spec *ev, const char *name, const char *value)
{
	const struct evt_field *f = event_field(ev, name);
	const char *word = f ? f->value : name;

	if (strchr(word, '{') || event_known(p, m, word, strlen(word)))
		return true;
	return f && !strcmp(word, value);
}

/* ---- work: begin and end --------------------------------------------------------------------- */

static bool is_work(const struct profile_probe *p, const struct evt_match *m,
		    const struct evt_spec *ev, const void *ctx)
{
	return event_field(ev, "work") && may_be(p, m, ev, "work", ctx);
}

static void note_work(const struct profile *p, bool begins, profile_note_fn fn, void *ctx)
{
	bool ends = any_event(p, is_work, "end");

	if (begins && !ends)
		fn(ctx, "work: begin without work: end: a thread's work for a room ends only when "
			"that for another begins");
	if (ends && !begins)
		fn(ctx, "work: end without work: begin: it ends nothing");
}

/* ---- whose room ------------------------------------------------------------------------------ */

static void note_scope(const struct profile *p, bool works, profile_note_fn fn, void *ctx)
{
	bool encloses = false, asks = false, asks_thread = false;

	for (int i = 0; i < p->nprobes; i++) {
		encloses |= (p->probes[i].prog.flags & SP_P_SCOPE) != 0;
		asks |= p->probes[i].scope != SCOPE_NONE && !p->probes[i].off;
		asks_thread |= p->probes[i].scope == SCOPE_THREAD && !p->probes[i].off;
	}
	if (asks && !encloses && !(asks_thread && works))
		fn(ctx, "no call gives a room to those inside it: it takes a probe with on: ret "
			"and a room or an op");
	if (asks_thread && !works)
		fn(ctx, "scope: thread goes no further than the calls around: no event says work: "
			"begin");
}

/* ---- what ends a room ------------------------------------------------------------------------ */

static bool posts(const struct profile_probe *p, const struct evt_match *m,
		  const struct evt_spec *ev, const void *ctx)
{
	const struct profile_need *need = ctx;
	char word[32];

	snprintf(word, sizeof(word), "%s%s", need->kind, need->last ? ".last" : "");
	for (int i = 0; i < ev->ncovers; i++)
		if (!strcmp(ev->covers[i], word))
			return true;
	return ev->role == ROLE_POST && may_be(p, m, ev, "kind", need->kind) &&
	       (!need->last || may_be(p, m, ev, "last", "1"));
}

static void note_needs(const struct profile *p, profile_note_fn fn, void *ctx)
{
	char text[PROFILE_NOTE_MAX];

	for (int i = 0; i < p->nneeds; i++) {
		const struct profile_need *n = &p->needs[i];

		if (any_event(p, posts, n))
			continue;
		snprintf(text, sizeof(text),
			 "done needs %s%s, and no event posts or covers it: no room is ever done",
			 n->kind, n->last ? ".last" : "");
		fn(ctx, text);
	}
}

/* ---- tallies --------------------------------------------------------------------------------- */

static void note_tallies(const struct profile *p, profile_note_fn fn, void *ctx)
{
	char text[PROFILE_NOTE_MAX];

	for (int t = 0; t < p->ntallies; t++) {
		bool post = false, done = false;

		for (int i = 0; i < p->nprobes; i++) {
			const struct profile_probe *pp = &p->probes[i];

			if (pp->off || pp->each.tally_id != t)
				continue;
			post |= pp->each.tally == SP_TALLY_POST;
			done |= pp->each.tally == SP_TALLY_DONE;
		}
		if (post == done) /* both; or neither, where they are off */
			continue;
		snprintf(text, sizeof(text), "tally %s: no probe says %s", p->tallies[t].name,
			 post ? "completes: what is posted stays open for ever"
			      : "posts: there is nothing to complete");
		fn(ctx, text);
	}
}

void profile_notes(const struct profile *p, profile_note_fn fn, void *ctx)
{
	bool works = any_event(p, is_work, "begin");

	note_scope(p, works, fn, ctx);
	note_work(p, works, fn, ctx);
	note_needs(p, fn, ctx);
	note_tallies(p, fn, ctx);
}
