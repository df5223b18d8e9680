// SPDX-License-Identifier: Apache-2.0
/*
 * A view as sequences of snapshots. A snapshot is written as words:
 *
 *   b:ROOM:RID:ADDR[:SENT/TOTAL]   a request in the queue bootstrap; w: waiting; i: inflight
 *   s:ROOM=CODE                    an entry of the status table
 *   n:ROOM=SEEN/NEED               peers that announced
 *   k:ROOM=TID                     waits in the backlog of that worker; TID 0: nobody serves it
 *   at:TID=ROOM                    a worker and what it is at
 *   unannounced                    the table of announcements is there, and empty
 *   torn  partial  tableless  dead +MS    unstable; incomplete; the status table is not there; so
 * is the bootstrap thread; MS after the snapshot before, not 500
 *
 * and what it causes in the same manner, see words_of().
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "python/view.h"

#define MS  1000000ull
#define MAX 64

struct rig {
	struct profile_python py;
	struct profile profile;
	struct pyview *v;
	uint64_t ns, since;
	int rc;
	char said[4096];
};

static int rig_setup(void **state)
{
	static const char *const names[] = {"bootstrap", "waiting", "inflight"};
	struct rig *r = calloc(1, sizeof(*r));

	r->py.nqueues = 3;
	for (int i = 0; i < 3; i++)
		snprintf(r->py.queue[i].name, sizeof(r->py.queue[i].name), "%s", names[i]);
	r->py.status.n = 1;
	r->py.nthreads = 1;
	r->py.thread[0].role = PY_THREAD_BOOTSTRAP;
	snprintf(r->py.thread[0].frame, sizeof(r->py.thread[0].frame), "*bootstrap_thread");
	r->profile.python = &r->py;
	r->ns = 1000 * MS;
	r->v = pyview_new(&r->profile, 42);
	*state = r;
	return r->v ? 0 : -1;
}

static int rig_teardown(void **state)
{
	struct rig *r = *state;

	pyview_free(r->v);
	free(r);
	return 0;
}

__attribute__((format(printf, 2, 3))) static void add(char *buf, const char *fmt, ...)
{
	size_t at = strlen(buf);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf + at, 4096 - at, fmt, ap);
	va_end(ap);
}

/* "77 r1@1 inflight=3 at5", "77 =1" (an entry), "release 77 r1@1", "5 at 77", "9 missing" */
static void words_of(char *buf, const struct sp_event *ev)
{
	add(buf, "%s", buf[0] ? "; " : "");
	if (ev->role == ROLE_THREAD) {
		add(buf, "%u %s %s", ev->tid, ev->kind, ev->room);
		if (strcmp(ev->kind, "at") != 0)
			assert_string_equal(ev->note, "*bootstrap_thread");
		return;
	}
	add(buf, "%s%s ", ev->role == ROLE_RELEASE ? "release " : "", ev->room);
	if (ev->op)
		add(buf, "%s@%llu", ev->rid, (unsigned long long)ev->op);
	if (ev->role == ROLE_RELEASE) {
		assert_int_equal(ev->flags, EV_INFERRED);
		add(buf, "%s%s", ev->note[0] ? " " : "", ev->note);
		return;
	}
	assert_int_equal(ev->role, ROLE_HELD);
	add(buf, "%s%s=", ev->op ? " " : "", ev->kind);
	if (ev->code == HELD_NO_ENTRY)
		add(buf, "none");
	else if (ev->code == HELD_UNKNOWN)
		add(buf, "?");
	else
		add(buf, "%lld", (long long)ev->code);
	if (ev->tid)
		add(buf, " %s%u", ev->flags & EV_AT ? "at" : "for", ev->tid);
	add(buf, "%s%s", ev->flags & EV_ORPHAN ? " orphan" : "", ev->flags & EV_CUT ? " cut" : "");
	if (ev->chunk >= 0 || ev->need >= 0)
		add(buf, " %d/%d peers", ev->chunk, ev->need);
	if (ev->part >= 0 || ev->parts >= 0)
		add(buf, " %d/%d sent", ev->part, ev->parts);
}

static void on_event(void *ctx, const struct sp_event *ev)
{
	struct rig *r = ctx;

	assert_true(ev->ns == r->ns);
	assert_int_equal(ev->pid, 42);
	words_of(r->said, ev);
}

