// SPDX-License-Identifier: Apache-2.0
/* Transports whose peers read for themselves, and the other end: operations that are over when they
 * are seen. */
#include "calls_rig.h"

/* No probe shows an operation; the peer's word ends a room. Only the inflight list has a deadline.
 */
static struct rig *pull_rig(bool viewed)
{
	static struct profile_probe probes[] = {
		{.name = (char *)"notification", .event = {.role = ROLE_TOLD}},
		{.name = (char *)"heartbeat", .event = {.role = ROLE_CONTROL}},
	};
	static struct profile_python py; /* no status table, no threads */
	struct rig *r = rig_new();
	struct model_cfg cfg = {.profile = &r->profile};

	r->profile.room_u64 = false;
	r->profile.probes = probes;
	r->profile.nprobes = r->profile.nuprobes = 2;
	r->profile.nneeds = 0;
	r->profile.python = viewed ? &py : NULL;
	memset(r->profile.stage_ns, 0, sizeof(r->profile.stage_ns));
	r->profile.stage_ns[STAGE_INFLIGHT] = S(30);
	memcpy(cfg.stage_ns, r->profile.stage_ns, sizeof(cfg.stage_ns));
	rig_with(r, &cfg);
	if (viewed)
		ok(r, 0);
	return r;
}

static void waits_for_peer(struct rig *r, double t, const char *room)
{
	held(r, t, .room = room, .rid = room, .op = 0x51, .kind = "inflight", .code = HELD_UNKNOWN);
}

static void test_read_and_told(void **state)
{
	struct rig *r = pull_rig(true);

	(void)state;
	waits_for_peer(r, 1, "cmpl-1-0");
	assert_int_equal(look(r, "cmpl-1-0", 1).l.stage, STAGE_INFLIGHT);
	rounds(r, 1.5, 20);
	told(r, 20.2, "cmpl-1-0", OPS_DONE);
	released(r, 21, "cmpl-1-0", "cmpl-1-0");
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	rounds(r, 21, 100);
	assert_int_equal(stuck_lines(r), 0);
	rig_free(r);
}

/* Gone from the list between two looks, its word not seen. */
static void test_released_unseen(void **state)
{
	struct rig *r = pull_rig(true);

	(void)state;
	waits_for_peer(r, 1, "cmpl-1-0");
	released(r, 3, "cmpl-1-0", "cmpl-1-0");
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	/* a word about a room that nobody knows opens nothing */
	told(r, 4, "cmpl-2-0", OPS_DONE);
	assert_int_equal(open_lives(r), 0);
	rig_free(r);
}

static void test_never_read(void **state)
{
	struct rig *r = pull_rig(true);
	const struct said *s;

	(void)state;
	waits_for_peer(r, 1, "cmpl-1-0");
	rounds(r, 1.5, 60);
	s = expect_stuck(r, "cmpl-1-0", 31, CAUSE_NEVER_SENT, CONF_LIKELY, -1);
	assert_string_equal(s->v.expected, "its peer's word that it has read all");
	decided_by(s, "nothing has told that its peer has read it");
	assert_true(has_evidence(s, "its peer reads for itself"));
	assert_false(has_evidence(s, "only the transport's sockets"));
	told(r, 61, "cmpl-1-0", OPS_DONE);
	assert_int_equal(count_said(r, ALERT_RECOVERED), 1);
	rig_free(r);
}

/* Told, and the server does not let go. */
static void test_told_and_held(void **state)
{
	struct rig *r = pull_rig(true);
	struct model_cfg cfg = {.profile = &r->profile};

	(void)state;
	memcpy(cfg.stage_ns, r->profile.stage_ns, sizeof(cfg.stage_ns));
	cfg.stage_ns[STAGE_RELEASING] = S(10);
	rig_with(r, &cfg);
	ok(r, 0);
	waits_for_peer(r, 1, "cmpl-1-0");
	told(r, 5, "cmpl-1-0", OPS_DONE);
	rounds(r, 5.5, 60);
	assert_int_equal(nth(r, ALERT_STUCK, "cmpl-1-0", 0)->v.cause, CAUSE_DONE_NOT_RELEASED);
	rig_free(r);
}

