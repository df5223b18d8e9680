// SPDX-License-Identifier: Apache-2.0
/* Reading single nodes: every complaint has its place and says what to write instead. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile_priv.h"
#include "util/cleanup.h"

int bad_at(const struct reader *r, struct profile_mark mark, const char *fmt, ...)
{
	char what[640];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	for (char *p = what; *p; p++) /* a quoted word may hold anything: one line, no escapes */
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
	sp_err_set(r->err, SP_EXIT_USAGE, -EINVAL, "%s:%d:%d: %s", r->file, mark.line, mark.col,
		   what);
	return -EINVAL;
}

int no_memory(const struct reader *r)
{
	sp_err_set(r->err, SP_EXIT_FAIL, -ENOMEM, "%s: out of memory", r->file);
	return -ENOMEM;
}

/*
 * Edits from a to b: a letter more, less or other, or two neighbours swapped. For words shorter
 * than 32; longer ones are never near.
 */
static size_t distance(const char *a, const char *b)
{
	size_t rows[3][32], la = strlen(a), lb = strlen(b);

	if (la >= ARRAY_SIZE(rows[0]) || lb >= ARRAY_SIZE(rows[0]))
		return SIZE_MAX;
	for (size_t i = 0; i <= la; i++) {
		size_t *row = rows[i % 3], *up = rows[(i + 2) % 3], *up2 = rows[(i + 1) % 3];

		for (size_t j = 0; j <= lb; j++) {
			if (!i || !j) {
				row[j] = i + j;
				continue;
			}
			row[j] = up[j - 1] + (a[i - 1] != b[j - 1]);
			if (up[j] + 1 < row[j])
				row[j] = up[j] + 1;
			if (row[j - 1] + 1 < row[j])
				row[j] = row[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    up2[j - 2] + 1 < row[j])
				row[j] = up2[j - 2] + 1;
		}
	}
	return rows[la % 3][lb];
}

void suggest(const char *word, const char *const words[], char *buf, size_t len)
{
	const char *near = NULL;
	size_t best = strlen(word) <= 4 ? 1 : 2, at = 0;

	for (size_t i = 0; words[i]; i++) {
		size_t d = distance(word, words[i]);

		if (d <= best) {
			best = d;
			near = words[i];
		}
	}
	if (near) {
		snprintf(buf, len, "did you mean \"%s\"?", near);
		return;
	}
	snprintf(buf, len, "use ");
	at = strlen(buf);
	for (size_t i = 0; words[i]; i++) {
		int n;

		if (at + strlen(words[i]) + sizeof(" or ...") > len) {
			snprintf(buf + at, len - at, "...");
			return;
		}
		n = snprintf(buf + at, len - at, "%s%s", words[i],
			     !words[i + 1]  ? ""
			     : words[i + 2] ? ", "
					    : " or ");

		at += n > 0 ? (size_t)n : 0;
	}
}

int need_map(const struct reader *r, const struct ynode *n, const char *what)
{
	if (n->kind == YNODE_MAP)
		return 0;
	return bad_at(r, n->mark, "%s must be a map (key: value), not %s", what,
		      ynode_kind_name(n));
}

int need_list(const struct reader *r, const struct ynode *n, const char *what, size_t max)
{
	if (n->kind != YNODE_LIST)
		return bad_at(r, n->mark, "%s must be a list (- item), not %s", what,
			      ynode_kind_name(n));
	if (!n->n)
		return bad_at(r, n->mark, "%s: an empty list: leave it out or fill it", what);
	if (n->n > max)
		return bad_at(r, n->item[max]->mark, "%s: more than %zu: split it", what, max);
	return 0;
}

int read_keys(const struct reader *r, const struct ynode *map, const char *what,
	      const char *const allowed[])
{
	char hint[400];

	for (size_t i = 0; i < map->n; i++) {
		const struct ynode *key = ynode_key(map, i);
		size_t k = 0;

		while (allowed[k] && strcmp(allowed[k], key->text) != 0)
			k++;
		if (!allowed[k]) {
			suggest(key->text, allowed, hint, sizeof(hint));
			return bad_at(r, key->mark, "unknown key \"%.64s\" in %s: %s", key->text,
				      what, hint);
		}
		for (k = 0; k < i; k++)
			if (!strcmp(ynode_key(map, k)->text, key->text))
				return bad_at(r, key->mark,
					      "key \"%s\" a second time in %s (first in line %d)",
					      key->text, what, ynode_key(map, k)->mark.line);
	}
	return 0;
}

int need_key(const struct reader *r, const struct ynode *map, const char *what, const char *key,
	     struct ynode **out)
{
	*out = ynode_get(map, key);
	if (*out)
		return 0;
	return bad_at(r, map->mark, "%s has no \"%s\": it is required", what, key);
}

