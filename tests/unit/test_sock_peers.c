// SPDX-License-Identifier: Apache-2.0
/* Connections of peers, messages that nobody takes, and requests that may be another process's. */
#include "sock_rig.h"

/* ---- peers that go ------------------------------------------------------------------------- */

static void test_gone_and_back(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;
	struct sp_event ev;

	(void)state;
	arrives(r, 0, "7001", "");
	announce(r, 0, "7001", "A", 1);
	arrives(r, 0, "7002", "");
	announce(r, 0, "7002", "B", 1);
	arrives(r, 0, "7003", "");
	announce(r, 0, "7003", "C", 1);
	announce(r, 0, "7004", "A", 1); /* its answer will not be seen */
	conn(r, 5, "closed", "A", "");
	conn(r, 5, "reset", "B", "");
	conn(r, 5, "reset", "C", "");
	conn(r, 6, "opened", "B", "");
	ev = event(r, 6, ROLE_REGISTER, 0, "");
	strcpy(ev.agent, "C");
	feed(r, &ev);
	to(r, 400);
	s = expect_stuck(r, "7001", 300, CAUSE_PEER_GONE, CONF_LIKELY, 1);
	assert_true(has_evidence(s, "the connection of a peer ended at +5.0 s"));
	expect_stuck(r, "7002", 300, CAUSE_NEVER_SENT, CONF_POSSIBLE, -1);
	expect_stuck(r, "7003", 300, CAUSE_NEVER_SENT, CONF_POSSIBLE, -1);
	expect_stuck(r, "7004", 300, CAUSE_PEER_GONE, CONF_POSSIBLE, -1);
	rig_free(r);
}

/* The line names the peer. */
static void test_peer_line(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	announce(r, 0, "7001", "A", 1);
	conn(r, 1, "reset", "A", "");
	conn(r, 1, "reset", "stranger", "");
	assert_int_equal(count_said(r, ALERT_PEER), 1);
	assert_string_equal(nth(r, ALERT_PEER, NULL, 0)->what, "reset");
	assert_string_equal(nth(r, ALERT_PEER, NULL, 0)->peer, "10.0.0.7:50123");
	/* no room of it is open */
	native_room(r, 2, "7002");
	assert_int_equal(count_said(r, ALERT_PEER), 1);
	healthy(r, 3, W1, 0xb0, "7003", "B");
	conn(r, 4, "closed", "B", "");
	assert_int_equal(count_said(r, ALERT_PEER), 1);
	rig_free(r);
}

/* Whatever is in its way, a posted operation is not blamed on the connection. */
static void test_gone_is_last(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	arrives(r, 0, "7001", "");
	announce(r, 0, "7001", "A", 1);
	conn(r, 1, "closed", "A", "");
	kv(r, 2, W1, 0xa0, "7001", 0, 0);
	to(r, 100);
	expect_stuck(r, "7001", 32, CAUSE_TRANSFER_STALLED, CONF_LIKELY, 1);
	rig_free(r);
}

/* A decode that closes its connection after every message: its rooms go on, so that tells nothing,
 * and is not told each time. */
static void test_closes_always(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;

	(void)state;
	for (int i = 0; i < 50; i++) {
		announce(r, i, "7001", "A", 1);
		conn(r, i + 0.1, "closed", "A", "");
		kv_done(r, i + 0.2, W1, 0xa0, "7001", 0, 1);
		aux_done(r, i + 0.3, W1, 0xa1, "7001");
	}
	assert_int_equal(open_lives(r), 0);
	assert_int_equal(count_said(r, ALERT_PEER), 1);
	arrives(r, 60, "7002", "");
	announce(r, 60, "7002", "A", 1);
	conn(r, 60.1, "closed", "A", "");
	to(r, 500);
	s = expect_stuck(r, "7002", 360, CAUSE_PEER_GONE, CONF_POSSIBLE, -1);
	assert_true(has_evidence(s, "while its rooms go on"));
	assert_int_equal(alerts(r), 0);
	rig_free(r);
}

