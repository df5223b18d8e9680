// SPDX-License-Identifier: Apache-2.0
/* collect/confirm.c: a message of which the uprobe saw only the end. */
#include "confirm_rig.h"

static bool cut_by_probe(struct rig *r, uint64_t ns, const char *room)
{
	struct sp_event ev = announce(ns, P_RECV, room);

	ev.tid = 77;
	ev.need = 7; /* its end was taken for that of another alternative */
	ev.flags = EV_CUT;
	return sockets_native(r->s, &ev);
}

/* The uprobe saw only the end of a message that the thread waited for at the attach. */
static void test_cut(void **state)
{
	struct rig *r = *state;

	by_socket(r, SEC, "76");
	by_socket(r, SEC, "77");
	assert_false(cut_by_probe(r, SEC + 9, "77"));
	assert_int_equal(socket_told(r, SEC + 9, "77").tid, 77);
	assert_int_equal(rig_stats(r).confirmed, 1);
	assert_true(cut_by_probe(r, SEC + 9, "78")); /* the socket did not show it */
	assert_true(cut_by_probe(r, SEC + 9, "77"));
	rig_none(r);
	assert_true(by_probe(r, SEC + 10, "76"));
	sockets_tick(r->s, 9 * SEC);
	rig_none(r);
	/* told for itself, or told unread, before the cut one comes */
	by_socket(r, 10 * SEC, "80");
	sockets_tick(r->s, 11 * SEC);
	rig_expect(r, ROLE_PEER, "unread");
	assert_false(cut_by_probe(r, 12 * SEC, "80"));
	socket_told(r, 12 * SEC, "80");
	r->has[P_RECV] = false;
	by_socket(r, 13 * SEC, "81");
	socket_told(r, 13 * SEC, "81");
	assert_false(cut_by_probe(r, 14 * SEC, "81"));
	rig_none(r);
}

/* The end of a message fits no other: its process, its probe, its role and its sender count. */
static void test_cut_of_another(void **state)
{
	struct rig *r = *state;
	struct sp_event ev;

	by_socket(r, SEC, "77");
	ev = announce(SEC, P_RECV, "77");
	ev.flags = EV_CUT;
	ev.pid++;
	assert_true(sockets_native(r->s, &ev));
	ev.pid = PID;
	ev.probe = P_SEND;
	assert_true(sockets_native(r->s, &ev));
	ev.probe = P_RECV;
	ev.role = ROLE_ABORT;
	assert_true(sockets_native(r->s, &ev));
	ev.role = ROLE_ANNOUNCE;
	strcpy(ev.agent, "b");
	assert_true(sockets_native(r->s, &ev));
	ev.agent[0] = '\0';
	strcpy(ev.peer, "10.0.0.8:1");
	assert_true(sockets_native(r->s, &ev));
	ev.peer[0] = '\0'; /* cut off, too: the room must do */
	assert_false(sockets_native(r->s, &ev));
	socket_told(r, SEC, "77");
	rig_none(r);
	/* the same agent by two addresses: equal, so the older is the one */
	by_socket(r, SEC, "78");
	ev = announce(SEC + 1, P_BOOTSTRAP, "78");
	strcpy(ev.peer, "10.0.0.9:1");
	sockets_message(r->s, &ev, 1, false);
	r->n = 0;
	ev.probe = P_RECV;
	ev.flags = EV_CUT;
	ev.agent[0] = '\0';
	assert_false(sockets_native(r->s, &ev));
	assert_string_equal(rig_expect(r, ROLE_ANNOUNCE, "").peer, ADDR);
	assert_true(by_probe(r, SEC + 2, "78"));
	sockets_tick(r->s, 9 * SEC);
	rig_none(r);
}

