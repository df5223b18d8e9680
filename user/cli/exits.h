/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exit code of watch and replay: a room that was stuck when its process ended counts, if no
 * watched process was left at the end. Later processes make a fresh start.
 */
#ifndef SP_CLI_EXITS_H
#define SP_CLI_EXITS_H

#include "model/model.h"

struct exits {
	uint32_t *pids; /* attached and alive */
	size_t n, cap;
	size_t stuck; /* stuck lives of processes that have ended */
};

/* Give ev to the model, and keep count. */
int exits_feed(struct exits *x, struct model *m, const struct sp_event *ev, enum sp_confidence min);
/* Rooms stuck at the end, or when the last process ended. */
size_t exits_stuck(const struct exits *x, const struct model *m, enum sp_confidence min);
void exits_free(struct exits *x);

#endif