static void test_by_address(void **state)
{
	struct rig *r = rig_new();
	struct sp_event ev;

	(void)state;
	announce(r, 0, "7001", "A", 1); /* from 10.0.0.7:40065 */
	announce(r, 0, "7002", "A", 1);
	ev = event(r, 1, ROLE_PEER, 0, "");
	strcpy(ev.kind, "closed");
	strcpy(ev.peer, "10.0.0.7:40065");
	feed(r, &ev);
	assert_int_equal(count_said(r, ALERT_PEER), 1);
	to(r, 400);
	expect_stuck(r, "7001", 300, CAUSE_PEER_GONE, CONF_POSSIBLE, -1);
	expect_stuck(r, "7002", 300, CAUSE_PEER_GONE, CONF_POSSIBLE, -1);
	rig_free(r);
}

/* ---- messages that nobody takes ------------------------------------------------------------ */

static void test_unread(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;

	(void)state;
	announce(r, 0, "7000", "A", 2);
	arrives(r, 1, "7001", "");
	thread_exit(r, 2, BOOT);
	conn(r, 3, "unread", "", "7001");
	assert_int_equal(r->taken_life, 1);
	to(r, 20);
	s = expect_stuck(r, "7001", 7, CAUSE_THREAD_DIED, CONF_LIKELY, 1);
	assert_true(has_evidence(s, "a metadata message of 10.0.0.7:50123 is on the wire since "
				    "+2.0 s: the server has not taken it"));
	/* what a socket shows does not tell that the server's thread is back */
	hears(r, 21, "7002", "B", 2);
	to(r, 30);
	expect_stuck(r, "7002", 26, CAUSE_THREAD_DIED, CONF_LIKELY, 1);
	announce(r, 31, "7003", "B", 2);
	to(r, 100);
	assert_null(nth(r, ALERT_STUCK, "7003", 0));
	conn(r, 101, "unread", "", "nobody");
	rig_free(r);
}

/* It is taken in the end. */
static void test_unread_taken(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;

	(void)state;
	arrives(r, 0, "7001", "");
	conn(r, 3, "unread", "", "7001");
	to(r, 331);
	assert_true(has_evidence(nth(r, ALERT_STUCK, "7001", 0), "on the wire"));
	announce(r, 332, "7001", "A", 2);
	to(r, 1000);
	s = nth(r, ALERT_STUCK, "7001", 1);
	assert_int_equal(s->v.cause, CAUSE_QUORUM_INCOMPLETE);
	assert_false(has_evidence(s, "on the wire"));
	rig_free(r);
}

/* Sockets alone, and a stream that was not read from its start: an announcement may have gone by.
 */
static void test_dim(void **state)
{
	struct rig *r = only_sockets();

	(void)state;
	arrives(r, 0, "7001", "");
	conn(r, 1, "trusted", "", "");
	arrives(r, 2, "7002", "");
	to(r, 400);
	expect_doubt(r, "7001", 1, CAUSE_DECODE_ABSENT);
	assert_true(has_evidence(nth(r, ALERT_STUCK, "7001", 0), "10.0.0.7:50123"));
	expect_stuck(r, "7002", 332, CAUSE_DECODE_ABSENT, CONF_LIKELY, 0);
	conn(r, 401, "unreadable", "A", "");
	arrives(r, 402, "7003", "");
	to(r, 800);
	expect_doubt(r, "7003", 1, CAUSE_DECODE_ABSENT);
	conn(r, 801, "closed", "A", "");
	arrives(r, 802, "7004", "");
	to(r, 1200);
	expect_stuck(r, "7004", 1132, CAUSE_DECODE_ABSENT, CONF_LIKELY, 0);
	rig_free(r);
	/* where the announcements are seen by a probe that says nothing */
	r = rig_new();
	arrives(r, 0, "7001", "");
	conn(r, 1, "lost", "", "");
	to(r, 400);
	expect_stuck(r, "7001", 330, CAUSE_DECODE_ABSENT, CONF_LIKELY, 0);
	rig_free(r);
	/* the same in single processes: one shows its announcements, the other nothing */
	r = rig_new();
	for (int code = TARGET_BLIND; code <= (TARGET_BLIND | TARGET_DEAF); code += TARGET_DEAF) {
		struct sp_event ev = event(r, 0, ROLE_TARGET, 0, "");

		r->pid = PID + (uint32_t)code;
		ev.pid = r->pid;
		strcpy(ev.kind, "blind");
		ev.code = code;
		feed(r, &ev);
		arrives(r, 0, code & TARGET_DEAF ? "7002" : "7001", "");
		conn(r, 0, "lost", "", "");
	}
	to(r, 400);
	expect_doubt(r, "7002", 1, CAUSE_DECODE_ABSENT);
	assert_int_equal(alerts(r), 1);
	rig_free(r);
}

