// SPDX-License-Identifier: Apache-2.0
/* The recording: what is written is read back, the views keep their word. */
#include "store_rig.h"

#include <jansson.h>

#include "store/buffer.h"
#include "store/text.h"

/* ---- texts and numbers --------------------------------------------------------------------- */

static void text_roundtrip(const char *raw, const char *safe)
{
	char buf[256], back[64];

	assert_int_equal(text_safe(buf, sizeof(buf), raw), strlen(safe));
	assert_string_equal(buf, safe);
	assert_true(text_is_safe(buf) || strstr(safe, "\\x"));
	text_raw(back, sizeof(back), buf);
	assert_string_equal(back, raw);
	assert_int_equal(text_is_safe(raw), !strcmp(raw, safe));
}

static void test_text_safe(void **state)
{
	char buf[8];

	text_roundtrip("plain 9223372036854775807", "plain 9223372036854775807");
	text_roundtrip("r\xc3\xa4ume \xe2\x82\xac \xf0\x9f\x98\x80",
		       "r\xc3\xa4ume \xe2\x82\xac \xf0\x9f\x98\x80");
	text_roundtrip("a\\b", "a\\b");
	text_roundtrip("a\\x41", "a\\x5cx41"); /* reads as an escape, so it is escaped */
	text_roundtrip("\xff\xfe", "\\xff\\xfe");
	text_roundtrip("\xc3", "\\xc3");          /* cut in the middle */
	text_roundtrip("\xc0\xaf", "\\xc0\\xaf"); /* overlong */
	text_roundtrip("\xe0\x80\xaf", "\\xe0\\x80\\xaf");
	text_roundtrip("\xed\xa0\x80", "\\xed\\xa0\\x80");          /* a surrogate */
	text_roundtrip("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"); /* beyond U+10FFFF */
	text_roundtrip("\033[31mred\n", "\\x1b[31mred\\x0a");
	text_roundtrip("\xc2\x9b"
		       "31m",
		       "\\xc2\\x9b31m"); /* C1 control: CSI */
	/* cut at a whole character */
	assert_int_equal(text_safe(buf, sizeof(buf), "12345\xe2\x82\xac"), 5);
	assert_string_equal(buf, "12345");
	assert_int_equal(text_safe(buf, sizeof(buf), "1234\xff"), 4);
}

static void test_seqs(void **state)
{
	static const uint64_t numbers[] = {1, 2, 130, 16514, 16515, 1ull << 40, (1ull << 63) + 5};
	struct seqs s = {0};
	uint64_t seq = 0;
	uint32_t at = 0;

	assert_false(seqs_next(&s, &at, &seq));
	for (size_t i = 0; i < 7; i++)
		assert_true(seqs_add(&s, numbers[i]));
	for (size_t i = 0; i < 7; i++) {
		assert_true(seqs_next(&s, &at, &seq));
		assert_true(seq == numbers[i]);
	}
	assert_false(seqs_next(&s, &at, &seq));
	assert_true(s.first == 1 && s.last == numbers[6]);
	seqs_free(&s);
}

/* ---- events -------------------------------------------------------------------------------- */

static void assert_same(const struct sp_event *a, const struct sp_event *b)
{
	assert_true(a->ns == b->ns && a->op == b->op && a->code == b->code);
	assert_true(a->pid == b->pid && a->tid == b->tid && a->role == b->role);
	assert_true(a->status == b->status && a->flags == b->flags && a->last == b->last);
	assert_true(a->probe == b->probe && a->rank == b->rank && a->chunk == b->chunk);
	assert_true(a->part == b->part && a->parts == b->parts && a->need == b->need);
	assert_true(a->covers == b->covers && a->bytes == b->bytes);
	assert_true(a->took_ns == b->took_ns && a->count == b->count);
	assert_string_equal(a->object, b->object);
	assert_string_equal(a->room, b->room);
	assert_string_equal(a->kind, b->kind);
	assert_string_equal(a->peer, b->peer);
	assert_string_equal(a->agent, b->agent);
	assert_string_equal(a->rid, b->rid);
	assert_string_equal(a->note, b->note);
}

static struct sp_event full_event(void)
{
	struct sp_event ev = make_event(ROLE_POST, "9223372036854775807", START + 1);

