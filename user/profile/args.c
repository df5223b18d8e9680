// SPDX-License-Identifier: Apache-2.0
/* `args:` of a probe: each alternative becomes a fetch program, its condition one before it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "profile/profile_priv.h"

int arg_by_name(const struct profile_probe *p, const char *name)
{
	for (int i = 0; i < p->nargs; i++)
		if (!strcmp(p->args[i].name, name))
			return i;
	return -1;
}

struct arg_reader {
	const struct reader *r;
	struct profile_probe *p;
	struct profile_arg *arg;
	const char *type;         /* of the argument; NULL: each alternative has its own */
	const struct ynode *cond; /* `if:` of the argument */
	uint16_t max;
	uint16_t data_at;
};

static int too_many(const struct reader *r, const struct ynode *n)
{
	return bad_at(r, n->mark, "more than %d fetch expressions in one probe (conditions count)",
		      SP_MAX_FETCH);
}

static int add_program(const struct arg_reader *a, const struct ynode *n, const char *expr,
		       const char *type, uint16_t max)
{
	struct sp_probe *prog = &a->p->prog;
	struct sp_fetch *f = &prog->fetch[prog->nfetch];
	const struct fetch_where where = probe_where(a->p);
	char why[200];
	int rc;

	if (prog->nfetch == SP_MAX_FETCH)
		return too_many(a->r, n);
	rc = fetch_compile_in(expr, type, max, &where, f, why, sizeof(why));
	if (rc)
		return bad_at(a->r, n->mark, "%s", why);
	f->arg = (uint8_t)(a->arg - a->p->args);
	prog->nfetch++;
	return 0;
}

static int add_condition(const struct arg_reader *a, const struct ynode *n)
{
	const struct fetch_where where = probe_where(a->p);
	struct sp_probe *prog = &a->p->prog;
	int rc;

	if (prog->nfetch == SP_MAX_FETCH)
		return too_many(a->r, n);
	rc = read_condition(a->r, n, "if", &where, &prog->fetch[prog->nfetch]);
	if (rc)
		return rc;
	prog->fetch[prog->nfetch++].arg = (uint8_t)(a->arg - a->p->args);
	return 0;
}

static const struct type_info *effective_type(const char *expr, const char *type)
{
	const char *close = strrchr(expr, ')');
	const char *colon = strchr(close ? close : expr, ':');

	if (colon)
		type = colon + 1;
	return type ? type_by_name(type, strlen(type)) : NULL;
}

static int add_fetch(struct arg_reader *a, const struct ynode *n, const struct ynode *at,
		     const char *type, const struct ynode *cond)
{
	bool first = !a->arg->type;
	const struct type_info *t;
	const char *expr;
	int rc = read_text(a->r, n, "fetch", &expr);

	if (!rc && cond)
		rc = add_condition(a, cond);
	if (!rc)
		rc = add_program(a, at, expr, type, a->max);
	if (rc)
		return rc;
	t = effective_type(expr, type);
	if (first) {
		a->arg->type = t->type;
		a->arg->is_signed = t->is_signed;
		a->arg->is_hex = t->is_hex;
		a->arg->is_composite = t->is_composite;
	} else if (t->is_composite != a->arg->is_composite) {
		return bad_at(a->r, at->mark,
			      "alternatives of one argument must all be numbers or all be texts");
	}
	if (t->is_composite)
		a->p->prog.fetch[a->p->prog.nfetch - 1].data_at = a->data_at;
	return 0;
}

/* One alternative: a text, or a map {fetch, type, if}. */
static int read_alternative(struct arg_reader *a, const struct ynode *n)
{
	static const char *const keys[] = {"fetch", "type", "if", NULL};
	const char *type = a->type;
	struct ynode *fetch, *t, *cond;
	int rc;

	if (n->kind != YNODE_MAP)
		return add_fetch(a, n, n, type, a->cond);
	rc = read_keys(a->r, n, "an alternative", keys);
	if (!rc)
		rc = need_key(a->r, n, "the alternative", "fetch", &fetch);
	if (rc)
		return rc;
	t = ynode_get(n, "type");
	if (t)
		rc = read_text(a->r, t, "type", &type);
	if (rc)
		return rc;
	cond = ynode_get(n, "if");
	return add_fetch(a, fetch, fetch, type, cond ? cond : a->cond);
}

