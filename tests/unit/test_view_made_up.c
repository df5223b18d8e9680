// SPDX-License-Identifier: Apache-2.0
/*
 * A view against a server that is made up: requests go through bootstrap, waiting, their forward
 * pass and inflight at random times, rooms are used twice, addresses again, some requests stay for
 * ever, some lose their entry; snapshots come at random times, torn or incomplete now and then.
 * What the view says is compared with the truth at that moment.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "python/view.h"

#define MS       1000000ull
#define REQUESTS 400
#define ROOMS    300

/* HIDDEN: in a queue that the snapshot has not found */
enum place { BOOTSTRAP, WAITING, INFLIGHT, HIDDEN, FORWARD, BEFORE, ENDED };

struct request {
	uint64_t addr;
	uint64_t
		at[5]; /* ms: when it enters bootstrap, waiting, its forward pass, inflight, ends */
	uint32_t room;
	int lost; /* its entry is popped half-way through at[lost]; 0: at its end */
	/* what the last two accepted snapshots showed; the last queue */
	enum place now, before, last;
	bool entry_now, entry_before;
	bool told, released;
	int gone, no_entry; /* complete accepted snapshots since its end, its entry's */
	int told_queue;
};

struct sim {
	uint32_t seed;
	uint64_t ms;
	struct request r[REQUESTS];
	bool complete; /* the snapshot being taken */
	size_t releases, lost_told, early_releases;
};

/* xorshift, G. Marsaglia, "Xorshift RNGs", 2003 */
static uint32_t rnd(struct sim *s, uint32_t n)
{
	s->seed ^= s->seed << 13;
	s->seed ^= s->seed >> 17;
	s->seed ^= s->seed << 5;
	return s->seed % n;
}

static enum place place_of(const struct request *q, uint64_t ms)
{
	static const enum place places[] = {BOOTSTRAP, WAITING, FORWARD, INFLIGHT, ENDED};
	enum place p = BEFORE;

	for (int i = 0; i < 5; i++)
		if (ms >= q->at[i])
			p = places[i];
	return p;
}

static bool has_entry(const struct request *q, uint64_t ms)
{
	enum place p = place_of(q, ms);

	if (p == BEFORE || p == ENDED)
		return false;
	return !q->lost || ms < (q->at[q->lost] + q->at[q->lost + 1]) / 2;
}

/* The table has one entry for all requests of a room. */
static void entries_of(const struct sim *s, bool entry[ROOMS])
{
	memset(entry, 0, ROOMS * sizeof(*entry));
	for (int i = 0; i < REQUESTS; i++)
		entry[s->r[i].room] |= has_entry(&s->r[i], s->ms);
}

static void make(struct sim *s)
{
	for (int i = 0; i < REQUESTS; i++) {
		struct request *q = &s->r[i];
		uint64_t at = rnd(s, 60000);

		*q = (struct request){.now = BEFORE, .before = BEFORE, .last = BEFORE};
		q->addr = 4096 + (uint64_t)rnd(s, 40) * 64; /* few: used again */
		q->room = rnd(s, ROOMS);
		q->lost = rnd(s, 10) ? 0 : 2 + (int)rnd(s, 2); /* forward pass, inflight */
		for (int k = 0; k < 5; k++) {
			q->at[k] = at;
			at += rnd(s, rnd(s, 3) ? 3000 : 300);
		}
		if (rnd(s, 20) == 0)
			q->at[4] += 1000000; /* for ever */
	}
}

static void on_release(struct sim *s, struct request *q)
{
	s->releases++;
	assert_true(q->told && !q->released && s->complete);
	assert_true(q->last == BOOTSTRAP || q->last == INFLIGHT);
	assert_true(q->now > HIDDEN && q->before > INFLIGHT);
	q->released = true;
	q->told = false;
	if (place_of(q, s->ms) == ENDED)
		return;
	/* in its forward pass without an entry: the rules take that for its end */
	assert_int_equal(place_of(q, s->ms), FORWARD);
	assert_true(q->last == BOOTSTRAP && !q->entry_now);
	s->early_releases++;
}

static void on_held(struct sim *s, struct request *q, const struct sp_event *ev)
{
	static const char *const names[] = {"bootstrap", "waiting", "inflight"};

	q->told = true;
	q->released = false; /* it was too early, and is taken back */
	if (!ev->kind[0]) {
		q->told_queue = -1;
		assert_true(s->complete && q->now > HIDDEN && q->before > INFLIGHT);
		return;
	}
	assert_true(q->now <= INFLIGHT && q->now == q->before);
	assert_string_equal(ev->kind, names[q->now]);
	q->told_queue = (int)q->now;
	/* never without an entry unless it was so in both */
	if (ev->code == HELD_NO_ENTRY) {
		assert_true(!q->entry_now && !q->entry_before);
		s->lost_told++;
	}
}

