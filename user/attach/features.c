// SPDX-License-Identifier: Apache-2.0
/* Kernel features, each found by trying it. */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "attach/features.h"
#include "attach/maps.h"
#include "attach/returns.h"
#include "attach/uprobe.h"
#include "util/cleanup.h"

#define FIRST_PIDNS 0xeffffffcu /* PROC_PID_INIT_INO, include/linux/proc_ns.h */

/* A few instructions, written here so that no object is needed to try a feature. */
static struct bpf_insn insn(uint8_t code, uint8_t dst, uint8_t src, int32_t imm)
{
	return (struct bpf_insn){.code = code, .dst_reg = dst, .src_reg = src, .imm = imm};
}

static struct bpf_insn mov(uint8_t dst, int32_t imm)
{
	return insn(BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, imm);
}

static struct bpf_insn leave(void)
{
	return insn(BPF_JMP | BPF_EXIT, 0, 0, 0);
}

static int load(const struct bpf_insn *insns, size_t n, int attach_type)
{
	struct bpf_prog_load_opts opts = {
		.sz = sizeof(opts),
		.expected_attach_type = (enum bpf_attach_type)attach_type,
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "sp_feature", "Dual BSD/GPL", insns, n, &opts);

	return fd < 0 ? -errno : fd;
}

int features_counter_map(void)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "sp_feature", 4, 8, 1, NULL);

	return fd < 0 ? -errno : fd;
}

/* A program that adds one to the map's value; op: BPF_ADD, or with BPF_FETCH. */
static int load_counter(int map, int op, int attach_type)
{
	const struct bpf_insn insns[] = {
		/* the address of the map's value: a 16-byte instruction */
		insn(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_VALUE, map),
		insn(0, 0, 0, 0),
		mov(BPF_REG_2, 1),
		insn(BPF_STX | BPF_DW | BPF_ATOMIC, BPF_REG_1, BPF_REG_2, op),
		mov(BPF_REG_0, 0),
		leave(),
	};

	return load(insns, ARRAY_SIZE(insns), attach_type);
}

int features_counter(int map, enum attach_backend backend)
{
	return load_counter(map, BPF_ADD, backend == BACKEND_MULTI ? SP_BPF_TRACE_UPROBE_MULTI : 0);
}

void features_pidns(uint64_t *dev, uint64_t *ino)
{
	struct stat st;

	*dev = *ino = 0;
	if (stat("/proc/self/ns/pid", &st) || st.st_ino == FIRST_PIDNS)
		return;
	*ino = st.st_ino;
	/* The kernel's own dev_t has 20 bits for the minor number, user space's splits it. */
	*dev = (uint64_t)major(st.st_dev) << 20 | minor(st.st_dev);
}

int features_basic(struct attach_features *f)
{
	const struct bpf_insn cookie[] = {
		insn(BPF_JMP | BPF_CALL, 0, 0, BPF_FUNC_get_attach_cookie), mov(BPF_REG_0, 0),
		leave()};
	__closefd int map = features_counter_map();
	__closefd int ring = -1, prog = -1, fetch = -1;
	uint64_t dev, ino;

	memset(f, 0, sizeof(*f));
	features_pidns(&dev, &ino);
	f->pidns = ino != 0;
	f->btf = access("/sys/kernel/btf/vmlinux", R_OK) == 0;
	if (map < 0) {
		snprintf(f->why_bpf, sizeof(f->why_bpf), "BPF maps cannot be created: %s%s",
			 strerror(-map),
			 map == -EPERM ? ": run as root, or give CAP_BPF and CAP_PERFMON" : "");
		return map;
	}
	ring = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "sp_feature", 0, 0,
			      (uint32_t)sysconf(_SC_PAGESIZE), NULL);
	f->ringbuf = ring >= 0;
	prog = load(cookie, ARRAY_SIZE(cookie), 0);
	f->cookie = prog >= 0;
	fetch = load_counter(map, BPF_ADD | BPF_FETCH, 0);
	f->seq = fetch >= 0;
	if (prog == -EPERM)
		snprintf(f->why_bpf, sizeof(f->why_bpf),
			 "BPF tracing programs cannot be loaded: %s: run as root, or give "
			 "CAP_BPF and CAP_PERFMON (kernel lockdown also forbids them)",
			 strerror(EPERM));
	else if (!f->btf)
		snprintf(f->why_bpf, sizeof(f->why_bpf),
			 "/sys/kernel/btf/vmlinux is missing: the kernel needs "
			 "CONFIG_DEBUG_INFO_BTF");
	else if (!f->ringbuf || !f->cookie)
		snprintf(f->why_bpf, sizeof(f->why_bpf), "the kernel is older than 5.15: no %s",
			 f->ringbuf ? "BPF cookies" : "BPF ring buffer");
	if (f->why_bpf[0])
		return prog < 0 ? prog : -EOPNOTSUPP;
	return 0;
}

