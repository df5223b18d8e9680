// SPDX-License-Identifier: Apache-2.0
/* silentpin replay FILE.db: the recorded events through the model again. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/exits.h"
#include "cli/readopts.h"
#include "output/filter.h"
#include "output/output.h"
#include "util/log.h"

enum { KEY_PROBES = 0x300, KEY_STUCK, KEY_ALERTS };

static const struct argp_option options[] = {
	{"probes", KEY_PROBES, "FILE", 0, "Probes file (default: the one that was recorded)", 1},
	{"stuck-after", KEY_STUCK, "STAGE=DUR", 0,
	 "Another deadline of a stage, e.g. inflight=5s; may be repeated", 1},
	{"alerts", KEY_ALERTS, "text|json", 0, "Form of the alert lines (default text)", 1},
	{"min-confidence", KEY_MIN, "LEVEL", 0,
	 "Alert from this confidence on (default: as when it was recorded)", 1},
	{"verbose", 'v', NULL, 0, "Also tell each room that ends", 1},
	{0},
};

struct replay {
	const char *file, *probes;
	bool json, verbose;
	enum sp_confidence min;
	uint64_t stage_ns[SP_STAGE_MAX];

	struct recording *r;
	struct profile_file *recorded, *given; /* given: --probes */
	const struct profile *profile;
	int16_t probe_map[SP_MAX_PROBES]; /* recorded index -> index in profile */
	struct model *model;
	struct filter *filter;
	struct alert_env env;
	struct exits exits;
	uint64_t events;
	int rc;
};

