/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * ZMTP on a socket. A wanted message's frames leave as those of a uprobe do (frames.bpf.h): the
 * same heads, the same record.
 */
#ifndef SP_SOCK_ZMTP_BPF_H
#define SP_SOCK_ZMTP_BPF_H

/* Does the message's first frame, complete in z, fit a head of this probe? */
__noinline int sp_zmtp_head(const struct sp_probe *p, struct sp_zmtp *z)
{
	struct sp_head t = {.kind = SP_HEAD_LITERAL};
	__u64 copy = 0;

	if (!p || !z || z->size > SP_HEAD_LEN)
		return 0;
	t.len = z->size;
	if (bpf_probe_read_kernel(t.lit, t.len & 31, z->part))
		return 0;
	if (!(sp_head_of(p, &t, &copy) & SP_IS_HEAD))
		return 0;
	z->copy = copy;
	return 1;
}

/* The bytes of the frame to data[at]. See sp_copy: the two are checked one width at a time. */
static __always_inline long sp_part_put(struct sp_rec_hit *rec, __u32 cap, __u32 at, __u32 max,
					const struct sp_zmtp *z)
{
	__u32 n = z->have < max ? z->have : max;
	long got = n;

	if (max > SP_ZMTP_PART)
		max = SP_ZMTP_PART;
	if (max <= 32) {
		asm volatile("" : "+r"(at), "+r"(n));
		if (at > cap + SP_DATA_SLACK - 32 || n > 32)
			return -SP_E2BIG;
		bpf_probe_read_kernel(rec->data + at, n, z->part);
	} else {
		asm volatile("" : "+r"(at), "+r"(n));
		if (at > cap + SP_DATA_SLACK - 64 || n > 64)
			return -SP_E2BIG;
		bpf_probe_read_kernel(rec->data + at, n, z->part);
	}
	return got;
}

static __always_inline void sp_zmtp_put(const struct sp_conn *c, const struct sp_zmtp *z,
					const struct sp_probe *p, void *to, __u32 cap, __u8 flags)
{
	const struct sp_fetch *f = &p->fetch[p->frame_fetch & (SP_MAX_FETCH - 1)];
	__u32 arg = p->frame_arg & (SP_MAX_ARGS - 1), sock = p->sock_arg & (SP_MAX_ARGS - 1);
	struct sp_rec_hit *rec = to;
	long got = SP_LEN_UNSET;

	rec->h.nargs = p->nargs;
	rec->h.ndata = p->size_class;
	rec->h.flags = flags;
	rec->h.frame = z->index < 255 ? z->index : 255;
	rec->val[sock] = c->id;
	rec->len[sock] = 0;
	rec->val[arg] = z->size;
	rec->alt[arg] = p->frame_fetch;
	if (!z->size)
		got = SP_LEN_EMPTY;
	else if (z->index < 64 && z->copy >> (z->index & 63) & 1)
		got = sp_part_put(rec, cap, f->data_at, f->max, z);
	rec->len[arg] = got;
}

/* The record, when the probe's is of this class (a constant). */
static __always_inline bool sp_zmtp_class(const struct sp_conn *c, const struct sp_zmtp *z,
					  const struct sp_probe *p, __u32 idx, __u64 pid,
					  __u8 flags, enum sp_class class)
{
	__u32 cap = class == SP_CLASS_LARGE    ? SP_DATA_LARGE
		    : class == SP_CLASS_MEDIUM ? SP_DATA_MEDIUM
					       : SP_DATA_SMALL;
	struct sp_rec_hit *rec;
	__u64 seq;

	if (!(sp_frame_classes & 1 << class) || p->size_class != class)
		return false;
	seq = sp_next_seq();
	rec = bpf_ringbuf_reserve(&sp_ring, sizeof(*rec) + cap + SP_DATA_SLACK, 0);
	if (!rec) {
		sp_count(SP_C_RING_FULL);
		return true;
	}
	sp_args_unset(rec);
	/* Whoever reads the socket is not the thread that acts on the message. */
	sp_rec_head(rec, seq, SP_REC_HIT, pid);
	rec->h.probe = idx;
	sp_zmtp_put(c, z, p, rec, cap, flags);
	sp_submit(rec);
	return true;
}

__noinline int sp_zmtp_emit(const struct sp_conn *c, const struct sp_zmtp *z, __u32 idx,
			    __u64 pid_tgid, __u32 flags)
{
	__u64 pid = pid_tgid & ~0xffffffffull;
	const struct sp_probe *p;

	if (!c || !z)
		return 0;
	p = bpf_map_lookup_elem(&sp_probes, &idx);
	if (p && !sp_zmtp_class(c, z, p, idx, pid, flags, SP_CLASS_SMALL) &&
	    !sp_zmtp_class(c, z, p, idx, pid, flags, SP_CLASS_MEDIUM))
		sp_zmtp_class(c, z, p, idx, pid, flags, SP_CLASS_LARGE);
	return 0;
}

