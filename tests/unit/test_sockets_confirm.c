// SPDX-License-Identifier: Apache-2.0
/* collect/confirm.c: one event for a message that a uprobe and a socket both show. */
#include "confirm_rig.h"

static void test_confirmed(void **state)
{
	struct rig *r = *state;

	by_socket(r, SEC, "77");
	rig_none(r);
	assert_true(by_probe(r, SEC + 5, "77"));
	sockets_tick(r->s, 100 * SEC);
	rig_none(r);
	assert_int_equal(rig_stats(r).confirmed, 1);
	assert_int_equal(rig_stats(r).unread, 0);
}

/* The call that takes the first message may have begun before the attach: the probe shows nothing
 * of it, and that says nothing of the server. */
static void test_first_of_process(void **state)
{
	struct rig *r = *state;

	by_socket(r, SEC, "77");
	by_probe(r, SEC + 5, "88"); /* another connection's: it proves the probe */
	sockets_tick(r->s, 3 * SEC);
	socket_told(r, 3 * SEC, "77");
	by_socket(r, 4 * SEC, "99"); /* and now it would show it */
	sockets_tick(r->s, 6 * SEC);
	rig_expect(r, ROLE_PEER, "unread");
	rig_none(r);
}

/* What is taken shows that what came before it on the connection has been. */
static void test_taken_in_order(void **state)
{
	struct rig *r = *state;

	by_probe(r, SEC, "11");
	by_socket(r, 2 * SEC, "77");
	sockets_tick(r->s, 4 * SEC);
	rig_expect(r, ROLE_PEER, "unread");
	by_socket(r, 5 * SEC, "78");
	by_socket(r, 5 * SEC + 1, "79");
	assert_true(by_probe(r, 5 * SEC + 2, "79"));
	socket_told(r, 5 * SEC + 2, "77");
	socket_told(r, 5 * SEC + 2, "78");
	rig_none(r);
	assert_false(by_probe(r, 5 * SEC + 3, "78")); /* told */
}

/* Sent messages pass the uprobe first. */
static void test_native_first(void **state)
{
	struct rig *r = *state;

	assert_true(by_probe(r, SEC, "77"));
	by_socket(r, SEC + 1, "77");
	sockets_tick(r->s, 30 * SEC);
	rig_none(r);
	assert_int_equal(rig_stats(r).confirmed, 1);
	/* only once, and only within a minute */
	assert_true(by_probe(r, 40 * SEC, "78"));
	sockets_tick(r->s, 101 * SEC);
	by_socket(r, 101 * SEC, "78");
	sockets_tick(r->s, 102 * SEC);
	rig_expect(r, ROLE_PEER, "unread");
	rig_none(r);
}

/* Another message is no confirmation. */
static void test_what_is_equal(void **state)
{
	struct rig *r = *state;
	struct sp_event ev;

	by_socket(r, SEC, "77");
	assert_true(by_probe(r, SEC, "78"));
	ev = announce(SEC, P_RECV, "77");
	ev.need = 3;
	assert_true(sockets_native(r->s, &ev));
	ev = announce(SEC, P_RECV, "77");
	ev.chunk = 0;
	assert_true(sockets_native(r->s, &ev));
	ev = announce(SEC, P_RECV, "77");
	ev.role = ROLE_ABORT;
	assert_true(sockets_native(r->s, &ev));
	ev = announce(SEC, P_RECV, "77");
	strcpy(ev.agent, "b");
	assert_true(sockets_native(r->s, &ev));
	ev = announce(SEC, P_RECV, "77");
	ev.pid++;
	assert_true(sockets_native(r->s, &ev));
	ev = announce(SEC, P_RECV, "77");
	strcpy(ev.kind, "x");
	assert_true(sockets_native(r->s, &ev));
	ev = announce(SEC, P_SEND, "77"); /* the same words, sent */
	assert_true(sockets_native(r->s, &ev));
	assert_int_equal(rig_stats(r).confirmed, 0);
	ev = announce(SEC, P_RECV, "77"); /* the name decides, not the address */
	strcpy(ev.peer, "10.0.0.8:1");
	assert_true(sockets_native(r->s, &ev));
	assert_int_equal(rig_stats(r).confirmed, 1);
	rig_none(r);
}

