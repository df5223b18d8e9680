/* SPDX-License-Identifier: Apache-2.0 */
/* The model on its table, with what sockets show: arrivals, replies, clients and peers that go. */
#ifndef SOCK_RIG_H
#define SOCK_RIG_H

#include "view_rig.h"

/* Nothing but sockets is watched. */
static inline struct rig *only_sockets(void)
{
	struct rig *r = rig_new();
	struct model_cfg cfg = {.profile = &r->profile, .sees_arrive = true, .no_posts = true};

	memcpy(cfg.stage_ns, r->profile.stage_ns, sizeof(cfg.stage_ns));
	return rig_with(r, &cfg);
}

struct asked {
	const char *room, *rid, *host, *kind;
	unsigned int flags;
	int64_t code;
	uint64_t request; /* its number */
};

static inline void client_at(struct rig *r, double t, enum sp_role role, struct asked a)
{
	struct sp_event ev = event(r, t, role, 0, a.room);

	snprintf(ev.rid, sizeof(ev.rid), "%s", a.rid ? a.rid : "");
	snprintf(ev.peer, sizeof(ev.peer), "%s", a.host ? a.host : "");
	snprintf(ev.kind, sizeof(ev.kind), "%s", a.kind ? a.kind : "");
	ev.flags = (uint16_t)a.flags;
	ev.code = a.code;
	ev.op = a.request;
	feed(r, &ev);
}
#define client(r, t, role, ...) client_at(r, t, role, (struct asked){__VA_ARGS__})

/* a request whose answer will be seen */
static inline void arrives(struct rig *r, double t, const char *room, const char *rid)
{
	client(r, t, ROLE_ARRIVE, .room = room, .rid = rid, .host = "10.0.0.1",
	       .flags = EV_TRACKED);
}

static inline void replies(struct rig *r, double t, const char *room, const char *rid, int64_t code)
{
	client(r, t, ROLE_REPLY, .room = room, .rid = rid, .kind = "end", .code = code);
}

static inline void client_goes(struct rig *r, double t, const char *room, const char *rid)
{
	client(r, t, ROLE_ABORT, .room = room, .rid = rid, .kind = "client-gone");
}

/* as a socket shows it: without a thread */
static inline void hears(struct rig *r, double t, const char *room, const char *agent, int need)
{
	struct sp_event ev = event(r, t, ROLE_ANNOUNCE, 0, room);

	snprintf(ev.agent, sizeof(ev.agent), "%s", agent);
	ev.need = need;
	feed(r, &ev);
}

static inline void conn(struct rig *r, double t, const char *kind, const char *agent,
			const char *room)
{
	struct sp_event ev = event(r, t, ROLE_PEER, 0, room);

	snprintf(ev.kind, sizeof(ev.kind), "%s", kind);
	snprintf(ev.agent, sizeof(ev.agent), "%s", agent);
	strcpy(ev.peer, "10.0.0.7:50123");
	feed(r, &ev);
}

/* The life is judged with no more than a doubt, and no alert of weight was told. */
static inline void expect_doubt(const struct rig *r, const char *room, uint32_t life,
				enum sp_cause cause)
{
	struct look k = look(r, room, life);

	assert_true(k.found);
	if (k.v.cause != cause || k.v.confidence != CONF_POSSIBLE)
		show(r);
	assert_string_equal(sp_cause_name(k.v.cause), sp_cause_name(cause));
	assert_int_equal(k.v.confidence, CONF_POSSIBLE);
	assert_int_not_equal(k.v.pin, 1);
}

/* Lines that are printed by default. */
static inline size_t alerts(const struct rig *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->nsaid; i++)
		n += r->said[i].type == ALERT_STUCK && r->said[i].v.confidence >= CONF_LIKELY;
	return n;
}

static inline void expect_end(const struct rig *r, const char *room, uint32_t life,
			      enum sp_outcome outcome)
{
	assert_string_equal(r->last_end.room, room);
	assert_int_equal(r->last_end.life, life);
	assert_int_equal(r->last_end.outcome, outcome);
}

#endif
