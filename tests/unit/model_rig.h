/* SPDX-License-Identifier: Apache-2.0 */
/* A model on its table: events by one-line calls, times in seconds, and looks at what it says. */
#ifndef MODEL_RIG_H
#define MODEL_RIG_H

#include "model_table.h"

/* ---- events ------------------------------------------------------------------------------- */

static inline struct sp_event event(const struct rig *r, double t, enum sp_role role, uint32_t tid,
				    const char *room)
{
	struct sp_event ev;

	sp_event_init(&ev);
	ev.ns = S(r->base + t);
	ev.pid = r->pid;
	ev.tid = tid;
	ev.role = (uint8_t)role;
	snprintf(ev.room, sizeof(ev.room), "%s", room);
	return ev;
}

static inline void feed(struct rig *r, const struct sp_event *ev)
{
	uint64_t before = r->taken;

	assert_int_equal(model_event(r->m, ev), 0);
	assert_int_equal(r->taken, before + 1);
}

static inline void announce_as(struct rig *r, double t, const char *room, const char *agent,
			       int need, unsigned int flags)
{
	struct sp_event ev = event(r, t, ROLE_ANNOUNCE, BOOT, room);

	snprintf(ev.agent, sizeof(ev.agent), "%s", agent);
	snprintf(ev.peer, sizeof(ev.peer), "10.0.0.7:%d", 40000 + agent[0]);
	ev.need = need;
	ev.flags = (uint16_t)flags;
	feed(r, &ev);
}

static inline void announce(struct rig *r, double t, const char *room, const char *agent, int need)
{
	announce_as(r, t, room, agent, need, 0);
}

static inline struct sp_event op_event(struct rig *r, double t, enum sp_role role, uint32_t tid,
				       uint64_t op, enum sp_opstate st)
{
	struct sp_event ev = event(r, t, role, tid, "");

	ev.op = op;
	ev.status = (uint8_t)st;
	ev.code = st == OPS_DONE ? 0 : st == OPS_BUSY ? 1 : st == OPS_ERROR ? -10 : 0;
	return ev;
}

static inline struct sp_event create_event(struct rig *r, double t, uint32_t tid, uint64_t op,
					   const char *room, const char *kind, int chunk, int last,
					   int rank)
{
	struct sp_event ev = event(r, t, ROLE_POST, tid, room);

	ev.flags = EV_CREATED;
	ev.op = op;
	snprintf(ev.kind, sizeof(ev.kind), "%s", kind);
	ev.chunk = chunk;
	ev.last = (int8_t)last;
	ev.rank = (int16_t)rank;
	return ev;
}

static inline void create(struct rig *r, double t, uint32_t tid, uint64_t op, const char *room,
			  const char *kind, int chunk, int last, int rank)
{
	struct sp_event ev = create_event(r, t, tid, op, room, kind, chunk, last, rank);

	feed(r, &ev);
}

static inline void post(struct rig *r, double t, uint32_t tid, uint64_t op, enum sp_opstate st)
{
	struct sp_event ev = op_event(r, t, ROLE_POST, tid, op, st);

	feed(r, &ev);
}

static inline void status(struct rig *r, double t, uint32_t tid, uint64_t op, enum sp_opstate st)
{
	struct sp_event ev = op_event(r, t, ROLE_STATUS, tid, op, st);

	feed(r, &ev);
}

static inline void close_op(struct rig *r, double t, uint32_t tid, uint64_t op)
{
	struct sp_event ev = op_event(r, t, ROLE_CLOSE, tid, op, OPS_UNKNOWN);

	feed(r, &ev);
}

/* create and post: in progress */
static inline void kv(struct rig *r, double t, uint32_t tid, uint64_t op, const char *room,
		      int chunk, int last)
{
	create(r, t, tid, op, room, "kv", chunk, last, 0);
	post(r, t, tid, op, OPS_BUSY);
}

static inline void aux(struct rig *r, double t, uint32_t tid, uint64_t op, const char *room)
{
	create(r, t, tid, op, room, "aux", -1, -1, -1);
	post(r, t, tid, op, OPS_BUSY);
}

/* one chunk from creation to its end, in a hundredth of a second */
static inline void kv_done(struct rig *r, double t, uint32_t tid, uint64_t op, const char *room,
			   int chunk, int last)
{
	kv(r, t, tid, op, room, chunk, last);
	status(r, t + 0.01, tid, op, OPS_DONE);
}

static inline void aux_done(struct rig *r, double t, uint32_t tid, uint64_t op, const char *room)
{
	aux(r, t, tid, op, room);
	status(r, t + 0.01, tid, op, OPS_DONE);
}

/* a whole room of one chunk and one peer, well */
static inline void healthy(struct rig *r, double t, uint32_t tid, uint64_t op, const char *room,
			   const char *agent)
{
	announce(r, t, room, agent, 1);
	kv(r, t + 0.1, tid, op, room, 0, 1);
	aux(r, t + 0.1, tid, op + 1, room);
	status(r, t + 0.2, tid, op, OPS_DONE);
	status(r, t + 0.2, tid, op + 1, OPS_DONE);
}

