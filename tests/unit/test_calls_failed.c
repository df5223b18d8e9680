// SPDX-License-Identifier: Apache-2.0
/* Calls that failed, and work that was handed over and has not come back. */
#include "calls_rig.h"

static void test_failures(void **state)
{
	struct rig *r = calls_rig();
	const struct said *s;

	(void)state;
	copied(r, -5, W2, "", 4096, 1); /* before the room */
	announce(r, 0, "7001", "A", 1);
	kv(r, 1, W1, 0xa0, "7001", 0, 1);
	copied(r, 2, W1, "7001", 4096, 700);
	to(r, 40);
	s = expect_stuck(r, "7001", 31, CAUSE_TRANSFER_STALLED, CONF_LIKELY, 1);
	assert_true(has_evidence(s, "failed: copy: 700 illegal address (cuMemcpyDtoHAsync_v2"));
	assert_false(has_evidence(s, "in this process failed"));

	copied(r, 41, W2, "", 4096, 719);
	announce(r, 41, "7002", "A", 1);
	kv(r, 42, W2, 0xa1, "7002", 0, 1);
	copied(r, 43, W2, "", 4096, 719);
	to(r, 80);
	s = nth(r, ALERT_STUCK, "7002", 0);
	assert_non_null(s);
	assert_true(has_evidence(s, "in this process failed: copy: 719 illegal address"));
	assert_true(has_evidence(s, "for which room is not known"));
	rig_free(r);
}

static void test_work_handed_over(void **state)
{
	struct rig *r = calls_rig();
	struct sp_event ev;
	const struct said *s;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	kv(r, 1, W1, 0xa0, "7001", 0, 1);
	tally(r, 2, "queue pair 17", 12, 0.5);
	tally(r, 2, "queue pair 18", 3, 1);
	tally(r, 3, "queue pair 18", 0, 0);
	announce(r, 3, "7002", "A", 1);
	ev = call_event(r, 3, W2, -1, "tally", "7002");
	strcpy(ev.object, "queue pair 20");
	ev.code = 5;
	feed(r, &ev);
	ev = call_event(r, 4, W1, POLL, "completion", "");
	strcpy(ev.object, "queue pair 19");
	ev.status = OPS_ERROR;
	ev.code = 12;
	strcpy(ev.note, "retry exceeded");
	feed(r, &ev);
	to(r, 40);
	s = expect_stuck(r, "7001", 31, CAUSE_TRANSFER_STALLED, CONF_LIKELY, 1);
	/* at +31.0 s: none since +0.5 s */
	assert_true(has_evidence(s, "queue pair 17: 12 posted and not completed, none for 30 s") ||
		    has_evidence(s, "queue pair 17: 12 posted and not completed, none for 31 s"));
	assert_true(has_evidence(s, "for which room is not known"));
	assert_false(has_evidence(s, "queue pair 18") || has_evidence(s, "queue pair 20"));
	assert_false(has_evidence(s, "in this process failed"));
	assert_true(has_evidence(s, "queue pair 19: 1 failed, the last at +4.0 s: completion: 12 "
				    "retry exceeded"));
	rig_free(r);
}

static void dropped(struct rig *r, double t, const char *object, int n)
{
	struct sp_event ev = call_event(r, t, W1, SYNC, "dropped", "");

	snprintf(ev.object, sizeof(ev.object), "%s", object);
	ev.code = n;
	feed(r, &ev);
}

/* Queue pairs that are reset with work on them: of before the room says nothing of it. */
static void test_reset_with_work_open(void **state)
{
	struct rig *r = calls_rig();
	const struct said *s;

	(void)state;
	announce(r, 0, "7002", "A", 1);
	tally(r, 1, "queue pair 17", 12, 0.5);
	tally(r, 1, "queue pair 18", 3, 0.5);
	dropped(r, 2, "queue pair 18", 3);
	announce(r, 3, "7001", "A", 1);
	kv(r, 4, W1, 0xa0, "7001", 0, 1);
	dropped(r, 5, "queue pair 17", 12);
	to(r, 40);
	s = expect_stuck(r, "7001", 34, CAUSE_TRANSFER_STALLED, CONF_LIKELY, 1);
	assert_true(has_evidence(s,
				 "queue pair 17: 12 posted were lost with cuStreamSynchronize at "
				 "+2.0 s; for which room is not known"));
	assert_false(has_evidence(s, "queue pair 18") || has_evidence(s, "not completed"));
	rig_free(r);
}

