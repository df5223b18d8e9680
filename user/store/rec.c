// SPDX-License-Identifier: Apache-2.0
/* Opening a recording for reading: its latest session. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/rec_priv.h"
#include "store/schema.h"
#include "store/text.h"
#include "util/cleanup.h"
#include "util/log.h"

void rec_text(sqlite3_stmt *st, int col, char *dst, size_t len)
{
	const char *s = (const char *)sqlite3_column_text(st, col);
	size_t n = s ? (size_t)sqlite3_column_bytes(st, col) : 0;

	if (!n) {
		dst[0] = '\0';
		return;
	}
	if (n < len && !memchr(s, '\\', n))
		memcpy(dst, s, n + 1);
	else
		text_raw(dst, len, s);
}

int rec_prepare(struct recording *r, const char *sql, sqlite3_stmt **st, struct sp_err *err)
{
	int rc = sqlite3_prepare_v2(r->db, sql, -1, st, NULL);

	return rc ? schema_error(r->path, r->db, rc, "cannot be read", err) : 0;
}

int rec_done(struct recording *r, sqlite3_stmt *st, int rc, struct sp_err *err)
{
	int ret = 0;

	if (rc != SQLITE_DONE && rc != SQLITE_ROW)
		ret = schema_error(r->path, r->db, rc, "cannot be read", err);
	sqlite3_finalize(st);
	return ret;
}

static bool has_content(const char *path, const char *tail)
{
	__free char *name = NULL;
	struct stat st;

	if (asprintf(&name, "%s%s", path, tail) < 0) {
		name = NULL;
		return true;
	}
	return !stat(name, &st) && st.st_size > 0;
}

/*
 * Without a writer and without a WAL the main file is all there is, and it can be read without
 * creating anything beside it. A writer that comes later sees LOCK_READER and leaves the main file
 * alone; one that came between the two looks is seen at the second.
 */
static bool is_immutable(struct recording *r)
{
	if (lock_held(r->fd, LOCK_WRITER, false) || has_content(r->path, "-wal") ||
	    has_content(r->path, "-journal"))
		return false;
	if (lock_take(r->fd, LOCK_READER, false))
		return false;
	if (!lock_held(r->fd, LOCK_WRITER, false) && !has_content(r->path, "-wal"))
		return true;
	lock_drop(r->fd, LOCK_READER);
	return false;
}

