// SPDX-License-Identifier: Apache-2.0
/* A batch into the file, in transactions of bounded size. */
#include <string.h>

#include "store/schema.h"
#include "store/text.h"
#include "store/writer.h"

static void bind_u64(sqlite3_stmt *st, int i, uint64_t v)
{
	sqlite3_bind_int64(st, i, (int64_t)v);
}

/* 0 is "unset" */
static void bind_set(sqlite3_stmt *st, int i, uint64_t v)
{
	if (v)
		bind_u64(st, i, v);
	else
		sqlite3_bind_null(st, i);
}

/* "" is "unset". s must live until the step; it is shorter than SP_ROOM_MAX. */
static void bind_text(sqlite3_stmt *st, int i, const char *s)
{
	char safe[TEXT_SAFE_MAX(SP_ROOM_MAX)];

	if (!s[0]) {
		sqlite3_bind_null(st, i);
	} else if (text_is_safe(s)) {
		sqlite3_bind_text(st, i, s, -1, SQLITE_STATIC);
	} else {
		text_safe(safe, sizeof(safe), s);
		sqlite3_bind_text(st, i, safe, -1, SQLITE_TRANSIENT);
	}
}

static void bind_name(sqlite3_stmt *st, int i, bool set, const char *name)
{
	if (set)
		sqlite3_bind_text(st, i, name, -1, SQLITE_STATIC);
	else
		sqlite3_bind_null(st, i);
}

