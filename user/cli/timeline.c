// SPDX-License-Identifier: Apache-2.0
/* silentpin timeline ROOM: what happened to a room, life by life. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/readopts.h"
#include "output/timeline.h"

static const struct argp_option options[] = {
	READ_OPT_INPUT,
	READ_OPT_PID,
	READ_OPT_LIFE,
	{"json", KEY_JSON, NULL, 0, "One JSON object a line, with the columns of the view `events`",
	 1},
	{"perfetto", KEY_PERFETTO, NULL, 0,
	 "A trace (JSON) for https://ui.perfetto.dev or chrome://tracing", 1},
	{0},
};

static bool on_json(void *ctx, const char *json)
{
	puts(json);
	return !ferror(stdout);
}

static int print_json(struct recording *r, const struct read_lives *lives, struct sp_err *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < lives->n; i++)
		rc = rec_events_json(r, &lives->at[i], on_json, NULL, err);
	return rc;
}

static int print_text(struct recording *r, const struct read_lives *lives, struct sp_err *err)
{
	const struct rec_session *s = rec_session(r);
	bool color = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
	uint64_t now_ns = read_now_ns(s);

	for (size_t i = 0; i < lives->n; i++) {
		struct timeline t;
		int rc = timeline_load(r, &lives->at[i], &t, err);

		if (!rc) {
			if (i)
				putchar('\n');
			timeline_text(stdout, &t, s, now_ns, color);
		}
		timeline_free(&t);
		if (rc)
			return rc;
	}
	return 0;
}

static int print_perfetto(struct recording *r, const struct read_lives *lives, struct sp_err *err)
{
	const struct rec_session *s = rec_session(r);
	struct timeline *t = calloc(lives->n, sizeof(*t));
	int rc = 0;

	if (!t)
		return sp_err_set(err, SP_EXIT_FAIL, -ENOMEM, "out of memory");
	for (size_t i = 0; !rc && i < lives->n; i++)
		rc = timeline_load(r, &lives->at[i], &t[i], err);
	if (!rc)
		timeline_perfetto(stdout, t, lives->n, s, read_now_ns(s));
	for (size_t i = 0; i < lives->n; i++)
		timeline_free(&t[i]);
	free(t);
	return rc;
}

int cmd_timeline(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = read_parser,
		.args_doc = "ROOM",
		.doc = "Show what happened to a room, in each process that had it, life by life.\v"
		       "Marks: `--` a stage begins, `>>` the line that decides the verdict, `!!` "
		       "an "
		       "alert, `~~` not the room's own: the watch, its target, or before the room "
		       "was known.",
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
		rc = o.json       ? print_json(r, &lives, &err)
		     : o.perfetto ? print_perfetto(r, &lives, &err)
				  : print_text(r, &lives, &err);
		free(lives.at);
	}
	rec_close(r);
	return rc ? cli_fail(&err) : SP_EXIT_OK;
}
