// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "util/log.h"

enum sp_level sp_verbosity = SP_INFO;

void sp_one_line(char *text)
{
	for (unsigned char *s = (unsigned char *)text; *s; s++) {
		if (*s < 0x20 || *s == 0x7f)
			*s = *s == '\n' ? ' ' : '?';
		else if (*s == 0xc2 && (s[1] & 0xe0) == 0x80) /* a control character, too */
			s[0] = s[1] = '?';
	}
}

void sp_log(enum sp_level level, const char *fmt, ...)
{
	char line[1200];
	va_list ap;
	int n;

	if (level > sp_verbosity)
		return;
	n = snprintf(line, sizeof(line), "silentpin: ");
	va_start(ap, fmt);
	n += vsnprintf(line + n, sizeof(line) - n - 1, fmt, ap);
	va_end(ap);
	if (n > (int)sizeof(line) - 2)
		n = sizeof(line) - 2;
	sp_one_line(line);
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, n) < 0)
		return; /* nowhere left to say it */
}
