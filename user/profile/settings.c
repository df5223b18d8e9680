// SPDX-License-Identifier: Apache-2.0
/* What a profile says beside its probes: match, room, stages, done, status, libraries. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile_priv.h"
#include "util/cleanup.h"

#define CODE_NAMES_MAX 256

static int read_process_match(const struct reader *r, const struct ynode *map)
{
	static const char *const keys[] = {"cmdline", NULL};
	struct ynode *n;
	int rc = need_map(r, map, "match");

	if (!rc)
		rc = read_keys(r, map, "match", keys);
	if (!rc)
		rc = need_key(r, map, "match", "cmdline", &n);
	if (!rc)
		rc = read_glob(r, n, "cmdline", &r->profile->match_cmdline);
	return rc;
}

static int read_fake(const struct reader *r, const struct ynode *list)
{
	struct profile *p = r->profile;
	int rc = need_list(r, list, "fake", PROFILE_MAX_FAKE);
	int64_t v;

	for (size_t i = 0; !rc && i < list->n; i++) {
		const struct ynode *n = list->item[i];
		const char *text;
		bool below;

		rc = read_text(r, n, "a fake room", &text);
		if (rc)
			break;
		below = text[0] == '<';
		if (!number_parse(text + below, &v) || v < below)
			return bad_at(
				r, n->mark,
				"a fake room is a number or \"<N\": for example [0, \"<64\"]");
		p->fake[p->nfake].lo = below ? 0 : (uint64_t)v;
		p->fake[p->nfake++].hi = (uint64_t)v - below;
	}
	return rc;
}

/* Longer ones than HTTP's values are never seen whole. */
#define HOST_MAX (SP_HTTP_TEXT - 1)

static int read_fake_hosts(const struct reader *r, const struct ynode *list)
{
	struct profile *p = r->profile;
	int rc = need_list(r, list, "fake_hosts", PROFILE_MAX_FAKE);

	for (size_t i = 0; !rc && i < list->n; i++) {
		const struct ynode *n = list->item[i];
		const char *text;

		rc = read_text(r, n, "a fake host", &text);
		if (rc)
			break;
		if (!text[0] || strlen(text) > HOST_MAX || text[strcspn(text, " \t\r\n/")])
			return bad_at(r, n->mark,
				      "a fake host is a name or an address of at most %d bytes, as "
				      "requests give it: for example [\"2.2.2.2\"]",
				      HOST_MAX);
		if (profile_host_is_fake(p, text))
			return bad_at(r, n->mark, "\"%s\" a second time in fake_hosts", text);
		rc = read_copy(r, n, "a fake host", &p->fake_hosts[p->nfake_hosts]);
		if (!rc)
			p->nfake_hosts++;
	}
	return rc;
}

static int read_room(const struct reader *r, const struct ynode *map)
{
	static const char *const keys[] = {"type", "fake", "fake_hosts", NULL};
	const char *type;
	struct ynode *n;
	int rc = need_map(r, map, "room");

	if (!rc)
		rc = read_keys(r, map, "room", keys);
	if (!rc)
		rc = need_key(r, map, "room", "type", &n);
	if (!rc)
		rc = read_text(r, n, "type", &type);
	if (rc)
		return rc;
	r->profile->room_u64 = !strcmp(type, "u64");
	if (!r->profile->room_u64 && strcmp(type, "string") != 0)
		return bad_at(r, n->mark, "unknown type \"%.32s\" of room: use u64 or string",
			      type);
	n = ynode_get(map, "fake");
	if (n && !r->profile->room_u64)
		return bad_at(r, n->mark, "fake needs rooms of type u64: remove it");
	if (n)
		rc = read_fake(r, n);
	n = ynode_get(map, "fake_hosts");
	if (!rc && n)
		rc = read_fake_hosts(r, n);
	return rc;
}

static int read_stages(const struct reader *r, const struct ynode *map)
{
	static const char *const keys[] = {"bootstrap", "ready", "inflight", "releasing", NULL};
	int rc = need_map(r, map, "stages");

	if (!rc)
		rc = read_keys(r, map, "stages", keys);
	for (size_t i = 0; !rc && i < map->n; i++) {
		const struct ynode *n = ynode_value(map, i);
		enum sp_stage stage = sp_stage_parse(ynode_key(map, i)->text);
		const char *text;

		rc = read_text(r, n, ynode_key(map, i)->text, &text);
		if (!rc && duration_parse(text, &r->profile->stage_ns[stage]))
			rc = bad_at(r, n->mark,
				    "\"%.32s\" is no duration: give a number and a unit: 500ms, "
				    "30s, 5m, 1h",
				    text);
	}
	return rc;
}

