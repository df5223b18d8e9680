// SPDX-License-Identifier: Apache-2.0
/* The `sockets:` section: which sockets of which processes, what is spoken there, what it means. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile_priv.h"

/* ---- process: ----------------------------------------------------------------------------------
 */

static const char *const relations[] = {"self", "parent", "ancestor", "sibling", NULL};

static int add_relation(const struct reader *r, const struct ynode *n, const char *what,
			struct sock_process *out)
{
	static const unsigned bits[] = {SOCK_IS_SELF, SOCK_IS_PARENT, SOCK_IS_ANCESTOR,
					SOCK_IS_SIBLING};
	unsigned which = 0;
	int rc = read_word(r, n, what, relations, &which);

	if (rc)
		return rc;
	if (out->is & bits[which])
		return bad_at(r, n->mark, "%s: %s a second time", what, relations[which]);
	out->is |= bits[which];
	return 0;
}

static int read_is(const struct reader *r, const struct ynode *n, struct sock_process *out)
{
	int rc;

	if (n->kind != YNODE_LIST)
		return add_relation(r, n, "is", out);
	rc = need_list(r, n, "is", 4);
	for (size_t i = 0; !rc && i < n->n; i++)
		rc = add_relation(r, n->item[i], "is", out);
	return rc;
}

static int read_process(const struct reader *r, const struct ynode *n, struct sock_process *out)
{
	static const char *const keys[] = {"is", "cmdline", "exe", "listens", NULL};
	static const char *const exes[] = {"same", "any", NULL};
	struct ynode *v;
	unsigned exe = 0;
	int rc;

	out->same_exe = true;
	if (n->kind == YNODE_SCALAR)
		return add_relation(r, n, "process", out);
	if (n->kind != YNODE_MAP)
		return bad_at(r, n->mark,
			      "process must be a word (self) or a map ({is: [parent, sibling]}), "
			      "not %s",
			      ynode_kind_name(n));
	rc = read_keys(r, n, "process", keys);
	if (!rc)
		rc = need_key(r, n, "process", "is", &v);
	if (!rc)
		rc = read_is(r, v, out);
	v = ynode_get(n, "cmdline");
	if (!rc && v)
		rc = read_glob(r, v, "cmdline", &out->cmdline);
	v = ynode_get(n, "exe");
	if (!rc && v)
		rc = read_word(r, v, "exe", exes, &exe);
	out->same_exe = exe == 0;
	v = ynode_get(n, "listens");
	if (!rc && v)
		rc = read_bool(r, v, "listens", &out->listens);
	return rc;
}

/* ---- when: and decode: -------------------------------------------------------------------------
 */

static const char *const protocols[] = {"zmtp", "http", NULL};
static const uint8_t decoders[] = {SP_DEC_ZMTP, SP_DEC_HTTP};

/* A number at p, and what follows it. */
static bool port_at(const char *p, const char **end, uint16_t *out)
{
	unsigned v = 0;

	for (*end = p; **end >= '0' && **end <= '9'; (*end)++) {
		v = v * 10 + (unsigned)(**end - '0');
		if (v > UINT16_MAX)
			return false;
	}
	*out = (uint16_t)v;
	return v && *p != '0';
}

/* 8998, or "8000-8099" */
static int read_ports(const struct reader *r, const struct ynode *n, const char *what, uint16_t *lo,
		      uint16_t *hi)
{
	const char *text, *end;
	bool good;
	int rc = read_text(r, n, what, &text);

	if (rc)
		return rc;
	good = port_at(text, &end, lo);
	*hi = *lo;
	if (good && *end == '-')
		good = port_at(end + 1, &end, hi);
	if (!good || *end)
		return bad_at(r, n->mark,
			      "%s must be a port from 1 to 65535, or a range of them: 8998 or "
			      "\"8000-8099\"",
			      what);
	if (*lo > *hi)
		return bad_at(r, n->mark, "%s: %u is above %u: write \"%u-%u\"", what, *lo, *hi,
			      *hi, *lo);
	return 0;
}

