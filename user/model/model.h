/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model: events in, lives of rooms, alerts out. Pure: no clock, no I/O, no libbpf, no globals.
 * Time is whatever the caller says, CLOCK_MONOTONIC ns. A live run, a replay and a unit test run
 * this same code: feed events in order of time; before an event at t every deadline <= t fires, at
 * its own instant. One model has one profile and any number of processes.
 */
#ifndef SP_MODEL_H
#define SP_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event/event.h"
#include "profile/profile.h"

enum sp_cause {
	CAUSE_NONE = 0,
	CAUSE_THREAD_DIED, /* order = precedence among causes that fit at once */
	CAUSE_TRANSFER_ERROR,
	CAUSE_QUEUED_BEHIND,
	CAUSE_TRANSFER_STALLED,
	CAUSE_CONTROL_LOST,
	CAUSE_STATUS_LOST,
	CAUSE_ROOM_REUSED,
	CAUSE_SEND_INCOMPLETE,
	CAUSE_AUX_MISSING,
	CAUSE_DONE_NOT_RELEASED,
	CAUSE_ABORT_NOT_REAPED,
	CAUSE_NEVER_SENT,
	CAUSE_ABORT_BEFORE_OPEN,
	CAUSE_QUORUM_INCOMPLETE,
	CAUSE_DECODE_ABSENT,
	CAUSE_PEER_GONE,
	CAUSE_RANK_DIVERGED,
	CAUSE_PEER_NOT_TOLD,
	CAUSE_FAKE_ROOM,    /* benign: never an alert from native events */
	CAUSE_BACKPRESSURE, /* benign: never an alert */
	CAUSE_MAX,
};
enum sp_confidence { CONF_NONE = 0, CONF_POSSIBLE, CONF_LIKELY, CONF_CERTAIN };
enum sp_outcome {
	OUTCOME_NONE = 0, /* ended: another process's, or nothing shows how */
	OUTCOME_DONE,
	OUTCOME_FAILED,
	OUTCOME_MOVING /* recovered only */
};

const char *sp_cause_name(enum sp_cause c);
const char *sp_confidence_name(enum sp_confidence c);
enum sp_confidence sp_confidence_parse(const char *name); /* CONF_NONE: unknown */
const char *sp_outcome_name(enum sp_outcome o);

#define VERDICT_EVIDENCE_MAX 12
#define VERDICT_TEXT_MAX     200
#define VERDICT_TIDS_MAX     4
struct model_culprit {
	bool set;
	uint32_t pid, tid;
	char room[SP_ROOM_MAX];
	uint32_t life;
	char state[48]; /* what holds the worker: "op 0x7f.. in progress for 31.2 s" */
};
struct model_verdict {
	enum sp_cause cause;
	enum sp_confidence confidence;
	int pin;                         /* 1 true, 0 false (delayed), -1 null: cannot know */
	char last[VERDICT_TEXT_MAX];     /* last progress, in words */
	char expected[VERDICT_TEXT_MAX]; /* what should have come next */
	struct model_culprit culprit;
	/* The threads that it speaks of, without repeats: who serves the room, the culprit's, the
	 * bootstrap thread, the main thread (its tid is the pid). Their stacks are of interest. */
	uint32_t tids[VERDICT_TIDS_MAX];
	int ntids;
	int nevidence;
	struct {
		bool against; /* speaks against the verdict */
		char text[VERDICT_TEXT_MAX];
	} evidence[VERDICT_EVIDENCE_MAX];
	uint64_t decisive_ns; /* time of the event that decides, 0: none (an absence) */
};

/* A life as the outside may see it: a snapshot, valid during the call that hands it out. */
struct model_life {
	uint32_t pid, life;
	const char *room;
	enum sp_stage stage;
	uint64_t opened_ns, progress_ns, last_ns /* any event */, ended_ns;
	enum sp_outcome outcome;
	bool observed_late, uncertain, fake, ever_stuck;
	const char *rid, *peer; /* "" when unknown */
	const struct model_verdict
		*verdict; /* current, never NULL; cause CAUSE_NONE when not stuck */
	uint64_t id;      /* unique in this model, for the caller's own tables */
	void **user;      /* one pointer of the caller's, NULL at birth; free it in life_ended */
};

