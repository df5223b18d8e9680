/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Frames of multipart messages. A message is kept when its first frame matches one of the probe's
 * heads; of all others not a byte leaves the target. Where the thread stood when the probe was
 * attached is unknown: until the first end of a message, what begins with digits is taken for the
 * rest of a message whose first frame was read before (CUT), and shown as far as it cannot be
 * anybody's text. A frame that cannot be read ends its message: that one was lost is told, once. If
 * it cannot even be known whether it was the last, the next frame is a message's first only if it
 * says so by a word; digits may be the rest of what was lost, and are told as lost too.
 */
#ifndef SP_FRAMES_BPF_H
#define SP_FRAMES_BPF_H

#define SP_CUT_MAX    64 /* longest frame of a CUT message whose bytes are shown */
#define SP_DIGITS_MAX 20 /* 2^64 - 1 has 20 digits */

typedef __u64 __attribute__((may_alias)) sp_word;

/* One frame, and what may be shown of it. */
struct sp_frame {
	struct sp_bytes z;
	bool copy, cut;
	bool more; /* frames of this message follow */
	bool lost; /* it cannot be read */
	__u8 index;
	__u8 flags; /* SP_RF_* */
	__u8 fetch; /* the fetch program it came from */
};

/* The value of fetch program i. */
static __always_inline long sp_arg(const struct sp_probe *p, __u32 i, const struct sp_call *c,
				   __u64 *out)
{
	if (i >= SP_MAX_FETCH)
		return -SP_EFAULT;
	return sp_scalar(&p->fetch[i], c, out);
}

/* What a first frame is. */
enum { SP_IS_DIGITS = 1, SP_IS_HEAD = 2 };

/* Is a first frame 1 to 20 digits, does it fit a head? The head's copy bits to *copy. t: the frame
 * as a literal, zeros behind it. */
static __always_inline int sp_head_of(const struct sp_probe *p, const struct sp_head *t,
				      __u64 *copy)
{
	const sp_word *a = (const sp_word *)t;
	int is = 0;

	if (t->len >= 1 && t->len <= SP_DIGITS_MAX) {
		__u64 bad = 0;

		/* by the sign of differences: a branch would double the verifier's work */
		for (__u64 i = 0; i < SP_DIGITS_MAX; i++)
			bad |= (9 - (__u64)(__u8)(t->lit[i] - '0')) & (i - t->len);
		is = bad >> 63 ? 0 : SP_IS_DIGITS;
	}
	for (int i = 0; i < SP_MAX_HEADS; i++) {
		const struct sp_head *h = &p->head[i];
		const sp_word *b = (const sp_word *)h;
		bool same;

		if (i >= p->nheads)
			break;
		/* kind, len and lit in four words */
		same = h->kind == SP_HEAD_DIGITS
			       ? is
			       : !((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3]));
		if (same) {
			*copy = h->copy;
			return is | SP_IS_HEAD;
		}
	}
	return is;
}

__noinline int sp_head_match(const struct sp_probe *p, const struct sp_bytes *z, __u64 *copy)
{
	struct sp_head t = {.kind = SP_HEAD_LITERAL};

	if (!p || !z || !copy || z->size > SP_HEAD_LEN)
		return 0;
	t.len = z->size;
	if (bpf_probe_read_user(t.lit, t.len & 31, (void *)z->data))
		return -SP_EFAULT;
	return sp_head_of(p, &t, copy);
}

/* Where the frame's bytes are, and whether more frames follow. */
static __always_inline void sp_frame_read(const struct sp_probe *p, const struct sp_call *c,
					  struct sp_frame *fr)
{
	const struct sp_fetch *f = &p->fetch[fr->fetch & (SP_MAX_FETCH - 1)];
	__u64 at = 0, more = 0;

	fr->z.unsure = 1;
	fr->lost = sp_eval(f, c, &at) || sp_locate(f, at + f->off, &fr->z);
	if (p->more_mask)
		fr->z.unsure = sp_arg(p, p->more_fetch, c, &more) != 0;
	more = p->more_mask ? more & p->more_mask : fr->z.flags & 1;
	fr->lost |= fr->z.unsure;
	fr->more = more && !fr->z.unsure;
}

/* A message's first frame: what becomes of the message. */
static __always_inline void sp_frame_first(const struct sp_probe *p, struct sp_seq_state *s,
					   struct sp_frame *fr, bool known)
{
	bool adrift = s->is == SP_SEQ_LOST;
	int is = fr->lost ? -SP_EFAULT : sp_head_match(p, &fr->z, &s->copy);

	s->next = 0;
	s->is = SP_SEQ_DROP;
	if (is < 0 || (adrift && is == (SP_IS_HEAD | SP_IS_DIGITS)))
		fr->lost = true;
	else if (is & SP_IS_HEAD)
		s->is = SP_SEQ_KEEP;
	else if (!known && is & SP_IS_DIGITS)
		s->is = SP_SEQ_CUT;
}

/* The state after this frame. Is it wanted, or its loss to be told? */
static __always_inline bool sp_frame_step(const struct sp_probe *p, struct sp_seq_state *s,
					  struct sp_frame *fr, bool known)
{
	bool told;

