// SPDX-License-Identifier: Apache-2.0
/*
 * Paths through a server's objects, "self.queue[*] -> {room: bootstrap_room}": a small parser by
 * hand. An error names the column inside the text, which is that of the file as long as the text
 * stands in one line and has no escapes; paths need neither.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "profile/profile_priv.h"
#include "util/cleanup.h"

static const char *const what_names[] = {
	[PY_ROOM] = "room",   [PY_RID] = "rid",   [PY_STATUS] = "status", [PY_SENT] = "sent",
	[PY_TOTAL] = "total", [PY_SEEN] = "seen", [PY_NEED] = "need",
};

const char *py_what_name(enum py_what what)
{
	return what > 0 && what < ARRAY_SIZE(what_names) ? what_names[what] : "?";
}

/* ---- the text being parsed --------------------------------------------------------------------
 */

struct text {
	const struct reader *r;
	const struct ynode *n;
	const char *what; /* "the path of waiting": in messages */
	const char *at;
};

__attribute__((format(printf, 2, 3))) static int bad_here(const struct text *t, const char *fmt,
							  ...)
{
	struct profile_mark mark = t->n->mark;
	char why[320];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	mark.col += (int)(t->at - t->n->text) + !t->n->plain;
	return bad_at(t->r, mark, "%s: %s", t->what, why);
}

static void skip_blanks(struct text *t)
{
	while (*t->at == ' ' || *t->at == '\t')
		t->at++;
}

static bool take(struct text *t, const char *token)
{
	size_t len = strlen(token);

	if (strncmp(t->at, token, len) != 0)
		return false;
	t->at += len;
	return true;
}

/* Bytes from 0x80 on: Python's names may be any letters. */
static bool name_byte(char c, bool first)
{
	return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (unsigned char)c >= 0x80 || (!first && c >= '0' && c <= '9');
}

/* hint: how the whole is written, or NULL. */
static int take_name(struct text *t, const char *what, const char *hint, char out[PY_NAME_MAX])
{
	size_t len = 0;

	while (name_byte(t->at[len], !len))
		len++;
	if (!len)
		return bad_here(t, "%s expected here: a name of letters, digits and \"_\"%s", what,
				hint ? hint : "");
	if (len >= PY_NAME_MAX)
		return bad_here(t, "a name of more than %d bytes", PY_NAME_MAX - 1);
	memcpy(out, t->at, len);
	out[len] = '\0';
	t->at += len;
	return 0;
}

/* ---- steps -------------------------------------------------------------------------------------
 */

static int take_step(struct text *t, struct py_step *s, bool *any)
{
	const char *from = t->at;

	*any = true;
	if (take(t, ".")) {
		s->kind = PY_ATTR;
		return take_name(t, "an attribute", NULL, s->name);
	}
	if (take(t, "[*]"))
		s->kind = PY_EACH;
	else if (take(t, "{}"))
		s->kind = PY_ITEMS;
	else if (take(t, "{0}"))
		s->kind = PY_FIRST;
	else if (take(t, "#"))
		s->kind = PY_LEN;
	else if (*t->at == '[')
		return bad_here(t,
				"only [*], every element, can be written here: write [*] for it");
	else if (*t->at == '{')
		return bad_here(t, "only {}, every entry, and {0}, the first entry's value, can be "
				   "written here");
	else
		*any = false;
	if (*any && s->kind == PY_LEN && name_byte(*t->at, false)) {
		t->at = from;
		return bad_here(t, "\"#\", the number of elements, ends a path");
	}
	return 0;
}

static int take_steps(struct text *t, struct py_path *p)
{
	for (;;) {
		struct py_step s = {0};
		bool any;
		int rc;

		if (p->nsteps && p->step[p->nsteps - 1].kind == PY_LEN && *t->at &&
		    strchr(".[{#", *t->at))
			return bad_here(t, "\"#\", the number of elements, ends a path");
		rc = take_step(t, &s, &any);
		if (rc || !any)
			return rc;
		if (p->nsteps == PY_MAX_STEPS)
			return bad_here(t, "more than %d steps", PY_MAX_STEPS);
		p->step[p->nsteps++] = s;
	}
}

static bool path_has(const struct py_path *p, enum py_step_kind kind)
{
	for (int i = 0; i < p->nsteps; i++)
		if (p->step[i].kind == kind)
			return true;
	return false;
}

/* Nothing may follow. */
static int at_end(struct text *t, const char *expected)
{
	skip_blanks(t);
	if (!*t->at)
		return 0;
	return bad_here(t, "\"%.16s\" is not understood here: %s", t->at, expected);
}

int read_py_path(const struct reader *r, const struct ynode *n, const char *what,
		 struct py_path *out)
{
	struct text t = {.r = r, .n = n, .what = what};
	int rc = read_text(r, n, what, &t.at);