/* Events of probes that no socket shadows pass untouched. */
static void test_other_probes(void **state)
{
	struct rig *r = *state;
	struct sp_event ev = announce(SEC, P_STATUS, "77");

	r->entries.entry[S_SENT].same_as = -1;
	for (int i = 0; i < 20000; i++) {
		ev.probe = (int16_t)(i % 2 ? P_SEND : -1);
		assert_true(sockets_native(r->s, &ev));
	}
	assert_int_equal(rig_stats(r).sockets_over, 0);
	rig_none(r);
}

static void test_unread(void **state)
{
	struct rig *r = *state;
	struct sp_event ev;

	assert_true(by_probe(r, SEC / 2, "1")); /* the probe works here */
	by_socket(r, SEC, "77");
	sockets_tick(r->s, 2 * SEC - 1);
	rig_none(r);
	sockets_tick(r->s, 2 * SEC);
	ev = rig_expect(r, ROLE_PEER, "unread");
	assert_int_equal(ev.ns, 2 * SEC);
	assert_string_equal(ev.room, "77");
	assert_string_equal(ev.agent, "a");
	assert_string_equal(ev.peer, ADDR);
	assert_string_equal(ev.note, "announce");
	assert_int_equal(ev.pid, PID);
	assert_int_equal(rig_stats(r).unread, 1);
	sockets_tick(r->s, 60 * SEC);
	rig_none(r);                              /* told once */
	assert_true(by_probe(r, 60 * SEC, "77")); /* taken at last */
	rig_none(r);
	assert_int_equal(rig_stats(r).confirmed, 1);
}

/* A probe that has never shown a whole message there may not see them at all. */
static void test_probe_that_shows_nothing(void **state)
{
	struct rig *r = *state;

	by_socket(r, SEC, "77");
	sockets_tick(r->s, 2 * SEC);
	socket_told(r, 2 * SEC, "77"); /* its own time has passed */
	assert_int_equal(rig_stats(r).unread, 0);
	assert_false(by_probe(r, 5 * SEC, "77")); /* it does after all: told already */
	assert_int_equal(rig_stats(r).confirmed, 1);
	assert_true(by_probe(r, 6 * SEC, "77")); /* and again is again */
	rig_none(r);
}

/* A cut message does not show that the probe sees all; another process's does not either. */
static void test_what_a_probe_has_shown(void **state)
{
	struct rig *r = *state;
	struct sp_event ev = announce(SEC / 2, P_RECV, "1");

	ev.flags = EV_CUT;
	assert_true(sockets_native(r->s, &ev));
	ev.flags = 0;
	ev.pid++;
	assert_true(sockets_native(r->s, &ev));
	by_socket(r, SEC, "77");
	sockets_tick(r->s, 2 * SEC);
	socket_told(r, 2 * SEC, "77");
}

static void test_no_probe(void **state)
{
	struct rig *r = *state;

	r->has[P_RECV] = false;
	by_socket(r, SEC, "77");
	socket_told(r, SEC, "77");
	/* the probe comes in place between the socket's sight of it and its own */
	assert_false(by_probe(r, SEC + 1, "77"));
	rig_none(r);
}

static void test_socket_wins(void **state)
{
	struct rig *r = *state;

	r->entries.entry[S_BOOTSTRAP].wins = SOCK_WINS_SOCKET;
	by_socket(r, SEC, "77");
	socket_told(r, SEC, "77");
	sockets_tick(r->s, 8 * SEC);
	assert_false(by_probe(r, 8 * SEC, "77")); /* however late the server takes it */
	assert_int_equal(rig_stats(r).confirmed, 1);
	assert_true(by_probe(r, 9 * SEC, "78")); /* by a connection that is not followed */
	sockets_tick(r->s, 20 * SEC);
	rig_none(r);
}

