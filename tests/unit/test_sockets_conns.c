// SPDX-License-Identifier: Apache-2.0
/* collect/conns.c: connections, and the agents that announced themselves over them. */
#include "sockets_conns_rig.h"

static void test_opened_and_closed(void **state)
{
	struct rig *r = *state;
	struct sp_event ev;

	conn_opens(r, 5, PID, 1, S_STATUS);
	ev = peer(r, "opened", "", "10.0.0.1:41001");
	assert_int_equal(ev.ns, 5);
	assert_string_equal(ev.note, "");
	rig_none(r);
	conn_is(r, 9, 1, S_STATUS, SP_CONN_EOF, 0, SP_DIR_IN);
	ev = peer(r, "closed", "", "10.0.0.1:41001");
	assert_int_equal(ev.ns, 9);
	/* only the first end counts */
	conn_is(r, 10, 1, S_STATUS, SP_CONN_CLOSED, 0, 0);
	conn_is(r, 11, 1, S_STATUS, SP_CONN_RESET, 0, 0);
	rig_none(r);
	assert_int_equal(rig_stats(r).conns, 1);
	assert_int_equal(rig_stats(r).untrusted, 0);
}

static void test_reset(void **state)
{
	struct rig *r = *state;

	conn_opens(r, 5, PID, 1, S_STATUS);
	announce(r, 6, 1, "77", "a", ADDR);
	r->n = 0;
	conn_is(r, 9, 1, S_STATUS, SP_CONN_RESET, 0, 0);
	peer(r, "reset", "a", ADDR);
	rig_none(r);
}

/* What never spoke is no peer, and what ends unseen before is none either. */
static void test_silent_connections(void **state)
{
	struct rig *r = *state;
	struct sp_rec_conn rec = conn_rec(5, PID, 1, 0xff, SP_CONN_OPEN);

	feed_conn(r, &rec);
	conn_is(r, 9, 1, 0xff, SP_CONN_CLOSED, 0, 0);
	assert_int_equal(rig_stats(r).conns, 0);
	rec = conn_rec(5, PID, 2, S_STATUS, SP_CONN_OPEN); /* by its port, without a byte */
	rec.num = 1;
	feed_conn(r, &rec);
	conn_is(r, 9, 2, S_STATUS, SP_CONN_CLOSED, 0, 0);
	conn_is(r, 9, 3, S_STATUS, SP_CONN_EOF, 0, 0);
	rec = conn_rec(5, PID, 4, S_STATUS, SP_CONN_OPEN); /* and one that had begun before */
	feed_conn(r, &rec);
	rig_none(r);
	assert_int_equal(rig_stats(r).untrusted, 0);
}

static void test_agent_goes_with_its_last_connection(void **state)
{
	struct rig *r = *state;

	conn_opens(r, 1, PID, 1, S_STATUS);
	conn_opens(r, 1, PID, 2, S_STATUS);
	r->n = 0;
	announce(r, 2, 1, "77", "a", ADDR);
	peer(r, "opened", "a", ADDR);
	announced(r);
	announce(r, 3, 1, "78", "a", ADDR); /* the same again: nothing new */
	announced(r);
	announce(r, 4, 2, "79", "a", ADDR);
	peer(r, "opened", "a", ADDR);
	announced(r);
	conn_is(r, 5, 1, S_STATUS, SP_CONN_CLOSED, 0, 0);
	rig_none(r); /* connected anew before */
	conn_is(r, 6, 2, S_STATUS, SP_CONN_CLOSED, 0, 0);
	peer(r, "closed", "a", ADDR);
	rig_none(r);
	/* and it comes back */
	conn_opens(r, 7, PID, 3, S_STATUS);
	r->n = 0;
	announce(r, 8, 3, "80", "a", "10.0.0.7:5556");
	peer(r, "opened", "a", "10.0.0.7:5556");
}

