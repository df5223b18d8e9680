// SPDX-License-Identifier: Apache-2.0
/* Sockets as the only source: what is sent is not seen, and its absence says nothing. */
#include "sock_rig.h"

/* Past its quorum and not answered: which of all causes it is cannot be known. */
static void test_never_answered(void **state)
{
	struct rig *r = only_sockets();
	const struct said *s;

	(void)state;
	arrives(r, 0, "7001", "a");
	hears(r, 1, "7001", "A", 1);
	to(r, 330.9);
	assert_int_equal(stuck_lines(r), 0);
	to(r, 331);
	s = expect_stuck(r, "7001", 331, CAUSE_NEVER_SENT, CONF_POSSIBLE, -1);
	assert_string_equal(s->v.expected, "a reply to the client");
	assert_true(has_evidence(s, "cannot be seen"));
	assert_true(has_evidence(s, "has not been answered"));
	to(r, 5000);
	assert_int_equal(alerts(r), 0);
	assert_int_equal(open_lives(r), 1); /* its answer may still come */
	replies(r, 5001, "7001", "a", 500);
	expect_end(r, "7001", 1, OUTCOME_FAILED);
	/* by its code alone */
	arrives(r, 5002, "7002", "b");
	hears(r, 5003, "7002", "A", 1);
	replies(r, 5004, "7002", "b", 200);
	expect_end(r, "7002", 1, OUTCOME_DONE);
	rig_free(r);
}

static void sight(struct rig *r, double t, const char *kind)
{
	struct sp_event ev = event(r, t, ROLE_TARGET, 0, "");

	strcpy(ev.kind, kind);
	ev.code = TARGET_BLIND;
	feed(r, &ev);
}

/* A transport without symbols: its process alone is blind, until a probe comes in place. */
static void test_blind_process(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	sight(r, 0, "blind");
	assert_int_equal(alerts(r), 0); /* no line of its own */
	arrives(r, 0, "7001", "a");
	hears(r, 1, "7001", "A", 1);
	to(r, 330.9);
	assert_int_equal(stuck_lines(r), 0);
	to(r, 331);
	expect_stuck(r, "7001", 331, CAUSE_NEVER_SENT, CONF_POSSIBLE, -1);
	replies(r, 332, "7001", "a", 200);
	expect_end(r, "7001", 1, OUTCOME_DONE);
	arrives(r, 400, "7002", "b");
	hears(r, 401, "7002", "A", 1);
	sight(r, 402, "sighted");
	to(r, 700.9);
	assert_int_equal(stuck_lines(r), 1);
	to(r, 701);
	expect_stuck(r, "7002", 701, CAUSE_NEVER_SENT, CONF_POSSIBLE, -1);
	rig_free(r);
}

/* What is known is said. */
static void test_known_causes(void **state)
{
	struct rig *r = only_sockets();
	struct sp_event ev;

	(void)state;
	arrives(r, 0, "7001", "a");
	hears(r, 1, "7001", "A", 1);
	client(r, 2, ROLE_ABORT, .room = "7001");
	arrives(r, 2, "7002", "b");
	hears(r, 2, "7002", "B", 1);
	conn(r, 3, "closed", "B", "");
	arrives(r, 4, "7003", "c");
	hears(r, 4, "7003", "C", 1);
	arrives(r, 5, "7003", "d");
	hears(r, 5, "7003", "C", 1);
	replies(r, 6, "7003", "c", 200);
	arrives(r, 7, "7004", "e");
	hears(r, 7, "7004", "C", 1);
	client_goes(r, 8, "7004", "e");
	arrives(r, 9, "7005", "f");
	hears(r, 9, "7005", "C", 1);
	ev = event(r, 10, ROLE_CONTROL, 0, "7005");
	strcpy(ev.kind, "staging_req");
	feed(r, &ev);
	to(r, 400);
	expect_stuck(r, "7001", 331, CAUSE_ABORT_NOT_REAPED, CONF_LIKELY, -1);
	expect_stuck(r, "7002", 332, CAUSE_PEER_GONE, CONF_LIKELY, 1);
	expect_stuck(r, "7003", 336, CAUSE_ROOM_REUSED, CONF_LIKELY, 1);
	expect_stuck(r, "7004", 337, CAUSE_ABORT_NOT_REAPED, CONF_POSSIBLE, -1);
	expect_stuck(r, "7005", 339, CAUSE_CONTROL_LOST, CONF_LIKELY, 1);
	assert_int_equal(alerts(r), 4);
	rig_free(r);
}

