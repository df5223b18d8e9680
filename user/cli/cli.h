/* SPDX-License-Identifier: Apache-2.0 */
/* What the verbs share: the table of verbs, option parsing with one-line errors, exit codes. */
#ifndef SP_CLI_H
#define SP_CLI_H

#include <argp.h>

#include "event/event.h"
#include "util/err.h"

struct cli_verb {
	const char *name;
	int (*run)(int argc, char **argv); /* argv[0] is the verb; returns an exit code */
	const char *help;                  /* one line for `silentpin --help` */
};

int cmd_watch(int argc, char **argv);
int cmd_rooms(int argc, char **argv);
int cmd_timeline(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_py(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_check(int argc, char **argv);

/*
 * argp_parse with our manners: an error is one line "silentpin: WHAT: WHY: see `silentpin VERB
 * --help`" and exit code 2; --help prints to stdout. Returns -1 when the verb should go on, else
 * the exit code with which it must return. A parser reports its own errors with cli_usage(). In a
 * parser state->argv[0] is "silentpin VERB".
 */
int cli_parse(const struct argp *argp, int argc, char **argv, void *input);
/* Print "silentpin: " and the text as one line; returns EINVAL for use in an argp parser. */
int cli_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Print err as one line on stderr; returns its exit code (SP_EXIT_FAIL when none is set). */
int cli_fail(const struct sp_err *err);
/* Flush stdout at the end of a verb: exit_code, or SP_EXIT_FAIL when what was printed is not all
 * there (said, unless the reader went away). */
int cli_finish(int exit_code);
/* "inflight=5s" into stage_ns[]; EINVAL after printing the reason. */
int cli_stuck_after(const char *arg, uint64_t stage_ns[SP_STAGE_MAX]);

#endif