static void test_several_agents_of_one_connection(void **state)
{
	struct rig *r = *state;

	conn_opens(r, 1, PID, 1, S_STATUS);
	announce(r, 2, 1, "77", "a", ADDR);
	announce(r, 2, 1, "77", "b", "10.0.0.7:5556");
	announce(r, 2, 1, "77", "c", ""); /* its address is the connection's */
	r->n = 0;
	conn_is(r, 5, 1, S_STATUS, SP_CONN_CLOSED, 0, 0);
	peer(r, "closed", "a", ADDR);
	peer(r, "closed", "b", "10.0.0.7:5556");
	peer(r, "closed", "c", "10.0.0.1:41001");
	rig_none(r);
}

/* An abort gives no name: it comes from the agent with that address, known before or after. */
static void test_a_nameless_message_is_the_agents(void **state)
{
	struct rig *r = *state;
	struct sp_event ev = message(2, P_STATUS, ROLE_ABORT, "77", "", ADDR);

	conn_opens(r, 1, PID, 1, S_STATUS);
	conn_opens(r, 1, PID, 2, S_STATUS);
	r->n = 0;
	sockets_message(r->s, &ev, 1, false);
	peer(r, "opened", ADDR, ADDR);
	rig_expect(r, ROLE_ABORT, "");
	announce(r, 3, 1, "77", "a", ADDR); /* the same one has a name now */
	announced(r);
	sockets_message(r->s, &ev, 2, false);
	peer(r, "opened", "a", ADDR);
	rig_expect(r, ROLE_ABORT, "");
	conn_is(r, 5, 1, S_STATUS, SP_CONN_CLOSED, 0, 0);
	rig_none(r);
	conn_is(r, 6, 2, S_STATUS, SP_CONN_CLOSED, 0, 0);
	peer(r, "closed", "a", ADDR);
	rig_none(r);
}

/* A restarted peer has another name and may have the old address: the end of the old one, which
 * comes late, must not name it. */
static void test_an_address_taken_over(void **state)
{
	struct rig *r = *state;
	struct sp_event ev = message(4, P_STATUS, ROLE_ABORT, "77", "", ADDR);

	conn_opens(r, 1, PID, 1, S_STATUS);
	announce(r, 2, 1, "77", "old", ADDR);
	conn_opens(r, 3, PID, 2, S_STATUS);
	announce(r, 4, 2, "78", "new", ADDR);
	r->n = 0;
	sockets_message(r->s, &ev, 1, false); /* without a name, by the connection of the old one */
	rig_expect(r, ROLE_ABORT, "");
	rig_none(r);
	conn_is(r, 5, 1, S_STATUS, SP_CONN_RESET, 0, 0);
	peer(r, "reset", "old", "10.0.0.1:41001");
	conn_is(r, 6, 2, S_STATUS, SP_CONN_CLOSED, 0, 0);
	peer(r, "closed", "new", ADDR);
}

/* The same name in two processes is two agents. */
static void test_agents_belong_to_a_process(void **state)
{
	struct rig *r = *state;
	struct sp_event ev = message(2, P_STATUS, ROLE_ANNOUNCE, "77", "a", ADDR);

	conn_opens(r, 1, PID, 1, S_STATUS);
	conn_opens(r, 1, 11, 2, S_STATUS);
	sockets_message(r->s, &ev, 1, false);
	ev.pid = 11;
	ev.agent[0] = '\0'; /* that of another process with this address has a name */
	r->n = 0;
	sockets_message(r->s, &ev, 2, false);
	assert_string_equal(rig_expect(r, ROLE_PEER, "opened").agent, ADDR);
	strcpy(ev.agent, "a");
	sockets_message(r->s, &ev, 2, false);
	r->n = 0;
	conn_is(r, 5, 1, S_STATUS, SP_CONN_CLOSED, 0, 0);
	peer(r, "closed", "a", ADDR);
	conn_is(r, 5, 2, S_STATUS, SP_CONN_CLOSED, 0, 0);
	ev = rig_expect(r, ROLE_PEER, "closed");
	assert_int_equal(ev.pid, 11);
}

/* Whatever else has a sender's name in it introduces nobody. */
static void test_who_is_introduced(void **state)
{
	struct rig *r = *state;
	struct sp_event ev = message(2, P_STATUS, ROLE_CONTROL, "77", "a", ADDR);

	conn_opens(r, 1, PID, 1, S_STATUS);
	r->n = 0;
	sockets_message(r->s, &ev, 1, false);
	rig_expect(r, ROLE_CONTROL, "");
	ev.role = ROLE_ANNOUNCE;
	sockets_message(r->s, &ev, 1, true); /* sent */
	announced(r);
	ev.role = ROLE_REGISTER;
	ev.room[0] = '\0';
	sockets_message(r->s, &ev, 1, false);
	peer(r, "opened", "a", ADDR);
	rig_expect(r, ROLE_REGISTER, "");
	rig_none(r);
}