static int read_when(const struct reader *r, const struct ynode *map, struct sp_sock_rule *rule)
{
	static const char *const keys[] = {"bytes", "listen", "peer", NULL};
	const struct ynode *n;
	unsigned bytes = 0;
	int rc = need_map(r, map, "when");

	if (!rc)
		rc = read_keys(r, map, "when", keys);
	if (!rc && !map->n)
		rc = bad_at(r, map->mark,
			    "when: empty: say which sockets by bytes, listen or peer");
	n = ynode_get(map, "bytes");
	if (!rc && n) {
		rc = read_word(r, n, "bytes", protocols, &bytes);
		if (!rc && decoders[bytes] != rule->decode)
			rc = bad_at(r, n->mark,
				    "bytes: %s and decode: %s: what begins so cannot be decoded so",
				    protocols[bytes], protocols[!bytes]);
		rule->bytes = 1;
	}
	n = ynode_get(map, "listen");
	if (!rc && n)
		rc = read_ports(r, n, "listen", &rule->listen_lo, &rule->listen_hi);
	n = ynode_get(map, "peer");
	if (!rc && n)
		rc = read_ports(r, n, "peer", &rule->peer_lo, &rule->peer_hi);
	return rc;
}

/* ---- decode: zmtp ------------------------------------------------------------------------------
 */

static int read_direction(const struct reader *r, const struct ynode *map,
			  struct sp_sock_rule *rule)
{
	static const char *const words[] = {"in", "out", "both", NULL};
	static const uint8_t dirs[] = {1 << SP_DIR_IN, 1 << SP_DIR_OUT,
				       1 << SP_DIR_IN | 1 << SP_DIR_OUT};
	const struct ynode *n = ynode_get(map, "direction");
	unsigned which = 0;
	int rc = n ? read_word(r, n, "direction", words, &which) : 0;

	rule->dirs = rc ? 0 : dirs[which];
	return rc;
}

static int read_same_as(const struct reader *r, const struct ynode *map, struct sock_entry *e,
			struct profile_probe *probe)
{
	static const char *const winners[] = {"probe", "socket", NULL};
	const struct ynode *n = ynode_get(map, "same_as"), *wins = ynode_get(map, "wins");
	const struct profile *p = r->profile;
	const char *text;
	unsigned who = 0;
	int rc = read_text(r, n, "same_as", &text);

	for (e->same_as = 0; !rc && e->same_as < p->nuprobes; e->same_as++)
		if (!strcmp(p->probes[e->same_as].name, text))
			break;
	if (rc)
		return rc;
	if (e->same_as == p->nuprobes)
		return bad_at(r, n->mark,
			      "same_as: no probe is named \"%.32s\": name one of probes that has "
			      "messages",
			      text);
	if (!p->probes[e->same_as].is_frames)
		return bad_at(r, n->mark,
			      "same_as: probe %s has no messages: name one that has, or write the "
			      "messages here",
			      text);
	rc = sockprobe_same(r, n, probe, &p->probes[e->same_as]);
	if (!rc && wins)
		rc = read_word(r, wins, "wins", winners, &who);
	e->wins = who ? SOCK_WINS_SOCKET : SOCK_WINS_PROBE;
	return rc;
}

static int read_zmtp(const struct reader *r, const struct ynode *map, struct sock_entry *e,
		     struct profile_probe *probe)
{
	const struct ynode *same = ynode_get(map, "same_as"), *wins = ynode_get(map, "wins");
	const struct ynode *messages = ynode_get(map, "messages");
	int rc = read_direction(r, map, &e->rule);

	if (rc)
		return rc;
	sockprobe_frames(probe);
	if (same && messages)
		return bad_at(r, messages->mark,
			      "messages and same_as in one entry: keep one (same_as takes those of "
			      "the probe)");
	if (same)
		return read_same_as(r, map, e, probe);
	if (wins)
		return bad_at(
			r, wins->mark,
			"wins is for an entry with same_as: remove it, or name the probe that "
			"sees the same messages");
	if (!messages)
		return bad_at(r, map->mark,
			      "the entry has no messages: write them, or name with same_as the "
			      "probe that sees the same ones");
	return read_messages(r, messages, probe);
}

