/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The `sockets:` section of a profile: which stream sockets to watch, in which processes, what is
 * spoken on them, and what a message means. Each entry is also one of the profile's probes (name,
 * heads, messages, event), so that its frames take the same way as those of a uprobe. Grammar:
 * docs/profiles.md. Everything is owned by struct profile.
 */
#ifndef SP_PROFILE_SOCKETS_H
#define SP_PROFILE_SOCKETS_H

#include <stdbool.h>
#include <stdint.h>

#include "sp_sock.h"

/* How a process is related to the one that is watched. */
#define SOCK_IS_SELF     1
#define SOCK_IS_PARENT   2
#define SOCK_IS_ANCESTOR 4 /* parent, its parent and so on, never process 1 */
#define SOCK_IS_SIBLING  8 /* another child of its parent */

struct sock_process {
	unsigned is;   /* SOCK_IS_* */
	char *cmdline; /* glob, as of match.cmdline; NULL: any */
	bool same_exe; /* runs the same executable file as the watched process (default) */
	bool listens;  /* has a listening TCP socket */
};

enum sock_wins { SOCK_WINS_ITSELF = 0, SOCK_WINS_PROBE, SOCK_WINS_SOCKET };

/* What a wanted key of an HTTP request's body is. Index into sp_sock_rule.key. */
enum sock_key { SOCK_KEY_ROOM = 0, SOCK_KEY_HOST, SOCK_KEY_RID, SOCK_NKEYS };

/* What is told of HTTP requests. */
#define SOCK_TELLS_ARRIVE 1
#define SOCK_TELLS_REPLY  2
#define SOCK_TELLS_GONE   4

struct sock_entry {
	struct sock_process process;
	struct sp_sock_rule rule; /* for the kernel; rule.probe is its index among the probes */
	int probe;                /* the same */
	int same_as;              /* index of the uprobe that sees the same messages; -1: none */
	enum sock_wins wins; /* with same_as: which source's event counts; the other confirms */
	unsigned events;     /* HTTP: SOCK_TELLS_* */
	char *abort_path; /* HTTP: a request there with a rid and no room aborts that rid; NULL */
};

struct profile_sockets {
	struct sock_entry entry[SP_MAX_SOCK_RULES];
	int nentries;
};

#endif