	ev.status = OPS_ERROR;
	ev.flags = EV_CUT | EV_CREATED;
	ev.last = 1;
	ev.probe = 1;
	ev.rank = -7;
	ev.chunk = 2147483647;
	ev.part = 3;
	ev.parts = 4;
	ev.need = 5;
	ev.covers = 0x80000001u;
	ev.code = -9000000000000000000ll;
	ev.op = 0xffff800000001234ull;
	ev.bytes = 1ull << 40;
	ev.took_ns = 41 * SEC + 1;
	ev.count = UINT32_MAX;
	snprintf(ev.object, sizeof(ev.object), "stream 0x7f\xff");
	snprintf(ev.kind, sizeof(ev.kind), "%s", "state_123456789");
	memset(ev.peer, 'p', sizeof(ev.peer) - 1);
	snprintf(ev.agent, sizeof(ev.agent), "a\\x41\"'%%s");
	snprintf(ev.rid, sizeof(ev.rid), "\xff\xfe\n");
	snprintf(ev.note, sizeof(ev.note), "r\xc3\xa4ume");
	return ev;
}

static void test_event_roundtrip(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, true);
	struct sp_event full = full_event();
	struct sp_event bare = make_event(ROLE_STALL, "", START + 2);
	struct rig_life x;
	struct read_back b;

	life_init(&x, full.room, 3, START + 1);
	store_event(s, &full, &x.l);
	bare.pid = bare.tid = 0;
	bare.probe = -1;
	store_event(s, &bare, NULL);
	store_close(s, START + SEC);
	b = rig_read(r);
	assert_int_equal(b.nev, 2);
	assert_same(&b.ev[0], &full);
	assert_int_equal(b.life_no[0], 3);
	assert_same(&b.ev[1], &bare);
	assert_int_equal(b.life_no[1], 0);
	back_free(&b);
}

/* Another room in the event than the life's name (another form of the same) survives too. */
static void test_event_own_room(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, true);
	struct sp_event ev = make_event(ROLE_STATUS, "", START + 1);
	struct rig_life x;
	struct read_back b;

	life_init(&x, "77", 1, START);
	store_event(s, &ev, &x.l); /* no room of its own: the life's */
	snprintf(ev.room, sizeof(ev.room), "077");
	store_event(s, &ev, &x.l);
	store_close(s, START + SEC);
	b = rig_read(r);
	assert_int_equal(b.nev, 2);
	assert_string_equal(b.ev[0].room, "77");
	assert_string_equal(b.ev[1].room, "077");
	back_free(&b);
}

/* An event older than what came before is recorded at the time at which the model took it. */
static void test_late_event(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, true);
	struct sp_event ev = make_event(ROLE_ABORT, "5", START + 100);
	struct rig_life x;
	struct read_back b;

	store_event(s, &ev, NULL);
	ev.ns = START + 50;
	store_event(s, &ev, NULL);
	rig_flush(s, START + 200);
	store_event(s, &ev, NULL);
	life_init(&x, "6", 1, START + 300);
	ev = make_event(ROLE_ANNOUNCE, "6", START + 250);
	store_event(s, &ev, &x.l);
	store_close(s, START + SEC);
	b = rig_read(r);
	assert_int_equal(b.nev, 4);
	assert_true(b.ev[0].ns == START + 100 && b.ev[1].ns == START + 100);
	assert_true(b.ev[2].ns == START + 200 && b.ev[3].ns == START + 300);
	back_free(&b);
}

/* ---- one life's events --------------------------------------------------------------------- */

static void loose(struct store *s, enum sp_role role, const char *room, uint64_t ns)
{
	struct sp_event ev = make_event(role, room, ns);

	store_event(s, &ev, NULL);
}

static bool count_valid(void *ctx, const char *json)
{
	json_t *j = json_loads(json, 0, NULL);

	assert_non_null(j);
	assert_true(json_is_object(json_object_get(j, "detail")));
	assert_int_equal(json_object_size(j), 8);
	json_decref(j);
	++*(int *)ctx;
	return true;
}

