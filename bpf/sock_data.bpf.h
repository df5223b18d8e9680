/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Sockets: bytes of one direction. Is it what comes next in the stream? What is spoken? From where
 * on can it be believed?
 */
#ifndef SP_SOCK_DATA_BPF_H
#define SP_SOCK_DATA_BPF_H

#define SP_TLS_HANDSHAKE  0x16 /* first byte of TLS (RFC 8446 5.1) */
#define SP_ZMTP_BEGINS    0xff
#define SP_ZMTP_FLAGS_MAX 6

/* Start a direction's decoder. */
static __always_inline void sp_dir_begin(const struct sp_conn *c, struct sp_dir *d, __u8 dir)
{
	if (c->kind == SP_KIND_HTTP) {
		__builtin_memset(&d->h, 0, sizeof(d->h));
		d->h.reply = dir == SP_DIR_OUT;
	} else {
		__builtin_memset(&d->z, 0, sizeof(d->z));
	}
}

/* ---- what is spoken ----------------------------------------------------------------------------
 */

/* By the first byte of the stream; the rule, or a negative number. */
static __always_inline int sp_rule_of(const struct sp_conn *c, const struct sp_io *io)
{
	for (__u32 i = 0; i < SP_MAX_SOCK_RULES; i++) {
		const struct sp_sock_rule *r;
		__u32 idx = i;

		if (!(c->cand >> i & 1))
			continue;
		r = bpf_map_lookup_elem(&sp_sock_rules, &idx);
		if (!r)
			continue;
		if (!r->bytes)
			return i;
		if (r->decode == SP_DEC_ZMTP ? io->peek == SP_ZMTP_BEGINS
					     : io->dir == SP_DIR_IN && sp_http_begins(io->peek))
			return i;
	}
	return -1;
}

static __always_inline void sp_conn_kind(struct sp_conn *c, __u32 rule)
{
	const struct sp_sock_rule *r = bpf_map_lookup_elem(&sp_sock_rules, &rule);

	c->rule = rule;
	c->kind = r && r->decode == SP_DEC_HTTP ? SP_KIND_HTTP : SP_KIND_ZMTP;
}

/* Both directions from the stream's beginning? The one at hand is. */
static __always_inline bool sp_both_begun(struct sp_conn *c, const struct sp_io *io)
{
	const struct sp_dir *o = &c->dir[!io->dir];
	struct sock *sk = (struct sock *)c->sk;

	if (!io->tcp)
		return c->begun;
	if (o->known)
		return o->begun;
	return sp_tcp_begin(c, c->sk, !io->dir, sp_tcp_pos((struct tcp_sock *)sk, !io->dir));
}

/* The first rule of this decoder that may apply, or a negative number. */
static __always_inline int sp_rule_for(const struct sp_conn *c, __u8 decode)
{
	if (c->kind != SP_KIND_UNKNOWN) {
		__u8 kind = decode == SP_DEC_HTTP ? SP_KIND_HTTP : SP_KIND_ZMTP;

		return c->kind == kind ? c->rule : -1;
	}
	for (__u32 i = 0; i < SP_MAX_SOCK_RULES; i++) {
		const struct sp_sock_rule *r;
		__u32 idx = i;

		if (!(c->cand >> i & 1))
			continue;
		r = bpf_map_lookup_elem(&sp_sock_rules, &idx);
		if (r && r->decode == decode)
			return i;
	}
	return -1;
}

/* The first byte of the stream is known. */
static __always_inline void sp_classify(struct sp_conn *c, struct sp_io *io)
{
	int rule = sp_rule_of(c, io);
	bool both;

	if (rule >= 0) {
		both = sp_both_begun(c, io);
		sp_conn_kind(c, rule);
		sp_conn_announce(c, io->pid_tgid, both);
		sp_conn_emit(c, io->pid_tgid, SP_CONN_CODE(SP_CONN_KIND, 0, 0), both);
		c->told = 1;
		return;
	}
	if (io->peek == SP_TLS_HANDSHAKE && io->dir == SP_DIR_IN &&
	    sp_rule_for(c, SP_DEC_HTTP) >= 0) {
		sp_conn_announce(c, io->pid_tgid, 1);
		sp_conn_emit(c, io->pid_tgid, SP_CONN_CODE(SP_CONN_UNREADABLE, SP_WHY_TLS, 0), 0);
	}
	c->kind = SP_KIND_IGNORE;
}

