/* SPDX-License-Identifier: Apache-2.0 */
/* What the verbs that read a recording share: options, finding a room, finishing stdout. */
#ifndef SP_CLI_READOPTS_H
#define SP_CLI_READOPTS_H

#include "cli/cli.h"
#include "store/store.h"

#define READ_DEFAULT_FILE "silentpin.db"

enum { KEY_PID = 0x200, KEY_LIFE, KEY_JSON, KEY_PERFETTO, KEY_STUCK_ONLY, KEY_OPEN, KEY_MIN };

struct read_opts {
	const char *file;
	const char *room; /* NULL: not given */
	uint32_t pid, life;
	bool json, perfetto, stuck, open;
	enum sp_confidence min; /* CONF_NONE: not given */
};

#define READ_OPT_INPUT                                                                             \
	{                                                                                          \
		"input", 'i', "FILE.db", 0, "Recording to read (default " READ_DEFAULT_FILE ")", 1 \
	}
#define READ_OPT_PID                                                                               \
	{                                                                                          \
		"pid", KEY_PID, "PID", 0, "Only this process", 1                                   \
	}
#define READ_OPT_LIFE                                                                              \
	{                                                                                          \
		"life", KEY_LIFE, "N", 0, "Only this life of the room", 1                          \
	}

/* Parsers for a verb's argp; its input is a struct read_opts. */
error_t read_parser(int key, char *arg, struct argp_state *state);         /* takes ROOM */
error_t read_parser_no_room(int key, char *arg, struct argp_state *state); /* takes no argument */

/* What "now" means for a session: this moment while its writer runs, else its end. */
uint64_t read_now_ns(const struct rec_session *s);

struct read_lives {
	struct rec_life *at;
	size_t n;
};
/* The lives that ROOM, --pid and --life name, oldest first; none: an error that names rooms near.
 * Free at with free(). */
int read_lives(struct recording *r, const struct read_opts *o, struct read_lives *out,
	       struct sp_err *err);
/* Stuck now, by a cause that is not benign. */
bool read_is_stuck(const struct rec_life *l);

#endif
