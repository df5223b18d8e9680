// SPDX-License-Identifier: Apache-2.0
/* Perf uprobes: a descriptor for the event and one for its program, for every place. */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/uprobe.h"
#include "util/cleanup.h"

/* Dynamic number of the uprobe PMU; the return bit is config:0 on every kernel that has it
 * (kernel/events/core.c, PERF_PROBE_CONFIG_IS_RETPROBE). */
static int pmu_type(void)
{
	__fclose FILE *f = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	int type;

	if (!f)
		return -ENOENT;
	return fscanf(f, "%d", &type) == 1 ? type : -EINVAL;
}

static int link_one(int prog_fd, const char *path, pid_t pid, const struct plan_site *s, int type,
		    struct links *out)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = (uint32_t)type,
		.config = s->at_return,
		.config1 = (uint64_t)(uintptr_t)path,
		.config2 = s->offset,
	};
	LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = s->cookie);
	int event, link, err;

	event = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (event < 0)
		return -errno;
	link = bpf_link_create(prog_fd, event, BPF_PERF_EVENT, &opts);
	if (link < 0) {
		close(event);
		return link;
	}
	err = links_add(out, link);
	if (err) {
		close(event);
		return err;
	}
	return links_add(out, event);
}

int uprobe_perf_link(int prog_fd, int file_fd, pid_t pid, struct uprobe_kind kind,
		     const struct plan_site *site, int n, struct links *out)
{
	int type = pmu_type(), first = out->n, err = 0;
	char path[40];

	if (type < 0)
		return type;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file_fd);
	for (int i = 0; i < n && !err; i++)
		if (uprobe_is(&site[i], kind))
			err = link_one(prog_fd, path, pid, &site[i], type, out);
	if (err)
		links_cut(out, first);
	return err;
}
