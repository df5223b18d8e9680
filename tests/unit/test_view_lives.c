// SPDX-License-Identifier: Apache-2.0
/*
 * Lives under the server's own view: whose request it is, what moves a life, when it is over, what
 * is taken back; and that the view makes no false alarm.
 */
#include "view_rig.h"

static void native_room(struct rig *r, double t, const char *room)
{
	announce(r, t, room, "A", 1);
	kv_done(r, t + 0.1, W1, 0xa0, room, 0, 1);
	aux_done(r, t + 0.2, W1, 0xa1, room);
}

/* Quicker than the snapshots: never listed, done by what was posted, over after two rounds. */
static void test_too_quick(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	native_room(r, 0.1, "7001");
	assert_int_equal(look(r, "7001", 1).l.stage, STAGE_RELEASING);
	ok(r, 0.5); /* begun before its end */
	ok(r, 1);
	assert_int_equal(open_lives(r), 1);
	ok(r, 1.5);
	assert_int_equal(open_lives(r), 0);
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	to(r, 1000);
	assert_int_equal(stuck_lines(r), 0);
	assert_int_equal(count_said(r, ALERT_RECOVERED), 0);
	rig_free(r);
}

/* A whole life, as both sources show it. */
static void test_whole(void **state)
{
	struct rig *r = view_rig();
	struct look k;

	(void)state;
	ok(r, 0);
	announce(r, 0.2, "7001", "A", 1);
	listed(r, 1, "7001", "bootstrap", BOOTSTRAP);
	k = look(r, "7001", 1);
	assert_int_equal(k.l.stage, STAGE_READY); /* the quorum is not taken back */
	assert_string_equal(k.rid, "r-7001");
	listed(r, 2, "7001", "waiting", READY);
	held(r, 3, .room = "7001", .rid = "r-7001", .op = 0x5000 + 7001, .kind = "", .code = READY);
	assert_int_equal(look(r, "7001", 1).l.stage, STAGE_READY);
	kv_done(r, 60, W1, 0xa0, "7001", 0, 1);
	aux_done(r, 60, W1, 0xa1, "7001");
	listed(r, 60.5, "7001", "inflight", DONE);
	rounds(r, 60.5, 62);
	assert_int_equal(open_lives(r), 1);
	let_go(r, 62.5, "7001");
	assert_int_equal(open_lives(r), 0);
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	assert_int_equal(stuck_lines(r), 0);
	rig_free(r);
}

/* Two requests with one room: told apart by rid, then by address. */
static void test_two_requests(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	held(r, 1, .room = "7001", .rid = "a", .op = 0x10, .kind = "bootstrap", .code = BOOTSTRAP);
	held(r, 1, .room = "7001", .rid = "b", .op = 0x20, .kind = "bootstrap", .code = BOOTSTRAP);
	assert_int_equal(open_lives(r), 2);
	held(r, 2, .room = "7001", .rid = "b", .op = 0x20, .kind = "waiting", .code = READY);
	assert_int_equal(r->taken_life, 2);
	held(r, 2, .room = "7001", .rid = "a", .op = 0x10, .kind = "inflight", .code = READY);
	assert_int_equal(r->taken_life, 1);
	assert_int_equal(look(r, "7001", 2).l.stage, STAGE_READY);
	assert_int_equal(look(r, "7001", 1).l.stage, STAGE_INFLIGHT);
	/* another object, the same request */
	held(r, 3, .room = "7001", .rid = "a", .op = 0x30, .kind = "inflight", .code = MOVING);
	assert_int_equal(r->taken_life, 1);
	/* without ids the address tells */
	held(r, 4, .room = "7002", .op = 0x10, .kind = "bootstrap", .code = BOOTSTRAP);
	held(r, 4, .room = "7002", .op = 0x20, .kind = "bootstrap", .code = BOOTSTRAP);
	held(r, 5, .room = "7002", .op = 0x10, .kind = "waiting", .code = BOOTSTRAP);
	assert_int_equal(r->taken_life, 1);
	assert_int_equal(open_lives(r), 4);
	rig_free(r);
}

/* A client that posts the same again after an abort: another object, or one at the same address, is
 * in the first queue anew. What was announced to the first one was not announced to it. */
