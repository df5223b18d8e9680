/* SPDX-License-Identifier: Apache-2.0 */
/* The model on its table, with calls and with operations that carry no room. */
#ifndef CALLS_RIG_H
#define CALLS_RIG_H

#include "view_rig.h"

enum { SYNC, COPY, RECV, GLOB, POLL, NPROBES };

static struct profile_probe rig_probes[NPROBES] = {
	[SYNC] = {.name = (char *)"stream_sync", .symbol = (char *)"cuStreamSynchronize"},
	[COPY] = {.name = (char *)"copy", .symbol = (char *)"cuMemcpyDtoHAsync_v2"},
	[RECV] = {.name = (char *)"recv", .symbol = (char *)"zmq_msg_recv", .waits = true},
	[GLOB] = {.name = (char *)"MultiTransport::submitTransfer",
		  .symbol = (char *)"_ZN8mooncake14MultiTransport14submitTransferE*"},
	[POLL] = {.name = (char *)"ibv_poll_cq", .each = {.tally = SP_TALLY_DONE}},
};

/* nuprobes stays 0: nothing is concluded from what these probes do not show */
static inline void with_probes(struct rig *r)
{
	r->profile.probes = rig_probes;
	r->profile.nprobes = NPROBES;
}

static inline struct rig *calls_rig(void)
{
	struct rig *r = rig_new();

	with_probes(r);
	return r;
}

static inline struct rig *calls_view_rig(void)
{
	struct rig *r = view_rig();

	with_probes(r);
	return r;
}

static inline struct sp_event call_event(const struct rig *r, double t, uint32_t tid, int probe,
					 const char *kind, const char *room)
{
	struct sp_event ev = event(r, t, ROLE_CALL, tid, room);

	snprintf(ev.kind, sizeof(ev.kind), "%s", kind);
	ev.probe = (int16_t)probe;
	return ev;
}

/* told at t that the thread is in it since `since` */
static inline void inside(struct rig *r, double t, uint32_t tid, int probe, double since,
			  const char *room)
{
	struct sp_event ev = call_event(r, t, tid, probe, "inside", room);

	ev.code = (int64_t)S(r->base + since);
	strcpy(ev.object, "stream 0x7f00");
	feed(r, &ev);
}

static inline void left(struct rig *r, double t, uint32_t tid, int probe)
{
	struct sp_event ev = call_event(r, t, tid, probe, "left", "");

	feed(r, &ev);
}

static inline void copied(struct rig *r, double t, uint32_t tid, const char *room, uint64_t bytes,
			  int error)
{
	struct sp_event ev = call_event(r, t, tid, COPY, "copy", room);

	ev.bytes = bytes;
	ev.code = error;
	ev.status = error ? OPS_ERROR : OPS_DONE;
	ev.took_ns = 1000;
	if (error)
		strcpy(ev.note, "illegal address");
	else
		strcpy(ev.object, "stream 0x7f00");
	feed(r, &ev);
}

static inline void tally(struct rig *r, double t, const char *object, int open, double since)
{
	struct sp_event ev = call_event(r, t, 0, -1, "tally", "");

	snprintf(ev.object, sizeof(ev.object), "%s", object);
	ev.code = open;
	ev.op = S(r->base + since);
	feed(r, &ev);
}

/* A batch: posted and in progress; closed with how it ended. */
static inline void batch(struct rig *r, double t, uint32_t tid, uint64_t op, const char *room)
{
	struct sp_event ev = op_event(r, t, ROLE_POST, tid, op, OPS_BUSY);

	strcpy(ev.kind, "kv");
	snprintf(ev.room, sizeof(ev.room), "%s", room);
	feed(r, &ev);
}

static inline void batch_over(struct rig *r, double t, uint32_t tid, uint64_t op,
			      enum sp_opstate st)
{
	struct sp_event ev = op_event(r, t, ROLE_CLOSE, tid, op, st);

	feed(r, &ev);
}

static inline void told(struct rig *r, double t, const char *room, enum sp_opstate st)
{
	told_as(r, t, ROLE_TOLD, room, st);
}

/* Deadlines and ends as in a Mooncake profile: how a room ended is told to its peers, and what
 * there is to send is not known. */
static inline struct rig *mooncake(struct rig *r)
{
	static struct profile_probe probes[] = {
		{.name = (char *)"submit", .event = {.role = ROLE_POST}},
		{.name = (char *)"free", .event = {.role = ROLE_CLOSE}},
		{.name = (char *)"told", .event = {.role = ROLE_TOLD}},
	};
	struct model_cfg cfg = {.profile = &r->profile};

	r->profile.probes = probes;
	r->profile.nprobes = r->profile.nuprobes = 3;
	r->profile.nneeds = 0;
	memcpy(cfg.stage_ns, r->profile.stage_ns, sizeof(cfg.stage_ns));
	return rig_with(r, &cfg);
}

static inline struct rig *native_rig(void)
{
	return mooncake(rig_new());
}

static inline struct rig *seen_rig(void)
{
	struct rig *r = mooncake(view_rig());

	ok(r, 0);
	return r;
}

#endif
