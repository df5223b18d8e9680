// SPDX-License-Identifier: Apache-2.0
/* `event:` of a probe or of an alternative. Whether what it says can be had there: event_check.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile_priv.h"
#include "util/cleanup.h"

static const char *const keys[] = {
	"role",           "kind",   "op",     "chunk", "last",   "rank",
	"part",           "parts",  "need",   "peer",  "agent",  "rid",
	"room",           "status", "error",  "note",  "covers", "created",
	"dummy_if_empty", "bytes",  "object", "count", "work",   "address",
	"segment",        "pages",  "bases",  "item",  NULL,
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

const struct evt_field *event_field(const struct evt_spec *ev, const char *name)
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

/* begin or end; a template or an argument would say it too late for a person to check. */
static int read_work(const struct reader *r, const struct ynode *key, const struct ynode *n,
		     struct evt_spec *ev)
{
	static const char *const words[] = {"begin", "end", NULL};
	unsigned which;
	int rc = read_word(r, n, "work", words, &which);

	return rc ? rc : field_set(r, ev, key, words[which]);
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
		} else if (!strcmp(key->text, "work")) {
			rc = read_work(r, key, n, ev);
		} else {
			rc = read_text(r, n, key->text, &text);
			if (!rc)
				rc = field_set(r, ev, key, text);
		}
	}
	return rc;
}
