// SPDX-License-Identifier: Apache-2.0
/* `event:` of a probe or of an alternative, and whether what it says can be had there. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile_priv.h"
#include "util/cleanup.h"

/* What may stand as a field's value, beside a template and the name of an argument or capture. */
enum value_kind {
	V_WORD,   /* any text: kind, note */
	V_NUMBER, /* a number */
	V_NAME,   /* nothing else */
};
static const struct {
	const char *name;
	enum value_kind kind;
} fields[] = {
	{"kind", V_WORD},   {"op", V_NAME},     {"chunk", V_NUMBER}, {"last", V_NUMBER},
	{"rank", V_NUMBER}, {"part", V_NUMBER}, {"parts", V_NUMBER}, {"need", V_NUMBER},
	{"peer", V_NAME},   {"agent", V_NAME},  {"rid", V_NAME},     {"room", V_NAME},
	{"status", V_NAME}, {"error", V_NAME},  {"note", V_WORD},
};

static const char *const keys[] = {
	"role",           "kind",  "op",  "chunk", "last",   "rank",  "part", "parts",  "need",
	"peer",           "agent", "rid", "room",  "status", "error", "note", "covers", "created",
	"dummy_if_empty", NULL,
};

static const char *const roles[] = {
	"arrive", "held",  "announce", "register", "post", "status", "close", "abort",
	"told",   "reply", "release",  "control",  "call", "peer",   NULL,
};

void event_free(struct evt_spec *ev)
{
	for (int i = 0; i < ev->nfields; i++)
		free(ev->field[i].value);
	memset(ev, 0, sizeof(*ev));
}

int event_copy(struct evt_spec *to, const struct evt_spec *from)
{
	*to = *from;
	for (to->nfields = 0; to->nfields < from->nfields; to->nfields++) {
		struct evt_field *f = &to->field[to->nfields];

		f->value = strdup(from->field[to->nfields].value);
		if (!f->value) {
			event_free(to);
			return -ENOMEM;
		}
	}
	return 0;
}

static const struct evt_field *field_get(const struct evt_spec *ev, const char *name)
{
	for (int i = 0; i < ev->nfields; i++)
		if (!strcmp(ev->field[i].name, name))
			return &ev->field[i];
	return NULL;
}

static void field_drop(struct evt_spec *ev, const char *name)
{
	for (int i = 0; i < ev->nfields; i++) {
		if (strcmp(ev->field[i].name, name) != 0)
			continue;
		free(ev->field[i].value);
		ev->field[i] = ev->field[--ev->nfields];
		memset(&ev->field[ev->nfields], 0, sizeof(ev->field[0]));
		return;
	}
}

static int field_set(const struct reader *r, struct evt_spec *ev, const struct ynode *key,
		     const char *value)
{
	struct evt_field *f;

	field_drop(ev, key->text);
	if (ev->nfields == EVT_MAX_FIELDS)
		return bad_at(r, key->mark, "more than %d fields in one event", EVT_MAX_FIELDS);
	f = &ev->field[ev->nfields];
	f->value = strdup(value);
	if (!f->value)
		return no_memory(r);
	snprintf(f->name, sizeof(f->name), "%s", key->text);
	f->mark = key->mark;
	ev->nfields++;
	return 0;
}

static int read_role(const struct reader *r, const struct ynode *n, struct evt_spec *ev)
{
	char hint[200];
	const char *text;
	int rc = read_text(r, n, "role", &text);

	if (rc)
		return rc;
	for (size_t i = 0; roles[i]; i++) {
		if (!strcmp(roles[i], text)) {
			ev->role = sp_role_parse(text);
			return 0;
		}
	}
	suggest(text, roles, hint, sizeof(hint));
	return bad_at(r, n->mark, "unknown role \"%.32s\": %s", text, hint);
}

static int read_covers(const struct reader *r, const struct ynode *list, struct evt_spec *ev)
{
	const struct profile *p = r->profile;
	int rc = need_list(r, list, "covers", ARRAY_SIZE(ev->covers));

	ev->ncovers = 0;
	for (size_t i = 0; !rc && i < list->n; i++) {
		const char *text;
		char need[24];
		bool found = false;

		rc = read_text(r, list->item[i], "a word of covers", &text);
		if (rc)
			break;
		for (int k = 0; k < p->nneeds && !found; k++) {
			snprintf(need, sizeof(need), "%s%s", p->needs[k].kind,
				 p->needs[k].last ? ".last" : "");
			found = !strcmp(need, text);
		}
		if (!found || strlen(text) >= sizeof(ev->covers[0]))
			return bad_at(r, list->item[i]->mark,
				      "\"%.32s\" is not among done.needs: write it as it stands "
				      "there",
				      text);
		snprintf(ev->covers[ev->ncovers++], sizeof(ev->covers[0]), "%s", text);
	}
	return rc;
}

