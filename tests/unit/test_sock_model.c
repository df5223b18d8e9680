// SPDX-License-Identifier: Apache-2.0
/* Lives as sockets show them: requests that arrive, are answered, are given up. */
#include "sock_rig.h"

/* ---- arrive -------------------------------------------------------------------------------- */

static void test_either_order(void **state)
{
	struct rig *r = rig_new();
	struct look k;

	(void)state;
	arrives(r, 0, "7001", "a");
	announce(r, 1, "7001", "A", 1);
	assert_int_equal(r->taken_life, 1);
	announce(r, 0, "7002", "A", 1);
	arrives(r, 1, "7002", "b");
	assert_int_equal(r->taken_life, 1);
	assert_int_equal(open_lives(r), 2);
	k = look(r, "7001", 1);
	assert_string_equal(k.rid, "a");
	assert_int_equal(k.l.stage, STAGE_READY);
	/* the request's own bootstrap host is no peer */
	arrives(r, 2, "7003", "c");
	k = look(r, "7003", 1);
	assert_string_equal(k.peer, "");
	assert_int_equal(k.l.stage, STAGE_BOOTSTRAP);
	rig_free(r);
}

static void test_absent(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;

	(void)state;
	arrives(r, 0, "7001", "a");
	arrives(r, 0, "7002", "b");
	announce(r, 1, "7002", "A", 2);
	to(r, 400);
	s = expect_stuck(r, "7001", 330, CAUSE_DECODE_ABSENT, CONF_LIKELY, 0);
	assert_true(has_evidence(s, "its client's request arrived at +0.0 s"));
	s = expect_stuck(r, "7002", 331, CAUSE_QUORUM_INCOMPLETE, CONF_LIKELY, 0);
	assert_true(has_evidence(s, "its client's request arrived at +0.0 s"));
	/* the server's timeout answers them */
	replies(r, 401, "7001", "a", 500);
	expect_end(r, "7001", 1, OUTCOME_FAILED);
	replies(r, 401, "7002", "b", 200);
	expect_end(r, "7002", 1, OUTCOME_DONE);
	rig_free(r);
}

static void test_abort_before(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	abort_room(r, 0, "7001");
	arrives(r, 1, "7001", "a");
	to(r, 400);
	expect_stuck(r, "7001", 331, CAUSE_ABORT_BEFORE_OPEN, CONF_LIKELY, 0);
	rig_free(r);
}

/* Twice at once: two lives, whatever their ids; what is posted came after its own request. */
static void test_reuse(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	arrives(r, 0, "7001", "a");
	announce(r, 1, "7001", "A", 1);
	arrives(r, 2, "7001", "b");
	assert_int_equal(r->taken_life, 2);
	announce(r, 3, "7001", "A", 1);
	assert_int_equal(r->taken_life, 2);
	kv_done(r, 4, W1, 0xa0, "7001", 0, 1);
	aux_done(r, 4, W1, 0xa1, "7001");
	replies(r, 5, "7001", "a", 200);
	expect_end(r, "7001", 1, OUTCOME_DONE);
	to(r, 400);
	/* one chunk; but the second one's answer would have been seen. The first one was ahead of
	 * it until its end */
	expect_stuck(r, "7001", 305, CAUSE_ROOM_REUSED, CONF_LIKELY, 1);
	rig_free(r);

	r = rig_new();
	announce(r, 0, "7001", "A", 1);
	kv_done(r, 1, W1, 0xa0, "7001", 0, 0);
	arrives(r, 2, "7001", "b");
	assert_int_equal(r->taken_life, 2);
	rig_free(r);

	/* all is sent, but the first one has not been let go */
	r = rig_new();
	arrives(r, 0, "7001", "a");
	native_room(r, 1, "7001");
	arrives(r, 2, "7001", "b");
	announce(r, 2, "7001", "A", 1);
	replies(r, 3, "7001", "a", 200);
	to(r, 400);
	expect_stuck(r, "7001", 303, CAUSE_ROOM_REUSED, CONF_LIKELY, 1);
	rig_free(r);
}

/* A first attempt that is overdue is given up only where its answer would not be seen. */
static void test_retry_of_overdue(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	arrives(r, 0, "7001", "a");
	client(r, 0, ROLE_ARRIVE, .room = "7002", .rid = "b");
	to(r, 340);
	arrives(r, 341, "7001", "c");
	assert_int_equal(r->taken_life, 2);
	assert_int_equal(open_lives(r), 3);
	arrives(r, 341, "7002", "d");
	expect_end(r, "7002", 1, OUTCOME_FAILED);
	assert_int_equal(open_lives(r), 3);
	rig_free(r);
}

