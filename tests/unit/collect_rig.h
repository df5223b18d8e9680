/* SPDX-License-Identifier: Apache-2.0 */
/* Records of calls, made by hand, through collect as the watch uses it. */
#ifndef COLLECT_RIG_H
#define COLLECT_RIG_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "collect/collect.h"

#define SEC  1000000000ull
#define MS   1000000ull
#define PID  10
#define MAXE 16384

enum {
	P_CREATE, /* post, created: op, room */
	P_POST,   /* a call on op: encloses */
	P_CLOSE,
	P_WORK,  /* with room: begin */
	P_DONE,  /* end */
	P_ROOM,  /* a call with a room of its own: encloses */
	P_MUTE,  /* encloses; its records say nothing: a hit that fits no alternative */
	P_COPY,  /* scope: call */
	P_SYNC,  /* scope: thread */
	P_BATCH, /* an operation of a transport that knows no rooms */
	P_FREE,  /* its end */
	P_SEND,  /* a tally's post, scope: call */
	P_RECV,  /* waits */
	P_END,   /* a key of the tally is over, but where bit 0 of the third number is set */
};

static const char rig_text[] =
	"version: 1\n"
	"profiles:\n"
	"  - name: t\n"
	"    room: {type: u64}\n"
	"    status: {done: 0, busy: 1, error: \"<0\", names: {-7: \"no such stream\"}}\n"
	"    libraries: {x: {file: \"libx*\"}}\n"
	"    probes:\n"
	"      - {name: create, library: x, symbol: create, on: return, args: [{name: op, fetch: "
	"\"$arg1\", type: x64}, {name: room, fetch: \"$arg2\", type: u64}], event: {role: post, "
	"kind: kv, created: true}}\n"
	"      - {name: post, library: x, symbol: post, on: return, args: [{name: op, fetch: "
	"\"$arg1\", type: x64}, {name: rc, fetch: \"$retval\", type: s32}], event: {role: post, "
	"error: rc}}\n"
	"      - {name: close, library: x, symbol: close, args: [{name: op, fetch: \"$arg1\", "
	"type: "
	"x64}], event: {role: close}}\n"
	"      - {name: work, library: x, symbol: work, args: [{name: room, fetch: \"$arg1\", "
	"type: "
	"u64}], event: {role: control, kind: begin, work: begin}}\n"
	"      - {name: done, library: x, symbol: done, args: [{name: room, fetch: \"$arg1\", "
	"type: "
	"u64}], event: {role: control, kind: end, work: end}}\n"
	"      - {name: room, library: x, symbol: room, on: return, args: [{name: room, fetch: "
	"\"$arg1\", type: u64}], event: {role: control, kind: step}}\n"
	"      - {name: mute, library: x, symbol: mute, on: return, args: [{name: text, fetch: "
	"\"+0($arg1)\", type: string, max: 16}], match: [{text: \"{room}!\"}], event: {role: "
	"control, kind: mute}}\n"
	"      - {name: copy, library: x, symbol: copy, on: return, scope: call, args: [{name: "
	"bytes, fetch: \"$arg2\", type: u64}, {name: stream, fetch: \"$arg3\", type: x64}, {name: "
	"rc, fetch: \"$retval\", type: s32}], event: {role: call, kind: copy, object: \"stream "
	"{stream}\", status: rc}}\n"
	"      - {name: sync, library: x, symbol: sync, on: return, scope: thread, args: [{name: "
	"stream, fetch: \"$arg1\", type: x64}, {name: rc, fetch: \"$retval\", type: s32}], event: "
	"{role: call, kind: sync, object: \"stream {stream}\", status: rc}}\n"
	"      - {name: batch, library: x, symbol: batch, on: return, scope: call, args: [{name: "
	"op, fetch: \"$arg1\", type: x64}, {name: to, fetch: \"$arg2\", type: u64}, {name: seg, "
	"fetch: \"$arg3\", type: u64}], event: {role: post, kind: kv, address: to, segment: "
	"seg}}\n"
	"      - {name: free, library: x, symbol: free, args: [{name: op, fetch: \"$arg1\", type: "
	"x64}], event: {role: close}}\n"
	"      - {name: send, library: x, symbol: send, on: return, scope: call, each: {list: "
	"\"$arg2\", next: 8}, events: first, args: [{name: qp, fetch: \"$arg1\", type: u32}, "
	"{name: dev, fetch: \"$arg3\", type: x64}], tally: {name: queue pair, key: qp, within: "
	"dev, posts: true}, event: {role: call, kind: post, object: \"queue pair {qp}\"}}\n"
	"      - {name: recv, library: x, symbol: recv, on: return, waits: true, args: [{name: n, "
	"fetch: \"$arg1\", type: u64}], event: {role: call, kind: recv}}\n"
	"      - {name: end, library: x, symbol: end, each: {list: \"$arg2\", next: 8}, args: "
	"[{name: "
	"qp, fetch: \"$arg1\", type: u32}, {name: dev, fetch: \"$arg3\", type: x64}, {name: keeps, "
	"fetch: \"$arg4\", type: x64}], tally: {name: queue pair, key: qp, within: dev, ends: "
	"true, "
	"if: {fetch: \"$arg4\", mask: 1, zero: true}}, event: {role: call, kind: end}}\n";