/* Who last read a connection owns it. */
static void test_another_process_reads(void **state)
{
	struct rig *r = *state;
	struct sp_rec_conn rec = conn_rec(2, 11, 1, S_STATUS, SP_CONN_LOST);

	conn_opens(r, 1, PID, 1, S_STATUS);
	r->n = 0;
	feed_conn(r, &rec);
	assert_int_equal(rig_expect(r, ROLE_PEER, "lost").pid, 11);
	sockets_process_gone(r->s, PID, 3);
	conn_is(r, 4, 1, S_STATUS, SP_CONN_CLOSED, 0, 0);
	assert_int_equal(rig_expect(r, ROLE_PEER, "closed").pid, 11);
	rig_none(r);
}

/* A child reads some of it and ends: the connection is its parent's, as before. */
static void test_a_child_reads_and_ends(void **state)
{
	struct rig *r = *state;
	struct sp_rec_conn rec = conn_rec(2, 11, 1, S_STATUS, SP_CONN_LOST);

	conn_opens(r, 1, PID, 1, S_STATUS);
	r->n = 0;
	feed_conn(r, &rec);
	rig_expect(r, ROLE_PEER, "lost");
	sockets_process_gone(r->s, 11, 3);
	conn_is(r, 4, 1, S_STATUS, SP_CONN_CLOSED, 0, 0);
	assert_int_equal(rig_expect(r, ROLE_PEER, "closed").pid, PID);
	rig_none(r);
}

/* The server reads the last message after the peer has closed: the end is told behind it. */
static void test_message_behind_the_end(void **state)
{
	struct rig *r = *state;
	struct sp_event ev;

	conn_opens(r, 1, PID, 1, S_STATUS);
	conn_is(r, 2, 1, S_STATUS, SP_CONN_EOF, 0, SP_DIR_IN);
	r->n = 0;
	announce(r, 3, 1, "77", "a", ADDR);
	ev = rig_expect(r, ROLE_ANNOUNCE, "");
	assert_int_equal(ev.ns, 3);
	ev = peer(r, "closed", "a", ADDR);
	assert_int_equal(ev.ns, 4);
	rig_none(r);
	/* not when it is connected elsewhere */
	conn_opens(r, 5, PID, 2, S_STATUS);
	announce(r, 6, 2, "78", "a", ADDR);
	r->n = 0;
	announce(r, 7, 1, "79", "a", ADDR);
	announced(r);
	rig_none(r);
}

/* The peer ends while the uprobe is yet to show the message. */
static void test_end_before_the_confirmation(void **state)
{
	struct rig *r = *state;
	struct sp_event ev = message(2, P_BOOTSTRAP, ROLE_ANNOUNCE, "77", "a", ADDR);

	conn_opens(r, 1, PID, 1, S_BOOTSTRAP);
	sockets_message(r->s, &ev, 1, false);
	conn_is(r, 3, 1, S_BOOTSTRAP, SP_CONN_CLOSED, 0, 0);
	r->n = 0;
	ev.probe = P_RECV;
	ev.ns = 8;
	assert_true(sockets_native(r->s, &ev));
	ev = rig_expect(r, ROLE_PEER, "closed");
	assert_string_equal(ev.agent, "a");
	assert_int_equal(ev.ns, 9);
	rig_none(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_opened_and_closed),
		T(test_reset),
		T(test_silent_connections),
		T(test_agent_goes_with_its_last_connection),
		T(test_several_agents_of_one_connection),
		T(test_a_nameless_message_is_the_agents),
		T(test_an_address_taken_over),
		T(test_agents_belong_to_a_process),
		T(test_who_is_introduced),
		T(test_another_process_reads),
		T(test_a_child_reads_and_ends),
		T(test_message_behind_the_end),
		T(test_end_before_the_confirmation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