static void stream(struct rig *r, double t, const char *kind, const char *peer)
{
	struct sp_event ev = event(r, t, ROLE_PEER, 0, "");

	strcpy(ev.kind, kind);
	strcpy(ev.peer, peer);
	feed(r, &ev);
}

/* Several streams that cannot be read: the end of one does not clear the others. One that ended
 * while a room waited may have carried its announcement. */
static void test_dim_several(void **state)
{
	struct rig *r = only_sockets();
	char peer[32];

	(void)state;
	stream(r, 1, "lost", "10.0.0.1:1");
	stream(r, 2, "unreadable", "10.0.0.2:2");
	stream(r, 3, "closed", "10.0.0.2:2");
	arrives(r, 4, "7001", "");
	to(r, 350);
	expect_doubt(r, "7001", 1, CAUSE_DECODE_ABSENT);
	arrives(r, 351, "7002", "");
	stream(r, 352, "reset", "10.0.0.1:1");
	arrives(r, 353, "7003", "");
	to(r, 700);
	expect_doubt(r, "7002", 1, CAUSE_DECODE_ABSENT);
	expect_stuck(r, "7003", 683, CAUSE_DECODE_ABSENT, CONF_LIKELY, 0);
	/* more than are known by name: doubt for good */
	for (int i = 0; i < 20; i++) {
		snprintf(peer, sizeof(peer), "10.0.0.3:%d", i);
		stream(r, 701, "lost", peer);
	}
	for (int i = 0; i < 20; i++) {
		snprintf(peer, sizeof(peer), "10.0.0.3:%d", i);
		stream(r, 702, "closed", peer);
	}
	arrives(r, 703, "7004", "");
	to(r, 1100);
	expect_doubt(r, "7004", 1, CAUSE_DECODE_ABSENT);
	rig_free(r);
}

/* Connections that nobody follows: what is announced there is not heard, now or later. */
static void test_unfollowed(void **state)
{
	struct rig *r = only_sockets();
	struct sp_event ev;

	(void)state;
	arrives(r, 0, "7001", "");
	ev = event(r, 1, ROLE_LOSS, 0, "");
	strcpy(ev.kind, SP_LOSS_CONNECTIONS);
	ev.code = 3;
	feed(r, &ev);
	arrives(r, 2, "7002", "");
	to(r, 400);
	expect_doubt(r, "7001", 1, CAUSE_DECODE_ABSENT);
	expect_doubt(r, "7002", 1, CAUSE_DECODE_ABSENT);
	rig_free(r);
}

/* ---- one front, several processes ---------------------------------------------------------- */

#define RANKS 3

static void on_rank(struct rig *r, int rank)
{
	r->pid = PID + 1000 * (uint32_t)rank;
}

static void arrives_at_all(struct rig *r, double t, const char *room, unsigned int flags)
{
	for (int i = RANKS - 1; i >= 0; i--) {
		on_rank(r, i);
		client(r, t, ROLE_ARRIVE, .room = room, .flags = EV_SHARED | flags);
	}
}

static void replies_to_all(struct rig *r, double t, const char *room, int64_t code)
{
	for (int i = 0; i < RANKS; i++) {
		on_rank(r, i);
		client(r, t, ROLE_REPLY, .room = room, .kind = "end", .code = code,
		       .flags = EV_SHARED);
	}
}