static void test_retry_with_the_same_id(void **state)
{
	for (uint64_t op = 0x10; op <= 0x20; op += 0x10) {
		struct rig *r = view_rig();

		(void)state;
		ok(r, 0);
		announce(r, 0.5, "7001", "A", 1);
		held(r, 1, .room = "7001", .rid = "a", .op = 0x10, .kind = "waiting", .code = READY,
		     .announced = 2, .need = 2);
		held(r, 2, .room = "7001", .rid = "a", .op = op, .kind = "bootstrap",
		     .code = BOOTSTRAP, .announced = 1);
		assert_int_equal(r->taken_life, 2);
		assert_int_equal(open_lives(r), op == 0x10 ? 1 : 2);
		if (op != 0x10) /* in no queue, but the room has an entry */
			held(r, 2, .room = "7001", .rid = "a", .op = 0x10, .kind = "",
			     .code = BOOTSTRAP);
		rounds(r, 2, 331);
		assert_int_equal(open_lives(r), 1);
		rounds(r, 331.5, 333);
		assert_int_equal(
			expect_stuck(r, "7001", 332, CAUSE_DECODE_ABSENT, CONF_CERTAIN, 0)->life,
			2);
		assert_int_equal(stuck_lines(r), 1);
		/* the second one was announced to first: so it is that life, and the first is over
		 */
		announce(r, 333, "7002", "A", 1);
		held(r, 333, .room = "7002", .rid = "a", .op = 0x10, .kind = "inflight",
		     .code = READY, .announced = 2, .need = 2);
		announce(r, 333.1, "7002", "A", 1);
		held(r, 334, .room = "7002", .rid = "a", .op = op, .kind = "bootstrap",
		     .code = READY, .announced = 2);
		assert_int_equal(r->taken_life, 2);
		assert_int_equal(open_lives(r), op == 0x10 ? 2 : 3);
		/* and once more when that has ended */
		let_go_of(r, 340, "7001", "a", op);
		assert_int_equal(open_lives(r), op == 0x10 ? 1 : 2);
		held(r, 341, .room = "7001", .rid = "a", .op = 0x30, .kind = "bootstrap",
		     .code = BOOTSTRAP);
		assert_int_equal(r->taken_life, 3);
		rig_free(r);
	}
}

/* A request that native events know already: no entry is the older's, an aborted one's the
 * younger's.
 */
static void test_which_native_life(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	announce(r, 1, "7001", "A", 1);
	abort_room(r, 2, "7001");
	announce(r, 3, "7001", "A", 1);
	held(r, 4, .room = "7001", .rid = "retry", .op = 0x20, .kind = "bootstrap", .code = READY);
	assert_int_equal(r->taken_life, 2);
	held(r, 4, .room = "7001", .rid = "first", .op = 0x10, .kind = "inflight", .code = NONE);
	assert_int_equal(r->taken_life, 1);
	assert_int_equal(open_lives(r), 2);
	announce(r, 5, "7002", "A", 1);
	announce(r, 5, "7002", "A", 1);
	held(r, 6, .room = "7002", .rid = "x", .op = 0x30, .kind = "inflight", .code = NONE);
	assert_int_equal(r->taken_life, 1);
	rig_free(r);
}

/* Complete, and unseen: a request without an entry is another one, of which nothing was known. */
static void test_second_request_unannounced(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	native_room(r, 1, "7001");
	held(r, 1.5, .room = "7001", .rid = "b", .op = 0x20, .kind = "inflight", .code = NONE);
	assert_int_equal(r->taken_life, 2);
	rounds(r, 1.5, 3);
	assert_int_equal(r->last_end.life, 1);
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	rounds(r, 3.5, 33);
	assert_int_equal(expect_stuck(r, "7001", 31.5, CAUSE_STATUS_LOST, CONF_CERTAIN, 1)->life,
			 2);
	/* announced for each: the second is the younger */
	announce(r, 40, "7002", "A", 1);
	announce(r, 40, "7002", "A", 1);
	kv_done(r, 40.1, W1, 0xa0, "7002", 0, 1);
	aux_done(r, 40.1, W1, 0xa1, "7002");
	held(r, 41, .room = "7002", .rid = "b", .op = 0x20, .kind = "inflight", .code = NONE);
	assert_int_equal(r->taken_life, 2);
	rig_free(r);
}

