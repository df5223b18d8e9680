// SPDX-License-Identifier: Apache-2.0
/* silentpin rooms: the lives of a recording's latest session, one a line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/readopts.h"
#include "output/json.h"
#include "output/output.h"
#include "store/text.h"
#include "util/log.h"

static const struct argp_option options[] = {
	READ_OPT_INPUT,
	{"stuck", KEY_STUCK_ONLY, NULL, 0, "Only rooms that are stuck (exit code 3: there is one)",
	 1},
	{"open", KEY_OPEN, NULL, 0, "Only rooms that have not ended", 1},
	{"json", KEY_JSON, NULL, 0, "One JSON object a line, with the columns of the view `rooms`",
	 1},
	{"min-confidence", KEY_MIN, "LEVEL", 0,
	 "For exit code 3: possible, likely (default) or certain", 1},
	{0},
};

struct listing {
	const struct read_opts *o;
	uint64_t now_ns;
	size_t rooms, open, stuck, claimed; /* claimed: stuck with at least --min-confidence */
};

/* SQL has no booleans: `uncertain` is a number, as in the view. */
static void print_json(const struct rec_life *l)
{
	const struct model_verdict *v = &l->verdict;
	char *line = out_json_line(json_pack(
		"{s:I, s:o, s:I, s:s, s:I, s:I, s:o, s:o, s:o, s:o, s:i}", "pid",
		(json_int_t)l->pid, "room", out_json_string(l->room), "life", (json_int_t)l->life,
		"stage", sp_stage_name(l->stage), "opened_ns", (json_int_t)l->opened_ns, "last_ns",
		(json_int_t)l->last_ns, "ended_ns", out_json_count(l->ended_ns), "outcome",
		l->outcome ? json_string(sp_outcome_name(l->outcome)) : json_null(), "cause",
		out_json_cause(v), "confidence", out_json_confidence(v), "uncertain",
		(int)l->uncertain));

	if (line)
		fputs(line, stdout);
	free(line);
}

static void print_row(const struct listing *ls, const struct rec_life *l)
{
	const struct model_verdict *v = &l->verdict;
	uint64_t until = l->ended_ns ? l->ended_ns : ls->now_ns;
	char age[32], idle[32] = "-";
	char room[TEXT_SAFE_MAX(SP_ROOM_MAX)];

	time_span(until > l->opened_ns ? until - l->opened_ns : 0, age, sizeof(age));
	if (!l->ended_ns)
		time_span(until > l->progress_ns ? until - l->progress_ns : 0, idle, sizeof(idle));
	text_safe(room, sizeof(room), l->room);
	printf("%-8u %-20s %4u  %-9s  %-11s  %-11s  ", l->pid, room, l->life,
	       sp_stage_name(l->stage), age, idle);
	if (l->ended_ns)
		printf("%s%s", l->outcome ? sp_outcome_name(l->outcome) : "ended",
		       v->cause ? ", was " : "");
	if (v->cause)
		printf("%s (%s)%s", sp_cause_name(v->cause), sp_confidence_name(v->confidence),
		       l->ended_ns   ? ""
		       : v->pin > 0  ? ", a pin"
		       : v->pin == 0 ? ", will time out"
				     : "");
	if (!l->ended_ns && !v->cause)
		printf("in time");
	printf("%s%s%s\n", l->observed_late ? " [late]" : "", l->uncertain ? " [uncertain]" : "",
	       l->fake ? " [fake]" : "");
}

static bool on_life(void *ctx, const struct rec_life *l)
{
	struct listing *ls = ctx;
	enum sp_confidence min = ls->o->min ? ls->o->min : CONF_LIKELY;
	bool stuck = read_is_stuck(l);

	ls->rooms++;
	ls->open += !l->ended_ns;
	ls->stuck += stuck;
	ls->claimed += stuck && l->verdict.confidence >= min;
	if ((ls->o->stuck && !stuck) || (ls->o->open && l->ended_ns))
		return true;
	if (ls->o->json)
		print_json(l);
	else
		print_row(ls, l);
	return !ferror(stdout);
}

static void tell_state(const struct listing *ls, const struct rec_session *s)
{
	char end[32];

	time_utc(s->end_ns, s->utc_offset_ns, end);
	pr_info("%s: %zu rooms, %zu open, %zu stuck; %s %s%s", ls->o->file, ls->rooms, ls->open,
		ls->stuck, s->running ? "being recorded, as of" : "recorded until", end,
		s->running || s->ended ? "" : " (its writer was killed, or this is a copy)");
}

int cmd_rooms(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = read_parser_no_room,
		.doc = "List the rooms of a recording (its latest session), oldest first.\v"
		       "A room that is [late] was first seen half-way; events were lost while an "
		       "[uncertain] one was open; a [fake] one has no peer by design.",
	};
	struct read_opts o = {.file = READ_DEFAULT_FILE};
	struct listing ls = {.o = &o};
	struct recording *r;
	struct sp_err err = {0};
	int rc = cli_parse(&argp, argc, argv, &o);

	if (rc >= 0)
		return rc;
	if (rec_open(o.file, &r, &err))
		return cli_fail(&err);
	ls.now_ns = read_now_ns(rec_session(r));
	if (!o.json)
		printf("%-8s %-20s %4s  %-9s  %-11s  %-11s  %s\n", "PID", "ROOM", "LIFE", "STAGE",
		       "AGE", "IDLE", "VERDICT");
	rc = rec_lives(r, NULL, 0, 0, on_life, &ls, &err);
	if (!rc && !o.json && !ferror(stdout)) /* else not all rooms were counted */
		tell_state(&ls, rec_session(r));
	rec_close(r);
	if (rc)
		return cli_fail(&err);
	return o.stuck && ls.claimed ? SP_EXIT_STUCK : SP_EXIT_OK;
}
