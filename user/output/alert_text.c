// SPDX-License-Identifier: Apache-2.0
/* Alert lines for a person: one line, then indented what it rests on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/output.h"
#include "store/text.h"

/* ECMA-48 SGR */
#define RED    "\033[1;31m"
#define GREEN  "\033[32m"
#define YELLOW "\033[33m"
#define DIM    "\033[2m"
#define PLAIN  "\033[0m"

/* A target's text on one line of a terminal, whatever it holds. */
static void put_safe(FILE *f, const char *text)
{
	char buf[TEXT_SAFE_MAX(VERDICT_TEXT_MAX)];

	text_safe(buf, sizeof(buf), text);
	fputs(buf, f);
}

static void put_row(FILE *f, const char *name, const char *text)
{
	if (!text || !text[0])
		return;
	fprintf(f, "    %-9s ", name);
	put_safe(f, text);
	fputc('\n', f);
}

static void put_head(FILE *f, const struct model_alert *a, const struct alert_env *env,
		     const char *color, const char *word)
{
	char time[32];

	time_utc(a->ns, env->utc_offset_ns, time);
	fprintf(f, "%s %s%s%s", time, env->color ? color : "", word, env->color ? PLAIN : "");
}

static void put_room(FILE *f, const struct model_life *l)
{
	fputs(" room ", f);
	put_safe(f, l->room);
	if (l->life > 1)
		fprintf(f, " life %u", l->life);
	fprintf(f, " (pid %u)", l->pid);
}

static void put_culprit(FILE *f, const struct model_culprit *c)
{
	if (!c->set)
		return;
	fprintf(f, "    %-9s ", "culprit");
	if (c->room[0]) {
		fputs("room ", f);
		put_safe(f, c->room);
		if (c->life > 1)
			fprintf(f, " life %u", c->life);
	}
	if (c->tid)
		fprintf(f, "%sthread %u", c->room[0] ? ", " : "", c->tid);
	if (c->state[0]) {
		fputs(": ", f);
		put_safe(f, c->state);
	}
	fputc('\n', f);
}

static void put_evidence(FILE *f, const struct model_verdict *v)
{
	for (int i = 0; i < v->nevidence && i < VERDICT_EVIDENCE_MAX; i++) {
		fputs(v->evidence[i].against ? "    - " : "    + ", f);
		put_safe(f, v->evidence[i].text);
		fputc('\n', f);
	}
}

static void put_stuck(FILE *f, const struct model_alert *a, const struct alert_env *env)
{
	const struct model_life *l = a->life;
	const struct model_verdict *v = l->verdict;
	char age[32], idle[32];

	time_span(a->age_ns, age, sizeof(age));
	time_span(a->idle_ns, idle, sizeof(idle));
	put_head(f, a, env, RED, "STUCK");
	put_room(f, l);
	fprintf(f, " in %s: %s (%s%s), no progress for %s, open for %s\n", sp_stage_name(l->stage),
		sp_cause_name(v->cause), sp_confidence_name(v->confidence),
		v->pin > 0    ? ", a pin"
		: v->pin == 0 ? ", the server's own timeout will end it"
			      : "",
		idle, age);
	put_row(f, "request", l->rid);
	put_row(f, "peer", l->peer);
	put_row(f, "last", v->last);
	put_row(f, "expected", v->expected);
	put_culprit(f, &v->culprit);
	put_evidence(f, v);
	if (l->uncertain)
		put_row(f, "uncertain", "events were lost while this room was open");
}

static const char *outcome_words(enum sp_outcome o)
{
	if (o == OUTCOME_MOVING)
		return "moves again";
	return o ? sp_outcome_name(o) : "no more is known of it";
}

static void put_recovered(FILE *f, const struct model_alert *a, const struct alert_env *env)
{
	char stalled[32];

	time_span(a->stalled_ns, stalled, sizeof(stalled));
	/* a room that failed is no good news, but it is not stuck any more */
	if (a->outcome == OUTCOME_FAILED || a->outcome == OUTCOME_NONE)
		put_head(f, a, env, DIM, "ENDED");
	else
		put_head(f, a, env, GREEN, "RECOVERED");
	put_room(f, a->life);
	fprintf(f, ": %s after a stall of %s (was %s)\n", outcome_words(a->outcome), stalled,
		sp_cause_name(a->life->verdict->cause));
}

static void put_ended(FILE *f, const struct model_alert *a, const struct alert_env *env)
{
	char age[32];

	time_span(a->age_ns, age, sizeof(age));
	put_head(f, a, env, DIM, "ended");
	put_room(f, a->life);
	fprintf(f, ": %s after %s\n", outcome_words(a->outcome), age);
}

static void put_loss(FILE *f, const struct model_alert *a, const struct alert_env *env)
{
	put_head(f, a, env, YELLOW, "LOSS");
	fprintf(f, " %llu events lost (", (unsigned long long)a->lost);
	put_safe(f, a->why ? a->why : "unknown");
	fprintf(f, "): %zu open rooms are uncertain", a->total_rooms);
	for (size_t i = 0; i < a->nrooms; i++) {
		fputs(i ? ", " : ": ", f);
		put_safe(f, a->rooms[i]);
	}
	fputs(a->total_rooms > a->nrooms && a->nrooms ? ", ...\n" : "\n", f);
}

static void put_peer(FILE *f, const struct model_alert *a)
{
	bool named = a->agent && a->agent[0];

	if (a->peer && a->peer[0]) {
		fputc(' ', f);
		put_safe(f, a->peer);
	}
	if (named) {
		fputs(" of peer ", f);
		put_safe(f, a->agent);
	}
}

static void put_other(FILE *f, const struct model_alert *a, const struct alert_env *env)
{
	put_head(f, a, env, YELLOW, a->type == ALERT_PEER ? "peer" : "target");
	if (a->pid)
		fprintf(f, " pid %u", a->pid);
	if (a->tid && a->tid != a->pid)
		fprintf(f, " thread %u", a->tid);
	fputs(": ", f);
	put_safe(f, a->what ? a->what : "");
	if (a->type == ALERT_PEER)
		put_peer(f, a);
	if (a->note && a->note[0]) {
		fputs(" (", f);
		put_safe(f, a->note);
		fputc(')', f);
	}
	fputc('\n', f);
}

char *alert_text(const struct model_alert *a, const struct alert_env *env)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	switch (a->type) {
	case ALERT_STUCK:
		put_stuck(f, a, env);
		break;
	case ALERT_RECOVERED:
		put_recovered(f, a, env);
		break;
	case ALERT_ENDED:
		put_ended(f, a, env);
		break;
	case ALERT_LOSS:
		put_loss(f, a, env);
		break;
	default:
		put_other(f, a, env);
	}
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}
