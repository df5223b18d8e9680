// SPDX-License-Identifier: Apache-2.0
/* What a slip in the profile makes of a healthy server, as the model sees it: never certainty. */
#include "view_rig.h"

static void doubt(struct rig *r, double t, const char *kind, const char *why)
{
	struct sp_event ev = event(r, t, ROLE_THREAD, 0, "");

	strcpy(ev.kind, kind);
	strcpy(ev.note, why);
	feed(r, &ev);
}

/* Nobody is at it, as far as is known; three that rest on that. */
static void idle_ones(struct rig *r)
{
	held(r, 1, .room = "7001", .rid = "a", .op = 0x10, .kind = "inflight", .code = READY);
	held(r, 1, .room = "7002", .rid = "b", .op = 0x20, .kind = "inflight", .code = MOVING,
	     .sent = 5 + 1, .total = 6 + 1);
	held(r, 1, .room = "7003", .rid = "c", .op = 0x30, .kind = "inflight", .code = MOVING,
	     .sent = 6 + 1, .total = 6 + 1);
}

static void test_unsure(void **state)
{
	struct rig *r = view_rig();
	const struct said *s;

	(void)state;
	ok(r, 0);
	doubt(r, 0.5, "unsure", "no thread is in *.wrk");
	idle_ones(r);
	rounds(r, 1.5, 33);
	s = expect_stuck(r, "7001", 31, CAUSE_NEVER_SENT, CONF_LIKELY, 1);
	assert_true(has_evidence(s, "is not known: no thread is in *.wrk"));
	assert_false(has_evidence(s, "no thread is at work on it"));
	expect_stuck(r, "7002", 31, CAUSE_SEND_INCOMPLETE, CONF_LIKELY, 1);
	expect_stuck(r, "7003", 31, CAUSE_SEND_INCOMPLETE, CONF_LIKELY, 1);
	assert_int_equal(stuck_lines(r), 3);
	/* once they are known it is judged again */
	doubt(r, 33.5, "sure", "");
	rounds(r, 34, 34.5);
	assert_int_equal(stuck_lines(r), 6);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(r->said[r->nsaid - 1 - i].v.confidence, CONF_CERTAIN);
	rig_free(r);
	r = view_rig();
	ok(r, 0);
	idle_ones(r);
	rounds(r, 1.5, 33);
	expect_stuck(r, "7001", 31, CAUSE_NEVER_SENT, CONF_CERTAIN, 1);
	expect_stuck(r, "7002", 31, CAUSE_SEND_INCOMPLETE, CONF_CERTAIN, 1);
	expect_stuck(r, "7003", 31, CAUSE_AUX_MISSING, CONF_CERTAIN, 1);
	rig_free(r);
}

/* In a backlog, and who serves that is not known. */
static void test_waits(void **state)
{
	struct rig *r = view_rig();
	const struct said *s;

	(void)state;
	ok(r, 0);
	held(r, 1, .room = "7001", .rid = "a", .op = 0x10, .kind = "inflight", .code = READY,
	     .flags = EV_WAITS);
	rounds(r, 1.5, 33);
	s = expect_stuck(r, "7001", 31, CAUSE_QUEUED_BEHIND, CONF_POSSIBLE, -1);
	assert_true(has_evidence(s, "which one serves its queue is not known"));
	rig_free(r);
}

static void fit(struct rig *r, double t, const char *kind)
{
	struct sp_event ev = event(r, t, ROLE_VIEW, 0, "");

	strcpy(ev.kind, kind);
	strcpy(ev.note, "inflight");
	assert_int_equal(model_event(r->m, &ev), 0);
}

static void test_other_table(void **state)
{
	struct rig *r = view_rig();
	const struct said *s;
	uint64_t taken;

	(void)state;
	fit(r, 0, "misfit");
	ok(r, 0);
	held(r, 1, .room = "loaf", .rid = "a", .op = 0x10, .kind = "inflight", .code = NONE,
	     .flags = EV_CUT);
	rounds(r, 1.5, 33);
	s = expect_stuck(r, "loaf", 31, CAUSE_STATUS_LOST, CONF_LIKELY, 1);
	assert_true(has_evidence(s, "perhaps they are not the same kind of room"));
	taken = r->taken;
	fit(r, 33.5, "fits");
	ok(r, 34);
	assert_int_equal(r->taken, taken + 2); /* so that a replay judges again as well */
	s = &r->said[r->nsaid - 1];
	assert_int_equal(s->v.cause, CAUSE_STATUS_LOST);
	assert_int_equal(s->v.confidence, CONF_CERTAIN);
	assert_false(has_evidence(s, "the same kind of room"));
	rig_free(r);
	/* other causes do not rest on the table */
	r = view_rig();
	fit(r, 0, "misfit");
	ok(r, 0);
	held(r, 1, .room = "loaf", .rid = "a", .op = 0x10, .kind = "inflight", .code = NONE,
	     .tid = W1, .flags = EV_AT);
	rounds(r, 1.5, 33);
	expect_stuck(r, "loaf", 31, CAUSE_TRANSFER_STALLED, CONF_CERTAIN, 1);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unsure),
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_other_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
