// SPDX-License-Identifier: Apache-2.0
/* Lives and alerts of a recording. */
#include <string.h>

#include "store/buffer.h"
#include "store/rec_priv.h"
#include "store/text.h"

static enum sp_stage stage_of(sqlite3_stmt *st, int col)
{
	const char *s = (const char *)sqlite3_column_text(st, col);

	return s ? sp_stage_parse(s) : STAGE_NONE;
}

static enum sp_outcome outcome_of(sqlite3_stmt *st, int col)
{
	const char *s = (const char *)sqlite3_column_text(st, col);

	for (int i = OUTCOME_DONE; s && i <= OUTCOME_MOVING; i++)
		if (!strcmp(s, sp_outcome_name(i)))
			return i;
	return OUTCOME_NONE;
}

static enum sp_cause cause_of(sqlite3_stmt *st, int col)
{
	const char *s = (const char *)sqlite3_column_text(st, col);

	for (int i = CAUSE_NONE + 1; s && i < CAUSE_MAX; i++)
		if (!strcmp(s, sp_cause_name(i)))
			return i;
	return CAUSE_NONE;
}

static enum sp_confidence confidence_of(sqlite3_stmt *st, int col)
{
	const char *s = (const char *)sqlite3_column_text(st, col);

	return s ? sp_confidence_parse(s) : CONF_NONE;
}

static uint64_t u64(sqlite3_stmt *st, int col)
{
	return (uint64_t)sqlite3_column_int64(st, col);
}

/* The verdict counts while the life is stuck, and after its end. Its evidence may be lost. */
static void take_verdict(sqlite3_stmt *st, int col, bool counts, struct model_verdict *v)
{
	const char *json = (const char *)sqlite3_column_text(st, col);

	if (counts && json) {
		verdict_parse(json, v);
		return;
	}
	memset(v, 0, sizeof(*v));
	v->pin = -1;
	if (counts) {
		v->cause = cause_of(st, 25);
		v->confidence = confidence_of(st, 26);
	}
}

static void take_life(sqlite3_stmt *st, struct rec_life *l)
{
	l->row = u64(st, 0);
	l->pid = (uint32_t)sqlite3_column_int64(st, 1);
	rec_text(st, 2, l->room, sizeof(l->room));
	l->life = (uint32_t)sqlite3_column_int64(st, 3);
	l->stage = stage_of(st, 4);
	l->opened_ns = u64(st, 5);
	l->progress_ns = u64(st, 6);
	l->last_ns = u64(st, 7);
	l->ended_ns = u64(st, 8);
	l->outcome = outcome_of(st, 9);
	take_verdict(st, 11, sqlite3_column_int(st, 10) || l->ended_ns, &l->verdict);
	l->uncertain = sqlite3_column_int(st, 12);
	l->observed_late = sqlite3_column_int(st, 13);
	l->fake = sqlite3_column_int(st, 14);
	l->ever_stuck = sqlite3_column_int(st, 15);
	l->full = sqlite3_column_int(st, 16);
	rec_text(st, 17, l->rid, sizeof(l->rid));
	rec_text(st, 18, l->peer, sizeof(l->peer));
	memset(l->stage_at, 0, sizeof(l->stage_at));
	for (int i = STAGE_BOOTSTRAP; i <= STAGE_RELEASING; i++)
		l->stage_at[i] = u64(st, 18 + i);
	l->first_seq = u64(st, 23);
	l->last_seq = u64(st, 24);
}

int rec_lives(struct recording *r, const char *room, uint32_t pid, uint32_t life,
	      bool (*fn)(void *ctx, const struct rec_life *l), void *ctx, struct sp_err *err)
{
	char safe[TEXT_SAFE_MAX(SP_ROOM_MAX)];
	struct rec_life l;
	sqlite3_stmt *st;
	int rc = rec_prepare(r,
			     "SELECT id, pid, room, life, stage, opened_ns, progress_ns, last_ns,"
			     " ended_ns, outcome, stuck, verdict, uncertain, late, fake,"
			     " ever_stuck, kept, rid, peer, bootstrap_ns, ready_ns, inflight_ns,"
			     " releasing_ns, first_seq, last_seq, cause, confidence FROM life"
			     " WHERE id >= ?1"
			     " AND (?2 IS NULL OR room = ?2) AND (?3 = 0 OR pid = ?3)"
			     " AND (?4 = 0 OR life = ?4) ORDER BY opened_ns, id",
			     &st, err);

	if (rc)
		return rc;
	sqlite3_bind_int64(st, 1, r->first_life);
	if (room) {
		text_safe(safe, sizeof(safe), room);
		sqlite3_bind_text(st, 2, safe, -1, SQLITE_STATIC);
	}
	sqlite3_bind_int64(st, 3, pid);
	sqlite3_bind_int64(st, 4, life);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		take_life(st, &l);
		if (!fn(ctx, &l))
			break;
	}
	return rec_done(r, st, rc, err);
}

static enum model_alert_type type_of(sqlite3_stmt *st, int col)
{
	const char *s = (const char *)sqlite3_column_text(st, col);

	for (int i = ALERT_STUCK; s && i <= ALERT_PEER; i++)
		if (!strcmp(s, alert_type_name(i)))
			return i;
	return ALERT_TARGET;
}

static void take_alert(sqlite3_stmt *st, struct rec_alert *a)
{
	a->ns = u64(st, 0);
	a->type = type_of(st, 1);
	a->pid = (uint32_t)sqlite3_column_int64(st, 2);
	a->tid = (uint32_t)sqlite3_column_int64(st, 3);
	rec_text(st, 4, a->room, sizeof(a->room));
	a->life = (uint32_t)sqlite3_column_int64(st, 5);
	a->stage = stage_of(st, 6);
	a->cause = cause_of(st, 7);
	a->confidence = confidence_of(st, 8);
	a->pin = sqlite3_column_type(st, 9) == SQLITE_NULL ? -1 : sqlite3_column_int(st, 9);
	a->age_ns = u64(st, 10);
	a->idle_ns = u64(st, 11);
	a->stalled_ns = u64(st, 12);
	a->outcome = outcome_of(st, 13);
	a->lost = u64(st, 14);
	rec_text(st, 15, a->what, sizeof(a->what));
	rec_text(st, 16, a->note, sizeof(a->note));
}

int rec_alerts(struct recording *r, const struct rec_life *l,
	       bool (*fn)(void *ctx, const struct rec_alert *a), void *ctx, struct sp_err *err)
{
	char safe[TEXT_SAFE_MAX(SP_ROOM_MAX)];
	struct rec_alert a;
	sqlite3_stmt *st;
	int rc = rec_prepare(r,
			     "SELECT ns, type, pid, tid, room, life, stage, cause, confidence, pin,"
			     " age_ns, idle_ns, stalled_ns, outcome, lost, what, note FROM alert"
			     " WHERE id >= ?1 AND (?2 = 0 OR (life = ?2 AND pid = ?3"
			     " AND room = ?4)) ORDER BY id",
			     &st, err);

	if (rc)
		return rc;
	sqlite3_bind_int64(st, 1, r->first_alert);
	sqlite3_bind_int64(st, 2, l ? l->life : 0);
	if (l) {
		sqlite3_bind_int64(st, 3, l->pid);
		text_safe(safe, sizeof(safe), l->room);
		sqlite3_bind_text(st, 4, safe, -1, SQLITE_STATIC);
	}
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		take_alert(st, &a);
		if (!fn(ctx, &a))
			break;
	}
	return rec_done(r, st, rc, err);
}