static const char *upto(char *dst, size_t len, const char *s, char end)
{
	size_t n = 0;

	while (*s && *s != end) {
		if (n + 1 < len)
			dst[n++] = *s;
		s++;
	}
	dst[n] = '\0';
	return *s ? s + 1 : s;
}

static void parse_request(struct py_snapshot *s, int queue, const char *at)
{
	struct pyview_request *q = &s->request[s->nrequest++];
	char addr[24], rest[64];

	*q = (struct pyview_request){.queue = queue, .sent = -1, .total = -1};
	at = upto(q->room, sizeof(q->room), at, ':');
	at = upto(q->rid, sizeof(q->rid), at, ':');
	at = upto(addr, sizeof(addr), at, ':');
	q->addr = strtoull(addr, NULL, 10);
	upto(rest, sizeof(rest), at, ' ');
	if (rest[0]) {
		q->sent = strtoll(rest, NULL, 10);
		q->total = strtoll(strchr(rest, '/') + 1, NULL, 10);
	}
}

static void parse_word(struct py_snapshot *s, const char *w)
{
	char room[SP_ROOM_MAX];
	const char *value = upto(room, sizeof(room), w + 2, '=');
	const char *slash = strchr(w, '/');

	if (!strncmp(w, "at:", 3)) {
		struct pyview_worker *x = &s->worker[s->nworker++];

		*x = (struct pyview_worker){.tid = (uint32_t)strtoul(w + 3, NULL, 10)};
		snprintf(x->room, sizeof(x->room), "%s", strchr(w, '=') + 1);
	} else if (w[0] == 'b' || w[0] == 'w' || w[0] == 'i') {
		parse_request(s, w[0] == 'b' ? 0 : w[0] == 'w' ? 1 : 2, w + 2);
	} else if (w[0] == 's') {
		struct pyview_status *x = &s->status[s->nstatus++];

		x->code = strtoll(value, NULL, 10);
		memcpy(x->room, room, sizeof(room));
	} else if (w[0] == 'n') {
		struct pyview_announced *x = &s->announced[s->nannounced++];

		x->seen = (int32_t)strtol(value, NULL, 10);
		x->need = (int32_t)strtol(slash + 1, NULL, 10);
		memcpy(x->room, room, sizeof(room));
	} else {
		struct pyview_waiting *x = &s->waiting[s->nwaiting++];

		assert_int_equal(w[0], 'k');
		x->tid = (uint32_t)strtoul(value, NULL, 10);
		x->served = x->tid != 0;
		memcpy(x->room, room, sizeof(room));
	}
}

/* Take the snapshot; what it caused is in r->said, how it was answered in r->rc. */
static const char *look(struct rig *r, const char *words)
{
	struct pyview_request request[MAX];
	struct pyview_status status[MAX];
	struct pyview_announced announced[MAX];
	struct pyview_waiting waiting[MAX];
	struct pyview_worker worker[MAX];
	struct py_snapshot s = {.stable = true,
				.complete = true,
				.has_status = r->py.status.n > 0,
				.has_backlog = true,
				.bootstrap_declared = true,
				.bootstrap_alive = true,
				.bootstrap_tid = 9,
				.request = request,
				.status = status,
				.announced = announced,
				.waiting = waiting,
				.worker = worker};
	uint64_t ms = 500;
	char word[160];

	memset(request, 0, sizeof(request));
	memset(waiting, 0, sizeof(waiting));
	while (*words) {
		words = upto(word, sizeof(word), words, ' ');
		if (!strcmp(word, "torn"))
			s.stable = false;
		else if (!strcmp(word, "partial"))
			s.complete = false;
		else if (!strcmp(word, "tableless"))
			s.has_status = s.complete = false;
		else if (!strcmp(word, "unannounced"))
			s.has_announced = true;
		else if (!strcmp(word, "dead"))
			s.bootstrap_alive = false;
		else if (word[0] == '+')
			ms = strtoull(word + 1, NULL, 10);
		else
			parse_word(&s, word);
	}
	s.has_announced |= s.nannounced > 0;
	r->ns += ms * MS;
	s.start_ns = r->ns;
	r->said[0] = '\0';
	r->rc = pyview_take(r->v, &s, on_event, r, &r->since);
	return r->said;
}

