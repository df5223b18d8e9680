// SPDX-License-Identifier: Apache-2.0
/* Whose room a call without one belongs to, and which probes are on: both decide which calls the
 * kernel side keeps track of. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile_priv.h"

static bool may_lack_room(enum sp_role role)
{
	return role == ROLE_CALL || role == ROLE_POST || role == ROLE_STATUS ||
	       role == ROLE_CLOSE || role == ROLE_CONTROL;
}

int read_scope(const struct reader *r, const struct ynode *map, struct profile_probe *p)
{
	static const char *const words[] = {"call", "thread", NULL};
	const struct ynode *n = ynode_get(map, "scope");
	bool sense = may_lack_room(p->event.role);
	unsigned which = 0;
	int rc;

	if (!n)
		return 0;
	rc = read_word(r, n, "scope", words, &which);
	if (rc)
		return rc;
	p->scope = which ? SCOPE_THREAD : SCOPE_CALL;
	if (p->is_frames)
		return bad_at(r, n->mark,
			      "scope and messages in one probe: a message says itself which room "
			      "it is about: remove scope");
	for (int i = 0; i < p->nmatch; i++)
		sense |= may_lack_room(p->match[i].event.role);
	if (!sense)
		return bad_at(r, n->mark,
			      "scope is for events that may come without a room (call, post, "
			      "status, close, control): remove it");
	return 0;
}

/* It has a room or an operation of its own: what runs inside it is its work. A poll and a call that
 * waits are not: what they get on with may be anybody's. Nor is one of several elements: whose is
 * not said. */
static bool is_scope(const struct profile_probe *p)
{
	bool gives = !p->nmatch && event_gives(p, NULL, &p->event);

	if (p->off || p->waits || p->on == ON_ENTRY || p->is_frames ||
	    (p->prog.flags & (SP_P_ON_CHANGE | SP_P_EACH)))
		return false;
	for (int i = 0; i < p->nmatch; i++)
		gives |= event_gives(p, &p->match[i], &p->match[i].event);
	return gives;
}

void set_scopes(struct profile *p)
{
	bool wanted = false;

	for (int i = 0; i < p->nuprobes; i++)
		wanted |= !p->probes[i].off && p->probes[i].scope != SCOPE_NONE;
	for (int i = 0; i < p->nuprobes; i++) {
		struct profile_probe *probe = &p->probes[i];

		probe->prog.flags &= ~(uint32_t)(SP_P_SCOPE | SP_P_SCOPED);
		if (wanted && is_scope(probe))
			probe->prog.flags |= SP_P_SCOPE;
		if (probe->scope != SCOPE_NONE)
			probe->prog.flags |= SP_P_SCOPED;
	}
}

static int unknown_name(const struct profile *p, const char *name, struct sp_err *err)
{
	const char *names[SP_MAX_PROBES + PROFILE_MAX_GROUPS + 1];
	char hint[560];
	int n = 0;

	for (int i = p->nuprobes; i < p->nprobes; i++)
		if (!strcmp(p->probes[i].name, name))
			return sp_err_set(
				err, SP_EXIT_USAGE, -EINVAL,
				"\"%s\" is an entry of sockets: only probes and groups of "
				"them can be turned on and off",
				name);
	for (int i = 0; i < p->nuses; i++)
		names[n++] = p->uses[i];
	for (int i = 0; i < p->nuprobes; i++)
		names[n++] = p->probes[i].name;
	names[n] = NULL;
	if (!n)
		return sp_err_set(err, SP_EXIT_USAGE, -EINVAL,
				  "\"%.64s\": profile %s has no probes: leave it out", name,
				  p->name);
	suggest(name, names, hint, sizeof(hint));
	return sp_err_set(err, SP_EXIT_USAGE, -EINVAL,
			  "\"%.64s\": no probe and no group of profile %s is named so: %s", name,
			  p->name, hint);
}

int profile_enable(struct profile *p, const char *name, bool on, struct sp_err *err)
{
	bool found = false;

	for (int i = 0; i < p->nuprobes; i++) {
		struct profile_probe *probe = &p->probes[i];

		if (strcmp(probe->name, name) != 0 &&
		    !(probe->instead_of && !strcmp(p->probes[probe->instead_of - 1].name, name)) &&
		    !(probe->group && !strcmp(probe->group, name)))
			continue;
		probe->off = !on;
		found = true;
	}
	if (!found)
		return unknown_name(p, name, err);
	set_scopes(p);
	return 0;
}
