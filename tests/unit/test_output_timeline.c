// SPDX-License-Identifier: Apache-2.0
/* Timelines to the letter, and traces. */
#include "output_rig.h"

static struct timeline_event tl_event(enum sp_role role, uint64_t ns, uint64_t op)
{
	struct timeline_event e = {.own = role != ROLE_LOSS};

	sp_event_init(&e.ev);
	e.ev.role = role;
	e.ev.ns = ns;
	e.ev.op = op;
	e.ev.tid = 4250;
	return e;
}

/* Two operations that overlap, one lost event, a silence, an alert. */
static struct timeline make_timeline(struct timeline_event ev[6], struct rec_alert *alert)
{
	uint64_t t = 600 * SEC;
	struct timeline tl = {.ev = ev, .nev = 6, .alerts = alert, .nalerts = 1};

	ev[0] = tl_event(ROLE_ANNOUNCE, t, 0);
	ev[1] = tl_event(ROLE_POST, t + 1000000, 0x10);
	ev[2] = tl_event(ROLE_POST, t + 2000000, 0x20);
	ev[3] = tl_event(ROLE_STATUS, t + 3000000, 0x10);
	ev[3].ev.status = OPS_DONE;
	ev[4] = tl_event(ROLE_LOSS, t + 4000000, 0);
	ev[4].ev.code = 3;
	ev[5] = tl_event(ROLE_STATUS, t + 5000000, 0x20);
	ev[5].ev.status = OPS_BUSY;
	*alert = (struct rec_alert){.type = ALERT_STUCK,
				    .ns = t + 35 * SEC,
				    .idle_ns = 30 * SEC,
				    .cause = CAUSE_TRANSFER_STALLED,
				    .confidence = CONF_LIKELY};
	tl.life = (struct rec_life){
		.pid = 4242,
		.life = 1,
		.room = "77",
		.stage = STAGE_INFLIGHT,
		.opened_ns = t,
		.progress_ns = t + 5000000,
		.last_ns = t + 5000000,
		.full = true,
		.stage_at = {0, t, t, t + 1000000},
		.verdict = stalled(),
	};
	tl.life.verdict.decisive_ns = t + 5000000;
	return tl;
}

static char *timeline_string(const struct timeline *tl, uint64_t now_ns)
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	timeline_text(f, tl, &session, now_ns, false);
	fclose(f);
	return text;
}

static void test_timeline(void **state)
{
	struct timeline_event ev[6];
	struct rec_alert alert;
	struct timeline tl = make_timeline(ev, &alert);
	char *text = timeline_string(&tl, 660 * SEC);

	assert_string_equal(
		text,
		"room 77  life 1  pid 4242  (p)\n"
		"  opened    2026-11-29T12:00:00.000Z\n"
		"  state     in inflight, open for 1 min 0 s, no progress for 59.9 s\n"
		"  verdict   transfer-stalled (likely), a pin\n"
		"\n"
		"   time (UTC)       +open          +before   thread  event\n"
		"-- bootstrap\n"
		"   12:00:00.000000  +0.000000                  4250  announce\n"
		"-- ready\n"
		"-- inflight, 1 ms after it opened\n"
		"   12:00:00.001000  +0.001000     0.001000     4250  post of op 0x10\n"
		"   12:00:00.002000  +0.002000     0.001000     4250  post of op 0x20\n"
		"   12:00:00.003000  +0.003000     0.001000     4250  status done of op 0x10\n"
		"~~ 12:00:00.004000  +0.004000     0.001000     4250  loss of 3 events\n"
		">> 12:00:00.005000  +0.005000     0.001000     4250  status in progress of op "
		"0x20\n"
		"   ... 34.9 s nothing ...\n"
		"!! 12:00:35.000000  +35.000000    34.995000  STUCK: transfer-stalled (likely), no "
		"progress for 30.0 s\n"
		"   ... 25.0 s nothing ...\n"
		"   12:01:00.000000  +60.000000    25.000000           end of the recording: still "
		"open\n"
		"   expected next: status DONE of op 0x7f00\n");
	free(text);
}

/* An absence decides: the line that should have come is the marked one. */
static void test_timeline_absence(void **state)
{
	struct timeline_event ev[6];
	struct rec_alert alert;
	struct timeline tl = make_timeline(ev, &alert);
	char *text;

	tl.life.verdict.decisive_ns = 0;
	text = timeline_string(&tl, 660 * SEC);
	assert_null(strstr(text, ">> 12"));
	assert_non_null(strstr(text, "\n>> expected next: status DONE of op 0x7f00\n"));
	free(text);
}

