// SPDX-License-Identifier: Apache-2.0
/*
 * Keeping the file small. What goes first when it is too large: healthy lives, with their timelines
 * where those were kept; then the timelines of unhealthy lives that have ended (also those that an
 * earlier session left open), then events and alerts of no life, then the rows of unhealthy lives.
 * The oldest of each kind first; never a life that is open.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "store/schema.h"
#include "store/writer.h"
#include "util/clock.h"
#include "util/log.h"

#define ROW_BYTES   160 /* of the file, for a row of life */
#define EVENT_BYTES 64  /* for an event */
#define STEP_LIVES  4096
/* When nothing may go, looking again costs a scan of the tables: not before this time, or before
 * the file has grown by an eighth. */
#define LOOK_AGAIN_NS (30 * NS_PER_SEC)

#define HEALTHY                                                                                    \
	"ended_ns IS NOT NULL AND coalesce(outcome, 'done') = 'done' AND NOT ever_stuck"           \
	" AND NOT uncertain"
/* %llu: first life of the running session */
#define CLOSED "(ended_ns IS NOT NULL OR id < %llu)"

static uint64_t page_bytes(struct writer *w)
{
	return (uint64_t)writer_int(w, "PRAGMA page_size");
}

/* Bytes in use: what the file would have after giving back its free pages. */
static uint64_t used_bytes(struct writer *w)
{
	return (uint64_t)(writer_int(w, "PRAGMA page_count") -
			  writer_int(w, "PRAGMA freelist_count")) *
	       page_bytes(w);
}

static uint64_t file_size(const char *path, const char *tail)
{
	char name[4096];
	struct stat st;

	snprintf(name, sizeof(name), "%s%s", path, tail);
	return stat(name, &st) ? 0 : (uint64_t)st.st_size;
}

int writer_checkpoint(struct writer *w, int mode)
{
	int rc;

	if (lock_held(w->fd, LOCK_READER, true))
		return 0; /* a reader relies on the main file as it is */
	rc = sqlite3_wal_checkpoint_v2(w->db, NULL, mode, NULL, NULL);
	if (!rc || (rc & 0xff) == SQLITE_BUSY || (rc & 0xff) == SQLITE_LOCKED)
		return 0;
	return schema_errno(writer_failed(w, rc, "cannot be written"));
}

/*
 * Fill temp.gone with the oldest lives that fit `where`, until what they hold in the file reaches
 * excess. Returns how many; the numbers of their events are in [*first, *last].
 */
static int choose(struct writer *w, const char *where, uint64_t excess, uint64_t *first,
		  uint64_t *last)
{
	sqlite3_stmt *st, *put;
	char sql[512];
	uint64_t bytes = 0;
	int n = 0;

	if (writer_exec(w, "DELETE FROM temp.gone"))
		return 0;
	snprintf(sql, sizeof(sql),
		 "SELECT id, events, first_seq, last_seq, (SELECT sum(length(frames)) FROM stack s"
		 " WHERE s.life = l.id) FROM life l WHERE %s ORDER BY id LIMIT %d",
		 where, STEP_LIVES);
	if (sqlite3_prepare_v2(w->db, sql, -1, &st, NULL))
		return 0;
	if (sqlite3_prepare_v2(w->db, "INSERT INTO temp.gone VALUES(?1)", -1, &put, NULL)) {
		sqlite3_finalize(st);
		return 0;
	}
	*first = UINT64_MAX;
	*last = 0;
	while (bytes < excess && sqlite3_step(st) == SQLITE_ROW) {
		uint64_t from = (uint64_t)sqlite3_column_int64(st, 2);
		uint64_t to = (uint64_t)sqlite3_column_int64(st, 3);

		sqlite3_bind_int64(put, 1, sqlite3_column_int64(st, 0));
		sqlite3_step(put);
		sqlite3_reset(put);
		bytes += ROW_BYTES +
			 (from ? (uint64_t)sqlite3_column_int64(st, 1) * EVENT_BYTES : 0) +
			 (uint64_t)sqlite3_column_int64(st, 4);
		if (from && from < *first)
			*first = from;
		if (to > *last)
			*last = to;
		n++;
	}
	sqlite3_finalize(put);
	sqlite3_finalize(st);
	return n;
}

