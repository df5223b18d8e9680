/* SPDX-License-Identifier: Apache-2.0 */
/* Random streams of events, with values that meet each other often, and how alerts are compared. */
#ifndef RANDOM_RIG_H
#define RANDOM_RIG_H

#include "model_rig.h"

static uint64_t rnd_state;

static inline uint32_t rnd(uint32_t n)
{
	rnd_state = rnd_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(rnd_state >> 33) % n;
}

static inline void random_text(char *buf, size_t len, const char *const *words, uint32_t n)
{
	snprintf(buf, len, "%s", words[rnd(n)]);
}

/* Any event at all, with values that meet each other often. */
static inline void random_event(struct sp_event *ev, uint64_t ns)
{
	static const char *const kinds[] = {"kv",          "aux",         "state",  "stg",
					    "staging_req", "staging_rsp", "closed", "inflight",
					    "waiting",     "bootstrap"};
	static const char *const agents[] = {"A", "B", "C", ""};
	/* weighted towards what makes lives move */
	static const uint8_t roles[] = {ROLE_ANNOUNCE, ROLE_ANNOUNCE, ROLE_POST,     ROLE_POST,
					ROLE_POST,     ROLE_POST,     ROLE_STATUS,   ROLE_STATUS,
					ROLE_STATUS,   ROLE_CLOSE,    ROLE_ABORT,    ROLE_ARRIVE,
					ROLE_HELD,     ROLE_TOLD,     ROLE_REPLY,    ROLE_RELEASE,
					ROLE_CONTROL,  ROLE_PEER,     ROLE_REGISTER, ROLE_CALL};

	sp_event_init(ev);
	ev->ns = ns;
	ev->pid = 100 + rnd(2);
	ev->tid = 1 + rnd(5);
	ev->role = roles[rnd(sizeof(roles))];
	if (!rnd(300))
		ev->role = (uint8_t)(ROLE_THREAD + rnd(ROLE_MAX - ROLE_THREAD));
	ev->status = (uint8_t)rnd(4);
	ev->code = (int64_t)rnd(6) - 3;
	ev->last = (int8_t)((int)rnd(3) - 1);
	ev->rank = (int16_t)((int)rnd(3) - 1);
	ev->chunk = (int32_t)rnd(4) - 1;
	ev->need = (int32_t)rnd(4) - 1;
	ev->parts = rnd(6) ? -1 : (int32_t)rnd(4);
	ev->part = rnd(6) ? -1 : (int32_t)rnd(4);
	ev->covers = rnd(20) ? 0 : rnd(8);
	ev->flags = rnd(8) ? 0 : (uint8_t)(1u << rnd(4));
	ev->op = rnd(24);
	random_text(ev->kind, sizeof(ev->kind), kinds, ev->role == ROLE_POST ? 3 : 10);
	random_text(ev->agent, sizeof(ev->agent), agents, 4);
	if (ev->role == ROLE_POST && rnd(3)) {
		ev->flags = EV_CREATED;
		ev->status = rnd(20) ? OPS_UNKNOWN : OPS_ERROR;
	}
	if (ev->role != ROLE_STATUS && ev->role != ROLE_CLOSE &&
	    (ev->role != ROLE_POST || (ev->flags & EV_CREATED)))
		snprintf(ev->room, sizeof(ev->room), "%u", 60 + rnd(20));
	if (!rnd(200)) {
		static const char *const whats[] = {"exited", "exec", "attached", "lib"};

		ev->role = ROLE_TARGET;
		random_text(ev->kind, sizeof(ev->kind), whats, 4);
		ev->flags = rnd(2) ? EV_GAP : 0;
	}
}

static inline bool same_said(const struct said *a, const struct said *b)
{
	return a->type == b->type && a->ns == b->ns && a->pid == b->pid && a->tid == b->tid &&
	       a->life == b->life && !strcmp(a->room, b->room) && a->stage == b->stage &&
	       a->v.cause == b->v.cause && a->v.confidence == b->v.confidence &&
	       a->v.pin == b->v.pin && a->idle_ns == b->idle_ns && a->outcome == b->outcome &&
	       a->stalled_ns == b->stalled_ns && !strcmp(a->v.last, b->v.last) &&
	       !strcmp(a->v.expected, b->v.expected) && a->v.nevidence == b->v.nevidence &&
	       !strcmp(a->what, b->what) && a->total_rooms == b->total_rooms;
}

#endif
