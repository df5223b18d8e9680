// SPDX-License-Identifier: Apache-2.0
/* `pointer:` of a probe: a function that no symbol names, and the ways to it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile_priv.h"

static int read_function(const struct reader *r, const struct ynode *map, const char *key,
			 struct probe_pointer *ptr)
{
	struct ynode *n;
	const char *text;
	int rc = read_glob(r, ynode_get(map, key), key, &ptr->function);

	if (!rc && !ptr->function[strspn(ptr->function, "*?")])
		rc = bad_at(r, ynode_get(map, key)->mark,
			    "%s would match every function: name the function", key);
	if (!rc)
		rc = need_key(r, map, "a pointer", "library", &n);
	if (!rc)
		rc = read_text(r, n, "library", &text);
	if (rc)
		return rc;
	ptr->library = lib_by_id(r->profile, text);
	if (ptr->library < 0)
		return bad_at(r, n->mark,
			      "library \"%.32s\" is not among libraries: add it there or correct "
			      "the name",
			      text);
	return 0;
}

/* Read in the process, when a call returns. */
static int read_after(const struct reader *r, const struct ynode *map, struct probe_pointer *ptr)
{
	static const char *const keys[] = {"after", "library", "fetch", NULL};
	const struct fetch_where where = {.at_return = true};
	struct ynode *n;
	int rc = read_keys(r, map, "a pointer with after", keys);

	ptr->at_call = true;
	if (!rc)
		rc = read_function(r, map, "after", ptr);
	if (!rc)
		rc = need_key(r, map, "a pointer with after", "fetch", &n);
	if (!rc)
		rc = read_scalar(r, n, "fetch", &where, &ptr->fetch);
	if (!rc && ptr->fetch.type != SP_T_U64)
		rc = bad_at(r, n->mark, "fetch must give a pointer: leave the suffix out");
	return rc;
}

/* In the file, where the library hands a table to another. */
static int read_passed(const struct reader *r, const struct ynode *map, struct probe_pointer *ptr)
{
	static const char *const keys[] = {"passed_to", "library", "argument",
					   "copied_to", "slot",    NULL};
	const struct ynode *copied = ynode_get(map, "copied_to"), *slot = ynode_get(map, "slot");
	uint64_t v = 0;
	struct ynode *n = NULL;
	int rc = read_keys(r, map, "a pointer with passed_to", keys);

	if (!rc)
		rc = read_function(r, map, "passed_to", ptr);
	if (!rc)
		rc = need_key(r, map, "a pointer with passed_to", "argument", &n);
	if (!rc && (read_u64(r, n, "argument", 6, &v) || !v))
		rc = bad_at(r, n->mark,
			    "argument must be a number from 1 to 6: which argument of "
			    "the function the table is");
	ptr->argument = (int)v;
	if (!rc && !copied && !slot)
		rc = bad_at(
			r, map->mark,
			"which entry of the table? Give slot (its offset there) or copied_to (the "
			"offset in its first argument to which the function copies it)");
	if (!rc && copied)
		rc = read_s64(r, copied, "copied_to", &ptr->copied_to);
	if (!rc && copied && !ptr->copied_to)
		rc = bad_at(r, copied->mark, "copied_to must not be 0: leave it out");
	if (!rc && slot)
		rc = read_u64(r, slot, "slot", UINT32_MAX, &v);
	ptr->slot = slot ? (int64_t)v : -1;
	return rc;
}

static int read_pointer(const struct reader *r, const struct ynode *map, struct probe_pointer *ptr)
{
	static const char *const keys[] = {"after",    "passed_to", "library", "fetch",
					   "argument", "copied_to", "slot",    NULL};
	bool after = ynode_get(map, "after"), passed = ynode_get(map, "passed_to");
	int rc = need_map(r, map, "a pointer");

	ptr->mark = map->mark;
	if (!rc)
		rc = read_keys(r, map, "a pointer", keys);
	if (!rc && after == passed)
		rc = bad_at(r, map->mark,
			    "a pointer needs either after (read in the process when that function "
			    "returns) or passed_to (a table in the file that is handed to it)");
	if (rc)
		return rc;
	return after ? read_after(r, map, ptr) : read_passed(r, map, ptr);
}

int read_pointers(const struct reader *r, const struct ynode *n, struct profile_probe *p)
{
	bool list = n->kind == YNODE_LIST;
	int rc = list ? need_list(r, n, "pointer", PROBE_MAX_POINTERS) : need_map(r, n, "pointer");

	if (rc)
		return rc;
	p->pointer = calloc(list ? n->n : 1, sizeof(*p->pointer));
	if (!p->pointer)
		return no_memory(r);
	if (!list)
		return read_pointer(r, n, &p->pointer[p->npointers++]);
	for (size_t i = 0; !rc && i < n->n; i++)
		rc = read_pointer(r, n->item[i], &p->pointer[p->npointers++]);
	return rc;
}
