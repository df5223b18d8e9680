/* SPDX-License-Identifier: Apache-2.0 */
/* Where the events of sockets go: to the processes that a socket's process speaks for. */
#ifndef SP_COLLECT_OWNERS_H
#define SP_COLLECT_OWNERS_H

#include "collect/collect.h"

struct sock_out {
	struct collect_ops ops;
	void *ops_ctx;
	sockets_emit emit;
	void *ctx;
};

/* Give the event to each owner of ev->pid, under the owner's pid; to none when it has none. With
 * several, what concerns a request may be another's: EV_SHARED. */
void owners_emit(const struct sock_out *out, const struct sp_event *ev);

#endif
