// SPDX-License-Identifier: Apache-2.0
/* The recording of what sockets show: arrivals with their flags, peers that go, ends of which
 * nothing is known. */
#include "store_view_rig.h"

static struct sp_event arrival(const char *room, unsigned int flags, uint64_t ns)
{
	struct sp_event ev = make_event(ROLE_ARRIVE, room, ns);

	ev.probe = -1;
	ev.flags = (uint16_t)flags;
	snprintf(ev.peer, sizeof(ev.peer), "2.2.2.2");
	return ev;
}

static struct sp_event connection(const char *kind, const char *agent, uint64_t ns)
{
	struct sp_event ev = make_event(ROLE_PEER, "", ns);

	ev.probe = -1;
	snprintf(ev.kind, sizeof(ev.kind), "%s", kind);
	snprintf(ev.agent, sizeof(ev.agent), "%s", agent);
	snprintf(ev.peer, sizeof(ev.peer), "10.0.0.7:50123");
	return ev;
}

static void test_flags(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, true);
	struct sp_event ev = arrival("7", EV_SHARED | EV_FAKE | EV_TRACKED, START + 1);
	struct rig_life x;
	struct read_back b;

	life_init(&x, "7", 1, START);
	give(s, &x, &ev);
	ev = arrival("7", EV_TRACKED, START + 2);
	give(s, &x, &ev);
	store_close(s, START + SEC);
	b = rig_read(r);
	assert_int_equal(b.nev, 2);
	assert_int_equal(b.ev[0].flags, EV_SHARED | EV_FAKE | EV_TRACKED);
	assert_int_equal(b.ev[1].flags, EV_TRACKED);
	assert_string_equal(rig_sql(r, "SELECT json_extract(detail, '$.shared') ||"
				       " json_extract(detail, '$.fake') ||"
				       " json_extract(detail, '$.tracked') FROM events"
				       " ORDER BY time_ns LIMIT 1"),
			    "111");
	assert_string_equal(rig_sql(r, "SELECT json_type(detail, '$.fake') IS NULL FROM events"
				       " ORDER BY time_ns DESC LIMIT 1"),
			    "1");
	back_free(&b);
}

/* A life's timeline has the ends of the connections of those that announced themselves to it. */
static void test_timeline_has_its_peers(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, true);
	struct read_back b = {0};
	struct recording *rec;
	struct sp_err err = {0};
	struct sp_event ev;
	struct rig_life x;

	life_init(&x, "7", 1, START);
	ev = make_event(ROLE_ANNOUNCE, "7", START + 1);
	snprintf(ev.agent, sizeof(ev.agent), "decode-0");
	give(s, &x, &ev);
	ev = connection("closed", "decode-1", START + 2);
	store_event(s, &ev, NULL);
	ev = connection("closed", "decode-0", START + 3);
	store_event(s, &ev, NULL);
	ev.pid++;
	ev.ns = START + 4;
	store_event(s, &ev, NULL);
	store_close(s, START + SEC);
	rec = rig_open(r);
	assert_int_equal(rec_lives(rec, "7", 0, 0, back_life, &b, &err), 0);
	assert_int_equal(rec_events(rec, &b.life[0], back_event, &b, &err), 0);
	assert_int_equal(b.nev, 2);
	assert_int_equal(b.ev[1].ns, START + 3);
	assert_string_equal(b.ev[1].peer, "10.0.0.7:50123");
	assert_int_equal(b.life_no[1], 0);
	rec_close(rec);
	back_free(&b);
}

static void test_peer_alert(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, true);
	struct read_back b;
	struct model_alert a = {.type = ALERT_PEER,
				.ns = START + 1,
				.pid = 4,
				.what = "reset",
				.note = "why",
				.peer = "10.0.0.7:50123",
				.agent = "decode-0"};

	store_alert(s, &a);
	a.peer = "";
	store_alert(s, &a);
	store_close(s, START + SEC);
	b = rig_read(r);
	assert_int_equal(b.nalerts, 2);
	assert_string_equal(b.alert[0].note, "10.0.0.7:50123");
	assert_string_equal(b.alert[1].note, "decode-0");
	back_free(&b);
}

/* One that was another process's ends without an outcome: that is no reason to keep it. */
static void test_no_outcome(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, false);
	struct read_back b;
	struct rig_life x;

	for (int stuck = 0; stuck < 2; stuck++) {
		struct sp_event ev = arrival("7", EV_SHARED, START + 1);

		life_init(&x, stuck ? "8" : "7", 1, START);
		give(s, &x, &ev);
		x.l.ever_stuck = stuck;
		life_over(s, &x, OUTCOME_NONE, START + 2);
	}
	store_close(s, START + SEC);
	b = rig_read(r);
	assert_int_equal(b.nlives, 2);
	assert_int_equal(b.life[0].outcome, OUTCOME_NONE);
	assert_false(b.life[0].full);
	assert_true(b.life[1].full);
	assert_int_equal(b.nev, 1);
	assert_string_equal(rig_sql(r, "SELECT outcome IS NULL FROM rooms WHERE room = '7'"), "1");
	back_free(&b);
}

int main(void)
{
#define WITH_RIG(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		WITH_RIG(test_flags),
		WITH_RIG(test_timeline_has_its_peers),
		WITH_RIG(test_peer_alert),
		WITH_RIG(test_no_outcome),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
