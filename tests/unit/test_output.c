// SPDX-License-Identifier: Apache-2.0
/* What people and programs read: alert lines to the letter, which of them, and times. */
#include "output_rig.h"

#include "output/filter.h"
#include "output/output.h"

static const struct alert_env env = {.profile = "sglang-nixl-prefill", .utc_offset_ns = UTC};

static struct model_life life_with(const struct model_verdict *v)
{
	return (struct model_life){
		.pid = 4242,
		.life = 1,
		.room = "9223372036854775807",
		.stage = STAGE_INFLIGHT,
		.opened_ns = 600 * SEC,
		.rid = "req-17",
		.peer = "10.0.0.7:41231",
		.verdict = v,
	};
}

static void assert_line(const struct model_alert *a, const char *want)
{
	char *line = alert_json(a, &env);
	size_t n;

	assert_non_null(line);
	n = strlen(line);
	assert_true(n && line[n - 1] == '\n');
	line[n - 1] = '\0';
	assert_string_equal(line, want);
	free(line);
}

static void test_json_stuck(void **state)
{
	struct model_verdict v = stalled();
	struct model_life l = life_with(&v);
	struct model_alert a = {
		.type = ALERT_STUCK,
		.ns = 603 * SEC + 120999999,
		.life = &l,
		.age_ns = 31 * SEC + 499999999,
		.idle_ns = 30 * SEC,
	};

	assert_line(
		&a,
		"{\"v\":1,\"type\":\"stuck\",\"time\":\"2026-11-29T12:00:03.120Z\",\"pid\":4242,"
		"\"profile\":\"sglang-nixl-prefill\",\"room\":\"9223372036854775807\","
		"\"life\":1,\"stage\":\"inflight\",\"age_s\":31.4,\"idle_s\":30.0,"
		"\"cause\":\"transfer-stalled\",\"confidence\":\"likely\",\"pin\":true,"
		"\"rid\":\"req-17\",\"peer\":\"10.0.0.7:41231\","
		"\"last\":\"post kv chunk 2 last\","
		"\"expected\":\"status DONE of op 0x7f00\",\"culprit\":null,"
		"\"evidence\":[\"op in progress for 30.0 s\",\"against: the peer is alive\"],"
		"\"uncertain\":false}");
}

/* Unknown is null, whatever it is; a culprit's parts too. */
static void test_json_nulls(void **state)
{
	struct model_verdict v = {.cause = CAUSE_QUEUED_BEHIND,
				  .confidence = CONF_POSSIBLE,
				  .pin = -1,
				  .culprit = {.set = true, .pid = 7, .room = "5"}};
	struct model_life l = life_with(&v);
	struct model_alert a = {.type = ALERT_STUCK, .ns = 600 * SEC, .life = &l};

	l.rid = l.peer = "";
	l.uncertain = true;
	assert_line(
		&a,
		"{\"v\":1,\"type\":\"stuck\",\"time\":\"2026-11-29T12:00:00.000Z\",\"pid\":4242,"
		"\"profile\":\"sglang-nixl-prefill\",\"room\":\"9223372036854775807\","
		"\"life\":1,\"stage\":\"inflight\",\"age_s\":0.0,\"idle_s\":0.0,"
		"\"cause\":\"queued-behind\",\"confidence\":\"possible\",\"pin\":null,"
		"\"rid\":null,\"peer\":null,\"last\":null,\"expected\":null,"
		"\"culprit\":{\"pid\":7,\"room\":\"5\",\"life\":null,\"tid\":null,"
		"\"state\":null},\"evidence\":[],\"uncertain\":true}");
	v.pin = 0;
	{
		char *line = alert_json(&a, &env);

		assert_non_null(strstr(line, "\"pin\":false,"));
		free(line);
	}
}

static void test_json_recovered_and_ended(void **state)
{
	struct model_verdict v = stalled(), none = {.pin = -1};
	struct model_life l = life_with(&v);
	struct model_alert a = {
		.type = ALERT_RECOVERED,
		.ns = 640 * SEC,
		.life = &l,
		.age_ns = 40 * SEC,
		.stalled_ns = 38 * SEC + 60000000,
		.outcome = OUTCOME_MOVING,
	};
	char *line = alert_json(&a, &env);
	json_t *j = json_loads(line, 0, NULL);

	assert_non_null(j);
	assert_string_equal(json_string_value(json_object_get(j, "type")), "recovered");
	assert_string_equal(json_string_value(json_object_get(j, "outcome")), "moving");
	assert_string_equal(json_string_value(json_object_get(j, "cause")), "transfer-stalled");
	assert_non_null(
		strstr(line, "\"uncertain\":false,\"stalled_s\":38.0,\"outcome\":\"moving\"}"));
	json_decref(j);
	free(line);

	a.type = ALERT_ENDED;
	a.outcome = OUTCOME_DONE;
	l.verdict = &none;
	l.stage = STAGE_ENDED;
	line = alert_json(&a, &env);
	assert_non_null(strstr(line,
			       "\"stage\":\"ended\",\"age_s\":40.0,\"idle_s\":0.0,\"cause\":null,"
			       "\"confidence\":null,\"pin\":null,"));
	assert_non_null(strstr(line, "\"uncertain\":false,\"outcome\":\"done\"}\n"));
	free(line);
}

