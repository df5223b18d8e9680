// SPDX-License-Identifier: Apache-2.0
/*
 * Lives as a trace in Chrome's Trace Event Format: a track per life, its stages as slices, its
 * operations as slices inside them, its events as instants. Slices of one track must nest, so
 * operations that overlap go to further tracks of the same life. What the server's own view said of
 * the request (in which queue, with which status) is a track of its own.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/json.h"
#include "output/output.h"
#include "output/timeline.h"

#define LANES       8 /* of operations; what overlaps more shares the last one */
#define CALL_TRACKS 8 /* of threads that call; what further ones call shares the last one */
/* Of one life: those of operations, the view's, those of calls, which overlap with operations. */
#define TRACKS (LANES + 1 + CALL_TRACKS)

struct op_slice {
	uint64_t op, from, to;
	const struct sp_event *ev; /* its post */
	bool open, created;
	const struct sp_event *end;
};

struct trace {
	FILE *f;
	const struct rec_session *s;
	uint64_t now_ns;
	bool any; /* something was written: a comma is due */
};

/* A JSON string, quoted. */
static void put_string(FILE *f, const char *text)
{
	json_t *j = out_json_string(text);
	char *s = j ? json_dumps(j, JSON_ENCODE_ANY) : NULL;

	fputs(s ? s : "\"\"", f);
	free(s);
	json_decref(j);
}

static void put_us(const struct trace *tr, const char *key, uint64_t ns)
{
	fprintf(tr->f, ",\"%s\":%" PRIu64 ".%03u", key, ns / 1000, (unsigned int)(ns % 1000));
}

static void begin_item(struct trace *tr, const char *phase, uint32_t pid, uint32_t track,
		       const char *name)
{
	fprintf(tr->f, "%s{\"ph\":\"%s\",\"pid\":%u,\"tid\":%u,\"name\":", tr->any ? ",\n" : "\n",
		phase, pid, track);
	tr->any = true;
	put_string(tr->f, name);
}

static void put_name(struct trace *tr, const char *what, uint32_t pid, uint32_t track,
		     const char *name)
{
	begin_item(tr, "M", pid, track, what);
	fputs(",\"args\":{\"name\":", tr->f);
	put_string(tr->f, name);
	fputs("}}", tr->f);
}

static void put_slice(struct trace *tr, uint32_t pid, uint32_t track, const char *name,
		      const char *category, uint64_t from, uint64_t to)
{
	begin_item(tr, "X", pid, track, name);
	fprintf(tr->f, ",\"cat\":\"%s\"", category);
	put_us(tr, "ts", from);
	put_us(tr, "dur", to > from ? to - from : 0);
}

/* ---- stages -------------------------------------------------------------------------------- */

static uint64_t end_of(const struct trace *tr, const struct rec_life *l)
{
	return l->ended_ns ? l->ended_ns : tr->now_ns > l->last_ns ? tr->now_ns : l->last_ns;
}

static uint64_t stage_end(const struct trace *tr, const struct rec_life *l, int stage)
{
	for (int i = stage + 1; i <= STAGE_RELEASING; i++)
		if (l->stage_at[i])
			return l->stage_at[i];
	return end_of(tr, l);
}

static void put_stages(struct trace *tr, const struct rec_life *l, uint32_t track)
{
	for (int i = STAGE_BOOTSTRAP; i <= STAGE_RELEASING; i++) {
		if (!l->stage_at[i])
			continue;
		put_slice(tr, l->pid, track, sp_stage_name(i), "stage", l->stage_at[i],
			  stage_end(tr, l, i));
		fputc('}', tr->f);
	}
}

/* ---- operations ---------------------------------------------------------------------------- */

static struct op_slice *find_op(struct op_slice *ops, size_t n, uint64_t op)
{
	while (n--)
		if (ops[n].op == op && ops[n].open)
			return &ops[n];
	return NULL;
}

static size_t gather_ops(const struct trace *tr, const struct timeline *t, struct op_slice *ops)
{
	size_t n = 0;

	for (size_t i = 0; i < t->nev; i++) {
		const struct sp_event *ev = &t->ev[i].ev;
		struct op_slice *o;

		/* the handle of a request is no operation's, and a call ends none */
		if (!t->ev[i].own || !ev->op || ev->role == ROLE_HELD || ev->role == ROLE_RELEASE ||
		    ev->role == ROLE_CALL)
			continue;
		o = find_op(ops, n, ev->op);
		if (ev->role == ROLE_POST) {
			bool created = ev->flags & EV_CREATED;

			if (o && (created || !o->created)) /* the handle is reused */
				o->open = false;
			if (!o || !o->open) {
				ops[n++] = (struct op_slice){.op = ev->op,
							     .from = ev->ns,
							     .to = end_of(tr, &t->life),
							     .ev = ev,
							     .open = true};
				o = &ops[n - 1];
			}
			o->created = created; /* posted now, when it is not */
		}
		if (o &&
		    (ev->role == ROLE_CLOSE || ev->status == OPS_DONE || ev->status == OPS_ERROR)) {
			o->to = ev->ns;
			o->end = ev;
			o->open = false;
		}
	}
	return n;
}

