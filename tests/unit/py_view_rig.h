/* SPDX-License-Identifier: Apache-2.0 */
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
#ifndef PY_VIEW_RIG_H
#define PY_VIEW_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static inline int rig_setup(void **state)
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

static inline int rig_teardown(void **state)
{
	struct rig *r = *state;

	pyview_free(r->v);
	free(r);
	return 0;
}

__attribute__((format(printf, 2, 3))) static inline void add(char *buf, const char *fmt, ...)
{
	size_t at = strlen(buf);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf + at, 4096 - at, fmt, ap);
	va_end(ap);
}

/* "77 r1@1 inflight=3 at5", "77 =1" (an entry), "release 77 r1@1", "5 at 77", "9 missing" */
static inline void words_of(char *buf, const struct sp_event *ev)
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

static inline void on_event(void *ctx, const struct sp_event *ev)
{
	struct rig *r = ctx;

	assert_true(ev->ns == r->ns);
	assert_int_equal(ev->pid, 42);
	words_of(r->said, ev);
}

static inline const char *upto(char *dst, size_t len, const char *s, char end)
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

static inline void parse_request(struct py_snapshot *s, int queue, const char *at)
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

static inline void parse_word(struct py_snapshot *s, const char *w)
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
static inline const char *look(struct rig *r, const char *words)
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

#endif