/* ---- a uprobe on ourselves ------------------------------------------------------------------- */

static __attribute__((noinline)) long probed_function(long x)
{
	__asm__ volatile("" : "+r"(x));
	return x;
}

static void *call_probed(void *arg)
{
	probed_function((long)(intptr_t)arg);
	return NULL;
}

int features_own_file(uint64_t addr, uint64_t *offset)
{
	struct map_file f;
	char why[160];
	int fd = maps_at(getpid(), addr, &f, offset);

	if (fd)
		return fd;
	fd = maps_open(getpid(), &f, why, sizeof(why));
	free(f.path);
	return fd;
}

/* 0: it fired from another thread; -ENOMSG: it did not; else why it could not be attached. */
static int try_uprobe(enum attach_backend backend)
{
	bool multi = backend == BACKEND_MULTI;
	__closefd int map = features_counter_map();
	__closefd int prog = -1, fd = -1;
	struct plan_site site = {0};
	const struct uprobe_kind entry = {0};
	struct links links = {0};
	uint64_t count = 0;
	uint32_t zero = 0;
	pthread_t thread;
	int err;

	if (map < 0)
		return map;
	prog = features_counter(map, backend);
	if (prog < 0)
		return prog;
	fd = features_own_file((uint64_t)(uintptr_t)probed_function, &site.offset);
	if (fd < 0)
		return fd;
	err = multi ? uprobe_multi_link(prog, fd, getpid(), entry, &site, 1, &links)
		    : uprobe_perf_link(prog, fd, getpid(), entry, &site, 1, &links);
	if (err)
		return err;
	err = -pthread_create(&thread, NULL, call_probed, NULL);
	if (!err) {
		pthread_join(thread, NULL);
		err = bpf_map_lookup_elem(map, &zero, &count) ? -errno : count ? 0 : -ENOMSG;
	}
	links_close_later(&links);
	return err;
}

void features_multi(struct attach_features *f)
{
	int err = try_uprobe(BACKEND_MULTI);

	f->multi = !err;
	f->why_multi[0] = 0;
	if (err == -ENOMSG)
		snprintf(f->why_multi, sizeof(f->why_multi),
			 "its process filter sees one thread only (kernel before 6.10)");
	else if (err == -EINVAL)
		snprintf(f->why_multi, sizeof(f->why_multi), "not in this kernel (it came in 6.6)");
	else if (err)
		uprobe_reason(err, BACKEND_MULTI, f->why_multi, sizeof(f->why_multi));
}

void features_perf(struct attach_features *f)
{
	int err = try_uprobe(BACKEND_PERF);

	f->perf = !err;
	f->why_perf[0] = 0;
	if (err == -ENOMSG)
		snprintf(f->why_perf, sizeof(f->why_perf), "attached, but never fired");
	else if (err == -ENOENT)
		snprintf(f->why_perf, sizeof(f->why_perf),
			 "no uprobe PMU (CONFIG_UPROBE_EVENTS), or /sys is not mounted");
	else if (err)
		uprobe_reason(err, BACKEND_PERF, f->why_perf, sizeof(f->why_perf));
}

int attach_features(struct attach_features *f)
{
	int err = features_basic(f);

	if (err) {
		snprintf(f->why_multi, sizeof(f->why_multi), "needs BPF");
		snprintf(f->why_perf, sizeof(f->why_perf), "needs BPF");
		snprintf(f->why_sock_syscall, sizeof(f->why_sock_syscall), "needs BPF");
		snprintf(f->why_sock_tcp, sizeof(f->why_sock_tcp), "needs BPF");
		snprintf(f->why_sock_state, sizeof(f->why_sock_state), "needs BPF");
		return err;
	}
	features_multi(f);
	features_perf(f);
	features_sock(f);
	if (f->multi || f->perf)
		f->returns = returns_try(f->multi ? BACKEND_MULTI : BACKEND_PERF, f->why_returns,
					 sizeof(f->why_returns));
	return 0;
}
