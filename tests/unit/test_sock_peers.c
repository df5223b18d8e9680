// SPDX-License-Identifier: Apache-2.0
/* Connections of peers, and messages that nobody takes. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gone_and_back), cmocka_unit_test(test_peer_line),
		cmocka_unit_test(test_gone_is_last),  cmocka_unit_test(test_closes_always),
		cmocka_unit_test(test_by_address),    cmocka_unit_test(test_unread),
		cmocka_unit_test(test_unread_taken),  cmocka_unit_test(test_dim),
		cmocka_unit_test(test_dim_several),   cmocka_unit_test(test_unfollowed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
