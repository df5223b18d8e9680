// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
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
		sort_events(t);
	return rc;
}

void timeline_free(struct timeline *t)
{
	free(t->ev);
	free(t->alerts);
	memset(t, 0, sizeof(*t));
}
