// SPDX-License-Identifier: Apache-2.0
// A driver: it has no symbol, the ferry reaches it by its table.
#include "ferry.h"

#include <string.h>

static int ready(struct ferry_pier *pier)
{
	return pier->fd >= 0 ? 0 : -1;
}

static int shove(struct ferry_pier *pier, struct ferry_cargo *list)
{
	for (struct ferry_cargo *c = list; c; c = c->next) {
		struct ferry_label label = {.word = FERRY_CARGO,
					    .size = c->size,
					    .handle = c->handle,
					    .spare = c->seal};

		memcpy(label.tag, c->tag, sizeof(label.tag));
		if (dock_write(pier->fd, &label, sizeof(label)) ||
		    dock_write(pier->fd, c->staged, c->size))
			return -1;
	}
	return 0;
}

static const struct dock_ops ops = {ready, shove};

__attribute__((constructor)) static void enlist(void)
{
	dock_enlist("tcp", &ops);
}
