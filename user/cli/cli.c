// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "profile/profile.h"
#include "util/log.h"

/* Set by cli_usage, so that cli_parse adds no second line to an error that a parser has told. */
static bool usage_told;

int cli_usage(const char *fmt, ...)
{
	char line[900];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	sp_one_line(line);
	fprintf(stderr, "silentpin: %s\n", line);
	usage_told = true;
	return EINVAL;
}

int cli_fail(const struct sp_err *err)
{
	cli_usage("%s", err->text[0] ? err->text : "failed");
	return err->exit_code ? err->exit_code : SP_EXIT_FAIL;
}

int cli_finish(int exit_code)
{
	struct pollfd out = {.fd = STDOUT_FILENO};

	if (!fflush(stdout) && !ferror(stdout))
		return exit_code;
	/* stdio forgets why an earlier write failed; a pipe without a reader still says so */
	if (poll(&out, 1, 0) < 1 || !(out.revents & POLLERR))
		cli_usage("stdout: cannot be written: the output is not complete");
	return exit_code == SP_EXIT_OK || exit_code == SP_EXIT_STUCK ? SP_EXIT_FAIL : exit_code;
}

#define KEY_HELP 0x7001 /* beyond the characters: no short form */

struct parse_state {
	const struct argp *argp;
	void *input;
	bool help;
};

static bool takes_argument(const struct argp *argp, const char *word)
{
	const struct argp_option *o;

	/* headings have neither name nor key; the end has no text either */
	for (o = argp->options; o && (o->name || o->key || o->doc); o++) {
		if (!o->arg)
			continue;
		if (word[0] == '-' && word[1] == '-' && o->name && !strcmp(word + 2, o->name))
			return true;
		if (word[0] == '-' && word[1] == o->key && !word[2])
			return true;
	}
	return false;
}

/* getopt has refused a word (it says neither which nor why to a silent argp). */
static void tell_refused(const struct parse_state *st, const struct argp_state *state)
{
	int i = state->next > 1 ? state->next - 1 : 1;
	const char *word = i < state->argc ? state->argv[i] : state->argv[state->argc - 1];

	cli_usage("%s: %s: see `%s --help`", word,
		  takes_argument(st->argp, word) ? "needs a value" : "unknown option",
		  state->argv[0]);
}

static error_t outer_parser(int key, char *arg, struct argp_state *state)
{
	struct parse_state *st = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = st->input;
		return 0;
	case KEY_HELP:
		st->help = true;
		state->flags &= ~(unsigned int)ARGP_NO_ERRS; /* it silences help as well */
		argp_state_help(state, stdout,
				ARGP_HELP_USAGE | ARGP_HELP_PRE_DOC | ARGP_HELP_LONG |
					ARGP_HELP_POST_DOC);
		return ECANCELED; /* argp stops only for an error */
	case ARGP_KEY_ERROR:
		if (!usage_told && !st->help)
			tell_refused(st, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int cli_parse(const struct argp *argp, int argc, char **argv, void *input)
{
	static const struct argp_option options[] = {
		{"help", KEY_HELP, NULL, 0, "Show this help", -1},
		{0},
	};
	struct argp_child children[] = {{argp, 0, NULL, 0}, {0}};
	struct parse_state st = {.argp = argp, .input = input};
	struct argp outer = {
		.options = options,
		.parser = outer_parser,
		.children = children,
	};
	char name[64];
	char *verb = argv[0];
	error_t rc;

	usage_told = false;
	snprintf(name, sizeof(name), "silentpin %s", verb);
	/* argp names the program by argv[0] in its usage line */
	argv[0] = name;
	rc = argp_parse(&outer, argc, argv, ARGP_NO_EXIT | ARGP_NO_ERRS | ARGP_NO_HELP, NULL, &st);
	argv[0] = verb;
	if (st.help)
		return SP_EXIT_OK;
	return rc ? SP_EXIT_USAGE : -1;
}

int cli_stuck_after(const char *arg, uint64_t stage_ns[SP_STAGE_MAX])
{
	const char *eq = strchr(arg, '=');
	enum sp_stage stage;
	char name[16];
	uint64_t ns;

	if (!eq || eq == arg || (size_t)(eq - arg) >= sizeof(name))
		return cli_usage("--stuck-after %s: not STAGE=DURATION: for example inflight=30s",
				 arg);
	snprintf(name, sizeof(name), "%.*s", (int)(eq - arg), arg);
	stage = sp_stage_parse(name);
	if (stage == STAGE_NONE || stage == STAGE_ENDED)
		return cli_usage(
			"--stuck-after %s: no such stage: use bootstrap, ready, inflight or "
			"releasing",
			arg);
	if (duration_parse(eq + 1, &ns) || !ns)
		return cli_usage("--stuck-after %s: not a duration: for example 500ms, 30s, 5m",
				 arg);
	stage_ns[stage] = ns;
	return 0;
}