/* ---- in the middle of a stream -----------------------------------------------------------------
 */

static __always_inline void sp_trusted(struct sp_conn *c, struct sp_dir *d, const struct sp_io *io)
{
	sp_conn_announce(c, io->pid_tgid, 0);
	if (!c->told) {
		c->told = 1;
		sp_conn_emit(c, io->pid_tgid, SP_CONN_CODE(SP_CONN_KIND, 0, 0), 0);
	}
	sp_conn_emit(c, io->pid_tgid, SP_CONN_CODE(SP_CONN_TRUST, 0, io->dir), 0);
	d->is = SP_DIR_FOLLOW;
	d->trial = 0;
	d->fails = 0;
	c->dim &= ~(1 << (io->dir & 1));
}

/* The bytes at hand came after a silence. */
static __always_inline bool sp_idle(const struct sp_dir *d)
{
	return d->idle && bpf_ktime_get_ns() - d->ns >= SP_IDLE_NS;
}

/*
 * Could a request begin here? Believed after a silence, when its whole head follows. A reply: when
 * requests are followed.
 */
__noinline int sp_seek_http(struct sp_conn *c, struct sp_dir *d, struct sp_io *io)
{
	bool out, idle;
	int rule;

	if (!c || !d || !io)
		return 0;
	out = io->dir == SP_DIR_OUT;
	idle = sp_idle(d);
	rule = sp_rule_for(c, SP_DEC_HTTP);
	if (rule < 0 || !sp_http_begins(io->peek))
		return 0;
	if (out ? c->dir[SP_DIR_IN].is != SP_DIR_FOLLOW || c->requests <= c->replies : !idle)
		return 0;
	c->rule = rule;
	c->kind = SP_KIND_HTTP;
	sp_dir_begin(c, d, io->dir);
	return 1;
}

/* Could a frame begin here? */
__noinline int sp_seek_zmtp(struct sp_conn *c, struct sp_dir *d, struct sp_io *io)
{
	const struct sp_sock_rule *r;
	__u32 idx;
	int rule;

	if (!c || !d || !io)
		return 0;
	rule = sp_rule_for(c, SP_DEC_ZMTP);
	if (rule < 0 || (!d->trial && io->peek > SP_ZMTP_FLAGS_MAX))
		return 0;
	idx = rule;
	r = bpf_map_lookup_elem(&sp_sock_rules, &idx);
	if (r && c->rule != 0xff && !(r->dirs >> io->dir & 1)) {
		d->is = SP_DIR_OFF;
		return 0;
	}
	if (!d->trial)
		sp_zmtp_resync(&d->z);
	return 1;
}

/* A message ends with the last byte of the read, and no other is there yet. */
static __always_inline bool sp_zmtp_whole(const struct sp_conn *c, const struct sp_dir *d,
					  const struct sp_io *io)
{
	return !io->bad && !io->fault && d->z.is == SP_ZMTP_FLAGS && !d->z.more &&
	       (io->dir == SP_DIR_OUT || sp_sock_drained(c->sk, io->tcp));
}

/* After a dry run over the call's bytes: 2, believe it, these bytes included; 1: from the next
 * call on; 0: not yet. */
__noinline int sp_seek_judge(struct sp_conn *c, struct sp_dir *d, struct sp_io *io)
{
	bool idle;

	if (!c || !d || !io)
		return 0;
	if (c->kind == SP_KIND_HTTP)
		return io->head && !io->bad && !io->fault ? 2 : 0;
	idle = sp_idle(d);
	if (!sp_zmtp_whole(c, d, io)) {
		d->trial = 0;
		return 0;
	}
	if (idle && io->head == 1 && !d->trial)
		return 2;
	if (d->trial < SP_TRIALS)
		d->trial++;
	return d->trial == SP_TRIALS && c->rule != 0xff;
}

/* It is believed. */
static __always_inline void sp_trust(struct sp_conn *c, struct sp_dir *d, const struct sp_io *io)
{
	if (c->kind == SP_KIND_UNKNOWN)
		sp_conn_kind(c, c->rule);
	if (c->kind == SP_KIND_HTTP && io->dir == SP_DIR_OUT)
		c->replies = c->requests - 1; /* the latest request's: HTTP clients wait */
	else if (c->kind == SP_KIND_HTTP)
		c->replies = c->requests;
	sp_trusted(c, d, io);
}

