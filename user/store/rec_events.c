// SPDX-License-Identifier: Apache-2.0
/* Events of a recording: all of a session in the order in which they were taken, or one life's. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/rec_priv.h"
#include "store/schema.h"
#include "store/text.h"
#include "util/clock.h"

/* How long the model keeps an abort for a room that it does not know yet. */
#define BEFORE_NS (60 * NS_PER_SEC)

/* ---- which life is row N? ------------------------------------------------------------------ */

struct known_life {
	int64_t row;
	uint32_t life, room; /* room: offset in names */
};
struct known_lives {
	struct known_life *at; /* ascending rows */
	size_t n, cap;
	char *names;
	size_t nnames, cap_names;
};

static bool reserve(void **p, size_t *cap, size_t need, size_t each)
{
	size_t want = *cap ? *cap : 1024;
	void *more;

	if (need <= *cap)
		return true;
	while (want < need)
		want *= 2;
	more = realloc(*p, want * each);
	if (!more)
		return false;
	*p = more;
	*cap = want;
	return true;
}

static bool know(struct known_lives *k, sqlite3_stmt *st)
{
	char room[SP_ROOM_MAX];
	size_t len;

	rec_text(st, 2, room, sizeof(room));
	len = strlen(room) + 1;
	if (!reserve((void **)&k->at, &k->cap, k->n + 1, sizeof(*k->at)) ||
	    !reserve((void **)&k->names, &k->cap_names, k->nnames + len, 1) ||
	    k->nnames > UINT32_MAX)
		return false;
	k->at[k->n++] = (struct known_life){.row = sqlite3_column_int64(st, 0),
					    .life = (uint32_t)sqlite3_column_int64(st, 1),
					    .room = (uint32_t)k->nnames};
	memcpy(k->names + k->nnames, room, len);
	k->nnames += len;
	return true;
}

static int load_lives(struct recording *r, struct known_lives *k, struct sp_err *err)
{
	sqlite3_stmt *st;
	bool ok = true;
	int rc = rec_prepare(
		r, "SELECT id, life, room FROM life WHERE id >= ?1 AND kept ORDER BY id", &st, err);

	if (rc)
		return rc;
	sqlite3_bind_int64(st, 1, r->first_life);
	while (ok && (rc = sqlite3_step(st)) == SQLITE_ROW)
		ok = know(k, st);
	rc = rec_done(r, st, rc, err);
	if (!rc && !ok)
		return sp_err_set(err, SP_EXIT_FAIL, -ENOMEM, "out of memory");
	return rc;
}

static const struct known_life *find_life(const struct known_lives *k, int64_t row)
{
	size_t lo = 0, hi = k->n;

	/* rows without a gap, the rule when everything is recorded */
	if (k->n && row >= k->at[0].row && (uint64_t)(row - k->at[0].row) < k->n &&
	    k->at[row - k->at[0].row].row == row)
		return &k->at[row - k->at[0].row];
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (k->at[mid].row < row)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < k->n && k->at[lo].row == row ? &k->at[lo] : NULL;
}

/* ---- rows ---------------------------------------------------------------------------------- */

#define EVENT_COLUMNS                                                                              \
	"e.life, e.ns, e.pid, e.tid, e.role, e.status, e.flags, e.last, e.probe, e.rank, e.chunk," \
	" e.part, e.parts, e.need, e.covers, e.code, e.op, e.room, e.kind, e.peer, e.agent,"       \
	" e.rid, e.note"
#define CALL_COLUMNS ", e.object, e.bytes, e.took_ns, e.count, e.at_ns"
#define CALLS_SINCE  4 /* schema version */

static const char *call_columns(const struct recording *r)
{
	return r->version < CALLS_SINCE ? ", NULL, NULL, NULL, NULL, NULL" : CALL_COLUMNS;
}

/* An event that came late was taken at a later time: a replay takes it then, too. */
static uint64_t real_ns(sqlite3_stmt *st, uint64_t taken_ns)
{
	int64_t ns = sqlite3_column_int64(st, 27);

	return ns ? (uint64_t)ns : taken_ns;
}

/* Its entry stays what it was, though its return is told later. */
static void keep_entry(sqlite3_stmt *st, struct sp_event *ev)
{
	uint64_t real = real_ns(st, ev->ns);

	if (ev->took_ns && real < ev->ns)
		ev->took_ns += ev->ns - real;
}