#define SAYS(words, expected) assert_string_equal(look(r, words), expected)

/* ---- confirmation -------------------------------------------------------------------------- */

static void test_twice(void **state)
{
	struct rig *r = *state;
	uint64_t first;

	SAYS("b:77:r1:1 s:77=1", "");
	assert_int_equal(r->rc, 0);
	first = r->ns;
	assert_int_equal(pyview_requests(r->v), 0);
	SAYS("b:77:r1:1 s:77=1", "77 r1@1 bootstrap=1 cut");
	assert_int_equal(r->rc, 1);
	assert_true(r->since == first);
	assert_int_equal(pyview_requests(r->v), 1);
	SAYS("b:77:r1:1 s:77=1", "");
	/* one that came later was not there when the view began */
	SAYS("b:77:r1:1 s:77=1 b:78:r2:2 s:78=1", "");
	SAYS("b:77:r1:1 s:77=1 b:78:r2:2 s:78=1", "78 r2@2 bootstrap=1");
	/* each fact on its own */
	SAYS("b:77:r1:1 s:77=2 b:78:r2:2 s:78=1", "");
	SAYS("b:77:r1:1 s:77=2 w:78:r2:2 s:78=1", "77 r1@1 bootstrap=2");
	SAYS("w:77:r1:1 s:77=2 w:78:r2:2 s:78=1", "78 r2@2 waiting=1");
	SAYS("w:77:r1:1 s:77=2 w:78:r2:2 s:78=1", "77 r1@1 waiting=2");
}

static void test_first_seen_moving(void **state)
{
	struct rig *r = *state;

	SAYS("b:77:r1:1 s:77=1", "");
	SAYS("w:77:r1:1 s:77=2", ""); /* no two agree on its queue */
	SAYS("w:77:r1:1 s:77=2", "77 r1@1 waiting=2 cut");
}

static void test_too_early(void **state)
{
	struct rig *r = *state;
	uint64_t first;

	look(r, "b:77:r1:1 s:77=1");
	first = r->ns;
	SAYS("+20 b:77:r1:1 s:77=1", "");
	assert_int_equal(r->rc, 0);
	SAYS("+20 b:77:r1:1 s:77=1", "");
	assert_int_equal(r->rc, 0);
	SAYS("+20 b:77:r1:1 s:77=1", "77 r1@1 bootstrap=1 cut");
	assert_int_equal(r->rc, 1);
	assert_true(r->since == first);
}

static void test_torn_between(void **state)
{
	struct rig *r = *state;
	uint64_t first;

	look(r, "b:77:r1:1 s:77=1");
	first = r->ns;
	SAYS("torn w:77:r1:1 i:99:r9:9 s:77=3", "");
	assert_int_equal(r->rc, -EAGAIN);
	SAYS("b:77:r1:1 s:77=1", "77 r1@1 bootstrap=1 cut");
	assert_int_equal(r->rc, 1);
	assert_true(r->since == first);
	/* what only torn ones have seen is nothing */
	SAYS("torn i:99:r9:9 s:99=1 b:77:r1:1 s:77=1", "");
	SAYS("b:77:r1:1 s:77=1", "");
}

static void test_partial(void **state)
{
	struct rig *r = *state;

	SAYS("partial b:77:r1:1 s:77=1", "");
	assert_int_equal(r->rc, -ENODATA);
	SAYS("partial b:77:r1:1 s:77=1", "77 r1@1 bootstrap=1 cut");
	assert_int_equal(r->rc, -ENODATA);
	SAYS("b:77:r1:1 s:77=1", "");
	assert_int_equal(r->rc, 0); /* the one before was not complete */
	SAYS("b:77:r1:1 s:77=1", "");
	assert_int_equal(r->rc, 1);
	for (int i = 0; i < 10; i++)
		SAYS("partial", "");
	SAYS("", "");
	SAYS("partial", "");
	SAYS("", "release 77 r1@1");
}

