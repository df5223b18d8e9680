// SPDX-License-Identifier: Apache-2.0
/* silentpin explain ROOM: the verdict, what it rests on, what cannot be known, how to go on. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/readopts.h"
#include "output/json.h"
#include "output/output.h"
#include "store/text.h"

static const struct argp_option options[] = {
	READ_OPT_INPUT,
	READ_OPT_PID,
	READ_OPT_LIFE,
	{"json", KEY_JSON, NULL, 0, "One JSON object per life", 1},
	{0},
};

/* What a person at the node can do next; facts about the server, not about this room. */
static const char *const advice[CAUSE_MAX] = {
	[CAUSE_THREAD_DIED] = "A thread of the server is gone and does not come back: every later "
			      "room waits too. "
			      "Drain and restart this scheduler.",
	[CAUSE_TRANSFER_ERROR] =
		"The transport has said that it failed and the server has not acted on it: look at "
		"the peer named above, then abort the request or restart this scheduler.",
	[CAUSE_QUEUED_BEHIND] =
		"This room is a victim: explain the culprit named above, this one moves when that "
		"one does.",
	[CAUSE_TRANSFER_STALLED] =
		"Look at the peer: does its process run (not stopped, not gone), does its network "
		"answer? Over NIXL a transfer has no deadline of its own.",
	[CAUSE_CONTROL_LOST] =
		"The peer owes an answer to a staging request: look at its log and at the "
		"connection to it.",
	[CAUSE_STATUS_LOST] =
		"The server polls a room that it has forgotten: nothing but a restart of this "
		"scheduler frees it.",
	[CAUSE_ROOM_REUSED] =
		"The same room id was used twice at once: look at who chooses room ids (router, "
		"retries) and compare the lives with `silentpin timeline`.",
	[CAUSE_SEND_INCOMPLETE] =
		"Later chunks were never posted: look for an abort or an error of this request in "
		"the scheduler's log at the time of the last post.",
	[CAUSE_AUX_MISSING] = "All KV data is sent, the auxiliary write is not: look for an error "
			      "of the transfer "
			      "worker at the time of the last post.",
	[CAUSE_DONE_NOT_RELEASED] =
		"The transfers are complete and the scheduler has not let go: does its main loop "
		"still turn?",
	[CAUSE_ABORT_NOT_REAPED] =
		"The abort came and nothing acted on it, as far as can be seen: compare with the "
		"server's own in-flight count.",
	[CAUSE_NEVER_SENT] =
		"The room was ready, and no transfer of it was seen: it may still wait "
		"for its forward pass (or, where `not known` says that what is sent "
		"cannot be seen, be in the middle of it); compare with the server's "
		"queue metrics before acting.",
	[CAUSE_ABORT_BEFORE_OPEN] =
		"The decode side gave up before the room was known here; the server's bootstrap "
		"timeout ends it.",
	[CAUSE_QUORUM_INCOMPLETE] =
		"Look for the decode ranks that have not announced themselves; the server's "
		"bootstrap timeout ends the room.",
	[CAUSE_DECODE_ABSENT] =
		"The decode side never announced itself: look at its log and at the router; the "
		"server's bootstrap timeout ends the room.",
	[CAUSE_PEER_GONE] = "The peer's connection is gone: look whether its process is.",
	[CAUSE_RANK_DIVERGED] =
		"Ranks disagree about this room: compare the processes with `silentpin timeline`.",
	[CAUSE_PEER_NOT_TOLD] = "Prefill is done with it: look at the decode side.",
	[CAUSE_FAKE_ROOM] = "Nothing to do: health checks and warm-up use such rooms.",
	[CAUSE_BACKPRESSURE] =
		"Nothing to do for this room: everything is late, and everything moves.",
};

/* Where the server's own state was seen: there is no doubt left that would ask for comparing. */
static const char *const advice_certain[CAUSE_MAX] = {
	[CAUSE_ABORT_NOT_REAPED] = "The server still holds a request that was aborted or has "
				   "failed: only a restart of this scheduler frees it.",
	[CAUSE_NEVER_SENT] = "The server waits for a transfer that it has not begun: look for an "
			     "error of this request in the scheduler's log at the time it became "
			     "ready.",
	[CAUSE_THREAD_DIED] = "A thread of the server is gone and does not come back: every later "
			      "room waits too. Its last words are in the scheduler's log. Drain "
			      "and restart this scheduler.",
};