static void take_event(sqlite3_stmt *st, struct sp_event *ev)
{
	ev->ns = (uint64_t)sqlite3_column_int64(st, 1);
	ev->pid = (uint32_t)sqlite3_column_int64(st, 2);
	ev->tid = (uint32_t)sqlite3_column_int64(st, 3);
	ev->role = (uint8_t)sqlite3_column_int(st, 4);
	ev->status = (uint8_t)sqlite3_column_int(st, 5);
	ev->flags = (uint16_t)sqlite3_column_int(st, 6);
	ev->last = (int8_t)sqlite3_column_int(st, 7);
	ev->probe = (int16_t)sqlite3_column_int(st, 8);
	ev->rank = (int16_t)sqlite3_column_int(st, 9);
	ev->chunk = sqlite3_column_int(st, 10);
	ev->part = sqlite3_column_int(st, 11);
	ev->parts = sqlite3_column_int(st, 12);
	ev->need = sqlite3_column_int(st, 13);
	ev->covers = (uint32_t)sqlite3_column_int64(st, 14);
	ev->code = sqlite3_column_int64(st, 15);
	ev->op = (uint64_t)sqlite3_column_int64(st, 16);
	rec_text(st, 17, ev->room, sizeof(ev->room));
	rec_text(st, 18, ev->kind, sizeof(ev->kind));
	rec_text(st, 19, ev->peer, sizeof(ev->peer));
	rec_text(st, 20, ev->agent, sizeof(ev->agent));
	rec_text(st, 21, ev->rid, sizeof(ev->rid));
	rec_text(st, 22, ev->note, sizeof(ev->note));
	rec_text(st, 23, ev->object, sizeof(ev->object));
	ev->bytes = (uint64_t)sqlite3_column_int64(st, 24);
	ev->took_ns = (uint64_t)sqlite3_column_int64(st, 25);
	ev->count = (uint32_t)sqlite3_column_int64(st, 26);
	if (ev->role >= ROLE_MAX)
		ev->role = ROLE_NONE; /* a damaged row must not index a table */
	if (ev->status > OPS_ERROR)
		ev->status = OPS_UNKNOWN;
}

static int all_events(struct recording *r,
		      bool (*fn)(void *ctx, const struct sp_event *ev, uint32_t life_no), void *ctx,
		      struct sp_err *err)
{
	struct known_lives known = {0};
	struct sp_event ev = {0};
	char sql[512];
	sqlite3_stmt *st;
	int rc = load_lives(r, &known, err);

	snprintf(sql, sizeof(sql),
		 "SELECT " EVENT_COLUMNS "%s FROM event e WHERE e.seq >= ?1 ORDER BY e.seq",
		 call_columns(r));
	if (!rc)
		rc = rec_prepare(r, sql, &st, err);
	if (rc)
		goto out;
	sqlite3_bind_int64(st, 1, r->first_seq);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		int64_t row = sqlite3_column_int64(st, 0); /* 0 when NULL */
		const struct known_life *l = row ? find_life(&known, row) : NULL;

		take_event(st, &ev);
		keep_entry(st, &ev);
		if (l && known.names && !ev.room[0]) {
			const char *name = known.names + l->room;

			memcpy(ev.room, name, strlen(name) + 1); /* it came from such a field */
		}
		if (!fn(ctx, &ev, l ? l->life : 0))
			break;
	}
	rc = rec_done(r, st, rc, err);
out:
	free(known.at);
	free(known.names);
	return rc;
}

/* ---- one life ------------------------------------------------------------------------------ */

/* A life's own events, what was seen of its room before it, what befell the watch meanwhile, and
 * the ends of its peers' connections. What a worker is at (?12) is of interest where it is this
 * room: that is the line of ?5. */
#define LIFE_PEERS                                                                                 \
	"(SELECT a.agent FROM event a WHERE a.seq BETWEEN ?1 AND ?2 AND a.life = ?3"               \
	" AND a.role = ?14)"
#define LIFE_WHERE                                                                                 \
	" WHERE e.seq BETWEEN ?1 AND ?2 AND (e.life = ?3 OR (e.life IS NULL AND e.ns <= ?7"        \
	" AND ((e.pid = ?4 AND e.room = ?5 AND e.ns >= ?6)"                                        \
	" OR (e.ns >= ?8 AND (e.role IN (?9, ?10) OR (e.pid IN (0, ?4) AND (e.role = ?11"          \
	" OR (e.role = ?12 AND e.kind IS NOT 'at') OR (e.role = ?13 AND e.kind IS NOT 'ok')"       \
	" OR (e.role = ?15 AND e.agent IN " LIFE_PEERS ")))))))) ORDER BY e.seq"

#define SEEK_STEP 1024
/* The number of an event at about ns, at most SEEK_STEP early: numbers follow time but for late
 * events. */
static int64_t seq_at(struct recording *r, int64_t hi, uint64_t ns)
{
	sqlite3_stmt *st;
	int64_t lo = r->first_seq;

	if (sqlite3_prepare_v2(r->db, "SELECT ns FROM event WHERE seq >= ?1 ORDER BY seq LIMIT 1",
			       -1, &st, NULL))
		return lo;
	while (hi - lo > SEEK_STEP) {
		int64_t mid = lo + (hi - lo) / 2;

		sqlite3_bind_int64(st, 1, mid);
		if (sqlite3_step(st) == SQLITE_ROW && (uint64_t)sqlite3_column_int64(st, 0) < ns)
			lo = mid;
		else
			hi = mid;
		sqlite3_reset(st);
	}
	sqlite3_finalize(st);
	return lo;
}

