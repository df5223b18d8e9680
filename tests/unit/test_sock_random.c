// SPDX-License-Identifier: Apache-2.0
/*
 * Random streams with the events of sockets in them, in any order and for any room. The alerts do
 * not depend on how often the model is looked at; the rules of telling hold; everything is given
 * back.
 */
#include "model_heap.h"
#include "random_rig.h"
#include "sock_rig.h"

static void client_event(struct sp_event *ev)
{
	static const uint8_t roles[] = {ROLE_ARRIVE, ROLE_ARRIVE, ROLE_ARRIVE,
					ROLE_REPLY,  ROLE_REPLY,  ROLE_ABORT};
	static const char *const kinds[] = {"first", "end", "end", ""};

	ev->role = roles[rnd(sizeof(roles))];
	ev->kind[0] = '\0';
	if (ev->role == ROLE_REPLY)
		random_text(ev->kind, sizeof(ev->kind), kinds, 4);
	if (ev->role == ROLE_ABORT && rnd(4))
		strcpy(ev->kind, "client-gone");
	snprintf(ev->rid, sizeof(ev->rid), "%s", rnd(3) ? (rnd(2) ? "a" : "b") : "");
	ev->code = rnd(3) ? 200 : (rnd(2) ? 500 : 0);
	ev->flags = (uint16_t)((rnd(3) ? EV_TRACKED : 0) | (rnd(3) ? 0 : EV_SHARED) |
			       (rnd(10) ? 0 : EV_FAKE));
	ev->status = OPS_UNKNOWN;
	ev->tid = 0;
}

static void conn_event(struct sp_event *ev)
{
	static const char *const kinds[] = {"opened",     "closed", "reset",     "trusted", "lost",
					    "unreadable", "unread", "untracked", "closed"};

	ev->role = ROLE_PEER;
	random_text(ev->kind, sizeof(ev->kind), kinds, 9);
	snprintf(ev->peer, sizeof(ev->peer), "10.0.0.%u:1", rnd(3));
	if (strcmp(ev->kind, "unread") != 0 && strcmp(ev->kind, "untracked") != 0)
		ev->room[0] = '\0';
}

static void seen_event(struct sp_event *ev)
{
	static const char *const queues[] = {"bootstrap", "waiting", "inflight", "inflight", ""};
	static const char *const kinds[] = {"ok", "ok", "ok", "ok", "unstable", "lost"};

	if (rnd(2)) {
		ev->role = ROLE_VIEW;
		ev->room[0] = '\0';
		random_text(ev->kind, sizeof(ev->kind), kinds, rnd(8) ? 4 : 6);
		ev->code = (int64_t)(ev->ns - 100000000ull * (1 + rnd(9)));
		return;
	}
	ev->role = rnd(5) ? ROLE_HELD : ROLE_RELEASE;
	random_text(ev->kind, sizeof(ev->kind), queues, 5);
	ev->op = rnd(8) ? 0x10 + rnd(4) : 0;
	snprintf(ev->rid, sizeof(ev->rid), "%s", rnd(4) ? (rnd(2) ? "a" : "b") : "");
	ev->code = (int64_t)rnd(6) - 1;
	ev->flags = ev->role == ROLE_HELD ? 0 : EV_INFERRED;
}

static void random_sock_event(struct sp_event *ev, uint64_t ns, bool view)
{
	uint32_t what = rnd(10);

	random_event(ev, ns);
	if (what < 4)
		return;
	snprintf(ev->room, sizeof(ev->room), "%u", 60 + rnd(20));
	if (what < 7)
		client_event(ev);
	else if (what < 8 || !view)
		conn_event(ev);
	else
		seen_event(ev);
}

static uint64_t next_ns(uint64_t ns)
{
	return ns + (rnd(40) ? rnd(2000) * 1000000ull : rnd(500) * 1000000000ull);
}

static struct rig *some_rig(uint64_t seed)
{
	struct rig *r = view_rig();
	struct model_cfg cfg = {
		.profile = &r->profile, .sees_arrive = true, .no_posts = seed % 3 == 0};

	memcpy(cfg.stage_ns, r->profile.stage_ns, sizeof(cfg.stage_ns));
	return rig_with(r, &cfg);
}

static void assert_same(const struct rig *a, const struct rig *b)
{
	assert_int_equal(a->nsaid, b->nsaid);
	for (size_t i = 0; i < a->nsaid; i++) {
		const struct said *x = &a->said[i], *y = &b->said[i];

		assert_true(same_said(x, y));
		for (int k = 0; k < x->v.nevidence; k++)
			assert_string_equal(x->v.evidence[k].text, y->v.evidence[k].text);
	}
}

static void test_independent_of_looking(void **state)
{
	size_t causes[CAUSE_MAX] = {0}, sure = 0, recovered = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct rig *a = some_rig(seed), *b = some_rig(seed), *c = some_rig(seed);
		uint64_t ns = S(1000);
		struct sp_event ev;

		rnd_state = seed;
		for (int i = 0; i < 1500; i++) {
			uint64_t before = ns, taken = a->taken, keep;

			ns = next_ns(ns);
			random_sock_event(&ev, ns, seed & 1);
			assert_int_equal(model_event(a->m, &ev), 0);
			keep = rnd_state;
			for (uint32_t k = rnd(6); k; k--)
				model_advance(b->m, before + (ns - before) / 1000 * rnd(1001));
			rnd_state = keep;
			assert_int_equal(model_event(b->m, &ev), 0);
			/* a recording has only what was handed on */
			if (a->taken != taken)
				assert_int_equal(model_event(c->m, &ev), 0);
		}
		model_advance(a->m, ns + S(2000));
		for (uint64_t t = ns; t < ns + S(2000); t += S(7))
			model_advance(b->m, t);
		model_advance(b->m, ns + S(2000));
		model_advance(c->m, ns + S(2000));
		assert_same(a, b);
		assert_same(a, c);
		for (size_t i = 0; i < a->nsaid; i++) {
			recovered += a->said[i].type == ALERT_RECOVERED;
			if (a->said[i].type != ALERT_STUCK)
				continue;
			causes[a->said[i].v.cause]++;
			sure += a->said[i].v.confidence >= CONF_LIKELY;
		}
		rig_free(a);
		rig_free(b);
		rig_free(c);
	}
	/* the streams did reach what is compared */
	assert_true(causes[CAUSE_PEER_GONE] > 10);
	assert_true(causes[CAUSE_DONE_NOT_RELEASED] > 10);
	assert_true(causes[CAUSE_ABORT_NOT_REAPED] > 10);
	assert_true(causes[CAUSE_NEVER_SENT] > 10);
	assert_true(causes[CAUSE_DECODE_ABSENT] > 10);
	assert_true(causes[CAUSE_ROOM_REUSED] > 10);
	assert_true(sure > 500);
	assert_true(recovered > 500);
}

static void test_memory(void **state)
{
	struct model_stats first, st;
	struct rig *r = some_rig(1);
	uint64_t ns = S(1000);
	struct sp_event ev;

	(void)state;
	model_stats(r->m, &first);
	rnd_state = 815;
	for (int i = 0; i < 20000; i++) {
		ns = next_ns(ns);
		random_sock_event(&ev, ns, true);
		assert_int_equal(model_event(r->m, &ev), 0);
		deadlines_are_kept(r->m);
	}
	model_stats(r->m, &st);
	assert_int_equal(st.lives, st.open_lives + st.ended);
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
	model_stats(r->m, &st);
	assert_true(st.bytes < first.bytes + (64 << 10));
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_independent_of_looking),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