static void test_fake_host(void **state)
{
	struct rig *r = rig_new();
	struct look k;

	(void)state;
	client(r, 0, ROLE_ARRIVE, .room = "7001", .host = "2.2.2.2", .flags = EV_FAKE | EV_TRACKED);
	announce(r, 0, "7002", "A", 2);
	client(r, 1, ROLE_ARRIVE, .room = "7002", .host = "2.2.2.2", .flags = EV_FAKE);
	to(r, 1000);
	assert_int_equal(stuck_lines(r), 0);
	k = look(r, "7001", 1);
	assert_true(k.l.fake);
	expect_doubt(r, "7001", 1, CAUSE_FAKE_ROOM);
	assert_non_null(strstr(k.v.evidence[0].text, "its bootstrap host"));
	expect_doubt(r, "7002", 1, CAUSE_FAKE_ROOM);
	replies(r, 1001, "7001", "", 200);
	expect_end(r, "7001", 1, OUTCOME_DONE);
	rig_free(r);
}

/* ---- reply: the release -------------------------------------------------------------------- */

static void test_tracked(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;

	(void)state;
	arrives(r, 0, "7001", "a");
	announce(r, 1, "7001", "A", 1);
	kv_done(r, 2, W1, 0xa0, "7001", 0, 1);
	aux_done(r, 2, W1, 0xa1, "7001");
	assert_int_equal(look(r, "7001", 1).l.stage, STAGE_RELEASING);
	replies(r, 3, "7001", "a", 200);
	expect_end(r, "7001", 1, OUTCOME_DONE);
	/* this life only: another one of the process is over when all is sent */
	arrives(r, 10, "7002", "b");
	announce(r, 11, "7002", "A", 1);
	kv_done(r, 12, W1, 0xa0, "7002", 0, 1);
	aux_done(r, 12, W1, 0xa1, "7002");
	native_room(r, 13, "7003");
	expect_end(r, "7003", 1, OUTCOME_DONE);
	to(r, 60);
	s = expect_stuck(r, "7002", 22.01, CAUSE_DONE_NOT_RELEASED, CONF_LIKELY, 1);
	assert_true(has_evidence(s, "has not been answered"));
	replies(r, 61, "7002", "b", 200);
	assert_int_equal(nth(r, ALERT_RECOVERED, "7002", 0)->outcome, OUTCOME_DONE);
	assert_int_equal(open_lives(r), 0);
	rig_free(r);
}

static void test_untracked(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	arrives(r, 0, "7001", "a");
	native_room(r, 1, "7001");
	assert_int_equal(look(r, "7001", 1).l.stage, STAGE_RELEASING);
	conn(r, 2, "untracked", "", "7001");
	expect_end(r, "7001", 1, OUTCOME_DONE);
	/* earlier: it ends as ever */
	arrives(r, 10, "7002", "b");
	conn(r, 11, "untracked", "", "7002");
	native_room(r, 12, "7002");
	expect_end(r, "7002", 1, OUTCOME_DONE);
	/* what has been told stays */
	arrives(r, 20, "7003", "c");
	native_room(r, 21, "7003");
	to(r, 40);
	expect_stuck(r, "7003", 31.21, CAUSE_DONE_NOT_RELEASED, CONF_LIKELY, 1);
	conn(r, 41, "untracked", "", "7003");
	expect_doubt(r, "7003", 1, CAUSE_DONE_NOT_RELEASED);
	assert_int_equal(count_said(r, ALERT_RECOVERED), 0);
	conn(r, 42, "untracked", "", "stranger");
	rig_free(r);
}

static void half(struct rig *r, double t, const char *room, enum sp_opstate end)
{
	arrives(r, t, room, "");
	announce(r, t, room, "A", 1);
	kv(r, t + 0.1, W1, 0xa0, room, 0, 0);
	status(r, t + 0.2, W1, 0xa0, end);
}