/* The rule whose heads a message of an unclassified connection fits; dry runs only. */
static __always_inline bool sp_zmtp_fits(struct sp_conn *c, struct sp_zmtp *z)
{
	for (__u32 i = 0; i < SP_MAX_SOCK_RULES; i++) {
		const struct sp_sock_rule *rule;
		const struct sp_probe *p;
		__u32 idx = i;

		if (!(c->cand >> i & 1) || (c->rule != 0xff && c->rule != i))
			continue;
		rule = bpf_map_lookup_elem(&sp_sock_rules, &idx);
		if (!rule || rule->decode != SP_DEC_ZMTP)
			continue;
		idx = rule->probe;
		p = bpf_map_lookup_elem(&sp_probes, &idx);
		if (p && sp_zmtp_head(p, z)) {
			c->rule = i;
			return true;
		}
	}
	return false;
}

/* A message frame is complete. */
static __always_inline void sp_zmtp_frame(struct sp_conn *c, struct sp_zmtp *z,
					  const struct sp_sock_rule *rule, const struct sp_io *io)
{
	__u32 idx = rule->probe;

	if (!z->index) {
		const struct sp_probe *p = bpf_map_lookup_elem(&sp_probes, &idx);

		z->keep = p && sp_zmtp_head(p, z) ? SP_SEQ_KEEP : SP_SEQ_DROP;
	}
	if (z->keep == SP_SEQ_KEEP)
		sp_zmtp_emit(c, z, idx, io->pid_tgid,
			     (z->more ? SP_RF_MORE : 0) | (io->dir == SP_DIR_OUT ? SP_RF_OUT : 0));
	else
		sp_count(SP_C_FRAMES_DROPPED);
}

/* What a byte completed (did is not NOTHING). True: look at no more bytes. */
__noinline int sp_zmtp_done(struct sp_conn *c, struct sp_dir *d, struct sp_io *io, __u32 did)
{
	const struct sp_sock_rule *rule;
	__u32 i;

	if (!c || !d || !io)
		return 1;
	if (io->dry) {
		if (did == SP_ZMTP_FRAME && !d->z.index && !io->head)
			io->head = sp_zmtp_fits(c, &d->z) ? 1 : 2;
		io->bad = did == SP_ZMTP_BAD || did == SP_ZMTP_UNREADABLE;
		__builtin_memset(d->z.part, 0, sizeof(d->z.part));
		return io->bad;
	}
	i = c->rule;
	rule = bpf_map_lookup_elem(&sp_sock_rules, &i);
	if (!rule)
		return 1;
	switch (did) {
	case SP_ZMTP_GREETED:
		if (rule->dirs >> io->dir & 1)
			return 0;
		d->is = SP_DIR_OFF; /* what travels here is not asked for */
		return 1;
	case SP_ZMTP_FRAME:
		sp_zmtp_frame(c, &d->z, rule, io);
		/* fallthrough */
	case SP_ZMTP_COMMAND:
		__builtin_memset(d->z.part, 0, sizeof(d->z.part));
		return 0;
	case SP_ZMTP_UNREADABLE:
		if (c->dir[0].is != SP_DIR_OFF || c->dir[1].is != SP_DIR_OFF)
			sp_conn_tell(c, io->pid_tgid,
				     SP_CONN_CODE(SP_CONN_UNREADABLE, d->z.why, io->dir), 0);
		c->dir[0].is = SP_DIR_OFF;
		c->dir[1].is = SP_DIR_OFF;
		return 1;
	default:
		sp_lost(c, d, io, SP_WHY_BAD, 0);
		return 1;
	}
}

/* Nobody wants the bytes of the frame: a first one too long for any head, one of a message whose
 * first fitted none, one of which only the length counts. */
static __always_inline bool sp_zmtp_unwanted(const struct sp_zmtp *z)
{
	if (!z->index)
		return z->size > SP_HEAD_LEN;
	if (z->keep == SP_SEQ_KEEP)
		return z->index >= 64 || !(z->copy >> (z->index & 63) & 1);
	return z->keep == SP_SEQ_DROP;
}

/* How many of the bytes to come need not be looked at; the last of a frame is. */
static __always_inline __u64 sp_zmtp_pass(const struct sp_zmtp *z)
{
	if (z->is == SP_ZMTP_BODY && z->left > 1 && !(z->flags & SP_ZMTP_F_COMMAND) &&
	    sp_zmtp_unwanted(z))
		return z->left - 1;
	return sp_zmtp_skip(z);
}

/* The block's bytes, up to where a body can be skipped. True: no more bytes are wanted. */
__noinline int sp_zmtp_feed(struct sp_conn *c, struct sp_dir *d, struct sp_block *b,
			    struct sp_io *io)
{
	if (!c || !d || !b || !io)
		return 1;
	for (int i = 0; i < SP_FEED; i++) {
		__u32 at = b->at;
		int did;

		if (at >= b->n)
			break;
		b->at = at + 1;
		did = sp_zmtp_byte(&d->z, (__u8)b->data[at & (SP_BLOCK - 1)]);
		if (did && sp_zmtp_done(c, d, io, did))
			return 1;
		if (sp_zmtp_pass(&d->z))
			break;
	}
	return 0;
}

#endif
