/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Sockets: TCP's own changes of state, whatever caused them: a call, a packet, a timer. */
#ifndef SP_SOCK_STATE_BPF_H
#define SP_SOCK_STATE_BPF_H

static __always_inline struct sp_conn *sp_conn_of(__u64 sk)
{
	return bpf_map_lookup_elem(&sp_conns, &sk);
}

/* This side has closed both directions. */
static __always_inline bool sp_tcp_closed(struct sock *sk)
{
	return (BPF_CORE_READ(sk, sk_shutdown) & SP_SHUTDOWN) == SP_SHUTDOWN;
}

SEC("raw_tp/inet_sock_set_state")
int sock_state(struct bpf_raw_tracepoint_args *ctx)
{
	struct sock *sk = (void *)ctx->args[0];
	struct sp_conn *c = sp_conn_of(ctx->args[0]);
	__u64 pid_tgid;
	int now;

	if (!c || c->ended)
		return 0;
	now = ctx->args[2];
	/* the process of the connection: whose turn it happens to be means nothing */
	pid_tgid = (__u64)c->pid << 32;
	if (now == SP_TCP_ESTABLISHED && c->port)
		sp_conn_announce(c, pid_tgid, 1);
	else if (now == SP_TCP_CLOSE_WAIT)
		sp_conn_eof(c, pid_tgid);
	else if (now == SP_TCP_CLOSE)
		sp_conn_end(c, pid_tgid,
			    BPF_CORE_READ(sk, sk_err) ? SP_CONN_RESET : SP_CONN_CLOSED);
	else if (now == SP_TCP_FIN_WAIT1 && c->kind == SP_KIND_HTTP)
		sp_reply_end(c, pid_tgid); /* nothing more will be sent */
	if ((now == SP_TCP_FIN_WAIT1 || now == SP_TCP_LAST_ACK) && sp_tcp_closed(sk))
		sp_conn_end(c, pid_tgid, SP_CONN_CLOSED);
	return 0;
}

SEC("raw_tp/tcp_receive_reset")
int sock_reset(struct bpf_raw_tracepoint_args *ctx)
{
	struct sp_conn *c = sp_conn_of(ctx->args[0]);

	if (c)
		sp_conn_end(c, (__u64)c->pid << 32, SP_CONN_RESET);
	return 0;
}

#endif