int read_text(const struct reader *r, const struct ynode *n, const char *what, const char **out)
{
	if (n->kind == YNODE_MAP)
		return bad_at(r, n->mark,
			      "%s must be a text, not a map: quote a text that begins with {",
			      what);
	if (n->kind != YNODE_SCALAR)
		return bad_at(r, n->mark, "%s must be a text, not %s", what, ynode_kind_name(n));
	if (!n->text[0] && n->plain)
		return bad_at(r, n->mark, "%s is empty: give a text", what);
	*out = n->text;
	return 0;
}

int read_copy(const struct reader *r, const struct ynode *n, const char *what, char **out)
{
	const char *text = NULL;
	int rc = read_text(r, n, what, &text);

	if (rc)
		return rc;
	*out = strdup(text);
	return *out ? 0 : no_memory(r);
}

int read_bool(const struct reader *r, const struct ynode *n, const char *what, bool *out)
{
	static const char *const yes[] = {"true", "True", "TRUE", "yes", "on"};
	static const char *const no[] = {"false", "False", "FALSE", "no", "off"};

	if (n->kind == YNODE_SCALAR && n->plain) {
		for (size_t i = 0; i < ARRAY_SIZE(yes); i++) {
			if (!strcmp(n->text, yes[i]) || !strcmp(n->text, no[i])) {
				*out = !strcmp(n->text, yes[i]);
				return 0;
			}
		}
	}
	return bad_at(r, n->mark, "%s must be true or false", what);
}

int read_word(const struct reader *r, const struct ynode *n, const char *what,
	      const char *const words[], unsigned *out)
{
	const char *text = "";
	char hint[120];
	int rc = read_text(r, n, what, &text);

	if (rc)
		return rc;
	for (*out = 0; words[*out]; (*out)++)
		if (!strcmp(words[*out], text))
			return 0;
	suggest(text, words, hint, sizeof(hint));
	return bad_at(r, n->mark, "%s: \"%.32s\" is unknown: %s", what, text, hint);
}

bool number_parse(const char *text, int64_t *out)
{
	const char *digits = text + (*text == '-' || *text == '+');
	char *end;

	/* strtoll would take blanks, octal and an empty text */
	if (*digits < '0' || *digits > '9' ||
	    (digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9'))
		return false;
	errno = 0;
	*out = strtoll(text, &end, 0);
	return !errno && !*end;
}

int read_u64(const struct reader *r, const struct ynode *n, const char *what, uint64_t max,
	     uint64_t *out)
{
	char *end;

	if (n->kind == YNODE_SCALAR && n->text[0] >= '0' && n->text[0] <= '9') {
		errno = 0;
		*out = strtoull(n->text, &end, n->text[1] == 'x' ? 16 : 10);
		if (!errno && !*end && *out <= max)
			return 0;
	}
	return bad_at(r, n->mark, "%s must be a number from 0 to %llu", what,
		      (unsigned long long)max);
}

int read_s64(const struct reader *r, const struct ynode *n, const char *what, int64_t *out)
{
	if (n->kind == YNODE_SCALAR && number_parse(n->text, out))
		return 0;
	return bad_at(r, n->mark, "%s must be a whole number", what);
}

bool name_ok(const char *s, size_t len)
{
	if (!len || len >= PAT_NAME_MAX || (s[0] >= '0' && s[0] <= '9'))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!((s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') ||
		      (s[i] >= '0' && s[i] <= '9') || s[i] == '_'))
			return false;
	return true;
}

int read_name(const struct reader *r, const struct ynode *n, const char *what, const char **out)
{
	static const char extra[] = "_-.";
	int rc = read_text(r, n, what, out);
	size_t len;

	if (rc)
		return rc;
	len = strlen(*out);
	for (const char *p = *out; *p; p++)
		if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
		      (*p >= '0' && *p <= '9') || strchr(extra, *p)))
			len = 0;
	if (len && len <= NAME_MAX_LEN)
		return 0;
	return bad_at(r, n->mark, "%s must be 1 to %d letters, digits, \"_\", \"-\" or \".\"", what,
		      NAME_MAX_LEN);
}

/* fnmatch() takes a broken glob for a literal, which then never matches: refuse it here. */
static const char *glob_flaw(const char *g)
{
	for (; *g; g++) {
		if ((unsigned char)*g < ' ' || *g == 0x7f)
			return "a control character";
		if (*g == '\\' && !*++g)
			return "a \"\\\" at its end";
		if (*g != '[')
			continue;
		g++;
		if (*g == '!' || *g == '^')
			g++;
		if (*g == ']') /* a first ] is a member of the set */
			g++;
		while (*g && *g != ']')
			g++;
		if (!*g)
			return "a \"[\" without \"]\"";
	}
	return NULL;
}

int read_glob(const struct reader *r, const struct ynode *n, const char *what, char **out)
{
	const char *text = "", *flaw;
	int rc = read_text(r, n, what, &text);

	if (rc)
		return rc;
	flaw = *text ? glob_flaw(text) : "nothing in it";
	if (flaw)
		return bad_at(r, n->mark, "%s is no glob: it has %s: use *, ? and [set]", what,
			      flaw);
	return read_copy(r, n, what, out);
}
