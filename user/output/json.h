/* SPDX-License-Identifier: Apache-2.0 */
/* The few shapes that every JSON line of silentpin is made of. */
#ifndef SP_OUTPUT_JSON_H
#define SP_OUTPUT_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/model.h"

json_t *out_json_text(const char *s);   /* made safe (store/text.h); "" and NULL are null */
json_t *out_json_string(const char *s); /* the same, but "" stays "" */
json_t *out_json_count(uint64_t n);     /* 0 is null */
json_t *out_json_seconds(uint64_t ns);  /* one decimal, rounded down: 31.4 */
json_t *out_json_pin(int pin);          /* true, false, null */
json_t *out_json_cause(const struct model_verdict *v);      /* null when none */
json_t *out_json_confidence(const struct model_verdict *v); /* null when none */
json_t *out_json_culprit(const struct model_culprit *c);    /* null, or an object */
json_t *out_json_evidence(const struct model_verdict *v);   /* strings; "against: " before some */
/* One line with "\n"; takes j. NULL: out of memory (also when j is NULL). */
char *out_json_line(json_t *j);

#endif