enum model_alert_type {
	ALERT_STUCK,
	ALERT_RECOVERED,
	ALERT_ENDED,
	ALERT_LOSS,
	ALERT_TARGET,
	ALERT_PEER
};
struct model_alert {
	enum model_alert_type type;
	uint64_t ns; /* stuck: the instant at which the deadline passed */
	uint32_t pid, tid;
	const struct model_life *life; /* STUCK, RECOVERED, ENDED */
	/* STUCK: age_ns since opened, idle_ns since progress. RECOVERED: stalled_ns = since the
	 * last progress before the alert, outcome. Copies of verdict at the alert are in
	 * life->verdict (for RECOVERED: the strongest of those that are withdrawn). */
	uint64_t age_ns, idle_ns, stalled_ns;
	enum sp_outcome outcome;
	/* LOSS: how many events, why, and the rooms that became uncertain (first nrooms of total).
	 */
	uint64_t lost;
	const char *why;
	const char *const *rooms;
	size_t nrooms, total_rooms;
	const char *what; /* TARGET, PEER: attached, exited, exec, thread-exited, closed... */
	const char *note;
	const char *peer, *agent; /* PEER: its address, its own name; "" unknown */
};

struct model_ops {
	/* Every alert, whatever its confidence: the caller filters (STUCK again when a changed
	 * cause or a higher confidence says so, once per life, cause and confidence). */
	void (*alert)(void *ctx, const struct model_alert *a);
	/* A life was opened, or any field of model_life changed since the last call. May be NULL.
	 */
	void (*life_changed)(void *ctx, const struct model_life *l);
	/* An end that was concluded from the server's view is provisional: when the same request is
	 * seen again, life_changed comes with the same pid, room, number and id, *user NULL. */
	void (*life_ended)(void *ctx, const struct model_life *l);
	/* An event was given to a life (l NULL: to none). Called once for each model_event, before
	 * the alerts and the end that it causes; of the ROLE_VIEW events that changed nothing only
	 * for one in two seconds, for replays with other deadlines. May be NULL. */
	void (*event_taken)(void *ctx, const struct sp_event *ev, const struct model_life *l);
	/* When was op of pid last polled, by which thread, with what answer? false: unknown.
	 * Evidence only: never changes cause or confidence (a replay has no answer). May be NULL.
	 */
	bool (*last_poll)(void *ctx, uint32_t pid, uint64_t op, uint64_t *ns, uint32_t *tid);
};

struct model_cfg {
	const struct profile *profile;   /* room type, fakes, needs; kept by reference */
	uint64_t stage_ns[SP_STAGE_MAX]; /* deadlines; 0: none. Start from profile->stage_ns */
	bool sees_release; /* an active source shows the release of every life. Of single lives
			      EV_TRACKED says so, and the server's own view by its events */
	bool sees_arrive;  /* an active source shows arrivals */
	bool no_posts;     /* no active source shows operations (sockets alone): what is missing
			      there says nothing. Of single processes the event target blind says
			      so */
};

struct model;
struct model *model_new(const struct model_cfg *cfg, const struct model_ops *ops, void *ctx);
/* Nothing ends by it: no callback is called. Free the lives' user pointers first (model_each). */
void model_free(struct model *m);
/* Give it one event. Also handles ROLE_THREAD, ROLE_TARGET, ROLE_LOSS, ROLE_STALL, ROLE_VIEW. An
 * event older than the model's time is taken at the model's time. 0 or -ENOMEM. */
int model_event(struct model *m, const struct sp_event *ev);
/* Before an event that a recording gives to the n-th life of its room: lives that are not in it
 * have their numbers all the same. 0 or -ENOMEM. */
int model_number(struct model *m, uint32_t pid, const char *room, uint32_t n);
/* Fire all deadlines <= now_ns. */
void model_advance(struct model *m, uint64_t now_ns);
/* The next deadline, UINT64_MAX when none. */
uint64_t model_next(const struct model *m);
/* Overdue lives that wait for the next look at their process (ROLE_VIEW) before they are judged:
 * 0, none. Take a snapshot soon when there are any. */
size_t model_asks(const struct model *m);
/* No look will come any more (the end of a process, of a watch or of a recording): overdue lives of
 * pid (0: of all) that wait for one are judged by what is known, never with certainty. Call it
 * after model_advance. */
void model_answer(struct model *m, uint32_t pid);
/* Open lives of one process. */
size_t model_open_lives(const struct model *m, uint32_t pid);
/* Visit the open lives (order unspecified). Stops when fn returns false. */
void model_each(struct model *m, bool (*fn)(void *ctx, const struct model_life *l), void *ctx);
/* Open lives that are stuck now with at least this confidence. */
size_t model_stuck(const struct model *m, enum sp_confidence min);

struct model_stats {
	size_t open_lives, bytes; /* bytes: memory held for lives and operations */
	uint64_t events, lives, ended, unknown_ops, forgotten;
};
void model_stats(const struct model *m, struct model_stats *s);

#endif