static int open_file(struct recording *r, struct sp_err *err)
{
	int rc;

	r->fd = open(r->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (r->fd < 0 && errno == ENOENT)
		return sp_err_set(err, SP_EXIT_USAGE, -ENOENT,
				  "%s: no such file: record with `silentpin watch -o FILE.db`, or "
				  "name another file",
				  r->path);
	if (r->fd < 0)
		return sp_err_set(err, SP_EXIT_USAGE, -errno,
				  "%s: cannot be read: %s: name another file", r->path,
				  strerror(errno));
	rc = schema_recognise(r->fd, r->path, err);
	if (rc == 0 && !has_content(r->path, "-wal"))
		return sp_err_set(err, SP_EXIT_USAGE, -ENODATA,
				  "%s: is empty: nothing has been recorded in it", r->path);
	return rc < 0 ? rc : 0;
}

/* The schema is right, and everything from here on is read from one snapshot. */
static int begin(struct recording *r, bool immutable, struct sp_err *err)
{
	int rc = schema_open(r->path, SQLITE_OPEN_READONLY, immutable, &r->db);

	if (!rc)
		rc = sqlite3_exec(r->db, "PRAGMA query_only = 1; BEGIN", NULL, NULL, NULL);
	if (rc)
		return schema_error(r->path, r->db, rc, "cannot be read", err);
	return schema_check(r->db, r->path, &r->version, err);
}

static int open_db(struct recording *r, struct sp_err *err)
{
	bool immutable = is_immutable(r);
	int rc = begin(r, immutable, err);

	bool closed = rc == -ENOENT || rc == -EACCES || rc == -ENOLCK;

	if (immutable || !closed || lock_held(r->fd, LOCK_WRITER, false))
		return rc;
	/* a rollback journal is used only while a file is created */
	if (has_content(r->path, "-journal"))
		return sp_err_set(err, SP_EXIT_USAGE, -ENODATA,
				  "%s: holds no session yet: the watch that created it was killed "
				  "at once: record into it again",
				  r->path);
	/* the folder cannot be written, so the WAL of a writer that was killed cannot be read */
	sqlite3_close(r->db);
	r->db = NULL;
	memset(err, 0, sizeof(*err));
	rc = begin(r, true, err);
	if (!rc)
		pr_warn("%s: its folder cannot be written, so %s-wal is not read: copy both "
			"elsewhere to see the last seconds",
			r->path, r->path);
	return rc;
}

#define NO_POSTS_SINCE 3 /* schema version */

static char *dup_column(sqlite3_stmt *st, int col)
{
	const char *s = (const char *)sqlite3_column_text(st, col);

	return strdup(s ? s : "");
}

static int take_session(struct recording *r, sqlite3_stmt *st, struct sp_err *err)
{
	struct rec_session *s = &r->s;
	const char *min = (const char *)sqlite3_column_text(st, 8);

	s->id = sqlite3_column_int64(st, 0);
	s->utc_offset_ns = sqlite3_column_int64(st, 1);
	s->start_ns = (uint64_t)sqlite3_column_int64(st, 2);
	s->record_all = sqlite3_column_int(st, 4);
	rec_text(st, 5, s->profile, sizeof(s->profile));
	s->min_confidence = min ? sp_confidence_parse(min) : CONF_NONE;
	for (int i = STAGE_BOOTSTRAP; i <= STAGE_RELEASING; i++)
		s->stage_ns[i] = (uint64_t)sqlite3_column_int64(st, 8 + i);
	s->sees_release = sqlite3_column_int(st, 13);
	s->sees_arrive = sqlite3_column_int(st, 14);
	r->first_seq = sqlite3_column_int64(st, 15);
	r->first_life = sqlite3_column_int64(st, 16);
	r->first_alert = sqlite3_column_int64(st, 17);
	s->ended = sqlite3_column_type(st, 19) != SQLITE_NULL;
	s->end_ns = (uint64_t)sqlite3_column_int64(st, s->ended ? 19 : 18);
	s->complete = sqlite3_column_int(st, 20);
	s->lost_events = (uint64_t)sqlite3_column_int64(st, 21);
	s->no_posts = sqlite3_column_int(st, 22);
	s->options = r->options = dup_column(st, 3);
	s->probes_path = r->probes_path = dup_column(st, 6);
	s->probes_text = r->probes_text = dup_column(st, 7);
	if (!r->options || !r->probes_path || !r->probes_text)
		return sp_err_set(err, SP_EXIT_FAIL, -ENOMEM, "out of memory");
	s->running = !s->ended && lock_held(r->fd, LOCK_WRITER, false);
	return 0;
}

static int read_session(struct recording *r, struct sp_err *err)
{
	const char *no_posts = r->version < NO_POSTS_SINCE ? "0" : "s.no_posts";
	char sql[640];
	sqlite3_stmt *st;
	int ret = 0, rc;

	snprintf(sql, sizeof(sql),
		 "SELECT s.id, s.utc_offset_ns, s.start_ns, s.options, s.record_all,"
		 " s.profile, s.probes_path, s.probes_text, s.min_confidence,"
		 " s.bootstrap_ns, s.ready_ns, s.inflight_ns, s.releasing_ns,"
		 " s.sees_release, s.sees_arrive, s.first_seq, s.first_life,"
		 " s.first_alert, p.model_ns, p.end_ns, p.complete, p.lost_events, %s"
		 " FROM session s JOIN progress p ON p.session = s.id"
		 " ORDER BY s.id DESC LIMIT 1",
		 no_posts);
	rc = rec_prepare(r, sql, &st, err);
	if (rc)
		return rc;
	rc = sqlite3_step(st);
	if (rc == SQLITE_ROW)
		ret = take_session(r, st, err);
	else if (rc == SQLITE_DONE)
		ret = sp_err_set(err, SP_EXIT_USAGE, -ENODATA,
				 "%s: holds no session yet: try again when `silentpin watch` has "
				 "written to it",
				 r->path);
	rc = rec_done(r, st, rc, err);
	return ret ? ret : rc;
}

int rec_open(const char *path, struct recording **out, struct sp_err *err)
{
	struct recording *r = calloc(1, sizeof(*r));
	int rc;

	*out = NULL;
	if (!r)
		return sp_err_set(err, SP_EXIT_FAIL, -ENOMEM, "out of memory");
	r->fd = -1;
	r->path = strdup(path);
	rc = r->path ? open_file(r, err) : sp_err_set(err, SP_EXIT_FAIL, -ENOMEM, "out of memory");
	if (!rc)
		rc = open_db(r, err);
	if (!rc)
		rc = read_session(r, err);
	if (rc) {
		rec_close(r);
		return rc;
	}
	*out = r;
	return 0;
}

int rec_probes(struct recording *r, void (*fn)(void *ctx, int probe, const char *name), void *ctx,
	       struct sp_err *err)
{
	char name[64];
	sqlite3_stmt *st;
	int rc = rec_prepare(r, "SELECT id, name FROM probe WHERE session = ?1 ORDER BY id", &st,
			     err);

	if (rc)
		return rc;
	sqlite3_bind_int64(st, 1, r->s.id);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		rec_text(st, 1, name, sizeof(name));
		fn(ctx, sqlite3_column_int(st, 0), name);
	}
	return rec_done(r, st, rc, err);
}

const struct rec_session *rec_session(const struct recording *r)
{
	return &r->s;
}

void rec_close(struct recording *r)
{
	if (!r)
		return;
	sqlite3_close(r->db);
	if (r->fd >= 0)
		close(r->fd);
	free(r->path);
	free(r->options);
	free(r->probes_path);
	free(r->probes_text);
	free(r);
}
