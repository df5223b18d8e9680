/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Sockets: connections, from their first sight to their end. */
#ifndef SP_SOCK_CONN_BPF_H
#define SP_SOCK_CONN_BPF_H

static __always_inline bool sp_in_range(__u16 port, __u16 lo, __u16 hi)
{
	return port >= lo && port <= hi;
}

/* May rule idx apply to the connection? */
__noinline int sp_conn_rule(struct sp_conn *c, __u32 idx)
{
	const struct sp_sock_rule *r = bpf_map_lookup_elem(&sp_sock_rules, &idx);

	if (!c || !r || !r->decode)
		return 0;
	if (r->listen_hi && (c->side == SP_SIDE_CONNECT || c->family == SP_AF_UNIX ||
			     !sp_in_range(c->lport, r->listen_lo, r->listen_hi)))
		return 0;
	if (r->peer_hi &&
	    (c->family == SP_AF_UNIX || !sp_in_range(c->rport, r->peer_lo, r->peer_hi)))
		return 0;
	if (r->decode == SP_DEC_HTTP && c->side == SP_SIDE_CONNECT)
		return 0; /* requests come in */
	c->port |= r->listen_hi || r->peer_hi;
	return 1;
}

/* Of the rules that hold in the process, those that may apply: c->cand. */
static __always_inline void sp_conn_rules(struct sp_conn *c, __u32 rules)
{
	for (__u32 i = 0; i < SP_MAX_SOCK_RULES; i++)
		if (rules >> i & 1 && sp_conn_rule(c, i))
			c->cand |= 1u << i;
	if (!c->cand)
		c->kind = SP_KIND_IGNORE;
}

/* Remove what ended long enough ago. */
__noinline int sp_conn_sweep(void)
{
	struct sp_ended e = {};
	struct sp_conn *c;

	if (bpf_map_pop_elem(&sp_ended, &e))
		return 0;
	if (bpf_ktime_get_ns() - e.ns < SP_ENDED_NS) {
		bpf_map_push_elem(&sp_ended, &e, 0);
		return 0;
	}
	c = bpf_map_lookup_elem(&sp_conns, &e.sk);
	if (c && c->ended && c->ino == e.ino)
		bpf_map_delete_elem(&sp_conns, &e.sk);
	return 0;
}

/* A number that no other connection has. */
static __always_inline __u64 sp_conn_id(__u64 ino)
{
	if (sp_have_seq)
		return __sync_fetch_and_add(&sp_conn_ids, 1) + 1;
	return ino << 40 | (bpf_ktime_get_ns() >> 10 & 0xffffffffffull) | 1;
}

/* A reply without a length ends with the connection. A client that closed before may have waited
 * for it, or have hung up in its middle. */
static __always_inline void sp_reply_end(struct sp_conn *c, __u64 pid_tgid)
{
	struct sp_dir *d = &c->dir[SP_DIR_OUT];

	if (d->is != SP_DIR_FOLLOW || sp_http_eof(&d->h) != SP_HTTP_DID_END)
		return;
	if (c->eof)
		sp_dir_lost(c, d, pid_tgid, SP_DIR_OUT, SP_WHY_OPEN_END, 0);
	else
		sp_http_emit(c, &d->h, pid_tgid, SP_HTTP_REPLY_END, c->replies);
}

/* Has anything been sent that no call was seen to send, as while the probes were being placed? Then
 * who was answered is not known. SYN and FIN take a number each, like a byte. */
static __always_inline void sp_reply_unseen(struct sp_conn *c, __u64 pid_tgid)
{
	struct tcp_sock *tp = (struct tcp_sock *)c->sk;
	struct sp_dir *d = &c->dir[SP_DIR_OUT];
	__u32 pos, n;

	if (c->family == SP_AF_UNIX)
		return;
	pos = sp_tcp_pos(tp, SP_DIR_OUT);
	n = d->known ? pos - d->pos : sp_tcp_before(tp, SP_DIR_OUT, pos);
	if (n > 2)
		sp_conn_tell(c, pid_tgid, SP_CONN_CODE(SP_CONN_LOST, SP_WHY_GAP, SP_DIR_OUT), n);
}

