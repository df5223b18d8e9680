// SPDX-License-Identifier: Apache-2.0
/* A view of many requests: its time and memory, and what bounds them. */
#include "py_view_rig.h"

#include <time.h>

#define MANY 10000

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static void count_event(void *ctx, const struct sp_event *ev)
{
	++*(size_t *)ctx;
}

static void fill(struct py_snapshot *s, size_t from, size_t n)
{
	s->nrequest = s->nstatus = s->nannounced = n;
	for (size_t i = 0; i < n; i++) {
		struct pyview_request *q = &s->request[i];
		unsigned long long room = (from + i) * 922337203685477ull;

		*q = (struct pyview_request){.addr = 0x7f0000000000 + (from + i) * 48,
					     .queue = 2,
					     .sent = 1,
					     .total = 2};
		snprintf(q->room, sizeof(q->room), "%llu", room);
		snprintf(q->rid, sizeof(q->rid), "request-%zu", from + i);
		memcpy(s->status[i].room, q->room, sizeof(q->room));
		s->status[i].code = 3;
		memcpy(s->announced[i].room, q->room, sizeof(q->room));
		s->announced[i].seen = s->announced[i].need = 2;
	}
}

static void test_many(void **state)
{
	struct rig *r = *state;
	struct py_snapshot s = {.stable = true, .complete = true, .has_status = true};
	uint64_t best = UINT64_MAX, since, start;
	size_t events = 0;

	s.request = calloc(MANY, sizeof(*s.request));
	s.status = calloc(MANY, sizeof(*s.status));
	s.announced = calloc(MANY, sizeof(*s.announced));
	fill(&s, 0, MANY);
	for (int i = 0; i < 20; i++) {
		s.start_ns += 500 * MS;
		start = cpu_ns();
		pyview_take(r->v, &s, count_event, &events, &since);
		if (cpu_ns() - start < best)
			best = cpu_ns() - start;
	}
	assert_int_equal(events, MANY);
	assert_int_equal(pyview_requests(r->v), MANY);
	print_message("10,000 requests: %.2f ms a snapshot, %zu bytes each\n", (double)best / 1e6,
		      pyview_bytes(r->v) / MANY);
	assert_true(pyview_bytes(r->v) / MANY < 600);
	/* nothing of them is left once they have gone */
	s.nrequest = s.nstatus = s.nannounced = 0;
	for (int i = 0; i < 2; i++) {
		s.start_ns += 500 * MS;
		pyview_take(r->v, &s, count_event, &events, &since);
	}
	assert_int_equal(events, 2 * MANY);
	assert_true(pyview_bytes(r->v) < 4096);
	free(s.request);
	free(s.status);
	free(s.announced);
}

/* Requests that leave `waiting` and are never seen again are bounded; so are entries. */
static void test_bounded(void **state)
{
	struct rig *r = *state;
	struct py_snapshot s = {.stable = true, .complete = true, .has_status = true};
	size_t events = 0, most = 0;
	uint64_t since;

	s.request = calloc(MANY, sizeof(*s.request));
	s.status = calloc(70000, sizeof(*s.status));
	s.announced = calloc(MANY, sizeof(*s.announced));
	for (size_t i = 0; i < 20; i++) {
		fill(&s, i / 2 * 5000, 5000);
		s.nstatus = 0;
		for (size_t k = 0; k < 5000; k++)
			s.request[k].queue = 1;
		s.start_ns += 500 * MS;
		pyview_take(r->v, &s, count_event, &events, &since);
		if (pyview_bytes(r->v) > most)
			most = pyview_bytes(r->v);
	}
	assert_true(most < (16384 + 20000) * 500);
	pyview_reset(r->v);
	s.nrequest = s.nannounced = 0;
	s.nstatus = 70000;
	for (size_t i = 0; i < 70000; i++)
		snprintf(s.status[i].room, sizeof(s.status[i].room), "%zu", i);
	events = 0;
	for (int i = 0; i < 3; i++) {
		s.start_ns += 500 * MS;
		pyview_take(r->v, &s, count_event, &events, &since);
	}
	assert_int_equal(events, 65536);
	free(s.request);
	free(s.status);
	free(s.announced);
}

int main(void)
{
#define WITH_RIG(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		WITH_RIG(test_many),
		WITH_RIG(test_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
