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
	rec->h.enter_ns = 0;
	rec->h.scope_ns = 0;
	rec->h.count = 0;
	rec->h.posted = 0;
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

/* A composite argument, where the record has room for one. */
static __always_inline long sp_text_put(const struct sp_fetch *f, __u64 obj, void *rec, __u32 cap,
					__u64 *full)
{
	struct sp_dst d = {.rec = rec, .cap = cap};

	return sp_composite(f, obj, &d, full);
}

/* One argument by one program. Its len, or the error. */
static __always_inline long sp_arg_put(const struct sp_fetch *f, const struct sp_call *c, void *rec,
				       __u32 cap, __u64 *val)
{
	__u32 n;

	if (f->type < SP_T_STRING)
		return sp_scalar(f, c, val);
	n = (__u32)f->op[0].n - 1;
	if (f->nops == 1 && f->op[0].code == SP_OP_ARG && n < SP_NREG)
		*val = c->arg[n];
	else if (sp_eval(f, c, val))
		return -SP_EFAULT;
	return sp_text_put(f, *val + f->off, rec, cap, val);
}

/*
 * The fetch program i: how many to advance. What is there already is read off the record, and
 * which failed is kept in its head.
 */
static __always_inline int sp_arg_step(const struct sp_probe *p, __u32 i, const struct sp_call *c,
				       void *to, __u32 cap)
{
	struct sp_rec_hit *rec = to;
	const struct sp_fetch *f;
	__u64 val = 0;
	long len;
	__u32 a;

	if (!p || !c || !rec)
		return 1;
	f = &p->fetch[i & (SP_MAX_FETCH - 1)];
	a = f->arg & (SP_MAX_ARGS - 1);
	if (f->flags & SP_F_COND)
		return sp_cond(f, c) ? 1 : 2;
	if (rec->len[a] >= 0 || rec->len[a] == SP_LEN_EMPTY)
		return 1; /* an alternative before has produced it */
	if (p->flags & SP_P_FRAMES && a == p->frame_arg)
		return 1;
	len = sp_arg_put(f, c, rec, cap, &val);
	rec->val[a] = val;
	rec->len[a] = len;
	rec->alt[a] = i;
	if (len >= 0 || len == SP_LEN_EMPTY)
		rec->h.pad &= ~(1u << a);
	else
		rec->h.pad |= 1u << a;
	return 1;
}

/*
 * Global functions, one for each class of records: the verifier looks at each once and not at every
 * turn of the loop (ten times the work, and the attach waits for it).
 */
__noinline int sp_step_none(const struct sp_probe *p, __u32 i, const struct sp_call *c,
			    struct sp_rec_hit *rec)
{
	return sp_arg_step(p, i, c, rec, 0);
}

#define SP_STEP(class, bytes)                                                                      \
	__noinline int sp_step_##class(const struct sp_probe *p, __u32 i, const struct sp_call *c, \
				       struct sp_rec_##class *rec)                                 \
	{                                                                                          \
		return sp_arg_step(p, i, c, rec, (bytes));                                         \
	}
SP_STEP(small, SP_DATA_SMALL)
SP_STEP(medium, SP_DATA_MEDIUM)
SP_STEP(large, SP_DATA_LARGE)

#define SP_PLAIN_MAX 4 /* more would cost more to verify than they save */
/* The arguments that are no more than a register, up to the first that is more: how many. */
static __always_inline __u32 sp_args_plain(const struct sp_probe *p, const struct sp_call *c,
					   struct sp_rec_hit *rec)
{
	__u32 i;

	for (i = 0; i < SP_PLAIN_MAX; i++) {
		const struct sp_fetch *f = &p->fetch[i];
		__u32 a = f->arg & (SP_MAX_ARGS - 1), n = (__u32)f->op[0].n - 1;

		if (i >= p->nfetch || f->nops != 1 || f->op[0].code != SP_OP_ARG || n >= SP_NREG ||
		    f->flags || f->type >= SP_T_STRING || rec->len[a] != SP_LEN_UNSET)
			break;
		rec->val[a] = sp_extend(f->type, c->arg[n]);
		rec->len[a] = 0;
		rec->alt[a] = i;
	}
	return i;
}

