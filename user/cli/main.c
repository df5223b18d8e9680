// SPDX-License-Identifier: Apache-2.0
/* Dispatch only: each verb is a file of its own; add it to the table. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/version.h"
#include "util/cleanup.h"

static const struct cli_verb verbs[] = {
	{"watch", cmd_watch, "attach to a running server and alert on stuck rooms"},
	{"rooms", cmd_rooms, "list the rooms of a recording, or only the stuck ones"},
	{"timeline", cmd_timeline, "what happened to one room, event by event"},
	{"explain", cmd_explain, "the verdict on one room, with its evidence"},
	{"replay", cmd_replay, "run the model over a recording again"},
	{"py", cmd_py, "the server's own view of its rooms: queues and status table, now"},
	{"doctor", cmd_doctor, "can this kernel, these rights, this process be watched?"},
	{"check", cmd_check, "validate a probes file and show the compiled probes"},
};

static void usage(FILE *f)
{
	fprintf(f, "Usage: silentpin VERB [OPTION...]\n"
		   "Find the rooms that are silently pinned in a running LLM prefill or decode "
		   "node, and say why.\n\n");
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		fprintf(f, "  %-10s%s\n", verbs[i].name, verbs[i].help);
	fprintf(f,
		"\nStart with `silentpin doctor -p PID`, then `silentpin watch -p PID`.\n"
		"Each verb has its own --help; the manual is silentpin(1).\n"
		"Exit codes: 0 fine, 1 runtime failure, 2 usage or bad input, 3 a room is stuck,\n"
		"4 no probe could be attached.\n");
}

/* A closed stdin, stdout or stderr would give its number to a file of ours, and lines meant for it
 * would go there. Opened for reading only, so that a write still fails. */
static void hold_standard_fds(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

int main(int argc, char **argv)
{
	hold_standard_fds();
	signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of one write, not our end */
	signal(SIGXFSZ, SIG_IGN); /* so is a limit on the size of files */
	if (argc < 2) {
		usage(stderr);
		return SP_EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		usage(stdout);
		return cli_finish(SP_EXIT_OK);
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		printf("silentpin %s\n", SP_VERSION);
		return cli_finish(SP_EXIT_OK);
	}
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (!strcmp(argv[1], verbs[i].name))
			return cli_finish(verbs[i].run(argc - 1, argv + 1));
	cli_usage("%s: unknown verb: see `silentpin --help`", argv[1]);
	return SP_EXIT_USAGE;
}
