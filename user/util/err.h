/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an error travels: functions return 0 or -errno, and fill a struct sp_err with the one line a
 * person reads ("what: why: what to do", without the leading "silentpin: ") and the exit code.
 */
#ifndef SP_UTIL_ERR_H
#define SP_UTIL_ERR_H

#include <stddef.h>

enum sp_exit {
	SP_EXIT_OK = 0,
	SP_EXIT_FAIL = 1,
	SP_EXIT_USAGE = 2,
	SP_EXIT_STUCK = 3,
	SP_EXIT_NOATTACH = 4
};

struct sp_err {
	int exit_code; /* enum sp_exit */
	char text[800];
};

/* Fill err (may be NULL) and return rc, a negative errno. */
int sp_err_set(struct sp_err *err, int exit_code, int rc, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

#endif