/* A direction that is not (or no more) followed: may a message begin here? */
__noinline int sp_seek_may(struct sp_conn *c, struct sp_dir *d, struct sp_io *io)
{
	if (!c || !d || !io)
		return 0;
	io->kind = c->kind;
	io->rule = c->rule;
	io->dry = 1;
	io->head = 0;
	return (!d->trial && sp_seek_http(c, d, io)) || sp_seek_zmtp(c, d, io);
}

/* Bytes of a stream that may be of interest pass undecoded: said once. */
static __always_inline void sp_seek_dim(struct sp_conn *c, const struct sp_io *io)
{
	const struct sp_sock_rule *r;
	__u32 idx;
	int rule;

	if (c->dim >> io->dir & 1 || c->kind == SP_KIND_HTTP || c->kind == SP_KIND_IGNORE)
		return;
	rule = sp_rule_for(c, SP_DEC_ZMTP);
	idx = rule;
	r = rule < 0 ? 0 : bpf_map_lookup_elem(&sp_sock_rules, &idx);
	if (!r || !(r->dirs >> io->dir & 1))
		return;
	c->dim |= 1 << io->dir;
	sp_conn_announce(c, io->pid_tgid, 0);
	sp_conn_emit(c, io->pid_tgid, SP_CONN_CODE(SP_CONN_LOST, SP_WHY_BEFORE, io->dir), 0);
}

/* After the dry run. True: its bytes are to be decoded. */
__noinline int sp_seek_done(struct sp_conn *c, struct sp_dir *d, struct sp_io *io, __u32 may)
{
	int judged;

	if (!c || !d || !io)
		return 0;
	judged = may ? sp_seek_judge(c, d, io) : 0;
	if (judged) {
		sp_trust(c, d, io);
		if (judged == 2 && c->kind == SP_KIND_HTTP)
			sp_dir_begin(c, d, io->dir);
		else if (judged == 2)
			sp_zmtp_resync(&d->z);
		return judged == 2;
	}
	if (!may)
		d->trial = 0;
	if (!d->trial) {
		c->kind = io->kind;
		c->rule = io->rule;
		if (d->fails < SP_FAILS)
			d->fails++;
	}
	if (!may && sp_idle(d))
		d->odd++;
	if (d->odd >= SP_ODD && c->kind == SP_KIND_UNKNOWN && !c->port) {
		c->kind = SP_KIND_IGNORE;
		sp_conn_tell(c, io->pid_tgid, SP_CONN_CODE(SP_CONN_TRUST, SP_WHY_NOTHING, io->dir),
			     0);
	}
	sp_seek_dim(c, io);
	return 0;
}

static __always_inline bool sp_seek(struct sp_conn *c, struct sp_dir *d, struct sp_io *io)
{
	int may;

	/* No chain of messages so far: from now on only a silence is waited for. */
	if (d->fails == SP_FAILS && !sp_idle(d))
		return false;
	d->back = io->at;
	may = sp_seek_may(c, d, io);
	if (may)
		sp_pump(c, d, io);
	may = sp_seek_done(c, d, io, may);
	io->at = d->back;
	io->dry = 0;
	io->stop = 0;
	io->fault = 0;
	return may;
}

/* ---- is it what comes next? --------------------------------------------------------------------
 */

/* The last byte of a body that is not looked at: any will do. */
static __always_inline void sp_gap_end(struct sp_conn *c, struct sp_dir *d, struct sp_io *io)
{
	const struct sp_sock_rule *rule;
	__u32 idx = c->rule;
	int did;

	rule = bpf_map_lookup_elem(&sp_sock_rules, &idx);
	if (!rule)
		return;
	if (c->kind == SP_KIND_HTTP) {
		did = sp_http_byte(&d->h, (const struct sp_http_keys *)rule->key, 0);
		if (did)
			sp_http_done(c, d, io, did);
		return;
	}
	did = sp_zmtp_byte(&d->z, 0);
	if (did)
		sp_zmtp_done(c, d, io, did);
}

