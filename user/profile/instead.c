// SPDX-License-Identifier: Apache-2.0
/* `instead_of:`: a probe that takes the place of another one wherever its function exists. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile_priv.h"

static const char *text_of(const struct ynode *map, const char *key)
{
	const struct ynode *n = map->kind == YNODE_MAP ? ynode_get(map, key) : NULL;

	return n && n->kind == YNODE_SCALAR ? n->text : "";
}

/* Which of the probes before the i-th it names; -1: told. */
static int find_base(const struct reader *r, const struct ynode *list, size_t i)
{
	const struct ynode *n = ynode_get(list->item[i], "instead_of");
	const char *name;
	size_t k = 0;

	if (read_text(r, n, "instead_of", &name))
		return -1;
	while (k < i && strcmp(text_of(list->item[k], "name"), name) != 0)
		k++;
	if (k == i)
		bad_at(r, n->mark,
		       "instead_of: no probe before this one is named \"%.32s\": it stands behind "
		       "the one whose place it takes",
		       name);
	else if (ynode_get(list->item[k], "instead_of"))
		bad_at(r, n->mark,
		       "instead_of: \"%.32s\" itself stands instead of \"%.32s\": name that", name,
		       text_of(list->item[k], "instead_of"));
	else
		return (int)k;
	return -1;
}

/* What no two functions share. */
static int check_own(const struct reader *r, const struct ynode *map, const struct ynode *base)
{
	const struct ynode *required = ynode_get(map, "required");

	if (required)
		return bad_at(
			r, required->mark,
			"instead_of and required: what may take another's place may be missing: "
			"remove required");
	if (ynode_get(map, "pointer") || ynode_get(base, "pointer"))
		return bad_at(r, map->mark, "instead_of is for functions with a symbol");
	return 0;
}

static bool inherits(const struct ynode *own, const char *key)
{
	static const char *const never[] = {"name", "symbol", "required", NULL};

	for (const char *const *k = never; *k; k++)
		if (!strcmp(*k, key))
			return false;
	return !ynode_get(own, key);
}

static int merge(const struct reader *r, const struct ynode *own, const struct ynode *base,
		 struct ynode *out)
{
	*out = *own;
	out->item = calloc(2 * (own->n + base->n), sizeof(struct ynode *));
	if (!out->item)
		return no_memory(r);
	memcpy(out->item, own->item, sizeof(struct ynode *) * 2 * own->n);
	for (size_t i = 0; i < base->n; i++) {
		if (!inherits(own, ynode_key(base, i)->text))
			continue;
		out->item[2 * out->n] = ynode_key(base, i);
		out->item[2 * out->n + 1] = ynode_value(base, i);
		out->n++;
	}
	return 0;
}

int read_instead(const struct reader *r, const struct ynode *list, size_t i,
		 struct profile_probe *p)
{
	const struct ynode *own = list->item[i];
	struct ynode merged;
	int base, rc;

	if (own->kind != YNODE_MAP || !ynode_get(own, "instead_of"))
		return read_probe(r, own, p);
	base = find_base(r, list, i);
	if (base < 0)
		return -EINVAL;
	rc = check_own(r, own, list->item[base]);
	if (!rc)
		rc = merge(r, own, list->item[base], &merged);
	if (rc)
		return rc;
	rc = read_probe(r, &merged, p);
	p->required = false;
	p->instead_of = (int)(p - r->profile->probes) - (int)i + base + 1;
	free(merged.item);
	return rc;
}