static void test_tableless_for_a_while(void **state)
{
	struct rig *r = *state;

	look(r, "i:77:r1:1 s:77=3");
	SAYS("i:77:r1:1 s:77=3", "77 r1@1 inflight=3 cut");
	for (int i = 0; i < 4; i++)
		SAYS("tableless i:77:r1:1", ""); /* not: without an entry */
	SAYS("i:77:r1:1 s:77=3", "");
	SAYS("i:77:r1:1", "");
	SAYS("tableless i:77:r1:1", "");
	SAYS("i:77:r1:1", "77 r1@1 inflight=none");
}

static void test_growing_numbers(void **state)
{
	struct rig *r = *state;

	look(r, "b:77:r1:1:0/9 s:77=1 n:77=0/3");
	SAYS("b:77:r1:1:2/9 s:77=1 n:77=1/3", "77 r1@1 bootstrap=1 cut 0/3 peers 0/9 sent");
	SAYS("b:77:r1:1:4/9 s:77=1 n:77=3/3", "77 r1@1 bootstrap=1 1/3 peers 2/9 sent");
	SAYS("b:77:r1:1:4/9 s:77=1 n:77=3/3", "77 r1@1 bootstrap=1 3/3 peers 4/9 sent");
	SAYS("b:77:r1:1:1/9 s:77=1", "");
	SAYS("b:77:r1:1:1/9 s:77=1", "77 r1@1 bootstrap=1 1/9 sent");
}

/* In bootstrap a room that is not in the table has no peer yet; later the table may be cleared. */
static void test_unannounced(void **state)
{
	struct rig *r = *state;

	look(r, "unannounced b:77:r1:1 s:77=1");
	SAYS("unannounced b:77:r1:1 s:77=1", "77 r1@1 bootstrap=1 cut 0/-1 peers");
	SAYS("n:77=1/1 b:77:r1:1 s:77=2", "");
	SAYS("n:77=1/1 b:77:r1:1 s:77=2", "77 r1@1 bootstrap=2 1/1 peers");
	SAYS("n:77=1/1 i:77:r1:1 s:77=2", "");
	SAYS("n:77=1/1 i:77:r1:1 s:77=2", "77 r1@1 inflight=2 1/1 peers");
	SAYS("unannounced i:77:r1:1 s:77=2", "");
	SAYS("unannounced i:77:r1:1 s:77=2", "77 r1@1 inflight=2");
}

static void test_code_on_the_move(void **state)
{
	struct rig *r = *state;

	look(r, "i:77:r1:1");
	SAYS("i:77:r1:1", "77 r1@1 inflight=none cut");
	SAYS("i:77:r1:1 s:77=2", "");
	/* it is not without an entry any more, whatever the value is */
	SAYS("i:77:r1:1 s:77=3", "77 r1@1 inflight=3");
	SAYS("i:77:r1:1 s:77=4", "");
	SAYS("i:77:r1:1", "77 r1@1 inflight=4"); /* its absence was seen once only */
	SAYS("i:77:r1:1", "77 r1@1 inflight=none");
}

static void test_value_minus_one(void **state)
{
	struct rig *r = *state;

	look(r, "i:77:r1:1 s:77=-1 s:78=-1");
	SAYS("i:77:r1:1 s:77=-1 s:78=-1", "77 r1@1 inflight=? cut");
	SAYS("s:77=-1", "");
	SAYS("s:77=-1", "77 r1@1 =?");
	SAYS("s:77=-1", "");
	SAYS("s:77=-1", "release 77 r1@1");
}

/* ---- releases ------------------------------------------------------------------------------ */

static void test_healthy(void **state)
{
	struct rig *r = *state;

	look(r, "");
	look(r, "b:77:r1:1 s:77=1");
	SAYS("b:77:r1:1 s:77=1", "77 r1@1 bootstrap=1");
	SAYS("w:77:r1:1 s:77=2", "");
	SAYS("w:77:r1:1 s:77=2", "77 r1@1 waiting=2");
	SAYS("s:77=2", ""); /* its forward pass */
	SAYS("s:77=2", "77 r1@1 =2");
	for (int i = 0; i < 50; i++)
		SAYS("s:77=2", "");
	SAYS("i:77:r1:1 s:77=3", "");
	SAYS("i:77:r1:1 s:77=3", "77 r1@1 inflight=3");
	SAYS("", "");
	SAYS("", "release 77 r1@1");
	SAYS("", "");
	assert_int_equal(pyview_requests(r->v), 0);
}