static const char *advice_of(const struct model_verdict *v)
{
	const char *certain = v->confidence == CONF_CERTAIN ? advice_certain[v->cause] : NULL;

	return certain ? certain : advice[v->cause];
}

/* What is shown of a life, besides its row. */
struct page {
	const struct rec_session *s;
	const struct rec_life *l;
	uint64_t now_ns;
	bool asked;     /* its client's request was seen to arrive */
	bool tracked;   /* and its answer would be seen */
	bool viewed;    /* the server's own state was seen to name it */
	bool view_lost; /* and could not be read any more later */
};

/* Has the server's own view spoken of it, and does it still? Has its client, and does it wait? */
static bool on_event(void *ctx, const struct sp_event *ev, uint32_t life_no)
{
	struct page *p = ctx;

	if (ev->role == ROLE_HELD && life_no) {
		p->viewed = true;
		p->view_lost = false;
	} else if (ev->role == ROLE_VIEW && !strcmp(ev->kind, "lost")) {
		p->view_lost = true;
	} else if (life_no && ev->role == ROLE_ARRIVE) {
		p->asked = true;
		p->tracked = ev->flags & EV_TRACKED;
	} else if (life_no &&
		   (!strcmp(ev->kind, "client-gone") || !strcmp(ev->kind, "untracked"))) {
		p->tracked = false;
	}
	return true;
}

#define UNKNOWN_MAX 10
struct unknowns {
	const char *text[UNKNOWN_MAX];
	int n;
};

static void add_unknown(struct unknowns *u, bool holds, const char *text)
{
	if (holds && u->n < UNKNOWN_MAX)
		u->text[u->n++] = text;
}

/* What this recording cannot tell about the life, whatever the verdict. */
static void find_unknowns(const struct page *p, struct unknowns *u)
{
	const struct rec_session *s = p->s;
	const struct rec_life *l = p->l;
	bool open = !l->ended_ns;
	/* not from where the events come, and not from the server's own state */
	bool no_release = open && !s->sees_release && !p->tracked && !p->viewed;
	bool no_arrive = open && !p->asked && !p->viewed;

	u->n = 0;
	add_unknown(u, l->observed_late,
		    "what happened before it was first seen: the watch began in its middle");
	add_unknown(u, l->uncertain,
		    "what the events were that were lost while it was open (see `silentpin "
		    "timeline`)");
	add_unknown(u, no_release,
		    "whether the server still holds the request: its release and the answer to its "
		    "client were not to be seen, and its own state was not read");
	add_unknown(u, open && p->viewed && p->view_lost,
		    "whether the server still holds the request: its own state could not be read "
		    "any more (see `silentpin timeline`)");
	add_unknown(u, no_arrive && l->stage == STAGE_BOOTSTRAP,
		    "when the request itself reached this server, if it did");
	add_unknown(u, no_arrive && l->stage == STAGE_READY,
		    "whether the request waits for its forward pass, which may take long on a busy "
		    "node");
	add_unknown(u, s->no_posts,
		    "what is sent: the watch saw the transport's sockets only, not its operations");
	add_unknown(u, s->lost_events != 0,
		    "which events the recording itself could not keep (full disk?)");
	add_unknown(u, open && !s->running && !s->ended,
		    "what happened after the recording stops: its writer was killed, or this is a "
		    "copy");
	add_unknown(u, open && s->ended, "what happened after the recording ended");
}

