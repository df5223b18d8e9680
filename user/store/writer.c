// SPDX-License-Identifier: Apache-2.0
/* Opening, creating and closing a recording for writing. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/schema.h"
#include "store/text.h"
#include "store/writer.h"
#include "util/cleanup.h"
#include "util/log.h"

/* A WAL of 4 MiB costs a checkpoint (two fsyncs) a second at 100,000 events a second. */
#define WAL_LIMIT_MAX (4u << 20)
#define WAL_LIMIT_MIN (64u << 10)
#define EVENT_BYTES   128 /* of WAL for one event, generously */

int writer_failed(struct writer *w, int rc, const char *doing)
{
	int sys = sqlite3_system_errno(w->db);
	bool io = (rc & 0xff) == SQLITE_IOERR || (rc & 0xff) == SQLITE_CANTOPEN;

	snprintf(w->error, sizeof(w->error), "%s: %s: %s", w->path, doing,
		 (rc & 0xff) == SQLITE_FULL ? "the disk is full"
		 : io && sys                ? strerror(sys)
					    : sqlite3_errmsg(w->db));
	return rc;
}

int writer_exec(struct writer *w, const char *sql)
{
	int rc = sqlite3_exec(w->db, sql, NULL, NULL, NULL);

	return rc ? writer_failed(w, rc, "write") : SQLITE_OK;
}

int64_t writer_int(struct writer *w, const char *sql)
{
	int rc;

	return schema_int(w->db, sql, 0, &rc);
}

static int open_refused(const char *path, struct sp_err *err)
{
	const char *todo = "name another file with -o";
	int rc = -errno;

	switch (errno) {
	case ENOENT:
		todo = "create its folder, or name another file with -o";
		break;
	case EISDIR:
		return sp_err_set(err, SP_EXIT_USAGE, rc,
				  "%s: is a directory: name a file in it with -o", path);
	case ENOSPC:
	case EDQUOT:
		todo = "make room, or name a file elsewhere with -o";
		break;
	default:
		break;
	}
	return sp_err_set(err, SP_EXIT_USAGE, rc, "%s: cannot be written: %s: %s", path,
			  strerror(-rc), todo);
}

/* The other writer's pid, from its session; 0: it has not written one yet. */
static int64_t other_writer(const char *path)
{
	sqlite3 *db;
	int64_t pid = 0;
	int rc = schema_open(path, SQLITE_OPEN_READONLY, false, &db);

	if (!rc)
		pid = schema_int(db, "SELECT writer_pid FROM session ORDER BY id DESC LIMIT 1", 0,
				 &rc);
	sqlite3_close(db);
	return pid;
}

