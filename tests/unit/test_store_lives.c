// SPDX-License-Identifier: Apache-2.0
/* The recording of lives: what is written is read back, what is healthy goes. */
#include "store_rig.h"
#include "store/buffer.h"

static void test_life_roundtrip(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, false);
	char room[SP_ROOM_MAX];
	struct rig_life x;
	struct read_back b;

	memset(room, 0xff, sizeof(room) - 1); /* no UTF-8, and as long as a room gets */
	room[sizeof(room) - 1] = '\0';
	life_init(&x, room, 4000000000u, START + 1);
	life_event(s, &x, ROLE_ANNOUNCE, START + 1);
	x.l.stage = STAGE_INFLIGHT;
	x.l.rid = "req-17";
	x.l.peer = "10.0.0.7:41231";
	x.l.observed_late = x.l.uncertain = x.l.ever_stuck = true;
	life_event(s, &x, ROLE_POST, START + 7);
	rig_flush(s, START + 8);
	stuck_verdict(&x.v);
	store_life_changed(s, &x.l);
	rig_flush(s, START + SEC);
	b = rig_read(r);
	assert_int_equal(b.nlives, 1);
	assert_string_equal(b.life[0].room, room);
	assert_int_equal(b.life[0].life, 4000000000u);
	assert_int_equal(b.life[0].stage, STAGE_INFLIGHT);
	assert_true(b.life[0].opened_ns == START + 1 && b.life[0].last_ns == START + 7);
	assert_true(b.life[0].stage_at[STAGE_BOOTSTRAP] == START + 1);
	assert_true(b.life[0].stage_at[STAGE_READY] == 0);
	assert_true(b.life[0].stage_at[STAGE_INFLIGHT] == START + 7);
	assert_true(b.life[0].observed_late && b.life[0].uncertain && b.life[0].ever_stuck);
	assert_true(b.life[0].full && !b.life[0].fake && !b.life[0].ended_ns);
	assert_string_equal(b.life[0].rid, "req-17");
	assert_string_equal(b.life[0].peer, "10.0.0.7:41231");
	assert_memory_equal(&b.life[0].verdict, &x.v, sizeof(x.v));
	assert_true(b.s.running);
	back_free(&b);
	store_close(s, START + SEC);
}

/* The verdict of a room that moves again is not its verdict; at its end the last one it had is. */
static void test_verdict_withdrawn(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, false);
	struct rig_life x;
	struct read_back b;

	life_init(&x, "1", 1, START);
	stuck_verdict(&x.v);
	x.l.ever_stuck = true;
	life_event(s, &x, ROLE_ANNOUNCE, START);
	rig_flush(s, START + 1);
	memset(&x.v, 0, sizeof(x.v));
	life_event(s, &x, ROLE_POST, START + 2);
	rig_flush(s, START + 3);
	assert_string_equal(rig_sql(r, "SELECT cause IS NULL AND confidence IS NULL FROM rooms"),
			    "1");
	b = rig_read(r);
	assert_int_equal(b.life[0].verdict.cause, CAUSE_NONE);
	back_free(&b);
	life_over(s, &x, OUTCOME_DONE, START + 4);
	store_close(s, START + 5);
	b = rig_read(r);
	assert_int_equal(b.life[0].verdict.cause, CAUSE_QUEUED_BEHIND);
	assert_true(b.life[0].full);
	assert_int_equal(b.nev, 2);
	back_free(&b);
	assert_string_equal(rig_sql(r, "SELECT cause || ' ' || confidence || ' ' || outcome || ' ' "
				       "|| stage FROM rooms"),
			    "queued-behind likely done ended");
}

/* A disk that is full for so long that rows are given up: the next row has the verdict again, and
 * where none came after it the cause at least is known. */
static void test_verdict_lost(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, false);
	struct batch *batch = batch_new(1);
	struct life_ref ref = {.verdict_sum = 17};
	struct rig_life x;
	struct read_back b;
	sqlite3 *db;

	ref.pending = batch_life(batch);
	ref.pending->ref = &ref;
	assert_int_equal(batch_trim(batch, 0), 0);
	assert_null(ref.pending);
	assert_int_equal(ref.verdict_sum, 17);
	ref.pending = batch_life(batch);
	ref.pending->ref = &ref;
	ref.pending->verdict = strdup("{}");
	assert_int_equal(batch_trim(batch, 0), 0);
	assert_int_equal(ref.verdict_sum, 0);
	batch_free(batch);

	life_init(&x, "1", 1, START);
	stuck_verdict(&x.v);
	x.l.ever_stuck = true;
	life_event(s, &x, ROLE_ANNOUNCE, START);
	store_close(s, START + 5);
	assert_int_equal(sqlite3_open(r->path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "UPDATE life SET verdict = NULL", NULL, NULL, NULL),
			 SQLITE_OK);
	sqlite3_close(db);
	b = rig_read(r);
	assert_int_equal(b.life[0].verdict.cause, CAUSE_QUEUED_BEHIND);
	assert_int_equal(b.life[0].verdict.confidence, CONF_LIKELY);
	assert_int_equal(b.life[0].verdict.nevidence, 0);
	back_free(&b);
}

