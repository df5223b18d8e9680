/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Sockets: seen at the kernel's own functions, whichever way they are called (io_uring, too). Where
 * the bytes are is kept at the entry: the kernel moves on in it while it copies. Needs
 * bpf_get_func_ret (5.17): the number of arguments differs from version to version.
 */
#ifndef SP_SOCK_TCP_BPF_H
#define SP_SOCK_TCP_BPF_H

#define SP_FN_SEEN   0
#define SP_FN_UNSEEN 1 /* pages, not a process's memory: sendfile */

/* At the entry: msg. */
static __always_inline int sp_fn_enter(__u64 msg, __u32 call)
{
	struct iov_iter *it = &((struct msghdr *)msg)->msg_iter;
	struct sp_sock_saved saved = {.call = call};
	__u64 pid_tgid = sp_pid_tgid();
	__u32 pid = pid_tgid >> 32;
	__u8 type;

	if (!bpf_map_lookup_elem(&sp_sock_procs, &pid))
		return 0;
	type = BPF_CORE_READ(it, iter_type);
	saved.arg[1] = BPF_CORE_READ(it, iov_offset);
	if (type == sp_iter_iovec) {
		saved.arg[0] = bpf_core_field_exists(it->__iov) ? (__u64)BPF_CORE_READ(it, __iov)
								: (__u64)BPF_CORE_READ(it, iov);
		saved.arg[2] = BPF_CORE_READ(it, nr_segs);
	} else if (type == sp_iter_ubuf && bpf_core_field_exists(it->ubuf)) {
		saved.arg[0] = (__u64)BPF_CORE_READ(it, ubuf);
	} else {
		saved.arg[3] = SP_FN_UNSEEN;
	}
	if (bpf_map_update_elem(&sp_sock_saved, &pid_tgid, &saved, BPF_ANY))
		sp_count(SP_C_SAVE_FULL);
	return 0;
}

/* Where the bytes are that the call has moved. */
__noinline int sp_fn_io(struct sp_io *io, __u64 pid_tgid, __s64 ret, __u32 call, __u64 flags)
{
	struct sp_sock_saved *saved = bpf_map_lookup_elem(&sp_sock_saved, &pid_tgid);

	if (!io || !saved || saved->call != call)
		return 0;
	io->pid_tgid = pid_tgid;
	io->dir = SP_IS_IN(call) ? SP_DIR_IN : SP_DIR_OUT;
	io->total = ret;
	io->at.left = ret;
	if (saved->arg[3] == SP_FN_UNSEEN) {
		io->unseen = SP_WHY_SENDFILE;
	} else if (saved->arg[2]) {
		__u64 v[2] = {};

		if (bpf_probe_read_kernel(v, 16, (void *)saved->arg[0]) || saved->arg[1] > v[1])
			io->unseen = SP_WHY_FAULT;
		io->kernel = 1;
		io->at.cur = v[0] + saved->arg[1];
		io->at.len = v[1] - saved->arg[1];
		io->at.iov = saved->arg[0] + 16;
		io->at.segs = saved->arg[2] - 1;
	} else {
		io->at.cur = saved->arg[0] + saved->arg[1];
		io->at.len = ret;
	}
	if (io->at.len > io->at.left)
		io->at.len = io->at.left;
	bpf_map_delete_elem(&sp_sock_saved, &pid_tgid);
	if (io->dir == SP_DIR_OUT)
		return 1;
	if (flags & SP_MSG_TRUNC)
		io->unseen = SP_WHY_FAULT;
	return !(flags & (SP_MSG_PEEK | SP_MSG_OOB | SP_MSG_ERRQUEUE));
}

/* The socket behind a struct sock. */
__noinline int sp_fn_sock(struct sp_sk *s, __u64 sock)
{
	struct sock *sk = (struct sock *)sock;

	if (!s)
		return 0;
	s->sk = sock;
	s->ino = BPF_CORE_READ(sk, sk_socket, file, f_inode, i_ino);
	return s->ino != 0;
}

