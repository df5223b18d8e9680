/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the output share: the clock, a recording's head, a verdict. */
#ifndef OUTPUT_RIG_H
#define OUTPUT_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

#include "output/timeline.h"

#define SEC 1000000000ull
#define UTC 1795953000000000000ll /* 2026-11-29T11:50:00Z */

static const struct rec_session session = {.utc_offset_ns = UTC, .profile = "p", .ended = true};

static inline struct model_verdict stalled(void)
{
	struct model_verdict v = {
		.cause = CAUSE_TRANSFER_STALLED,
		.confidence = CONF_LIKELY,
		.pin = 1,
		.last = "post kv chunk 2 last",
		.expected = "status DONE of op 0x7f00",
		.nevidence = 2,
		.evidence = {{.text = "op in progress for 30.0 s"},
			     {.against = true, .text = "the peer is alive"}},
	};

	return v;
}

#endif
