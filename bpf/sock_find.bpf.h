/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Sockets: from a descriptor to the kernel's struct sock, its addresses and its counters. The sock
 * is the connection: what dup, fork and the reuse of numbers do to descriptors does not matter.
 */
#ifndef SP_SOCK_FIND_BPF_H
#define SP_SOCK_FIND_BPF_H

/* Stable numbers of the user ABI, and of include/net/sock.h, include/net/tcp_states.h. */
#define SP_S_IFMT       0170000
#define SP_S_IFSOCK     0140000
#define SP_SOCK_STREAM  1
#define SP_AF_UNIX      1
#define SP_AF_INET      2
#define SP_AF_INET6     10
#define SP_IPPROTO_TCP  6
#define SP_RCV_SHUTDOWN 1
#define SP_SHUTDOWN     3
enum {
	SP_TCP_ESTABLISHED = 1,
	SP_TCP_FIN_WAIT1 = 4,
	SP_TCP_CLOSE = 7,
	SP_TCP_CLOSE_WAIT,
	SP_TCP_LAST_ACK,
	SP_TCP_LISTEN,
};

struct sp_sk {
	__u64 sk;
	__u64 ino;
};

/* A file's stream socket. */
static __always_inline bool sp_sock_of(struct file *file, struct sp_sk *s)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	struct socket *so;

	if ((BPF_CORE_READ(inode, i_mode) & SP_S_IFMT) != SP_S_IFSOCK)
		return false;
	so = BPF_CORE_READ(file, private_data);
	if (BPF_CORE_READ(so, type) != SP_SOCK_STREAM || BPF_CORE_READ(so, file) != file)
		return false;
	s->ino = BPF_CORE_READ(inode, i_ino);
	s->sk = (__u64)BPF_CORE_READ(so, sk);
	return s->sk;
}

/* The current process's file of this number. */
static __always_inline struct file *sp_file_of(__u32 fd)
{
	/* Walking typed pointers instead costs the verifier 10 ms, which looks for names of types.
	 */
	struct task_struct *task = (void *)bpf_get_current_task();
	struct fdtable *fdt = BPF_CORE_READ(task, files, fdt);
	struct file *file = 0, **at;

	if (fd >= BPF_CORE_READ(fdt, max_fds))
		return 0;
	at = BPF_CORE_READ(fdt, fd);
	if (bpf_probe_read_kernel(&file, sizeof(file), &at[fd]))
		return 0;
	return file;
}

__noinline int sp_sock_find(__u32 fd, struct sp_sk *s)
{
	struct file *file = sp_file_of(fd);

	return s && file && sp_sock_of(file, s);
}

/* Is it the last descriptor of the file (as far as others do not use it at this moment)? */
__noinline int sp_file_last(__u32 fd)
{
	struct file *file = sp_file_of(fd);

	if (!file)
		return false;
	if (bpf_core_field_exists(file->f_ref)) /* from 6.13; one reference counts as 0 */
		return BPF_CORE_READ(file, f_ref.refcnt.counter) == 0;
	return BPF_CORE_READ(file, f_count.counter) == 1;
}

static __always_inline void sp_addr_v6(__u8 *to, struct in6_addr *from, struct sp_conn *c)
{
	bpf_probe_read_kernel(to, 16, from);
}

/* An IPv4 peer of an IPv6 socket (::ffff:a.b.c.d) is shown as what it is. */
static __always_inline void sp_addr_mapped(struct sp_conn *c)
{
	const __u32 *r = (const __u32 *)c->raddr, *l = (const __u32 *)c->laddr;
	__u32 ra = r[3], la = l[3];

	if (r[0] || r[1] || r[2] != bpf_htonl(0xffff))
		return;
	__builtin_memset(c->raddr, 0, 16);
	__builtin_memset(c->laddr, 0, 16);
	*(__u32 *)c->raddr = ra;
	*(__u32 *)c->laddr = la;
	c->family = SP_AF_INET;
}

static __always_inline void sp_sock_names(struct sock *sk, struct sp_conn *c)
{
	if (c->family == SP_AF_UNIX)
		return;
	c->lport = BPF_CORE_READ(sk, __sk_common.skc_num);
	c->rport = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
	if (c->family == SP_AF_INET6) {
		sp_addr_v6(c->laddr, &sk->__sk_common.skc_v6_rcv_saddr, c);
		sp_addr_v6(c->raddr, &sk->__sk_common.skc_v6_daddr, c);
		sp_addr_mapped(c);
		return;
	}
	*(__u32 *)c->laddr = BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr);
	*(__u32 *)c->raddr = BPF_CORE_READ(sk, __sk_common.skc_daddr);
}

/* ---- TCP's counters: every byte has a number ---------------------------------------------------
 */

static __always_inline __u32 sp_tcp_pos(struct tcp_sock *tp, __u8 dir)
{
	return dir == SP_DIR_IN ? BPF_CORE_READ(tp, copied_seq) : BPF_CORE_READ(tp, write_seq);
}

/* Is the peer's end of the stream known to this side? With TCP it takes a number like a byte. */
static __always_inline bool sp_sock_fin(struct sock *sk)
{
	return BPF_CORE_READ(sk, sk_shutdown) & SP_RCV_SHUTDOWN;
}

/*
 * How many bytes of the direction lie before number pos, modulo 2^32. While packets come in, the
 * numbers do not fit each other for a moment: the caller looks again. An active opener's SYN counts
 * among what it sent.
 */
static __always_inline __u32 sp_tcp_before(struct tcp_sock *tp, __u8 dir, __u32 pos)
{
	if (dir == SP_DIR_IN)
		return (__u32)BPF_CORE_READ(tp, bytes_received) -
		       (BPF_CORE_READ(tp, rcv_nxt) - pos);
	return (__u32)BPF_CORE_READ(tp, bytes_acked) + (pos - BPF_CORE_READ(tp, snd_una));
}

/* Is pos the direction's beginning? */
__noinline int sp_tcp_begin(const struct sp_conn *c, __u64 sock, __u32 dir, __u32 pos)
{
	struct tcp_sock *tp = (struct tcp_sock *)sock;
	struct sock *sk = (struct sock *)sock;

	if (!c)
		return false;
	for (int i = 0; i < 3; i++) {
		__u32 n = sp_tcp_before(tp, dir, pos);

		if (!n)
			return true;
		if (n == 1 && dir == SP_DIR_OUT && c->side != SP_SIDE_ACCEPT)
			return true;
		if (n == 1 && dir == SP_DIR_IN && sp_sock_fin(sk))
			return true;
	}
	return false;
}

/* Nothing is waiting to be read. */
__noinline int sp_sock_drained(__u64 sock, __u32 tcp)
{
	struct tcp_sock *tp = (struct tcp_sock *)sock;
	struct sock *sk = (struct sock *)sock;

	if (!tcp)
		return !BPF_CORE_READ(sk, sk_receive_queue.qlen);
	return BPF_CORE_READ(tp, rcv_nxt) - BPF_CORE_READ(tp, copied_seq) <= sp_sock_fin(sk);
}

#endif
