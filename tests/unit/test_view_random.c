// SPDX-License-Identifier: Apache-2.0
/*
 * Random streams with the server's own view in them. The alerts do not depend on how often the
 * model is looked at; nor on the events that it did not hand on, so that a replay of what was
 * recorded gives the same; and a stall is told of and taken back by the rules.
 */
#include "model_heap.h"
#include "random_rig.h"
#include "view_rig.h"

static void view_event(struct sp_event *ev)
{
	static const char *const kinds[] = {"ok", "ok", "ok", "ok", "ok", "ok", "unstable", "lost"};

	ev->role = ROLE_VIEW;
	random_text(ev->kind, sizeof(ev->kind), kinds, rnd(20) ? 6 : 8);
	ev->code = (int64_t)(ev->ns - 100000000ull * (1 + rnd(9)));
}

static void held_event(struct sp_event *ev)
{
	static const char *const queues[] = {"bootstrap", "waiting",  "inflight",
					     "inflight",  "inflight", ""};
	static const uint8_t flags[] = {0, 0, 0, EV_AT, EV_AT, EV_ORPHAN, EV_CUT};

	ev->role = rnd(5) ? ROLE_HELD : ROLE_RELEASE;
	random_text(ev->kind, sizeof(ev->kind), queues, 6);
	ev->op = rnd(8) ? 0x10 + rnd(4) : 0;
	snprintf(ev->rid, sizeof(ev->rid), "%s", rnd(5) ? (rnd(2) ? "a" : "b") : "");
	ev->code = (int64_t)rnd(6) - 1;
	ev->flags = ev->role == ROLE_HELD ? flags[rnd(sizeof(flags))] : EV_INFERRED;
	ev->tid = rnd(4);
	ev->part = (int32_t)rnd(4) - 1;
	ev->parts = (int32_t)rnd(4) - 1;
}

static void thread_at(struct sp_event *ev)
{
	static const char *const kinds[] = {"at", "at", "at", "at", "at", "at", "missing", "found"};

	ev->role = ROLE_THREAD;
	random_text(ev->kind, sizeof(ev->kind), kinds, 8);
	ev->tid = 1 + rnd(3);
	if (!rnd(4))
		ev->room[0] = '\0';
}

static void call_event(struct sp_event *ev)
{
	static const char *const kinds[] = {"inside", "inside", "inside", "left",
					    "tally",  "count",  "copy"};

	random_text(ev->kind, sizeof(ev->kind), kinds, 7);
	if (rnd(2))
		ev->room[0] = '\0';
	ev->probe = (int16_t)rnd(2);
	snprintf(ev->note, sizeof(ev->note), "%s", rnd(4) ? "" : "not verified");
	snprintf(ev->object, sizeof(ev->object), "queue pair %u", rnd(3));
	if (!strcmp(ev->kind, "inside"))
		ev->code = (int64_t)(ev->ns - rnd(4000) * 10000000ull);
	else if (!strcmp(ev->kind, "tally"))
		ev->op = ev->ns - rnd(4000) * 10000000ull;
}

static void random_view_stream(struct sp_event *ev, uint64_t ns)
{
	uint32_t what = rnd(10);

	random_event(ev, ns);
	if (what < 5) {
		if (ev->role == ROLE_CALL)
			call_event(ev);
		return;
	}
	snprintf(ev->room, sizeof(ev->room), "%u", 60 + rnd(20));
	if (what < 7)
		held_event(ev);
	else if (what < 8)
		thread_at(ev);
	else
		view_event(ev);
}

/* The process is stopped and goes on; its operations come into sight, or get out of it; the watch
 * itself has not run. */
static void state_event(struct sp_event *ev)
{
	static const char *const kinds[] = {"stopped", "continued", "continued",
					    "blind",   "sighted",   "sighted"};

	ev->role = ROLE_TARGET;
	random_text(ev->kind, sizeof(ev->kind), kinds, 6);
	ev->code = TARGET_BLIND;
	ev->flags = 0;
	if (rnd(3))
		return;
	ev->role = ROLE_STALL;
	ev->code = (int64_t)rnd(20) * 1000000000;
}

static uint64_t next_ns(uint64_t ns)
{
	return ns + (rnd(40) ? rnd(2000) * 1000000ull : rnd(500) * 1000000000ull);
}

static bool same_evidence(const struct said *a, const struct said *b)
{
	for (int i = 0; i < a->v.nevidence; i++)
		if (strcmp(a->v.evidence[i].text, b->v.evidence[i].text) != 0 ||
		    a->v.evidence[i].against != b->v.evidence[i].against)
			return false;
	return !strcmp(a->v.culprit.room, b->v.culprit.room) && a->v.ntids == b->v.ntids;
}

static void assert_same(const struct rig *a, const struct rig *b)
{
	assert_int_equal(a->nsaid, b->nsaid);
	for (size_t i = 0; i < a->nsaid; i++) {
		assert_true(same_said(&a->said[i], &b->said[i]));
		assert_true(same_evidence(&a->said[i], &b->said[i]));
	}
}

