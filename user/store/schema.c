// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "event/event.h"
#include "store/schema.h"
#include "util/cleanup.h"

#define LATEST     " FROM session WHERE id = (SELECT max(id) FROM session))"
#define FIRST_LIFE "(SELECT first_life" LATEST
#define FIRST_SEQ  "(SELECT first_seq" LATEST

/* Of each life the stacks of its latest alert: n from 0, frames a JSON array of strings. */
#define SCHEMA_STACK                                                                               \
	"CREATE TABLE stack(life INTEGER NOT NULL, n INTEGER NOT NULL, ns INTEGER NOT NULL,"       \
	" pid INTEGER NOT NULL, tid INTEGER NOT NULL, name TEXT, frames TEXT NOT NULL,"            \
	" PRIMARY KEY(life, n)) WITHOUT ROWID;"

/* They name columns and roles of this version: an older file gets them anew. */
#define SCHEMA_VIEWS                                                                               \
	"CREATE VIEW rooms AS SELECT pid, room, life, stage, opened_ns, last_ns, ended_ns,"        \
	" outcome, CASE WHEN stuck OR ended_ns IS NOT NULL THEN cause END AS cause,"               \
	" CASE WHEN stuck OR ended_ns IS NOT NULL THEN confidence END AS confidence, uncertain"    \
	" FROM life WHERE id >= " FIRST_LIFE "; "                                                  \
	"CREATE VIEW events AS SELECT e.ns AS time_ns, e.pid AS pid, e.tid AS "                    \
	"tid,"                                                                                     \
	" " SCHEMA_EVENT_ROOM " AS room, l.life AS life, " SCHEMA_EVENT_ROLE " AS role,"           \
	" " SCHEMA_EVENT_PROBE " AS probe, " SCHEMA_EVENT_DETAIL " AS detail"                      \
	" " SCHEMA_EVENT_FROM " WHERE e.seq >= " FIRST_SEQ ";"

/* role: names of enum sp_role, filled by the writer. event.seq and life.id only ever grow, so a
 * session is a range of them. */
const char schema_sql[] =
	"CREATE TABLE session(id INTEGER PRIMARY KEY, writer_pid INTEGER NOT NULL,"
	" boot_id TEXT NOT NULL, utc_offset_ns INTEGER NOT NULL, start_ns INTEGER NOT NULL,"
	" options TEXT NOT NULL, record_all INTEGER NOT NULL, profile TEXT NOT NULL,"
	" probes_path TEXT NOT NULL, probes_text TEXT NOT NULL, min_confidence TEXT NOT NULL,"
	" bootstrap_ns INTEGER NOT NULL, ready_ns INTEGER NOT NULL, inflight_ns INTEGER NOT NULL,"
	" releasing_ns INTEGER NOT NULL, sees_release INTEGER NOT NULL,"
	" sees_arrive INTEGER NOT NULL, first_seq INTEGER NOT NULL, first_life INTEGER NOT NULL,"
	" first_alert INTEGER NOT NULL, no_posts INTEGER NOT NULL DEFAULT 0);"
	/* what changes all the time is kept apart from the long row above */
	"CREATE TABLE progress(session INTEGER PRIMARY KEY, model_ns INTEGER NOT NULL,"
	" end_ns INTEGER, complete INTEGER NOT NULL, lost_events INTEGER NOT NULL);"
	"CREATE TABLE role(id INTEGER PRIMARY KEY, name TEXT NOT NULL);"
	"CREATE TABLE probe(session INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT NOT NULL,"
	" PRIMARY KEY(session, id)) WITHOUT ROWID;"
	"CREATE TABLE life(id INTEGER PRIMARY KEY, pid INTEGER NOT NULL, room TEXT NOT NULL,"
	" life INTEGER NOT NULL, stage TEXT NOT NULL, opened_ns INTEGER NOT NULL,"
	" progress_ns INTEGER NOT NULL, last_ns INTEGER NOT NULL, ended_ns INTEGER, outcome TEXT,"
	" stuck INTEGER NOT NULL, cause TEXT, confidence TEXT, verdict TEXT,"
	" uncertain INTEGER NOT NULL, late INTEGER NOT NULL, fake INTEGER NOT NULL,"
	" ever_stuck INTEGER NOT NULL, kept INTEGER NOT NULL, rid TEXT, peer TEXT,"
	" bootstrap_ns INTEGER, ready_ns INTEGER, inflight_ns INTEGER, releasing_ns INTEGER,"
	" first_seq INTEGER, last_seq INTEGER, events INTEGER NOT NULL);"
	/* few of many when only unhealthy timelines are kept */
	"CREATE INDEX life_kept ON life(id) WHERE kept;"
	"CREATE TABLE event(seq INTEGER PRIMARY KEY, ns INTEGER NOT NULL, pid INTEGER NOT NULL,"
	" tid INTEGER NOT NULL, life INTEGER, role INTEGER NOT NULL, status INTEGER NOT NULL,"
	" flags INTEGER NOT NULL, last INTEGER NOT NULL, probe INTEGER NOT NULL,"
	" rank INTEGER NOT NULL, chunk INTEGER NOT NULL, part INTEGER NOT NULL,"
	" parts INTEGER NOT NULL, need INTEGER NOT NULL, covers INTEGER NOT NULL,"
	" code INTEGER NOT NULL, op INTEGER NOT NULL, room TEXT, kind TEXT, peer TEXT, agent TEXT,"
	" rid TEXT, note TEXT, object TEXT, bytes INTEGER, took_ns INTEGER, count INTEGER,"
	" at_ns INTEGER);"
	"CREATE TABLE alert(id INTEGER PRIMARY KEY, ns INTEGER NOT NULL, type TEXT NOT NULL,"
	" pid INTEGER NOT NULL, tid INTEGER NOT NULL, room TEXT, life INTEGER,"
	" stage TEXT, cause TEXT, confidence TEXT, pin INTEGER, age_ns INTEGER, idle_ns INTEGER,"
	" stalled_ns INTEGER, outcome TEXT, lost INTEGER, what TEXT, note TEXT);" SCHEMA_STACK
		SCHEMA_VIEWS;

