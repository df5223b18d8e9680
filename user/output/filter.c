// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <uthash.h>

#include "output/filter.h"

/* A life with a `stuck` line out. */
struct told {
	uint64_t id; /* model_life.id */
	enum sp_cause cause;
	UT_hash_handle hh;
};

struct filter {
	enum sp_confidence min;
	bool ended;
	struct told *told;
};

struct filter *filter_new(enum sp_confidence min, bool ended)
{
	struct filter *f = calloc(1, sizeof(*f));

	if (f) {
		f->min = min;
		f->ended = ended;
	}
	return f;
}

static void forget(struct filter *f, struct told *t)
{
	HASH_DEL(f->told, t);
	free(t);
}

void filter_free(struct filter *f)
{
	struct told *t, *next;

	if (!f)
		return;
	HASH_ITER (hh, f->told, t, next)
		forget(f, t);
	free(f);
}

static bool wants_stuck(struct filter *f, const struct model_life *l)
{
	struct told *t;

	if (l->verdict->confidence < f->min)
		return false;
	HASH_FIND(hh, f->told, &l->id, sizeof(l->id), t);
	if (t && t->cause == l->verdict->cause)
		return false;
	if (!t) {
		t = calloc(1, sizeof(*t));
		if (!t)
			return true; /* twice is better than never */
		t->id = l->id;
		HASH_ADD(hh, f->told, id, sizeof(t->id), t);
	}
	t->cause = l->verdict->cause;
	return true;
}

static bool wants_recovered(struct filter *f, const struct model_life *l)
{
	struct told *t;

	HASH_FIND(hh, f->told, &l->id, sizeof(l->id), t);
	if (!t)
		return false;
	forget(f, t);
	return true;
}

bool filter_wants(struct filter *f, const struct model_alert *a)
{
	switch (a->type) {
	case ALERT_STUCK:
		return wants_stuck(f, a->life);
	case ALERT_RECOVERED:
		return wants_recovered(f, a->life);
	case ALERT_ENDED:
		return f->ended;
	default:
		return true;
	}
}
