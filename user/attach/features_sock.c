// SPDX-License-Identifier: Apache-2.0
/* How socket calls can be seen here: each way is tried with an empty program. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "attach/features.h"
#include "util/cleanup.h"

#define KERNEL_ENOTSUPP 524 /* include/linux/errno.h */

/* return 0 */
static const struct bpf_insn nothing[] = {
	{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
	{.code = BPF_JMP | BPF_EXIT},
};

static int try_raw(const char *tracepoint)
{
	__closefd int prog = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "sp_feature",
					   "Dual BSD/GPL", nothing, ARRAY_SIZE(nothing), NULL);
	__closefd int link = -1;

	if (prog < 0)
		return -errno;
	link = bpf_raw_tracepoint_open(tracepoint, prog);
	return link < 0 ? -errno : 0;
}

static int try_fentry(const char *function)
{
	struct bpf_prog_load_opts opts = {
		.sz = sizeof(opts),
		.expected_attach_type = BPF_TRACE_FENTRY,
	};
	int id = libbpf_find_vmlinux_btf_id(function, BPF_TRACE_FENTRY);
	__closefd int prog = -1, link = -1;

	if (id < 0)
		return id;
	opts.attach_btf_id = (uint32_t)id;
	prog = bpf_prog_load(BPF_PROG_TYPE_TRACING, "sp_feature", "Dual BSD/GPL", nothing,
			     ARRAY_SIZE(nothing), &opts);
	if (prog < 0)
		return -errno;
	link = bpf_raw_tracepoint_open(NULL, prog);
	return link < 0 ? -errno : 0;
}

static bool answer(int err, char *why, size_t len)
{
	why[0] = 0;
	if (err == -EPERM || err == -EACCES)
		snprintf(why, len, "not permitted, or forbidden by this kernel");
	else if (err == -KERNEL_ENOTSUPP || err == -EOPNOTSUPP)
		snprintf(why, len, "this kernel cannot attach to its own functions");
	else if (err == -ENOENT || err == -ESRCH)
		snprintf(why, len, "not in this kernel");
	else if (err)
		snprintf(why, len, "the kernel refuses it: %s", strerror(-err));
	return !err;
}

void features_sock_syscall(struct attach_features *f)
{
	f->sock_syscall =
		answer(try_raw("sys_exit"), f->why_sock_syscall, sizeof(f->why_sock_syscall));
}

void features_sock_tcp(struct attach_features *f)
{
	f->sock_tcp = answer(try_fentry("tcp_recvmsg"), f->why_sock_tcp, sizeof(f->why_sock_tcp));
}

void features_sock(struct attach_features *f)
{
	f->sock_libc = f->multi || f->perf;
	features_sock_syscall(f);
	features_sock_tcp(f);
	f->sock_state = answer(try_raw("inet_sock_set_state"), f->why_sock_state,
			       sizeof(f->why_sock_state));
}