/* A registration has no room: its sender must fit. */
static void test_cut_without_room(void **state)
{
	struct rig *r = *state;
	struct sp_event ev = message(SEC, P_BOOTSTRAP, ROLE_REGISTER, "", "a", ADDR);

	sockets_message(r->s, &ev, 1, false);
	r->n = 0;
	ev = message(SEC, P_RECV, ROLE_REGISTER, "", "b", "10.0.0.7:5556");
	ev.flags = EV_CUT;
	assert_true(sockets_native(r->s, &ev));
	ev = message(SEC, P_RECV, ROLE_REGISTER, "", "", "10.0.0.7:5556");
	ev.flags = EV_CUT;
	assert_true(sockets_native(r->s, &ev));
	ev = message(SEC, P_RECV, ROLE_REGISTER, "", "", "");
	ev.flags = EV_CUT;
	assert_true(sockets_native(r->s, &ev));
	rig_none(r);
	ev = message(SEC, P_RECV, ROLE_REGISTER, "", "", ADDR);
	ev.flags = EV_CUT;
	assert_false(sockets_native(r->s, &ev));
	assert_string_equal(rig_expect(r, ROLE_REGISTER, "").agent, "a");
}

/* The probe's messages: [first, second, ...]. */
static void rig_message(struct rig *r, struct pattern frames[2], struct evt_match *m,
			const char *first, const char *second)
{
	char why[80];

	memset(m, 0, sizeof(*m));
	assert_int_equal(pattern_compile(&frames[0], first, true, why, sizeof(why)), 0);
	assert_int_equal(pattern_compile(&frames[1], second, true, why, sizeof(why)), 0);
	m->frames = frames;
	m->nframes = 2;
	m->frames_open = true;
	m->event.role = ROLE_ANNOUNCE;
	r->probes[P_RECV].match = m;
	r->probes[P_RECV].nmatch = 1;
}

/* Of the first message, whose first frame was read before the attach, the probe can show nothing:
 * it is told in its own time, before what the server does next. */
static void test_first_that_only_the_socket_shows(void **state)
{
	static const char *const messages[][2] = {{"{room}", "{ip:ip}"}, {"Guard", "None"}};
	struct rig *r = *state;
	struct pattern frames[2];
	struct evt_match m;

	for (uint32_t i = 0; i < 2; i++) {
		rig_message(r, frames, &m, messages[i][0], messages[i][1]);
		by_socket(r, SEC, "77");
		by_socket(r, SEC + 1, "78");
		sockets_tick(r->s, SEC - 1); /* what is as old may still come in */
		rig_none(r);
		sockets_tick(r->s, SEC);
		socket_told(r, SEC, "77");
		sockets_tick(r->s, SEC + 50 * MS);
		rig_none(r); /* the second is in no call that began before */
		assert_false(by_probe(r, SEC + 60 * MS, "77"));
		assert_true(by_probe(r, SEC + 70 * MS, "78"));
		sockets_tick(r->s, 9 * SEC);
		rig_none(r);
		sockets_process_gone(r->s, PID, 10 * SEC);
		pattern_free(&frames[0]);
		pattern_free(&frames[1]);
	}
	r->probes[P_RECV].nmatch = 0;
}

/* The probe has shown it by then, or will show its rest: it is the probe's. */
static void test_first_that_the_probe_shows(void **state)
{
	struct rig *r = *state;
	struct pattern frames[2];
	struct evt_match m;

	rig_message(r, frames, &m, "{room}", "{ip:ip}");
	by_socket(r, SEC, "77");
	assert_true(by_probe(r, SEC + 5, "77"));
	sockets_tick(r->s, 9 * SEC);
	rig_none(r);
	sockets_process_gone(r->s, PID, 10 * SEC);
	pattern_free(&frames[0]);
	pattern_free(&frames[1]);
	rig_message(r, frames, &m, "Guard", "{room}");
	by_socket(r, 11 * SEC, "77");
	sockets_tick(r->s, 11 * SEC + 900 * MS);
	rig_none(r);
	assert_true(by_probe(r, 11 * SEC + 900 * MS, "77"));
	rig_none(r);
	pattern_free(&frames[0]);
	pattern_free(&frames[1]);
	r->probes[P_RECV].nmatch = 0;
}

#define T(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_cut),
		T(test_cut_of_another),
		T(test_cut_without_room),
		T(test_first_that_only_the_socket_shows),
		T(test_first_that_the_probe_shows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