static void test_without_same_as(void **state)
{
	struct rig *r = *state;
	struct sp_event ev = announce(SEC, P_STATUS, "77");

	sockets_message(r->s, &ev, 1, false);
	rig_expect(r, ROLE_PEER, "opened");
	assert_int_equal(rig_expect(r, ROLE_ANNOUNCE, "").ns, SEC);
	assert_true(by_probe(r, SEC, "77"));
	rig_none(r);
}

/* Equal messages: as many events as messages, whichever way they come. */
static void test_repeats(void **state)
{
	struct rig *r = *state;

	for (int i = 0; i < 3; i++)
		by_socket(r, SEC + (uint64_t)i, "77");
	for (int i = 0; i < 2; i++)
		assert_true(by_probe(r, SEC + 10, "77"));
	sockets_tick(r->s, 3 * SEC);
	rig_expect(r, ROLE_PEER, "unread"); /* the third */
	rig_none(r);
	assert_true(by_probe(r, 4 * SEC, "77"));
	assert_int_equal(rig_stats(r).confirmed, 3);
	by_socket(r, 5 * SEC, "77");
	sockets_tick(r->s, 7 * SEC);
	rig_expect(r, ROLE_PEER, "unread");
	rig_none(r);
}

/* Equal messages in different states at once. */
static void test_repeats_in_two_states(void **state)
{
	struct rig *r = *state;

	assert_true(by_probe(r, SEC / 2, "1"));
	by_socket(r, SEC, "77");
	by_socket(r, SEC + SEC / 2, "77");
	by_socket(r, SEC + SEC / 2, "77");
	sockets_tick(r->s, 2 * SEC);
	rig_expect(r, ROLE_PEER, "unread"); /* the first */
	for (int i = 0; i < 3; i++)
		assert_true(by_probe(r, 2 * SEC + 1, "77"));
	sockets_tick(r->s, 9 * SEC);
	rig_none(r);
	assert_int_equal(rig_stats(r).confirmed, 3);
}

/* The end of a connection is told behind what came over it, not behind what was sent. */
static void test_end_behind_a_message(void **state)
{
	struct rig *r = *state;
	struct sp_event ev;

	conn_opens(r, 1, PID, 1, S_BOOTSTRAP);
	conn_is(r, 2, 1, S_BOOTSTRAP, SP_CONN_EOF, 0, SP_DIR_IN);
	r->n = 0;
	assert_true(by_probe(r, SEC, "77"));
	by_socket(r, SEC + 1, "77");
	assert_int_equal(rig_expect(r, ROLE_PEER, "closed").ns, SEC + 2);
	ev = announce(2 * SEC, P_SENT, "78");
	sockets_message(r->s, &ev, 1, true);
	ev.probe = P_SEND;
	assert_true(sockets_native(r->s, &ev)); /* after it */
	assert_true(sockets_native(r->s, &ev));
	ev.probe = P_SENT;
	sockets_message(r->s, &ev, 1, true); /* before it */
	sockets_message(r->s, &ev, 1, true); /* never */
	sockets_tick(r->s, 4 * SEC);
	rig_expect(r, ROLE_ANNOUNCE, "");
	rig_none(r);
}

/* The probe missed the first of two: the second's event is neither lost nor told twice. */
static void test_repeat_of_a_missed_one(void **state)
{
	struct rig *r = *state;

	by_socket(r, SEC, "77");
	sockets_tick(r->s, 2 * SEC);
	socket_told(r, 2 * SEC, "77");
	by_socket(r, 20 * SEC, "77");
	assert_true(by_probe(r, 20 * SEC + 1, "77"));
	sockets_tick(r->s, 30 * SEC);
	rig_none(r);
}

/* What the watched process sent has been sent, whether the uprobe saw it or not. */
static void test_sent(void **state)
{
	struct rig *r = *state;
	struct sp_event ev = announce(SEC, P_SENT, "77");

	assert_true(by_probe(r, SEC / 2, "1"));
	ev.probe = P_SEND;
	assert_true(sockets_native(r->s, &ev)); /* P_SEND works, too */
	ev.probe = P_SENT;
	sockets_message(r->s, &ev, 1, true);
	rig_none(r); /* the one that it has just shown; and no agent is behind it */
	sockets_message(r->s, &ev, 1, true);
	sockets_tick(r->s, 2 * SEC);
	ev = rig_expect(r, ROLE_ANNOUNCE, "");
	assert_int_equal(ev.probe, P_SENT);
	assert_int_equal(rig_stats(r).unread, 0);
	rig_none(r);
}

