// SPDX-License-Identifier: Apache-2.0
/* uprobe_multi links: one for any number of places in a file. libbpf 1.1 has no call for them. */
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/uprobe.h"
#include "util/cleanup.h"

/* The part of union bpf_attr for BPF_LINK_CREATE of this type (linux/bpf.h, 6.6). */
struct multi_attr {
	uint32_t prog_fd, target_fd, attach_type, link_flags;
	uint64_t path, offsets, ref_ctr_offsets, cookies;
	uint32_t cnt, flags, pid, pad;
};

int uprobe_multi_link(int prog_fd, int file_fd, pid_t pid, struct uprobe_kind kind,
		      const struct plan_site *site, int n, struct links *out)
{
	__free uint64_t *offsets = calloc((size_t)n, sizeof(*offsets));
	__free uint64_t *cookies = calloc((size_t)n, sizeof(*cookies));
	char path[40];
	struct multi_attr attr = {
		.prog_fd = (uint32_t)prog_fd,
		.attach_type = SP_BPF_TRACE_UPROBE_MULTI,
		.path = (uint64_t)(uintptr_t)path,
		.offsets = (uint64_t)(uintptr_t)offsets,
		.cookies = (uint64_t)(uintptr_t)cookies,
		.flags = kind.at_return ? SP_BPF_F_UPROBE_MULTI_RETURN : 0,
		.pid = (uint32_t)pid,
	};
	long fd;

	if (!offsets || !cookies)
		return -ENOMEM;
	for (int i = 0; i < n; i++) {
		if (!uprobe_is(&site[i], kind))
			continue;
		offsets[attr.cnt] = site[i].offset;
		cookies[attr.cnt++] = site[i].cookie;
	}
	if (attr.cnt == 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file_fd);
	fd = syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
	if (fd < 0)
		return -errno;
	return links_add(out, (int)fd);
}