/* n bytes have passed that no decoder saw: no harm within a body of which nothing is wanted. */
static __always_inline void sp_gap(struct sp_conn *c, struct sp_dir *d, struct sp_io *io, __u64 n,
				   __u8 why)
{
	__u64 skip = d->is == SP_DIR_FOLLOW ? sp_dir_skip(c, d) : 0;

	if (skip && n - 1 <= skip) {
		sp_dir_skipped(c, d, n <= skip ? n : skip);
		if (n > skip)
			sp_gap_end(c, d, io);
		return;
	}
	if (d->is == SP_DIR_FOLLOW || d->is == SP_DIR_SEEK)
		sp_lost(c, d, io, why, n);
	else if (d->is == SP_DIR_NEW)
		d->is = SP_DIR_SEEK;
}

/* Where the bytes stand in the stream. True: at its beginning. */
static __always_inline bool sp_continuity(struct sp_conn *c, struct sp_dir *d, struct sp_io *io)
{
	struct sock *sk = (struct sock *)c->sk;
	__u32 pos, gap;
	bool known = d->known;

	d->known = 1;
	if (!io->tcp)
		return !known && c->begun;
	pos = sp_tcp_pos((struct tcp_sock *)sk, io->dir);
	if (!known) {
		d->pos = pos;
		return sp_tcp_begin(c, c->sk, io->dir, pos - (__u32)io->total);
	}
	gap = pos - (__u32)io->total - d->pos;
	d->pos = pos;
	if (gap == 1 && io->dir == SP_DIR_IN && sp_sock_fin(sk))
		gap = 0;
	if (gap)
		sp_gap(c, d, io, gap, d->why ? d->why : SP_WHY_GAP);
	d->why = 0;
	return false;
}

/* The direction's bytes, by what is known of it. */
static __always_inline void sp_dir_bytes(struct sp_conn *c, struct sp_dir *d, struct sp_io *io,
					 bool begin)
{
	if (d->is == SP_DIR_NEW && !begin)
		d->is = SP_DIR_SEEK;
	if (d->is == SP_DIR_OFF)
		return;
	if (io->unseen) {
		if (d->is != SP_DIR_NEW || c->kind != SP_KIND_UNKNOWN)
			sp_gap(c, d, io, io->total, io->unseen);
		return;
	}
	if (d->is != SP_DIR_FOLLOW && !sp_io_peek(io)) {
		d->is = SP_DIR_SEEK;
		return;
	}
	if (d->is == SP_DIR_NEW) {
		if (c->kind == SP_KIND_UNKNOWN)
			sp_classify(c, io);
		if (c->kind == SP_KIND_IGNORE)
			return;
		sp_dir_begin(c, d, io->dir);
		d->is = SP_DIR_FOLLOW;
		d->begun = 1;
	}
	if (d->is == SP_DIR_SEEK && !sp_seek(c, d, io))
		return;
	sp_pump(c, d, io);
	if (io->fault)
		sp_lost(c, d, io, SP_WHY_FAULT, io->at.left);
}

/* Bytes have moved: the way in of all back ends. */
__noinline int sp_sock_data(struct sp_conn *c, struct sp_io *io)
{
	struct sp_dir *d, *out;
	bool begin;

	if (!c || !io)
		return 0;
	d = &c->dir[io->dir & 1];
	out = &c->dir[SP_DIR_OUT];
	if (!sp_take(&d->busy)) {
		d->raced = 1;
		return 0;
	}
	io->tcp = c->family != SP_AF_UNIX;
	if (c->port)
		sp_conn_announce(c, io->pid_tgid, c->begun);
	begin = sp_continuity(c, d, io);
	sp_dir_bytes(c, d, io, begin);
	if (d->raced) {
		d->raced = 0;
		sp_lost(c, d, io, SP_WHY_RACE, 0);
	}
	/* Which reply is whose is not known any more. */
	if (d->is == SP_DIR_SEEK && c->kind == SP_KIND_HTTP && io->dir == SP_DIR_IN &&
	    out->is == SP_DIR_FOLLOW)
		sp_dir_lost(c, out, io->pid_tgid, SP_DIR_OUT, SP_WHY_GAP, 0);
	if (d->is == SP_DIR_SEEK) {
		d->idle = io->dir == SP_DIR_OUT || sp_sock_drained(c->sk, io->tcp);
		d->ns = bpf_ktime_get_ns();
	}
	sp_give(&d->busy);
	return 0;
}

#endif