static void test_outcomes(void **state)
{
	static const struct {
		enum sp_opstate op;
		int64_t code;
		enum sp_outcome outcome;
	} row[] = {
		{OPS_DONE, 200, OUTCOME_DONE},    {OPS_DONE, 500, OUTCOME_FAILED},
		{OPS_DONE, 0, OUTCOME_FAILED},    {OPS_ERROR, 200, OUTCOME_FAILED},
		{OPS_ERROR, 503, OUTCOME_FAILED},
	};
	struct rig *r = rig_new();

	(void)state;
	for (int i = 0; i < 5; i++) {
		half(r, i, "7001", row[i].op);
		replies(r, i + 0.5, "7001", "", row[i].code);
		expect_end(r, "7001", i + 1, row[i].outcome);
	}
	arrives(r, 10, "7002", "");
	native_room(r, 11, "7002");
	replies(r, 12, "7002", "", 500); /* all was sent */
	expect_end(r, "7002", 1, OUTCOME_DONE);
	/* an answer without a request is nobody's, in whatever life the room is */
	announce(r, 13, "7003", "A", 1);
	replies(r, 14, "7003", "", 200);
	assert_int_equal(open_lives(r), 1);
	rig_free(r);
}

static void begins(struct rig *r, double t, const char *room)
{
	client(r, t, ROLE_REPLY, .room = room, .kind = "first", .code = 200);
}

/* The head of the answer is progress and no end. Once all is sent it means that the server has let
 * go: the client is slow. */
static void test_first(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;

	(void)state;
	arrives(r, 0, "7001", "a");
	begins(r, 100, "7001");
	to(r, 420);
	assert_int_equal(stuck_lines(r), 0);
	announce(r, 425, "7001", "A", 1);
	kv_done(r, 426, W1, 0xa0, "7001", 0, 1);
	aux_done(r, 426, W1, 0xa1, "7001");
	to(r, 440);
	expect_stuck(r, "7001", 436.01, CAUSE_DONE_NOT_RELEASED, CONF_LIKELY, 1);
	rig_free(r);

	r = rig_new();
	arrives(r, 0, "7001", "a");
	native_room(r, 1, "7001");
	begins(r, 2, "7001");
	to(r, 100);
	s = expect_stuck(r, "7001", 12, CAUSE_DONE_NOT_RELEASED, CONF_POSSIBLE, -1);
	assert_true(has_evidence(s, "has begun"));
	assert_string_equal(s->v.last, "reply 200 begins");
	replies(r, 101, "7001", "a", 200);
	assert_int_equal(open_lives(r), 0);
	rig_free(r);
}

/* An answer belongs to the request with its id, else to the one that waits for it. */
static void test_whose_answer(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	arrives(r, 0, "7001", "a");
	arrives(r, 1, "7001", "b");
	arrives(r, 2, "7001", "");
	replies(r, 3, "7001", "b", 200);
	expect_end(r, "7001", 2, OUTCOME_DONE);
	replies(r, 4, "7001", "", 200);
	expect_end(r, "7001", 1, OUTCOME_DONE);
	replies(r, 5, "7001", "zzz", 200);
	expect_end(r, "7001", 3, OUTCOME_DONE);
	rig_free(r);
}

/* Requests without an id of their own have a number: the second's answer does not end the first. */
static void test_request_number(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	client(r, 0, ROLE_ARRIVE, .room = "7001", .flags = EV_TRACKED, .request = 11);
	announce(r, 1, "7001", "A", 1);
	client(r, 2, ROLE_ABORT, .room = "7001");
	client(r, 3, ROLE_ARRIVE, .room = "7001", .flags = EV_TRACKED, .request = 12);
	announce(r, 4, "7001", "A", 1);
	client(r, 5, ROLE_REPLY, .room = "7001", .kind = "end", .code = 500, .request = 12);
	expect_end(r, "7001", 2, OUTCOME_FAILED);
	assert_int_equal(open_lives(r), 1);
	client(r, 6, ROLE_ABORT, .room = "7001", .kind = "client-gone", .request = 12);
	client(r, 7, ROLE_REPLY, .room = "7001", .kind = "end", .code = 200, .request = 13);
	assert_int_equal(open_lives(r), 1);
	client(r, 8, ROLE_REPLY, .room = "7001", .kind = "end", .code = 200, .request = 11);
	expect_end(r, "7001", 1, OUTCOME_FAILED); /* it was aborted */
	rig_free(r);
}

