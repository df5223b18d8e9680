// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stdio.h>

#include "util/err.h"

int sp_err_set(struct sp_err *err, int exit_code, int rc, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return rc;
	err->exit_code = exit_code;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return rc;
}
