/* SPDX-License-Identifier: Apache-2.0 */
/* What people and programs read: alert lines (text and JSON) and the sink they go through. */
#ifndef SP_OUTPUT_H
#define SP_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "model/model.h"

struct alert_env {
	const char *profile;
	int64_t utc_offset_ns;
	bool color; /* text form only */
};
/* One alert as text or as one JSON line (design: alert lines), "\n" at its end; malloc'ed, or NULL
 * when out of memory. The form and the fields are a contract: docs/alerts.md. */
char *alert_json(const struct model_alert *a, const struct alert_env *env);
char *alert_text(const struct model_alert *a, const struct alert_env *env);
/* "2026-11-29T12:00:03.120Z" */
void time_utc(uint64_t mono_ns, int64_t utc_offset_ns, char buf[32]);
/* "31.4 s", "2 min 3 s", "140 ms" */
void time_span(uint64_t ns, char *buf, unsigned long len);

/* A writer thread in front of a descriptor: whoever reads may be slow, blocked or gone; the caller
 * never waits. Bounded: lines beyond the bound are dropped and counted. */
struct sink;
struct sink *sink_open(int fd);
void sink_write(struct sink *s, const char *text); /* copied */
uint64_t sink_dropped(const struct sink *s);
void sink_close(struct sink *s); /* waits at most a second for what is queued */

#endif
