/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An event: one observed fact. Made by collect/ from records, consumed by
 * model/, kept by store/.
 * Plain data, no pointers: it can be copied, queued and replayed. An unset text is "", an unset
 * number -1 (or 0 for op).
 */
#ifndef SP_EVENT_H
#define SP_EVENT_H

#include <stdbool.h>
#include <stdint.h>

enum sp_role {
	ROLE_NONE = 0,
	ROLE_ARRIVE,
	ROLE_HELD,
	ROLE_ANNOUNCE,
	ROLE_REGISTER,
	ROLE_POST,
	ROLE_STATUS,
	ROLE_CLOSE,
	ROLE_ABORT,
	ROLE_TOLD,
	ROLE_REPLY,
	ROLE_RELEASE,
	ROLE_CONTROL,
	ROLE_CALL,
	ROLE_PEER,
	ROLE_THREAD, /* kind "": its exit; at: it works on room now ("": on none); missing, found: a
			thread that the server cannot do without (note: its function); unsure,
			sure: whether all workers are known, and so what no thread is at (note:
			why not) */
	/* facts about the watch itself; they carry no room */
	ROLE_TARGET, /* attached, exited, exec, lib; stopped, continued; blind, sighted: of
			the probes that show operations (code, bit TARGET_BLIND) or announcements
			(TARGET_DEAF) none is in place in the process, or both are again: see kind
		      */
	ROLE_LOSS,   /* events were lost: count in code, cause in kind */
	ROLE_STALL,  /* the watcher itself did not run: from ns on, for code ns */
	ROLE_VIEW,   /* the server's own state was read: kind ok (code: ns of the snapshot before,
			which agrees), unstable or lost (code -errno, note why); misfit, fits: the
			status table seems (not) to be that of the rooms of that queue (note) */
	ROLE_MAX,
};

enum sp_stage {
	STAGE_NONE = 0,
	STAGE_BOOTSTRAP,
	STAGE_READY,
	STAGE_INFLIGHT,
	STAGE_RELEASING,
	STAGE_ENDED,
	SP_STAGE_MAX,
};

enum sp_opstate { OPS_UNKNOWN = 0, OPS_BUSY, OPS_DONE, OPS_ERROR };

#define EV_CUT      1   /* the message began before the attach */
#define EV_NODATA   2   /* announce: this peer takes no data (dummy rank) */
#define EV_CREATED  4   /* post: created, not posted yet; a negative code is a failed creation */
#define EV_GAP      8   /* target: what ran before this moment was not seen */
#define EV_INFERRED 16  /* release: concluded from absence; the same rid seen again continues it */
#define EV_AT       32  /* held: thread tid is at work on it */
#define EV_ORPHAN   64  /* held: it waits for a worker thread that does not exist */
#define EV_WAITS    128 /* held: it waits for a worker thread, and for which one is not known */
#define EV_SHARED                                                                                  \
	256 /* arrive, abort, reply: the front serves several watched processes: the room may      \
	       be another's */
#define EV_FAKE    512  /* arrive: its host marks it as a health check or warm-up */
#define EV_TRACKED 1024 /* arrive: the answer to the client will be seen too (reply) */
#define EV_MARK    2048 /* call: says when a thread's work begins or ends; counted as no call */

/* held: code, the room's value in the server's status table */
#define HELD_NO_ENTRY (-1)      /* the table has none */
#define HELD_UNKNOWN  INT64_MIN /* no table was read */

/* loss: op, until when (ns) events may have gone missing; from ns on. Its kind when connections are
 * not followed for want of room; when what is posted to some queues is not counted, for the same
 * reason: no event is missing then */
#define SP_LOSS_CONNECTIONS "conn-map-full"
#define SP_LOSS_TALLIES     "tally-map-full"

/* target blind: code */
#define TARGET_BLIND 1
#define TARGET_DEAF  2

#define SP_ROOM_MAX 64
/*
 * call: a call of the transport's surroundings (CUDA, verbs). With a room where one is known: it
 * ran inside a call of that room, or its thread worked for that room between two declared events.
 * kind: the profile's word (copy, sync, launch, post, completion...), bytes, object ("stream
 * 0x7f..", "qp 17"), code, status and note (an error's name), took_ns, count. Of the watch's own
 * making: inside: thread tid is in the call of probe since code (ns) and has not left it (note: why
 * that could not be verified, "": it was); left: it has. count: of probe, with or without a room,
 * count calls more (bytes in all; code: how many failed). A call that waited for the end of the one
 * around it comes with its own time, after younger events.
 *   tally: object: code pieces of work posted and not completed, none completed since op (ns);
 *          0: all are complete again.
 *   dropped: by the call of probe (a queue pair reset, destroyed): code pieces that were open on
 *          object will never complete.
 *
 * What sockets show (op: the request, the same number in all that is told of it):
 * arrive: rid, peer (the request's bootstrap host), EV_*. reply: code, the HTTP status; kind first
 * (its head; ends nothing), end. abort: kind client-gone, the client closed before it was answered.
 * peer: kind opened, closed, reset (peer: the connection's remote address; agent: set once for each
 * agent that announced itself over it; closed and reset come for an agent when its last connection
 * has gone); trusted (from here on a stream whose beginning was not seen is decoded), lost (it can
 * no longer be), unreadable; sealed (without a room, once for each reason: requests to the front
 * that cannot be read); unread (with the room: a message is on the wire, the server has not taken
 * it); untracked (with the room: its reply will not be seen after all). note: why.
 */
struct sp_event {
	uint64_t ns; /* CLOCK_MONOTONIC */
	uint32_t pid, tid;
	uint8_t role;   /* enum sp_role */
	uint8_t status; /* enum sp_opstate of code, for status and post */
	uint16_t flags; /* EV_* */
	int8_t last;    /* post: 1 last chunk, 0 not, -1 unknown or no such thing */
	int16_t probe; /* index into the profile's probes (an entry of sockets: is one), -1: none */
	int16_t rank;  /* destination rank as the transport names it */
	int32_t chunk, part, parts, need;
	uint32_t covers;  /* bit i: also satisfies needs[i] of the profile */
	int64_t code;     /* raw return or status code */
	uint64_t op;      /* handle of the operation */
	uint64_t bytes;   /* call, post: size; 0 unset */
	uint64_t took_ns; /* call: from its entry to its return; 0 unknown */
	uint32_t count;   /* call, post: elements or calls that it stands for; 0 and 1: one */
	char object[32];  /* call: what it works on: "stream 0x7f..", "qp 17" */
	char room[SP_ROOM_MAX];
	char kind[16];  /* post: kv, aux, state...; control, target, loss: which */
	char peer[64];  /* address, "ip:port" */
	char agent[64]; /* the peer's own name; identity of a peer, else its address */
	char rid[64];
	char note[64]; /* free words for the timeline: an error's name, a library, a comm */
};

void sp_event_init(struct sp_event *ev); /* everything unset */
const char *sp_role_name(enum sp_role role);
enum sp_role sp_role_parse(const char *name); /* ROLE_NONE: unknown */
const char *sp_stage_name(enum sp_stage stage);
enum sp_stage sp_stage_parse(const char *name); /* STAGE_NONE: unknown */
/* "post kv chunk 2 last", "status done of op 0x7f..": for people, in alerts and timelines. */
void sp_event_describe(const struct sp_event *ev, char *buf, unsigned long len);

#endif
