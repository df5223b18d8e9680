/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who announced himself to a process, by the model's rule of identity: the agent's name, else its
 * address. Counts the open connections of each.
 */
#ifndef SP_COLLECT_AGENTS_H
#define SP_COLLECT_AGENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "event/event.h"

#define HASH_NONFATAL_OOM        1
#define uthash_nonfatal_oom(elt) ((elt)->hh.tbl = NULL)
#include <uthash.h>

struct agent_id {
	uint32_t pid;
	char first[64]; /* its name, or the address under which it was first known */
};
struct conn_agent {
	struct agent_id id;
	char name[64];      /* "": known by its address alone */
	char peer[64];      /* the address that it announced; "": none */
	uint32_t open;      /* connections */
	uint32_t forgotten; /* of these, no longer in the table: their ends will not be seen */
	UT_hash_handle hh;
};

struct agents {
	struct conn_agent *by_id;
};

void agents_free(struct agents *t);
/* The sender of a message, of those that are known; NULL. What the message says of it is kept. */
struct conn_agent *agents_find(struct agents *t, const struct sp_event *ev);
/* The same, made when it is not known; NULL: it says nothing of its sender, or no room. */
struct conn_agent *agents_get(struct agents *t, const struct sp_event *ev);
void agents_drop(struct agents *t, struct conn_agent *a);
const char *agents_name(const struct conn_agent *a);
/* Does another agent of this process say that it has the same address? */
bool agents_share(const struct agents *t, const struct conn_agent *a);

#endif