/* Known by announcements alone: what was not seen to be sent proves nothing. */
static void test_announced(void **state)
{
	struct rig *r = pull_rig(false);
	struct model_cfg cfg = {.profile = &r->profile};

	(void)state;
	memcpy(cfg.stage_ns, r->profile.stage_ns, sizeof(cfg.stage_ns));
	cfg.stage_ns[STAGE_READY] = S(300);
	rig_with(r, &cfg);
	announce(r, 0, "cmpl-1-0", "A", 1);
	to(r, 329);
	assert_int_equal(stuck_lines(r), 0);
	to(r, 331);
	expect_stuck(r, "cmpl-1-0", 330, CAUSE_NEVER_SENT, CONF_POSSIBLE, -1);
	rig_free(r);
}

/* A release event is an end like any other. */
static void test_release_event(void **state)
{
	struct rig *r = pull_rig(false);

	(void)state;
	announce(r, 0, "cmpl-1-0", "A", 1);
	plain(r, 1, ROLE_RELEASE, W1, "cmpl-1-0");
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	rig_free(r);
}

/* ---- the end that receives --------------------------------------------------------------------
 */

/* A notification: a chunk that has come. No handle. */
static void came(struct rig *r, double t, const char *room, const char *kind, int chunk, int last,
		 int rank)
{
	struct sp_event ev = create_event(r, t, W1, 0, room, kind, chunk, last, rank);

	ev.flags = 0;
	ev.status = OPS_DONE;
	feed(r, &ev);
}

static void test_received(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	announce(r, 0, "7001", "P0", 1);
	announce(r, 0, "7002", "P0", 1);
	for (int i = 0; i < 5; i++) {
		came(r, 1 + i, "7001", "kv", i, i == 4, 0);
		came(r, 1 + i, "7002", "kv", i, i == 4, 0);
	}
	assert_int_equal(open_lives(r), 2);
	came(r, 7, "7001", "aux", -1, -1, -1);
	assert_string_equal(r->last_end.room, "7001");
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	came(r, 7, "7002", "aux", -1, -1, -1);
	assert_int_equal(open_lives(r), 0);
	assert_int_equal(r->ended, 2);
	rig_free(r);
}

static void test_rest_never_comes(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;

	(void)state;
	announce(r, 0, "7001", "P0", 1);
	announce(r, 0, "7002", "P0", 1);
	announce(r, 0, "7003", "P0", 1);
	came(r, 1, "7001", "kv", 0, 0, 0);
	came(r, 2, "7001", "kv", 1, 0, 0);
	came(r, 3, "7002", "kv", 0, 1, 0);
	to(r, 400);
	/* what its thread does for the other room counts as movement ahead of it */
	s = expect_stuck(r, "7001", 33, CAUSE_SEND_INCOMPLETE, CONF_LIKELY, 1);
	assert_true(has_evidence(s, "operations: 2 done, 0 not over"));
	expect_stuck(r, "7002", 33, CAUSE_AUX_MISSING, CONF_LIKELY, 1);
	assert_int_equal(nth(r, ALERT_STUCK, "7003", 0)->v.cause, CAUSE_NEVER_SENT);
	rig_free(r);
}

/* From two ranks, each tells for itself. */
static void test_received_from_two(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	announce(r, 0, "7001", "P0", 2);
	announce(r, 0, "7001", "P1", 2);
	came(r, 1, "7001", "kv", 0, 1, 0);
	came(r, 1, "7001", "aux", -1, -1, 0);
	assert_int_equal(open_lives(r), 1);
	came(r, 2, "7001", "kv", 0, 1, 1);
	came(r, 2, "7001", "aux", -1, -1, 1);
	assert_int_equal(open_lives(r), 0);
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read_and_told),     cmocka_unit_test(test_released_unseen),
		cmocka_unit_test(test_never_read),        cmocka_unit_test(test_told_and_held),
		cmocka_unit_test(test_announced),         cmocka_unit_test(test_release_event),
		cmocka_unit_test(test_received),          cmocka_unit_test(test_rest_never_comes),
		cmocka_unit_test(test_received_from_two),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