/* May the slice stand on this lane: inside one stage (lane 0) and inside or beside each other? */
static bool fits(const struct trace *tr, const struct rec_life *l, const struct op_slice *ops,
		 const uint8_t *lane, size_t i, uint8_t want)
{
	const struct op_slice *o = &ops[i];

	for (int s = STAGE_BOOTSTRAP; want == 0 && s <= STAGE_RELEASING; s++)
		if (l->stage_at[s] > o->from && l->stage_at[s] < o->to)
			return false;
	if (want == 0 && o->to > end_of(tr, l))
		return false;
	for (size_t k = 0; k < i; k++)
		if (lane[k] == want && ops[k].from < o->to && o->from < ops[k].to &&
		    !(ops[k].from <= o->from && o->to <= ops[k].to) &&
		    !(o->from <= ops[k].from && ops[k].to <= o->to))
			return false;
	return true;
}

static void put_op(struct trace *tr, const struct rec_life *l, const struct op_slice *o,
		   uint32_t track)
{
	char words[400];

	sp_event_describe(o->ev, words, sizeof(words));
	put_slice(tr, l->pid, track, words, "operation", o->from, o->to);
	fprintf(tr->f, ",\"args\":{\"op\":\"0x%" PRIx64 "\",\"end\":", o->op);
	if (o->end)
		sp_event_describe(o->end, words, sizeof(words));
	put_string(tr->f, o->end ? words : "still in progress");
	fputs("}}", tr->f);
}

/* Returns how many lanes there are. */
static int put_ops(struct trace *tr, const struct timeline *t, uint32_t track)
{
	struct op_slice *ops = calloc(t->nev + 1, sizeof(*ops));
	uint8_t *lane = calloc(t->nev + 1, 1);
	int lanes = 1;
	size_t n;

	if (ops && lane) {
		n = gather_ops(tr, t, ops);
		for (size_t i = 0; i < n; i++) {
			while (lane[i] < LANES - 1 && !fits(tr, &t->life, ops, lane, i, lane[i]))
				lane[i]++;
			if (lane[i] + 1 > lanes)
				lanes = lane[i] + 1;
			put_op(tr, &t->life, &ops[i], track + lane[i]);
		}
	}
	free(lane);
	free(ops);
	return lanes;
}

/* ---- the server's own view ------------------------------------------------------------------ */

static void residence_name(const struct sp_event *ev, char *buf, size_t len)
{
	struct sp_event bare;

	/* the queue and the status; how far it has come, and who is at it, changes inside */
	sp_event_init(&bare);
	bare.role = ROLE_HELD;
	bare.code = ev->code;
	memcpy(bare.kind, ev->kind, sizeof(bare.kind));
	sp_event_describe(&bare, buf, len);
}

static bool same_residence(const struct sp_event *a, const struct sp_event *b)
{
	return a->code == b->code && !strcmp(a->kind, b->kind);
}

/* Where the request was, slice after slice. An event without a request speaks of the status table
 * only. false: the view has said nothing. */
static bool put_residence(struct trace *tr, const struct timeline *t, uint32_t track)
{
	const struct sp_event *at = NULL;
	uint64_t end = end_of(tr, &t->life);
	char words[400];
	bool any = false;

	for (size_t i = 0; i <= t->nev; i++) {
		const struct sp_event *ev = i < t->nev ? &t->ev[i].ev : NULL;
		bool held = ev && t->ev[i].own && ev->role == ROLE_HELD && ev->op;
		bool over = !ev || (t->ev[i].own && ev->role == ROLE_RELEASE) ||
			    (ev->role == ROLE_VIEW && !strcmp(ev->kind, "lost"));

		if (!over && !(held && !(at && same_residence(at, ev))))
			continue;
		if (at) {
			uint64_t until = ev ? ev->ns : end > at->ns ? end : at->ns;

			residence_name(at, words, sizeof(words));
			put_slice(tr, t->life.pid, track, words, "view", at->ns, until);
			fputc('}', tr->f);
			any = true;
		}
		at = held ? ev : NULL;
	}
	return any;
}