static void test_forward_pass_straight_from_bootstrap(void **state)
{
	struct rig *r = *state;

	look(r, "b:77:r1:1 s:77=1");
	look(r, "b:77:r1:1 s:77=2");
	SAYS("s:77=2", "");
	SAYS("s:77=2", "77 r1@1 =2");
	for (int i = 0; i < 20; i++)
		SAYS("s:77=2", "");
	SAYS("s:77=3", "");
	SAYS("s:77=3", "77 r1@1 =3");
	SAYS("", "");
	SAYS("", "release 77 r1@1");
}

static void test_forward_pass_then_seen_again(void **state)
{
	struct rig *r = *state;

	look(r, "b:77:r1:1 s:77=2");
	look(r, "b:77:r1:1 s:77=2");
	look(r, "s:77=2");
	SAYS("s:77=2", "77 r1@1 =2");
	SAYS("", "");
	SAYS("i:77:r1:1 s:77=3", "");
	SAYS("i:77:r1:1 s:77=3", "77 r1@1 inflight=3");
}

/* The entry is popped, the request leaves the list one snapshot later: never "without an entry". */
static void test_entry_goes_first(void **state)
{
	struct rig *r = *state;

	look(r, "i:77:r1:1 s:77=4");
	SAYS("i:77:r1:1 s:77=4", "77 r1@1 inflight=4 cut");
	SAYS("i:77:r1:1", "");
	SAYS("", "");
	SAYS("", "release 77 r1@1");
}

static void test_status_lost(void **state)
{
	struct rig *r = *state;

	look(r, "i:77:r1:1 s:77=2");
	SAYS("i:77:r1:1 s:77=2", "77 r1@1 inflight=2 cut");
	SAYS("i:77:r1:1", "");
	SAYS("i:77:r1:1", "77 r1@1 inflight=none");
	for (int i = 0; i < 100; i++)
		SAYS("i:77:r1:1", "");
	assert_int_equal(pyview_requests(r->v), 1);
}

static void test_entry_goes_last(void **state)
{
	struct rig *r = *state;

	look(r, "i:77:r1:1 s:77=4");
	look(r, "i:77:r1:1 s:77=4");
	SAYS("s:77=4", "");
	SAYS("", "");
	SAYS("", "release 77 r1@1");
}

static void test_entry_is_left(void **state)
{
	struct rig *r = *state;

	look(r, "i:77:r1:1 s:77=4");
	look(r, "i:77:r1:1 s:77=4");
	SAYS("s:77=4", "");
	SAYS("s:77=4", "77 r1@1 =4"); /* in no queue */
	SAYS("s:77=4", "");
	SAYS("s:77=4", "release 77 r1@1; 77 =4 cut");
	SAYS("s:77=4", "");
	SAYS("", "");
	SAYS("", "77 =none");
}

static void test_torn_does_not_release(void **state)
{
	struct rig *r = *state;

	look(r, "i:77:r1:1 s:77=3");
	look(r, "i:77:r1:1 s:77=3");
	SAYS("torn", "");
	SAYS("torn", "");
	SAYS("torn", "");
	SAYS("", "");
	SAYS("torn", "");
	SAYS("torn i:77:r1:1", ""); /* it is there */
	SAYS("", "");
	SAYS("torn s:77=3", ""); /* so is its entry */
	SAYS("s:77=3", "77 r1@1 =3");
	SAYS("i:77:r1:1 s:77=3", "");
	SAYS("i:77:r1:1 s:77=3", "77 r1@1 inflight=3");
}

/* An entry that only a torn one has seen was there all the same. */
static void test_torn_sees_the_entry(void **state)
{
	struct rig *r = *state;

	look(r, "b:77:r1:1 s:77=1");
	look(r, "b:77:r1:1 s:77=1");
	SAYS("", "");
	SAYS("torn s:77=1", "");
	SAYS("", "");
	SAYS("", "release 77 r1@1");
}

static void test_too_early_does_not_release(void **state)
{
	struct rig *r = *state;

	look(r, "i:77:r1:1 s:77=3");
	look(r, "i:77:r1:1 s:77=3");
	SAYS("", "");
	SAYS("+10", "");
	SAYS("+10", "");
	SAYS("+50", "release 77 r1@1");
}

