// SPDX-License-Identifier: Apache-2.0
/* A timeline for a person: when, how long since, what; where it stopped, and what should have come.
 */
#include <string.h>

#include "output/output.h"
#include "output/timeline.h"
#include "store/text.h"
#include "util/clock.h"

/* ECMA-48 SGR */
#define BOLD  "\033[1m"
#define RED   "\033[1;31m"
#define DIM   "\033[2m"
#define PLAIN "\033[0m"

#define NOTHING_NS (1 * NS_PER_SEC) /* a silence that long is shown as such */

struct page {
	FILE *f;
	const struct timeline *t;
	const struct rec_session *s;
	bool color;
	uint64_t prev_ns; /* time of the line before, 0: none */
	size_t alert;     /* next one to show */
	int stage;        /* last one shown */
	bool decided;     /* the decisive line has been shown */
};

static void put_safe(FILE *f, const char *text)
{
	char buf[TEXT_SAFE_MAX(512)];

	text_safe(buf, sizeof(buf), text);
	fputs(buf, f);
}

static void paint(const struct page *p, const char *color)
{
	if (p->color)
		fputs(color, p->f);
}

static void put_span(FILE *f, const char *before, uint64_t ns, const char *after)
{
	char span[32];

	time_span(ns, span, sizeof(span));
	fprintf(f, "%s%s%s", before, span, after);
}

/* A recording whose writer was killed may know a life better than how far the model had come. */
static uint64_t since(uint64_t now_ns, uint64_t ns)
{
	return now_ns > ns ? now_ns - ns : 0;
}

/* ---- header -------------------------------------------------------------------------------- */

static const char *outcome_words(enum sp_outcome o)
{
	return o ? sp_outcome_name(o) : "how is not known";
}

static void put_state(const struct page *p, uint64_t now_ns)
{
	const struct rec_life *l = &p->t->life;

	if (l->ended_ns) {
		fprintf(p->f, "  state     ended: %s", outcome_words(l->outcome));
		put_span(p->f, " after ", since(l->ended_ns, l->opened_ns), "\n");
		return;
	}
	fprintf(p->f, "  state     in %s", sp_stage_name(l->stage));
	put_span(p->f, ", open for ", since(now_ns, l->opened_ns), "");
	put_span(p->f, ", no progress for ", since(now_ns, l->progress_ns), "\n");
}

static void put_header(const struct page *p, uint64_t now_ns)
{
	const struct rec_life *l = &p->t->life;
	const struct model_verdict *v = &l->verdict;
	char time[32];

	paint(p, BOLD);
	fputs("room ", p->f);
	put_safe(p->f, l->room);
	fprintf(p->f, "  life %u  pid %u", l->life, l->pid);
	paint(p, PLAIN);
	fprintf(p->f, "  (%s)\n", p->s->profile);
	if (l->rid[0]) {
		fputs("  request   ", p->f);
		put_safe(p->f, l->rid);
		fputc('\n', p->f);
	}
	if (l->peer[0]) {
		fputs("  peer      ", p->f);
		put_safe(p->f, l->peer);
		fputc('\n', p->f);
	}
	time_utc(l->opened_ns, p->s->utc_offset_ns, time);
	fprintf(p->f, "  opened    %s%s\n", time,
		l->observed_late ? " (first seen half-way: it is older than that)" : "");
	put_state(p, now_ns);
	if (v->cause)
		fprintf(p->f, "  verdict   %s%s (%s)%s\n", l->ended_ns ? "was " : "",
			sp_cause_name(v->cause), sp_confidence_name(v->confidence),
			v->pin > 0    ? ", a pin"
			: v->pin == 0 ? ", the server's own timeout ends it"
				      : "");
	if (l->uncertain)
		fputs("  uncertain events were lost while it was open\n", p->f);
}

/* ---- lines --------------------------------------------------------------------------------- */

/* Mark, time of day, time since the life opened, time since the line before. */
static void put_when(struct page *p, const char *mark, uint64_t ns)
{
	uint64_t utc = ns + (uint64_t)p->s->utc_offset_ns;
	uint64_t day = utc / NS_PER_SEC % 86400;
	uint64_t open = p->t->life.opened_ns;
	uint64_t rel = ns >= open ? ns - open : open - ns;
	uint64_t delta = p->prev_ns && ns > p->prev_ns ? ns - p->prev_ns : 0;

	fprintf(p->f, "%-2s %02u:%02u:%02u.%06u  %c%u.%06u  ", mark, (unsigned int)(day / 3600),
		(unsigned int)(day / 60 % 60), (unsigned int)(day % 60),
		(unsigned int)(utc % NS_PER_SEC / 1000), ns >= open ? '+' : '-',
		(unsigned int)(rel / NS_PER_SEC), (unsigned int)(rel % NS_PER_SEC / 1000));
	if (p->prev_ns)
		fprintf(p->f, "%4u.%06u  ", (unsigned int)(delta / NS_PER_SEC),
			(unsigned int)(delta % NS_PER_SEC / 1000));
	else
		fprintf(p->f, "%11s  ", "");
	p->prev_ns = ns;
}

static void put_silence(const struct page *p, uint64_t until_ns)
{
	if (!p->prev_ns || until_ns < p->prev_ns + NOTHING_NS)
		return;
	paint(p, DIM);
	put_span(p->f, "   ... ", until_ns - p->prev_ns, " nothing ...");
	paint(p, PLAIN);
	fputc('\n', p->f);
}

