/* SPDX-License-Identifier: Apache-2.0 */
/* The writing side of the file. Opened by the caller's thread, then used by the writer thread only.
 */
#ifndef SP_STORE_WRITER_H
#define SP_STORE_WRITER_H

#include <sqlite3.h>

#include "store/buffer.h"
#include "store/store.h"

enum {
	ST_BEGIN,
	ST_COMMIT,
	ST_EVENT,
	ST_LIFE,
	ST_ALERT,
	ST_DELETE,
	ST_PROGRESS,
	ST_STACK,
	ST_UNSTACK,
	ST_MAX
};

struct writer {
	sqlite3 *db;
	int fd; /* holds LOCK_WRITER; closed last: closing any fd of the file drops SQLite's locks
		 */
	char *path;
	sqlite3_stmt *st[ST_MAX];
	int64_t session;
	uint64_t first_seq, first_life, first_alert; /* of this session */
	uint64_t keep_bytes;                         /* 0: unbounded */
	uint64_t wal_limit;                          /* bytes of WAL before a checkpoint */
	size_t chunk;                                /* events of one transaction */
	bool record_all;
	bool dropped; /* --keep-mb has taken timelines of this session */
	uint64_t look_again_ns, look_again_bytes;
	bool too_small; /* told that --keep-mb cannot be kept */
	int wal_pages;  /* after the last commit */
	uint64_t bytes; /* file and WAL */
	char error[160];
};

int writer_open(const struct store_cfg *cfg, struct writer *w, struct sp_err *err);
void writer_close(struct writer *w); /* checkpoints; the WAL goes when no reader is left */
/* Write b and free what has been written of it; -errno and w->error: the rest stays in b. */
int writer_apply(struct writer *w, struct batch *b);
/* Keep the file and its WAL small: checkpoint, --keep-mb, give freed pages back. */
int writer_maintain(struct writer *w);

/* For the parts of the writer. Both return SQLite's code; an error is kept in w->error. */
int writer_exec(struct writer *w, const char *sql);
int writer_failed(struct writer *w, int rc, const char *doing);
/* A PRAGMA's or query's number, 0 when there is none. */
int64_t writer_int(struct writer *w, const char *sql);
/* retain.c: take the oldest until the file holds at most bytes. */
int retain_shrink(struct writer *w, uint64_t bytes);
int writer_checkpoint(struct writer *w, int mode); /* 0 also when a reader stands in the way */

#endif