/* More than can wait: the oldest are told for themselves. */
static void test_bounds(void **state)
{
	struct rig *r = *state;
	char room[24];

	assert_true(by_probe(r, SEC / 2, "99999"));
	for (int i = 0; i < 8192 + 10; i++) {
		snprintf(room, sizeof(room), "%d", i);
		by_socket(r, SEC + (uint64_t)i, room);
	}
	assert_int_equal(r->n, 10);
	assert_int_equal(rig_stats(r).sockets_over, 10);
	for (int i = 0; i < 10; i++) {
		snprintf(room, sizeof(room), "%d", i);
		socket_told(r, SEC + 8192 + (uint64_t)i, room);
	}
	assert_false(by_probe(r, 2 * SEC, "9"));
	assert_true(by_probe(r, 2 * SEC, "10"));
	for (int i = 0; i < 20000; i++) { /* those that the probe alone shows */
		snprintf(room, sizeof(room), "%d", 100000 + i);
		assert_true(by_probe(r, 2 * SEC, room));
	}
	rig_none(r);
	by_socket(r, 2 * SEC, "119999"); /* still known */
	by_socket(r, 2 * SEC, "100000"); /* not any more */
	assert_int_equal(rig_stats(r).confirmed, 3);
}

static void test_forgotten_in_time(void **state)
{
	struct rig *r = *state;

	r->has[P_RECV] = false;
	by_socket(r, SEC, "77");
	socket_told(r, SEC, "77");
	sockets_tick(r->s, 601 * SEC);
	assert_true(by_probe(r, 601 * SEC, "77"));
	rig_none(r);
}

static void test_process_gone(void **state)
{
	struct rig *r = *state;

	assert_true(by_probe(r, SEC / 2, "1"));
	by_socket(r, SEC, "77");
	sockets_process_gone(r->s, PID, SEC + 1);
	sockets_tick(r->s, 3 * SEC);
	rig_none(r);
	by_socket(r, 4 * SEC, "78"); /* the same number, another process */
	sockets_tick(r->s, 6 * SEC);
	socket_told(r, 6 * SEC, "78");
}

/* Random repeats, order and delays within a second: each message gives one event. */
static void test_random(void **state)
{
	struct rig *r = *state;
	unsigned int seed = 11;
	uint64_t now = SEC;
	size_t events = 0, messages = 0;
	char room[24];

	for (int i = 0; i < 20000; i++) {
		bool first = rand_r(&seed) % 2;

		now += rand_r(&seed) % 1000000;
		snprintf(room, sizeof(room), "%d", rand_r(&seed) % 5);
		messages++;
		if (first)
			by_socket(r, now, room);
		events += by_probe(r, now + 1, room);
		if (!first)
			by_socket(r, now + 2, room);
		if (rand_r(&seed) % 50 == 0)
			sockets_tick(r->s, now);
	}
	sockets_tick(r->s, now + 100 * SEC);
	assert_int_equal(events, messages);
	rig_none(r);
	assert_int_equal(rig_stats(r).confirmed, messages);
}

#define T(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_confirmed),
		T(test_first_of_process),
		T(test_taken_in_order),
		T(test_native_first),
		T(test_what_is_equal),
		T(test_other_probes),
		T(test_unread),
		T(test_probe_that_shows_nothing),
		T(test_what_a_probe_has_shown),
		T(test_no_probe),
		T(test_socket_wins),
		T(test_without_same_as),
		T(test_repeats),
		T(test_repeats_in_two_states),
		T(test_end_behind_a_message),
		T(test_repeat_of_a_missed_one),
		T(test_sent),
		T(test_bounds),
		T(test_forgotten_in_time),
		T(test_process_gone),
		T(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
