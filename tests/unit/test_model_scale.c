// SPDX-License-Identifier: Apache-2.0
/* Many rooms: memory for each, time for an event, bounds that hold, and any input whatsoever. */
#include <malloc.h>
#include <time.h>

#include "model_rig.h"

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

/* A model without a recorder: what is measured is the model. */
static struct rig *quiet_rig(void)
{
	static const struct model_ops none;
	struct rig *r = rig_new();
	struct model_cfg cfg = {.profile = &r->profile};

	model_free(r->m);
	memcpy(cfg.stage_ns, r->profile.stage_ns, sizeof(cfg.stage_ns));
	r->m = model_new(&cfg, &none, r);
	assert_non_null(r->m);
	return r;
}

static void give(struct rig *r, struct sp_event *ev)
{
	assert_int_equal(model_event(r->m, ev), 0);
}

/* ev is prepared; only what differs is set */
static void open_room(struct rig *r, struct sp_event *ev, uint64_t room)
{
	sp_event_init(ev);
	ev->ns = S(1000) + room;
	ev->pid = PID;
	ev->tid = BOOT;
	ev->role = ROLE_ANNOUNCE;
	ev->need = 1;
	snprintf(ev->room, sizeof(ev->room), "%llu", 4000000000000000000ull + room);
	strcpy(ev->agent, "decode-0");
	strcpy(ev->peer, "10.0.0.7:41231");
	give(r, ev);
}

static void create_and_post(struct rig *r, struct sp_event *ev, uint64_t room, uint64_t op,
			    const char *kind, int chunk, int last)
{
	sp_event_init(ev);
	ev->ns = S(1010) + room;
	ev->pid = PID;
	ev->tid = W1 + (uint32_t)(room % 8);
	ev->role = ROLE_POST;
	ev->flags = EV_CREATED;
	ev->op = 0x7f0000000000ull + op * 64;
	strcpy(ev->kind, kind);
	ev->chunk = chunk;
	ev->last = (int8_t)last;
	ev->rank = kind[0] == 'k' ? 0 : -1;
	snprintf(ev->room, sizeof(ev->room), "%llu", 4000000000000000000ull + room);
	give(r, ev);
	ev->flags = 0;
	ev->room[0] = '\0';
	ev->status = OPS_BUSY;
	ev->code = 1;
	give(r, ev);
}

static void answer(struct rig *r, struct sp_event *ev, uint64_t room, uint64_t op)
{
	sp_event_init(ev);
	ev->ns = S(1020) + room;
	ev->pid = PID;
	ev->tid = W1 + (uint32_t)(room % 8);
	ev->role = ROLE_STATUS;
	ev->op = 0x7f0000000000ull + op * 64;
	ev->status = OPS_DONE;
	give(r, ev);
}

/* 100,000 rooms open at once, each with two chunks and aux in progress, then all of them end. */
static void test_many_rooms(void **state)
{
	const uint64_t n = SANITIZED ? 10000 : 100000;
	struct rig *r = quiet_rig();
	struct model_stats st;
	struct sp_event ev;
	size_t heap = mallinfo2().uordblks, held;
	uint64_t start = clock_ns(), spent;
	double rate;

	(void)state;
	for (uint64_t i = 0; i < n; i++)
		open_room(r, &ev, i);
	for (uint64_t i = 0; i < n; i++) {
		create_and_post(r, &ev, i, i * 3, "kv", 0, 0);
		create_and_post(r, &ev, i, i * 3 + 1, "kv", 1, 1);
		create_and_post(r, &ev, i, i * 3 + 2, "aux", -1, -1);
	}
	model_stats(r->m, &st);
	held = mallinfo2().uordblks - heap;
	assert_int_equal(st.open_lives, n);
	if (!SANITIZED)
		print_message("bench model_bytes_per_open_room %zu B reach 1024\n", held / n);
	assert_true(st.bytes / n <= 1024);
	if (!SANITIZED) {
		assert_true(held / n <= 1024);
		/* what is counted is what is held */
		assert_true(st.bytes > held / 10 * 9 && st.bytes < held / 10 * 11);
	}
	for (uint64_t i = 0; i < n; i++)
		for (uint64_t k = 0; k < 3; k++)
			answer(r, &ev, i, i * 3 + k);
	spent = clock_ns() - start;
	model_stats(r->m, &st);
	assert_int_equal(st.open_lives, 0);
	assert_int_equal(st.ended, n);
	assert_int_equal(st.events, n * 10);
	rate = (double)st.events * 1e9 / (double)spent;
	/* the machine may be busy with other things */
	if (!SANITIZED) {
		print_message("bench model_events_per_s %.0f 1/s reach 1500000\n", rate);
		assert_true(rate > 500000);
	}
	model_advance(r->m, S(5000));
	model_free(r->m);
	free(r);
}

