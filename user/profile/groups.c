// SPDX-License-Identifier: Apache-2.0
/* `groups:` of a file: probes that several profiles use. Read anew for each of them, since what a
 * probe means depends on the profile (its kind of room, its needs). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile_priv.h"

#define GROUPS_MAX 32

static const struct ynode *group_get(const struct ynode *groups, const char *name)
{
	for (size_t i = 0; groups && i < groups->n; i++)
		if (!strcmp(ynode_get(groups->item[i], "name")->text, name))
			return groups->item[i];
	return NULL;
}

int check_groups(const struct reader *r, const struct ynode *groups)
{
	static const char *const keys[] = {"name", "status", "libraries", "probes", NULL};
	int rc = need_list(r, groups, "groups", GROUPS_MAX);

	for (size_t i = 0; !rc && i < groups->n; i++) {
		const struct ynode *map = groups->item[i];
		const char *name = "";
		struct ynode *n;

		rc = need_map(r, map, "a group");
		if (!rc)
			rc = read_keys(r, map, "a group", keys);
		if (!rc)
			rc = need_key(r, map, "the group", "name", &n);
		if (!rc)
			rc = read_name(r, n, "a group's name", &name);
		for (size_t k = 0; !rc && k < i; k++)
			if (!strcmp(ynode_get(groups->item[k], "name")->text, name))
				rc = bad_at(r, n->mark, "group \"%s\" a second time", name);
		if (!rc)
			rc = need_key(r, map, "the group", "libraries", &n);
		if (!rc)
			rc = need_key(r, map, "the group", "probes", &n);
	}
	return rc;
}

/* --enable and --disable take both. */
static int check_names(const struct reader *r, struct profile_mark mark)
{
	const struct profile *p = r->profile;

	for (int i = 0; i < p->nprobes; i++)
		for (int k = 0; k < p->nuses; k++)
			if (!strcmp(p->probes[i].name, p->uses[k]))
				return bad_at(
					r, mark,
					"\"%s\" is the name of a group and of a probe: rename "
					"one",
					p->uses[k]);
	return 0;
}

static int use_group(const struct reader *r, const struct ynode *map)
{
	struct profile *p = r->profile;
	struct reader own = *r;
	const struct ynode *status = ynode_get(map, "status");
	struct status_spec *s;
	int rc = 0;

	p->uses[p->nuses] = strdup(ynode_get(map, "name")->text);
	if (!p->uses[p->nuses])
		return no_memory(r);
	own.group = p->uses[p->nuses++];
	own.status = 0;
	if (status) {
		own.status = p->nstatuses;
		s = status_add(p);
		rc = s ? read_status(&own, status, s) : no_memory(r);
	}
	if (!rc)
		rc = read_libraries(&own, ynode_get(map, "libraries"));
	if (!rc)
		rc = read_probes(&own, ynode_get(map, "probes"));
	return rc;
}

static int unknown_group(const struct reader *r, const struct ynode *n, const struct ynode *groups)
{
	const char *names[GROUPS_MAX + 1] = {NULL};
	char hint[400];

	for (size_t i = 0; groups && i < groups->n; i++)
		names[i] = ynode_get(groups->item[i], "name")->text;
	if (!names[0])
		return bad_at(r, n->mark,
			      "uses: this file has no groups: write the group at its "
			      "top level, under groups");
	suggest(n->text, names, hint, sizeof(hint));
	return bad_at(r, n->mark, "uses: no group is named \"%.32s\": %s", n->text, hint);
}

int use_groups(const struct reader *r, const struct ynode *groups, const struct ynode *uses)
{
	struct profile *p = r->profile;
	int rc = need_list(r, uses, "uses", PROFILE_MAX_GROUPS);

	for (size_t i = 0; !rc && i < uses->n; i++) {
		const struct ynode *n = uses->item[i], *map;
		const char *name = "";

		rc = read_text(r, n, "a group's name", &name);
		if (rc)
			break;
		for (int k = 0; k < p->nuses; k++)
			if (!strcmp(p->uses[k], name))
				return bad_at(r, n->mark, "uses: \"%s\" a second time", name);
		map = group_get(groups, name);
		if (!map)
			return unknown_group(r, n, groups);
		rc = use_group(r, map);
		if (!rc)
			rc = check_names(r, n->mark);
	}
	return rc;
}

static bool is_used(const struct profile_file *pf, const char *name)
{
	for (int i = 0; i < pf->nprofiles; i++)
		for (int k = 0; k < pf->profiles[i].nuses; k++)
			if (!strcmp(pf->profiles[i].uses[k], name))
				return true;
	return false;
}

int check_unused(const struct reader *r, const struct ynode *groups, const struct profile_file *pf)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < groups->n; i++) {
		struct profile alone = {.name = strdup("none"), .room_u64 = true};
		struct reader own = *r;

		if (!alone.name)
			return no_memory(r);
		own.profile = &alone;
		if (!is_used(pf, ynode_get(groups->item[i], "name")->text)) {
			rc = status_add(&alone) ? use_group(&own, groups->item[i]) : no_memory(r);
		}
		profile_clear(&alone);
	}
	return rc;
}