static void test_json_others(void **state)
{
	static const char *const rooms[] = {"9223372036854775807", "a\xff"};
	struct model_alert a = {
		.type = ALERT_LOSS,
		.ns = 600 * SEC,
		.lost = 12,
		.why = "ring-full",
		.rooms = rooms,
		.nrooms = 2,
		.total_rooms = 40,
	};

	assert_line(&a,
		    "{\"v\":1,\"type\":\"loss\",\"time\":\"2026-11-29T12:00:00.000Z\",\"pid\":null,"
		    "\"profile\":\"sglang-nixl-prefill\",\"lost\":12,\"why\":\"ring-full\","
		    "\"rooms\":[\"9223372036854775807\",\"a\\\\xff\"],\"rooms_total\":40}");
	a = (struct model_alert){.type = ALERT_TARGET,
				 .ns = 600 * SEC,
				 .pid = 4242,
				 .tid = 4244,
				 .what = "thread-exited",
				 .note = "had announced 5 rooms"};
	assert_line(
		&a,
		"{\"v\":1,\"type\":\"target\",\"time\":\"2026-11-29T12:00:00.000Z\",\"pid\":4242,"
		"\"profile\":\"sglang-nixl-prefill\",\"tid\":4244,\"what\":\"thread-exited\","
		"\"note\":\"had announced 5 rooms\"}");
	a = (struct model_alert){.type = ALERT_PEER,
				 .ns = 600 * SEC,
				 .pid = 4242,
				 .what = "closed",
				 .peer = "10.0.0.7:41231",
				 .agent = "decode-0",
				 .note = "its last connection"};
	assert_line(&a,
		    "{\"v\":1,\"type\":\"peer\",\"time\":\"2026-11-29T12:00:00.000Z\",\"pid\":4242,"
		    "\"profile\":\"sglang-nixl-prefill\",\"tid\":null,\"what\":\"closed\","
		    "\"peer\":\"10.0.0.7:41231\",\"agent\":\"decode-0\","
		    "\"note\":\"its last connection\"}");
}

/* Bytes from a target never break a line, a parser or a terminal. */
static void test_hostile_bytes(void **state)
{
	struct model_verdict v = stalled();
	struct model_life l = life_with(&v);
	struct model_alert a = {.type = ALERT_STUCK, .ns = 600 * SEC, .life = &l};

	for (int c = 1; c < 256; c++) {
		char room[8], *line, *text;
		json_t *j;

		snprintf(room, sizeof(room), "r%c\"%c", c, c);
		l.room = l.rid = l.peer = room;
		snprintf(v.last, sizeof(v.last), "%s", room);
		snprintf(v.evidence[0].text, sizeof(v.evidence[0].text), "%s", room);
		line = alert_json(&a, &env);
		assert_non_null(line);
		assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
		j = json_loads(line, 0, NULL);
		assert_non_null(j);
		json_decref(j);
		free(line);
		text = alert_text(&a, &env);
		assert_non_null(text);
		for (const char *p = text; *p; p++)
			assert_true(*p == '\n' || ((unsigned char)*p >= 0x20 && *p != 0x7f));
		free(text);
	}
}

static void test_text(void **state)
{
	struct model_verdict v = stalled();
	struct model_life l = life_with(&v);
	struct model_alert a = {.type = ALERT_STUCK,
				.ns = 603 * SEC,
				.life = &l,
				.age_ns = 31 * SEC,
				.idle_ns = 30 * SEC};
	struct alert_env color = env;
	char *text;

	v.culprit = (struct model_culprit){
		.set = true, .room = "55", .tid = 4250, .state = "op 0x1 in progress"};
	text = alert_text(&a, &env);
	assert_string_equal(
		text,
		"2026-11-29T12:00:03.000Z STUCK room 9223372036854775807 (pid 4242) in inflight: "
		"transfer-stalled (likely, a pin), no progress for 30.0 s, open for 31.0 s\n"
		"    request   req-17\n"
		"    peer      10.0.0.7:41231\n"
		"    last      post kv chunk 2 last\n"
		"    expected  status DONE of op 0x7f00\n"
		"    culprit   room 55, thread 4250: op 0x1 in progress\n"
		"    + op in progress for 30.0 s\n"
		"    - the peer is alive\n");
	free(text);
	color.color = true;
	text = alert_text(&a, &color);
	assert_non_null(strstr(text, "\033[1;31mSTUCK\033[0m"));
	free(text);
	a.type = ALERT_RECOVERED;
	a.outcome = OUTCOME_FAILED;
	a.stalled_ns = 65 * SEC;
	l.life = 2;
	text = alert_text(&a, &env);
	assert_string_equal(text, "2026-11-29T12:00:03.000Z ENDED room 9223372036854775807 life 2 "
				  "(pid 4242): failed after a stall of 1 min 5 s (was "
				  "transfer-stalled)\n");
	free(text);
	a.outcome = OUTCOME_NONE;
	text = alert_text(&a, &env);
	assert_non_null(strstr(text, "ENDED room"));
	assert_non_null(strstr(text, ": no more is known of it after a stall of"));
	free(text);
	a = (struct model_alert){.type = ALERT_PEER,
				 .ns = 603 * SEC,
				 .pid = 1,
				 .what = "reset",
				 .note = "timed out",
				 .peer = "10.0.0.7:1",
				 .agent = "decode\x01"};
	text = alert_text(&a, &env);
	assert_string_equal(text, "2026-11-29T12:00:03.000Z peer pid 1: reset 10.0.0.7:1 of peer "
				  "decode\\x01 (timed out)\n");
	free(text);
	a.peer = a.note = "";
	text = alert_text(&a, &env);
	assert_string_equal(text, "2026-11-29T12:00:03.000Z peer pid 1: reset of peer "
				  "decode\\x01\n");
	free(text);
	a = (struct model_alert){.type = ALERT_TARGET, .ns = 603 * SEC, .pid = 1, .what = "exited"};
	text = alert_text(&a, &env);
	assert_string_equal(text, "2026-11-29T12:00:03.000Z target pid 1: exited\n");
	free(text);
}