/* The oldest lives that fit: their timelines, and (rows) all that is known of them. */
static int drop_lives(struct writer *w, const char *where, bool rows, uint64_t excess)
{
	uint64_t first, last;
	char sql[256];
	int n = choose(w, where, excess, &first, &last);

	if (!n)
		return 0;
	if (last) {
		snprintf(sql, sizeof(sql),
			 "DELETE FROM event WHERE seq BETWEEN %llu AND %llu"
			 " AND life IN (SELECT id FROM temp.gone)",
			 (unsigned long long)first, (unsigned long long)last);
		if (writer_exec(w, sql))
			return -1;
	}
	snprintf(sql, sizeof(sql), "SELECT count(*) FROM temp.gone WHERE id >= %llu",
		 (unsigned long long)w->first_life);
	if (writer_int(w, sql) > 0)
		w->dropped = true;
	if (writer_exec(w, "DELETE FROM stack WHERE life IN (SELECT id FROM temp.gone)"))
		return -1;
	if (writer_exec(w, rows ? "DELETE FROM life WHERE id IN (SELECT id FROM temp.gone)"
				: "UPDATE life SET kept = 0, first_seq = NULL, last_seq = NULL"
				  " WHERE id IN (SELECT id FROM temp.gone)"))
		return -1;
	return n;
}

/* Events of no life that still has a timeline, alerts: a slice of the oldest. */
static int drop_loose(struct writer *w, uint64_t excess)
{
	char sql[512];
	uint64_t n = excess / EVENT_BYTES + 1;
	int before = sqlite3_total_changes(w->db);

	snprintf(sql, sizeof(sql),
		 "DELETE FROM event WHERE seq IN (SELECT seq FROM event e WHERE life IS NULL"
		 " OR NOT EXISTS (SELECT 1 FROM life l WHERE l.id = e.life AND l.kept)"
		 " ORDER BY seq LIMIT %llu)",
		 (unsigned long long)n);
	if (writer_exec(w, sql))
		return -1;
	if (sqlite3_total_changes(w->db) != before) {
		w->dropped = true;
		return 1;
	}
	snprintf(sql, sizeof(sql),
		 "DELETE FROM alert WHERE id IN (SELECT id FROM alert ORDER BY id LIMIT %llu)",
		 (unsigned long long)n);
	if (writer_exec(w, sql))
		return -1;
	return sqlite3_total_changes(w->db) != before;
}

/* What an earlier session leaves behind once its rooms are gone. */
static int drop_sessions(struct writer *w)
{
	char sql[512];
	int before;

	snprintf(sql, sizeof(sql),
		 "CREATE TEMP TABLE IF NOT EXISTS old(id INTEGER PRIMARY KEY);"
		 "DELETE FROM temp.old; INSERT INTO temp.old SELECT id FROM session WHERE id < %lld"
		 " AND NOT EXISTS (SELECT 1 FROM life WHERE id < %llu);"
		 "DELETE FROM probe WHERE session IN (SELECT id FROM temp.old);"
		 "DELETE FROM progress WHERE session IN (SELECT id FROM temp.old);",
		 (long long)w->session, (unsigned long long)w->first_life);
	if (writer_exec(w, sql))
		return -1;
	before = sqlite3_total_changes(w->db);
	if (writer_exec(w, "DELETE FROM session WHERE id IN (SELECT id FROM temp.old)"))
		return -1;
	return sqlite3_total_changes(w->db) != before;
}

