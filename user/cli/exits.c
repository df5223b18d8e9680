// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/exits.h"

static size_t place(const struct exits *x, uint32_t pid)
{
	size_t i = 0;

	while (i < x->n && x->pids[i] != pid)
		i++;
	return i;
}

static int attached(struct exits *x, uint32_t pid)
{
	if (!x->n)
		x->stuck = 0;
	if (place(x, pid) < x->n)
		return 0;
	if (x->n == x->cap) {
		size_t cap = x->cap ? x->cap * 2 : 16;
		uint32_t *grown = realloc(x->pids, cap * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		x->pids = grown;
		x->cap = cap;
	}
	x->pids[x->n++] = pid;
	return 0;
}

static void exited(struct exits *x, uint32_t pid)
{
	size_t i = place(x, pid);

	if (i < x->n)
		x->pids[i] = x->pids[--x->n];
}

int exits_feed(struct exits *x, struct model *m, const struct sp_event *ev, enum sp_confidence min)
{
	bool target = ev->role == ROLE_TARGET;
	bool ends = target && !strcmp(ev->kind, "exited");
	size_t before = 0;
	int rc;

	if (ends) {
		model_advance(m, ev->ns); /* deadlines up to the very end */
		model_answer(m, ev->pid);
		before = model_stuck(m, min);
	}
	rc = model_event(m, ev);
	if (ends) {
		x->stuck += before - model_stuck(m, min);
		exited(x, ev->pid);
	} else if (target && !strcmp(ev->kind, "attached") && attached(x, ev->pid)) {
		rc = -ENOMEM;
	}
	return rc;
}

size_t exits_stuck(const struct exits *x, const struct model *m, enum sp_confidence min)
{
	return model_stuck(m, min) + (x->n ? 0 : x->stuck);
}

void exits_free(struct exits *x)
{
	free(x->pids);
}
