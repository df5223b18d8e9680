/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Sockets: one finished system call, however it was seen. */
#ifndef SP_SOCK_CALLS_BPF_H
#define SP_SOCK_CALLS_BPF_H

/* include/linux/socket.h */
#define SP_MSG_OOB      1
#define SP_MSG_PEEK     2
#define SP_MSG_TRUNC    0x20
#define SP_MSG_ERRQUEUE 0x2000
#define SP_SHUT_RDWR    2
#define SP_EINPROGRESS  115

struct sp_syscall {
	__u64 arg[4]; /* nothing is in the others */
	__s64 ret;
	__u64 pid_tgid;
	__u32 call; /* enum sp_sock_call */
	__u32 pad;
};

#define SP_IS_IN(call)   ((call) <= SP_CALL_RECVMMSG)
#define SP_IS_DATA(call) ((call) <= SP_CALL_SPLICE)

/* Bytes of all messages of a recvmmsg or sendmmsg. */
__noinline int sp_mmsg_total(__u64 mm, __u64 msgs)
{
	__u32 total = 0;

	for (__u64 i = 0; i < 64; i++) {
		__u32 n = 0;

		if (i >= msgs ||
		    bpf_probe_read_user(&n, 4, (void *)(mm + SP_MMSG_NEXT * i + SP_MMSG_BYTES)))
			break;
		total += n;
	}
	return total;
}

/* Where the call's bytes are. False: they are none of the stream, or are looked at only. */
__noinline int sp_io_of(const struct sp_syscall *s, struct sp_io *io)
{
	__u64 flags = 0, v[2] = {};

	if (!s || !io)
		return 0;
	io->pid_tgid = s->pid_tgid;
	io->dir = SP_IS_IN(s->call) ? SP_DIR_IN : SP_DIR_OUT;
	io->total = s->ret;
	io->at.left = s->ret;
	switch (s->call) {
	case SP_CALL_RECV:
	case SP_CALL_SEND:
		flags = s->arg[3];
		/* fallthrough */
	case SP_CALL_READ:
	case SP_CALL_WRITE:
		io->at.cur = s->arg[1];
		io->at.len = s->ret;
		break;
	case SP_CALL_READV:
	case SP_CALL_WRITEV:
		io->at.iov = s->arg[1];
		io->at.segs = s->arg[2];
		break;
	case SP_CALL_RECVMSG:
	case SP_CALL_SENDMSG:
		flags = s->arg[2];
		if (bpf_probe_read_user(v, 16, (void *)(s->arg[1] + SP_MSG_IOV)))
			io->unseen = SP_WHY_FAULT;
		io->at.iov = v[0];
		io->at.segs = v[1];
		break;
	case SP_CALL_RECVMMSG:
	case SP_CALL_SENDMMSG:
		flags = s->arg[3];
		io->at.mm = s->arg[1];
		io->at.msgs = s->ret;
		io->at.left = 0;
		io->total = (__u32)sp_mmsg_total(io->at.mm, io->at.msgs);
		break;
	default:
		io->unseen = SP_WHY_SENDFILE;
	}
	if (io->dir == SP_DIR_OUT)
		return io->total > 0;
	if (flags & SP_MSG_TRUNC)
		io->unseen = SP_WHY_FAULT; /* TCP: thrown away */
	return !(flags & (SP_MSG_PEEK | SP_MSG_OOB | SP_MSG_ERRQUEUE));
}

static __always_inline int sp_call_bytes(const struct sp_syscall *s, __u32 fd, __u32 rules)
{
	struct sp_io io = {};
	struct sp_conn *c;
	struct sp_sk sk = {};

	if (!sp_sock_find(fd, &sk))
		return 0;
	c = sp_conn_get(&sk, s->pid_tgid, rules, SP_SIDE_UNKNOWN, fd);
	if (!c || c->kind == SP_KIND_IGNORE || !sp_io_of(s, &io))
		return 0;
	if (s->ret == 0) {
		/* nothing may have been asked for */
		if (sp_sock_fin((struct sock *)c->sk))
			sp_conn_eof(c, s->pid_tgid);
		return 0;
	}
	sp_sock_data(c, &io);
	return 0;
}

