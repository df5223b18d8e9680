/* SPDX-License-Identifier: Apache-2.0 */
/* A pattern on a table. */
#ifndef PATTERN_RIG_H
#define PATTERN_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "profile/profile.h"
#include "util/cleanup.h"

static inline void compile(struct pattern *p, const char *text, bool room_u64)
{
	char why[200] = "";

	if (pattern_compile(p, text, room_u64, why, sizeof(why)))
		fail_msg("%s: %s", text, why);
}

#endif