static bool wants_stuck(struct filter *f, enum sp_cause cause, enum sp_confidence confidence)
{
	struct model_verdict v = stalled();
	struct model_life l = life_with(&v);
	struct model_alert a = {.type = ALERT_STUCK, .ns = SEC, .life = &l};

	v.cause = cause;
	v.confidence = confidence;
	return filter_wants(f, &a);
}

static void test_filter_of_stuck(void **state)
{
	struct filter *f = filter_new(CONF_LIKELY, false);

	(void)state;
	assert_false(wants_stuck(f, CAUSE_AUX_MISSING, CONF_POSSIBLE));
	assert_true(wants_stuck(f, CAUSE_AUX_MISSING, CONF_LIKELY));
	assert_false(wants_stuck(f, CAUSE_AUX_MISSING, CONF_LIKELY));
	assert_false(wants_stuck(f, CAUSE_AUX_MISSING, CONF_CERTAIN));
	assert_false(wants_stuck(f, CAUSE_AUX_MISSING, CONF_CERTAIN));
	assert_false(wants_stuck(f, CAUSE_AUX_MISSING, CONF_LIKELY));
	assert_true(wants_stuck(f, CAUSE_STATUS_LOST, CONF_LIKELY));
	assert_false(wants_stuck(f, CAUSE_AUX_MISSING, CONF_POSSIBLE));
	filter_free(f);
}

static bool wants(struct filter *f, uint32_t pid, const char *what)
{
	struct model_alert a = {.type = ALERT_TARGET, .ns = SEC, .pid = pid, .what = what};

	return filter_wants(f, &a);
}

/* What a server starts by the thousand (nvidia-smi, ldconfig) is not said. */
static void test_filter_of_processes(void **state)
{
	struct filter *f = filter_new(CONF_LIKELY, false);

	(void)state;
	assert_false(wants(f, 7, "exec"));
	assert_false(wants(f, 7, "exited"));
	assert_true(wants(f, 8, "attached"));
	assert_true(wants(f, 8, "lib"));
	assert_true(wants(f, 8, "exec"));
	assert_true(wants(f, 8, "exited"));
	assert_false(wants(f, 8, "exited")); /* another process by now */
	assert_true(wants(f, 9, "lib"));
	assert_true(wants(f, 9, "exited"));
	assert_true(wants(f, 10, "thread-exited"));
	filter_free(f);
	f = filter_new(CONF_LIKELY, true);
	assert_true(wants(f, 7, "exec"));
	assert_true(wants(f, 7, "exited"));
	assert_true(wants(f, 8, "attached"));
	filter_free(f);
}

static void assert_span(uint64_t ns, const char *want)
{
	char buf[32];

	time_span(ns, buf, sizeof(buf));
	assert_string_equal(buf, want);
}

static void test_times(void **state)
{
	char buf[32];

	assert_span(0, "0 ns");
	assert_span(1500, "1 us");
	assert_span(140 * 1000000ull, "140 ms");
	assert_span(999999999, "999 ms");
	assert_span(31 * SEC + 499999999, "31.4 s");
	assert_span(123 * SEC, "2 min 3 s");
	assert_span(3 * 3600 * SEC + 300 * SEC, "3 h 5 min");
	assert_span(50 * 3600 * SEC, "2 d 2 h");
	time_utc(0, 0, buf);
	assert_string_equal(buf, "1970-01-01T00:00:00.000Z");
	time_utc(UINT64_MAX, 0, buf); /* a damaged recording */
	assert_true(strlen(buf) < sizeof(buf));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json_stuck),
		cmocka_unit_test(test_json_nulls),
		cmocka_unit_test(test_json_recovered_and_ended),
		cmocka_unit_test(test_json_others),
		cmocka_unit_test(test_hostile_bytes),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_filter_of_stuck),
		cmocka_unit_test(test_filter_of_processes),
		cmocka_unit_test(test_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