/* Seen in two queues at once, or in none between them, while it moves. */
static void test_moving(void **state)
{
	struct rig *r = *state;

	look(r, "b:77:r1:1 s:77=1");
	look(r, "b:77:r1:1 s:77=1");
	SAYS("b:77:r1:1 w:77:r1:1 s:77=2", "");
	SAYS("w:77:r1:1 s:77=2", "77 r1@1 waiting=2");
	SAYS("s:77=2", "");
	SAYS("w:77:r1:1 i:77:r1:1 s:77=3", "");
	SAYS("", "");
	SAYS("i:77:r1:1 s:77=3", "");
	SAYS("i:77:r1:1 s:77=3", "77 r1@1 inflight=3");
}

static void test_waiting_is_never_released(void **state)
{
	struct rig *r = *state;

	look(r, "w:77:r1:1 s:77=2");
	look(r, "w:77:r1:1 s:77=2");
	SAYS("", "");
	SAYS("", "77 r1@1 =none");
	for (int i = 0; i < 1100; i++)
		SAYS("", "");
	SAYS("i:77:r1:1 s:77=3", "");
	SAYS("i:77:r1:1 s:77=3", "77 r1@1 inflight=3");
}

static void test_waiting_is_forgotten(void **state)
{
	struct rig *r = *state;

	look(r, "w:77:r1:1 s:77=2");
	look(r, "w:77:r1:1 s:77=2");
	look(r, "");
	look(r, "");
	for (int i = 0; i < 1198; i++)
		SAYS("", "");
	SAYS("", "release 77 r1@1 not seen for 600 s");
	SAYS("", "");
}

/* Once through the inflight list between two sights of it: nothing comes back from there. */
static void test_short_inflight(void **state)
{
	struct rig *r = *state;

	look(r, "w:77:r1:1 s:77=2");
	look(r, "w:77:r1:1 s:77=2");
	SAYS("i:77:r1:1 s:77=3", "");
	SAYS("", "");
	SAYS("", "release 77 r1@1");
}

static void test_never_confirmed(void **state)
{
	struct rig *r = *state;

	look(r, "");
	SAYS("b:77:r1:1", "");
	SAYS("i:77:r1:1", "");
	SAYS("", "");
	SAYS("", "");
	SAYS("", "");
}

static void test_two_requests_one_room(void **state)
{
	struct rig *r = *state;

	look(r, "i:77:r1:1 b:77:r2:2 s:77=1");
	SAYS("i:77:r1:1 b:77:r2:2 s:77=1", "77 r1@1 inflight=1 cut; 77 r2@2 bootstrap=1 cut");
	/* the entry is the other's */
	SAYS("b:77:r2:2 s:77=1", "");
	SAYS("b:77:r2:2 s:77=1", "release 77 r1@1");
	SAYS("", "");
	SAYS("", "release 77 r2@2");
}

static void test_retry_while_forward_pass(void **state)
{
	struct rig *r = *state;

	look(r, "b:77:r1:1 s:77=2");
	look(r, "b:77:r1:1 s:77=2");
	look(r, "b:77:r2:2 s:77=2");
	/* the first may be in its forward pass, and its entry be this one */
	SAYS("b:77:r2:2 s:77=2", "77 r1@1 =2; 77 r2@2 bootstrap=2");
	SAYS("i:77:r1:1 b:77:r2:2", "");
	SAYS("i:77:r1:1 b:77:r2:2", "77 r1@1 inflight=none; 77 r2@2 bootstrap=none");
}

static void test_address_reused(void **state)
{
	struct rig *r = *state;

	look(r, "i:77:r1:1 s:77=3");
	look(r, "i:77:r1:1 s:77=3");
	SAYS("b:78:r2:1 s:78=1", "");
	SAYS("b:78:r2:1 s:78=1", "release 77 r1@1; 78 r2@1 bootstrap=1");
	/* the same room, another request */
	SAYS("b:78:r3:1 s:78=1", "");
	SAYS("b:78:r3:1 s:78=1", "78 r2@1 =1; 78 r3@1 bootstrap=1");
}