static void test_timeline_of_healthy(void **state)
{
	struct timeline tl = {.life = {.pid = 1,
				       .life = 1,
				       .room = "5\033",
				       .stage = STAGE_ENDED,
				       .opened_ns = 600 * SEC,
				       .ended_ns = 601 * SEC,
				       .outcome = OUTCOME_DONE,
				       .stage_at = {0, 600 * SEC, 600 * SEC, 600 * SEC}}};
	char *text = timeline_string(&tl, 660 * SEC);

	assert_non_null(strstr(text, "room 5\\x1b  life 1"));
	assert_non_null(strstr(text, "its timeline was not kept"));
	assert_non_null(strstr(text, "-- ended: done after 1.0 s\n"));
	assert_null(strstr(text, "expected"));
	free(text);
}

struct slice {
	double from, to;
	json_int_t tid;
};

/* Slices of one track nest or lie apart. */
static void assert_nested(const struct slice *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = i + 1; k < n; k++) {
			const struct slice *a = &s[i], *b = &s[k];

			if (a->tid != b->tid)
				continue;
			assert_true(a->to <= b->from || b->to <= a->from ||
				    (a->from <= b->from && b->to <= a->to) ||
				    (b->from <= a->from && a->to <= b->to));
		}
}

static void test_perfetto(void **state)
{
	struct timeline_event ev[6];
	struct rec_alert alert;
	struct timeline tl[2] = {make_timeline(ev, &alert), make_timeline(ev, &alert)};
	size_t len, i, n = 0, instants = 0, names = 0;
	struct slice slices[32];
	json_t *j, *events, *e;
	char *text;
	FILE *f = open_memstream(&text, &len);

	snprintf(tl[1].life.room, sizeof(tl[1].life.room), "\"\xff\n");
	timeline_perfetto(f, tl, 2, &session, 660 * SEC);
	fclose(f);
	j = json_loads(text, 0, NULL);
	assert_non_null(j);
	events = json_object_get(j, "traceEvents");
	assert_true(json_is_array(events));
	json_array_foreach(events, i, e)
	{
		const char *ph = json_string_value(json_object_get(e, "ph"));
		double ts = json_number_value(json_object_get(e, "ts"));

		instants += ph[0] == 'i';
		names += ph[0] == 'M';
		if (ph[0] != 'X')
			continue;
		assert_true(n < 32);
		slices[n++] = (struct slice){
			.from = ts,
			.to = ts + json_number_value(json_object_get(e, "dur")),
			.tid = json_integer_value(json_object_get(e, "tid")),
		};
	}
	assert_int_equal(n, 2 * (3 + 2));        /* three stages, two operations */
	assert_int_equal(instants, 2 * (6 + 1)); /* events and an alert */
	assert_int_equal(names, 2 * 3);          /* process, track, track of what overlaps */
	assert_nested(slices, n);
	json_decref(j);
	free(text);
}

/* A call that took time is a slice of its thread's track, and begins with its name. */
static void test_calls(void **state)
{
	struct timeline_event ev[3];
	char name[1][TIMELINE_NAME] = {"cu_copy"};
	struct timeline tl = {.ev = ev, .nev = 3, .probe = name, .nprobes = 1};
	size_t len;
	char *text;
	FILE *f = open_memstream(&text, &len);

	ev[0] = tl_event(ROLE_POST, 600 * SEC, 0x10);
	ev[1] = tl_event(ROLE_CALL, 600 * SEC + 9000, 0x10);
	ev[1].ev.probe = 0;
	ev[1].ev.took_ns = 5000;
	ev[1].ev.status = OPS_DONE; /* the call is, the operation is not */
	snprintf(ev[1].ev.kind, sizeof(ev[1].ev.kind), "copy");
	ev[2] = tl_event(ROLE_CALL, 601 * SEC, 0);
	ev[2].ev.probe = 1;
	snprintf(ev[2].ev.kind, sizeof(ev[2].ev.kind), "inside");
	tl.life = (struct rec_life){.pid = 4242,
				    .life = 1,
				    .room = "77",
				    .stage = STAGE_INFLIGHT,
				    .opened_ns = 600 * SEC,
				    .last_ns = 601 * SEC,
				    .full = true,
				    .stage_at = {[STAGE_INFLIGHT] = 600 * SEC}};
	timeline_perfetto(f, &tl, 1, &session, 602 * SEC);
	fclose(f);
	assert_non_null(strstr(text, "\"name\":\"cu_copy: copy, took 5.0 us\",\"cat\":\"call\","
				     "\"ts\":600000004.000,\"dur\":5.000"));
	assert_non_null(strstr(text, "still in progress"));
	assert_non_null(strstr(text, "calls of thread"));
	free(text);
	text = timeline_string(&tl, 602 * SEC);
	assert_non_null(strstr(text, "cu_copy: copy, took 5.0 us"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_timeline),
		cmocka_unit_test(test_timeline_absence),
		cmocka_unit_test(test_timeline_of_healthy),
		cmocka_unit_test(test_perfetto),
		cmocka_unit_test(test_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