/* Its answer will not be seen either: no more than a doubt, and not for ever. */
static void test_untracked(void **state)
{
	struct rig *r = only_sockets();

	(void)state;
	for (int i = 0; i < 100; i++) {
		char room[16];

		snprintf(room, sizeof(room), "%d", 7000 + i);
		if (i % 2)
			client(r, i, ROLE_ARRIVE, .room = room);
		hears(r, i + 0.5, room, i % 3 ? "A" : "B", 1);
	}
	client(r, 100, ROLE_ABORT, .room = "7001");
	client(r, 100, ROLE_CONTROL, .room = "7003", .kind = "staging_req");
	hears(r, 100, "7004", "C", 1); /* twice at once: not likely either */
	conn(r, 100, "closed", "B", "");
	to(r, 320);
	assert_int_equal(open_lives(r), 101);
	to(r, 440);
	expect_stuck(r, "7003", 333.5, CAUSE_CONTROL_LOST, CONF_POSSIBLE, -1);
	assert_int_equal(stuck_lines(r), 101);
	to(r, 1200);
	assert_int_equal(open_lives(r), 0);
	assert_int_equal(r->last_end.outcome, OUTCOME_NONE);
	assert_int_equal(alerts(r), 0);
	rig_free(r);
}

/* A peer that always closes its connection. */
static void test_gone_well(void **state)
{
	struct rig *r = only_sockets();

	(void)state;
	arrives(r, 0, "7001", "");
	hears(r, 0, "7001", "A", 1);
	conn(r, 1, "closed", "A", "");
	replies(r, 2, "7001", "", 200);
	arrives(r, 3, "7002", "");
	hears(r, 3, "7002", "A", 1);
	conn(r, 4, "closed", "A", "");
	to(r, 400);
	expect_stuck(r, "7002", 333, CAUSE_PEER_GONE, CONF_POSSIBLE, -1);
	rig_free(r);
}

/* A room is late only while nothing ahead of it moves. */
static void test_queue_moves(void **state)
{
	struct rig *r = only_sockets();
	char room[16];

	(void)state;
	for (int i = 0; i < 200; i++) {
		snprintf(room, sizeof(room), "%d", 7000 + i);
		arrives(r, 0, room, "");
		hears(r, 0, room, "A", 1);
	}
	for (int i = 0; i < 200; i++) {
		snprintf(room, sizeof(room), "%d", 7000 + i);
		replies(r, 10 * (i + 1), room, "", 200);
	}
	assert_int_equal(stuck_lines(r), 0);
	assert_int_equal(open_lives(r), 0);
	rig_free(r);
}

/* In bootstrap nothing has changed. */
static void test_bootstrap(void **state)
{
	struct rig *r = only_sockets();
	const struct said *s;

	(void)state;
	arrives(r, 0, "7001", "a");
	arrives(r, 0, "7002", "b");
	hears(r, 1, "7002", "A", 2);
	hears(r, 2, "7003", "A", 2);
	to(r, 400);
	expect_stuck(r, "7001", 330, CAUSE_DECODE_ABSENT, CONF_LIKELY, 0);
	expect_stuck(r, "7002", 331, CAUSE_QUORUM_INCOMPLETE, CONF_LIKELY, 0);
	s = expect_stuck(r, "7003", 332, CAUSE_QUORUM_INCOMPLETE, CONF_LIKELY, 0);
	assert_true(has_evidence(s, "no client's request for it was seen to arrive"));
	rig_free(r);
}

