// SPDX-License-Identifier: Apache-2.0
/*
 * The traced process of the benchmarks. Obeys lines on stdin, answers each with a line:
 *   burst FUNCTION CALLS REPEATS PAUSE_MS   the least ns a call took, over the repeats
 *   rooms RATE MS   events a second for so long, as rooms that open and end; events made, ns taken
 *   open COUNT RATE   rooms that stay open, each with a posted operation; events made
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "calls.h"

#define TEXT "7731092_kv_0_1_0" /* as long as the notification of a transfer */

static const struct {
	const char *name;
	bench_fn *fn;
} functions[] = {
	{"plain", bench_plain}, {"scalars", bench_scalars}, {"string", bench_string},
	{"nop5", bench_nop5},   {"step", bench_step},       {"poll", bench_poll},
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void sleep_until(uint64_t ns)
{
	struct timespec ts = {.tv_sec = (time_t)(ns / 1000000000u),
			      .tv_nsec = (long)(ns % 1000000000u)};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

/* Short bursts with pauses: the reader must empty its buffer, or what is measured is a full one. */
static int burst(const char *name, long calls, int repeats, long pause_ms)
{
	double least = 1e18;
	bench_fn *fn = NULL;

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (!strcmp(functions[i].name, name))
			fn = functions[i].fn;
	if (!fn || calls <= 0)
		return -1;
	for (int r = 0; r < repeats; r++) {
		uint64_t start = now_ns();
		double each;

		for (long i = 0; i < calls; i++)
			fn(1, (uint64_t)(uintptr_t)TEXT);
		each = (double)(now_ns() - start) / (double)calls;
		if (each < least)
			least = each;
		if (pause_ms)
			usleep((useconds_t)pause_ms * 1000);
	}
	printf("%.2f\n", least);
	return 0;
}

/* Large as the real ones, which are random: their memory is that of long names. */
static uint64_t next_room = 4611686018427387904u;

#define ROOM_EVENTS 5
/* One room's events: announced, KV and aux posted, both complete. */
static void one_room(uint64_t room)
{
	uint64_t op = room << 8;
	char text[64];

	bench_announce(room, (uint64_t)(uintptr_t) "10.0.0.7:41231");
	snprintf(text, sizeof(text), "%" PRIu64 "_kv_0_1_0", room);
	bench_post(op, (uint64_t)(uintptr_t)text);
	snprintf(text, sizeof(text), "%" PRIu64 "_aux", room);
	bench_post(op + 64, (uint64_t)(uintptr_t)text);
	bench_status(op, 0);
	bench_status(op + 64, 0);
}

static int rooms(uint64_t rate, uint64_t ms)
{
	uint64_t start = now_ns(), end = start + ms * 1000000u, made = 0;

	if (!rate || !ms)
		return -1;
	/* as many as are due, once a millisecond */
	for (uint64_t tick = start; tick < end; tick += 1000000u) {
		uint64_t due;

		sleep_until(tick);
		due = (tick - start) * rate / 1000000000u;
		while (made < due) {
			one_room(next_room++);
			made += ROOM_EVENTS;
		}
	}
	printf("%" PRIu64 " %" PRIu64 "\n", made, now_ns() - start);
	return 0;
}

#define OPEN_EVENTS 3
static void one_open_room(uint64_t room)
{
	char text[64];

	bench_announce(room, (uint64_t)(uintptr_t) "10.0.0.7:41231");
	snprintf(text, sizeof(text), "%" PRIu64 "_kv_0_1_0", room);
	bench_post(room << 8, (uint64_t)(uintptr_t)text);
	bench_status(room << 8, 1);
}

static int open_rooms(uint64_t count, uint64_t rate)
{
	uint64_t start = now_ns(), made = 0;

	if (!count || !rate)
		return -1;
	for (uint64_t tick = start; made < count * OPEN_EVENTS; tick += 1000000u) {
		uint64_t due;

		sleep_until(tick);
		due = (tick - start) * rate / 1000000000u;
		for (; made < due && made < count * OPEN_EVENTS; made += OPEN_EVENTS)
			one_open_room(next_room++);
	}
	printf("%" PRIu64 "\n", made);
	return 0;
}

int main(void)
{
	char line[128], name[32];
	unsigned long a, b, c;

	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		int rc = -1;

		if (sscanf(line, "burst %31s %lu %lu %lu", name, &a, &b, &c) == 4)
			rc = burst(name, (long)a, (int)b, (long)c);
		else if (sscanf(line, "rooms %lu %lu", &a, &b) == 2)
			rc = rooms(a, b);
		else if (sscanf(line, "open %lu %lu", &a, &b) == 2)
			rc = open_rooms(a, b);
		if (rc)
			puts("what?");
		fflush(stdout);
	}
	return 0;
}
