// SPDX-License-Identifier: Apache-2.0
/* What others ask of attach. */
#include "attach/sockets.h"

int attach_targets(const struct attach *a)
{
	return a->nwatched;
}

int attach_probes(const struct attach *a)
{
	int n = socks_fronts(a, 0);

	for (int i = 0; i < a->nwatched; i++)
		n += watched_probes(a->watched[i]);
	return n;
}

enum attach_backend attach_backend_used(const struct attach *a)
{
	return a->bpf.progs.backend;
}

int attach_ring_fd(const struct attach *a)
{
	return bpfload_ring_fd(&a->bpf);
}

bool attach_has_seq(const struct attach *a)
{
	return a->bpf.seq;
}

int attach_counters(const struct attach *a, uint64_t out[SP_C_MAX])
{
	bpfload_counters(&a->bpf, out);
	return 0;
}

bool attach_last_poll(const struct attach *a, uint32_t pid, uint64_t op, struct sp_poll *out)
{
	return bpfload_last_poll(&a->bpf, pid, op, out);
}
