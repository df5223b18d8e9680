// SPDX-License-Identifier: Apache-2.0
/* Probes that look at several elements: `each:`, and what goes with it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile_priv.h"

/* ---- the elements ---------------------------------------------------------------------------- */

static int read_list(const struct reader *r, const struct ynode *map,
		     const struct fetch_where *where, struct sp_each_level *l)
{
	static const char *const keys[] = {"list", "next", NULL};
	struct ynode *next;
	int64_t off = 0;
	int rc = read_keys(r, map, "a list of each", keys);

	l->kind = SP_EACH_LIST;
	if (!rc)
		rc = read_scalar(r, ynode_get(map, "list"), "list", where, &l->base);
	if (!rc)
		rc = need_key(r, map, "the list", "next", &next);
	if (!rc)
		rc = read_s64(r, next, "next", &off);
	if (!rc && (off < INT32_MIN || off > INT32_MAX))
		rc = bad_at(r, next->mark,
			    "next is where in an element the next one's address lies: a number of "
			    "bytes");
	l->next = (int32_t)off;
	return rc;
}

/* How long an element is: fixed, or the whole by the number of elements. */
static int read_stride(const struct reader *r, const struct ynode *map,
		       const struct fetch_where *where, struct sp_each_level *l)
{
	const struct ynode *stride = ynode_get(map, "stride"), *number = ynode_get(map, "number");
	uint64_t v = 0;

	if (stride && number)
		return bad_at(r, number->mark,
			      "stride and number: number is for elements of a length that is not "
			      "known: keep one");
	if (number && l->kind != SP_EACH_END)
		return bad_at(r, number->mark,
			      "number goes with end, to find the stride: with count give stride");
	if (number)
		return read_scalar(r, number, "number", where, &l->number);
	if (!stride)
		return bad_at(r, map->mark,
			      "the array has no stride: say how many bytes an element has%s",
			      l->kind == SP_EACH_END ? ", or with number how many there are" : "");
	if (read_u64(r, stride, "stride", INT32_MAX, &v) || !v)
		return bad_at(r, stride->mark, "stride must be a number of bytes, from 1");
	l->stride = (uint32_t)v;
	return 0;
}

static int read_array(const struct reader *r, const struct ynode *map,
		      const struct fetch_where *where, struct sp_each_level *l)
{
	static const char *const keys[] = {"array", "count", "end", "stride", "number", NULL};
	const struct ynode *count = ynode_get(map, "count"), *end = ynode_get(map, "end");
	int rc = read_keys(r, map, "an array of each", keys);

	if (rc)
		return rc;
	if (!count == !end)
		return bad_at(r, map->mark,
			      "the array needs either count (how many) or end (the address behind "
			      "the last)");
	l->kind = count ? SP_EACH_COUNT : SP_EACH_END;
	rc = read_scalar(r, ynode_get(map, "array"), "array", where, &l->base);
	if (!rc)
		rc = read_scalar(r, count ? count : end, count ? "count" : "end", where, &l->count);
	return rc ? rc : read_stride(r, map, where, l);
}

static int read_level(const struct reader *r, const struct ynode *map,
		      const struct fetch_where *where, struct sp_each_level *l)
{
	int rc = need_map(r, map, "each");

	if (rc)
		return rc;
	if (ynode_get(map, "list"))
		return read_list(r, map, where, l);
	if (ynode_get(map, "array"))
		return read_array(r, map, where, l);
	return bad_at(r, map->mark,
		      "each needs list (with next) or array (with count or end, and stride)");
}

static int check_each(const struct reader *r, const struct ynode *map)
{
	static const char *const without[] = {"only", "events", "tally", NULL};
	static const char *const against[] = {"messages", "on_change", NULL};
	bool each = ynode_get(map, "each");

	for (const char *const *key = each ? against : without; *key; key++) {
		const struct ynode *n = ynode_get(map, *key);

		if (n && each)
			return bad_at(r, n->mark, "each and %s in one probe: keep one", *key);
		if (n)
			return bad_at(r, n->mark,
				      "%s is for probes with each: remove it or add each", *key);
	}
	return 0;
}

int read_each(const struct reader *r, const struct ynode *map, struct profile_probe *p)
{
	const struct ynode *n = ynode_get(map, "each");
	struct fetch_where where = {.at_return = p->on != ON_ENTRY};
	int rc = check_each(r, map);

	if (rc || !n)
		return rc;
	p->prog.flags |= SP_P_EACH;
	if (n->kind != YNODE_LIST) {
		p->each.nlevels = 1;
		return read_level(r, n, &where, &p->each.level[0]);
	}
	rc = need_list(r, n, "each (an outer and an inner level)", 2);
	for (size_t i = 0; !rc && i < n->n; i++) {
		rc = read_level(r, n->item[i], &where, &p->each.level[i]);
		where.each = EACH_INNER;
		p->each.nlevels++;
	}
	return rc;
}

/* ---- which of them count --------------------------------------------------------------------- */

static int tally_by_name(const struct reader *r, const char *name)
{
	struct profile *p = r->profile;
	struct profile_tally *grown;
	int id = 0;

	while (id < p->ntallies && strcmp(p->tallies[id].name, name) != 0)
		id++;
	if (id < p->ntallies)
		return id;
	grown = realloc(p->tallies, sizeof(*grown) * (size_t)(id + 1));
	if (!grown)
		return no_memory(r);
	p->tallies = grown;
	memset(&grown[id], 0, sizeof(*grown));
	memcpy(grown[id].name, name, strlen(name) + 1);
	return p->ntallies++;
}