/* The same with the server's own view of each. */
static void test_many_seen(void **state)
{
	const uint64_t n = SANITIZED ? 10000 : 50000;
	struct rig *r = quiet_rig();
	struct model_stats st;
	struct sp_event ev;

	(void)state;
	for (uint64_t i = 0; i < n; i++) {
		open_room(r, &ev, i);
		create_and_post(r, &ev, i, i * 3, "kv", 0, 0);
		create_and_post(r, &ev, i, i * 3 + 1, "kv", 1, 1);
		create_and_post(r, &ev, i, i * 3 + 2, "aux", -1, -1);
		sp_event_init(&ev);
		ev.ns = S(1010) + i;
		ev.pid = PID;
		ev.role = ROLE_HELD;
		strcpy(ev.kind, "inflight");
		ev.op = 0x7f0000000000ull + i * 64;
		ev.code = 3;
		snprintf(ev.room, sizeof(ev.room), "%llu", 4000000000000000000ull + i);
		snprintf(ev.rid, sizeof(ev.rid), "%032llx", 1ull + i);
		give(r, &ev);
	}
	model_stats(r->m, &st);
	if (!SANITIZED)
		print_message("model_bytes_per_seen_room %zu B\n", st.bytes / n);
	assert_true(st.bytes / n <= 1024 + 128);
	model_free(r->m);
	free(r);
}

/* All of them late at once, and looked at again and again. */
static void test_many_stuck(void **state)
{
	const uint64_t n = SANITIZED ? 5000 : 50000;
	struct rig *r = quiet_rig();
	struct model_stats st;
	struct sp_event ev;
	uint64_t start;

	(void)state;
	for (uint64_t i = 0; i < n; i++) {
		open_room(r, &ev, i);
		create_and_post(r, &ev, i, i, "kv", 0, 1);
	}
	start = clock_ns();
	model_advance(r->m, S(1000 + 20 * 30));
	assert_int_equal(model_stuck(r->m, CONF_LIKELY), n);
	/* 20 looks at each */
	assert_true(clock_ns() - start < (SANITIZED ? 60 : 10) * 1000000000ull);
	model_stats(r->m, &st);
	assert_int_equal(st.forgotten, 0);
	model_free(r->m);
	free(r);
}

/* Rooms that are overdue but no known pin are forgotten beyond a bound, real pins never. */
static void test_doubtful_bound(void **state)
{
	const uint64_t n = 80000;
	struct rig *r = quiet_rig();
	struct model_stats st;
	struct sp_event ev;

	(void)state;
	for (uint64_t i = 0; i < 100; i++) {
		open_room(r, &ev, i);
		create_and_post(r, &ev, i, i, "kv", 0, 1);
	}
	/* of another process, where no thread is known to be kept busy */
	for (uint64_t i = 100; i < n; i++) {
		sp_event_init(&ev);
		ev.ns = S(1001);
		ev.pid = 200;
		ev.tid = 201;
		ev.role = ROLE_ANNOUNCE;
		ev.need = 1;
		snprintf(ev.room, sizeof(ev.room), "%llu", 4000000000000000000ull + i);
		strcpy(ev.agent, "decode-0");
		give(r, &ev);
	}
	model_advance(r->m, S(2000));
	model_stats(r->m, &st);
	assert_int_equal(model_stuck(r->m, CONF_LIKELY), 100);
	assert_int_equal(st.forgotten, n - 100 - 65536);
	assert_int_equal(st.open_lives, 65536 + 100);
	model_free(r->m);
	free(r);
}

/* One room, one life, one thread, one peer cannot be made to grow for ever. */
static void test_hostile(void **state)
{
	struct rig *r = quiet_rig();
	struct model_stats st;
	struct sp_event ev;
	size_t bytes;

	(void)state;
	/* operations and chunks of one life */
	open_room(r, &ev, 1);
	for (uint64_t i = 0; i < 6000; i++)
		create_and_post(r, &ev, 1, i, "kv", (int)i, 0);
	/* peers of one life */
	for (int i = 0; i < 6000; i++) {
		sp_event_init(&ev);
		ev.ns = S(1050);
		ev.pid = PID;
		ev.tid = BOOT;
		ev.role = ROLE_ANNOUNCE;
		ev.need = 100000;
		snprintf(ev.agent, sizeof(ev.agent), "agent-%d", i);
		strcpy(ev.room, "4711");
		give(r, &ev);
	}
	/* lives of one room */
	for (int i = 0; i < 1000; i++)
		open_room(r, &ev, 2);
	/* kinds */
	for (uint64_t i = 0; i < 300; i++) {
		char kind[16];

		snprintf(kind, sizeof(kind), "k%d", (int)i);
		create_and_post(r, &ev, 3, 100000 + i, kind, 0, 0);
	}
	model_stats(r->m, &st);
	assert_true(st.open_lives < 100);
	/* threads, rooms that come and go, peers that come and go */
	for (uint64_t i = 0; i < 70000; i++) {
		sp_event_init(&ev);
		ev.ns = S(1060);
		ev.pid = PID;
		ev.tid = 1000000 + (uint32_t)i;
		ev.role = ROLE_REGISTER;
		snprintf(ev.agent, sizeof(ev.agent), "guest-%d", (int)i);
		give(r, &ev);
		ev.role = ROLE_ABORT;
		snprintf(ev.room, sizeof(ev.room), "%d", 100000 + (int)i);
		give(r, &ev);
	}
	model_stats(r->m, &st);
	bytes = st.bytes;
	for (uint64_t i = 70000; i < 200000; i++) {
		ev.role = ROLE_REGISTER;
		snprintf(ev.agent, sizeof(ev.agent), "guest-%d", (int)i);
		give(r, &ev);
		ev.role = ROLE_ABORT;
		snprintf(ev.room, sizeof(ev.room), "%d", 100000 + (int)i);
		give(r, &ev);
	}
	model_stats(r->m, &st);
	/* a hash table may still double once */
	assert_true(st.bytes < bytes + (4 << 20));
	model_advance(r->m, S(9000));
	model_free(r->m);
	free(r);
}

