// SPDX-License-Identifier: Apache-2.0
/* What the server's own view says, in timelines and traces. */
#include "output_rig.h"

#define START (600 * SEC)

struct rig {
	struct timeline_event ev[32];
	struct timeline t;
};

static struct sp_event *add(struct rig *r, enum sp_role role, const char *kind, uint64_t ms,
			    bool own)
{
	struct timeline_event *e = &r->ev[r->t.nev++];

	e->own = own;
	sp_event_init(&e->ev);
	e->ev.role = role;
	e->ev.ns = START + ms * 1000000;
	e->ev.pid = 4242;
	snprintf(e->ev.kind, sizeof(e->ev.kind), "%s", kind);
	return &e->ev;
}

static struct sp_event *held(struct rig *r, const char *queue, int64_t code, uint64_t ms)
{
	struct sp_event *ev = add(r, ROLE_HELD, queue, ms, true);

	ev->op = 0x7f00;
	ev->code = code;
	return ev;
}

/* Through the queues, past a worker, without its entry; the view lost and found; let go. */
static void make(struct rig *r)
{
	struct sp_event *ev;

	memset(r, 0, sizeof(*r));
	r->t.ev = r->ev;
	ev = held(r, "bootstrap", 1, 0);
	ev->chunk = 1;
	ev->need = 2;
	ev->flags = EV_CUT;
	held(r, "", 2, 1000);
	ev = add(r, ROLE_POST, "kv", 1500, true);
	ev->op = 0x7f00; /* an operation's handle may be the same number */
	ev->tid = 4250;
	held(r, "inflight", 3, 2000)->tid = 4250;
	ev = held(r, "inflight", 3, 2500);
	ev->tid = 4250;
	ev->flags = EV_AT;
	ev->part = 3;
	ev->parts = 9;
	ev = add(r, ROLE_THREAD, "at", 2500, false);
	ev->tid = 4250;
	snprintf(ev->room, sizeof(ev->room), "77");
	add(r, ROLE_HELD, "", 2600, true)->code = HELD_NO_ENTRY;
	held(r, "inflight", HELD_NO_ENTRY, 3000)->flags = EV_ORPHAN;
	ev = add(r, ROLE_VIEW, "lost", 4000, false);
	snprintf(ev->note, sizeof(ev->note), "Operation not permitted");
	held(r, "inflight", HELD_UNKNOWN, 5000);
	ev = add(r, ROLE_THREAD, "missing", 5500, false);
	ev->tid = 4249;
	snprintf(ev->note, sizeof(ev->note), "*bootstrap_thread");
	ev = add(r, ROLE_THREAD, "", 5600, false);
	ev->tid = 4249;
	ev = add(r, ROLE_RELEASE, "", 6000, true);
	ev->op = 0x7f00;
	ev->flags = EV_INFERRED;
	r->t.life = (struct rec_life){.pid = 4242,
				      .life = 1,
				      .room = "77",
				      .stage = STAGE_ENDED,
				      .opened_ns = START,
				      .last_ns = START + 6 * SEC,
				      .ended_ns = START + 6 * SEC,
				      .outcome = OUTCOME_DONE,
				      .full = true,
				      .stage_at = {0, START}};
}

static void test_timeline(void **state)
{
	static const char *const want[] = {
		"         held in queue bootstrap status 1 announced by 1 of 2 (began before the "
		"attach)\n",
		"         held in no queue status 2\n",
		"   4250  post kv\n",
		"         held in queue inflight status 3 waits for thread 4250\n",
		"         held in queue inflight status 3 sent 3 of 9 thread 4250 at work on it\n",
		"         thread 4250 works on room 77\n",
		"         held in no queue without a status entry\n",
		"         held in queue inflight without a status entry waits for a thread that "
		"does "
		"not exist\n",
		"         view lost (Operation not permitted)\n",
		"         held in queue inflight\n",
		"         thread missing (*bootstrap_thread)\n",
		"   4249  thread 4249 exited\n",
		"         release (in no queue any more)\n",
	};
	struct rig r;
	char *text, *at;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	make(&r);
	timeline_text(f, &r.t, &session, START + 60 * SEC, false);
	fclose(f);
	at = text;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		at = strstr(at, want[i]);
		if (!at)
			fail_msg("%zu: %s\n%s", i, want[i], text);
	}
	free(text);
}

static void test_perfetto(void **state)
{
	static const struct {
		const char *name;
		double ms, dur;
	} want[] = {
		{"held in queue bootstrap status 1", 0, 1000},
		{"held in no queue status 2", 1000, 1000},
		{"held in queue inflight status 3", 2000, 1000},
		{"held in queue inflight without a status entry", 3000, 1000},
		{"held in queue inflight", 5000, 1000},
	};
	size_t len, i, n = 0, ops = 0, instants = 0;
	json_t *j, *e;
	struct rig r;
	char *text;
	FILE *f = open_memstream(&text, &len);

	make(&r);
	timeline_perfetto(f, &r.t, 1, &session, START + 60 * SEC);
	fclose(f);
	j = json_loads(text, 0, NULL);
	assert_non_null(j);
	json_array_foreach(json_object_get(j, "traceEvents"), i, e)
	{
		const char *cat = json_string_value(json_object_get(e, "cat"));
		double ts = json_number_value(json_object_get(e, "ts")) / 1000;
		double dur = json_number_value(json_object_get(e, "dur")) / 1000;

		instants += !strcmp(json_string_value(json_object_get(e, "ph")), "i");
		ops += cat && !strcmp(cat, "operation");
		if (!cat || strcmp(cat, "view") != 0)
			continue;
		assert_true(n < sizeof(want) / sizeof(want[0]));
		assert_string_equal(json_string_value(json_object_get(e, "name")), want[n].name);
		assert_int_equal(json_integer_value(json_object_get(e, "tid")), 9);
		assert_true(ts - (double)START / 1e6 == want[n].ms && dur == want[n].dur);
		n++;
	}
	assert_int_equal(n, sizeof(want) / sizeof(want[0]));
	assert_int_equal(ops, 1); /* the post, which the release of the request does not end */
	assert_int_equal(instants, r.t.nev);
	json_decref(j);
	free(text);
}

/* Any role, any kind, own or not: a trace stays a trace, a timeline has its lines. */
static void test_every_role(void **state)
{
	static const char *const kinds[] = {"", "at", "ok", "lost", "inflight"};
	size_t len;
	json_t *j;
	struct rig r;
	char *text;

	for (int role = ROLE_ARRIVE; role < ROLE_MAX; role++)
		for (int own = 0; own <= 1; own++) {
			FILE *f = open_memstream(&text, &len);

			make(&r);
			for (size_t k = 0; k < 5; k++)
				add(&r, role, kinds[k], 7000 + k, own)->op = k;
			timeline_perfetto(f, &r.t, 1, &session, START + 60 * SEC);
			fclose(f);
			j = json_loads(text, 0, NULL);
			assert_non_null(j);
			json_decref(j);
			free(text);
			f = open_memstream(&text, &len);
			timeline_text(f, &r.t, &session, START + 60 * SEC, false);
			fclose(f);
			assert_non_null(strstr(text, "-- ended: done after 6.0 s\n"));
			free(text);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_timeline),
		cmocka_unit_test(test_perfetto),
		cmocka_unit_test(test_every_role),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
