/* SPDX-License-Identifier: Apache-2.0 */
/* `silentpin watch`: options (watch_opts.c), targets (watch_target.c), the loop (watch.c). */
#ifndef SP_CLI_WATCH_H
#define SP_CLI_WATCH_H

#include "attach/attach.h"
#include "cli/exits.h"
#include "collect/collect.h"
#include "model/model.h"
#include "output/filter.h"
#include "output/output.h"
#include "cli/watch_calls.h"
#include "cli/watch_python.h"
#include "store/store.h"

#define WATCH_MAX_PIDS     64
#define WATCH_MAX_PROBED   256
#define WATCH_MAX_SWITCHED 32 /* bits of watch.enabled */

struct watch_opts {
	pid_t pids[WATCH_MAX_PIDS];
	int npids;
	bool find;
	char **command;                        /* NULL-terminated, NULL: none */
	const char *probes, *profile, *output; /* output NULL: silentpin.db */
	bool record_all, json, verbose;
	uint64_t keep_mb;
	enum sp_confidence min_confidence;
	uint64_t stage_ns[SP_STAGE_MAX]; /* 0: the profile's */
	uint64_t for_ns;                 /* 0: until stopped */
	uint64_t python_every_ns;
	const char *switched[WATCH_MAX_SWITCHED]; /* --enable, --disable, in their order */
	bool switched_on[WATCH_MAX_SWITCHED];
	int nswitched;
	const char *only;                       /* --only: uprobes, sockets, python; NULL: all */
	bool no_python, no_uprobes, no_sockets; /* sources left out, or not in the profile */
};
/* -1: go on; else the exit code. */
int watch_options(int argc, char **argv, struct watch_opts *o);

struct watch {
	struct watch_opts o;
	struct profile_file *probes;
	const struct profile *profile;
	struct attach *attach;
	struct collect *collect;
	struct model *model;
	struct store *store; /* NULL: not recording */
	struct sink *out;
	struct filter *filter;
	struct alert_env env;
	struct target_child child; /* COMMAND */
	bool child_runs;
	uint64_t start_ns, next_find_ns, next_tick_ns, next_flush_ns, last_turn_ns;
	uint64_t store_failures, store_lost, sink_dropped; /* told so far */
	struct exits exits;
	struct watch_python *python; /* NULL: not read */
	struct sp_err native_err;    /* why there are no probes at all, though they were wanted */
	struct probed {
		uint32_t pid;
		bool halts, halted; /* it was stopped at the last look; and that has been told */
		int blind;          /* what cannot be seen of it (TARGET_*), as has been told */
		uint64_t spent;
	} probed[WATCH_MAX_PROBED]; /* with a probe in place, or whose state is read */
	int nprobed;
	uint64_t ended_done, ended_failed;
	struct watch_calls calls;
	/* bit i: o.switched[i] was in place in some process; it was told that it is not */
	uint32_t enabled, enable_told;
	bool said_unreadable; /* that a connection cannot be read */
	bool saw_target;      /* a probe was in place once, or a process's state was read */
	bool refused;         /* a match of --find could not be attached */
};

/* Choose the profile (by name, by the first target's command line, or the only one). */
int watch_choose_profile(struct watch *w, struct sp_err *err);
/* Which sources of events the profile has and the options leave. */
int watch_choose_sources(struct watch *w, struct sp_err *err);
/* Load the BPF side, unless only the server's own view is wanted or possible. */
int watch_sources(struct watch *w, struct sp_err *err);
/* The targets that are named or found; of COMMAND the process that waits for watch_go. */
int watch_attach(struct watch *w, struct sp_err *err);
/* Let COMMAND run. */
int watch_go(struct watch *w, struct sp_err *err);
/* An attach_notice_fn: ctx is the watch. */
void watch_notice(void *ctx, const struct attach_notice *n);
/* What --enable asks for, and whether pid has it; tell what it has not, where its libraries are not
 * just coming. */
void watch_enabled_look(struct watch *w, uint32_t pid, bool coming);
/* And at the end, what no process had. */
void watch_enabled_end(const struct watch *w);
/* Say what stays unseen because it is encrypted or foreign. The recording has every case. */
void watch_unreadable(struct watch *w, const struct sp_event *ev);
/* New matches of --find, new libraries and children, exits. */
void watch_targets(struct watch *w, uint64_t now_ns);
bool watch_has_targets(const struct watch *w);
/* A source of events of pid is in place: its first is the "attached" event of the process. */
void watch_target_seen(struct watch *w, uint32_t pid, const char *what);

#endif
