// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/readopts.h"
#include "event/id.h"
#include "store/text.h"
#include "util/clock.h"

static int parse_number(const char *option, const char *arg, uint32_t *n)
{
	char *end;
	long long v;

	errno = 0;
	v = strtoll(arg, &end, 10);
	if (end == arg || *end || errno || v < 1 || v > UINT32_MAX)
		return cli_usage("%s %s: not a number from 1 on", option, arg);
	*n = (uint32_t)v;
	return 0;
}

static error_t parse_option(int key, char *arg, struct read_opts *o)
{
	switch (key) {
	case 'i':
		o->file = arg;
		return 0;
	case KEY_PID:
		return parse_number("--pid", arg, &o->pid);
	case KEY_LIFE:
		return parse_number("--life", arg, &o->life);
	case KEY_JSON:
		o->json = true;
		return 0;
	case KEY_PERFETTO:
		o->perfetto = true;
		return 0;
	case KEY_OPEN:
		o->open = true;
		return 0;
	case KEY_STUCK_ONLY:
		o->stuck = true;
		return 0;
	case KEY_MIN:
		o->min = sp_confidence_parse(arg);
		if (o->min == CONF_NONE)
			return cli_usage("--min-confidence %s: say possible, likely or certain",
					 arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

error_t read_parser(int key, char *arg, struct argp_state *state)
{
	struct read_opts *o = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		if (o->room)
			return cli_usage("%s: a second room: say one", arg);
		o->room = arg;
		return 0;
	case ARGP_KEY_SUCCESS:
		if (!o->room)
			return cli_usage("which room? say %s ROOM: `silentpin rooms` lists them",
					 state->argv[0]);
		if (o->json && o->perfetto)
			return cli_usage("--json and --perfetto exclude each other: say one");
		return 0;
	default:
		return parse_option(key, arg, o);
	}
}

error_t read_parser_no_room(int key, char *arg, struct argp_state *state)
{
	if (key == ARGP_KEY_ARG)
		return cli_usage("%s: takes no argument: name a recording with -i FILE.db", arg);
	return parse_option(key, arg, state->input);
}

uint64_t read_now_ns(const struct rec_session *s)
{
	uint64_t now = s->running ? mono_ns() : s->end_ns;

	return now > s->end_ns ? now : s->end_ns;
}

bool read_is_stuck(const struct rec_life *l)
{
	enum sp_cause c = l->verdict.cause;

	return !l->ended_ns && c != CAUSE_NONE && c != CAUSE_FAKE_ROOM && c != CAUSE_BACKPRESSURE;
}

/* ---- rooms near one that is not there ------------------------------------------------------ */

#define NEAR_MAX 3

struct near {
	const char *wanted;
	size_t n;
	struct {
		char room[SP_ROOM_MAX];
		unsigned int distance;
	} best[NEAR_MAX];
};

/* Edits (insert, drop, change a byte) that make a of b. */
static unsigned int edit_distance(const char *a, const char *b)
{
	unsigned int row[SP_ROOM_MAX];
	size_t na = strnlen(a, SP_ROOM_MAX - 1);
	size_t nb = strnlen(b, SP_ROOM_MAX - 1);

	for (size_t j = 0; j <= nb; j++)
		row[j] = (unsigned int)j;
	for (size_t i = 1; i <= na; i++) {
		unsigned int diagonal = row[0];

		row[0] = (unsigned int)i;
		for (size_t j = 1; j <= nb; j++) {
			unsigned int best = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[nb];
}

static bool on_near(void *ctx, const struct rec_life *l)
{
	struct near *near = ctx;
	unsigned int distance = edit_distance(near->wanted, l->room);
	size_t at = near->n;

	for (size_t i = 0; i < near->n; i++)
		if (!strcmp(near->best[i].room, l->room))
			return true;
	while (at > 0 && near->best[at - 1].distance > distance)
		at--;
	if (at == NEAR_MAX)
		return true;
	if (near->n < NEAR_MAX)
		near->n++;
	memmove(&near->best[at + 1], &near->best[at], (near->n - at - 1) * sizeof(near->best[0]));
	snprintf(near->best[at].room, sizeof(near->best[at].room), "%s", l->room);
	near->best[at].distance = distance;
	return true;
}

static int no_such_room(struct recording *r, const struct read_opts *o, struct sp_err *err)
{
	struct near near = {.wanted = o->room};
	char names[NEAR_MAX * (SP_ROOM_MAX + 2) + 8] = "";
	size_t at = 0;
	int rc = rec_lives(r, NULL, o->pid, 0, on_near, &near, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < near.n; i++)
		at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s", i ? ", " : "",
				       near.best[i].room);
	if (!near.n)
		return sp_err_set(err, SP_EXIT_USAGE, -ENOENT,
				  "room %s: not in %s: no room is: was the right process watched?",
				  o->room, o->file);
	return sp_err_set(err, SP_EXIT_USAGE, -ENOENT,
			  "room %s: not in the latest session of %s: rooms near it: %s", o->room,
			  o->file, names);
}

/* The room is there, but not with this --pid or --life: say which there are. */
static int no_such_life(const struct read_opts *o, const struct read_lives *all, struct sp_err *err)
{
	char names[256] = "";
	size_t at = 0;

	for (size_t i = 0; i < all->n && at < sizeof(names); i++)
		at += (size_t)snprintf(names + at, sizeof(names) - at, "%spid %u life %u",
				       i ? ", " : "", all->at[i].pid, all->at[i].life);
	return sp_err_set(err, SP_EXIT_USAGE, -ENOENT,
			  "room %s: no such --pid or --life in %s: there is %s", o->room, o->file,
			  names);
}

/* ---- lives of a room ----------------------------------------------------------------------- */

struct gather {
	struct read_lives *out;
	size_t cap;
	bool full;
};

static bool on_life(void *ctx, const struct rec_life *l)
{
	struct gather *g = ctx;

	if (g->out->n == g->cap) {
		size_t cap = g->cap ? g->cap * 2 : 4;
		struct rec_life *more = realloc(g->out->at, cap * sizeof(*more));

		if (!more) {
			g->full = true;
			return false;
		}
		g->out->at = more;
		g->cap = cap;
	}
	g->out->at[g->out->n++] = *l;
	return true;
}

static int gather(struct recording *r, const char *room, uint32_t pid, uint32_t life,
		  struct read_lives *out, struct sp_err *err)
{
	struct gather g = {.out = out};
	int rc;

	*out = (struct read_lives){0};
	rc = rec_lives(r, room, pid, life, on_life, &g, err);
	if (!rc && g.full)
		rc = sp_err_set(err, SP_EXIT_FAIL, -ENOMEM, "out of memory");
	return rc;
}

int read_lives(struct recording *r, const struct read_opts *o, struct read_lives *out,
	       struct sp_err *err)
{
	char id[4 * SP_ID_MAX], raw[SP_ROOM_MAX];
	int rc;

	/* a room is named as the other verbs print it, or by its whole id */
	sp_id_name(raw, id, text_raw(id, sizeof(id), o->room));
	rc = gather(r, raw, o->pid, o->life, out, err);
	if (!rc && !out->n && (o->pid || o->life)) {
		rc = gather(r, raw, 0, 0, out, err);
		if (!rc && out->n)
			rc = no_such_life(o, out, err);
	}
	if (!rc && !out->n)
		rc = no_such_room(r, o, err);
	if (rc) {
		free(out->at);
		*out = (struct read_lives){0};
	}
	return rc;
}