static int read_dummy(const struct reader *r, const struct ynode *list, struct evt_spec *ev)
{
	int rc = need_list(r, list, "dummy_if_empty", ARRAY_SIZE(ev->dummy));

	ev->ndummy = 0;
	for (size_t i = 0; !rc && i < list->n; i++) {
		const char *text;

		rc = read_text(r, list->item[i], "a name", &text);
		if (!rc && !name_ok(text, strlen(text)))
			rc = bad_at(r, list->item[i]->mark, "\"%.32s\" is no capture's name", text);
		if (!rc)
			snprintf(ev->dummy[ev->ndummy++], sizeof(ev->dummy[0]), "%s", text);
	}
	return rc;
}

static int read_created(const struct reader *r, const struct ynode *key, const struct ynode *n,
			struct evt_spec *ev)
{
	bool yes;
	int rc = read_bool(r, n, "created", &yes);

	if (rc)
		return rc;
	if (yes)
		return field_set(r, ev, key, "true");
	field_drop(ev, key->text);
	return 0;
}

int read_event(const struct reader *r, const struct ynode *map, struct evt_spec *ev)
{
	int rc = need_map(r, map, "event");

	if (!rc)
		rc = read_keys(r, map, "an event", keys);
	ev->mark = map->mark;
	for (size_t i = 0; !rc && i < map->n; i++) {
		const struct ynode *key = ynode_key(map, i), *n = ynode_value(map, i);
		const char *text;

		if (!strcmp(key->text, "role")) {
			rc = read_role(r, n, ev);
		} else if (!strcmp(key->text, "covers")) {
			rc = read_covers(r, n, ev);
		} else if (!strcmp(key->text, "dummy_if_empty")) {
			rc = read_dummy(r, n, ev);
		} else if (!strcmp(key->text, "created")) {
			rc = read_created(r, key, n, ev);
		} else {
			rc = read_text(r, n, key->text, &text);
			if (!rc)
				rc = field_set(r, ev, key, text);
		}
	}
	return rc;
}

/* ---- checking an effective event against what its probe gives -------------------------------- */

static const struct pat_part *capture_in(const struct pattern *p, const char *name, size_t len)
{
	for (int i = 0; i < p->nparts; i++)
		if (p->part[i].is_capture && strlen(p->part[i].name) == len &&
		    !memcmp(p->part[i].name, name, len))
			return &p->part[i];
	return NULL;
}

static const struct pat_part *capture_of(const struct evt_match *m, const char *name, size_t len)
{
	const struct pat_part *part = NULL;

	for (int i = 0; m && !part && i < m->non; i++)
		part = capture_in(&m->on[i].pat, name, len);
	for (int i = 0; m && !part && i < m->nframes; i++)
		part = capture_in(&m->frames[i], name, len);
	return part;
}

static bool known(const struct profile_probe *p, const struct evt_match *m, const char *name,
		  size_t len)
{
	char buf[PAT_NAME_MAX];

	if (!len || len >= sizeof(buf))
		return false;
	if (capture_of(m, name, len))
		return true;
	memcpy(buf, name, len);
	buf[len] = '\0';
	return arg_by_name(p, buf) >= 0;
}

static int check_template(const struct reader *r, const struct profile_probe *p,
			  const struct evt_match *m, const struct evt_field *f)
{
	for (const char *s = f->value; *s; s++) {
		size_t len;

		if (*s == '}')
			return bad_at(r, f->mark, "%s: \"}\" without \"{\" in \"%.64s\"", f->name,
				      f->value);
		if (*s != '{')
			continue;
		len = strcspn(++s, "{}");
		if (s[len] != '}')
			return bad_at(r, f->mark, "%s: \"{\" without \"}\" in \"%.64s\"", f->name,
				      f->value);
		if (!known(p, m, s, len))
			return bad_at(r, f->mark,
				      "%s: \"%.*s\" is neither an argument nor a capture here: "
				      "declare or capture it",
				      f->name, (int)(len < 32 ? len : 32), s);
		s += len;
	}
	return 0;
}