/* Failed and gone before it was seen; its room is used again: the entry there is the next one's. */
static void test_failed_and_used_again(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	announce(r, 1, "7001", "A", 1);
	kv(r, 1.1, W1, 0xa0, "7001", 0, 1);
	status(r, 1.2, W1, 0xa0, OPS_ERROR);
	announce(r, 1.4, "7001", "B", 1);
	kv_done(r, 1.5, W2, 0xb0, "7001", 0, 1);
	aux_done(r, 1.5, W2, 0xb1, "7001");
	held(r, 2, .room = "7001", .rid = "b", .op = 0x20, .kind = "inflight", .code = DONE);
	assert_int_equal(r->taken_life, 2);
	rounds(r, 2, 40);
	assert_int_equal(
		expect_stuck(r, "7001", 11.51, CAUSE_DONE_NOT_RELEASED, CONF_CERTAIN, 1)->life, 2);
	assert_int_equal(stuck_lines(r), 1);
	assert_int_equal(r->last_end.life, 1);
	assert_int_equal(r->last_end.outcome, OUTCOME_FAILED);
	rig_free(r);
}

static void test_opens(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	listed(r, 1, "7001", "bootstrap", BOOTSTRAP);
	assert_false(look(r, "7001", 1).l.observed_late);
	held(r, 1, .room = "7002", .rid = "x", .kind = "bootstrap", .code = BOOTSTRAP,
	     .flags = EV_CUT);
	assert_true(look(r, "7002", 1).l.observed_late);
	listed(r, 1, "7003", "inflight", MOVING);
	assert_true(look(r, "7003", 1).l.observed_late);
	assert_int_equal(look(r, "7003", 1).l.stage, STAGE_INFLIGHT);
	entry(r, 1, "7004", MOVING);
	held(r, 1, .room = "7005", .rid = "y", .op = 0x10, .kind = "", .code = READY);
	assert_int_equal(open_lives(r), 3);
	/* announced before the watch */
	held(r, 1, .room = "7006", .rid = "z", .kind = "bootstrap", .code = BOOTSTRAP,
	     .announced = 2 + 1, .need = 2 + 1);
	assert_int_equal(look(r, "7006", 1).l.stage, STAGE_READY);
	assert_int_equal(model_open_lives(r->m, PID), 4);
	assert_int_equal(model_open_lives(r->m, 999), 0);
	rig_free(r);
}

/* What moves a life: its queue, its status, peers, chunks. A thread is no progress. */
static void test_progress(void **state)
{
	struct rig *r = view_rig();
	struct seen_as s = {
		.room = "7001", .rid = "x", .op = 0x10, .kind = "inflight", .code = READY};

	(void)state;
	ok(r, 0);
	held_at(r, 1, s);
	assert_int_equal(look(r, "7001", 1).l.progress_ns, S(1001));
	s.tid = W1;
	held_at(r, 2, s);
	s.flags = EV_AT;
	held_at(r, 3, s);
	assert_int_equal(look(r, "7001", 1).l.progress_ns, S(1001));
	s.code = MOVING;
	held_at(r, 4, s);
	assert_int_equal(look(r, "7001", 1).l.progress_ns, S(1004));
	s.sent = 3 + 1;
	s.total = 9 + 1;
	held_at(r, 5, s); /* first sight of a number */
	assert_int_equal(look(r, "7001", 1).l.progress_ns, S(1004));
	s.sent = 5 + 1;
	held_at(r, 6, s);
	assert_int_equal(look(r, "7001", 1).l.progress_ns, S(1006));
	/* said again after the view was lost: nothing new */
	view(r, 7, "lost", 0);
	s.flags |= EV_CUT;
	held_at(r, 9, s);
	assert_int_equal(look(r, "7001", 1).l.progress_ns, S(1006));
	/* what native events had told before is no progress either */
	announce(r, 20, "7002", "A", 1);
	kv(r, 20.1, W1, 0xa0, "7002", 0, 0);
	listed(r, 21, "7002", "inflight", MOVING);
	assert_int_equal(look(r, "7002", 1).l.progress_ns, S(1020.1));
	rig_free(r);
}

/* ---- over ----------------------------------------------------------------------------------- */