/* Drop about excess bytes of the least wanted kind that has any: > 0 done, 0 nothing left, < 0. */
static int drop_some(struct writer *w, uint64_t excess)
{
	char closed_kept[128], closed_bare[128];
	int n;

	snprintf(closed_kept, sizeof(closed_kept), "kept AND " CLOSED,
		 (unsigned long long)w->first_life);
	snprintf(closed_bare, sizeof(closed_bare), "NOT kept AND " CLOSED,
		 (unsigned long long)w->first_life);
	n = drop_lives(w, HEALTHY, true, excess);
	if (!n)
		n = drop_lives(w, closed_kept, false, excess);
	if (!n)
		n = drop_loose(w, excess);
	if (!n)
		n = drop_lives(w, closed_bare, true, excess);
	if (!n)
		n = drop_sessions(w);
	return n;
}

static int shrink_step(struct writer *w, uint64_t excess)
{
	int n;

	if (writer_exec(w, "CREATE TEMP TABLE IF NOT EXISTS gone(id INTEGER PRIMARY KEY)") ||
	    writer_exec(w, "BEGIN IMMEDIATE"))
		return -1;
	n = drop_some(w, excess);
	if (n >= 0 && writer_exec(w, "COMMIT"))
		n = -1;
	if (n < 0 && !sqlite3_get_autocommit(w->db))
		sqlite3_exec(w->db, "ROLLBACK", NULL, NULL, NULL);
	return n;
}

int retain_shrink(struct writer *w, uint64_t bytes)
{
	uint64_t used;
	int rc;

	while ((used = used_bytes(w)) > bytes) {
		int n = shrink_step(w, used - bytes);

		if (n < 0)
			return -EIO;
		if (!n) {
			if (!w->too_small)
				pr_warn("%s: what is open now needs more than --keep-mb: the file "
					"grows beyond it",
					w->path);
			w->too_small = true;
			w->look_again_ns = mono_ns() + LOOK_AGAIN_NS;
			w->look_again_bytes = used + bytes / 8;
			break;
		}
		/* the WAL must not grow by what is being dropped */
		rc = writer_checkpoint(w, SQLITE_CHECKPOINT_PASSIVE);
		if (rc)
			return rc;
	}
	if (writer_exec(w, "PRAGMA incremental_vacuum"))
		return -EIO;
	return writer_checkpoint(w, SQLITE_CHECKPOINT_TRUNCATE);
}

/* Half of the file is free pages: a burst is over, its space can go back. */
static int give_back(struct writer *w)
{
	int64_t pages = writer_int(w, "PRAGMA page_count");
	int64_t spare = writer_int(w, "PRAGMA freelist_count");

	if (spare < 2048 || spare < pages / 2)
		return 0;
	return writer_exec(w, "PRAGMA incremental_vacuum(1024)") ? -EIO : 0;
}

/* Is the file still what its name leads to? SQLite goes on with a deleted one, and never says so.
 */
static int still_there(struct writer *w)
{
	struct stat open_file, named;

	if (fstat(w->fd, &open_file) ||
	    (!stat(w->path, &named) && named.st_ino == open_file.st_ino &&
	     named.st_dev == open_file.st_dev))
		return 0;
	snprintf(w->error, sizeof(w->error), "%.90s: was deleted, moved or replaced meanwhile",
		 w->path);
	return -ESTALE;
}

int writer_maintain(struct writer *w)
{
	uint64_t page = page_bytes(w);
	uint64_t size = (uint64_t)writer_int(w, "PRAGMA page_count") * page;
	/* what the WAL may take is not left for the file */
	uint64_t limit = w->keep_bytes > 4 * w->wal_limit ? w->keep_bytes - 2 * w->wal_limit
							  : w->keep_bytes / 2;
	int rc = still_there(w);

	if (rc)
		return rc;
	if ((uint64_t)w->wal_pages * page > w->wal_limit)
		rc = writer_checkpoint(w, SQLITE_CHECKPOINT_PASSIVE);
	if (rc)
		return rc;
	if (!w->keep_bytes || size <= limit)
		rc = give_back(w);
	else if (mono_ns() >= w->look_again_ns || size > w->look_again_bytes)
		rc = retain_shrink(w, limit - limit / 8);
	w->bytes = file_size(w->path, "") + file_size(w->path, "-wal");
	return rc;
}