/* a is given every event; b is looked at in between, c is given only what a handed on. */
static void stream(struct rig *a, struct rig *b, struct rig *c, uint64_t seed)
{
	uint64_t ns = S(1000);
	struct sp_event ev;

	rnd_state = seed;
	for (int i = 0; i < 1500; i++) {
		uint64_t before = ns, taken = a->taken;

		ns = next_ns(ns);
		random_view_stream(&ev, ns);
		assert_int_equal(model_event(a->m, &ev), 0);
		for (uint32_t k = rnd(6); k; k--) {
			uint64_t keep = rnd_state;

			rnd_state = ns ^ k * 0x9e3779b97f4a7c15ull;
			model_advance(b->m, before + (ns - before) / 1000 * rnd(1001));
			rnd_state = keep;
		}
		assert_int_equal(model_event(b->m, &ev), 0);
		if (a->taken != taken)
			assert_int_equal(model_event(c->m, &ev), 0);
	}
	model_advance(a->m, ns + S(2000));
	for (uint64_t t = ns; t < ns + S(2000); t += S(7))
		model_advance(b->m, t);
	model_advance(b->m, ns + S(2000));
	model_advance(c->m, ns + S(2000));
}

static void test_independent_of_looking(void **state)
{
	size_t causes[CAUSE_MAX] = {0}, certain = 0, recovered = 0;
	uint64_t skipped = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct rig *a = view_rig(), *b = view_rig(), *c = view_rig();
		struct model_stats st;

		stream(a, b, c, seed);
		assert_same(a, b);
		assert_same(a, c);
		model_stats(a->m, &st);
		skipped += st.events - a->taken;
		for (size_t i = 0; i < a->nsaid; i++) {
			const struct said *s = &a->said[i];

			recovered += s->type == ALERT_RECOVERED;
			if (s->type != ALERT_STUCK)
				continue;
			causes[s->v.cause]++;
			certain += s->v.confidence == CONF_CERTAIN;
		}
		rig_free(a);
		rig_free(b);
		rig_free(c);
	}
	/* the streams did reach what is compared */
	for (int i = CAUSE_NONE + 1; i < CAUSE_PEER_NOT_TOLD; i++)
		if (i != CAUSE_PEER_GONE && i != CAUSE_CONTROL_LOST &&
		    i != CAUSE_QUORUM_INCOMPLETE && i != CAUSE_ABORT_BEFORE_OPEN)
			assert_true(causes[i] > 0);
	assert_true(certain > 500);
	assert_true(recovered > 500);
	assert_true(skipped > 1000);
}

/* What ended a stall of this life last, before alert i: NULL, it is the first. */
static const struct said *before(const struct rig *r, size_t i, bool same_cause)
{
	const struct said *s = &r->said[i];

	while (i-- > 0) {
		const struct said *p = &r->said[i];

		if (strcmp(p->room, s->room) != 0 || p->life != s->life || p->pid != s->pid)
			continue;
		if (p->type == ALERT_RECOVERED)
			return p;
		if (p->type == ALERT_STUCK && (!same_cause || p->v.cause == s->v.cause))
			return p;
	}
	return NULL;
}

static void test_alert_rules(void **state)
{
	(void)state;
	for (uint64_t seed = 100; seed < 130; seed++) {
		struct rig *r = view_rig();
		uint64_t ns = S(1000);
		struct sp_event ev;

		rnd_state = seed;
		for (int i = 0; i < 1500; i++) {
			ns = next_ns(ns);
			random_view_stream(&ev, ns);
			assert_int_equal(model_event(r->m, &ev), 0);
		}
		for (size_t i = 0; i < r->nsaid; i++) {
			const struct said *s = &r->said[i], *p;

			if (s->type == ALERT_RECOVERED) {
				p = before(r, i, false);
				assert_true(p && p->type == ALERT_STUCK);
			} else if (s->type == ALERT_STUCK) {
				p = before(r, i, true);
				assert_true(s->v.confidence >= CONF_POSSIBLE);
				assert_true(!p || p->type == ALERT_RECOVERED ||
					    s->v.confidence > p->v.confidence);
				assert_true(s->v.nevidence > 0);
				assert_true(s->v.ntids <= VERDICT_TIDS_MAX);
			}
		}
		rig_free(r);
	}
}

/* Everything is given back, and no deadline is overslept, whatever comes in whatever order. */
static void all_given_back(uint64_t seed)
{
	struct rig *r = view_rig();
	struct model_stats before_it, after;
	uint64_t ns = S(1000);
	struct sp_event ev;

	model_stats(r->m, &before_it);
	rnd_state = seed;
	for (int i = 0; i < 20000; i++) {
		ns = next_ns(ns);
		random_view_stream(&ev, ns);
		if (!rnd(100))
			state_event(&ev);
		assert_int_equal(model_event(r->m, &ev), 0);
		deadlines_are_kept(r->m);
	}
	model_stats(r->m, &after);
	assert_int_equal(after.lives, after.open_lives + after.ended);
	for (uint32_t pid = 100; pid < 102; pid++) {
		sp_event_init(&ev);
		ev.ns = ns;
		ev.pid = pid;
		ev.role = ROLE_TARGET;
		strcpy(ev.kind, "exited");
		assert_int_equal(model_event(r->m, &ev), 0);
		assert_int_equal(model_open_lives(r->m, pid), 0);
	}
	assert_int_equal(model_asks(r->m), 0);
	model_stats(r->m, &after);
	assert_int_equal(after.open_lives, 0);
	/* rooms, their table and the kinds' are left, and the heap's array */
	assert_true(after.bytes < before_it.bytes + (64 << 10));
	rig_free(r);
}

static void test_memory(void **state)
{
	(void)state;
	all_given_back(1);
	all_given_back(22);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_independent_of_looking),
		cmocka_unit_test(test_alert_rules),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
