/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Records: reservation, common head, arguments, submission. */
#ifndef SP_EMIT_BPF_H
#define SP_EMIT_BPF_H

/* Waking the reader costs the traced process 8 to 15 us: only when much is waiting. The reader
 * looks by itself every 10 ms. Asking how much costs 20 ns: only every 64th record does. */
static __always_inline void sp_submit(struct sp_rec_hit *rec)
{
	__u64 flags = BPF_RB_NO_WAKEUP;

	if (!(rec->h.seq & 63) && bpf_ringbuf_query(&sp_ring, BPF_RB_AVAIL_DATA) >= sp_wake_backlog)
		flags = BPF_RB_FORCE_WAKEUP;
	bpf_ringbuf_submit(rec, flags);
}

static __always_inline void sp_rec_head(struct sp_rec_hit *rec, __u64 seq, __u16 type,
					__u64 pid_tgid)
{
	rec->h.seq = seq;
	rec->h.ns = bpf_ktime_get_ns();
	rec->h.pid = pid_tgid >> 32;
	rec->h.tid = (__u32)pid_tgid;
	rec->h.type = type;
	rec->h.probe = 0;
	rec->h.flags = 0;
	rec->h.nargs = 0;
	rec->h.frame = 0;
	rec->h.ndata = 0;
	rec->h.pad = 0;
}

#define SP_LEN_UNSET_4 ((__u64)(__u16)SP_LEN_UNSET * 0x0001000100010001ull)

static __always_inline void sp_args_unset(struct sp_rec_hit *rec)
{
	sp_word *len = (sp_word *)rec->len, *alt = (sp_word *)rec->alt;

	for (int i = 0; i < SP_MAX_ARGS; i++)
		rec->val[i] = 0;
	len[0] = SP_LEN_UNSET_4; /* four at a time */
	len[1] = SP_LEN_UNSET_4;
	*alt = 0;
}

/* One argument by one program. Its len, or the error. */
static __always_inline long sp_arg_put(const struct sp_fetch *f, struct sp_call *c,
				       struct sp_dst *d, __u64 *val)
{
	if (f->flags & SP_F_MEM && f->type < SP_T_STRING)
		return sp_scalar(f, c, val);
	if (sp_value(f, c, val))
		return -SP_EFAULT;
	if (f->type < SP_T_STRING) {
		*val = sp_extend(f->type, *val);
		return 0;
	}
	return sp_composite(f, *val + f->off, d, val);
}

/*
 * All arguments. What is there already is read off the record and which failed is kept in its head:
 * in a local variable it would double the verifier's work at each step.
 */
static __always_inline void sp_args_put(const struct sp_probe *p, struct sp_call *c,
					struct sp_dst *d)
{
	struct sp_rec_hit *rec = d->rec;

	for (__u32 i = 0; i < SP_MAX_FETCH; i++) {
		const struct sp_fetch *f = &p->fetch[i];
		__u32 a = f->arg & (SP_MAX_ARGS - 1);
		__u64 val = 0;
		long len;

		if (i >= p->nfetch)
			break;
		if (f->flags & SP_F_COND) {
			if (sp_scalar(f, c, &val) || !val)
				i++;
			continue;
		}
		if (rec->len[a] >= 0 || rec->len[a] == SP_LEN_EMPTY)
			continue; /* an alternative before has produced it */
		if (p->flags & SP_P_FRAMES && a == p->frame_arg)
			continue;
		len = sp_arg_put(f, c, d, &val);
		rec->val[a] = val;
		rec->len[a] = len;
		rec->alt[a] = i;
		if (len >= 0 || len == SP_LEN_EMPTY)
			rec->h.pad &= ~(1ull << a);
		else
			rec->h.pad |= 1ull << a;
	}
	if (rec->h.pad)
		sp_count(SP_C_READ_FAULT);
	rec->h.pad = 0;
}

/* The ring is larger than the caches: ask early for the lines that a text will be written to (a
 * hit with a text takes 30 ns less so). */
static __always_inline void sp_warm(struct sp_rec_hit *rec)
{
	if (!rec)
		return;
	*(volatile char *)rec->data = 0;
	*(volatile char *)(rec->data + 64) = 0;
}

/* A hit of probe idx; fr: the frame that it is, for SP_P_FRAMES. */
static __noinline void sp_emit(const struct sp_probe *p, __u32 idx, struct sp_call *c,
			       __u64 pid_tgid, const struct sp_frame *fr)
{
	__u64 seq = sp_next_seq();
	struct sp_dst d = {};

	if (p->size_class == 0) {
		d.rec = bpf_ringbuf_reserve(&sp_ring, sizeof(*d.rec), 0);
	} else if (p->size_class == 1) {
		d.cap = SP_DATA_MEDIUM;
		d.rec = bpf_ringbuf_reserve(&sp_ring,
					    sizeof(*d.rec) + SP_DATA_MEDIUM + SP_DATA_SLACK, 0);
		sp_warm(d.rec);
	} else {
		d.cap = SP_DATA_LARGE;
		d.rec = bpf_ringbuf_reserve(&sp_ring,
					    sizeof(*d.rec) + SP_DATA_LARGE + SP_DATA_SLACK, 0);
	}
	if (!d.rec) {
		sp_count(SP_C_RING_FULL);
		return;
	}
	sp_args_unset(d.rec);
	sp_rec_head(d.rec, seq, SP_REC_HIT, pid_tgid);
	d.rec->h.probe = idx;
	d.rec->h.nargs = p->nargs;
	d.rec->h.ndata = p->size_class;
	if (p->flags & SP_P_FRAMES) {
		d.rec->h.flags = fr->flags;
		d.rec->h.frame = fr->index;
		sp_frame_put(p, fr, &d);
	}
	sp_args_put(p, c, &d);
	sp_submit(d.rec);
}

#endif