/* ---- told ---------------------------------------------------------------------------------- */

static void tell(struct rig *r, double t, const char *room, const char *agent, enum sp_opstate st)
{
	struct sp_event ev = event(r, t, ROLE_TOLD, 0, room);

	ev.status = (uint8_t)st;
	ev.code = st == OPS_DONE ? 4 : 0;
	snprintf(ev.agent, sizeof(ev.agent), "%s", agent);
	feed(r, &ev);
}

/* Status messages to the peers: done when each has it, failed at the first that says so. */
static void test_told(void **state)
{
	struct rig *r = only_sockets();
	const struct said *s;

	(void)state;
	hears(r, 0, "7001", "A", 2);
	hears(r, 0, "7001", "B", 2);
	tell(r, 1, "7001", "A", OPS_BUSY);
	tell(r, 1, "7001", "A", OPS_DONE);
	assert_int_equal(open_lives(r), 1);
	tell(r, 2, "7001", "B", OPS_DONE);
	expect_end(r, "7001", 1, OUTCOME_DONE);
	hears(r, 3, "7002", "A", 2);
	hears(r, 3, "7002", "B", 2);
	tell(r, 4, "7002", "A", OPS_ERROR);
	expect_end(r, "7002", 1, OUTCOME_FAILED);
	/* with an answer to come: that is the end */
	arrives(r, 5, "7003", "c");
	hears(r, 5, "7003", "A", 1);
	tell(r, 6, "7003", "A", OPS_DONE);
	assert_int_equal(look(r, "7003", 1).l.stage, STAGE_RELEASING);
	to(r, 20);
	s = expect_stuck(r, "7003", 16, CAUSE_DONE_NOT_RELEASED, CONF_LIKELY, 1);
	assert_true(has_evidence(s, "every peer was told that it is done"));
	replies(r, 21, "7003", "c", 200);
	expect_end(r, "7003", 1, OUTCOME_DONE);
	arrives(r, 22, "7004", "d");
	hears(r, 22, "7004", "A", 1);
	tell(r, 23, "7004", "A", OPS_ERROR);
	to(r, 400);
	s = expect_stuck(r, "7004", 353, CAUSE_TRANSFER_ERROR, CONF_LIKELY, 1);
	assert_true(has_evidence(s, "a peer was told at +1.0 s that the room has failed"));
	rig_free(r);
}

/* ---- with the server's own view: it has the last word -------------------------------------- */

static struct rig *sockets_and_view(bool no_posts)
{
	struct rig *r = view_rig();
	struct model_cfg cfg = {.profile = &r->profile, .sees_arrive = true, .no_posts = no_posts};

	memcpy(cfg.stage_ns, r->profile.stage_ns, sizeof(cfg.stage_ns));
	rig_with(r, &cfg);
	ok(r, 0);
	return r;
}

static void test_view_wins(void **state)
{
	struct rig *r = sockets_and_view(true);
	const struct said *s;

	(void)state;
	/* answered, and let go a moment later */
	arrives(r, 1, "7001", "r-7001");
	hears(r, 1, "7001", "A", 1);
	listed(r, 2, "7001", "inflight", MOVING);
	replies(r, 3, "7001", "r-7001", 200);
	assert_int_equal(open_lives(r), 1);
	let_go(r, 3.5, "7001");
	expect_end(r, "7001", 1, OUTCOME_DONE);
	/* refused: failed, whatever else is known */
	arrives(r, 4, "7002", "r-7002");
	listed(r, 4, "7002", "bootstrap", BOOTSTRAP);
	replies(r, 5, "7002", "r-7002", 503);
	let_go(r, 5.5, "7002");
	expect_end(r, "7002", 1, OUTCOME_FAILED);
	/* answered, and held for ever */
	arrives(r, 6, "7003", "r-7003");
	hears(r, 6, "7003", "A", 1);
	listed(r, 7, "7003", "inflight", MOVING);
	replies(r, 8, "7003", "r-7003", 200);
	rounds(r, 8.5, 30);
	s = expect_stuck(r, "7003", 18, CAUSE_DONE_NOT_RELEASED, CONF_CERTAIN, 1);
	assert_true(has_evidence(s, "its client was answered at +2.0 s (status 200)"));
	rig_free(r);
}