static const char *pin_words(const struct model_verdict *v)
{
	return v->pin > 0    ? "a pin: nothing in the server will end it"
	       : v->pin == 0 ? "delayed, not pinned: the server's own timeout will end it"
			     : "whether anything in the server will end it is not known";
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static json_t *evidence_of(const struct model_verdict *v, bool against)
{
	json_t *list = json_array();

	for (int i = 0; i < v->nevidence; i++)
		if (v->evidence[i].against == against)
			json_array_append_new(list, out_json_string(v->evidence[i].text));
	return list;
}

static bool add_stack(void *ctx, const struct rec_stack *s)
{
	json_t *lines = json_array();

	for (int i = 0; i < s->nlines; i++)
		json_array_append_new(lines, out_json_string(s->line[i]));
	json_array_append_new(ctx, json_pack("{s:I, s:o, s:o}", "tid", (json_int_t)s->tid, "name",
					     out_json_text(s->name), "stack", lines));
	return true;
}

static int print_json(struct recording *r, const struct page *p, struct sp_err *err)
{
	const struct rec_session *s = p->s;
	const struct rec_life *l = p->l;
	const struct model_verdict *v = &l->verdict;
	uint64_t until = l->ended_ns ? l->ended_ns : p->now_ns;
	json_t *unknown = json_array(), *stacks = json_array();
	struct unknowns u;
	char opened[32];
	char *line;

	int rc = v->cause ? rec_stacks(r, l, add_stack, stacks, err) : 0;

	find_unknowns(p, &u);
	for (int i = 0; i < u.n; i++)
		json_array_append_new(unknown, json_string(u.text[i]));
	time_utc(l->opened_ns, s->utc_offset_ns, opened);
	line = out_json_line(json_pack(
		"{s:i, s:I, s:s, s:o, s:I, s:s, s:s, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, "
		"s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:o, s:o, s:o}",
		"v", 1, "pid", (json_int_t)l->pid, "profile", s->profile, "room",
		out_json_string(l->room), "life", (json_int_t)l->life, "stage",
		sp_stage_name(l->stage), "opened", opened, "age_s",
		out_json_seconds(until > l->opened_ns ? until - l->opened_ns : 0), "idle_s",
		out_json_seconds(until > l->progress_ns ? until - l->progress_ns : 0), "outcome",
		l->outcome ? json_string(sp_outcome_name(l->outcome)) : json_null(), "cause",
		out_json_cause(v), "stuck", (int)read_is_stuck(l), "confidence",
		out_json_confidence(v), "pin", v->cause ? out_json_pin(v->pin) : json_null(), "rid",
		out_json_text(l->rid), "peer", out_json_text(l->peer), "last",
		out_json_text(v->last), "expected", out_json_text(v->expected), "culprit",
		out_json_culprit(&v->culprit), "for", evidence_of(v, false), "against",
		evidence_of(v, true), "observed_late", (int)l->observed_late, "uncertain",
		(int)l->uncertain, "unknown", unknown, "advice", out_json_text(advice_of(v)),
		"stacks", stacks));
	if (line)
		fputs(line, stdout);
	free(line);
	return rc;
}

/* ---- text ---------------------------------------------------------------------------------- */

static void put_safe(const char *text)
{
	char buf[TEXT_SAFE_MAX(VERDICT_TEXT_MAX)];

	text_safe(buf, sizeof(buf), text);
	fputs(buf, stdout);
}

static void put_row(const char *name, const char *text)
{
	if (!text || !text[0])
		return;
	printf("  %-10s", name);
	put_safe(text);
	putchar('\n');
}

static void print_where(const struct rec_life *l, uint64_t now_ns)
{
	uint64_t until = l->ended_ns ? l->ended_ns : now_ns;
	char age[32], idle[32];

	time_span(until > l->opened_ns ? until - l->opened_ns : 0, age, sizeof(age));
	time_span(until > l->progress_ns ? until - l->progress_ns : 0, idle, sizeof(idle));
	if (l->ended_ns)
		printf("  state     ended (%s) after %s\n",
		       l->outcome ? sp_outcome_name(l->outcome) : "how is not known", age);
	else
		printf("  state     in %s, open for %s, no progress for %s\n",
		       sp_stage_name(l->stage), age, idle);
	put_row("request", l->rid);
	put_row("peer", l->peer);
}

static void print_culprit(const struct model_culprit *c)
{
	if (!c->set)
		return;
	printf("  culprit   ");
	if (c->room[0]) {
		printf("room ");
		put_safe(c->room);
		printf(" life %u", c->life);
	}
	if (c->tid)
		printf("%sthread %u", c->room[0] ? ", " : "", c->tid);
	if (c->state[0]) {
		printf(": ");
		put_safe(c->state);
	}
	putchar('\n');
}

static void print_evidence(const struct model_verdict *v, bool against)
{
	bool any = false;

	for (int i = 0; i < v->nevidence; i++) {
		if (v->evidence[i].against != against)
			continue;
		if (!any)
			printf("  %s\n", against ? "against" : "for");
		any = true;
		printf("    %c ", against ? '-' : '+');
		put_safe(v->evidence[i].text);
		putchar('\n');
	}
}

struct stack_page {
	const struct page *p;
	bool any;
};

static void put_line(const char *text)
{
	fputs("      ", stdout);
	put_safe(text);
	putchar('\n');
}

static bool print_stack(void *ctx, const struct rec_stack *s)
{
	struct stack_page *sp = ctx;
	char time[32];

	time_utc(s->ns, sp->p->s->utc_offset_ns, time);
	if (!sp->any)
		printf("  stacks    at %s\n", time);
	sp->any = true;
	printf("    thread %u", s->tid);
	if (s->name[0]) {
		putchar(' ');
		put_safe(s->name);
	}
	puts(s->tid == s->pid ? " (main)" : "");
	for (int i = 0; i < s->nlines; i++)
		put_line(s->line[i]);
	return true;
}

static void print_healthy(const struct rec_session *s, const struct rec_life *l)
{
	char span[32];

	if (l->ended_ns) {
		printf("%s\n", l->outcome == OUTCOME_DONE ? "healthy: it ended well"
			       : l->outcome == OUTCOME_NONE
				       ? "never stuck: another process's, as far as is known"
				       : "it failed, and was never stuck");
		return;
	}
	printf("not stuck");
	if (s->stage_ns[l->stage]) {
		time_span(s->stage_ns[l->stage], span, sizeof(span));
		printf(": %s may take %s without progress", sp_stage_name(l->stage), span);
	}
	putchar('\n');
}

static int print_text(struct recording *r, const struct page *p, struct sp_err *err)
{
	const struct rec_session *s = p->s;
	const struct rec_life *l = p->l;
	const struct model_verdict *v = &l->verdict;
	struct stack_page sp = {.p = p};
	struct unknowns u;
	int rc = 0;

	printf("room ");
	put_safe(l->room);
	printf(" life %u pid %u (%s): ", l->life, l->pid, s->profile);
	if (!v->cause)
		print_healthy(s, l);
	else
		printf("%s%s, %s; %s\n", l->ended_ns ? "was " : "", sp_cause_name(v->cause),
		       sp_confidence_name(v->confidence),
		       l->ended_ns ? "it has ended" : pin_words(v));
	print_where(l, p->now_ns);
	if (v->cause) {
		put_row("last", v->last);
		put_row("expected", v->expected);
		print_culprit(&v->culprit);
		print_evidence(v, false);
		print_evidence(v, true);
		rc = rec_stacks(r, l, print_stack, &sp, err);
	}
	find_unknowns(p, &u);
	if (u.n)
		printf("  not known\n");
	for (int i = 0; i < u.n; i++)
		printf("    ? %s\n", u.text[i]);
	if (!l->ended_ns)
		put_row("go on", advice_of(v));
	printf("  see also  silentpin timeline ");
	put_safe(l->room);
	printf(" --pid %u --life %u\n", l->pid, l->life);
	return rc;
}

static int explain(struct recording *r, const struct rec_life *l, bool json, struct sp_err *err)
{
	struct page p = {.s = rec_session(r), .l = l, .now_ns = read_now_ns(rec_session(r))};
	int rc = rec_events(r, l, on_event, &p, err);

	if (rc)
		return rc;
	return json ? print_json(r, &p, err) : print_text(r, &p, err);
}

int cmd_explain(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = read_parser,
		.args_doc = "ROOM",
		.doc = "Explain the verdict on a room: what it rests on, for and against, what was "
		       "expected next, where the threads in question stood, what cannot be known "
		       "from what was recorded, and how to go on.",
	};
	struct read_opts o = {.file = READ_DEFAULT_FILE};
	struct read_lives lives;
	struct recording *r;
	struct sp_err err = {0};
	int rc = cli_parse(&argp, argc, argv, &o);

	if (rc >= 0)
		return rc;
	if (rec_open(o.file, &r, &err))
		return cli_fail(&err);
	rc = read_lives(r, &o, &lives, &err);
	if (!rc) {
		for (size_t i = 0; !rc && i < lives.n; i++)
			rc = explain(r, &lives.at[i], o.json, &err);
		free(lives.at);
	}
	rec_close(r);
	return rc ? cli_fail(&err) : SP_EXIT_OK;
}