static void on_event(void *ctx, const struct sp_event *ev)
{
	struct sim *s = ctx;
	unsigned long i = strtoul(ev->rid + 1, NULL, 10);
	char room[16];

	assert_true(ev->ns == s->ms * MS);
	if (!ev->op) {
		assert_string_equal(ev->rid, "");
		return;
	}
	assert_true(ev->rid[0] == 'r' && i < REQUESTS);
	snprintf(room, sizeof(room), "%u", s->r[i].room);
	assert_string_equal(ev->room, room);
	assert_true(ev->op == s->r[i].addr);
	if (ev->role == ROLE_RELEASE) {
		on_release(s, &s->r[i]);
		return;
	}
	assert_int_equal(ev->role, ROLE_HELD);
	on_held(s, &s->r[i], ev);
}

/* What an accepted snapshot shows of a request. */
static void note(const struct sim *s, struct request *q, enum place p, bool entry)
{
	q->before = q->now;
	q->entry_before = q->entry_now;
	q->now = p;
	q->entry_now = entry;
	if (p <= INFLIGHT)
		q->last = p;
	if (!s->complete)
		return;
	q->gone = p == ENDED ? q->gone + 1 : 0;
	q->no_entry += !entry;
}

/* hidden: a queue that was not found, -1 none. */
static void fill(struct sim *s, struct py_snapshot *sn, bool accepted, int hidden)
{
	bool entry[ROOMS];

	entries_of(s, entry);
	s->complete = sn->complete = hidden < 0;
	sn->nrequest = sn->nstatus = 0;
	for (int i = 0; i < REQUESTS; i++) {
		struct request *q = &s->r[i];
		enum place p = place_of(q, s->ms);
		struct pyview_request *out = &sn->request[sn->nrequest];

		p = (int)p == hidden ? HIDDEN : p;
		if (entry[q->room]) /* any snapshot may have seen it */
			q->no_entry = 0;
		if (accepted)
			note(s, q, p, entry[q->room]);
		/* of a torn one anything may be missing */
		if (p > INFLIGHT || (!sn->stable && rnd(s, 3) == 0))
			continue;
		*out = (struct pyview_request){
			.addr = q->addr, .queue = (int)p, .sent = -1, .total = -1};
		snprintf(out->room, sizeof(out->room), "%u", q->room);
		snprintf(out->rid, sizeof(out->rid), "r%d", i);
		sn->nrequest++;
	}
	for (uint32_t room = 0; room < ROOMS; room++) {
		if (!entry[room] || (!sn->stable && rnd(s, 3) == 0))
			continue;
		snprintf(sn->status[sn->nstatus].room, SP_ROOM_MAX, "%u", room);
		sn->status[sn->nstatus++].code = 2;
	}
}

/* What was so twice has been said, and who has gone is not remembered for long. */
static void check(struct sim *s)
{
	for (int i = 0; i < REQUESTS; i++) {
		struct request *q = &s->r[i];

		if (q->now <= INFLIGHT && q->now == q->before)
			assert_true(q->told && q->told_queue == (int)q->now);
		if (q->told && q->last == INFLIGHT)
			assert_true(q->gone < 4);
		/* the entry may be that of another request of its room */
		if (q->told && q->last == BOOTSTRAP)
			assert_true(q->gone < 2 || q->no_entry < 2);
	}
}

static void simulate(struct sim *s)
{
	struct profile_python py = {.nqueues = 3, .status = {.n = 1}};
	struct profile profile = {.python = &py};
	struct py_snapshot sn = {.has_status = true};
	struct pyview *v = pyview_new(&profile, 1);
	uint64_t since, accepted_ms = 0;

	make(s);
	snprintf(py.queue[0].name, sizeof(py.queue[0].name), "bootstrap");
	snprintf(py.queue[1].name, sizeof(py.queue[1].name), "waiting");
	snprintf(py.queue[2].name, sizeof(py.queue[2].name), "inflight");
	sn.request = calloc(REQUESTS, sizeof(*sn.request));
	sn.status = calloc(ROOMS, sizeof(*sn.status));
	while (s->ms < 90000) {
		bool accepted;

		s->ms += 1 + (rnd(s, 4) ? 100 + rnd(s, 600) : rnd(s, 60));
		sn.start_ns = s->ms * MS;
		sn.stable = rnd(s, 5) != 0;
		accepted = sn.stable && s->ms >= accepted_ms + 50;
		if (accepted)
			accepted_ms = s->ms;
		fill(s, &sn, accepted, rnd(s, 10) ? -1 : (int)rnd(s, 3));
		pyview_take(v, &sn, on_event, s, &since);
		if (accepted)
			check(s);
	}
	pyview_free(v);
	free(sn.request);
	free(sn.status);
}

static void test_against_the_truth(void **state)
{
	struct sim *s = malloc(sizeof(*s));
	size_t early_releases = 0, lost = 0;

	for (uint32_t seed = 1; seed <= 40; seed++) {
		*s = (struct sim){.seed = seed * 2654435761u, .ms = 1000};
		simulate(s);
		assert_true(s->releases > 50);
		early_releases += s->early_releases;
		lost += s->lost_told;
	}
	assert_true(lost > 0 && early_releases > 0); /* both have been tried */
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_the_truth)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