/* ---- calls ---------------------------------------------------------------------------------- */

static bool is_slice(const struct timeline_event *e)
{
	return e->own && e->ev.role == ROLE_CALL && e->ev.took_ns && e->ev.took_ns < e->ev.ns &&
	       strcmp(e->ev.kind, "left") != 0;
}

/* A thread is in one call at a time, or in one inside the other: its slices nest. */
static void put_calls(struct trace *tr, const struct timeline *t, uint32_t track)
{
	uint32_t tid[CALL_TRACKS];
	char words[400];
	int n = 0;

	for (size_t i = 0; i < t->nev; i++) {
		const struct sp_event *ev = &t->ev[i].ev;
		int k = 0;

		if (!is_slice(&t->ev[i]))
			continue;
		while (k < n && tid[k] != ev->tid)
			k++;
		if (k == n && n < CALL_TRACKS) {
			tid[n++] = ev->tid;
			snprintf(words, sizeof(words), "room %s life %u: calls of thread %u",
				 t->life.room, t->life.life, ev->tid);
			put_name(tr, "thread_name", t->life.pid, track + (uint32_t)k, words);
		}
		k = k < CALL_TRACKS ? k : CALL_TRACKS - 1;
		timeline_describe(t, ev, words, sizeof(words));
		put_slice(tr, t->life.pid, track + (uint32_t)k, words, "call", ev->ns - ev->took_ns,
			  ev->ns);
		fputc('}', tr->f);
	}
}

/* ---- events -------------------------------------------------------------------------------- */

static void put_instant(struct trace *tr, const struct rec_life *l, uint32_t track,
			const char *name, const char *category, uint64_t ns)
{
	begin_item(tr, "i", l->pid, track, name);
	fprintf(tr->f, ",\"cat\":\"%s\",\"s\":\"t\"", category);
	put_us(tr, "ts", ns);
	fputc('}', tr->f);
}

static void put_instants(struct trace *tr, const struct timeline *t, uint32_t track)
{
	char words[400];

	for (size_t i = 0; i < t->nev; i++) {
		if (is_slice(&t->ev[i]))
			continue;
		timeline_describe(t, &t->ev[i].ev, words, sizeof(words));
		put_instant(tr, &t->life, track, words, t->ev[i].own ? "event" : "watch",
			    t->ev[i].ev.ns);
	}
	for (size_t i = 0; i < t->nalerts; i++) {
		const struct rec_alert *a = &t->alerts[i];

		snprintf(words, sizeof(words), "%s: %s", alert_type_name(a->type),
			 a->type == ALERT_STUCK ? sp_cause_name(a->cause)
						: sp_outcome_name(a->outcome));
		put_instant(tr, &t->life, track, words, "alert", a->ns);
	}
}

static void put_life(struct trace *tr, const struct timeline *t, uint32_t track)
{
	char name[SP_ROOM_MAX + 64];
	int lanes;

	put_stages(tr, &t->life, track);
	lanes = put_ops(tr, t, track);
	put_instants(tr, t, track);
	put_calls(tr, t, track + LANES + 1);
	put_name(tr, "process_name", t->life.pid, track, tr->s->profile);
	for (int i = 0; i < lanes; i++) {
		snprintf(name, sizeof(name), i ? "room %s life %u (%d)" : "room %s life %u",
			 t->life.room, t->life.life, i + 1);
		put_name(tr, "thread_name", t->life.pid, track + (uint32_t)i, name);
	}
	if (put_residence(tr, t, track + LANES)) {
		snprintf(name, sizeof(name), "room %s life %u: the server's own view", t->life.room,
			 t->life.life);
		put_name(tr, "thread_name", t->life.pid, track + LANES, name);
	}
}

void timeline_perfetto(FILE *f, const struct timeline *t, size_t n, const struct rec_session *s,
		       uint64_t now_ns)
{
	struct trace tr = {.f = f, .s = s, .now_ns = now_ns};
	char start[32];

	time_utc(0, s->utc_offset_ns, start);
	/* ts counts from the boot of the machine, as the events of a kernel trace do */
	fprintf(f, "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"zero\":\"%s\"},\"traceEvents\":[",
		start);
	for (size_t i = 0; i < n; i++)
		put_life(&tr, &t[i], (uint32_t)i * TRACKS + 1);
	fputs("\n]}\n", f);
}
