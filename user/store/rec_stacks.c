// SPDX-License-Identifier: Apache-2.0
/* Python stacks of a recording. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "store/rec_priv.h"
#include "store/text.h"

#define STACKS_SINCE 2 /* schema version */

/* The array's strings, unescaped, each to be freed; what is no string is left out. */
static int take_lines(const json_t *list, char **line)
{
	const json_t *e;
	size_t i;
	int n = 0;

	json_array_foreach(list, i, e)
	{
		size_t len = json_is_string(e) ? json_string_length(e) + 1 : 0;

		if (n >= STACK_LINES_MAX || !len)
			continue;
		line[n] = malloc(len);
		if (line[n])
			text_raw(line[n++], len, json_string_value(e));
	}
	return n;
}

static bool give(sqlite3_stmt *st, bool (*fn)(void *ctx, const struct rec_stack *s), void *ctx)
{
	const char *text = (const char *)sqlite3_column_text(st, 4);
	json_t *list = text ? json_loads(text, 0, NULL) : NULL;
	char *line[STACK_LINES_MAX];
	struct rec_stack s = {.ns = (uint64_t)sqlite3_column_int64(st, 0),
			      .pid = (uint32_t)sqlite3_column_int64(st, 1),
			      .tid = (uint32_t)sqlite3_column_int64(st, 2),
			      .line = (const char *const *)line};
	bool more;

	rec_text(st, 3, s.name, sizeof(s.name));
	s.nlines = take_lines(list, line);
	more = fn(ctx, &s);
	for (int i = 0; i < s.nlines; i++)
		free(line[i]);
	json_decref(list);
	return more;
}

int rec_stacks(struct recording *r, const struct rec_life *l,
	       bool (*fn)(void *ctx, const struct rec_stack *s), void *ctx, struct sp_err *err)
{
	sqlite3_stmt *st;
	int rc;

	if (r->version < STACKS_SINCE)
		return 0;
	/* Of one moment: an older one's rest may have been written after a failure. A thread that
	 * two alerts of that moment speak of is there twice. */
	rc = rec_prepare(r,
			 "SELECT ns, pid, tid, name, frames FROM stack WHERE life = ?1 AND ns ="
			 " (SELECT max(ns) FROM stack WHERE life = ?1)"
			 " GROUP BY pid, tid HAVING n = min(n) ORDER BY n",
			 &st, err);
	if (rc)
		return rc;
	sqlite3_bind_int64(st, 1, (int64_t)l->row);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW)
		if (!give(st, fn, ctx))
			break;
	return rec_done(r, st, rc, err);
}