	if (rc)
		return rc;
	memset(out, 0, sizeof(*out));
	skip_blanks(&t);
	rc = take_name(&t, "a local variable", NULL, out->head);
	if (!rc)
		rc = take_steps(&t, out);
	if (!rc)
		rc = at_end(&t, "use .NAME or {0}");
	if (rc)
		return rc;
	t.at = n->text;
	if (path_has(out, PY_EACH) || path_has(out, PY_ITEMS) || path_has(out, PY_LEN))
		return bad_here(&t, "it leads to one object: use .NAME or {0}, not [*], {} or #");
	return 0;
}

/* ---- fields ------------------------------------------------------------------------------------
 */

static bool is_entry_word(const char *name)
{
	return !strcmp(name, "key") || !strcmp(name, "value");
}

/* A field's path: from the element's attribute, or from the entry's `key` or `value`. */
static int take_field_path(struct text *t, bool entries, struct py_path *p)
{
	char first[PY_NAME_MAX];
	const char *from = t->at;
	bool dotted = !entries && take(t, "."); /* for an attribute named key or value */
	int rc = take_name(t, entries ? "key or value" : "an attribute", NULL, first);

	if (rc)
		return rc;
	if (!entries && !dotted && is_entry_word(first)) {
		t->at = from;
		return bad_here(t,
				"\"%s\" of what? The query does not end in {}: end it so, for the "
				"entries of a dict, or write .%s for an attribute of that name",
				first, first);
	}
	if (entries) {
		if (!is_entry_word(first)) {
			t->at = from;
			return bad_here(t,
					"\"%s\" of what? The query ends in {}: begin with key or "
					"value",
					first);
		}
		memcpy(p->head, first, sizeof(first));
	} else {
		p->step[0].kind = PY_ATTR;
		memcpy(p->step[0].name, first, sizeof(first));
		p->nsteps = 1;
	}
	rc = take_steps(t, p);
	if (!rc && (path_has(p, PY_EACH) || path_has(p, PY_ITEMS))) {
		t->at = from;
		return bad_here(t, "a field is one value: [*] and {} stand before the \"->\"");
	}
	return rc;
}

static int take_what(struct text *t, unsigned allowed, struct py_field *f)
{
	const char *list[ARRAY_SIZE(what_names) + 1];
	const char *from = t->at;
	char word[PY_NAME_MAX], hint[160];
	int rc = take_name(t, "a field", NULL, word);
	size_t n = 0;

	if (rc)
		return rc;
	for (unsigned w = PY_ROOM; w < ARRAY_SIZE(what_names); w++) {
		if (!(allowed >> w & 1))
			continue;
		list[n++] = what_names[w];
		if (!strcmp(word, what_names[w]))
			f->what = w;
	}
	list[n] = NULL;
	if (f->what)
		return 0;
	suggest(word, list, hint, sizeof(hint));
	t->at = from;
	return bad_here(t, "unknown field \"%s\": %s", word, hint);
}

static int take_field(struct text *t, bool entries, unsigned allowed, unsigned needed,
		      struct py_query *q)
{
	struct py_field *f = &q->field[q->nfields];
	const char *from = t->at;
	int rc = take_what(t, allowed, f);

	for (int i = 0; !rc && i < q->nfields; i++)
		if (q->field[i].what == f->what) {
			t->at = from;
			return bad_here(t, "field \"%s\" a second time", py_what_name(f->what));
		}
	if (rc)
		return rc;
	if (*t->at == '?' && needed >> f->what & 1)
		return bad_here(t, "\"%s\" cannot be optional: drop the \"?\"",
				py_what_name(f->what));
	f->optional = take(t, "?");
	skip_blanks(t);
	if (!take(t, ":"))
		return bad_here(t, "\":\" expected here: write %s: ATTRIBUTE",
				py_what_name(f->what));
	skip_blanks(t);
	rc = take_field_path(t, entries, &f->path);
	if (!rc)
		q->nfields++;
	return rc;
}

static int take_fields(struct text *t, bool entries, unsigned allowed, unsigned needed,
		       struct py_query *q)
{
	if (!take(t, "{"))
		return bad_here(t, "\"{\" expected here: write PATH -> {room: ATTRIBUTE}");
	skip_blanks(t);
	while (!take(t, "}")) {
		int rc;

		if (q->nfields && !take(t, ","))
			return bad_here(t, "\",\" or \"}\" expected here");
		skip_blanks(t);
		if (q->nfields == PY_MAX_FIELDS)
			return bad_here(t, "more than %d fields", PY_MAX_FIELDS);
		rc = take_field(t, entries, allowed, needed, q);
		if (rc)
			return rc;
		skip_blanks(t);
	}
	for (unsigned w = PY_ROOM; w < ARRAY_SIZE(what_names); w++) {
		bool there = false;

		for (int i = 0; i < q->nfields; i++)
			there |= q->field[i].what == w;
		if (needed >> w & 1 && !there) {
			t->at--;
			return bad_here(t, "no field \"%s\": it is required", what_names[w]);
		}
	}
	return 0;
}