static void test_same_request_elsewhere(void **state)
{
	struct rig *r = *state;

	look(r, "i:77:r1:1 s:77=3");
	look(r, "i:77:r1:1 s:77=3");
	SAYS("i:77:r1:2 s:77=3", "");
	SAYS("i:77:r1:2 s:77=3", "77 r1@2 inflight=3");
	SAYS("", "");
	SAYS("", "release 77 r1@2");
}

/* In an earlier queue it is a retry with the same id: the first one has its own end. */
static void test_retry_with_the_same_id(void **state)
{
	struct rig *r = *state;

	look(r, "i:77:r1:1 s:77=3");
	look(r, "i:77:r1:1 s:77=3");
	SAYS("i:77:r1:1 b:77:r1:2 s:77=3", "");
	SAYS("i:77:r1:1 b:77:r1:2 s:77=3", "77 r1@2 bootstrap=3");
	SAYS("b:77:r1:2 s:77=1", "");
	SAYS("b:77:r1:2 s:77=1", "release 77 r1@1; 77 r1@2 bootstrap=1");
}

static void test_no_table_declared(void **state)
{
	struct rig *r = *state;

	r->py.status.n = 0;
	look(r, "i:77:r1:1 b:78:r2:2");
	SAYS("i:77:r1:1 b:78:r2:2", "77 r1@1 inflight=? cut; 78 r2@2 bootstrap=? cut");
	SAYS("", "");
	SAYS("", "release 77 r1@1; 78 r2@2 =?");
	for (int i = 0; i < 100; i++)
		SAYS("", "");
}

static void test_reset(void **state)
{
	struct rig *r = *state;

	look(r, "i:77:r1:1 s:77=3 s:5=1 at:4=77");
	look(r, "i:77:r1:1 s:77=3 s:5=1 at:4=77");
	pyview_reset(r->v);
	assert_int_equal(pyview_requests(r->v), 0);
	SAYS("", "");
	assert_int_equal(r->rc, 0);
	SAYS("b:77:r1:1 s:77=1", "");
	SAYS("b:77:r1:1 s:77=1", "77 r1@1 bootstrap=1");
}

/* ---- entries, threads ---------------------------------------------------------------------- */

static void test_entries(void **state)
{
	struct rig *r = *state;

	look(r, "s:5=1 s:6=3");
	SAYS("s:5=1 s:6=4", "5 =1 cut");
	SAYS("s:5=1 s:6=4", "6 =4 cut");
	SAYS("s:5=0 s:6=4 s:7=1", "");
	SAYS("s:5=0 s:6=4", "5 =0");
	SAYS("s:6=4", "");
	SAYS("torn s:6=4", "");
	SAYS("tableless", "");
	SAYS("s:6=4", "5 =none");
	SAYS("b:6:r:1 s:6=4", "");
	SAYS("b:6:r:1 s:6=4", "6 r@1 bootstrap=4");
	SAYS("", "");
	SAYS("", "release 6 r@1");
}

static void test_worker_of_a_room(void **state)
{
	struct rig *r = *state;

	look(r, "i:77:r1:1 s:77=3 k:77=5 at:5=66");
	SAYS("i:77:r1:1 s:77=3 k:77=5 at:5=66", "5 at 66; 77 r1@1 inflight=3 for5 cut");
	SAYS("i:77:r1:1 s:77=3 at:5=77", "");
	SAYS("i:77:r1:1 s:77=3 at:5=77", "5 at 77; 77 r1@1 inflight=3 at5");
	SAYS("i:77:r1:1 s:77=3 at:5=", "");
	SAYS("i:77:r1:1 s:77=3 at:5=", "5 at ; 77 r1@1 inflight=3");
}

