// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/json.h"
#include "store/text.h"

json_t *out_json_string(const char *s)
{
	char buf[TEXT_SAFE_MAX(VERDICT_TEXT_MAX)];
	char *big;
	size_t len;
	json_t *j;

	if (text_is_safe(s))
		return json_string(s);
	len = TEXT_SAFE_MAX(strlen(s) + 1);
	if (len <= sizeof(buf)) {
		text_safe(buf, sizeof(buf), s);
		return json_string(buf);
	}
	big = malloc(len);
	if (!big)
		return NULL;
	text_safe(big, len, s);
	j = json_string(big);
	free(big);
	return j;
}

json_t *out_json_text(const char *s)
{
	return s && s[0] ? out_json_string(s) : json_null();
}

json_t *out_json_count(uint64_t n)
{
	return n ? json_integer((json_int_t)n) : json_null();
}

json_t *out_json_seconds(uint64_t ns)
{
	uint64_t tenths = ns / 100000000;

	return json_real((double)tenths / 10);
}

json_t *out_json_pin(int pin)
{
	return pin < 0 ? json_null() : json_boolean(pin);
}

json_t *out_json_cause(const struct model_verdict *v)
{
	return v->cause ? json_string(sp_cause_name(v->cause)) : json_null();
}

json_t *out_json_confidence(const struct model_verdict *v)
{
	return v->cause ? json_string(sp_confidence_name(v->confidence)) : json_null();
}

json_t *out_json_culprit(const struct model_culprit *c)
{
	if (!c->set)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "pid", out_json_count(c->pid), "room",
			 out_json_text(c->room), "life", out_json_count(c->life), "tid",
			 out_json_count(c->tid), "state", out_json_text(c->state));
}

json_t *out_json_evidence(const struct model_verdict *v)
{
	json_t *list = json_array();

	for (int i = 0; i < v->nevidence && i < VERDICT_EVIDENCE_MAX; i++) {
		char text[VERDICT_TEXT_MAX + 16];

		snprintf(text, sizeof(text), "%s%s", v->evidence[i].against ? "against: " : "",
			 v->evidence[i].text);
		json_array_append_new(list, out_json_string(text));
	}
	return list;
}

char *out_json_line(json_t *j)
{
	/* 12 digits: seconds with one decimal print as they are read (31.4, not 31.399999999999999)
	 */
	char *text = j ? json_dumps(j, JSON_COMPACT | JSON_REAL_PRECISION(12)) : NULL;
	char *line = NULL;
	size_t n;

	json_decref(j);
	if (!text)
		return NULL;
	n = strlen(text);
	line = realloc(text, n + 2);
	if (!line) {
		free(text);
		return NULL;
	}
	line[n] = '\n';
	line[n + 1] = '\0';
	return line;
}