static __always_inline void sp_args_put(const struct sp_probe *p, const struct sp_call *c, void *to,
					__u32 cap)
{
	struct sp_rec_hit *rec = to;
	__u32 i = sp_args_plain(p, c, rec);

	for (int k = 0; k < SP_MAX_FETCH; k++) {
		if (i >= p->nfetch)
			break;
		if (cap == SP_DATA_LARGE)
			i += sp_step_large(p, i, c, to);
		else if (cap == SP_DATA_MEDIUM)
			i += sp_step_medium(p, i, c, to);
		else if (cap == SP_DATA_SMALL)
			i += sp_step_small(p, i, c, to);
		else
			i += sp_step_none(p, i, c, to);
	}
	if (rec->h.pad)
		sp_count(SP_C_READ_FAULT);
	rec->h.pad = 0;
}

static __always_inline void sp_frame(const struct sp_probe *p, const struct sp_frame *fr, void *rec,
				     enum sp_class class)
{
	if (class == SP_CLASS_LARGE)
		sp_frame_large(p, fr, rec);
	else if (class == SP_CLASS_MEDIUM)
		sp_frame_medium(p, fr, rec);
	else
		sp_frame_small(p, fr, rec);
}

/* The record, when the probe's is of this class (a constant). What no probe of the profile needs is
 * not verified. */
static __always_inline bool sp_emit_class(const struct sp_probe *p, __u32 idx, struct sp_call *c,
					  __u64 pid_tgid, const struct sp_frame *fr,
					  enum sp_class class)
{
	__u32 cap = class == SP_CLASS_LARGE    ? SP_DATA_LARGE
		    : class == SP_CLASS_MEDIUM ? SP_DATA_MEDIUM
		    : class == SP_CLASS_SMALL  ? SP_DATA_SMALL
					       : 0;
	struct sp_rec_hit *rec;
	__u64 seq;

	if (!(sp_classes & 1 << class) || p->size_class != class)
		return false;
	seq = sp_next_seq();
	rec = bpf_ringbuf_reserve(&sp_ring, sizeof(*rec) + (cap ? cap + SP_DATA_SLACK : 0), 0);
	if (!rec) {
		sp_count(SP_C_RING_FULL);
		return true;
	}
	/* The ring is larger than the caches: ask early for the line that a text is written to. A
	 * hit with a text takes 30 ns less so. */
	if (cap)
		*(volatile char *)rec->data = 0;
	sp_args_unset(rec);
	sp_rec_head(rec, seq, SP_REC_HIT, pid_tgid);
	rec->h.probe = idx;
	rec->h.nargs = p->nargs;
	rec->h.ndata = class;
	rec->h.enter_ns = c->enter_ns;
	rec->h.scope_ns = c->scope_ns;
	rec->h.count = c->count;
	rec->h.posted = c->posted;
	if (fr && cap && sp_frame_classes & 1 << class && p->flags & SP_P_FRAMES)
		sp_frame(p, fr, rec, class);
	sp_args_put(p, c, rec, cap);
	sp_submit(rec);
	return true;
}

/* A hit of probe idx; fr: the frame that it is, for SP_P_FRAMES, else NULL. */
static __always_inline void sp_emit(const struct sp_probe *p, __u32 idx, struct sp_call *c,
				    __u64 pid_tgid, const struct sp_frame *fr)
{
	if (!sp_emit_class(p, idx, c, pid_tgid, fr, SP_CLASS_NONE) &&
	    !sp_emit_class(p, idx, c, pid_tgid, fr, SP_CLASS_SMALL) &&
	    !sp_emit_class(p, idx, c, pid_tgid, fr, SP_CLASS_MEDIUM))
		sp_emit_class(p, idx, c, pid_tgid, fr, SP_CLASS_LARGE);
}

#endif