static int read_tally_name(const struct reader *r, const struct ynode *map, struct sp_each *e)
{
	struct ynode *n;
	const char *text = "";
	int id, rc = need_key(r, map, "the tally", "name", &n);

	if (!rc)
		rc = read_text(r, n, "a tally's name", &text);
	if (rc)
		return rc;
	for (const char *s = text; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			text = "";
	if (!*text || strlen(text) >= PAT_NAME_MAX)
		return bad_at(r, n->mark,
			      "a tally's name must have 1 to %d characters: what is counted there, "
			      "for example queue pair",
			      PAT_NAME_MAX - 1);
	if (r->profile->ntallies == TALLIES_MAX)
		return bad_at(r, n->mark, "more than %d tallies in one profile", TALLIES_MAX);
	id = tally_by_name(r, text);
	e->tally_id = (uint8_t)id;
	return id < 0 ? id : 0;
}

static int read_tally_kind(const struct reader *r, const struct ynode *map, struct sp_each *e)
{
	static const char *const kinds[] = {
		[SP_TALLY_POST] = "posts", [SP_TALLY_DONE] = "completes", [SP_TALLY_END] = "ends"};
	int n = 0;

	for (uint8_t i = SP_TALLY_POST; i <= SP_TALLY_END; i++) {
		const struct ynode *kind = ynode_get(map, kinds[i]);
		bool is = false;
		int rc = kind ? read_bool(r, kind, kinds[i], &is) : 0;

		if (rc)
			return rc;
		if (is)
			e->tally = i;
		n += is;
	}
	if (n == 1)
		return 0;
	return bad_at(r, map->mark,
		      "the tally needs one of posts: true (an element is work posted), completes: "
		      "true (it is work completed) and ends: true (nothing posted there will ever "
		      "complete)");
}

static bool key_uses_result(const struct profile_probe *p)
{
	for (int i = 0; i < p->prog.nfetch; i++) {
		const struct sp_fetch *f = &p->prog.fetch[i];
		bool is_key = f->arg == p->each.tally_arg ||
			      (p->each.has_within && f->arg == p->each.within_arg);

		if (is_key && fetch_uses_result(f))
			return true;
	}
	return false;
}

/* Work is counted at the entry of the call that posts it: somebody else may see it complete before
 * the call returns. */
static int check_entry(const struct reader *r, const struct ynode *map,
		       const struct profile_probe *p)
{
	const struct sp_each *e = &p->each;
	bool result = key_uses_result(p) || fetch_uses_result(&e->asks);

	if (e->tally != SP_TALLY_POST)
		return 0;
	for (int i = 0; i < e->nlevels; i++)
		result |= fetch_uses_result(&e->level[i].base) ||
			  fetch_uses_result(&e->level[i].count) ||
			  fetch_uses_result(&e->level[i].number);
	if (!result)
		return 0;
	return bad_at(
		r, map->mark,
		"a tally of posts is counted at the entry: its elements, key and if cannot use "
		"$retval");
}

/* Where what was not posted begins: known once the call has failed. */
static int read_refused(const struct reader *r, const struct ynode *n, struct profile_probe *p)
{
	const struct fetch_where where = {.at_return = true};

	if (p->each.tally != SP_TALLY_POST)
		return bad_at(r, n->mark, "refused is for a tally with posts: true: remove it");
	if (p->on == ON_ENTRY)
		return bad_at(r, n->mark,
			      "refused is read when the call has failed: it needs on: ret or "
			      "return");
	p->each.has_refused = 1;
	return read_scalar(r, n, "refused", &where, &p->each.refused);
}

static int read_tally(const struct reader *r, const struct ynode *map, struct profile_probe *p)
{
	static const char *const keys[] = {"name", "key", "within",  "posts", "completes",
					   "ends", "if",  "refused", NULL};
	const struct fetch_where where = probe_where(p);
	const struct ynode *cond, *refused, *within;
	struct ynode *key;
	int rc = need_map(r, map, "tally");

	if (!rc)
		rc = read_keys(r, map, "tally", keys);
	if (!rc)
		rc = read_tally_name(r, map, &p->each);
	if (!rc)
		rc = need_key(r, map, "the tally", "key", &key);
	if (!rc)
		rc = read_arg_ref(r, key, "key", p, false, &p->each.tally_arg);
	within = ynode_get(map, "within");
	if (!rc && within) {
		rc = read_arg_ref(r, within, "within", p, false, &p->each.within_arg);
		p->each.has_within = 1;
	}
	if (!rc)
		rc = read_tally_kind(r, map, &p->each);
	cond = ynode_get(map, "if");
	if (!rc && cond) {
		rc = read_condition(r, cond, "if", &where, &p->each.asks);
		p->each.has_asks = 1;
	}
	refused = ynode_get(map, "refused");
	if (!rc && refused)
		rc = read_refused(r, refused, p);
	return rc ? rc : check_entry(r, map, p);
}

int read_each_more(const struct reader *r, const struct ynode *map, struct profile_probe *p)
{
	static const char *const words[] = {"every", "first", NULL};
	const struct ynode *only = ynode_get(map, "only"), *events = ynode_get(map, "events");
	const struct ynode *tally = ynode_get(map, "tally");
	const struct fetch_where where = probe_where(p);
	unsigned first = 0;
	int rc = 0;

	if (only) {
		rc = read_condition(r, only, "only", &where, &p->each.only);
		p->each.has_only = 1;
	}
	if (!rc && events)
		rc = read_word(r, events, "events", words, &first);
	p->each.first = first == 1;
	if (!rc && tally)
		rc = read_tally(r, tally, p);
	return rc;
}