/* In which stages a timeout of the server's own ends what has not come. */
static int read_delayed(const struct reader *r, const struct ynode *list)
{
	int rc = need_list(r, list, "delayed", SP_STAGE_MAX);

	for (size_t i = 0; !rc && i < list->n; i++) {
		const char *text;
		enum sp_stage stage = STAGE_NONE;

		rc = read_text(r, list->item[i], "a stage", &text);
		if (!rc)
			stage = sp_stage_parse(text);
		if (!rc && (stage < STAGE_BOOTSTRAP || stage > STAGE_INFLIGHT))
			rc = bad_at(
				r, list->item[i]->mark,
				"\"%.32s\" is no stage that can be delayed: bootstrap, ready or "
				"inflight",
				text);
		if (!rc)
			r->profile->delayed[stage] = true;
	}
	return rc;
}

/* "kv", "kv.last" or "aux.once" */
static int read_need(const struct reader *r, const struct ynode *n, struct profile_need *need)
{
	const char *text, *dot;
	size_t len;
	int rc = read_text(r, n, "a word of needs", &text);

	if (rc)
		return rc;
	dot = strchr(text, '.');
	len = dot ? (size_t)(dot - text) : strlen(text);
	if (!name_ok(text, len) || len >= sizeof(need->kind) ||
	    (dot && strcmp(dot, ".last") != 0 && strcmp(dot, ".once") != 0))
		return bad_at(r, n->mark,
			      "\"%.32s\" is no word of needs: write a kind (at most %zu letters), "
			      "KIND.last or KIND.once",
			      text, sizeof(need->kind) - 1);
	memcpy(need->kind, text, len);
	need->kind[len] = '\0';
	need->last = dot && !strcmp(dot, ".last");
	need->once = dot && !need->last;
	return 0;
}

static int read_done(const struct reader *r, const struct ynode *map)
{
	static const char *const keys[] = {"needs", NULL};
	struct profile *p = r->profile;
	struct ynode *list = NULL;
	int rc = need_map(r, map, "done");

	if (!rc)
		rc = read_keys(r, map, "done", keys);
	if (!rc)
		rc = need_key(r, map, "done", "needs", &list);
	if (!rc)
		rc = need_list(r, list, "needs", PROFILE_MAX_NEEDS);
	for (size_t i = 0; !rc && i < list->n; i++) {
		struct profile_need *need = &p->needs[i];

		rc = read_need(r, list->item[i], need);
		for (int k = 0; !rc && k < p->nneeds; k++)
			if (p->needs[k].last == need->last && !strcmp(p->needs[k].kind, need->kind))
				rc = bad_at(r, list->item[i]->mark, "\"%s\" a second time in needs",
					    list->item[i]->text);
		if (!rc)
			p->nneeds++;
	}
	return rc;
}

/* "0", "<0", ">0", "1..5" */
static int read_range(const struct reader *r, const struct ynode *n, const char *what,
		      struct status_range *range)
{
	char copy[64];
	const char *text;
	char *dots;
	int64_t v;
	int rc = read_text(r, n, what, &text);

	if (rc)
		return rc;
	snprintf(copy, sizeof(copy), "%s", text); /* two numbers and dots: the rest is no range */
	dots = strstr(copy, "..");
	if (dots) {
		*dots = '\0';
		if (number_parse(copy, &range->lo) && number_parse(dots + 2, &range->hi) &&
		    range->lo <= range->hi)
			return 0;
	} else if (text[0] == '<' && number_parse(text + 1, &v) && v > INT64_MIN) {
		*range = (struct status_range){INT64_MIN, v - 1};
		return 0;
	} else if (text[0] == '>' && number_parse(text + 1, &v) && v < INT64_MAX) {
		*range = (struct status_range){v + 1, INT64_MAX};
		return 0;
	} else if (number_parse(text, &v)) {
		*range = (struct status_range){v, v};
		return 0;
	}
	return bad_at(r, n->mark, "%s must be a code or a range: 0, \"<0\", \">1\" or \"2..5\"",
		      what);
}

static int read_code_names(const struct reader *r, const struct ynode *map, struct status_spec *s)
{
	int rc = need_map(r, map, "names");

	if (rc || !map->n)
		return rc;
	if (map->n > CODE_NAMES_MAX)
		return bad_at(r, ynode_key(map, CODE_NAMES_MAX)->mark, "names: more than %d",
			      CODE_NAMES_MAX);
	s->names = calloc(map->n, sizeof(*s->names));
	if (!s->names)
		return no_memory(r);
	for (size_t i = 0; !rc && i < map->n; i++) {
		struct status_name *name = &s->names[i];

		rc = read_s64(r, ynode_key(map, i), "a key of names", &name->code);
		for (int k = 0; !rc && k < s->nnames; k++)
			if (s->names[k].code == name->code)
				rc = bad_at(r, ynode_key(map, i)->mark,
					    "code %s a second time in names",
					    ynode_key(map, i)->text);
		if (!rc)
			rc = read_copy(r, ynode_value(map, i), "a name", &name->text);
		if (!rc)
			s->nnames++;
	}
	return rc;
}

