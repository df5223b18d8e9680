/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model on a table: one profile in memory, and everything the model says kept in lists.
 */
#ifndef MODEL_TABLE_H
#define MODEL_TABLE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "model/model.h"

#define S(sec) ((uint64_t)((sec)*1e9 + 0.5))

enum { PID = 100, BOOT = 101, W1 = 111, W2 = 112, W3 = 113 };

struct said {
	enum model_alert_type type;
	uint64_t ns, age_ns, idle_ns, stalled_ns, lost;
	uint32_t pid, tid, life;
	size_t total_rooms;
	char room[SP_ROOM_MAX], what[32], why[16], rooms[128], peer[64];
	enum sp_stage stage;
	enum sp_outcome outcome;
	bool uncertain, late;
	struct model_verdict v;
};

struct rig {
	struct model *m;
	struct profile profile;
	struct said *said;
	size_t nsaid, cap;
	uint64_t taken, taken_by_life, changed, ended;
	char taken_room[SP_ROOM_MAX];
	uint32_t taken_life;
	struct said last_end; /* room, life, outcome */
	bool polls;
	uint64_t poll_ns;
	uint32_t poll_tid;
	double base; /* added to every time */
	uint32_t pid;
};

static void rig_alert(void *ctx, const struct model_alert *a)
{
	struct rig *r = ctx;
	struct said *s;

	if (r->nsaid == r->cap) {
		r->cap = r->cap ? r->cap * 2 : 64;
		r->said = realloc(r->said, r->cap * sizeof(*r->said));
		assert_non_null(r->said);
	}
	s = &r->said[r->nsaid++];
	memset(s, 0, sizeof(*s));
	s->type = a->type;
	s->ns = a->ns;
	s->pid = a->pid;
	s->tid = a->tid;
	s->age_ns = a->age_ns;
	s->idle_ns = a->idle_ns;
	s->stalled_ns = a->stalled_ns;
	s->outcome = a->outcome;
	s->lost = a->lost;
	s->total_rooms = a->total_rooms;
	if (a->what)
		snprintf(s->what, sizeof(s->what), "%s", a->what);
	if (a->peer)
		snprintf(s->peer, sizeof(s->peer), "%s", a->peer);
	if (a->why)
		snprintf(s->why, sizeof(s->why), "%s", a->why);
	for (size_t i = 0; i < a->nrooms; i++)
		snprintf(s->rooms + strlen(s->rooms), sizeof(s->rooms) - strlen(s->rooms), "%s,",
			 a->rooms[i]);
	if (a->life) {
		snprintf(s->room, sizeof(s->room), "%s", a->life->room);
		s->life = a->life->life;
		s->stage = a->life->stage;
		s->uncertain = a->life->uncertain;
		s->late = a->life->observed_late;
		s->v = *a->life->verdict;
	}
}

static void rig_changed(void *ctx, const struct model_life *l)
{
	struct rig *r = ctx;

	assert_non_null(l->verdict);
	assert_true(l->stage >= STAGE_BOOTSTRAP && l->stage < STAGE_ENDED);
	if (!*l->user)
		*l->user = malloc(1);
	r->changed++;
}

static void rig_ended(void *ctx, const struct model_life *l)
{
	struct rig *r = ctx;

	free(*l->user);
	*l->user = NULL;
	r->ended++;
	snprintf(r->last_end.room, sizeof(r->last_end.room), "%s", l->room);
	r->last_end.life = l->life;
	r->last_end.outcome = l->outcome;
	r->last_end.ns = l->ended_ns;
}

static void rig_taken(void *ctx, const struct sp_event *ev, const struct model_life *l)
{
	struct rig *r = ctx;

	r->taken++;
	r->taken_life = 0;
	if (!l)
		return;
	r->taken_by_life++;
	r->taken_life = l->life;
	snprintf(r->taken_room, sizeof(r->taken_room), "%s", l->room);
	(void)ev;
}

static bool rig_poll(void *ctx, uint32_t pid, uint64_t op, uint64_t *ns, uint32_t *tid)
{
	struct rig *r = ctx;

	(void)pid;
	(void)op;
	*ns = r->poll_ns;
	*tid = r->poll_tid;
	return r->polls;
}

static struct model *rig_model_of(struct rig *r, const struct model_cfg *cfg)
{
	static const struct model_ops ops = {
		.alert = rig_alert,
		.life_changed = rig_changed,
		.life_ended = rig_ended,
		.event_taken = rig_taken,
		.last_poll = rig_poll,
	};

	return model_new(cfg, &ops, r);
}

static struct model *rig_model(struct rig *r, bool sees_release)
{
	struct model_cfg cfg = {.profile = &r->profile, .sees_release = sees_release};

	memcpy(cfg.stage_ns, r->profile.stage_ns, sizeof(cfg.stage_ns));
	return rig_model_of(r, &cfg);
}

/* Deadlines as in the shipped profile: bootstrap 330, ready 300, inflight 30, releasing 10 s. */
static struct rig *rig_new_with(bool sees_release)
{
	struct rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->pid = PID;
	r->base = 1000;
	r->profile.name = (char *)"test";
	r->profile.room_u64 = true;
	r->profile.fake[0].lo = 0;
	r->profile.fake[0].hi = 63;
	r->profile.nfake = 1;
	r->profile.stage_ns[STAGE_BOOTSTRAP] = S(330);
	r->profile.stage_ns[STAGE_READY] = S(300);
	r->profile.stage_ns[STAGE_INFLIGHT] = S(30);
	r->profile.stage_ns[STAGE_RELEASING] = S(10);
	strcpy(r->profile.needs[0].kind, "kv");
	r->profile.needs[0].last = true;
	strcpy(r->profile.needs[1].kind, "aux");
	r->profile.nneeds = 2;
	r->m = rig_model(r, sees_release);
	assert_non_null(r->m);
	return r;
}

static inline struct rig *rig_new(void)
{
	return rig_new_with(false);
}

/* The same with another configuration; nothing has happened yet. */
static inline struct rig *rig_with(struct rig *r, const struct model_cfg *cfg)
{
	model_free(r->m);
	r->m = rig_model_of(r, cfg);
	assert_non_null(r->m);
	return r;
}

static bool rig_drop_user(void *ctx, const struct model_life *l)
{
	(void)ctx;
	free(*l->user);
	*l->user = NULL;
	return true;
}

static void rig_free(struct rig *r)
{
	model_each(r->m, rig_drop_user, NULL);
	model_free(r->m);
	free(r->said);
	free(r);
}

static inline void to(struct rig *r, double t)
{
	model_advance(r->m, S(r->base + t));
}

#endif
