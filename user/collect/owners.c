// SPDX-License-Identifier: Apache-2.0
#include "collect/owners.h"

#define MAX_OWNERS 64

void owners_emit(const struct sock_out *out, const struct sp_event *ev)
{
	uint32_t owners[MAX_OWNERS] = {ev->pid};
	struct sp_event one = *ev;
	int n = 1;

	if (out->ops.owners)
		n = out->ops.owners(out->ops_ctx, ev->pid, owners, MAX_OWNERS);
	if (n > MAX_OWNERS)
		n = MAX_OWNERS;
	if (n > 1 && (ev->role == ROLE_ARRIVE || ev->role == ROLE_REPLY || ev->role == ROLE_ABORT))
		one.flags |= EV_SHARED;
	for (int i = 0; i < n; i++) {
		one.pid = owners[i];
		out->emit(out->ctx, &one);
	}
}
