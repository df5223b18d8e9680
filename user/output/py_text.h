/* SPDX-License-Identifier: Apache-2.0 */
/* What `silentpin py` prints: a snapshot of the server's own view, for people and as JSON. */
#ifndef SP_OUTPUT_PY_TEXT_H
#define SP_OUTPUT_PY_TEXT_H

#include "python/snapshot.h"

struct py_report {
	pid_t pid;
	const struct profile *profile;
	const char *python; /* "3.11.2" */
	const struct py_snapshot *snapshot;
	struct py_stack *stacks;
	size_t nstacks;
	bool with_stacks;
};
/* Malloc'ed, or NULL when out of memory. JSON: one line; its fields are a contract: docs/alerts.md.
 */
char *py_json(const struct py_report *r);
char *py_text(const struct py_report *r);

#endif
