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
};
struct store;
/* -errno with exit code 2 in err: not a database, other schema, a second writer, unwritable. */
int store_open(const struct store_cfg *cfg, struct store **out, struct sp_err *err);
/* Events in the model's order; l NULL: of no life. Buffered: cheap, no I/O. */
void store_event(struct store *s, const struct sp_event *ev, const struct model_life *l);
void store_life_changed(struct store *s, const struct model_life *l);
void store_life_ended(struct store *s, const struct model_life *l);
void store_alert(struct store *s, const struct model_alert *a);
/* Write what is buffered in one transaction. now_ns: how far the model has advanced (replay goes
 * that far). Call at least every 500 ms. 0, or -errno after counting the failure: the caller goes
 * on, and the store tries again at the next flush. */
int store_flush(struct store *s, uint64_t now_ns);
struct store_stats {
	uint64_t events, bytes, lost_events, failed_flushes;
	char last_error[160];
};
void store_stats(const struct store *s, struct store_stats *st);
void store_close(struct store *s, uint64_t now_ns);

/* ---- reading ------------------------------------------------------------------------------ */
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
	struct model_verdict verdict; /* the current one, or for an ended life the last it had */
};
/* room NULL: all; pid 0, life 0: any. Ordered by opened_ns. fn false: stop. */
int rec_lives(struct recording *r, const char *room, uint32_t pid, uint32_t life,
	      bool (*fn)(void *ctx, const struct rec_life *l), void *ctx, struct sp_err *err);
/* Events in recorded order: all of the session (l NULL), or of one life together with the TARGET,
 * LOSS, STALL and THREAD events of its time. life_no: which life the event was given to, 0 none. */
int rec_events(struct recording *r, const struct rec_life *l,
	       bool (*fn)(void *ctx, const struct sp_event *ev, uint32_t life_no), void *ctx,
	       struct sp_err *err);

#endif