static __always_inline int sp_fn_exit(void *ctx, __u64 sk, __u32 call, __u64 flags)
{
	__u64 ret = 0, pid_tgid = sp_pid_tgid();
	__u32 pid = pid_tgid >> 32, *rules = bpf_map_lookup_elem(&sp_sock_procs, &pid);
	struct sp_io io = {};
	struct sp_sk s = {};
	struct sp_conn *c;

	if (!rules || bpf_get_func_ret(ctx, &ret))
		return 0;
	ret = (__s32)ret;
	if (!sp_fn_io(&io, pid_tgid, ret, call, flags) || sp_call_idle(call, ret) ||
	    !sp_fn_sock(&s, sk))
		return 0;
	c = sp_conn_get(&s, pid_tgid, *rules, SP_SIDE_UNKNOWN, 0);
	if (!c || c->kind == SP_KIND_IGNORE)
		return 0;
	if (ret)
		sp_sock_data(c, &io);
	else if (sp_sock_fin((struct sock *)sk))
		sp_conn_eof(c, pid_tgid);
	return 0;
}

/* An argument as a number: read off the context it would be a typed pointer, which no global
 * function takes. */
static __always_inline __u64 sp_fn_arg(void *ctx, __u32 n)
{
	__u64 v = 0;

	bpf_get_func_arg(ctx, n, &v);
	return v;
}

/* Of tcp_recvmsg: its fourth argument from 5.19 on, its fifth before. */
static __always_inline __u64 sp_tcp_flags(void *ctx)
{
	return sp_fn_arg(ctx, bpf_get_func_arg_cnt(ctx) >= 6 ? 4 : 3);
}

SEC("sp_fentry")
int tcp_in_enter(void *ctx)
{
	return sp_fn_enter(sp_fn_arg(ctx, 1), SP_CALL_RECVMSG);
}

SEC("sp_fexit")
int tcp_in(void *ctx)
{
	return sp_fn_exit(ctx, sp_fn_arg(ctx, 0), SP_CALL_RECVMSG, sp_tcp_flags(ctx));
}

SEC("sp_fentry")
int tcp_out_enter(void *ctx)
{
	return sp_fn_enter(sp_fn_arg(ctx, 1), SP_CALL_SENDMSG);
}

SEC("sp_fexit")
int tcp_out(void *ctx)
{
	return sp_fn_exit(ctx, sp_fn_arg(ctx, 0), SP_CALL_SENDMSG, 0);
}

static __always_inline __u64 sp_unix_sk(__u64 so)
{
	return (__u64)BPF_CORE_READ((struct socket *)so, sk);
}

SEC("sp_fentry")
int unix_in_enter(void *ctx)
{
	return sp_fn_enter(sp_fn_arg(ctx, 1), SP_CALL_RECVMSG);
}

SEC("sp_fexit")
int unix_in(void *ctx)
{
	return sp_fn_exit(ctx, sp_unix_sk(sp_fn_arg(ctx, 0)), SP_CALL_RECVMSG,
			  (__u32)sp_fn_arg(ctx, 3));
}

SEC("sp_fentry")
int unix_out_enter(void *ctx)
{
	return sp_fn_enter(sp_fn_arg(ctx, 1), SP_CALL_SENDMSG);
}

SEC("sp_fexit")
int unix_out(void *ctx)
{
	return sp_fn_exit(ctx, sp_unix_sk(sp_fn_arg(ctx, 0)), SP_CALL_SENDMSG, 0);
}

/* Unix sockets have no counters: that a stream begins must be seen. */
static __always_inline int sp_unix_open(void *ctx, __u64 so, enum sp_side side)
{
	__u64 ret = 0, pid_tgid = sp_pid_tgid();
	__u32 pid = pid_tgid >> 32, *rules = bpf_map_lookup_elem(&sp_sock_procs, &pid);
	struct sp_sk s = {};

	if (rules && !bpf_get_func_ret(ctx, &ret) && !(__s32)ret && sp_fn_sock(&s, sp_unix_sk(so)))
		sp_conn_get(&s, pid_tgid, *rules, side, 0);
	return 0;
}

SEC("sp_fexit")
int unix_accepted(void *ctx)
{
	return sp_unix_open(ctx, sp_fn_arg(ctx, 1), SP_SIDE_ACCEPT);
}

SEC("sp_fexit")
int unix_connected(void *ctx)
{
	return sp_unix_open(ctx, sp_fn_arg(ctx, 0), SP_SIDE_CONNECT);
}

#endif
