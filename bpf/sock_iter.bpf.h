/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Sockets that a process has when it is attached to: entered with where their streams stand, so
 * that what comes next is known to come after a silence.
 */
#ifndef SP_SOCK_ITER_BPF_H
#define SP_SOCK_ITER_BPF_H

/* Set by user space before each run: the process, in the first pid namespace's or silentpin's own
 * number. */
__u32 sp_scan_pid;

#define SP_NSEC 1000000000ull

/* Where one direction stands, and since when it is silent. */
static __always_inline void sp_scan_dir(struct sp_conn *c, struct sock *sk, __u8 dir, bool tcp)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;
	struct sp_dir *d = &c->dir[dir];
	__u32 pos, then;
	__u64 ns = bpf_ktime_get_ns();

	if (d->known)
		return;
	if (tcp) {
		pos = sp_tcp_pos(tp, dir);
		if (sp_tcp_begin(c, (__u64)sk, dir, pos))
			return; /* the first byte will be the stream's */
		d->pos = pos;
		then = dir == SP_DIR_IN ? BPF_CORE_READ(icsk, icsk_ack.lrcvtime)
					: BPF_CORE_READ(tp, lsndtime);
		then = (__u32)bpf_jiffies64() - then;
		if (then > 1 && then < 1u << 31)
			ns -= (then - 1) * SP_NSEC / sp_hz;
	}
	d->known = 1;
	d->is = SP_DIR_SEEK;
	d->idle = dir == SP_DIR_OUT || sp_sock_drained((__u64)sk, tcp);
	d->ns = ns;
	if (c->told) { /* that it is followed: bytes have passed while the probes were being placed
			*/
		c->dim |= 1 << (dir & 1);
		sp_conn_tell(c, (__u64)c->pid << 32, SP_CONN_CODE(SP_CONN_LOST, SP_WHY_GAP, dir),
			     0);
	}
}

SEC("sp_iter")
int sock_iter(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	__u32 pid = sp_scan_pid, *rules, fd = ctx->fd;
	struct sp_conn *c;
	struct sp_sk s;
	bool tcp;

	if (!task || !file || sp_pid_of_task(task) != pid || !sp_sock_of(file, &s))
		return 0;
	rules = bpf_map_lookup_elem(&sp_sock_procs, &pid);
	if (!rules)
		return 0;
	c = sp_conn_get(&s, (__u64)pid << 32, *rules, SP_SIDE_UNKNOWN, fd);
	if (!c || c->kind == SP_KIND_IGNORE)
		return 0;
	tcp = c->family != SP_AF_UNIX;
	sp_scan_dir(c, (struct sock *)s.sk, SP_DIR_IN, tcp);
	sp_scan_dir(c, (struct sock *)s.sk, SP_DIR_OUT, tcp);
	if (c->port)
		sp_conn_announce(c, (__u64)pid << 32, 0);
	return 0;
}

#endif