static void put_stage(struct page *p, int stage)
{
	const uint64_t *at = p->t->life.stage_at;

	paint(p, BOLD);
	fprintf(p->f, "-- %s", sp_stage_name(stage));
	if (at[stage] > p->t->life.opened_ns)
		put_span(p->f, ", ", at[stage] - p->t->life.opened_ns, " after it opened");
	paint(p, PLAIN);
	fputc('\n', p->f);
	p->stage = stage;
}

/*
 * Stages that began up to ns. bootstrap and inflight stand before the event that begins them (an
 * announce, a post), the others after the event that ends what was before.
 */
static void put_stages(struct page *p, uint64_t ns, bool before)
{
	const uint64_t *at = p->t->life.stage_at;

	for (int i = p->stage + 1; i <= STAGE_RELEASING; i++) {
		bool leads = i == STAGE_BOOTSTRAP || i == STAGE_INFLIGHT;

		if (at[i] && (at[i] < ns || (at[i] == ns && (!before || leads))))
			put_stage(p, i);
	}
}

static void put_alert(struct page *p, const struct rec_alert *a)
{
	put_silence(p, a->ns);
	paint(p, RED);
	put_when(p, "!!", a->ns);
	if (a->type == ALERT_STUCK) {
		fprintf(p->f, "STUCK: %s (%s)", sp_cause_name(a->cause),
			sp_confidence_name(a->confidence));
		put_span(p->f, ", no progress for ", a->idle_ns, "");
	} else {
		fprintf(p->f, "recovered: %s", outcome_words(a->outcome));
		put_span(p->f, " after ", a->stalled_ns, "");
	}
	paint(p, PLAIN);
	fputc('\n', p->f);
}

static void put_alerts(struct page *p, uint64_t ns)
{
	const struct timeline *t = p->t;

	for (; p->alert < t->nalerts && t->alerts[p->alert].ns <= ns; p->alert++) {
		put_stages(p, t->alerts[p->alert].ns, false);
		put_alert(p, &t->alerts[p->alert]);
	}
}

static const char *mark_of(struct page *p, const struct timeline_event *e)
{
	const struct model_verdict *v = &p->t->life.verdict;

	if (v->cause && v->decisive_ns == e->ev.ns && !p->decided) {
		p->decided = true;
		return ">>";
	}
	if (!e->own || (e->ev.flags & EV_GAP))
		return "~~"; /* not the room's: the watch, its target, or before the life */
	return "";
}

static void put_event(struct page *p, const struct timeline_event *e)
{
	char words[400];
	const char *mark;

	put_silence(p, e->ev.ns);
	mark = mark_of(p, e);
	if (mark[0] == '>')
		paint(p, RED);
	put_when(p, mark, e->ev.ns);
	timeline_describe(p->t, &e->ev, words, sizeof(words));
	/* in what the server's own view says a thread is the subject, not who did it */
	if (e->ev.tid && e->ev.role != ROLE_HELD && !(e->ev.role == ROLE_THREAD && e->ev.kind[0]))
		fprintf(p->f, "%7u  ", e->ev.tid);
	else
		fprintf(p->f, "%7s  ", "");
	put_safe(p->f, words);
	if (!e->own && e->ev.role == ROLE_ABORT)
		fputs(" (the room was not known yet)", p->f);
	if (mark[0] == '>')
		paint(p, PLAIN);
	fputc('\n', p->f);
}

/* ---- the end ------------------------------------------------------------------------------- */

static void put_end(struct page *p, uint64_t now_ns)
{
	const struct rec_life *l = &p->t->life;
	const struct model_verdict *v = &l->verdict;

	if (l->ended_ns) {
		put_silence(p, l->ended_ns);
		paint(p, BOLD);
		fprintf(p->f, "-- ended: %s", outcome_words(l->outcome));
		put_span(p->f, " after ", since(l->ended_ns, l->opened_ns), "");
		paint(p, PLAIN);
		fputc('\n', p->f);
		return;
	}
	put_silence(p, now_ns);
	put_when(p, "", now_ns);
	fprintf(p->f, "%7s  %s\n", "",
		p->s->running ? "now: still open"
		: p->s->ended ? "end of the recording: still open"
			      : "the recording stops here (its writer was killed, or this is a "
				"copy): still open");
	if (!v->expected[0])
		return;
	paint(p, RED);
	fprintf(p->f, "%-2s expected next: ", p->decided ? "" : ">>");
	put_safe(p->f, v->expected);
	paint(p, PLAIN);
	fputc('\n', p->f);
}

void timeline_text(FILE *f, const struct timeline *t, const struct rec_session *s, uint64_t now_ns,
		   bool color)
{
	struct page p = {.f = f, .t = t, .s = s, .color = color, .stage = STAGE_NONE};

	put_header(&p, now_ns);
	if (t->nev)
		fprintf(f, "\n   %-15s  %-9s  %11s  %7s  %s\n", "time (UTC)", "+open", "+before",
			"thread", "event");
	for (size_t i = 0; i < t->nev; i++) {
		const struct timeline_event *e = &t->ev[i];

		if (e->ev.ns)
			put_alerts(&p, e->ev.ns - 1);
		put_stages(&p, e->ev.ns, true);
		put_event(&p, e);
		/* an event at the same time may still belong before the next stage */
		if (i + 1 == t->nev || t->ev[i + 1].ev.ns > e->ev.ns)
			put_stages(&p, e->ev.ns, false);
	}
	put_stages(&p, UINT64_MAX, false);
	put_alerts(&p, UINT64_MAX);
	if (!t->life.full)
		fputs("   (its timeline was not kept: it ended healthy; watch --record all keeps "
		      "every timeline)\n",
		      f);
	put_end(&p, now_ns);
}