static void test_events_of_one_life(void **state)
{
	static const enum sp_role want[] = {ROLE_ABORT, ROLE_ANNOUNCE, ROLE_LOSS, ROLE_THREAD,
					    ROLE_POST};
	struct rig *r = *state;
	struct store *s = rig_store(r, true);
	struct read_back b = {0};
	struct rig_life x, y;
	struct recording *rec;
	struct sp_err err = {0};
	int valid = 0;

	loose(s, ROLE_ABORT, "7", START + 1);        /* more than a minute before */
	loose(s, ROLE_LOSS, "", START + 1 * SEC);    /* before it opened */
	loose(s, ROLE_ABORT, "7", START + 90 * SEC); /* this one is its */
	loose(s, ROLE_ABORT, "8", START + 91 * SEC);
	life_init(&x, "7", 2, START + 100 * SEC);
	life_init(&y, "8", 1, START + 100 * SEC);
	for (int i = 0; i < 3000; i++) /* so that looking for a time has to search */
		life_event(s, &y, ROLE_POST, START + 92 * SEC + (uint64_t)i);
	life_event(s, &x, ROLE_ANNOUNCE, START + 100 * SEC);
	life_event(s, &y, ROLE_ANNOUNCE, START + 100 * SEC);
	loose(s, ROLE_LOSS, "", START + 101 * SEC);
	loose(s, ROLE_THREAD, "", START + 102 * SEC);
	life_event(s, &x, ROLE_POST, START + 103 * SEC);
	life_over(s, &x, OUTCOME_FAILED, START + 104 * SEC);
	loose(s, ROLE_LOSS, "", START + 105 * SEC); /* after its end */
	store_close(s, START + 106 * SEC);
	rec = rig_open(r);
	assert_int_equal(rec_lives(rec, "7", 4242, 2, back_life, &b, &err), 0);
	assert_int_equal(b.nlives, 1);
	assert_int_equal(rec_events(rec, &b.life[0], back_event, &b, &err), 0);
	assert_int_equal(b.nev, 5);
	for (int i = 0; i < 5; i++)
		assert_int_equal(b.ev[i].role, want[i]);
	assert_true(b.life_no[0] == 0 && b.life_no[1] == 2 && b.life_no[4] == 2);
	assert_int_equal(rec_events_json(rec, &b.life[0], count_valid, &valid, &err), 0);
	assert_int_equal(valid, 5);
	valid = 0;
	assert_int_equal(rec_events_json(rec, NULL, count_valid, &valid, &err), 0);
	assert_int_equal(valid, 3000 + 10);
	assert_int_equal(rec_lives(rec, "7", 1, 0, back_life, &b, &err), 0);
	assert_int_equal(b.nlives, 1);
	rec_close(rec);
	back_free(&b);
}

/* ---- the contract: views ------------------------------------------------------------------- */

static void test_views(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, true);
	struct sp_event ev = full_event();
	struct rig_life x;
	json_t *j;

	life_init(&x, ev.room, 1, START + 1);
	store_event(s, &ev, &x.l);
	loose(s, ROLE_STALL, "", START + 2);
	store_close(s, START + SEC);
	assert_string_equal(rig_sql(r, "PRAGMA user_version"), "4");
	assert_string_equal(rig_sql(r, "PRAGMA journal_mode"), "wal");
	assert_string_equal(
		rig_sql(r, "SELECT group_concat(name) FROM pragma_table_info('rooms')"),
		"pid,room,life,stage,opened_ns,last_ns,ended_ns,outcome,cause,confidence,"
		"uncertain");
	assert_string_equal(
		rig_sql(r, "SELECT group_concat(name) FROM pragma_table_info('events')"),
		"time_ns,pid,tid,room,life,role,probe,detail");
	assert_string_equal(rig_sql(r, "SELECT typeof(room) || ' ' || room FROM rooms"),
			    "text 9223372036854775807");
	assert_string_equal(rig_sql(r,
				    "SELECT stage || typeof(ended_ns) || typeof(outcome) || "
				    "typeof(cause) || typeof(confidence) || uncertain FROM rooms"),
			    "bootstrapnullnullnullnull0");
	assert_string_equal(rig_sql(r,
				    "SELECT time_ns || ' ' || room || ' ' || life || ' ' || role "
				    "|| ' ' || probe FROM events"),
			    "5000000000001 9223372036854775807 1 post zmq_recv");
	assert_string_equal(rig_sql(r, "SELECT typeof(room) || typeof(life) || typeof(probe) || "
				       "detail FROM events WHERE role = 'stall'"),
			    "nullnulltext{}");
	j = json_loads(rig_sql(r, "SELECT detail FROM events"), 0, NULL);
	assert_non_null(j);
	assert_string_equal(json_string_value(json_object_get(j, "op")), "0xffff800000001234");
	assert_string_equal(json_string_value(json_object_get(j, "status")), "error");
	assert_true(json_integer_value(json_object_get(j, "code")) == -9000000000000000000ll);
	assert_int_equal(json_integer_value(json_object_get(j, "chunk")), 2147483647);
	assert_int_equal(json_integer_value(json_object_get(j, "rank")), -7);
	assert_true(json_integer_value(json_object_get(j, "covers")) == 0x80000001ll);
	assert_int_equal(json_integer_value(json_object_get(j, "cut")), 1);
	assert_string_equal(json_string_value(json_object_get(j, "rid")), "\\xff\\xfe\\x0a");
	assert_null(json_object_get(j, "gap"));
	json_decref(j);
}