static void test_outcomes(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	/* attached late, no native knowledge, was being sent */
	held(r, 1, .room = "7001", .rid = "r-7001", .op = 0x5000 + 7001, .kind = "inflight",
	     .code = MOVING, .flags = EV_CUT);
	let_go(r, 2, "7001");
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	/* aborted */
	announce(r, 3, "7002", "A", 1);
	listed(r, 4, "7002", "bootstrap", BOOTSTRAP);
	abort_room(r, 5, "7002");
	let_go(r, 6, "7002");
	assert_int_equal(r->last_end.outcome, OUTCOME_FAILED);
	/* timed out in bootstrap */
	listed(r, 7, "7003", "bootstrap", BOOTSTRAP);
	let_go(r, 307, "7003");
	assert_int_equal(r->last_end.outcome, OUTCOME_FAILED);
	/* the status said so */
	listed(r, 308, "7004", "inflight", FAILED);
	let_go(r, 309, "7004");
	assert_int_equal(r->last_end.outcome, OUTCOME_FAILED);
	listed(r, 310, "7005", "inflight", DONE);
	let_go(r, 311, "7005");
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	/* an abort that came too late changes nothing */
	announce(r, 312, "7006", "A", 1);
	kv_done(r, 312.1, W1, 0xa0, "7006", 0, 1);
	aux_done(r, 312.2, W1, 0xa1, "7006");
	abort_room(r, 312.3, "7006");
	rounds(r, 312.5, 315);
	assert_string_equal(r->last_end.room, "7006");
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	assert_int_equal(open_lives(r), 0);
	/* of somebody unknown */
	let_go(r, 316, "7777");
	assert_int_equal(r->taken_life, 0);
	rig_free(r);
}

/* A pin that is let go and seen again: the same life, with all that was known of it. */
static void test_reopened(void **state)
{
	struct rig *r = view_rig();
	const struct said *s;
	struct look k;

	(void)state;
	ok(r, 0);
	announce(r, 1, "7001", "A", 1);
	kv(r, 2, W1, 0xa0, "7001", 0, 0);
	listed(r, 3, "7001", "inflight", MOVING);
	let_go(r, 4, "7001");
	assert_int_equal(open_lives(r), 0);
	assert_int_equal(r->last_end.outcome, OUTCOME_FAILED);
	listed(r, 5, "7001", "inflight", MOVING);
	k = look(r, "7001", 1);
	assert_true(k.found);
	assert_int_equal(k.l.opened_ns, S(1001));
	assert_int_equal(k.l.stage, STAGE_INFLIGHT);
	assert_false(k.l.uncertain);
	assert_string_equal(k.peer, "10.0.0.7:40065");
	assert_non_null(*k.l.user);
	/* its operation is its own again */
	status(r, 5.5, W1, 0xa0, OPS_DONE);
	assert_int_equal(r->taken_life, 1);
	rounds(r, 6, 40);
	s = expect_stuck(r, "7001", 35.5, CAUSE_SEND_INCOMPLETE, CONF_CERTAIN, 1);
	assert_int_equal(s->life, 1);
	/* while it is released there is no alert */
	let_go(r, 41, "7001");
	assert_int_equal(nth(r, ALERT_RECOVERED, "7001", 0)->outcome, OUTCOME_FAILED);
	to(r, 600);
	assert_int_equal(stuck_lines(r), 1);
	/* too late to be the same */
	listed(r, 700, "7001", "bootstrap", BOOTSTRAP);
	assert_int_equal(r->taken_life, 2);
	rig_free(r);
}

/* What ended meanwhile was not counted: then it is doubted. */
static void test_reopened_with_a_hole(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	announce(r, 1, "7001", "A", 1);
	kv(r, 2, W1, 0xa0, "7001", 0, 1);
	listed(r, 3, "7001", "inflight", MOVING);
	let_go(r, 4, "7001");
	status(r, 4.5, W1, 0xa0, OPS_DONE);
	assert_int_equal(r->taken_life, 0);
	listed(r, 5, "7001", "inflight", MOVING);
	assert_true(look(r, "7001", 1).l.uncertain);
	/* the end of the process ends what is kept aside too */
	let_go(r, 6, "7001");
	target(r, 7, "exited", 0);
	listed(r, 8, "7001", "bootstrap", BOOTSTRAP);
	assert_int_equal(r->taken_life, 2);
	rig_free(r);
}

/* Held back by nothing: ended in silence at its deadline, once the view has shown that it can. */
static void test_unheld(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	/* a view that has shown nothing yet proves nothing */
	announce(r, 1, "7001", "A", 1);
	kv(r, 2, W1, 0xa0, "7001", 0, 0);
	rounds(r, 2.5, 40);
	expect_stuck(r, "7001", 32, CAUSE_TRANSFER_STALLED, CONF_LIKELY, 1);
	/* now it has */
	announce(r, 41, "7002", "A", 1);
	listed(r, 42, "7002", "bootstrap", READY);
	announce(r, 43, "7003", "A", 1);
	kv(r, 44, W2, 0xb0, "7003", 0, 0);
	rounds(r, 44.5, 73.5);
	assert_true(look(r, "7003", 1).found);
	rounds(r, 74, 76);
	assert_false(look(r, "7003", 1).found);
	assert_string_equal(r->last_end.room, "7003");
	assert_int_equal(r->last_end.outcome, OUTCOME_FAILED);
	assert_null(nth(r, ALERT_STUCK, "7003", 0));
	rig_free(r);
}