/* A server opens and closes queue pairs for as long as it runs. */
static void test_many_queue_pairs(void **state)
{
	struct rig *r = calls_rig();
	char name[32];

	(void)state;
	announce(r, 0, "7001", "A", 1);
	kv(r, 1, W1, 0xa0, "7001", 0, 1);
	for (int i = 100; i < 3100; i++) {
		struct sp_event ev = call_event(r, 2, W1, POLL, "completion", "");

		snprintf(name, sizeof(name), "queue pair %d", i);
		tally(r, 2, name, 3, 1);
		tally(r, 2, name, 0, 0);
		snprintf(ev.object, sizeof(ev.object), "queue pair %d", i + 1000000);
		ev.status = OPS_ERROR;
		feed(r, &ev);
	}
	tally(r, 3, "queue pair 17", 12, 2.5);
	to(r, 40);
	assert_true(
		has_evidence(expect_stuck(r, "7001", 31, CAUSE_TRANSFER_STALLED, CONF_LIKELY, 1),
			     "queue pair 17: 12 posted and not completed"));
	rig_free(r);
}

/* Several have work open: the room's own comes first, then what has stood for longest. */
static void test_own_queue_pair_first(void **state)
{
	struct rig *r = calls_rig();
	const struct said *s;
	struct sp_event ev;
	char name[32];

	(void)state;
	announce(r, 0, "7001", "A", 1);
	kv(r, 1, W1, 0xa0, "7001", 0, 1);
	for (int i = 1; i <= 5; i++) {
		snprintf(name, sizeof(name), "queue pair %d", i);
		tally(r, 6, name, 3, 6 - i);
	}
	ev = call_event(r, 6, W1, POLL, "completion", "");
	strcpy(ev.object, "queue pair 6");
	ev.status = OPS_ERROR;
	feed(r, &ev);
	ev = call_event(r, 7, 0, -1, "tally", "7001");
	strcpy(ev.object, "queue pair 17");
	ev.code = 12;
	ev.op = S(r->base + 6.5);
	feed(r, &ev);
	to(r, 40);
	s = expect_stuck(r, "7001", 31, CAUSE_TRANSFER_STALLED, CONF_LIKELY, 1);
	assert_true(has_evidence(s, "queue pair 17: 12 posted and not completed"));
	assert_true(has_evidence(s, "queue pair 5: 3 posted and not completed"));
	assert_false(has_evidence(s, "queue pair 4:") || has_evidence(s, "queue pair 6:"));
	assert_true(has_evidence(s, "5 more have work"));
	rig_free(r);
}

/* The number of calls of a process that has gone, told late: it is not there again for that. */
static void test_counted_of_the_gone(void **state)
{
	struct rig *r = calls_view_rig();
	const struct said *s;

	(void)state;
	for (r->pid = 1000; r->pid < 1100; r->pid++) {
		struct sp_event ev = call_event(r, 1, 0, COPY, "count", "");

		target(r, 0.5, "exited", 0);
		ev.count = 5;
		feed(r, &ev);
		left(r, 1, W1, SYNC);
	}
	/* the ranks that are there are found all the same */
	r->pid = PID;
	ok(r, 2);
	held(r, 3, .room = "7001", .rid = "x", .op = 0x10, .kind = "inflight", .code = READY);
	r->pid = 200;
	ok(r, 2);
	held(r, 3, .room = "7001", .rid = "x", .op = 0x10, .kind = "inflight", .code = DONE);
	let_go_of(r, 5, "7001", "x", 0x10);
	r->pid = PID;
	rounds(r, 5.5, 34);
	s = expect_stuck(r, "7001", 33, CAUSE_RANK_DIVERGED, CONF_CERTAIN, 1);
	assert_int_equal(s->v.culprit.pid, 200);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_work_handed_over),
		cmocka_unit_test(test_reset_with_work_open),
		cmocka_unit_test(test_many_queue_pairs),
		cmocka_unit_test(test_own_queue_pair_first),
		cmocka_unit_test(test_counted_of_the_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