static error_t parser(int key, char *arg, struct argp_state *state)
{
	struct replay *rp = state->input;

	switch (key) {
	case KEY_PROBES:
		rp->probes = arg;
		return 0;
	case KEY_STUCK:
		return cli_stuck_after(arg, rp->stage_ns);
	case KEY_ALERTS:
		if (strcmp(arg, "text") && strcmp(arg, "json"))
			return cli_usage("--alerts %s: say text or json", arg);
		rp->json = !strcmp(arg, "json");
		return 0;
	case KEY_MIN:
		rp->min = sp_confidence_parse(arg);
		if (rp->min == CONF_NONE)
			return cli_usage("--min-confidence %s: say possible, likely or certain",
					 arg);
		return 0;
	case 'v':
		rp->verbose = true;
		return 0;
	case ARGP_KEY_ARG:
		if (rp->file)
			return cli_usage("%s: a second file: replay one", arg);
		rp->file = arg;
		return 0;
	case ARGP_KEY_SUCCESS:
		if (!rp->file)
			rp->file = READ_DEFAULT_FILE;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- which profile ------------------------------------------------------------------------- */

static int load_recorded(struct replay *rp, struct sp_err *err)
{
	const struct rec_session *s = rec_session(rp->r);
	struct sp_err why = {0};
	char name[300];
	int rc;

	snprintf(name, sizeof(name), "%.200s (as recorded)", s->probes_path);
	rc = profile_parse(name, s->probes_text, strlen(s->probes_text), &rp->recorded, &why);
	if (!rc || rp->probes)
		return 0;
	return sp_err_set(err, SP_EXIT_USAGE, rc, "%s: say --probes FILE", why.text);
}

static int choose_profile(struct replay *rp, struct sp_err *err)
{
	const struct rec_session *s = rec_session(rp->r);
	int rc = load_recorded(rp, err);

	if (!rc && rp->probes)
		rc = profile_load(rp->probes, &rp->given, err);
	if (rc)
		return rc;
	rp->profile = profile_by_name(rp->given ? rp->given : rp->recorded, s->profile);
	if (!rp->profile)
		return sp_err_set(err, SP_EXIT_USAGE, -ENOENT,
				  "%s: recorded with profile %s, which %s has not: name another "
				  "file with --probes",
				  rp->file, s->profile, rp->probes ? rp->probes : "it");
	return 0;
}

/* Events name their probe by its number in the recorded file. */
static void map_probes(struct replay *rp)
{
	const char *name = rec_session(rp->r)->profile;
	const struct profile *old = rp->recorded ? profile_by_name(rp->recorded, name) : NULL;

	for (int i = 0; i < SP_MAX_PROBES; i++) {
		rp->probe_map[i] = -1;
		for (int k = 0; old && i < old->nprobes && k < rp->profile->nprobes; k++)
			if (!strcmp(old->probes[i].name, rp->profile->probes[k].name))
				rp->probe_map[i] = (int16_t)k;
	}
}

/* ---- the model ----------------------------------------------------------------------------- */

static void on_alert(void *ctx, const struct model_alert *a)
{
	struct replay *rp = ctx;
	char *line;

	if (!filter_wants(rp->filter, a))
		return;
	line = rp->json ? alert_json(a, &rp->env) : alert_text(a, &rp->env);
	if (line)
		fputs(line, stdout);
	free(line);
}

static bool on_event(void *ctx, const struct sp_event *recorded, uint32_t life_no)
{
	struct replay *rp = ctx;
	struct sp_event ev = *recorded;

	if (rp->given && ev.probe >= 0)
		ev.probe = ev.probe < SP_MAX_PROBES ? rp->probe_map[ev.probe] : -1;
	rp->events++;
	rp->rc = model_number(rp->model, ev.pid, ev.room, life_no);
	if (!rp->rc)
		rp->rc = exits_feed(&rp->exits, rp->model, &ev, rp->min);
	return !rp->rc && !ferror(stdout);
}

static int open_model(struct replay *rp, struct sp_err *err)
{
	static const struct model_ops ops = {.alert = on_alert};
	const struct rec_session *s = rec_session(rp->r);
	struct model_cfg cfg = {
		.profile = rp->profile,
		.sees_release = s->sees_release,
		.sees_arrive = s->sees_arrive,
		.no_posts = s->no_posts,
	};

	for (int i = 0; i < SP_STAGE_MAX; i++) {
		cfg.stage_ns[i] = rp->given ? rp->profile->stage_ns[i] : s->stage_ns[i];
		if (rp->stage_ns[i])
			cfg.stage_ns[i] = rp->stage_ns[i];
	}
	if (!rp->min)
		rp->min = s->min_confidence ? s->min_confidence : CONF_LIKELY;
	rp->env = (struct alert_env){
		.profile = rp->profile->name,
		.utc_offset_ns = s->utc_offset_ns,
		.color = !rp->json && isatty(STDOUT_FILENO) && !getenv("NO_COLOR"),
	};
	rp->model = model_new(&cfg, &ops, rp);
	rp->filter = filter_new(rp->min, rp->verbose);
	if (!rp->model || !rp->filter)
		return sp_err_set(err, SP_EXIT_FAIL, -ENOMEM, "out of memory");
	return 0;
}

static void tell_limits(const struct replay *rp)
{
	const struct rec_session *s = rec_session(rp->r);
	char end[32];

	if (!s->complete && !s->record_all)
		pr_warn("%s: partial: rooms that ended healthy were not kept, so this replay knows "
			"less than the watch did (record with --record all)",
			rp->file);
	if (!s->complete && (s->record_all || s->lost_events))
		pr_warn("%s: partial: %" PRIu64 " events could not be kept%s", rp->file,
			s->lost_events, s->lost_events ? "" : ", or --keep-mb has dropped rooms");
	if (s->running || s->ended)
		return;
	time_utc(s->end_ns, s->utc_offset_ns, end);
	pr_warn("%s: ends at %s without an end: its writer was killed, or this is a copy made "
		"meanwhile",
		rp->file, end);
}

static int run(struct replay *rp, struct sp_err *err)
{
	const struct rec_session *s = rec_session(rp->r);
	size_t stuck;
	int rc = rec_events(rp->r, NULL, on_event, rp, err);

	if (rc)
		return cli_fail(err);
	if (rp->rc) {
		sp_err_set(err, SP_EXIT_FAIL, rp->rc, "replay: %s", strerror(-rp->rc));
		return cli_fail(err);
	}
	model_advance(rp->model, s->end_ns);
	model_answer(rp->model, 0);
	stuck = exits_stuck(&rp->exits, rp->model, rp->min);
	pr_debug("%s: %" PRIu64 " events, %zu rooms stuck", rp->file, rp->events, stuck);
	return stuck ? SP_EXIT_STUCK : SP_EXIT_OK;
}

int cmd_replay(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parser,
		.args_doc = "[FILE.db]",
		.doc = "Run the model over the events of a recording (its latest session) and "
		       "print "
		       "the alerts that a watch would have printed.\v"
		       "Exit code 3: a room is stuck at the end, at or above --min-confidence.",
	};
	struct replay rp = {0};
	struct sp_err err = {0};
	int rc = cli_parse(&argp, argc, argv, &rp);

	if (rc >= 0)
		return rc;
	if (rp.verbose)
		sp_verbosity = SP_DEBUG;
	rc = rec_open(rp.file, &rp.r, &err);
	if (!rc)
		rc = choose_profile(&rp, &err);
	if (!rc) {
		map_probes(&rp);
		rc = open_model(&rp, &err);
	}
	if (!rc)
		tell_limits(&rp);
	rc = rc ? cli_fail(&err) : run(&rp, &err);
	exits_free(&rp.exits);
	model_free(rp.model);
	filter_free(rp.filter);
	profile_free(rp.recorded);
	profile_free(rp.given);
	rec_close(rp.r);
	return rc;
}