/* An alert from before the view began: withdrawn when the server turns out not to hold the room. */
static void test_view_begins_later(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	announce(r, 0, "7001", "A", 1);
	kv(r, 1, W1, 0xa0, "7001", 0, 0);
	announce(r, 0, "7002", "A", 1);
	kv(r, 1, W2, 0xb0, "7002", 0, 0);
	to(r, 35);
	assert_int_equal(stuck_lines(r), 2);
	held(r, 40, .room = "7002", .rid = "x", .op = 0x10, .kind = "inflight", .code = MOVING,
	     .tid = W2, .flags = EV_CUT | EV_AT);
	rounds(r, 40, 42);
	assert_int_equal(nth(r, ALERT_RECOVERED, "7001", 0)->outcome, OUTCOME_FAILED);
	assert_null(nth(r, ALERT_RECOVERED, "7002", 0));
	/* and the other is certain now */
	assert_int_equal(look(r, "7002", 1).v.confidence, CONF_CERTAIN);
	assert_int_equal(nth(r, ALERT_STUCK, "7002", 1)->v.confidence, CONF_CERTAIN);
	rig_free(r);
}

/* ---- asking --------------------------------------------------------------------------------- */

static void test_asks(void **state)
{
	struct rig *r = view_rig();
	uint64_t taken;

	(void)state;
	ok(r, 0);
	listed(r, 1, "7001", "inflight", NONE);
	taken = r->taken;
	rounds(r, 1.5, 30.5);
	assert_int_equal(r->taken, taken); /* rounds without effect are not handed on */
	to(r, 31);
	assert_int_equal(model_asks(r->m), 1);
	assert_int_equal(stuck_lines(r), 0);
	/* of the two looks that agree, one was before the deadline: it may have gone since */
	view(r, 31.05, "ok", 0.06);
	assert_int_equal(r->taken, taken);
	assert_int_equal(model_asks(r->m), 1);
	view(r, 31.1, "ok", 0.05);
	assert_int_equal(r->taken, taken + 1);
	assert_int_equal(model_asks(r->m), 0);
	expect_stuck(r, "7001", 31, CAUSE_STATUS_LOST, CONF_CERTAIN, 1);
	rig_free(r);
	/* let go just before the deadline: the first look after it confirms what was before */
	r = view_rig();
	ok(r, 0);
	listed(r, 1, "7001", "inflight", NONE);
	view(r, 31.05, "ok", 0.1);
	let_go(r, 31.1, "7001");
	rounds(r, 31.1, 60);
	assert_int_equal(stuck_lines(r), 0);
	rig_free(r);
	/* it moved after all */
	r = view_rig();
	ok(r, 0);
	listed(r, 1, "7001", "inflight", READY);
	to(r, 31.2);
	listed(r, 31.3, "7001", "inflight", MOVING);
	assert_int_equal(model_asks(r->m), 0);
	rounds(r, 31.3, 60);
	assert_int_equal(stuck_lines(r), 0);
	rig_free(r);
}

/* What is told already is not told anew by what an older look has seen, either. */
static void test_asks_again(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	works_at(r, 1, W1, "7000");
	for (uint64_t op = 0x10; op <= 0x20; op += 0x10)
		held(r, 1, .room = "7001", .rid = op == 0x10 ? "a" : "b", .op = op,
		     .kind = "inflight", .code = READY, .tid = W1);
	rounds(r, 1, 32);
	assert_int_equal(stuck_lines(r), 2);
	works_at(r, 45, W1, "7001");
	rounds(r, 45, 60.5);
	to(r, 61);
	assert_int_equal(model_asks(r->m), 2);
	view(r, 61.05, "ok", 0.06);
	let_go_of(r, 61.1, "7001", "b", 0x20);
	view(r, 61.1, "ok", 0.05);
	assert_int_equal(stuck_lines(r), 3);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 2)->life, 1);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 2)->v.cause, CAUSE_ROOM_REUSED);
	rig_free(r);
}