/* ---- any input whatsoever ------------------------------------------------------------------ */

static uint64_t rnd_state = 7;

static uint32_t rnd(uint32_t n)
{
	rnd_state = rnd_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(rnd_state >> 33) % n;
}

static void wild_text(char *buf, size_t len)
{
	size_t n = rnd(4) ? rnd(2) + 1 : rnd((uint32_t)len);

	for (size_t i = 0; i < n; i++)
		buf[i] = (char)(rnd(4) ? '0' + rnd(3) : 1 + rnd(255));
	buf[n < len ? n : len - 1] = '\0';
}

static int64_t wild_number(void)
{
	static const int64_t odd[] = {0,         1,         -1,        2,    INT32_MAX,
				      INT32_MIN, INT64_MAX, INT64_MIN, 65536};

	return rnd(3) ? (int64_t)rnd(4) - 1 : odd[rnd(9)];
}

static void wild_event(struct sp_event *ev, uint64_t *ns)
{
	memset(ev, 0, sizeof(*ev));
	switch (rnd(20)) {
	case 0:
		*ns += (uint64_t)rnd(1000) * 1000000000ull;
		break;
	case 1:
		*ns -= rnd(1000000);
		break;
	default:
		*ns += rnd(100000000);
	}
	ev->ns = rnd(5000) ? *ns : (uint64_t)wild_number() >> 8;
	ev->pid = rnd(3);
	ev->tid = rnd(4);
	ev->role = (uint8_t)(rnd(8) ? 1 + rnd(ROLE_MAX - 1) : rnd(256));
	if (rnd(4))
		ev->role = (uint8_t)(rnd(2) ? ROLE_POST : ROLE_STATUS);
	ev->status = (uint8_t)(rnd(20) ? rnd(4) : rnd(256));
	ev->flags = (uint8_t)(rnd(2) ? rnd(2) * EV_CREATED : rnd(256));
	ev->last = (int8_t)wild_number();
	ev->probe = (int16_t)wild_number();
	ev->rank = (int16_t)wild_number();
	ev->chunk = (int32_t)wild_number();
	ev->part = (int32_t)wild_number();
	ev->parts = (int32_t)wild_number();
	ev->need = (int32_t)wild_number();
	ev->covers = (uint32_t)wild_number();
	ev->code = wild_number();
	ev->op = (uint64_t)wild_number();
	wild_text(ev->room, rnd(2) ? sizeof(ev->room) : 2);
	wild_text(ev->kind, sizeof(ev->kind));
	wild_text(ev->peer, sizeof(ev->peer));
	wild_text(ev->agent, sizeof(ev->agent));
	wild_text(ev->rid, sizeof(ev->rid));
	wild_text(ev->note, sizeof(ev->note));
	if (ev->role == ROLE_POST && rnd(2))
		strcpy(ev->kind, rnd(2) ? "kv" : "aux");
	if (ev->role == ROLE_TARGET && !rnd(10))
		strcpy(ev->kind, "exited");
}

static void test_wild(void **state)
{
	(void)state;
	for (int round = 0; round < 40; round++) {
		struct rig *r = rig_new_with(round % 2);
		uint64_t ns = S(1000);
		struct model_stats st;
		struct sp_event ev;

		for (int i = 0; i < 3000; i++) {
			wild_event(&ev, &ns);
			assert_int_equal(model_event(r->m, &ev), 0);
		}
		assert_int_equal(r->taken, 3000);
		model_stats(r->m, &st);
		assert_int_equal(st.lives, st.open_lives + st.ended);
		assert_int_equal(st.ended, r->ended);
		assert_int_equal(count_said(r, ALERT_ENDED), r->ended);
		rig_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_seen),  cmocka_unit_test(test_many_rooms),
		cmocka_unit_test(test_many_stuck), cmocka_unit_test(test_doubtful_bound),
		cmocka_unit_test(test_hostile),    cmocka_unit_test(test_wild),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