static int read_arg_name(const struct arg_reader *a, const struct ynode *map)
{
	static const char *const reserved[] = {"event", "frames", NULL};
	struct ynode *n;
	const char *name;
	int rc = need_key(a->r, map, "the argument", "name", &n);

	if (!rc)
		rc = read_text(a->r, n, "name", &name);
	if (rc)
		return rc;
	if (!name_ok(name, strlen(name)))
		return bad_at(a->r, n->mark,
			      "an argument's name must be at most %d letters, digits or _",
			      PAT_NAME_MAX - 1);
	for (size_t i = 0; reserved[i]; i++)
		if (!strcmp(name, reserved[i]))
			return bad_at(a->r, n->mark,
				      "\"%s\" cannot name an argument: it is a key "
				      "of match and messages",
				      name);
	if (arg_by_name(a->p, name) >= 0)
		return bad_at(a->r, n->mark, "argument \"%s\" a second time", name);
	memcpy(a->arg->name, name, strlen(name) + 1);
	return 0;
}

static int read_arg(const struct reader *r, const struct ynode *map, struct profile_probe *p,
		    uint16_t *data)
{
	static const char *const keys[] = {"name", "fetch", "type", "max", "if", NULL};
	struct arg_reader a = {.r = r, .p = p, .arg = &p->args[p->nargs], .data_at = *data};
	struct ynode *n, *fetch;
	uint64_t max;
	int rc = need_map(r, map, "an argument");

	if (!rc)
		rc = read_keys(r, map, "an argument", keys);
	if (!rc)
		rc = read_arg_name(&a, map);
	if (!rc)
		rc = need_key(r, map, "the argument", "fetch", &fetch);
	n = rc ? NULL : ynode_get(map, "type");
	if (n)
		rc = read_text(r, n, "type", &a.type);
	n = rc ? NULL : ynode_get(map, "max");
	if (n) {
		if (read_u64(r, n, "max", SP_SLOT_MAX, &max) || !max)
			rc = bad_at(r, n->mark, "max must be a number from 1 to %d", SP_SLOT_MAX);
		else
			a.max = (uint16_t)max;
	}
	if (rc)
		return rc;
	a.cond = ynode_get(map, "if");
	if (fetch->kind != YNODE_LIST) {
		rc = read_alternative(&a, fetch);
	} else {
		rc = need_list(r, fetch, "fetch", SP_MAX_FETCH);
		for (size_t i = 0; !rc && i < fetch->n; i++)
			rc = read_alternative(&a, fetch->item[i]);
	}
	if (rc)
		return rc;
	p->nargs++;
	if (!a.arg->is_composite)
		return 0;
	/* programs of one argument share one slot: all their max are the argument's */
	*data = (uint16_t)(*data + p->prog.fetch[p->prog.nfetch - 1].max);
	if (*data > SP_DATA_LARGE)
		return bad_at(r, map->mark,
			      "the texts of one probe take %u bytes: at most %d: lower max", *data,
			      SP_DATA_LARGE);
	return 0;
}

int read_args(const struct reader *r, const struct ynode *list, struct profile_probe *p)
{
	struct sp_probe *prog = &p->prog;
	uint16_t data = 0;
	int rc = need_list(r, list, "args", SP_MAX_ARGS);

	for (size_t i = 0; !rc && i < list->n; i++)
		rc = read_arg(r, list->item[i], p, &data);
	if (rc)
		return rc;
	prog->nargs = (uint8_t)p->nargs;
	prog->size_class = !data                    ? SP_CLASS_NONE
			   : data <= SP_DATA_SMALL  ? SP_CLASS_SMALL
			   : data <= SP_DATA_MEDIUM ? SP_CLASS_MEDIUM
						    : SP_CLASS_LARGE;
	return 0;
}