const char *const schema_from[SCHEMA_VERSION] = {
	[1] = SCHEMA_STACK,
	[2] = "ALTER TABLE session ADD COLUMN no_posts INTEGER NOT NULL DEFAULT 0;",
	[3] = "ALTER TABLE event ADD COLUMN object TEXT;"
	      "ALTER TABLE event ADD COLUMN bytes INTEGER;"
	      "ALTER TABLE event ADD COLUMN took_ns INTEGER;"
	      "ALTER TABLE event ADD COLUMN count INTEGER;"
	      "ALTER TABLE event ADD COLUMN at_ns INTEGER;",
};
const char schema_anew[] = "DROP VIEW rooms; DROP VIEW events;" SCHEMA_VIEWS;

_Static_assert(ROLE_HELD == 2, "SCHEMA_HELD");

static int lock_call(int fd, int cmd, off_t byte, short type, struct flock *fl)
{
	*fl = (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
	return fcntl(fd, cmd, fl) ? -errno : 0;
}

int lock_take(int fd, off_t byte, bool exclusive)
{
	struct flock fl;
	int rc = lock_call(fd, F_OFD_SETLK, byte, exclusive ? F_WRLCK : F_RDLCK, &fl);

	return rc == -EACCES ? -EAGAIN : rc;
}

int lock_drop(int fd, off_t byte)
{
	struct flock fl;

	return lock_call(fd, F_OFD_SETLK, byte, F_UNLCK, &fl);
}

bool lock_held(int fd, off_t byte, bool exclusive)
{
	struct flock fl;

	if (lock_call(fd, F_OFD_GETLK, byte, exclusive ? F_WRLCK : F_RDLCK, &fl))
		return false;
	return fl.l_type != F_UNLCK;
}

static uint32_t be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
}

static int other_version(const char *path, int64_t version, struct sp_err *err)
{
	return sp_err_set(
		err, SP_EXIT_USAGE, -EPROTO,
		"%s: recorded with schema version %lld, this silentpin knows %d to %d: use "
		"the silentpin that wrote it, or another file",
		path, (long long)version, SCHEMA_OLDEST, SCHEMA_VERSION);
}