/* The server is stopped, all of it: that is no fault of a room. When it goes on, so do the
 * deadlines. */
static void test_halted(void **state)
{
	struct rig *r = view_rig();
	struct sp_event ev;

	(void)state;
	ok(r, 0);
	listed(r, 1, "7001", "inflight", NONE);
	listed(r, 30, "7002", "inflight", NONE);
	rounds(r, 30, 31.5);
	expect_stuck(r, "7001", 31, CAUSE_STATUS_LOST, CONF_CERTAIN, 1);
	ev = event(r, 40, ROLE_TARGET, 0, "");
	strcpy(ev.kind, "stopped");
	assert_int_equal(model_event(r->m, &ev), 0);
	listed(r, 50, "7003", "inflight", NONE); /* the view is slower than the signal */
	rounds(r, 50, 500);
	assert_int_equal(stuck_lines(r), 1);
	ev = event(r, 500, ROLE_TARGET, 0, "");
	strcpy(ev.kind, "continued");
	assert_int_equal(model_event(r->m, &ev), 0);
	rounds(r, 500, 529.5);
	assert_int_equal(stuck_lines(r), 1);
	rounds(r, 530, 531);
	expect_stuck(r, "7002", 530, CAUSE_STATUS_LOST, CONF_CERTAIN, 1);
	expect_stuck(r, "7003", 530, CAUSE_STATUS_LOST, CONF_CERTAIN, 1);
	rig_free(r);
}

/* No answer, or none that says anything: judged without certainty, and again when there is one. */
static void test_no_answer(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	listed(r, 1, "7001", "inflight", NONE);
	rounds(r, 1.5, 30.5);
	to(r, 40);
	assert_int_equal(stuck_lines(r), 0);
	to(r, 50);
	expect_stuck(r, "7001", 31, CAUSE_STATUS_LOST, CONF_LIKELY, 1);
	assert_int_equal(model_asks(r->m), 0);
	ok(r, 51);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 1)->v.confidence, CONF_CERTAIN);
	rig_free(r);
	/* the watch itself was stopped: nobody could look, and what it missed is told late */
	for (int held = 0; held <= 1; held++) {
		struct sp_event ev;

		r = view_rig();
		ok(r, 0);
		listed(r, 1, "7001", "inflight", NONE);
		ev = event(r, 30, ROLE_STALL, 0, "");
		ev.code = S(30);
		assert_int_equal(model_event(r->m, &ev), 0);
		to(r, 60);
		assert_int_equal(stuck_lines(r), 0);
		view(r, 60.1, "ok", 30.2); /* with one before the stop */
		if (!held)
			let_go(r, 60.6, "7001");
		view(r, 60.6, "ok", 0.5);
		if (held)
			expect_stuck(r, "7001", 31, CAUSE_STATUS_LOST, CONF_CERTAIN, 1);
		to(r, 80);
		assert_int_equal(stuck_lines(r), held);
		rig_free(r);
	}
	/* unstable */
	r = view_rig();
	ok(r, 0);
	listed(r, 1, "7001", "inflight", NONE);
	to(r, 31);
	view(r, 31.2, "unstable", 0);
	expect_stuck(r, "7001", 31, CAUSE_STATUS_LOST, CONF_LIKELY, 1);
	assert_true(has_evidence(nth(r, ALERT_STUCK, "7001", 0), "could not be read"));
	rig_free(r);
	/* lost: what it said is no longer believed */
	r = view_rig();
	ok(r, 0);
	listed(r, 1, "7001", "inflight", NONE);
	to(r, 31);
	view(r, 31.2, "lost", 0);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 0)->v.confidence, CONF_POSSIBLE);
	rig_free(r);
}

/* What it had told with certainty stays so: no weaker claim takes its place. */
static void test_lost_after_the_alert(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	announce(r, 0.5, "7001", "A", 1);
	kv_done(r, 0.6, W1, 0xa0, "7001", 0, 0);
	listed(r, 1, "7001", "inflight", NONE);
	rounds(r, 1.5, 40);
	expect_stuck(r, "7001", 30.61, CAUSE_STATUS_LOST, CONF_CERTAIN, 1);
	view(r, 41, "lost", 0);
	to(r, 500);
	assert_int_equal(stuck_lines(r), 1);
	assert_int_equal(look(r, "7001", 1).v.cause, CAUSE_STATUS_LOST);
	assert_int_equal(look(r, "7001", 1).v.confidence, CONF_CERTAIN);
	/* it is back and does not show the room: let go meanwhile */
	rounds(r, 501, 503);
	assert_false(look(r, "7001", 1).found);
	assert_int_equal(nth(r, ALERT_RECOVERED, "7001", 0)->stalled_ns > S(400), 1);
	rig_free(r);
}