static void test_which_lives_are_kept(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, false);
	struct rig_life slow, stuck, unsure;
	struct read_back b;

	one_life(s, "1", 5, OUTCOME_DONE, START); /* never reaches the file */
	one_life(s, "2", 5, OUTCOME_FAILED, START + 10);
	life_init(&slow, "3", 1, START + 20);
	life_init(&stuck, "4", 1, START + 20);
	life_init(&unsure, "5", 1, START + 20);
	for (int i = 0; i < 300; i++) {
		life_event(s, &slow, ROLE_POST, START + 30 + (uint64_t)i);
		life_event(s, &stuck, ROLE_POST, START + 30 + (uint64_t)i);
		life_event(s, &unsure, ROLE_POST, START + 30 + (uint64_t)i);
		if (i % 100 == 99)
			rig_flush(s, START + 30 + (uint64_t)i);
	}
	assert_string_equal(rig_sql(r, "SELECT count(*) FROM events"), "905");
	assert_string_equal(rig_sql(r, "SELECT count(*) FROM events WHERE room = '1'"), "0");
	stuck.l.ever_stuck = true;
	unsure.l.uncertain = true;
	life_event(s, &slow, ROLE_STATUS, START + 400); /* still in memory when it ends */
	life_over(s, &slow, OUTCOME_DONE, START + 500);
	life_over(s, &stuck, OUTCOME_DONE, START + 500);
	life_over(s, &unsure, OUTCOME_DONE, START + 500);
	store_close(s, START + SEC);
	b = rig_read(r);
	assert_int_equal(b.nlives, 5); /* a summary row of each */
	assert_int_equal(b.nev, 5 + 300 + 300);
	assert_false(b.life[0].full);
	assert_true(b.life[1].full);
	assert_false(b.life[2].full);
	assert_true(b.life[3].full && b.life[4].full);
	assert_false(b.s.complete);
	assert_true(b.s.ended && !b.s.running);
	back_free(&b);
	assert_string_equal(rig_sql(r, "SELECT outcome || last_ns FROM rooms WHERE room = '3'"),
			    "done5000000000500");
}

static void test_record_all(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, true);
	struct sp_event ev = make_event(ROLE_CALL, "", START + 50);
	struct read_back b;

	one_life(s, "1", 5, OUTCOME_DONE, START);
	rig_flush(s, START + 10);
	one_life(s, "2", 5, OUTCOME_DONE, START + 20);
	store_event(s, &ev, NULL);
	store_close(s, START + SEC);
	b = rig_read(r);
	assert_int_equal(b.nev, 11);
	assert_true(b.life[0].full && b.life[1].full);
	assert_true(b.s.complete && b.s.record_all);
	back_free(&b);
}

/* Events of no life: the watch's own and aborts stay, what comes with every healthy room does not.
 */
static void test_loose_events(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, false);
	struct read_back b;

	for (int role = ROLE_ARRIVE; role < ROLE_MAX; role++) {
		struct sp_event ev = make_event(role, "", START + (uint64_t)role);

		store_event(s, &ev, NULL);
	}
	store_close(s, START + SEC);
	b = rig_read(r);
	assert_int_equal(b.nev, 9);
	assert_int_equal(b.ev[0].role, ROLE_REGISTER);
	assert_int_equal(b.ev[1].role, ROLE_POST); /* whose it is may show later */
	assert_int_equal(b.ev[2].role, ROLE_ABORT);
	assert_int_equal(b.ev[3].role, ROLE_PEER);
	assert_int_equal(b.ev[4].role, ROLE_THREAD);
	assert_int_equal(b.ev[5].role, ROLE_TARGET);
	assert_int_equal(b.ev[6].role, ROLE_LOSS);
	assert_int_equal(b.ev[7].role, ROLE_STALL);
	assert_int_equal(b.ev[8].role, ROLE_VIEW);
	back_free(&b);
}

int main(void)
{
#define WITH_RIG(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		WITH_RIG(test_life_roundtrip),       WITH_RIG(test_verdict_withdrawn),
		WITH_RIG(test_which_lives_are_kept), WITH_RIG(test_record_all),
		WITH_RIG(test_loose_events),         WITH_RIG(test_verdict_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