	if (s->is == SP_SEQ_START || s->is == SP_SEQ_LOST) {
		sp_frame_first(p, s, fr, known);
		told = fr->lost || s->is != SP_SEQ_DROP;
	} else {
		told = s->is != SP_SEQ_DROP;
	}
	fr->index = s->next < 255 ? s->next : 255;
	fr->cut = s->is == SP_SEQ_CUT;
	fr->copy =
		fr->cut ? fr->z.size <= SP_CUT_MAX : s->next < 64 && s->copy >> (s->next & 63) & 1;
	fr->flags = (fr->more ? SP_RF_MORE : 0) | (fr->cut ? SP_RF_CUT : 0);
	s->next++;
	if (fr->z.unsure)
		s->is = SP_SEQ_LOST;
	else if (!fr->more)
		s->is = SP_SEQ_START;
	else if (fr->lost)
		s->is = SP_SEQ_DROP;
	return told;
}

/* Advance the thread's place in its message by this frame. True: there is something to tell. */
__noinline int sp_frame_next(const struct sp_probe *p, const struct sp_call *c, __u32 tid,
			     __u32 probe, struct sp_frame *fr)
{
	struct sp_seq_key key = {.tid = tid, .probe = probe};
	struct sp_seq_state fresh = {}, *s;
	bool known, told;

	if (!p || !c || !fr)
		return false;
	fr->fetch = p->frame_fetch;
	if (fr->fetch >= SP_MAX_FETCH)
		return false;
	if (sp_arg(p, p->sock_fetch, c, &key.sock)) {
		sp_count(SP_C_READ_FAULT);
		fr->lost = true;
		return true;
	}
	sp_frame_read(p, c, fr);
	if (fr->lost)
		sp_count(SP_C_READ_FAULT);
	s = bpf_map_lookup_elem(&sp_frames, &key);
	known = s != 0;
	if (!s)
		s = &fresh;
	asm volatile("" : "+r"(s)); /* the check stays before the use */
	told = sp_frame_step(p, s, fr, known);
	if (!known && bpf_map_update_elem(&sp_frames, &key, s, BPF_ANY))
		sp_count(SP_C_FRAME_FULL);
	if (!told)
		sp_count(SP_C_FRAMES_DROPPED);
	return told;
}

struct sp_cut {
	__u8 ch[SP_CUT_MAX];
};

/* A table: what is decided by branches or sums is decided 64 times over by the verifier too. */
static const __u8 sp_plain[256] = {
	['-'] = 1,         ['.'] = 1, ['0' ... '9'] = 1, [':'] = 1,
	['A' ... 'Z'] = 1, ['_'] = 1, ['a' ... 'z'] = 1,
};

/* Are the first n bytes only characters of numbers, addresses and names: [A-Za-z0-9_.:-]? */
__noinline int sp_cut_plain(const struct sp_cut *b, __u32 n)
{
	__u8 plain = 1;

	if (!b)
		return 0;
	for (__u32 i = 0; i < SP_CUT_MAX; i++) {
		if (i >= n)
			break;
		plain &= sp_plain[b->ch[i]];
	}
	return plain;
}

/* The frame's place in the record: length always, bytes where wanted. */
static __always_inline void sp_frame_put(const struct sp_probe *p, const struct sp_frame *fr,
					 struct sp_dst *d)
{
	const struct sp_fetch *f = &p->fetch[fr->fetch & (SP_MAX_FETCH - 1)];
	__u32 arg = p->frame_arg & (SP_MAX_ARGS - 1), at = f->data_at;
	__u64 n = fr->z.size;
	long got = SP_LEN_UNSET;
	bool want = fr->copy;

	d->rec->h.flags = fr->flags;
	d->rec->h.frame = fr->index;
	d->rec->val[arg] = n;
	d->rec->alt[arg] = fr->fetch;
	if (fr->lost) {
		d->rec->len[arg] = -SP_EFAULT;
		return;
	}
	if (!n) {
		d->rec->len[arg] = SP_LEN_EMPTY;
		return;
	}
	/* What is checked below must be checked whole. */
	if (fr->cut && (n > f->max || !d->cap || at > d->cap + SP_DATA_SLACK - SP_CUT_MAX))
		want = false;
	if (want) {
		got = sp_copy(d, at, f->max, n, fr->z.data, false);
		if (!got)
			got = n < f->max ? n : f->max;
		else
			sp_count(SP_C_READ_FAULT);
	}
	if (want && fr->cut && got > 0) {
		struct sp_cut *b;

		asm volatile("" : "+r"(at)); /* as in SP_WIDTH */
		if (at > d->cap + SP_DATA_SLACK - SP_CUT_MAX)
			return;
		b = (void *)d->rec->data + at;
		if (!sp_cut_plain(b, got)) {
			for (int i = 0; i < SP_CUT_MAX; i++)
				b->ch[i] = 0;
			got = SP_LEN_UNSET;
		}
	}
	d->rec->len[arg] = got;
}

/* Global functions, one for each class: see sp_step_none. */
#define SP_FRAME(class, bytes)                                                                     \
	__noinline int sp_frame_##class(const struct sp_probe *p, const struct sp_frame *fr,       \
					struct sp_rec_##class *rec)                                \
	{                                                                                          \
		struct sp_dst d = {.rec = (struct sp_rec_hit *)rec, .cap = (bytes)};               \
                                                                                                   \
		if (p && fr && rec)                                                                \
			sp_frame_put(p, fr, &d);                                                   \
		return 0;                                                                          \
	}
SP_FRAME(small, SP_DATA_SMALL)
SP_FRAME(medium, SP_DATA_MEDIUM)
SP_FRAME(large, SP_DATA_LARGE)

#endif