struct rig {
	struct profile_file *pf;
	const struct profile *p;
	struct collect *c;
	struct sp_event *ev;
	int n;
	bool only_count; /* keep no event, add up those of kind count */
	uint64_t counted;
	uint32_t refused; /* of the elements of each call */
	uint64_t seq, counters[SP_C_MAX];
};

static void rig_event(void *ctx, const struct sp_event *ev)
{
	struct rig *r = ctx;

	if (r->only_count) {
		r->counted += strcmp(ev->kind, "count") ? 0 : ev->count;
		return;
	}
	assert_true(r->n < MAXE);
	assert_false(ev->flags & 0x8000);
	r->ev[r->n++] = *ev;
}

static int rig_setup(void **state)
{
	static const struct collect_ops ops = {.event = rig_event};
	struct rig *r = calloc(1, sizeof(*r));
	struct sp_err err = {0};

	r->ev = calloc(MAXE, sizeof(*r->ev));
	if (profile_parse("t.yaml", rig_text, strlen(rig_text), &r->pf, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return -1;
	}
	r->p = &r->pf->profiles[0];
	*state = r;
	return collect_open(r->p, true, &ops, r, &r->c, &err);
}

static int rig_teardown(void **state)
{
	struct rig *r = *state;

	collect_close(r->c);
	profile_free(r->pf);
	free(r->ev);
	free(r);
	return 0;
}

/* A call of thread tid, entered inside the one that was entered at `in` (0: none), from when to
 * when, and its numbers. */
#define give(r, probe, tid, in, from, to, ...)                                                     \
	give_call(r, probe, tid, in, from, to, (const uint64_t[3]){__VA_ARGS__}, 0)

static void give_call(struct rig *r, int probe, uint32_t tid, uint64_t in, uint64_t from,
		      uint64_t to, const uint64_t val[3], uint32_t count)
{
	const struct profile_probe *pr = &r->p->probes[probe];
	struct sp_rec_hit rec;

	memset(&rec, 0, sizeof(rec));
	rec.h.seq = ++r->seq;
	rec.h.type = SP_REC_HIT;
	rec.h.probe = (uint16_t)probe;
	rec.h.pid = PID;
	rec.h.tid = tid;
	rec.h.ns = to;
	rec.h.enter_ns = pr->on == ON_ENTRY ? 0 : from;
	rec.h.scope_ns = in;
	rec.h.count = count;
	rec.h.posted = (uint16_t)((count ? count : 1) - r->refused);
	for (int i = 0; i < pr->nargs; i++) {
		rec.val[i] = i < 3 ? val[i] : 0;
		rec.len[i] = pr->args[i].is_composite ? SP_LEN_EMPTY : 0;
	}
	collect_record(r->c, &rec, sizeof(rec));
}

static void give_exit(struct rig *r, uint32_t tid, uint64_t ns, bool last)
{
	struct sp_rec_hit rec;

	memset(&rec, 0, sizeof(rec));
	rec.h.seq = ++r->seq;
	rec.h.type = SP_REC_EXIT;
	rec.h.pid = PID;
	rec.h.tid = tid;
	rec.h.ns = ns;
	rec.val[0] = last;
	collect_record(r->c, &rec, sizeof(rec));
}

/* The n-th event of the probe that has been handed on; NULL: none. */
static inline const struct sp_event *nth(const struct rig *r, int probe, int n)
{
	for (int i = 0; i < r->n; i++)
		if (r->ev[i].probe == probe && strcmp(r->ev[i].kind, "count") != 0 && !n--)
			return &r->ev[i];
	return NULL;
}

static inline const struct sp_event *of_kind(const struct rig *r, const char *kind, int n)
{
	for (int i = 0; i < r->n; i++)
		if (!strcmp(r->ev[i].kind, kind) && !n--)
			return &r->ev[i];
	return NULL;
}

static void release(struct rig *r, uint64_t ns)
{
	collect_release(r->c, ns);
}

static inline void assert_room(const struct rig *r, int probe, int n, const char *room)
{
	const struct sp_event *ev = nth(r, probe, n);

	assert_non_null(ev);
	assert_string_equal(ev->room, room);
}

static inline void lose_records(struct rig *r, uint64_t now_ns)
{
	r->counters[SP_C_RING_FULL] += 3;
	r->seq += 3;
	collect_counters(r->c, r->counters, now_ns);
}

#endif