/* ---- the section -------------------------------------------------------------------------------
 */

/* What only the other protocol has. */
static int refuse_foreign(const struct reader *r, const struct ynode *map, unsigned protocol)
{
	static const char *const only[][5] = {
		{"direction", "same_as", "wins", "messages", NULL},
		{"keys", "abort", "events", NULL},
	};

	for (const char *const *key = only[!protocol]; *key; key++)
		for (size_t i = 0; i < map->n; i++)
			if (!strcmp(ynode_key(map, i)->text, *key))
				return bad_at(r, ynode_key(map, i)->mark,
					      "%s is for decode: %s: remove it, or change decode",
					      *key, protocols[!protocol]);
	return 0;
}

static int read_entry_name(const struct reader *r, const struct ynode *map, const char **name)
{
	const struct profile *p = r->profile;
	struct ynode *n;
	int rc = need_key(r, map, "the entry", "name", &n);

	if (!rc)
		rc = read_name(r, n, "an entry's name", name);
	for (int i = 0; !rc && i < p->nprobes; i++)
		if (!strcmp(p->probes[i].name, *name))
			return bad_at(r, n->mark,
				      "\"%s\" is already the name of %s: events of both would look "
				      "alike: give it another",
				      *name, i < p->nuprobes ? "a probe" : "an entry above");
	return rc;
}

static int add_probe(const struct reader *r, const struct ynode *map, struct sock_entry *e,
		     struct profile_probe **out)
{
	struct profile *p = r->profile;
	const char *name = "";
	int rc = read_entry_name(r, map, &name);

	if (rc)
		return rc;
	if (p->nprobes == SP_MAX_PROBES)
		return bad_at(r, map->mark,
			      "more than %d probes and entries of sockets in one profile",
			      SP_MAX_PROBES);
	*out = sockprobe_add(p, name, map->mark);
	if (!*out)
		return no_memory(r);
	e->probe = p->nprobes - 1;
	e->rule.probe = (uint16_t)e->probe;
	return 0;
}

static int read_entry(const struct reader *r, const struct ynode *map, struct sock_entry *e)
{
	static const char *const keys[] = {"name",      "process", "when",   "decode",
					   "direction", "same_as", "wins",   "messages",
					   "keys",      "abort",   "events", NULL};
	struct profile_probe *probe = NULL;
	unsigned protocol = 0;
	struct ynode *n;
	int rc = need_map(r, map, "an entry of sockets");

	e->same_as = -1;
	if (!rc)
		rc = read_keys(r, map, "an entry of sockets", keys);
	if (!rc)
		rc = add_probe(r, map, e, &probe);
	if (!rc)
		rc = need_key(r, map, "the entry", "process", &n);
	if (!rc)
		rc = read_process(r, n, &e->process);
	if (!rc)
		rc = need_key(r, map, "the entry", "decode", &n);
	if (!rc)
		rc = read_word(r, n, "decode", protocols, &protocol);
	if (!rc)
		rc = refuse_foreign(r, map, protocol);
	if (!rc)
		rc = need_key(r, map, "the entry", "when", &n);
	if (rc)
		return rc;
	e->rule.decode = decoders[protocol];
	rc = read_when(r, n, &e->rule);
	if (rc)
		return rc;
	return protocol ? sockhttp_read(r, map, e, probe) : read_zmtp(r, map, e, probe);
}

int read_sockets(const struct reader *r, const struct ynode *list)
{
	struct profile_sockets *s;
	int rc = need_list(r, list, "sockets", SP_MAX_SOCK_RULES);

	if (rc)
		return rc;
	s = calloc(1, sizeof(*s));
	if (!s)
		return no_memory(r);
	r->profile->sockets = s; /* freed with the profile */
	for (size_t i = 0; !rc && i < list->n; i++)
		rc = read_entry(r, list->item[i], &s->entry[s->nentries++]);
	return rc;
}

void sockets_clear(struct profile_sockets *s)
{
	for (int i = 0; s && i < s->nentries; i++) {
		free(s->entry[i].process.cmdline);
		free(s->entry[i].abort_path);
	}
	free(s);
}
