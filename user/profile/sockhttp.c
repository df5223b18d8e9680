// SPDX-License-Identifier: Apache-2.0
/* An entry of `sockets:` with `decode: http`. */
#include <stdio.h>
#include <string.h>

#include "profile/profile_priv.h"

/* An HTTP record holds method and path; this much is left beside the longest method. */
#define PATH_MAX_LEN (SP_HTTP_TEXT - sizeof("OPTIONS"))

static int read_http_key(const struct reader *r, const struct ynode *n, const char *what,
			 struct sp_http_key *out)
{
	const char *text;
	size_t len;
	int rc = read_text(r, n, what, &text);

	if (rc)
		return rc;
	len = strlen(text);
	if (!len || len > SP_HTTP_KEY_LEN)
		return bad_at(r, n->mark, "%s: a key has 1 to %d bytes", what, SP_HTTP_KEY_LEN);
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == '"' || text[i] == '\\')
			return bad_at(r, n->mark,
				      "%s: a key is compared as its bytes stand in the body: it "
				      "cannot hold a quote, a backslash or a control character",
				      what);
	out->len = (uint8_t)len;
	memcpy(out->name, text, len);
	return 0;
}

static int read_http_keys(const struct reader *r, const struct ynode *map,
			  struct sp_sock_rule *rule)
{
	static const char *const keys[] = {
		[SOCK_KEY_ROOM] = "room", [SOCK_KEY_HOST] = "host", [SOCK_KEY_RID] = "rid", NULL};
	struct ynode *room;
	int rc = need_map(r, map, "keys");

	if (!rc)
		rc = read_keys(r, map, "keys", keys);
	if (!rc)
		rc = need_key(r, map, "keys", "room", &room);
	for (int i = 0; !rc && i < SOCK_NKEYS; i++) {
		const struct ynode *n = ynode_get(map, keys[i]);
		struct sp_http_key *key = &rule->key[i];

		if (!n)
			continue;
		rc = read_http_key(r, n, keys[i], key);
		for (int k = 0; !rc && k < i; k++)
			if (rule->key[k].len == key->len &&
			    !memcmp(rule->key[k].name, key->name, key->len))
				rc = bad_at(r, n->mark,
					    "%s and %s are both \"%s\": each is a key "
					    "of its own",
					    keys[k], keys[i], n->text);
	}
	rule->nkeys = SOCK_NKEYS;
	return rc;
}

static int read_abort(const struct reader *r, const struct ynode *n, struct sock_entry *e)
{
	const char *text;
	int rc = read_text(r, n, "abort", &text);

	if (rc)
		return rc;
	if (text[0] != '/' || text[strcspn(text, "?# \t")] || strlen(text) > PATH_MAX_LEN)
		return bad_at(r, n->mark,
			      "abort must be a path of at most %zu bytes, without a query: for "
			      "example /abort_request",
			      PATH_MAX_LEN);
	if (!e->rule.key[SOCK_KEY_RID].len)
		return bad_at(r, n->mark,
			      "abort needs the key that says which request: give keys.rid");
	return read_copy(r, n, "abort", &e->abort_path);
}

static int read_events(const struct reader *r, const struct ynode *n, struct sock_entry *e)
{
	static const char *const words[] = {"arrive", "reply", "client-gone", NULL};
	static const unsigned bits[] = {SOCK_TELLS_ARRIVE, SOCK_TELLS_REPLY, SOCK_TELLS_GONE};
	unsigned which = 0;
	int rc = need_list(r, n, "events", 3);

	e->events = 0;
	for (size_t i = 0; !rc && i < n->n; i++) {
		rc = read_word(r, n->item[i], "events", words, &which);
		if (rc)
			return rc;
		if (e->events & bits[which])
			return bad_at(r, n->item[i]->mark, "events: %s a second time",
				      words[which]);
		e->events |= bits[which];
	}
	if (!rc && !(e->events & SOCK_TELLS_ARRIVE))
		return bad_at(r, n->mark,
			      "events lacks arrive: what is said of an answer belongs to the "
			      "request that has arrived");
	return rc;
}

int sockhttp_read(const struct reader *r, const struct ynode *map, struct sock_entry *e,
		  struct profile_probe *probe)
{
	struct ynode *n;
	int rc = need_key(r, map, "an entry with decode: http", "keys", &n);

	(void)probe; /* its records are not hits: nothing to compile */
	if (!rc)
		rc = read_http_keys(r, n, &e->rule);
	n = ynode_get(map, "abort");
	if (!rc && n)
		rc = read_abort(r, n, e);
	e->events = SOCK_TELLS_ARRIVE | SOCK_TELLS_REPLY | SOCK_TELLS_GONE;
	n = ynode_get(map, "events");
	if (!rc && n)
		rc = read_events(r, n, e);
	/* requests come in, replies go out */
	e->rule.dirs = 1 << SP_DIR_IN | 1 << SP_DIR_OUT;
	return rc;
}