/* ---- queries -----------------------------------------------------------------------------------
 */

/* "queue._buf[*].room": its last attribute is the room. */
static int short_form(struct text *t, unsigned allowed, unsigned needed, struct py_query *q)
{
	struct py_path *p = &q->path;
	struct py_field *f = &q->field[0];

	if (!p->nsteps || p->step[p->nsteps - 1].kind != PY_ATTR || needed != 1u << PY_ROOM ||
	    !(allowed >> PY_ROOM & 1))
		return bad_here(t, "\"-> {room: ...}\" expected here: say which field is what");
	f->what = PY_ROOM;
	f->path.step[0] = p->step[--p->nsteps];
	f->path.nsteps = 1;
	q->nfields = 1;
	return 0;
}

/* What the elements are, before anything is said of their fields. */
static int check_elements(struct text *t, const struct py_path *p, bool *entries)
{
	*entries = p->nsteps && p->step[p->nsteps - 1].kind == PY_ITEMS;
	if (path_has(p, PY_LEN))
		return bad_here(t, "\"#\" is for fields: a query ends in [*] or {}");
	for (int i = 0; i + 1 < p->nsteps; i++)
		if (p->step[i].kind == PY_ITEMS)
			return bad_here(t, "{} ends a query's path: its fields say key and value");
	if (!*entries && !path_has(p, PY_EACH))
		return bad_here(t, "it has no elements: end the path with [*] (list, tuple, deque) "
				   "or {} (dict)");
	return 0;
}

int read_py_query(const struct reader *r, const struct ynode *n, const char *what, unsigned allowed,
		  unsigned needed, struct py_query *out)
{
	struct text t = {.r = r, .n = n, .what = what};
	bool entries = false;
	int rc = read_text(r, n, what, &t.at);

	if (rc)
		return rc;
	memset(out, 0, sizeof(*out));
	out->line = n->mark.line;
	out->col = n->mark.col;
	skip_blanks(&t);
	rc = take_name(&t, "a local variable", ", then the way to the elements: self.NAME[*]",
		       out->path.head);
	if (!rc)
		rc = take_steps(&t, &out->path);
	if (!rc)
		rc = check_elements(&t, &out->path, &entries);
	if (rc)
		return rc;
	skip_blanks(&t);
	if (!*t.at)
		return short_form(&t, allowed, needed, out);
	if (!take(&t, "->"))
		return bad_here(&t,
				"\"%.16s\" is not understood here: use .NAME, [*], {}, {0} or "
				"\"-> {room: ...}\"",
				t.at);
	skip_blanks(&t);
	rc = take_fields(&t, entries, allowed, needed, out);
	return rc ? rc : at_end(&t, "nothing may follow the \"}\"");
}

/* ---- printing ----------------------------------------------------------------------------------
 */

__attribute__((format(printf, 4, 5))) static void put(char *buf, size_t len, size_t *at,
						      const char *fmt, ...)
{
	va_list ap;
	int n;

	if (*at >= len)
		return;
	va_start(ap, fmt);
	n = vsnprintf(buf + *at, len - *at, fmt, ap);
	va_end(ap);
	*at += n > 0 ? (size_t)n : 0;
}

static void put_path(const struct py_path *p, char *buf, size_t len, size_t *at)
{
	put(buf, len, at, "%s", p->head);
	for (int i = 0; i < p->nsteps; i++) {
		const struct py_step *s = &p->step[i];

		switch (s->kind) {
		case PY_ATTR:
			put(buf, len, at, "%s%s",
			    i || p->head[0] || is_entry_word(s->name) ? "." : "", s->name);
			break;
		case PY_EACH:
			put(buf, len, at, "[*]");
			break;
		case PY_ITEMS:
			put(buf, len, at, "{}");
			break;
		case PY_FIRST:
			put(buf, len, at, "{0}");
			break;
		case PY_LEN:
			put(buf, len, at, "#");
			break;
		}
	}
}

void py_path_print(const struct py_path *p, char *buf, size_t len)
{
	size_t at = 0;

	if (len)
		buf[0] = '\0';
	put_path(p, buf, len, &at);
}

void py_query_print(const struct py_query *q, char *buf, size_t len)
{
	size_t at = 0;

	if (len)
		buf[0] = '\0';
	put_path(&q->path, buf, len, &at);
	for (int i = 0; i < q->nfields; i++) {
		put(buf, len, &at, "%s%s%s: ", i ? ", " : " -> {", py_what_name(q->field[i].what),
		    q->field[i].optional ? "?" : "");
		put_path(&q->field[i].path, buf, len, &at);
	}
	put(buf, len, &at, "%s", q->nfields ? "}" : "");
}