/* All is sent, and the server's loop may be in another room's forward pass: that is no pin yet. */
static void test_loop_unseen(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	arrives(r, 0, "7001", "a");
	arrives(r, 0, "7002", "b");
	announce(r, 0, "7001", "A", 1);
	announce(r, 0, "7002", "B", 1);
	kv_done(r, 1, W1, 0xa0, "7001", 0, 1);
	aux_done(r, 1, W1, 0xa1, "7001");
	to(r, 15);
	expect_stuck(r, "7001", 11.01, CAUSE_DONE_NOT_RELEASED, CONF_POSSIBLE, -1);
	/* another client has its answer: the loop goes on, and has left this one behind */
	arrives(r, 16, "7003", "c");
	replies(r, 17, "7003", "c", 400);
	to(r, 40);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 1)->v.confidence, CONF_LIKELY);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 1)->v.pin, 1);
	rig_free(r);
}

/* ---- the client is gone -------------------------------------------------------------------- */

static void test_client_gone(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;

	(void)state;
	/* half-way, and nothing will tell whether the server has aborted it */
	half(r, 0, "7001", OPS_DONE);
	client_goes(r, 1, "7001", "");
	/* nothing of it yet */
	arrives(r, 1, "7002", "b");
	client_goes(r, 1.5, "7002", "b");
	/* all is sent: it is over */
	arrives(r, 2, "7003", "c");
	native_room(r, 3, "7003");
	client_goes(r, 4, "7003", "c");
	expect_end(r, "7003", 1, OUTCOME_DONE);
	/* after its end */
	client_goes(r, 5, "7003", "c");
	arrives(r, 6, "7003", "d");
	to(r, 335);
	s = expect_stuck(r, "7001", 30.2, CAUSE_ABORT_NOT_REAPED, CONF_POSSIBLE, -1);
	assert_true(has_evidence(s, "the client closed at +1.0 s before it was answered"));
	s = expect_stuck(r, "7002", 331, CAUSE_ABORT_NOT_REAPED, CONF_POSSIBLE, -1);
	assert_int_equal(alerts(r), 0);
	to(r, 340);
	expect_stuck(r, "7003", 336, CAUSE_DECODE_ABSENT, CONF_LIKELY, 0);
	rig_free(r);
}

/* Its retry is another request, and not aborted. */
static void test_client_gone_retry(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	arrives(r, 0, "7001", "a");
	announce(r, 1, "7001", "A", 1);
	arrives(r, 2, "7001", "b");
	client_goes(r, 3, "7001", "a");
	announce(r, 4, "7001", "A", 1);
	assert_int_equal(r->taken_life, 2);
	kv_done(r, 5, W1, 0xa0, "7001", 0, 1);
	aux_done(r, 5, W1, 0xa1, "7001");
	assert_int_equal(r->taken_life, 2);
	replies(r, 6, "7001", "b", 200);
	expect_end(r, "7001", 2, OUTCOME_DONE);
	rig_free(r);
}

/* An abort over the wire of a request whose answer would be seen. */
static void test_abort_tracked(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	half(r, 0, "7001", OPS_DONE);
	abort_room(r, 1, "7001");
	to(r, 100);
	expect_stuck(r, "7001", 30.2, CAUSE_ABORT_NOT_REAPED, CONF_LIKELY, 1);
	rig_free(r);
	/* by its id: not the other requests of the room */
	r = rig_new();
	arrives(r, 0, "7001", "a");
	arrives(r, 0, "7001", "b");
	client(r, 1, ROLE_ABORT, .room = "7001", .rid = "b");
	to(r, 400);
	assert_int_equal(look(r, "7001", 1).v.cause, CAUSE_DECODE_ABSENT);
	assert_int_equal(look(r, "7001", 2).v.cause, CAUSE_ABORT_NOT_REAPED);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_either_order),     cmocka_unit_test(test_absent),
		cmocka_unit_test(test_abort_before),     cmocka_unit_test(test_reuse),
		cmocka_unit_test(test_retry_of_overdue), cmocka_unit_test(test_fake_host),
		cmocka_unit_test(test_tracked),          cmocka_unit_test(test_untracked),
		cmocka_unit_test(test_outcomes),         cmocka_unit_test(test_first),
		cmocka_unit_test(test_whose_answer),     cmocka_unit_test(test_loop_unseen),
		cmocka_unit_test(test_client_gone),      cmocka_unit_test(test_client_gone_retry),
		cmocka_unit_test(test_abort_tracked),    cmocka_unit_test(test_request_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