static void test_session(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, true);
	const struct rec_session *rs;
	struct recording *rec;
	struct read_back b;

	one_life(s, "1", 3, OUTCOME_FAILED, START);
	store_close(s, START + SEC);
	s = rig_store(r, true);
	one_life(s, "2", 4, OUTCOME_FAILED, START);
	store_close(s, START + 2 * SEC);
	b = rig_read(r); /* the latest session only */
	assert_int_equal(b.nlives, 1);
	assert_int_equal(b.nev, 4);
	assert_string_equal(b.life[0].room, "2");
	back_free(&b);
	assert_string_equal(rig_sql(r, "SELECT group_concat(room) FROM rooms"), "2");
	assert_string_equal(rig_sql(r, "SELECT count(*) FROM events"), "4");
	assert_string_equal(rig_sql(r, "SELECT count(*) FROM session WHERE length(boot_id) = 36"),
			    "2");
	rec = rig_open(r);
	rs = rec_session(rec);
	assert_int_equal(rs->id, 2);
	assert_true(rs->start_ns == START);
	assert_true(rs->end_ns == START + 2 * SEC);
	assert_true(rs->utc_offset_ns == 1700000000000000000);
	assert_string_equal(rs->profile, "rig");
	assert_string_equal(rs->probes_text, rig_file.text);
	assert_string_equal(rs->probes_path, "probes.yaml");
	assert_string_equal(rs->options, "watch -p 1");
	assert_true(rs->stage_ns[STAGE_BOOTSTRAP] == 330 * SEC);
	assert_true(rs->stage_ns[STAGE_RELEASING] == 10 * SEC);
	assert_int_equal(rs->min_confidence, CONF_LIKELY);
	assert_true(rs->ended && !rs->running && rs->complete);
	rec_close(rec);
}

static void test_alerts(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, false);
	struct model_alert a = {.type = ALERT_STUCK, .ns = START + 5, .age_ns = 5, .idle_ns = 4};
	struct rig_life x;
	struct read_back b;

	life_init(&x, "1", 1, START);
	stuck_verdict(&x.v);
	life_event(s, &x, ROLE_ANNOUNCE, START);
	a.life = &x.l;
	store_alert(s, &a);
	a = (struct model_alert){.type = ALERT_RECOVERED,
				 .ns = START + 6,
				 .life = &x.l,
				 .stalled_ns = 6,
				 .outcome = OUTCOME_MOVING};
	store_alert(s, &a);
	a = (struct model_alert){
		.type = ALERT_LOSS, .ns = START + 7, .lost = 12, .why = "ring full"};
	store_alert(s, &a);
	a = (struct model_alert){
		.type = ALERT_TARGET, .ns = START + 8, .pid = 4, .what = "exited", .note = "\x01"};
	store_alert(s, &a);
	a = (struct model_alert){.type = ALERT_ENDED, .ns = START + 9, .life = &x.l};
	store_alert(s, &a); /* the row of the life says it */
	store_close(s, START + SEC);
	b = rig_read(r);
	assert_int_equal(b.nalerts, 4);
	assert_int_equal(b.alert[0].type, ALERT_STUCK);
	assert_int_equal(b.alert[0].cause, CAUSE_QUEUED_BEHIND);
	assert_int_equal(b.alert[0].confidence, CONF_LIKELY);
	assert_true(b.alert[0].age_ns == 5 && b.alert[0].idle_ns == 4 && b.alert[0].pin == 1);
	assert_string_equal(b.alert[0].room, "1");
	assert_int_equal(b.alert[1].outcome, OUTCOME_MOVING);
	assert_int_equal(b.alert[2].lost, 12);
	assert_string_equal(b.alert[2].what, "ring full");
	assert_int_equal(b.alert[3].pin, -1);
	assert_string_equal(b.alert[3].note, "\x01");
	back_free(&b);
}

int main(void)
{
#define WITH_RIG(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text_safe),
		cmocka_unit_test(test_seqs),
		WITH_RIG(test_event_roundtrip),
		WITH_RIG(test_event_own_room),
		WITH_RIG(test_late_event),
		WITH_RIG(test_events_of_one_life),
		WITH_RIG(test_views),
		WITH_RIG(test_session),
		WITH_RIG(test_alerts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
