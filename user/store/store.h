/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recording: SQLite in WAL mode, written by `watch`, read by every other verb, also meanwhile.
 * Contract: the views `rooms` and `events` and PRAGMA user_version (see docs/recording.md).
 */
#ifndef SP_STORE_H
#define SP_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/model.h"
#include "util/err.h"

/* ---- writing ------------------------------------------------------------------------------ */
struct store_cfg {
	const char *path;
	bool record_all;
	uint64_t keep_bytes; /* 0: unbounded */
	const struct profile_file *probes;
	const struct profile *profile;
	const char *options; /* the command line, for the session table */
	uint64_t stage_ns[SP_STAGE_MAX];
	enum sp_confidence min_confidence;
	int64_t utc_offset_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC */
	uint64_t start_ns;
	/* as in struct model_cfg: a replay needs them too */
	bool sees_release, sees_arrive, no_posts;
};
struct store;
/* -errno with exit code 2 in err: not a database, other schema, a second writer, unwritable. */
int store_open(const struct store_cfg *cfg, struct store **out, struct sp_err *err);
/*
 * Events in the model's order; l NULL: of no life. Buffered: cheap, no I/O. What the store knows of
 * a life hangs on *l->user, which is the store's alone from the life's first call here until
 * store_life_ended. A life that ended and comes again (same id, pid, room, number) within ten
 * minutes is the same row again, open, and its timeline is kept from then on.
 */
void store_event(struct store *s, const struct sp_event *ev, const struct model_life *l);
void store_life_changed(struct store *s, const struct model_life *l);
void store_life_ended(struct store *s, const struct model_life *l);
void store_alert(struct store *s, const struct model_alert *a);
/*
 * The Python stack of a thread that the life's verdict speaks of, read at ns, innermost line first;
 * copied. Of one life the stacks of one moment are kept, the newest: give all of them the same ns.
 * At most STACKS_MAX, STACK_LINES_MAX lines each: what is beyond is left out.
 */
#define STACKS_MAX      16
#define STACK_LINES_MAX 64
void store_stack(struct store *s, const struct model_life *l, uint64_t ns, uint32_t pid,
		 uint32_t tid, const char *name, char *const *line, int nlines);
/*
 * Hand what is buffered to the writer thread, which does all I/O: the caller never waits for a
 * disk. now_ns: how far the model has advanced (replay goes that far). Call at least every 500 ms.
 * Returns how the last write ended: 0, or -errno after counting the failure; the caller goes on,
 * and the store tries again at a later flush. Nothing written is lost by a failure; what does not
 * fit into the bounded buffer meanwhile is (oldest first) and is counted.
 */
int store_flush(struct store *s, uint64_t now_ns);
/* Wait until what was handed over has been tried; -ETIMEDOUT, or as store_flush. */
int store_wait(struct store *s, unsigned int timeout_ms);
struct store_stats {
	uint64_t events, bytes; /* handed in so far; size of the file and its WAL */
	uint64_t lost_events, failed_flushes;
	char last_error[160];
};
void store_stats(const struct store *s, struct store_stats *st);
/* Write the rest and the session's end marker. Waits for a slow disk, but at most ten seconds. */
void store_close(struct store *s, uint64_t now_ns);

const char *alert_type_name(enum model_alert_type t); /* "stuck", ... */

/* ---- reading ------------------------------------------------------------------------------ */
/*
 * A recording is read as it was at rec_open: one snapshot. Errors in a file (exit code 2) are told
 * apart from failures of the machine (1). A process that writes a file must not rec_open the same
 * file: closing it would drop SQLite's locks (POSIX locks belong to the process).
 */
struct recording; /* one session of a file: the latest */
struct rec_session {
	int64_t id, utc_offset_ns;
	uint64_t start_ns, end_ns;
	bool complete; /* recorded with --record all and nothing lost or dropped since */
	char profile[64];
	const char *probes_text, *probes_path, *options;
	uint64_t stage_ns[SP_STAGE_MAX];
	enum sp_confidence min_confidence;
	bool running; /* its writer is alive */
	bool ended; /* its writer ended properly; neither: it was killed, end_ns is its last sign */
	bool record_all, sees_release, sees_arrive, no_posts;
	uint64_t lost_events; /* events that the store itself could not keep */
};
int rec_open(const char *path, struct recording **out, struct sp_err *err);
const struct rec_session *rec_session(const struct recording *r);
void rec_close(struct recording *r);

struct rec_life {
	uint32_t pid, life;
	char room[SP_ROOM_MAX], rid[64], peer[64];
	enum sp_stage stage;
	uint64_t opened_ns, progress_ns, last_ns, ended_ns;
	enum sp_outcome outcome;
	bool uncertain, observed_late, fake, ever_stuck, full /* its timeline is kept */;
	struct model_verdict verdict;    /* the current one, or for an ended life the last it had */
	uint64_t stage_at[SP_STAGE_MAX]; /* when each stage began, 0: never seen */
	uint64_t row, first_seq, last_seq; /* the store's own */
};
/* room NULL: all; pid 0, life 0: any. Ordered by opened_ns. fn false: stop. */
int rec_lives(struct recording *r, const char *room, uint32_t pid, uint32_t life,
	      bool (*fn)(void *ctx, const struct rec_life *l), void *ctx, struct sp_err *err);
/*
 * Events in recorded order: all of the session (l NULL), or of one life together with the TARGET,
 * LOSS, STALL, THREAD and VIEW events of its time (of views only what went wrong; of what a worker
 * is at only this room) and what was seen of its room in the minute before it opened. life_no:
 * which life the event was given to, 0 none.
 */
int rec_events(struct recording *r, const struct rec_life *l,
	       bool (*fn)(void *ctx, const struct sp_event *ev, uint32_t life_no), void *ctx,
	       struct sp_err *err);

/* The stacks kept of a life, in the order in which they were given. */
struct rec_stack {
	uint64_t ns;
	uint32_t pid, tid;
	char name[64];
	const char *const *line; /* innermost first; valid during the call */
	int nlines;
};
int rec_stacks(struct recording *r, const struct rec_life *l,
	       bool (*fn)(void *ctx, const struct rec_stack *s), void *ctx, struct sp_err *err);

/* Names of the session's probes, in order. */
int rec_probes(struct recording *r, void (*fn)(void *ctx, int probe, const char *name), void *ctx,
	       struct sp_err *err);

/* Events as rows of the view `events`, one JSON object (no line end) each. */
int rec_events_json(struct recording *r, const struct rec_life *l,
		    bool (*fn)(void *ctx, const char *json), void *ctx, struct sp_err *err);

struct rec_alert {
	enum model_alert_type type;
	uint64_t ns, age_ns, idle_ns, stalled_ns, lost;
	uint32_t pid, tid, life;
	char room[SP_ROOM_MAX], what[64], note[64]; /* what: for LOSS, why */
	enum sp_cause cause;
	enum sp_confidence confidence;
	enum sp_stage stage;
	enum sp_outcome outcome;
	int pin;
};
/* Every alert of the model, whatever its confidence, in order: of the session, or of one life. */
int rec_alerts(struct recording *r, const struct rec_life *l,
	       bool (*fn)(void *ctx, const struct rec_alert *a), void *ctx, struct sp_err *err);

#endif
