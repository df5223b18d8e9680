// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "output/filter.h"

/* A life with a `stuck` line out. */
struct told {
	uint64_t id; /* model_life.id */
	enum sp_cause cause;
	UT_hash_handle hh;
};

/* A process that a line has named as attached. */
struct known {
	uint32_t pid;
	UT_hash_handle hh;
};

struct filter {
	enum sp_confidence min;
	bool verbose;
	struct told *told;
	struct known *known;
};

struct filter *filter_new(enum sp_confidence min, bool verbose)
{
	struct filter *f = calloc(1, sizeof(*f));

	if (f) {
		f->min = min;
		f->verbose = verbose;
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
	struct told *t, *tnext;
	struct known *k, *knext;

	if (!f)
		return;
	HASH_ITER (hh, f->told, t, tnext)
		forget(f, t);
	HASH_ITER (hh, f->known, k, knext) {
		HASH_DEL(f->known, k);
		free(k);
	}
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

static void know(struct filter *f, uint32_t pid)
{
	struct known *k;

	HASH_FIND(hh, f->known, &pid, sizeof(pid), k);
	if (k)
		return;
	k = calloc(1, sizeof(*k));
	if (!k)
		return;
	k->pid = pid;
	HASH_ADD(hh, f->known, pid, sizeof(k->pid), k);
}

/* A server may start programs by the thousand: those in which nothing was ever attached come and
 * go unsaid. */
static bool wants_target(struct filter *f, const struct model_alert *a)
{
	bool exec = !strcmp(a->what, "exec"), exited = !strcmp(a->what, "exited");
	struct known *k;

	if (!exec && !exited) {
		know(f, a->pid);
		return true;
	}
	HASH_FIND(hh, f->known, &a->pid, sizeof(a->pid), k);
	if (!k)
		return f->verbose;
	if (exited) {
		HASH_DEL(f->known, k);
		free(k);
	}
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
		return f->verbose;
	case ALERT_TARGET:
		return wants_target(f, a);
	default:
		return true;
	}
}