int schema_recognise(int fd, const char *path, struct sp_err *err)
{
	uint8_t head[100]; /* the database header: https://sqlite.org/fileformat.html */
	struct stat st;
	int32_t version;
	ssize_t n;
	bool ours;

	if (fstat(fd, &st))
		return sp_err_set(err, SP_EXIT_USAGE, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return sp_err_set(err, SP_EXIT_USAGE, S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL,
				  "%s: is %s, not a recording: name a file", path,
				  S_ISDIR(st.st_mode) ? "a directory" : "a special file");
	n = pread(fd, head, sizeof(head), 0);
	if (n < 0)
		return sp_err_set(err, SP_EXIT_USAGE, -errno, "%s: cannot be read: %s", path,
				  strerror(errno));
	if (n == 0)
		return 0;
	/* bytes 40..43: schema cookie, 60..63: user_version, 68..71: application_id */
	ours = n == (ssize_t)sizeof(head) && !memcmp(head, "SQLite format 3", 16);
	if (ours && !be32(head + 68) && !be32(head + 40))
		return 0; /* a database without a table: of a writer killed in its first moment */
	if (!ours || be32(head + 68) != SCHEMA_APP_ID)
		return sp_err_set(err, SP_EXIT_USAGE, -EINVAL,
				  "%s: not a silentpin recording: name another file", path);
	version = (int32_t)be32(head + 60);
	if (version < SCHEMA_OLDEST || version > SCHEMA_VERSION)
		return other_version(path, version, err);
	return 1;
}

int schema_errno(int rc)
{
	switch (rc & 0xff) {
	case SQLITE_OK:
	case SQLITE_ROW:
	case SQLITE_DONE:
		return 0;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_READONLY:
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return -EACCES;
	case SQLITE_CANTOPEN:
		return -ENOENT;
	case SQLITE_PROTOCOL: /* the WAL's index is unfinished and may not be written */
		return -ENOLCK;
	case SQLITE_NOTADB:
	case SQLITE_CORRUPT:
		return -EBADMSG;
	default:
		return -EIO;
	}
}

int schema_error(const char *path, sqlite3 *db, int rc, const char *doing, struct sp_err *err)
{
	const char *why = db ? sqlite3_errmsg(db) : sqlite3_errstr(rc);
	const char *todo = "";
	int exit_code = SP_EXIT_USAGE;
	int sys = db ? sqlite3_system_errno(db) : 0;

	switch (rc & 0xff) {
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
	case SQLITE_ERROR: /* a table is missing or has other columns */
		return sp_err_set(err, exit_code, -EBADMSG,
				  "%s: damaged (%s): move it away, or name another file", path,
				  why);
	case SQLITE_FULL:
		why = "the disk is full";
		todo = ": make room, or name a file elsewhere";
		break;
	case SQLITE_READONLY:
	case SQLITE_CANTOPEN:
	case SQLITE_PERM:
		todo = sys == EMFILE || sys == ENFILE ? ": raise ulimit -n"
		       : sys == ENAMETOOLONG
			       ? ": FILE-wal and FILE-shm need room for their names"
			       : ": its folder must be writable for FILE-wal and FILE-shm";
		if (sys)
			why = strerror(sys);
		break;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		why = "another program holds a lock on it";
		todo = ": end that program, or name another file";
		break;
	case SQLITE_IOERR:
		if (sys)
			why = strerror(sys);
		break;
	default:
		exit_code = SP_EXIT_FAIL;
	}
	return sp_err_set(err, exit_code, schema_errno(rc), "%s: %s: %s%s", path, doing, why, todo);
}

/* In a URI everything but the plainest characters is escaped. */
static char *immutable_uri(const char *path)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789/._-";
	char *uri = malloc(strlen(path) * 3 + 32);
	size_t at;

	if (!uri)
		return NULL;
	at = (size_t)sprintf(uri, "file:");
	for (; *path; path++)
		at += (size_t)sprintf(uri + at, strchr(plain, *path) ? "%c" : "%%%02x",
				      (unsigned char)*path);
	sprintf(uri + at, "?immutable=1");
	return uri;
}

int schema_open(const char *path, int flags, bool immutable, sqlite3 **db)
{
	__free char *plain = NULL;
	__free char *uri = NULL;
	int rc;

	*db = NULL;
	/* a leading ./ keeps names such as ":memory:" and "file:x" from having a meaning */
	if (asprintf(&plain, "%s%s", path[0] == '/' ? "" : "./", path) < 0) {
		plain = NULL;
		return SQLITE_NOMEM;
	}
	if (immutable) {
		uri = immutable_uri(plain);
		if (!uri)
			return SQLITE_NOMEM;
		flags |= SQLITE_OPEN_URI;
	}
	rc = sqlite3_open_v2(uri ? uri : plain, db, flags | SQLITE_OPEN_NOMUTEX, NULL);
	if (*db) {
		sqlite3_extended_result_codes(*db, 1);
		sqlite3_busy_timeout(*db, 2000);
	}
	return rc;
}

int64_t schema_int(sqlite3 *db, const char *sql, int64_t dflt, int *rc)
{
	sqlite3_stmt *st = NULL;
	int64_t v = dflt;

	*rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);
	if (*rc == SQLITE_OK) {
		*rc = sqlite3_step(st);
		if (*rc == SQLITE_ROW && sqlite3_column_type(st, 0) != SQLITE_NULL)
			v = sqlite3_column_int64(st, 0);
		if (*rc == SQLITE_ROW || *rc == SQLITE_DONE)
			*rc = SQLITE_OK;
	}
	sqlite3_finalize(st);
	return v;
}

int schema_check(sqlite3 *db, const char *path, int *known, struct sp_err *err)
{
	int rc;
	int64_t version = schema_int(db, "PRAGMA user_version", -1, &rc);
	int64_t views;

	if (rc)
		return schema_error(path, db, rc, "cannot be read", err);
	if (version < SCHEMA_OLDEST || version > SCHEMA_VERSION)
		return other_version(path, version, err);
	*known = (int)version;
	views = schema_int(db,
			   "SELECT count(*) FROM sqlite_master WHERE type = 'view'"
			   " AND name IN ('rooms', 'events')",
			   0, &rc);
	if (rc || views != 2)
		return schema_error(path, rc ? db : NULL, rc ? rc : SQLITE_CORRUPT,
				    "cannot be read", err);
	return 0;
}
