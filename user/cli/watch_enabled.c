// SPDX-License-Identifier: Apache-2.0
/* --enable: what somebody has asked for and does not get is told, though the profile can do without
 * it. */
#include <stdio.h>
#include <string.h>

#include "cli/watch.h"
#include "util/log.h"

/* A probe, or all those of a group, in one process. */
struct asked {
	const struct profile *profile;
	const char *name;
	uint32_t pid;
	bool in_place;    /* one of them is, or will be when a pointer leads to it */
	char reason[160]; /* else; "": there is none, or it was turned off again */
};

static bool is_of(const struct asked *a, const char *probe)
{
	for (int i = 0; i < a->profile->nuprobes; i++) {
		const struct profile_probe *p = &a->profile->probes[i];

		if (!strcmp(p->name, probe))
			return !strcmp(p->name, a->name) ||
			       (p->group && !strcmp(p->group, a->name));
	}
	return false;
}

static void take_row(void *ctx, const struct attach_row *row)
{
	struct asked *a = ctx;

	if (row->pid != a->pid || row->off || row->socket || !is_of(a, row->probe))
		return;
	a->in_place |= row->ok || row->later;
	if (!row->ok && !a->reason[0])
		snprintf(a->reason, sizeof(a->reason), "%s", row->reason);
}

static void ask(struct watch *w, int i, uint32_t pid, struct asked *a)
{
	*a = (struct asked){w->profile, w->o.switched[i], .pid = pid};
	if (w->o.switched_on[i])
		attach_rows(w->attach, take_row, a);
	if (a->in_place) {
		w->enabled |= 1u << i;
		a->reason[0] = 0;
	}
}

/* Those that have one reason are told together. */
static void tell(struct watch *w, uint32_t pid, int first, const struct asked *a)
{
	char names[200];
	size_t n = (size_t)snprintf(names, sizeof(names), "%s", a->name);

	for (int i = first; i < w->o.nswitched; i++) {
		struct asked other;

		ask(w, i, pid, &other);
		if (strcmp(other.reason, a->reason) != 0)
			continue;
		if (i > first && n < sizeof(names))
			n += (size_t)snprintf(names + n, sizeof(names) - n, ",%s", other.name);
		w->enable_told |= 1u << i;
	}
	pr_warn("pid %u: --enable %s: not in place: %s", pid, names, a->reason);
}

void watch_enabled_look(struct watch *w, uint32_t pid, bool coming)
{
	struct asked a;

	for (int i = 0; i < w->o.nswitched; i++) {
		ask(w, i, pid, &a);
		if (!coming && a.reason[0] && !(w->enable_told >> i & 1))
			tell(w, pid, i, &a);
	}
}

void watch_enabled_end(const struct watch *w)
{
	for (int i = 0; i < w->o.nswitched; i++)
		if (w->o.switched_on[i] && w->saw_target &&
		    !((w->enabled | w->enable_told) >> i & 1))
			pr_warn("--enable %s: was never in place", w->o.switched[i]);
}