/* The same room asked for twice, once for each rank: neither is a reuse, and whose answer is whose
 * is not known. */
static void test_room_of_each_rank(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	for (int i = 0; i < 2; i++) {
		on_rank(r, i);
		announce(r, 0, "7001", "A", 1);
	}
	arrives_at_all(r, 1, "7001", EV_TRACKED);
	arrives_at_all(r, 2, "7001", EV_TRACKED);
	on_rank(r, 0);
	assert_int_equal(look(r, "7001", 2).found, false);
	replies_to_all(r, 3, "7001", 200);
	on_rank(r, 0);
	assert_true(look(r, "7001", 1).found);
	to(r, 400);
	on_rank(r, 0);
	assert_int_equal(look(r, "7001", 1).v.cause, CAUSE_NEVER_SENT);
	assert_int_equal(alerts(r), 0);
	rig_free(r);
}

/* Data-parallel ranks: those that were not chosen are no alert, whatever becomes of the room. */
static void test_chosen(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;

	(void)state;
	arrives_at_all(r, 0, "7001", EV_TRACKED);
	on_rank(r, 1);
	announce(r, 1, "7001", "A", 1);
	to(r, 400);
	assert_int_equal(alerts(r), 0);
	s = nth(r, ALERT_STUCK, "7001", 1);
	assert_true(has_evidence(s, "has shown itself in another one"));
	assert_int_equal(s->v.confidence, CONF_POSSIBLE);
	assert_int_equal(s->v.pin, -1);
	replies_to_all(r, 401, "7001", 200);
	assert_int_equal(open_lives(r), 0);
	/* announced before it arrived */
	on_rank(r, 2);
	announce(r, 500, "7002", "A", 2);
	arrives_at_all(r, 501, "7002", EV_TRACKED);
	to(r, 900);
	assert_int_equal(alerts(r), 1);
	s = nth(r, ALERT_STUCK, "7002", 1);
	for (size_t i = 0; i < r->nsaid; i++)
		if (r->said[i].type == ALERT_STUCK && r->said[i].v.confidence >= CONF_LIKELY)
			assert_int_equal(r->said[i].pid, PID + 2000);
	rig_free(r);
}

/* Where nothing would end it, it does not stay for ever. */
static void test_not_chosen_untracked(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	for (int i = 0; i < 100; i++) {
		arrives_at_all(r, i, "7001", 0);
		on_rank(r, 0);
		native_room(r, i + 0.1, "7001");
	}
	to(r, 1000);
	assert_int_equal(open_lives(r), 0);
	assert_int_equal(alerts(r), 0);
	assert_int_equal(r->last_end.outcome, OUTCOME_NONE);
	rig_free(r);
}

/* It shows itself nowhere: one alert, of the first process; when that has gone, of the next. */
static void test_nowhere(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;

	(void)state;
	arrives_at_all(r, 0, "7001", EV_TRACKED);
	to(r, 400);
	assert_int_equal(alerts(r), 1);
	assert_int_equal(stuck_lines(r), RANKS);
	for (size_t i = 0; i < RANKS; i++) {
		s = nth(r, ALERT_STUCK, "7001", i);
		assert_int_equal(s->v.cause, CAUSE_DECODE_ABSENT);
		assert_int_equal(s->v.confidence, s->pid == PID ? CONF_LIKELY : CONF_POSSIBLE);
	}
	on_rank(r, 0);
	target(r, 401, "exited", 0);
	to(r, 1100);
	assert_int_equal(alerts(r), 2);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", RANKS)->pid, PID + 1000);
	replies_to_all(r, 1101, "7001", 500);
	assert_int_equal(open_lives(r), 0);
	rig_free(r);
}