/* The connection is over: what is what, of SP_CONN_CLOSED and RESET. */
__noinline int sp_conn_end(struct sp_conn *c, __u64 pid_tgid, __u32 what)
{
	struct sp_ended e = {};

	if (!c || c->ended)
		return 0;
	c->ended = 1;
	if (c->kind == SP_KIND_HTTP && what == SP_CONN_CLOSED) {
		sp_reply_unseen(c, pid_tgid);
		sp_reply_end(c, pid_tgid);
	}
	sp_conn_tell(c, pid_tgid, SP_CONN_CODE(what, 0, 0), 0);
	e.sk = c->sk;
	e.ino = c->ino;
	e.ns = bpf_ktime_get_ns();
	bpf_map_push_elem(&sp_ended, &e, 0);
	return 0;
}

static __always_inline void sp_conn_eof(struct sp_conn *c, __u64 pid_tgid)
{
	if (c->eof)
		return;
	c->eof = 1;
	sp_conn_tell(c, pid_tgid, SP_CONN_CODE(SP_CONN_EOF, 0, SP_DIR_IN), 0);
}

/* Enter a socket. side and fd: sp_side, fd << 8. */
__noinline int sp_conn_new(const struct sp_sk *s, __u64 pid_tgid, __u32 rules, __u64 side_fd)
{
	struct sp_conn *c, *none;
	__u32 zero = 0;
	struct sock *sk;
	__u16 family;
	__u64 key;
	__u8 state;

	if (!s)
		return 0;
	key = s->sk;
	sk = (struct sock *)key;
	family = BPF_CORE_READ(sk, __sk_common.skc_family);
	state = BPF_CORE_READ(sk, __sk_common.skc_state); /* of unix sockets, too */
	if (state == SP_TCP_LISTEN || state == SP_TCP_CLOSE)
		return 0;
	if (family != SP_AF_UNIX && ((family != SP_AF_INET && family != SP_AF_INET6) ||
				     BPF_CORE_READ(sk, sk_protocol) != SP_IPPROTO_TCP))
		return 0;
	c = bpf_map_lookup_elem(&sp_conns, &key);
	if (c) /* it was closed unseen */
		sp_conn_end(c, pid_tgid, SP_CONN_CLOSED);
	sp_conn_sweep();
	sp_conn_sweep();
	none = bpf_map_lookup_elem(&sp_conn_none, &zero);
	/* One that two enter at once is entered by the first. */
	if (!none || bpf_map_update_elem(&sp_conns, &key, none, c ? BPF_ANY : BPF_NOEXIST)) {
		if (!bpf_map_lookup_elem(&sp_conns, &key))
			sp_count(SP_C_CONN_FULL);
		return 0;
	}
	c = bpf_map_lookup_elem(&sp_conns, &key);
	if (!c)
		return 0;
	c->id = sp_conn_id(s->ino);
	c->sk = key;
	c->ino = s->ino;
	c->pid = pid_tgid >> 32;
	c->fd = side_fd >> 8;
	c->side = side_fd;
	c->begun = c->side != SP_SIDE_UNKNOWN;
	c->rule = 0xff;
	c->family = family;
	sp_sock_names(sk, c);
	sp_conn_rules(c, rules);
	return 0;
}

/* The connection of a socket, entered when it is new. */
static __always_inline struct sp_conn *sp_conn_get(const struct sp_sk *s, __u64 pid_tgid,
						   __u32 rules, enum sp_side side, __u32 fd)
{
	__u64 key = s->sk;
	struct sp_conn *c = bpf_map_lookup_elem(&sp_conns, &key);

	if (c && c->ino == s->ino)
		return c;
	sp_conn_new(s, pid_tgid, rules, (__u64)fd << 8 | side);
	c = bpf_map_lookup_elem(&sp_conns, &key);
	return c && c->ino == s->ino ? c : 0;
}

#endif
