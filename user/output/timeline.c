// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/timeline.h"

static bool on_event(void *ctx, const struct sp_event *ev, uint32_t life_no)
{
	struct timeline *t = ctx;

	if (t->nev == t->cap_ev) {
		size_t cap = t->cap_ev ? t->cap_ev * 2 : 64;
		struct timeline_event *more = realloc(t->ev, cap * sizeof(*more));

		if (!more)
			return false;
		t->ev = more;
		t->cap_ev = cap;
	}
	t->ev[t->nev++] = (struct timeline_event){.ev = *ev, .own = life_no != 0};
	return true;
}

static bool on_alert(void *ctx, const struct rec_alert *a)
{
	struct timeline *t = ctx;

	if (t->nalerts == t->cap_alerts) {
		size_t cap = t->cap_alerts ? t->cap_alerts * 2 : 8;
		struct rec_alert *more = realloc(t->alerts, cap * sizeof(*more));

		if (!more)
			return false;
		t->alerts = more;
		t->cap_alerts = cap;
	}
	t->alerts[t->nalerts++] = *a;
	return true;
}

/* Late events are recorded where they were taken; a timeline shows them where they belong. Almost
 * sorted, and equal times keep their order: insertion. */
static void sort_events(struct timeline *t)
{
	for (size_t i = 1; i < t->nev; i++) {
		struct timeline_event one;
		size_t at = i;

		if (t->ev[i].ev.ns >= t->ev[i - 1].ev.ns)
			continue;
		one = t->ev[i];
		for (; at > 0 && t->ev[at - 1].ev.ns > one.ev.ns; at--)
			t->ev[at] = t->ev[at - 1];
		t->ev[at] = one;
	}
}

static void on_probe(void *ctx, int probe, const char *name)
{
	struct timeline *t = ctx;
	char(*more)[TIMELINE_NAME];

	if (probe != t->nprobes)
		return; /* numbers without a gap, or the rest is nameless */
	more = realloc(t->probe, sizeof(*more) * ((size_t)probe + 1));
	if (!more)
		return;
	t->probe = more;
	snprintf(t->probe[t->nprobes++], sizeof(*more), "%s", name);
}

void timeline_describe(const struct timeline *t, const struct sp_event *ev, char *buf, size_t len)
{
	size_t n = 0;

	if (ev->role == ROLE_CALL && ev->probe >= 0 && ev->probe < t->nprobes)
		n = (size_t)snprintf(buf, len, "%s: ", t->probe[ev->probe]);
	if (n < len)
		sp_event_describe(ev, buf + n, len - n);
}

int timeline_load(struct recording *r, const struct rec_life *l, struct timeline *t,
		  struct sp_err *err)
{
	int rc;

	memset(t, 0, sizeof(*t));
	t->life = *l;
	rc = rec_events(r, l, on_event, t, err);
	if (!rc)
		rc = rec_alerts(r, l, on_alert, t, err);
	if (!rc)
		rc = rec_probes(r, on_probe, t, err);
	if (!rc)
		sort_events(t);
	return rc;
}

void timeline_free(struct timeline *t)
{
	free(t->ev);
	free(t->alerts);
	free(t->probe);
	memset(t, 0, sizeof(*t));
}