/* The process whose bootstrap thread is dead is the one; but not before the deadline. */
static void test_nowhere_dead_thread(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	on_rank(r, 2);
	announce(r, 0, "7000", "A", 2);
	thread_exit(r, 1, BOOT);
	arrives_at_all(r, 2, "7001", EV_TRACKED);
	arrives_at_all(r, 2, "7002", EV_TRACKED);
	to(r, 100);
	assert_int_equal(alerts(r), 1); /* of 7000 */
	on_rank(r, 0);
	announce(r, 101, "7002", "A", 2);
	to(r, 335);
	for (size_t i = 0; i < r->nsaid; i++) {
		const struct said *s = &r->said[i];

		if (s->type != ALERT_STUCK || !strcmp(s->room, "7000"))
			continue;
		if (s->pid == PID + 2000 && !strcmp(s->room, "7001")) {
			assert_int_equal(s->v.cause, CAUSE_THREAD_DIED);
			assert_int_equal(s->v.confidence, CONF_LIKELY);
		} else {
			assert_int_equal(s->v.confidence, CONF_POSSIBLE);
		}
	}
	assert_int_equal(alerts(r), 2);
	rig_free(r);
}

/* All ranks of one instance have the room: each is followed on its own. */
static void test_every_rank(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	arrives_at_all(r, 0, "7001", EV_TRACKED);
	for (int i = 0; i < RANKS; i++) {
		on_rank(r, i);
		announce(r, 1, "7001", "A", 1);
		kv(r, 2, W1, 0xa0, "7001", 0, 1);
	}
	for (int i = 0; i < RANKS - 1; i++) {
		on_rank(r, i);
		status(r, 3, W1, 0xa0, OPS_DONE);
		aux_done(r, 4, W1, 0xa1, "7001");
	}
	to(r, 13.9);
	assert_int_equal(stuck_lines(r), 0);
	to(r, 60);
	assert_int_equal(alerts(r), RANKS);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", RANKS - 1)->v.cause, CAUSE_TRANSFER_STALLED);
	replies_to_all(r, 61, "7001", 200);
	assert_int_equal(open_lives(r), 0);
	rig_free(r);
}

/* The view of a rank shows that it does not hold the room: that is no failure of it. */
static void test_unheld_elsewhere(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	on_rank(r, 1);
	ok(r, 0);
	announce(r, 1, "7000", "A", 1); /* the view shows what probes have shown */
	listed(r, 1, "7000", "inflight", MOVING);
	let_go(r, 2, "7000");
	announce(r, 2, "7003", "A", 1);
	on_rank(r, 0);
	announce(r, 2, "7001", "A", 1);
	arrives_at_all(r, 3, "7001", EV_TRACKED);
	on_rank(r, 1);
	entry(r, 3, "7001", NONE);
	rounds(r, 3.5, 340);
	expect_end(r, "7001", 1, OUTCOME_NONE);
	assert_int_equal(alerts(r), 0);
	rig_free(r);
}

/* A client of several processes' front that goes is nobody's own sign. */
static void test_shared_client_gone(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	arrives_at_all(r, 0, "7001", EV_TRACKED);
	for (int i = 0; i < RANKS; i++) {
		on_rank(r, i);
		client(r, 1, ROLE_ABORT, .room = "7001", .kind = "client-gone", .flags = EV_SHARED);
	}
	to(r, 2000);
	assert_int_equal(alerts(r), 0);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gone_and_back),
		cmocka_unit_test(test_peer_line),
		cmocka_unit_test(test_gone_is_last),
		cmocka_unit_test(test_closes_always),
		cmocka_unit_test(test_by_address),
		cmocka_unit_test(test_unread),
		cmocka_unit_test(test_unread_taken),
		cmocka_unit_test(test_dim),
		cmocka_unit_test(test_dim_several),
		cmocka_unit_test(test_unfollowed),
		cmocka_unit_test(test_room_of_each_rank),
		cmocka_unit_test(test_chosen),
		cmocka_unit_test(test_not_chosen_untracked),
		cmocka_unit_test(test_nowhere),
		cmocka_unit_test(test_nowhere_dead_thread),
		cmocka_unit_test(test_every_rank),
		cmocka_unit_test(test_unheld_elsewhere),
		cmocka_unit_test(test_shared_client_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