/* Lost in the middle: a terminal life does not wait for a release that nobody will see. */
static void test_lost(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	announce(r, 0.1, "7001", "A", 1);
	listed(r, 0.5, "7001", "bootstrap", BOOTSTRAP);
	kv_done(r, 1, W1, 0xa0, "7001", 0, 1);
	aux_done(r, 1, W1, 0xa1, "7001");
	assert_int_equal(look(r, "7001", 1).l.stage, STAGE_RELEASING);
	view(r, 2, "lost", 0);
	assert_int_equal(open_lives(r), 0);
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	/* as without a view from now on */
	native_room(r, 3, "7002");
	assert_int_equal(open_lives(r), 0);
	/* the view is back: it was a pin after all */
	listed(r, 5, "7001", "inflight", MOVING);
	ok(r, 5);
	assert_true(look(r, "7001", 1).found);
	rounds(r, 5.5, 20);
	expect_stuck(r, "7001", 15, CAUSE_DONE_NOT_RELEASED, CONF_CERTAIN, 1);
	rig_free(r);
}

/* ---- no false alarm ------------------------------------------------------------------------- */

/* In its forward pass it is in no list, for as long as that takes. */
static void test_forward_pass(void **state)
{
	struct rig *r = view_rig();
	const struct said *s;

	(void)state;
	ok(r, 0);
	announce(r, 0.1, "7001", "A", 1);
	listed(r, 1, "7001", "waiting", READY);
	held(r, 2, .room = "7001", .rid = "r-7001", .op = 0x5000 + 7001, .kind = "", .code = READY);
	/* a chunk is sent in between: the rest is still being computed */
	kv_done(r, 3, W1, 0xa0, "7001", 0, 0);
	rounds(r, 3.5, 100);
	s = expect_stuck(r, "7001", 33.01, CAUSE_SEND_INCOMPLETE, CONF_POSSIBLE, -1);
	assert_true(has_evidence(s, "forward pass"));
	assert_int_equal(model_stuck(r->m, CONF_LIKELY), 0);
	rig_free(r);
}

/* Done, but the server's one loop is in another room's forward pass for 20 s. */
static void test_loop_is_busy(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	announce(r, 0.1, "7001", "A", 1);
	listed(r, 1, "7001", "inflight", MOVING);
	listed(r, 1, "7002", "waiting", READY);
	held(r, 2, .room = "7002", .rid = "r-7002", .op = 0x5000 + 7002, .kind = "", .code = READY);
	kv_done(r, 3, W1, 0xa0, "7001", 0, 1);
	aux_done(r, 3, W1, 0xa1, "7001");
	rounds(r, 3.5, 20);
	expect_stuck(r, "7001", 13.01, CAUSE_DONE_NOT_RELEASED, CONF_POSSIBLE, -1);
	let_go(r, 23, "7001");
	assert_int_equal(nth(r, ALERT_RECOVERED, "7001", 0)->outcome, OUTCOME_DONE);
	rig_free(r);
	/* the loop went on and left it where it is */
	r = view_rig();
	ok(r, 0);
	announce(r, 0.1, "7001", "A", 1);
	listed(r, 1, "7001", "inflight", MOVING);
	listed(r, 1, "7002", "waiting", READY);
	held(r, 2, .room = "7002", .rid = "r-7002", .op = 0x5000 + 7002, .kind = "", .code = READY);
	kv_done(r, 3, W1, 0xa0, "7001", 0, 1);
	aux_done(r, 3, W1, 0xa1, "7001");
	listed(r, 6, "7003", "waiting", READY);
	listed(r, 7, "7003", "inflight", READY);
	rounds(r, 7.5, 20);
	expect_stuck(r, "7001", 13.01, CAUSE_DONE_NOT_RELEASED, CONF_CERTAIN, 1);
	rig_free(r);
}

/* The same room again and again, one after the other: no overlap, and each done. */
static void test_sequential_reuse(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	for (int i = 0; i < 20; i++) {
		double t = 1 + i * 0.6;

		native_room(r, t, "7001");
		assert_int_equal(r->taken_life, i + 1);
		ok(r, t + 0.4);
	}
	rounds(r, 13.5, 16);
	assert_int_equal(open_lives(r), 0);
	assert_int_equal(r->ended, 20);
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	assert_int_equal(stuck_lines(r), 0);
	rig_free(r);
}

