/* SPDX-License-Identifier: Apache-2.0 */
/* What in a snapshot looks as if the profile, not the server, were at fault. For people. */
#ifndef SP_PYTHON_NOTES_H
#define SP_PYTHON_NOTES_H

#include "python/snapshot.h"

#define PY_NOTES_MAX 16
struct py_note {
	bool slip; /* it keeps the view from telling something; else: worth a look */
	char text[240];
};
/* How many; none of a snapshot that is not stable. */
int py_notes(const struct profile_python *py, const struct py_snapshot *s,
	     struct py_note out[PY_NOTES_MAX]);

/* The rooms of an inflight queue may not be those of the status table. */
bool py_other_table(const struct profile_python *py, const struct py_snapshot *s, int queue);

#endif
