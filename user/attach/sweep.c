// SPDX-License-Identifier: Apache-2.0
/* Plans that no process uses any more: each holds its file open, also one that is deleted. */
#include "attach/sockets.h"
#include "util/clock.h"

#define SWEEP_GAP NS_PER_SEC
#define KEEP_NONE (60 * NS_PER_SEC) /* without probes none is attached: made again at each look */

static bool has_plan(const struct watched_lib *lib, int n, const struct plan *plan)
{
	for (int i = 0; i < n; i++)
		if (lib[i].plan == plan)
			return true;
	return false;
}

static bool in_use(const struct attach *a, const struct plan *plan)
{
	for (int i = 0; i < a->nwatched; i++) {
		const struct watched *w = a->watched[i];

		if (has_plan(w->lib, w->nlib, plan) || has_plan(w->sock.lib, w->sock.nlib, plan))
			return true;
	}
	for (int i = 0; i < a->nfronts; i++)
		if (has_plan(a->front[i]->sock.lib, a->front[i]->sock.nlib, plan))
			return true;
	return false;
}

static int sweep(const struct attach *a, struct plan **plan, int n, uint64_t now)
{
	int kept = 0;

	for (int i = 0; i < n; i++) {
		struct plan *p = plan[i];

		if (!p->swept_ns)
			p->swept_ns = now;
		if (in_use(a, p) || (!p->nprobe && now - p->swept_ns < KEEP_NONE))
			plan[kept++] = p;
		else
			plan_free(p);
	}
	return kept;
}

void plans_sweep(struct attach *a, uint64_t now)
{
	if (now < a->sweep_ns)
		return;
	a->sweep_ns = now + SWEEP_GAP;
	a->nplan = sweep(a, a->plan, a->nplan, now);
	a->nlibc = sweep(a, a->libc, a->nlibc, now);
}