/* Abort and retry, both handled well by the server. */
static void test_abort_and_retry(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	announce(r, 1, "7001", "A", 1);
	held(r, 2, .room = "7001", .rid = "a", .op = 0x10, .kind = "waiting", .code = READY);
	abort_room(r, 3, "7001");
	announce(r, 4, "7001", "A", 1);
	assert_int_equal(r->taken_life, 2);
	held(r, 4.5, .room = "7001", .rid = "b", .op = 0x20, .kind = "waiting", .code = READY);
	assert_int_equal(r->taken_life, 2);
	{
		struct sp_event ev = event(r, 5, ROLE_RELEASE, 0, "7001");

		strcpy(ev.rid, "a");
		ev.op = 0x10;
		ev.flags = EV_INFERRED;
		feed(r, &ev);
	}
	assert_int_equal(r->last_end.life, 1);
	assert_int_equal(r->last_end.outcome, OUTCOME_FAILED);
	kv_done(r, 6, W1, 0xa0, "7001", 0, 1);
	aux_done(r, 6, W1, 0xa1, "7001");
	assert_int_equal(r->taken_life, 2);
	rounds(r, 6.5, 6.5);
	{
		struct sp_event ev = event(r, 7, ROLE_RELEASE, 0, "7001");

		strcpy(ev.rid, "b");
		ev.op = 0x20;
		ev.flags = EV_INFERRED;
		feed(r, &ev);
	}
	assert_int_equal(r->last_end.life, 2);
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	to(r, 2000);
	assert_int_equal(stuck_lines(r), 0);
	rig_free(r);
}

/* A watcher that did not run for 8 s: what it then sees decides. */
static void test_watcher_stalled(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	listed(r, 1, "7001", "inflight", MOVING);
	rounds(r, 1.5, 29.5);
	let_go(r, 38, "7001");
	ok(r, 38);
	to(r, 200);
	assert_int_equal(stuck_lines(r), 0);
	rig_free(r);
}

/* Ten thousand healthy rooms, all slower than the deadline of what they wait for is not. */
static void test_many(void **state)
{
	struct rig *r = view_rig();
	struct model_stats st;
	const int n = 10000;
	char room[16];

	(void)state;
	ok(r, 0);
	for (int i = 0; i < n; i++) {
		snprintf(room, sizeof(room), "%d", 100000 + i);
		announce(r, 1, room, "A", 1);
		listed(r, 2, room, "waiting", READY);
	}
	ok(r, 2);
	model_stats(r->m, &st);
	assert_true(st.bytes / (size_t)n <= 1024);
	/* ten every half second: the last waits 500 s, with a deadline of 300 s */
	for (int i = 0; i < n; i++) {
		double t = 3 + (i / 10) * 0.5;

		snprintf(room, sizeof(room), "%d", 100000 + i);
		listed(r, t, room, "inflight", MOVING);
		if (i >= 10) {
			snprintf(room, sizeof(room), "%d", 100000 + i - 10);
			let_go(r, t, room);
		}
		if (i % 10 == 9)
			ok(r, t);
	}
	assert_int_equal(stuck_lines(r), 0);
	assert_int_equal(open_lives(r), 10);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_too_quick),
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_two_requests),
		cmocka_unit_test(test_retry_with_the_same_id),
		cmocka_unit_test(test_which_native_life),
		cmocka_unit_test(test_second_request_unannounced),
		cmocka_unit_test(test_failed_and_used_again),
		cmocka_unit_test(test_opens),
		cmocka_unit_test(test_progress),
		cmocka_unit_test(test_outcomes),
		cmocka_unit_test(test_reopened),
		cmocka_unit_test(test_reopened_with_a_hole),
		cmocka_unit_test(test_unheld),
		cmocka_unit_test(test_view_begins_later),
		cmocka_unit_test(test_asks),
		cmocka_unit_test(test_asks_again),
		cmocka_unit_test(test_halted),
		cmocka_unit_test(test_no_answer),
		cmocka_unit_test(test_lost_after_the_alert),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_forward_pass),
		cmocka_unit_test(test_loop_is_busy),
		cmocka_unit_test(test_sequential_reuse),
		cmocka_unit_test(test_abort_and_retry),
		cmocka_unit_test(test_watcher_stalled),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