/* Its client has hung up in mid-transfer: that the write goes on to its end is no success. */
static void test_view_client_gone(void **state)
{
	struct rig *r = sockets_and_view(false);

	(void)state;
	arrives(r, 1, "7001", "r-7001");
	announce(r, 1.1, "7001", "A", 1);
	kv(r, 1.2, W1, 0xb0, "7001", 0, 0);
	listed(r, 1.5, "7001", "inflight", MOVING);
	client_goes(r, 2, "7001", "r-7001");
	let_go(r, 2.5, "7001");
	expect_end(r, "7001", 1, OUTCOME_FAILED);
	/* all was sent by then */
	arrives(r, 3, "7002", "r-7002");
	listed(r, 3, "7002", "inflight", MOVING);
	native_room(r, 3.5, "7002");
	client_goes(r, 4, "7002", "r-7002");
	let_go(r, 4.5, "7002");
	expect_end(r, "7002", 1, OUTCOME_DONE);
	rig_free(r);
}

/* Answered before any snapshot has seen it; then it is seen after all, and goes. */
static void test_view_late(void **state)
{
	struct rig *r = sockets_and_view(true);

	(void)state;
	arrives(r, 1, "7001", "r-7001");
	hears(r, 1, "7001", "A", 1);
	replies(r, 1.2, "7001", "r-7001", 200);
	expect_end(r, "7001", 1, OUTCOME_DONE);
	listed(r, 1.5, "7001", "inflight", DONE);
	assert_int_equal(r->taken_life, 1);
	assert_int_equal(open_lives(r), 1);
	let_go(r, 2, "7001");
	expect_end(r, "7001", 1, OUTCOME_DONE);
	/* released by what the view says: then its answer is nobody's */
	arrives(r, 3, "7002", "r-7002");
	hears(r, 3, "7002", "A", 1);
	listed(r, 4, "7002", "inflight", MOVING);
	let_go(r, 5, "7002");
	expect_end(r, "7002", 1, OUTCOME_DONE);
	hears(r, 5.2, "7002", "B", 2);
	replies(r, 5.4, "7002", "r-7002", 200);
	assert_int_equal(open_lives(r), 1);
	to(r, 200);
	assert_int_equal(stuck_lines(r), 0);
	rig_free(r);
}

/* Two requests of one room, the first answered and still listed: the next answer is the other's. */
static void test_view_two_answers(void **state)
{
	struct rig *r = sockets_and_view(true);

	(void)state;
	arrives(r, 1, "7001", "");
	held(r, 2, .room = "7001", .op = 0x10, .kind = "inflight", .code = MOVING);
	arrives(r, 3, "7001", "");
	assert_int_equal(r->taken_life, 2);
	replies(r, 4, "7001", "", 200);
	assert_int_equal(r->taken_life, 1);
	replies(r, 5, "7001", "", 200);
	expect_end(r, "7001", 2, OUTCOME_DONE);
	replies(r, 6, "7001", "", 200);
	assert_int_equal(r->taken_life, 0);
	rig_free(r);
}

static void test_view_lost_after_answer(void **state)
{
	struct rig *r = sockets_and_view(true);

	(void)state;
	arrives(r, 1, "7001", "r-7001");
	listed(r, 2, "7001", "bootstrap", BOOTSTRAP);
	replies(r, 3, "7001", "r-7001", 500);
	assert_int_equal(open_lives(r), 1);
	view(r, 3.2, "lost", 0.5);
	expect_end(r, "7001", 1, OUTCOME_FAILED);
	rig_free(r);
	/* one that waits for its answer still does */
	r = sockets_and_view(false);
	arrives(r, 1, "7001", "");
	native_room(r, 2, "7001");
	view(r, 3, "lost", 0.5);
	assert_int_equal(look(r, "7001", 1).l.stage, STAGE_RELEASING);
	replies(r, 4, "7001", "", 200);
	expect_end(r, "7001", 1, OUTCOME_DONE);
	rig_free(r);
}

