/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the reading side among themselves. */
#ifndef SP_STORE_REC_PRIV_H
#define SP_STORE_REC_PRIV_H

#include <sqlite3.h>

#include "store/store.h"

struct recording {
	sqlite3 *db;
	int fd; /* holds LOCK_READER when immutable; closed after db */
	char *path, *probes_text, *probes_path, *options;
	int64_t first_seq, first_life, first_alert;
	int version; /* of the schema */
	struct rec_session s;
};

/* The row's text, unescaped; "" for NULL. */
void rec_text(sqlite3_stmt *st, int col, char *dst, size_t len);
int rec_prepare(struct recording *r, const char *sql, sqlite3_stmt **st, struct sp_err *err);
/* After the last step: 0 for SQLITE_DONE and SQLITE_ROW (stopped by the caller). Finalizes st. */
int rec_done(struct recording *r, sqlite3_stmt *st, int rc, struct sp_err *err);

#endif
