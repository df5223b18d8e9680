// SPDX-License-Identifier: Apache-2.0
/* What is kept of calls without a room, and of operations whose room is not known. */
#include "store_rig.h"

static struct sp_event call_event(const char *kind, int status, uint64_t ns)
{
	struct sp_event ev = make_event(ROLE_CALL, "", ns);

	ev.status = (uint8_t)status;
	snprintf(ev.kind, sizeof(ev.kind), "%s", kind);
	return ev;
}

static void give_calls(struct store *s)
{
	static const struct {
		const char *kind;
		int status;
	} calls[] = {{"copy", OPS_DONE}, {"copy", OPS_ERROR}, {"count", 0},
		     {"inside", 0},      {"left", 0},         {"tally", 0}};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct sp_event ev = call_event(calls[i].kind, calls[i].status, START + i);

		store_event(s, &ev, NULL);
	}
}

#define KINDS "SELECT group_concat(kind) FROM (SELECT kind FROM event ORDER BY seq)"

static void test_calls_of_no_room(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, false);

	give_calls(s);
	store_close(s, START + SEC);
	assert_string_equal(rig_sql(r, KINDS), "copy,inside,left,tally");
}

static void test_all_calls(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, true);

	give_calls(s);
	store_close(s, START + SEC);
	assert_string_equal(rig_sql(r, KINDS), "copy,copy,count,inside,left,tally");
}

static void give_op(struct store *s, int role, uint64_t op, uint64_t ns)
{
	struct sp_event ev = make_event(role, "", ns);

	ev.op = op;
	store_event(s, &ev, NULL);
}

#define OPS                                                                                        \
	"SELECT group_concat(role) FROM (SELECT role || ':' || json_extract(detail, '$.op') AS "   \
	"role FROM events)"

/* Of an operation that was posted without a room all is kept; of others nothing, without a life. */
static void test_operations(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, false);

	give_op(s, ROLE_STATUS, 0x10, START);
	give_op(s, ROLE_POST, 0x20, START + 1);
	give_op(s, ROLE_STATUS, 0x20, START + 2);
	give_op(s, ROLE_CLOSE, 0x20, START + 3);
	give_op(s, ROLE_CLOSE, 0x20, START + 4); /* no more */
	give_op(s, ROLE_CLOSE, 0x10, START + 5);
	store_close(s, START + SEC);
	assert_string_equal(rig_sql(r, OPS), "post:0x20,status:0x20,close:0x20");
}

/* Ten minutes after its end nobody asks any more; unless somebody was found stuck meanwhile. */
static void test_operations_in_time(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, false);
	struct model_alert stuck = {.type = ALERT_STUCK, .ns = START + 20 * SEC, .pid = 4242};
	struct model_verdict none = {.pin = -1};
	struct rig_life x;

	life_init(&x, "7", 1, START);
	x.l.verdict = &none;
	stuck.life = &x.l;
	give_op(s, ROLE_POST, 0x10, START + 10 * SEC);
	give_op(s, ROLE_CLOSE, 0x10, START + 11 * SEC);
	give_op(s, ROLE_POST, 0x30, START + 12 * SEC); /* is open */
	rig_flush(s, START + 20 * SEC);
	store_alert(s, &stuck);
	give_op(s, ROLE_POST, 0x20, START + 30 * SEC);
	give_op(s, ROLE_CLOSE, 0x20, START + 31 * SEC);
	rig_flush(s, START + 32 * SEC);
	assert_string_equal(rig_sql(r, "SELECT count(*) FROM event"), "5");
	rig_flush(s, START + 700 * SEC);
	store_close(s, START + 701 * SEC);
	assert_string_equal(rig_sql(r, OPS), "post:0x10,close:0x10,post:0x30");
}

/* Late: recorded where it was taken, and a timeline shows when it was. */
static void test_late_event(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, true);
	struct sp_event ev = make_event(ROLE_POST, "7", START + 10);
	struct rig_life x;
	struct recording *rec;
	struct read_back b, own = {0};
	struct sp_err err = {0};

	life_init(&x, "7", 1, START + 10);
	store_event(s, &ev, &x.l);
	ev = call_event("copy", OPS_DONE, START + 5 * SEC);
	store_event(s, &ev, &x.l);
	ev.ns = START + 2 * SEC;
	ev.took_ns = SEC / 2;
	snprintf(ev.room, sizeof(ev.room), "7");
	store_event(s, &ev, &x.l);
	store_close(s, START + 6 * SEC);
	b = rig_read(r);
	assert_int_equal(b.nev, 3);
	/* the model must find the same entry */
	assert_int_equal(b.ev[2].ns, START + 5 * SEC);
	assert_int_equal(b.ev[2].took_ns, 3 * SEC + SEC / 2);
	rec = rig_open(r);
	assert_int_equal(rec_events(rec, &b.life[0], back_event, &own, &err), 0);
	assert_int_equal(own.nev, 3);
	assert_int_equal(own.ev[2].ns, START + 2 * SEC);
	assert_int_equal(own.ev[2].took_ns, SEC / 2);
	rec_close(rec);
	back_free(&b);
	back_free(&own);
	assert_string_equal(rig_sql(r, "SELECT max(json_extract(detail, '$.at_ns')) FROM events"),
			    "5002000000000");
}

int main(void)
{
#define WITH_RIG(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		WITH_RIG(test_calls_of_no_room), WITH_RIG(test_all_calls),
		WITH_RIG(test_operations),       WITH_RIG(test_operations_in_time),
		WITH_RIG(test_late_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
