/* SPDX-License-Identifier: Apache-2.0 */
/* The model on its table, with the server's own view: held, release, thread and view events. */
#ifndef VIEW_RIG_H
#define VIEW_RIG_H

#include "model_rig.h"

/* values of the server's status table, as the shipped profile gives them a meaning */
enum { FAILED = 0, BOOTSTRAP, READY, MOVING, DONE, NONE = -1 };

/* A profile whose python: section declares everything. */
static inline struct rig *view_rig(void)
{
	static struct profile_python py = {.status = {.n = 1}, .backlog = {.n = 1}};
	struct rig *r = rig_new();

	py.states.failed = FAILED;
	py.states.bootstrap = BOOTSTRAP;
	py.states.ready = READY;
	py.states.moving = MOVING;
	py.states.done = DONE;
	r->profile.python = &py;
	return r;
}

struct seen_as {
	const char *room, *rid, *kind;
	uint64_t op;
	int64_t code;
	uint32_t tid;
	unsigned int flags;
	int announced, need, sent, total; /* + 1; 0: unknown */
};

static inline void held_at(struct rig *r, double t, struct seen_as s)
{
	struct sp_event ev = event(r, t, ROLE_HELD, s.tid, s.room);

	snprintf(ev.kind, sizeof(ev.kind), "%s", s.kind);
	snprintf(ev.rid, sizeof(ev.rid), "%s", s.rid ? s.rid : "");
	ev.op = s.op;
	ev.code = s.code;
	ev.flags = (uint16_t)s.flags;
	ev.chunk = s.announced - 1;
	ev.need = s.need - 1;
	ev.part = s.sent - 1;
	ev.parts = s.total - 1;
	feed(r, &ev);
}
#define held(r, t, ...) held_at(r, t, (struct seen_as){__VA_ARGS__})

/* a whole life of a room, by native events alone */
static inline void native_room(struct rig *r, double t, const char *room)
{
	announce(r, t, room, "A", 1);
	kv_done(r, t + 0.1, W1, 0xa0, room, 0, 1);
	aux_done(r, t + 0.2, W1, 0xa1, room);
}

/* in a queue, with a rid made of the room */
static inline void listed(struct rig *r, double t, const char *room, const char *queue,
			  int64_t code)
{
	char rid[40];

	snprintf(rid, sizeof(rid), "r-%s", room);
	held(r, t, .room = room, .rid = rid, .op = 0x5000 + (uint64_t)atoi(room), .kind = queue,
	     .code = code);
}

static inline void in_forward(struct rig *r, double t, const char *room, int64_t code)
{
	listed(r, t, room, "", code);
}

static inline void entry(struct rig *r, double t, const char *room, int64_t code)
{
	held(r, t, .room = room, .kind = "", .code = code);
}

static inline void let_go_of(struct rig *r, double t, const char *room, const char *rid,
			     uint64_t op)
{
	struct sp_event ev = event(r, t, ROLE_RELEASE, 0, room);

	snprintf(ev.rid, sizeof(ev.rid), "%s", rid);
	ev.op = op;
	ev.flags = EV_INFERRED;
	feed(r, &ev);
}

static inline void released(struct rig *r, double t, const char *room, const char *rid)
{
	let_go_of(r, t, room, rid, 0);
}

static inline void let_go(struct rig *r, double t, const char *room)
{
	char rid[40];

	snprintf(rid, sizeof(rid), "r-%s", room);
	let_go_of(r, t, room, rid, 0x5000 + (uint64_t)atoi(room));
}

static inline void works_at(struct rig *r, double t, uint32_t tid, const char *room)
{
	struct sp_event ev = event(r, t, ROLE_THREAD, tid, room);

	strcpy(ev.kind, "at");
	feed(r, &ev);
}

static inline void thread_is(struct rig *r, double t, const char *kind, uint32_t tid)
{
	struct sp_event ev = event(r, t, ROLE_THREAD, tid, "");

	strcpy(ev.kind, kind);
	strcpy(ev.note, "bootstrap_thread");
	feed(r, &ev);
}

/* One round, begun `begun` seconds before t. */
static inline void view(struct rig *r, double t, const char *kind, double begun)
{
	struct sp_event ev = event(r, t, ROLE_VIEW, 0, "");

	snprintf(ev.kind, sizeof(ev.kind), "%s", kind);
	ev.code = (int64_t)(ev.ns - S(begun));
	assert_int_equal(model_event(r->m, &ev), 0);
}

static inline void ok(struct rig *r, double t)
{
	view(r, t, "ok", 0.5);
}

/* Rounds every half second in [from, upto]. */
static inline void rounds(struct rig *r, double from, double upto)
{
	for (double t = from; t <= upto + 1e-9; t += 0.5)
		ok(r, t);
}

static inline size_t stuck_lines(const struct rig *r)
{
	return count_said(r, ALERT_STUCK);
}

static inline bool has_tid(const struct said *s, uint32_t tid)
{
	for (int i = 0; i < s->v.ntids; i++)
		if (s->v.tids[i] == tid)
			return true;
	return false;
}

/* The first line of evidence for a verdict is the one that decides. */
static inline void decided_by(const struct said *s, const char *text)
{
	assert_non_null(strstr(s->v.evidence[0].text, text));
	assert_false(s->v.evidence[0].against);
}

/* A pin that was there before the watch. */
#define old_pin(r, ...) held(r, 1, .rid = "x", .op = 0x10, .flags = EV_CUT, __VA_ARGS__)

#endif