static int take_file(struct writer *w, bool *created, struct sp_err *err)
{
	int64_t pid;
	int rc;

	w->fd = open(w->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0644);
	*created = w->fd >= 0;
	if (w->fd < 0 && errno == EEXIST)
		w->fd = open(w->path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (w->fd < 0)
		return open_refused(w->path, err);
	rc = schema_recognise(w->fd, w->path, err);
	if (rc < 0)
		return rc;
	rc = lock_take(w->fd, LOCK_WRITER, true);
	if (!rc)
		return 0;
	if (rc == -EAGAIN)
		*created = false; /* another watch has taken the file that was just made */
	if (rc != -EAGAIN)
		return sp_err_set(err, SP_EXIT_USAGE, rc,
				  "%s: cannot be locked: %s: name a file on a local disk with -o",
				  w->path, strerror(-rc));
	pid = other_writer(w->path);
	if (!pid)
		return sp_err_set(err, SP_EXIT_USAGE, -EBUSY,
				  "%s: being written by another process: name another file with -o",
				  w->path);
	return sp_err_set(err, SP_EXIT_USAGE, -EBUSY,
			  "%s: being written by pid %lld: name another file with -o, or end that "
			  "watch first",
			  w->path, (long long)pid);
}

static int create_tables(struct writer *w)
{
	char sql[256];
	int rc;

	/* Still with a rollback journal: the header, by which a file is recognised, is then in the
	 * main file from the first commit on. A process killed here leaves nothing but a journal
	 * that rolls back. */
	snprintf(sql, sizeof(sql),
		 "PRAGMA auto_vacuum = INCREMENTAL; BEGIN IMMEDIATE;"
		 "PRAGMA application_id = %d; PRAGMA user_version = %d;",
		 SCHEMA_APP_ID, SCHEMA_VERSION);
	rc = writer_exec(w, sql);
	if (!rc)
		rc = writer_exec(w, schema_sql);
	return rc ? rc : writer_exec(w, "COMMIT");
}

/* In one transaction: a file is of one version or of the other. */
static int upgrade_tables(struct writer *w, int version)
{
	char sql[64];
	int rc = writer_exec(w, "BEGIN IMMEDIATE");

	if (rc)
		return rc;
	snprintf(sql, sizeof(sql), "PRAGMA user_version = %d", SCHEMA_VERSION);
	for (; !rc && version < SCHEMA_VERSION; version++)
		rc = writer_exec(w, schema_from[version]);
	if (!rc)
		rc = writer_exec(w, schema_anew);
	if (!rc)
		rc = writer_exec(w, sql);
	return rc ? rc : writer_exec(w, "COMMIT");
}

static void boot_id(char buf[64])
{
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (!f || !fgets(buf, 64, f))
		buf[0] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	if (f)
		fclose(f);
}

static int bind_safe(sqlite3_stmt *st, int i, const char *text)
{
	size_t len = TEXT_SAFE_MAX(strlen(text) + 1);
	char *safe;

	if (text_is_safe(text))
		return sqlite3_bind_text(st, i, text, -1, SQLITE_TRANSIENT);
	safe = malloc(len);
	if (!safe)
		return SQLITE_NOMEM;
	text_safe(safe, len, text);
	return sqlite3_bind_text(st, i, safe, -1, free);
}

static int insert_session(struct writer *w, const struct store_cfg *cfg)
{
	char boot[64];
	sqlite3_stmt *st;
	int rc;

	rc = sqlite3_prepare_v2(w->db,
				"INSERT INTO session VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,"
				"?13,?14,?15,?16,?17,?18,?19,?20,?21)",
				-1, &st, NULL);
	if (rc)
		return rc;
	boot_id(boot);
	sqlite3_bind_int64(st, 1, w->session);
	sqlite3_bind_int64(st, 2, getpid());
	sqlite3_bind_text(st, 3, boot, -1, SQLITE_STATIC);
	sqlite3_bind_int64(st, 4, cfg->utc_offset_ns);
	sqlite3_bind_int64(st, 5, (int64_t)cfg->start_ns);
	bind_safe(st, 6, cfg->options ? cfg->options : "");
	sqlite3_bind_int(st, 7, cfg->record_all);
	bind_safe(st, 8, cfg->profile->name);
	bind_safe(st, 9, cfg->probes && cfg->probes->path ? cfg->probes->path : "");
	/* as it is: libyaml has refused anything but UTF-8, and a replay parses it again */
	sqlite3_bind_text(st, 10, cfg->probes && cfg->probes->text ? cfg->probes->text : "", -1,
			  SQLITE_STATIC);
	sqlite3_bind_text(st, 11, sp_confidence_name(cfg->min_confidence), -1, SQLITE_STATIC);
	for (int i = STAGE_BOOTSTRAP; i <= STAGE_RELEASING; i++)
		sqlite3_bind_int64(st, 11 + i, (int64_t)cfg->stage_ns[i]);
	sqlite3_bind_int(st, 16, cfg->sees_release);
	sqlite3_bind_int(st, 17, cfg->sees_arrive);
	sqlite3_bind_int64(st, 18, (int64_t)w->first_seq);
	sqlite3_bind_int64(st, 19, (int64_t)w->first_life);
	sqlite3_bind_int64(st, 20, (int64_t)w->first_alert);
	sqlite3_bind_int(st, 21, cfg->no_posts);
	rc = sqlite3_step(st);
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int insert_probes(struct writer *w, const struct profile *p)
{
	sqlite3_stmt *st;
	int rc = sqlite3_prepare_v2(w->db, "INSERT INTO probe VALUES(?1, ?2, ?3)", -1, &st, NULL);

	for (int i = 0; !rc && i < p->nprobes; i++) {
		sqlite3_bind_int64(st, 1, w->session);
		sqlite3_bind_int(st, 2, i);
		bind_safe(st, 3, p->probes[i].name);
		rc = sqlite3_step(st) == SQLITE_DONE ? SQLITE_OK : sqlite3_errcode(w->db);
		sqlite3_reset(st);
	}
	sqlite3_finalize(st);
	return rc;
}

/* What the table does not name yet: a new file has none, one of an older silentpin not all. */
static int name_roles(struct writer *w)
{
	char sql[128];
	int rc = SQLITE_OK;

	for (int i = ROLE_NONE; !rc && i < ROLE_MAX; i++) {
		snprintf(sql, sizeof(sql), "INSERT OR IGNORE INTO role VALUES(%d, '%s')", i,
			 sp_role_name(i));
		rc = writer_exec(w, sql);
	}
	return rc;
}

/* Numbers go on where the last session ended, also when its last rows are gone. */
static uint64_t next_number(struct writer *w, const char *max_sql, const char *first_sql)
{
	int64_t max = writer_int(w, max_sql) + 1;
	int64_t first = writer_int(w, first_sql);

	return (uint64_t)(max > first ? max : first);
}

static int begin_session(struct writer *w, const struct store_cfg *cfg)
{
	char sql[160];
	int rc = writer_exec(w, "BEGIN IMMEDIATE");

	if (rc)
		return rc;
	w->session = writer_int(w, "SELECT max(id) FROM session") + 1;
	w->first_seq =
		next_number(w, "SELECT max(seq) FROM event", "SELECT max(first_seq) FROM session");
	w->first_life =
		next_number(w, "SELECT max(id) FROM life", "SELECT max(first_life) FROM session");
	w->first_alert =
		next_number(w, "SELECT max(id) FROM alert", "SELECT max(first_alert) FROM session");
	rc = name_roles(w);
	if (!rc)
		rc = insert_session(w, cfg);
	if (!rc)
		rc = insert_probes(w, cfg->profile);
	snprintf(sql, sizeof(sql), "INSERT INTO progress VALUES(%lld, %llu, NULL, %d, 0)",
		 (long long)w->session, (unsigned long long)cfg->start_ns, cfg->record_all);
	if (!rc)
		rc = writer_exec(w, sql);
	return rc ? rc : writer_exec(w, "COMMIT");
}

static int prepare_all(struct writer *w)
{
	static const char *const sql[ST_MAX] = {
		[ST_BEGIN] = "BEGIN IMMEDIATE",
		[ST_COMMIT] = "COMMIT",
		[ST_EVENT] = "INSERT INTO event VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,"
			     "?14,?15,?16,?17,?18,?19,?20,?21,?22,?23,?24,?25,?26,?27,?28,?29)",
		[ST_LIFE] =
			"INSERT INTO life VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,"
			"?15,?16,?17,?18,?19,?20,?21,?22,?23,?24,?25,?26,?27,?28)"
			" ON CONFLICT(id) DO UPDATE SET stage = excluded.stage,"
			" progress_ns = excluded.progress_ns, last_ns = excluded.last_ns,"
			" ended_ns = excluded.ended_ns, outcome = excluded.outcome,"
			" stuck = excluded.stuck, cause = excluded.cause,"
			" confidence = excluded.confidence,"
			" verdict = coalesce(excluded.verdict, verdict),"
			" uncertain = excluded.uncertain, late = excluded.late,"
			" fake = excluded.fake, ever_stuck = excluded.ever_stuck,"
			" kept = excluded.kept, rid = excluded.rid, peer = excluded.peer,"
			" bootstrap_ns = coalesce(bootstrap_ns, excluded.bootstrap_ns),"
			" ready_ns = coalesce(ready_ns, excluded.ready_ns),"
			" inflight_ns = coalesce(inflight_ns, excluded.inflight_ns),"
			" releasing_ns = coalesce(releasing_ns, excluded.releasing_ns),"
			" first_seq = excluded.first_seq, last_seq = excluded.last_seq,"
			" events = excluded.events",
		[ST_ALERT] = "INSERT OR REPLACE INTO alert VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,"
			     "?11,?12,?13,?14,?15,?16,?17,?18)",
		[ST_DELETE] = "DELETE FROM event WHERE seq = ?1",
		[ST_PROGRESS] = "INSERT OR REPLACE INTO progress VALUES(?1, ?2, ?3, ?4, ?5)",
		[ST_STACK] = "INSERT OR REPLACE INTO stack VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
		[ST_UNSTACK] = "DELETE FROM stack WHERE life = ?1",
	};

	for (int i = 0; i < ST_MAX; i++) {
		int rc = sqlite3_prepare_v3(w->db, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &w->st[i],
					    NULL);

		if (rc)
			return writer_failed(w, rc, "prepare");
	}
	return SQLITE_OK;
}

static int on_commit(void *ctx, sqlite3 *db, const char *name, int pages)
{
	struct writer *w = ctx;

	w->wal_pages = pages;
	return SQLITE_OK;
}

/* WAL, or an error when the file system cannot do it. */
static int use_wal(struct writer *w, struct sp_err *err)
{
	sqlite3_stmt *st = NULL;
	char sql[120];
	bool wal = false;
	int rc = sqlite3_prepare_v2(w->db, "PRAGMA journal_mode = WAL", -1, &st, NULL);

	if (!rc) {
		rc = sqlite3_step(st);
		wal = rc == SQLITE_ROW && !strcmp((const char *)sqlite3_column_text(st, 0), "wal");
	}
	sqlite3_finalize(st);
	if (!wal && (rc == SQLITE_ROW || rc == SQLITE_DONE))
		return sp_err_set(err, SP_EXIT_USAGE, -ENOTSUP,
				  "%s: its file system has no shared memory for SQLite's WAL: name "
				  "a file on a local disk with -o",
				  w->path);
	if (!wal)
		return schema_error(w->path, w->db, rc, "cannot be written", err);
	/* NORMAL: a lost machine may cost the last seconds, never the file */
	snprintf(sql, sizeof(sql),
		 "PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY;"
		 "PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = %llu",
		 (unsigned long long)w->wal_limit);
	rc = sqlite3_exec(w->db, sql, NULL, NULL, NULL);
	if (rc)
		return schema_error(w->path, w->db, rc, "cannot be written", err);
	sqlite3_wal_hook(w->db, on_commit, w);
	/* readers hold no lock that a commit waits for, only one that a checkpoint does */
	sqlite3_busy_timeout(w->db, 100);
	return 0;
}

static int open_tables(struct writer *w, const struct store_cfg *cfg, struct sp_err *err)
{
	int rc = schema_open(w->path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, false, &w->db);
	int64_t version = 0;
	int known;

	if (!rc)
		version = schema_int(w->db, "PRAGMA user_version", 0, &rc);
	/* 0 also when a creation that was cut off has just been rolled back */
	if (!rc && version == 0)
		rc = create_tables(w);
	if (rc)
		return schema_error(w->path, w->db, rc, "cannot be written", err);
	rc = schema_check(w->db, w->path, &known, err);
	if (!rc)
		rc = use_wal(w, err);
	if (rc)
		return rc;
	if (known < SCHEMA_VERSION)
		rc = upgrade_tables(w, known);
	if (!rc)
		rc = begin_session(w, cfg);
	if (!rc)
		rc = prepare_all(w);
	return rc ? schema_error(w->path, w->db, rc, "cannot be written", err) : 0;
}

static void unlink_all(const char *path)
{
	static const char *const tails[] = {"", "-journal", "-wal", "-shm"};

	for (size_t i = 0; i < ARRAY_SIZE(tails); i++) {
		__free char *name = NULL;

		if (asprintf(&name, "%s%s", path, tails[i]) < 0)
			name = NULL;
		else
			unlink(name);
	}
}

static void release(struct writer *w)
{
	for (int i = 0; i < ST_MAX; i++)
		sqlite3_finalize(w->st[i]);
	sqlite3_close(w->db);
	if (w->fd >= 0)
		close(w->fd);
	free(w->path);
	memset(w, 0, sizeof(*w));
	w->fd = -1;
}

int writer_open(const struct store_cfg *cfg, struct writer *w, struct sp_err *err)
{
	uint64_t limit = cfg->keep_bytes ? cfg->keep_bytes / 8 : WAL_LIMIT_MAX;
	bool created = false;
	int rc;

	memset(w, 0, sizeof(*w));
	w->fd = -1;
	w->path = strdup(cfg->path);
	if (!w->path)
		return sp_err_set(err, SP_EXIT_FAIL, -ENOMEM, "out of memory");
	w->keep_bytes = cfg->keep_bytes;
	w->record_all = cfg->record_all;
	w->wal_limit = limit < WAL_LIMIT_MIN   ? WAL_LIMIT_MIN
		       : limit > WAL_LIMIT_MAX ? WAL_LIMIT_MAX
					       : limit;
	w->chunk = w->wal_limit / EVENT_BYTES;
	rc = take_file(w, &created, err);
	if (!rc)
		rc = open_tables(w, cfg, err);
	if (rc) {
		if (created) /* what could not be begun leaves nothing behind */
			unlink_all(w->path);
		release(w);
		return rc;
	}
	return 0;
}

void writer_close(struct writer *w)
{
	if (!w->path)
		return;
	/* SQLite would checkpoint when the last connection goes */
	if (lock_held(w->fd, LOCK_READER, true))
		sqlite3_db_config(w->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	else if (writer_checkpoint(w, SQLITE_CHECKPOINT_TRUNCATE))
		pr_warn("%s", w->error);
	release(w);
}