/* splice moves bytes out of one descriptor and into another: sockets may be at both ends. */
static __always_inline int sp_call_splice(const struct sp_syscall *s, __u32 rules, bool in)
{
	struct sp_io io = {
		.pid_tgid = s->pid_tgid,
		.dir = in ? SP_DIR_IN : SP_DIR_OUT,
		.total = s->ret,
		.unseen = SP_WHY_SENDFILE,
	};
	__u32 fd = in ? s->arg[0] : s->arg[2];
	struct sp_conn *c;
	struct sp_sk sk = {};

	if (!sp_sock_find(fd, &sk))
		return 0;
	c = sp_conn_get(&sk, s->pid_tgid, rules, SP_SIDE_UNKNOWN, fd);
	if (c && c->kind != SP_KIND_IGNORE)
		sp_sock_data(c, &io);
	return 0;
}

/* A new socket: its beginning was seen. */
static __always_inline int sp_call_open(const struct sp_syscall *s, __u32 fd, __u32 rules,
					enum sp_side side)
{
	struct sp_conn *c;
	struct sp_sk sk = {};

	if (!sp_sock_find(fd, &sk))
		return 0;
	c = sp_conn_get(&sk, s->pid_tgid, rules, side, fd);
	/* A connect that is still going on is announced when it succeeds, or at the first byte. */
	if (c && c->port && (side == SP_SIDE_ACCEPT || !s->ret))
		sp_conn_announce(c, s->pid_tgid, 1);
	return 0;
}

/* TCP tells its end itself (sock_state.bpf.h); others end with their last descriptor. */
static __always_inline int sp_call_close(const struct sp_syscall *s, __u32 fd)
{
	struct sp_conn *c;
	struct sp_sk sk = {};

	if (!sp_sock_find(fd, &sk))
		return 0;
	c = bpf_map_lookup_elem(&sp_conns, &sk.sk);
	if (!c || c->ino != sk.ino)
		return 0;
	if (s->call == SP_CALL_SHUTDOWN ? s->arg[1] == SP_SHUT_RDWR : sp_file_last(fd))
		sp_conn_end(c, s->pid_tgid, SP_CONN_CLOSED);
	return 0;
}

/* Part of each program: the verifier allows 8 functions within each other. */
static __always_inline int sp_sock_call(const struct sp_syscall *s)
{
	__u32 pid, *rules;
	__u32 fd;

	pid = s->pid_tgid >> 32;
	rules = bpf_map_lookup_elem(&sp_sock_procs, &pid);
	if (!rules)
		return 0;
	fd = s->arg[0];
	switch (s->call) {
	case SP_CALL_ACCEPT:
		return s->ret < 0 ? 0 : sp_call_open(s, s->ret, *rules, SP_SIDE_ACCEPT);
	case SP_CALL_CONNECT:
		/* a libc function says -1 only */
		return s->ret && s->ret != -SP_EINPROGRESS && s->ret != -1
			       ? 0
			       : sp_call_open(s, fd, *rules, SP_SIDE_CONNECT);
	case SP_CALL_CLOSE:
		return sp_call_close(s, fd);
	case SP_CALL_SHUTDOWN:
		return s->ret ? 0 : sp_call_close(s, fd);
	case SP_CALL_SPLICE:
		sp_call_splice(s, *rules, true);
		return sp_call_splice(s, *rules, false);
	default:
		return s->call < SP_CALL_MAX ? sp_call_bytes(s, fd, *rules) : 0;
	}
}

/* The look before all others: most calls that fail do so all the time. */
static __always_inline bool sp_call_idle(__u32 call, __s64 ret)
{
	return SP_IS_DATA(call) && (ret < 0 || (!ret && !SP_IS_IN(call)));
}

#endif
