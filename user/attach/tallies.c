// SPDX-License-Identifier: Apache-2.0
/* Work posted and not completed, as the kernel side has counted it. */
#include <bpf/bpf.h>
#include <errno.h>

#include "attach/watched.h"

int attach_tallies(const struct attach *a, attach_tally_fn fn, void *ctx)
{
	int fd = bpfload_tallies_fd(&a->bpf);
	struct sp_tally_key key;
	bool more = fd >= 0 && !bpf_map_get_next_key(fd, NULL, &key);

	while (more) {
		struct attach_tally t = {
			.pid = key.pid, .id = (int)key.id, .key = key.key, .within = key.within};

		if (watched_find(a, key.pid) && !bpf_map_lookup_elem(fd, &key, &t.n))
			fn(ctx, &t);
		more = !bpf_map_get_next_key(fd, &key, &key);
	}
	return 0;
}