static bool overlap(const struct status_range *a, const struct status_range *b)
{
	return a->lo <= b->hi && b->lo <= a->hi;
}

int read_status(const struct reader *r, const struct ynode *map, struct status_spec *s)
{
	static const char *const keys[] = {"done", "busy", "error", "names", NULL};
	struct status_range *const ranges[] = {&s->done, &s->busy, &s->error};
	bool set[ARRAY_SIZE(ranges)];
	int rc = need_map(r, map, "status");

	if (!rc)
		rc = read_keys(r, map, "status", keys);
	for (size_t i = 0; !rc && i < ARRAY_SIZE(ranges); i++) {
		const struct ynode *n = ynode_get(map, keys[i]);

		set[i] = n;
		if (n)
			rc = read_range(r, n, keys[i], ranges[i]);
	}
	if (rc)
		return rc;
	/* a code that the profile says to be another is not what it is by default */
	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		for (size_t k = 0; k < ARRAY_SIZE(ranges); k++)
			if (!set[i] && set[k] && ranges[k]->lo <= ranges[i]->lo &&
			    ranges[i]->hi <= ranges[k]->hi)
				*ranges[i] = STATUS_NO_CODE;
	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		for (size_t k = 0; k < i; k++)
			/* of a wide range of errors, done and busy may take some away */
			if (overlap(ranges[i], ranges[k]) &&
			    !(ranges[i] == &s->error && set[i] && ranges[i]->lo <= ranges[k]->lo &&
			      ranges[k]->hi <= ranges[i]->hi))
				return bad_at(r, map->mark,
					      "%s and %s of status overlap (unset ones are done 0, "
					      "busy 1, error \"<0\")",
					      keys[k], keys[i]);
	if (!ynode_get(map, "names"))
		return 0;
	return read_code_names(r, ynode_get(map, "names"), s);
}

static int read_own_status(const struct reader *r, const struct ynode *map)
{
	return read_status(r, map, &r->profile->statuses[0]);
}

static void set_defaults(struct profile *p)
{
	const uint64_t s = 1000000000ULL;

	/* SGLang ends a bootstrap after 300 s by itself; nothing else there has a deadline */
	p->stage_ns[STAGE_BOOTSTRAP] = 330 * s;
	p->stage_ns[STAGE_READY] = 300 * s;
	p->stage_ns[STAGE_INFLIGHT] = 30 * s;
	p->stage_ns[STAGE_RELEASING] = 10 * s;
}

struct status_spec *status_add(struct profile *p)
{
	struct status_spec *grown =
		realloc(p->statuses, sizeof(*grown) * (size_t)(p->nstatuses + 1));

	if (!grown)
		return NULL;
	p->statuses = grown;
	grown += p->nstatuses++;
	*grown = (struct status_spec){
		.done = {0, 0},
		.busy = {1, 1},
		.error = {INT64_MIN, -1},
	};
	return grown;
}

int read_settings(const struct reader *r, const struct ynode *map)
{
	static const struct {
		const char *key;
		int (*read)(const struct reader *r, const struct ynode *n);
		bool required;
		bool of_probes; /* required only where probes are all that a profile has */
	} parts[] = {
		{"match", read_process_match, false, false},
		{"room", read_room, true, false},
		{"stages", read_stages, false, false},
		{"delayed", read_delayed, false, false},
		{"done", read_done, false, false},
		{"status", read_own_status, false, false},
		{"libraries", read_libraries, true, true},
	};
	bool others = ynode_get(map, "python") || ynode_get(map, "sockets") ||
		      (ynode_get(map, "uses") && !ynode_get(map, "probes"));
	int rc = 0;

	set_defaults(r->profile);
	if (!status_add(r->profile))
		return no_memory(r);
	for (size_t i = 0; !rc && i < ARRAY_SIZE(parts); i++) {
		struct ynode *n = ynode_get(map, parts[i].key);

		if (n)
			rc = parts[i].read(r, n);
		else if (parts[i].required && !(parts[i].of_probes && others))
			rc = need_key(r, map, "the profile", parts[i].key, &n);
	}
	return rc;
}