static int check_field(const struct reader *r, const struct profile_probe *p,
		       const struct evt_match *m, const struct evt_field *f)
{
	enum value_kind kind = V_WORD;
	int64_t v;

	if (strchr(f->value, '{') || strchr(f->value, '}'))
		return check_template(r, p, m, f);
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (!strcmp(fields[i].name, f->name))
			kind = fields[i].kind;
	if (kind == V_WORD) {
		if (!strcmp(f->name, "kind") && !known(p, m, f->value, strlen(f->value)) &&
		    strlen(f->value) >= sizeof(((struct sp_event *)0)->kind))
			return bad_at(r, f->mark, "kind \"%.32s\" is too long: at most %zu bytes",
				      f->value, sizeof(((struct sp_event *)0)->kind) - 1);
		return 0;
	}
	if (known(p, m, f->value, strlen(f->value)) ||
	    (kind == V_NUMBER && number_parse(f->value, &v) && v >= 0 && v <= INT32_MAX))
		return 0;
	return bad_at(r, f->mark,
		      "%s: \"%.32s\" is neither an argument nor a capture here%s: declare or "
		      "capture it",
		      f->name, f->value, kind == V_NUMBER ? ", nor a number" : "");
}

/* A field has a value: said in the event, or an argument or capture of that name. */
static bool has(const struct profile_probe *p, const struct evt_match *m, const struct evt_spec *ev,
		const char *name)
{
	return field_get(ev, name) || known(p, m, name, strlen(name));
}

static int check_role(const struct reader *r, const struct profile_probe *p,
		      const struct evt_match *m, const struct evt_spec *ev)
{
	bool room = has(p, m, ev, "room"), op = has(p, m, ev, "op");

	switch (ev->role) {
	case ROLE_NONE:
		return bad_at(r, ev->mark, "the event has no role: add role: post (or another)");
	case ROLE_ARRIVE:
	case ROLE_HELD:
	case ROLE_ANNOUNCE:
	case ROLE_ABORT:
	case ROLE_TOLD:
	case ROLE_REPLY:
	case ROLE_RELEASE:
		if (room)
			return 0;
		return bad_at(r, ev->mark,
			      "role %s needs a room: capture {room} or name an argument room",
			      sp_role_name(ev->role));
	case ROLE_POST:
	case ROLE_CLOSE:
	case ROLE_STATUS:
		if (!room && !op)
			return bad_at(r, ev->mark,
				      "role %s needs a room or an op: capture {room} or name an "
				      "argument op",
				      sp_role_name(ev->role));
		if (ev->role != ROLE_STATUS || field_get(ev, "status") || field_get(ev, "error"))
			return 0;
		return bad_at(r, ev->mark,
			      "role status needs status: ARGUMENT, whose value is the status");
	default:
		return 0;
	}
}

static int check_extras(const struct reader *r, const struct evt_match *m,
			const struct evt_spec *ev)
{
	const struct pat_part *part;

	if (field_get(ev, "status") && field_get(ev, "error"))
		return bad_at(r, field_get(ev, "error")->mark,
			      "status and error in one event: error is a status of which only "
			      "errors count: keep one");
	if (field_get(ev, "created") && ev->role != ROLE_POST)
		return bad_at(r, field_get(ev, "created")->mark,
			      "created is for role post: remove it");
	if (ev->ncovers && ev->role != ROLE_POST)
		return bad_at(r, ev->mark, "covers is for role post: remove it");
	if (ev->ndummy && ev->role != ROLE_ANNOUNCE)
		return bad_at(r, ev->mark, "dummy_if_empty is for role announce: remove it");
	for (int i = 0; i < ev->ndummy; i++) {
		part = capture_of(m, ev->dummy[i], strlen(ev->dummy[i]));
		if (!part || part->shape != PAT_LEN)
			return bad_at(
				r, ev->mark,
				"dummy_if_empty: \"%s\" is no length captured here: write the "
				"frame as \"{%s:len}\"",
				ev->dummy[i], ev->dummy[i]);
	}
	return 0;
}

int check_event(const struct reader *r, const struct profile_probe *p, const struct evt_match *m,
		const struct evt_spec *ev)
{
	int rc = check_role(r, p, m, ev);

	if (!rc)
		rc = check_extras(r, m, ev);
	for (int i = 0; !rc && i < ev->nfields; i++)
		if (strcmp(ev->field[i].name, "created") != 0)
			rc = check_field(r, p, m, &ev->field[i]);
	return rc;
}