static void test_orphan(void **state)
{
	struct rig *r = *state;

	/* no worker at all: the profile may not fit */
	look(r, "i:77:r1:1 s:77=3 k:77=0");
	SAYS("i:77:r1:1 s:77=3 k:77=0", "77 r1@1 inflight=3 cut");
	SAYS("i:77:r1:1 s:77=3 k:77=0 at:5=", "");
	SAYS("i:77:r1:1 s:77=3 k:77=0 at:5=", "5 at ; 77 r1@1 inflight=3 orphan");
	/* another chunk of it is served */
	SAYS("i:77:r1:1 s:77=3 k:77=0 k:77=5 k:77=0 at:5=", "");
	SAYS("i:77:r1:1 s:77=3 k:77=0 k:77=5 k:77=0 at:5=", "77 r1@1 inflight=3 for5");
	SAYS("i:77:r1:1 s:77=3 at:5=77", "");
	/* seen once, between other things, it is not said */
	SAYS("i:77:r1:1 s:77=3 k:77=0 at:5=", "77 r1@1 inflight=3");
	SAYS("i:77:r1:1 s:77=3 at:5=", "");
	SAYS("i:77:r1:1 s:77=3 k:77=0 at:5=", "");
	SAYS("i:77:r1:1 s:77=3 k:77=5 at:5=", "77 r1@1 inflight=3 for5");
}

static void test_workers(void **state)
{
	struct rig *r = *state;

	look(r, "at:5=1 at:6=");
	SAYS("at:5=1 at:6=", "5 at 1; 6 at ");
	SAYS("at:5=2 at:6=", "");
	SAYS("at:5=1 at:6=", "");
	SAYS("at:5=2 at:6=", "");
	/* from room to room: not at the first any more */
	SAYS("at:5=3 at:6=", "5 at 3");
	SAYS("at:5=4", "");
	SAYS("at:5=5", "5 at 5");
	SAYS("at:5=5", "");
	SAYS("torn at:5=9", "");
	SAYS("at:5=6 at:7=", "");
	SAYS("at:7=", "7 at ");
	SAYS("", "");
}

static void test_bootstrap_thread(void **state)
{
	struct rig *r = *state;

	look(r, "dead");
	SAYS("dead", ""); /* no worker either: the names do not fit */
	SAYS("dead", "");
	SAYS("at:5= dead", "");
	SAYS("at:5= dead", "5 at ; 0 missing ");
	SAYS("at:5= dead", "");
	SAYS("dead", "");
	SAYS("at:5=", "");
	SAYS("at:5=", "9 found ");
	SAYS("at:5= dead", "");
	SAYS("at:5=", "");
	SAYS("at:5= dead", "");
	SAYS("torn at:5= dead", "");
	SAYS("at:5= dead", "9 missing ");
}

/* ---- size ---------------------------------------------------------------------------------- */

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
		WITH_RIG(test_twice),
		WITH_RIG(test_first_seen_moving),
		WITH_RIG(test_too_early),
		WITH_RIG(test_torn_between),
		WITH_RIG(test_partial),
		WITH_RIG(test_tableless_for_a_while),
		WITH_RIG(test_growing_numbers),
		WITH_RIG(test_unannounced),
		WITH_RIG(test_code_on_the_move),
		WITH_RIG(test_value_minus_one),
		WITH_RIG(test_healthy),
		WITH_RIG(test_forward_pass_straight_from_bootstrap),
		WITH_RIG(test_forward_pass_then_seen_again),
		WITH_RIG(test_entry_goes_first),
		WITH_RIG(test_status_lost),
		WITH_RIG(test_entry_goes_last),
		WITH_RIG(test_entry_is_left),
		WITH_RIG(test_torn_does_not_release),
		WITH_RIG(test_torn_sees_the_entry),
		WITH_RIG(test_too_early_does_not_release),
		WITH_RIG(test_moving),
		WITH_RIG(test_waiting_is_never_released),
		WITH_RIG(test_waiting_is_forgotten),
		WITH_RIG(test_short_inflight),
		WITH_RIG(test_never_confirmed),
		WITH_RIG(test_two_requests_one_room),
		WITH_RIG(test_retry_while_forward_pass),
		WITH_RIG(test_address_reused),
		WITH_RIG(test_same_request_elsewhere),
		WITH_RIG(test_retry_with_the_same_id),
		WITH_RIG(test_no_table_declared),
		WITH_RIG(test_reset),
		WITH_RIG(test_entries),
		WITH_RIG(test_worker_of_a_room),
		WITH_RIG(test_orphan),
		WITH_RIG(test_workers),
		WITH_RIG(test_bootstrap_thread),
		WITH_RIG(test_many),
		WITH_RIG(test_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
