/* SPDX-License-Identifier: Apache-2.0 */
/* Tables and views of a recording, and how a file is recognised and locked. See docs/recording.md.
 */
#ifndef SP_STORE_SCHEMA_H
#define SP_STORE_SCHEMA_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/err.h"

#define SCHEMA_VERSION 4
/* Version 1 lacks the table `stack`, 1 and 2 the column `no_posts` of `session`, 1 to 3 those of
 * `event` that calls have. They are read as they are; a writer brings them up to date. */
#define SCHEMA_OLDEST 1
#define SCHEMA_APP_ID 0x5350696e /* "SPin", in the file's header */

extern const char schema_sql[];
/* From version n to n + 1; then the views are made anew. */
extern const char *const schema_from[SCHEMA_VERSION];
extern const char schema_anew[];

/* Columns of the view `events`, over event e left joined with life l. */
#define SCHEMA_EVENT_FROM "FROM event e LEFT JOIN life l ON l.id = e.life"
#define SCHEMA_EVENT_ROOM "coalesce(e.room, l.room)"
#define SCHEMA_EVENT_ROLE "(SELECT name FROM role WHERE id = e.role)"
#define SCHEMA_EVENT_PROBE                                                                         \
	"(SELECT name FROM probe p WHERE p.session = (SELECT max(id) FROM session)"                \
	" AND p.id = e.probe)"
/* The numbers of a `held` event have names of their own. json_patch drops the members that are
 * null. */
#define SCHEMA_HELD "2" /* ROLE_HELD */
#define SCHEMA_DETAIL_CALL                                                                         \
	"'object', e.object, 'bytes', e.bytes, 'took_us', e.took_ns / 1000.0, 'count', e.count,"   \
	" 'at_ns', e.at_ns, "
#define SCHEMA_DETAIL_BEGIN                                                                        \
	"json_patch('{}', json_object("                                                            \
	"'op', CASE WHEN e.op <> 0 THEN printf('0x%x', e.op) END,"                                 \
	"'kind', e.kind, CASE e.role WHEN " SCHEMA_HELD " THEN 'announced' ELSE 'chunk' END,"      \
	" nullif(e.chunk, -1), 'last', nullif(e.last, -1),"                                        \
	" CASE e.role WHEN " SCHEMA_HELD " THEN 'sent' ELSE 'part' END, nullif(e.part, -1),"       \
	" CASE e.role WHEN " SCHEMA_HELD " THEN 'total' ELSE 'parts' END, nullif(e.parts, -1),"    \
	"'rank', nullif(e.rank, -1), 'need', nullif(e.need, -1),"                                  \
	"'status', CASE e.status WHEN 1 THEN 'busy' WHEN 2 THEN 'done' WHEN 3 THEN 'error' END,"   \
	"'code', CASE WHEN e.role = " SCHEMA_HELD " THEN nullif(e.code, -9223372036854775808)"     \
	" WHEN e.status <> 0 OR e.code <> 0 THEN e.code END,"
#define SCHEMA_DETAIL_REST                                                                         \
	"'covers', nullif(e.covers, 0), 'peer', e.peer, 'agent', e.agent, 'rid', e.rid,"           \
	"'note', e.note, 'cut', nullif(e.flags & 1, 0), 'nodata', nullif(e.flags >> 1 & 1, 0),"    \
	"'created', nullif(e.flags >> 2 & 1, 0), 'gap', nullif(e.flags >> 3 & 1, 0),"              \
	"'inferred', nullif(e.flags >> 4 & 1, 0), 'at', nullif(e.flags >> 5 & 1, 0),"              \
	"'orphan', nullif(e.flags >> 6 & 1, 0), 'shared', nullif(e.flags >> 8 & 1, 0),"            \
	"'fake', nullif(e.flags >> 9 & 1, 0), 'tracked', nullif(e.flags >> 10 & 1, 0)))"

#define SCHEMA_EVENT_DETAIL   SCHEMA_DETAIL_BEGIN SCHEMA_DETAIL_CALL SCHEMA_DETAIL_REST
#define SCHEMA_EVENT_DETAIL_3 SCHEMA_DETAIL_BEGIN SCHEMA_DETAIL_REST /* up to version 3 */

/*
 * Locks: open file description locks on two bytes far beyond SQLite's own (which lie at 2^30), so
 * that they can be asked for without being taken and die with their holder.
 * WRITER: held exclusively by the one writer. READER: held shared by a reader that opened the file
 * as immutable, because no writer was there; a writer does not checkpoint (does not touch the main
 * file) while one is there.
 */
#define LOCK_WRITER 0x7fffffff00000000ll
#define LOCK_READER 0x7fffffff00000001ll
int lock_take(int fd, off_t byte, bool exclusive); /* -EAGAIN: another holds it; never waits */
int lock_drop(int fd, off_t byte);
bool lock_held(int fd, off_t byte, bool exclusive); /* would lock_take fail now? */

/* "PATH", its first bytes read: 0 an empty file or database, 1 a recording that we know; else
 * -errno and err (directory, special file, no database, no recording, other version). */
int schema_recognise(int fd, const char *path, struct sp_err *err);
/* PATH and what SQLite says, as one line; -errno for rc. */
int schema_error(const char *path, sqlite3 *db, int rc, const char *doing, struct sp_err *err);
int schema_errno(int rc); /* SQLite result code -> -errno */
/* Open path as it is written (never as a URI or a special name); immutable: see LOCK_READER. */
int schema_open(const char *path, int flags, bool immutable, sqlite3 **db);
/* PRAGMA user_version, the views: 0 or -errno; *version: what it is. */
int schema_check(sqlite3 *db, const char *path, int *version, struct sp_err *err);
/* First column of the first row; dflt when there is no row or it is NULL; *rc as SQLite. */
int64_t schema_int(sqlite3 *db, const char *sql, int64_t dflt, int *rc);

#endif
