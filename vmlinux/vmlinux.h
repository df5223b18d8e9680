/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The few kernel types the BPF side reads. Only the members that are used: their real offsets are
 * filled in at load time from the running kernel's BTF (CO-RE). Constants are those of the stable
 * user ABI (include/uapi/linux/bpf.h).
 */
#ifndef SP_VMLINUX_H
#define SP_VMLINUX_H

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
#define true  1
#define false 0

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_QUEUE = 22,
	BPF_MAP_TYPE_RINGBUF = 27,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
};

enum {
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
	BPF_RB_AVAIL_DATA = 0,
};

struct bpf_pidns_info {
	__u32 pid;
	__u32 tgid;
};

struct bpf_raw_tracepoint_args {
	__u64 args[0];
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, sp;
};
struct thread_info {
	__u32 status;
};
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	__u64 regs[31];
	__u64 sp;
	__u64 pc;
	__u64 pstate;
};
struct pt_regs {
	struct user_pt_regs user_regs;
	__u64 orig_x0;
	__s32 syscallno;
};
struct thread_info {
	unsigned long flags;
};
#else
#error "no register layout for this architecture"
#endif

typedef struct {
	int counter;
} atomic_t;

struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	struct ns_common ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct signal_struct {
	atomic_t live;
};

/* Local to kernel/events/uprobes.c; the return probes' trampoline is at its beginning. */
struct xol_area {
	unsigned long vaddr;
};

struct uprobes_state {
	struct xol_area *xol_area;
};

struct mm_struct {
	struct uprobes_state uprobes_state;
};

/* ---- sockets ---- */
typedef struct {
	__s64 counter;
} atomic64_t;

typedef struct {
	atomic64_t refcnt;
} file_ref_t;

struct inode {
	unsigned short i_mode;
	unsigned long i_ino;
};

/* f_ref: from 6.13; f_count before. */
struct file {
	atomic64_t f_count;
	file_ref_t f_ref;
	struct inode *f_inode;
	void *private_data;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct in6_addr {
	union {
		__u8 u6_addr8[16];
	} in6_u;
};

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct sk_buff_head {
	__u32 qlen;
};

struct socket;

struct sock {
	struct sock_common __sk_common;
	struct socket *sk_socket;
	struct sk_buff_head sk_receive_queue;
	int sk_err;
	__u16 sk_protocol;
	__u8 sk_shutdown;
};

struct socket {
	short type;
	struct file *file;
	struct sock *sk;
};

/* __iov: from 6.4; iov before. ubuf: from 6.0. */
struct iov_iter {
	__u8 iter_type;
	unsigned long iov_offset;
	const void *iov;
	const void *__iov;
	void *ubuf;
	unsigned long nr_segs;
};

struct msghdr {
	struct iov_iter msg_iter;
};

struct inet_connection_sock {
	struct {
		__u32 lrcvtime;
	} icsk_ack;
};

struct tcp_sock {
	__u32 rcv_nxt;
	__u32 copied_seq;
	__u32 snd_una;
	__u32 write_seq;
	__u32 lsndtime;
	__u64 bytes_received;
	__u64 bytes_acked;
};

struct bpf_iter__task_file {
	struct task_struct *task;
	__u32 fd;
	struct file *file;
};

struct task_struct {
	struct thread_info thread_info;
	struct files_struct *files;
	int pid;
	int tgid;
	struct mm_struct *mm;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct signal_struct *signal;
};

#pragma clang attribute pop

#endif