static int run(sqlite3_stmt *st)
{
	int rc = sqlite3_step(st);

	sqlite3_reset(st); /* its code is that of the step */
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int write_event(sqlite3_stmt *st, uint64_t seq, const struct pending_event *p)
{
	const char *text = p->text;

	bind_u64(st, 1, seq);
	bind_u64(st, 2, p->ns);
	sqlite3_bind_int64(st, 3, p->pid);
	sqlite3_bind_int64(st, 4, p->tid);
	bind_set(st, 5, p->life);
	sqlite3_bind_int(st, 6, p->role);
	sqlite3_bind_int(st, 7, p->status);
	sqlite3_bind_int(st, 8, p->flags);
	sqlite3_bind_int(st, 9, p->last);
	sqlite3_bind_int(st, 10, p->probe);
	sqlite3_bind_int(st, 11, p->rank);
	sqlite3_bind_int(st, 12, p->chunk);
	sqlite3_bind_int(st, 13, p->part);
	sqlite3_bind_int(st, 14, p->parts);
	sqlite3_bind_int(st, 15, p->need);
	sqlite3_bind_int64(st, 16, p->covers);
	sqlite3_bind_int64(st, 17, p->code);
	bind_u64(st, 18, p->op);
	for (int i = 0; i < PT_MAX; i++) {
		bind_text(st, 19 + i, text);
		text += p->len[i] + 1;
	}
	bind_set(st, 26, p->bytes);
	bind_set(st, 27, p->took_ns);
	bind_set(st, 28, p->count);
	bind_set(st, 29, p->at_ns);
	return run(st);
}

static int write_life(sqlite3_stmt *st, const struct life_row *l)
{
	bind_u64(st, 1, l->row);
	sqlite3_bind_int64(st, 2, l->pid);
	if (l->room[0])
		bind_text(st, 3, l->room);
	else
		sqlite3_bind_text(st, 3, "", -1, SQLITE_STATIC);
	sqlite3_bind_int64(st, 4, l->life);
	bind_name(st, 5, true, sp_stage_name(l->stage));
	bind_u64(st, 6, l->opened_ns);
	bind_u64(st, 7, l->progress_ns);
	bind_u64(st, 8, l->last_ns);
	bind_set(st, 9, l->ended_ns);
	bind_name(st, 10, l->outcome != OUTCOME_NONE, sp_outcome_name(l->outcome));
	sqlite3_bind_int(st, 11, l->stuck);
	bind_name(st, 12, l->cause != CAUSE_NONE, sp_cause_name(l->cause));
	bind_name(st, 13, l->confidence != CONF_NONE, sp_confidence_name(l->confidence));
	bind_name(st, 14, l->verdict != NULL, l->verdict);
	sqlite3_bind_int(st, 15, l->uncertain);
	sqlite3_bind_int(st, 16, l->late);
	sqlite3_bind_int(st, 17, l->fake);
	sqlite3_bind_int(st, 18, l->ever_stuck);
	sqlite3_bind_int(st, 19, l->kept);
	bind_text(st, 20, l->rid);
	bind_text(st, 21, l->peer);
	for (int i = STAGE_BOOTSTRAP; i <= STAGE_RELEASING; i++)
		bind_set(st, 21 + i, l->stage_at[i]);
	bind_set(st, 26, l->first_seq);
	bind_set(st, 27, l->last_seq);
	sqlite3_bind_int64(st, 28, l->events);
	return run(st);
}

static int write_alert(sqlite3_stmt *st, const struct alert_row *a)
{
	bool life = a->type <= ALERT_ENDED;

	bind_u64(st, 1, a->id);
	bind_u64(st, 2, a->ns);
	bind_name(st, 3, true, alert_type_name(a->type));
	sqlite3_bind_int64(st, 4, a->pid);
	sqlite3_bind_int64(st, 5, a->tid);
	bind_text(st, 6, a->room);
	bind_set(st, 7, a->life);
	bind_name(st, 8, life, sp_stage_name(a->stage));
	bind_name(st, 9, a->cause != CAUSE_NONE, sp_cause_name(a->cause));
	bind_name(st, 10, a->confidence != CONF_NONE, sp_confidence_name(a->confidence));
	if (life && a->pin >= 0)
		sqlite3_bind_int(st, 11, a->pin);
	else
		sqlite3_bind_null(st, 11);
	bind_set(st, 12, a->age_ns);
	bind_set(st, 13, a->idle_ns);
	bind_set(st, 14, a->stalled_ns);
	bind_name(st, 15, a->outcome != OUTCOME_NONE, sp_outcome_name(a->outcome));
	bind_set(st, 16, a->lost);
	bind_text(st, 17, a->what);
	bind_text(st, 18, a->note);
	return run(st);
}

/* The first one of a moment takes the place of all that the life had. */
static int write_stack(struct writer *w, const struct stack_row *s)
{
	sqlite3_stmt *st = w->st[ST_STACK];
	int rc = SQLITE_OK;

	if (!s->n) {
		bind_u64(w->st[ST_UNSTACK], 1, s->life);
		rc = run(w->st[ST_UNSTACK]);
	}
	bind_u64(st, 1, s->life);
	sqlite3_bind_int64(st, 2, s->n);
	bind_u64(st, 3, s->ns);
	sqlite3_bind_int64(st, 4, s->pid);
	sqlite3_bind_int64(st, 5, s->tid);
	bind_text(st, 6, s->name);
	sqlite3_bind_text(st, 7, s->frames, -1, SQLITE_STATIC);
	return rc ? rc : run(st);
}

static int write_rows(struct writer *w, const struct batch *b)
{
	int rc = SQLITE_OK;

	for (const struct life_row *l = b->lives; !rc && l; l = l->next)
		rc = write_life(w->st[ST_LIFE], l);
	for (const struct alert_row *a = b->alerts; !rc && a; a = a->next)
		rc = write_alert(w->st[ST_ALERT], a);
	for (const struct stack_row *s = b->stacks; !rc && s; s = s->next)
		rc = write_stack(w, s);
	for (size_t i = 0; !rc && i < b->ndel; i++) {
		bind_u64(w->st[ST_DELETE], 1, b->del[i]);
		rc = run(w->st[ST_DELETE]);
	}
	return rc;
}

static int write_progress(struct writer *w, const struct batch *b)
{
	sqlite3_stmt *st = w->st[ST_PROGRESS];

	sqlite3_bind_int64(st, 1, w->session);
	bind_u64(st, 2, b->model_ns);
	bind_set(st, 3, b->end ? b->model_ns : 0);
	sqlite3_bind_int(st, 4, w->record_all && !w->dropped && !b->lost);
	bind_u64(st, 5, b->lost);
	return run(st);
}

/* One transaction: the rows (when they are not written yet) and the events up to upto. */
static int write_some(struct writer *w, const struct batch *b, size_t upto)
{
	int rc = run(w->st[ST_BEGIN]);

	if (!rc)
		rc = write_rows(w, b);
	for (size_t i = b->head; !rc && i < upto; i++)
		if (b->ev[i])
			rc = write_event(w->st[ST_EVENT], b->base + i, b->ev[i]);
	/* last, so that a reader never sees the model further on than the events */
	if (!rc && upto == b->n)
		rc = write_progress(w, b);
	if (!rc)
		rc = run(w->st[ST_COMMIT]);
	if (!rc)
		return SQLITE_OK;
	writer_failed(w, rc, "cannot be written");
	if (!sqlite3_get_autocommit(w->db))
		sqlite3_exec(w->db, "ROLLBACK", NULL, NULL, NULL);
	return rc;
}

int writer_apply(struct writer *w, struct batch *b)
{
	do {
		size_t upto = b->n - b->head > w->chunk ? b->head + w->chunk : b->n;
		int rc = write_some(w, b, upto);

		if (rc)
			return schema_errno(rc);
		batch_free_rows(b);
		batch_free_events(b, upto);
	} while (b->head < b->n);
	return 0;
}
