// SPDX-License-Identifier: Apache-2.0
/* Fetch expressions outside of arguments: numbers, and conditions. */
#include <string.h>

#include "profile/profile_priv.h"

struct fetch_where probe_where(const struct profile_probe *p)
{
	static const enum fetch_each each[] = {EACH_NONE, EACH_ONE, EACH_TWO};

	return (struct fetch_where){.at_return = p->on != ON_ENTRY, .each = each[p->each.nlevels]};
}

int read_scalar(const struct reader *r, const struct ynode *n, const char *what,
		const struct fetch_where *where, struct sp_fetch *f)
{
	char why[200];
	const char *expr;
	int rc = read_text(r, n, what, &expr);

	if (rc)
		return rc;
	if (fetch_compile_in(expr, strrchr(expr, ':') ? NULL : "u64", 0, where, f, why,
			     sizeof(why)))
		return bad_at(r, n->mark, "%s: %s", what, why);
	if (f->type >= SP_T_STRING)
		return bad_at(r, n->mark, "%s must be a number: give it a suffix such as :u32",
			      what);
	return 0;
}

int read_condition(const struct reader *r, const struct ynode *n, const char *what,
		   const struct fetch_where *where, struct sp_fetch *f)
{
	static const char *const keys[] = {"fetch", "mask", "zero", NULL};
	const struct ynode *mask = NULL;
	struct ynode *fetch = NULL;
	uint64_t bits = 0;
	bool is_zero = false;
	int rc = 0;

	if (n->kind == YNODE_MAP) {
		const struct ynode *zero = ynode_get(n, "zero");

		rc = read_keys(r, n, what, keys);
		if (!rc)
			rc = need_key(r, n, what, "fetch", &fetch);
		if (!rc && zero)
			rc = read_bool(r, zero, "zero", &is_zero);
		mask = ynode_get(n, "mask");
		n = rc ? n : fetch;
	}
	if (!rc)
		rc = read_scalar(r, n, what, where, f);
	if (!rc && mask)
		rc = read_u64(r, mask, "mask", UINT16_MAX, &bits);
	if (!rc && mask && !bits)
		rc = bad_at(r, mask->mark, "mask must have a bit set");
	f->flags |= is_zero ? SP_F_COND | SP_F_ZERO : SP_F_COND;
	f->max = (uint16_t)bits;
	return rc;
}

bool fetch_uses_result(const struct sp_fetch *f)
{
	for (int i = 0; i < f->nops; i++)
		if (f->op[i].code == SP_OP_RET)
			return true;
	return false;
}