/* Times never decrease: behind what this gives there is nothing from ns or before. */
static int64_t seq_until(struct recording *r, int64_t last, uint64_t ns)
{
	int64_t seq = seq_at(r, last + 1, ns + 1) + SEEK_STEP;

	return seq < last ? seq : last;
}

static void bind_life(struct recording *r, sqlite3_stmt *st, const struct rec_life *l)
{
	uint64_t before = l->opened_ns > BEFORE_NS ? l->opened_ns - BEFORE_NS : 0;
	uint64_t until = l->ended_ns > l->last_ns ? l->ended_ns : l->last_ns;
	char safe[TEXT_SAFE_MAX(SP_ROOM_MAX)];
	int rc;
	int64_t last = schema_int(r->db, "SELECT max(seq) FROM event", 0, &rc);
	int64_t near = l->first_seq ? (int64_t)l->first_seq : last + 1;

	text_safe(safe, sizeof(safe), l->room);
	sqlite3_bind_int64(st, 1, seq_at(r, near, before));
	sqlite3_bind_int64(st, 2, l->ended_ns ? seq_until(r, last, until) : last);
	sqlite3_bind_int64(st, 3, (int64_t)l->row);
	sqlite3_bind_int64(st, 4, l->pid);
	sqlite3_bind_text(st, 5, safe, -1, SQLITE_TRANSIENT);
	sqlite3_bind_int64(st, 6, (int64_t)before);
	sqlite3_bind_int64(st, 7, l->ended_ns ? (int64_t)until : INT64_MAX);
	/* why it was seen late is told by what came before */
	sqlite3_bind_int64(st, 8, (int64_t)(l->observed_late ? before : l->opened_ns));
	sqlite3_bind_int(st, 9, ROLE_LOSS);
	sqlite3_bind_int(st, 10, ROLE_STALL);
	sqlite3_bind_int(st, 11, ROLE_TARGET);
	sqlite3_bind_int(st, 12, ROLE_THREAD);
	sqlite3_bind_int(st, 13, ROLE_VIEW);
	sqlite3_bind_int(st, 14, ROLE_ANNOUNCE);
	sqlite3_bind_int(st, 15, ROLE_PEER);
}

static int life_events(struct recording *r, const struct rec_life *l,
		       bool (*fn)(void *ctx, const struct sp_event *ev, uint32_t life_no),
		       void *ctx, struct sp_err *err)
{
	struct sp_event ev = {0};
	char sql[1536];
	sqlite3_stmt *st;
	int rc;

	snprintf(sql, sizeof(sql), "SELECT " EVENT_COLUMNS "%s FROM event e%s", call_columns(r),
		 LIFE_WHERE);
	rc = rec_prepare(r, sql, &st, err);
	if (rc)
		return rc;
	bind_life(r, st, l);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		bool own = sqlite3_column_int64(st, 0) == (int64_t)l->row;

		take_event(st, &ev);
		ev.ns = real_ns(st, ev.ns);
		if (own && !ev.room[0])
			snprintf(ev.room, sizeof(ev.room), "%s", l->room);
		if (!fn(ctx, &ev, own ? l->life : 0))
			break;
	}
	return rec_done(r, st, rc, err);
}

int rec_events(struct recording *r, const struct rec_life *l,
	       bool (*fn)(void *ctx, const struct sp_event *ev, uint32_t life_no), void *ctx,
	       struct sp_err *err)
{
	return l ? life_events(r, l, fn, ctx, err) : all_events(r, fn, ctx, err);
}

int rec_events_json(struct recording *r, const struct rec_life *l,
		    bool (*fn)(void *ctx, const char *json), void *ctx, struct sp_err *err)
{
#define EVENT_JSON_BEGIN                                                                           \
	"SELECT json_object('time_ns', e.ns, 'pid', e.pid, 'tid', e.tid,"                          \
	" 'room', " SCHEMA_EVENT_ROOM ", 'life', l.life, 'role', " SCHEMA_EVENT_ROLE               \
	", 'probe', " SCHEMA_EVENT_PROBE ", 'detail', json("
	bool old = r->version < CALLS_SINCE;
	char sql[4096];
	sqlite3_stmt *st;
	int rc;

	snprintf(sql, sizeof(sql), EVENT_JSON_BEGIN "%s)) " SCHEMA_EVENT_FROM "%s",
		 old ? SCHEMA_EVENT_DETAIL_3 : SCHEMA_EVENT_DETAIL,
		 l ? LIFE_WHERE : " WHERE e.seq >= ?1 ORDER BY e.seq");
	rc = rec_prepare(r, sql, &st, err);
	if (rc)
		return rc;
	if (l)
		bind_life(r, st, l);
	else
		sqlite3_bind_int64(st, 1, r->first_seq);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		const char *json = (const char *)sqlite3_column_text(st, 0);

		if (!json || !fn(ctx, json))
			break;
	}
	return rec_done(r, st, rc, err);
}