static inline void plain(struct rig *r, double t, enum sp_role role, uint32_t tid, const char *room)
{
	struct sp_event ev = event(r, t, role, tid, room);

	feed(r, &ev);
}

static inline void abort_room(struct rig *r, double t, const char *room)
{
	plain(r, t, ROLE_ABORT, BOOT, room);
}

static inline void thread_exit(struct rig *r, double t, uint32_t tid)
{
	struct sp_event ev = event(r, t, ROLE_THREAD, tid, "");

	strcpy(ev.kind, "exit");
	feed(r, &ev);
}

static inline void target(struct rig *r, double t, const char *kind, unsigned int flags)
{
	struct sp_event ev = event(r, t, ROLE_TARGET, r->pid, "");

	strcpy(ev.kind, kind);
	ev.flags = (uint16_t)flags;
	feed(r, &ev);
}

static inline void loss(struct rig *r, double t, int64_t n)
{
	struct sp_event ev = event(r, t, ROLE_LOSS, 0, "");

	strcpy(ev.kind, "ring-full");
	ev.code = n;
	feed(r, &ev);
}

static inline void told_as(struct rig *r, double t, enum sp_role role, const char *room,
			   enum sp_opstate st)
{
	struct sp_event ev = event(r, t, role, W1, room);

	ev.status = (uint8_t)st;
	feed(r, &ev);
}

/* ---- looking ------------------------------------------------------------------------------ */

static inline size_t count_said(const struct rig *r, enum model_alert_type type)
{
	size_t n = 0;

	for (size_t i = 0; i < r->nsaid; i++)
		n += r->said[i].type == type;
	return n;
}

/* The n-th (from 0) alert of a type for a room (NULL: any). */
static inline const struct said *nth(const struct rig *r, enum model_alert_type type,
				     const char *room, size_t n)
{
	for (size_t i = 0; i < r->nsaid; i++) {
		const struct said *s = &r->said[i];

		if (s->type != type || (room && strcmp(s->room, room)))
			continue;
		if (!n--)
			return s;
	}
	return NULL;
}

static inline void show(const struct rig *r)
{
	static const char *const types[] = {"STUCK", "RECOVERED", "ENDED",
					    "LOSS",  "TARGET",    "PEER"};

	for (size_t i = 0; i < r->nsaid; i++) {
		const struct said *s = &r->said[i];

		print_message("%9.3f %s %s/%u %s %s %s pin %d idle %.1f %s\n",
			      (double)s->ns / 1e9 - r->base, types[s->type], s->room, s->life,
			      sp_stage_name(s->stage), sp_cause_name(s->v.cause),
			      sp_confidence_name(s->v.confidence), s->v.pin,
			      (double)s->idle_ns / 1e9, s->what);
		print_message("          last: %s; expected: %s\n", s->v.last, s->v.expected);
		for (int k = 0; k < s->v.nevidence; k++)
			print_message("          %c %s\n", s->v.evidence[k].against ? '-' : '+',
				      s->v.evidence[k].text);
	}
}

/* The first stuck alert of a room is this one, at this time. */
static inline const struct said *expect_stuck(const struct rig *r, const char *room, double t,
					      enum sp_cause cause, enum sp_confidence conf, int pin)
{
	const struct said *s = nth(r, ALERT_STUCK, room, 0);

	if (!s || s->v.cause != cause || s->v.confidence != conf || s->v.pin != pin)
		show(r);
	assert_non_null(s);
	assert_string_equal(sp_cause_name(s->v.cause), sp_cause_name(cause));
	assert_string_equal(sp_confidence_name(s->v.confidence), sp_confidence_name(conf));
	assert_int_equal(s->v.pin, pin);
	if (s->ns + 1000 < S(r->base + t) || s->ns > S(r->base + t) + 1000)
		show(r);
	assert_in_range(s->ns, S(r->base + t) - 1000, S(r->base + t) + 1000);
	assert_true(s->v.nevidence > 0);
	assert_true(s->v.last[0] != 0);
	assert_true(s->v.expected[0] != 0);
	return s;
}

static inline bool has_evidence(const struct said *s, const char *text)
{
	for (int i = 0; i < s->v.nevidence; i++)
		if (strstr(s->v.evidence[i].text, text))
			return true;
	return false;
}

struct look {
	const char *room;
	uint32_t life;
	struct model_life l;
	struct model_verdict v;
	char peer[64], rid[64];
	bool found;
};

static inline bool look_fn(void *ctx, const struct model_life *l)
{
	struct look *k = ctx;

	if (strcmp(l->room, k->room) || l->life != k->life)
		return true;
	k->found = true;
	k->l = *l;
	k->v = *l->verdict;
	snprintf(k->peer, sizeof(k->peer), "%s", l->peer);
	snprintf(k->rid, sizeof(k->rid), "%s", l->rid);
	return false;
}

static inline struct look look(const struct rig *r, const char *room, uint32_t life)
{
	struct look k = {.room = room, .life = life};

	model_each(r->m, look_fn, &k);
	return k;
}

static inline size_t open_lives(const struct rig *r)
{
	struct model_stats st;

	model_stats(r->m, &st);
	return st.open_lives;
}

#endif
