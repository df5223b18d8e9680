// SPDX-License-Identifier: Apache-2.0
/* A verdict as JSON text: column `verdict` of the table life. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/buffer.h"
#include "store/text.h"

static json_t *safe_string(const char *s)
{
	char buf[TEXT_SAFE_MAX(VERDICT_TEXT_MAX)];

	text_safe(buf, sizeof(buf), s);
	return json_string(buf);
}

static json_t *culprit_json(const struct model_culprit *c)
{
	if (!c->set)
		return json_null();
	return json_pack("{s:I, s:I, s:o, s:I, s:o}", "pid", (json_int_t)c->pid, "tid",
			 (json_int_t)c->tid, "room", safe_string(c->room), "life",
			 (json_int_t)c->life, "state", safe_string(c->state));
}

char *verdict_json(const struct model_verdict *v)
{
	json_t *evidence = json_array();
	json_t *j;
	char *text;

	for (int i = 0; i < v->nevidence && i < VERDICT_EVIDENCE_MAX; i++)
		json_array_append_new(evidence, json_pack("{s:b, s:o}", "against",
							  (int)v->evidence[i].against, "text",
							  safe_string(v->evidence[i].text)));
	j = json_pack("{s:s, s:s, s:i, s:o, s:o, s:o, s:o, s:I}", "cause", sp_cause_name(v->cause),
		      "confidence", sp_confidence_name(v->confidence), "pin", v->pin, "last",
		      safe_string(v->last), "expected", safe_string(v->expected), "culprit",
		      culprit_json(&v->culprit), "evidence", evidence, "decisive_ns",
		      (json_int_t)v->decisive_ns);
	text = j ? json_dumps(j, JSON_COMPACT) : NULL;
	json_decref(j);
	return text;
}

static void take(char *dst, size_t len, const json_t *obj, const char *key)
{
	const char *s = json_string_value(json_object_get(obj, key));

	text_raw(dst, len, s ? s : "");
}

static uint64_t number(const json_t *obj, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(obj, key));
}

static enum sp_cause cause_parse(const char *name)
{
	for (int i = CAUSE_NONE + 1; name && i < CAUSE_MAX; i++)
		if (!strcmp(name, sp_cause_name(i)))
			return i;
	return CAUSE_NONE;
}

int verdict_parse(const char *text, struct model_verdict *v)
{
	json_t *j = json_loads(text, 0, NULL);
	const char *confidence = json_string_value(json_object_get(j, "confidence"));
	const json_t *c = json_object_get(j, "culprit");
	const json_t *e;
	size_t i;

	memset(v, 0, sizeof(*v));
	v->pin = -1;
	if (!j)
		return -EINVAL;
	v->cause = cause_parse(json_string_value(json_object_get(j, "cause")));
	v->confidence = confidence ? sp_confidence_parse(confidence) : CONF_NONE;
	v->pin = (int)json_integer_value(json_object_get(j, "pin"));
	v->decisive_ns = number(j, "decisive_ns");
	take(v->last, sizeof(v->last), j, "last");
	take(v->expected, sizeof(v->expected), j, "expected");
	if (json_is_object(c)) {
		v->culprit.set = true;
		v->culprit.pid = (uint32_t)number(c, "pid");
		v->culprit.tid = (uint32_t)number(c, "tid");
		v->culprit.life = (uint32_t)number(c, "life");
		take(v->culprit.room, sizeof(v->culprit.room), c, "room");
		take(v->culprit.state, sizeof(v->culprit.state), c, "state");
	}
	json_array_foreach(json_object_get(j, "evidence"), i, e)
	{
		if (i >= VERDICT_EVIDENCE_MAX)
			break;
		v->evidence[i].against = json_is_true(json_object_get(e, "against"));
		take(v->evidence[i].text, sizeof(v->evidence[i].text), e, "text");
		v->nevidence = (int)i + 1;
	}
	json_decref(j);
	return 0;
}

/* FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv/ */
static uint32_t fnv(uint32_t h, const void *data, size_t len)
{
	const uint8_t *p = data;

	while (len--)
		h = (h ^ *p++) * 16777619u;
	return h;
}

uint32_t verdict_sum(const struct model_verdict *v)
{
	uint32_t h = 2166136261u;
	const struct model_culprit *c = &v->culprit;

	h = fnv(h, &v->cause, sizeof(v->cause));
	h = fnv(h, &v->confidence, sizeof(v->confidence));
	h = fnv(h, &v->pin, sizeof(v->pin));
	h = fnv(h, &v->decisive_ns, sizeof(v->decisive_ns));
	h = fnv(h, v->last, strlen(v->last) + 1);
	h = fnv(h, v->expected, strlen(v->expected) + 1);
	if (c->set) {
		h = fnv(h, &c->pid, sizeof(c->pid));
		h = fnv(h, &c->tid, sizeof(c->tid));
		h = fnv(h, &c->life, sizeof(c->life));
		h = fnv(h, c->room, strlen(c->room) + 1);
		h = fnv(h, c->state, strlen(c->state) + 1);
	}
	for (int i = 0; i < v->nevidence && i < VERDICT_EVIDENCE_MAX; i++) {
		h = fnv(h, &v->evidence[i].against, sizeof(v->evidence[i].against));
		h = fnv(h, v->evidence[i].text, strlen(v->evidence[i].text) + 1);
	}
	return h ? h : 1;
}