/* Certain by what the view shows, where sockets alone only have a doubt. */
static void test_view_knows(void **state)
{
	struct rig *r = sockets_and_view(true);

	(void)state;
	arrives(r, 1, "7001", "r-7001");
	hears(r, 1, "7001", "A", 1);
	listed(r, 2, "7001", "inflight", READY);
	arrives(r, 3, "7002", "r-7002");
	hears(r, 3, "7002", "A", 1);
	listed(r, 4, "7002", "inflight", FAILED);
	client_goes(r, 5, "7002", "r-7002");
	rounds(r, 5.5, 60);
	expect_stuck(r, "7001", 32, CAUSE_NEVER_SENT, CONF_CERTAIN, 1);
	expect_stuck(r, "7002", 34, CAUSE_ABORT_NOT_REAPED, CONF_CERTAIN, 1);
	rig_free(r);
}

/* The server does not hold it any more: silence, and no pin for want of an answer. */
static void test_view_unheld(void **state)
{
	struct rig *r = sockets_and_view(true);

	(void)state;
	arrives(r, 1, "7001", "r-7001");
	hears(r, 1, "7001", "A", 1);
	listed(r, 2, "7001", "waiting", READY);
	held(r, 3, .room = "7001", .rid = "r-7001", .op = 0x5000 + 7001, .kind = "", .code = NONE);
	rounds(r, 3.5, 400);
	assert_int_equal(stuck_lines(r), 0);
	assert_int_equal(open_lives(r), 0);
	rig_free(r);
}

/* The server gives requests of a batch names of its own. */
static void test_renamed(void **state)
{
	struct rig *r = sockets_and_view(false);
	struct look k;

	(void)state;
	arrives(r, 1, "7001", "batch");
	held(r, 2, .room = "7001", .rid = "batch_0", .op = 0x10, .kind = "bootstrap",
	     .code = BOOTSTRAP);
	assert_int_equal(r->taken_life, 1);
	k = look(r, "7001", 1);
	assert_string_equal(k.rid, "batch_0");
	held(r, 3, .room = "7001", .rid = "batch_0", .op = 0x10, .kind = "waiting", .code = READY);
	assert_int_equal(r->taken_life, 1);
	replies(r, 4, "7001", "batch", 200);
	assert_int_equal(r->taken_life, 1);
	/* two requests with names that the view knows are two */
	arrives(r, 5, "7002", "a");
	arrives(r, 6, "7002", "b");
	held(r, 7, .room = "7002", .rid = "b", .op = 0x20, .kind = "bootstrap", .code = BOOTSTRAP);
	assert_int_equal(r->taken_life, 2);
	held(r, 8, .room = "7002", .rid = "a", .op = 0x30, .kind = "bootstrap", .code = BOOTSTRAP);
	assert_int_equal(r->taken_life, 1);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_never_answered),
		cmocka_unit_test(test_blind_process),
		cmocka_unit_test(test_known_causes),
		cmocka_unit_test(test_untracked),
		cmocka_unit_test(test_gone_well),
		cmocka_unit_test(test_queue_moves),
		cmocka_unit_test(test_bootstrap),
		cmocka_unit_test(test_told),
		cmocka_unit_test(test_view_wins),
		cmocka_unit_test(test_view_client_gone),
		cmocka_unit_test(test_view_late),
		cmocka_unit_test(test_view_two_answers),
		cmocka_unit_test(test_view_lost_after_answer),
		cmocka_unit_test(test_view_knows),
		cmocka_unit_test(test_view_unheld),
		cmocka_unit_test(test_renamed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
