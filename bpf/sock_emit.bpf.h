/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Sockets: records. */
#ifndef SP_SOCK_EMIT_BPF_H
#define SP_SOCK_EMIT_BPF_H

#define SP_CONN_CODE(what, why, dir) ((__u32)(what) | (__u32)(why) << 8 | (__u32)(dir) << 16)

/* A CONN record, whatever has been announced. */
__noinline int sp_conn_emit(const struct sp_conn *c, __u64 pid_tgid, __u32 code, __u64 num)
{
	struct sp_rec_conn *rec;
	__u64 seq;

	if (!c)
		return 0;
	seq = sp_next_seq();
	rec = bpf_ringbuf_reserve(&sp_ring, sizeof(*rec), 0);
	if (!rec) {
		sp_count(SP_C_RING_FULL);
		return 0;
	}
	sp_rec_head((struct sp_rec_hit *)rec, seq, SP_REC_CONN, pid_tgid);
	rec->conn = c->id;
	rec->num = num;
	rec->what = code;
	rec->why = code >> 8;
	rec->dir = code >> 16;
	rec->decode = c->kind == SP_KIND_ZMTP   ? SP_DEC_ZMTP
		      : c->kind == SP_KIND_HTTP ? SP_DEC_HTTP
						: SP_DEC_NONE;
	rec->family = c->family;
	rec->rule = c->rule;
	rec->lport = c->lport;
	rec->rport = c->rport;
	rec->pad = 0;
	rec->fd = c->fd;
	__builtin_memcpy(rec->laddr, c->laddr, sizeof(rec->laddr));
	__builtin_memcpy(rec->raddr, c->raddr, sizeof(rec->raddr));
	sp_submit((struct sp_rec_hit *)rec);
	return 0;
}

static __always_inline void sp_conn_announce(struct sp_conn *c, __u64 pid_tgid, __u64 begun)
{
	if (c->announced)
		return;
	c->announced = 1;
	sp_conn_emit(c, pid_tgid, SP_CONN_CODE(SP_CONN_OPEN, 0, 0), begun);
}

/* Of a connection that user space knows. */
static __always_inline void sp_conn_tell(struct sp_conn *c, __u64 pid_tgid, __u32 code, __u64 num)
{
	if (c->announced)
		sp_conn_emit(c, pid_tgid, code, num);
}

/* dir cannot be followed any more. */
static __always_inline void sp_dir_lost(struct sp_conn *c, struct sp_dir *d, __u64 pid_tgid,
					__u8 dir, __u8 why, __u64 num)
{
	if (d->is == SP_DIR_FOLLOW) {
		sp_conn_tell(c, pid_tgid, SP_CONN_CODE(SP_CONN_LOST, why, dir), num);
		sp_count(why == SP_WHY_FAULT ? SP_C_SOCK_FAULT : SP_C_SOCK_GAP);
		c->dim |= 1 << (dir & 1);
	}
	d->is = SP_DIR_SEEK;
	d->idle = 0;
	d->trial = 0;
	d->begun = 0;
}

static __always_inline void sp_lost(struct sp_conn *c, struct sp_dir *d, const struct sp_io *io,
				    __u8 why, __u64 num)
{
	sp_dir_lost(c, d, io->pid_tgid, io->dir, why, num);
}

/* what: enum sp_http_what, key << 16. What is told is in h. */
__noinline int sp_http_emit(const struct sp_conn *c, const struct sp_http *h, __u64 pid_tgid,
			    __u32 what, __u32 req)
{
	struct sp_rec_http *rec;
	__u32 i = 0;
	__u64 seq;
	const struct sp_sock_rule *rule;

	if (!c || !h)
		return 0;
	i = c->rule;
	rule = bpf_map_lookup_elem(&sp_sock_rules, &i);
	if (!rule)
		return 0;
	seq = sp_next_seq();
	rec = bpf_ringbuf_reserve(&sp_ring, sizeof(*rec), 0);
	if (!rec) {
		sp_count(SP_C_RING_FULL);
		return 0;
	}
	sp_rec_head((struct sp_rec_hit *)rec, seq, SP_REC_HTTP, pid_tgid);
	rec->h.probe = rule->probe;
	rec->conn = c->id;
	rec->num = req;
	rec->req = req;
	rec->what = what;
	rec->code = what == SP_HTTP_REPLY ? h->code : 0;
	rec->key = 0;
	rec->index = 0;
	rec->is_num = 0;
	rec->len = 0;
	rec->chunked = 0;
	__builtin_memset(rec->pad, 0, sizeof(rec->pad));
	__builtin_memset(rec->text, 0, sizeof(rec->text));
	if (what == SP_HTTP_REPLY)
		rec->chunked = h->chunked || h->until_close;
	if ((what & 0xffff) == SP_HTTP_VALUE) {
		rec->what = SP_HTTP_VALUE;
		rec->key = h->key;
		rec->index = what >> 16 ? 0xfffe : (__u16)h->index;
		rec->is_num = h->is_num;
		rec->num = h->num;
	}
	if (what == SP_HTTP_REQUEST || (what == SP_HTTP_VALUE && !h->is_num)) {
		rec->len = h->len;
		__builtin_memcpy(rec->text, h->text, sizeof(rec->text));
	}
	sp_submit((struct sp_rec_hit *)rec);
	return 0;
}

#endif
