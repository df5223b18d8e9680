/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The interpreter of fetch programs (struct sp_fetch). What is called in many places is a global
 * function: the verifier then looks at it once, not at each call (600,000 instructions otherwise),
 * and knows nothing of its arguments, hence the checks for NULL.
 */
#ifndef SP_FETCH_BPF_H
#define SP_FETCH_BPF_H

#define SP_EFAULT 14
#define SP_E2BIG  7

/* Records with texts (struct sp_rec_hit), as the verifier must know them: with their whole size. */
#define SP_RECORD(name, bytes)                                                                     \
	struct name {                                                                              \
		__u64 hit[sizeof(struct sp_rec_hit) / 8];                                          \
		char data[(bytes) + SP_DATA_SLACK];                                                \
	}
SP_RECORD(sp_rec_small, SP_DATA_SMALL);
SP_RECORD(sp_rec_medium, SP_DATA_MEDIUM);
SP_RECORD(sp_rec_large, SP_DATA_LARGE);

/* Where a composite argument's bytes may go. */
struct sp_dst {
	struct sp_rec_hit *rec;
	__u32 cap; /* bytes of rec->data that the size class has */
};

/* The bytes of a composite argument in the target. */
struct sp_bytes {
	__u64 data;
	__u64 size;
	__u8 flags;  /* of a zmq_msg_t; bit 0: more frames follow */
	__u8 unsure; /* flags are not known */
};

/* zmq_msg_t (libzmq 4.x, src/msg.hpp): the type byte tells where the data is. */
#define SP_ZMQ_SIZE_AT 41 /* size of inline data, then type, then flags */
#define SP_ZMQ_DATA_AT 8  /* inline data, or a pointer */
enum { SP_ZMQ_VSM = 101, SP_ZMQ_LMSG, SP_ZMQ_DELIMITER, SP_ZMQ_CMSG, SP_ZMQ_ZCLMSG };

static __always_inline long sp_zmq_locate(__u64 msg, struct sp_bytes *b)
{
	__u8 tail[4] = {};

	b->unsure = 1;
	if (bpf_probe_read_user(tail, 3, (void *)(msg + SP_ZMQ_SIZE_AT)))
		return -SP_EFAULT;
	b->flags = tail[2];
	b->unsure = tail[1] < SP_ZMQ_VSM || tail[1] > SP_ZMQ_ZCLMSG;
	switch (tail[1]) {
	case SP_ZMQ_VSM:
		b->data = msg + SP_ZMQ_DATA_AT;
		b->size = tail[0];
		return 0;
	case SP_ZMQ_CMSG: /* pointer and size are in the message itself */
		msg += SP_ZMQ_DATA_AT;
		break;
	case SP_ZMQ_LMSG:
	case SP_ZMQ_ZCLMSG: /* it points to a block that begins with pointer and size */
		if (bpf_probe_read_user(&msg, 8, (void *)(msg + SP_ZMQ_DATA_AT)))
			return -SP_EFAULT;
		break;
	default: /* carries no data */
		return -SP_EFAULT;
	}
	return bpf_probe_read_user(b, 16, (void *)msg);
}

/* Where the bytes of a composite object are, and how many there are. */
__noinline int sp_locate(const struct sp_fetch *f, __u64 obj, struct sp_bytes *b)
{
	if (!f || !b)
		return -SP_EFAULT;
	b->flags = 0;
	b->unsure = 0;
	switch (f->type) {
	case SP_T_ZMQMSG:
		return sp_zmq_locate(obj, b);
	case SP_T_STDSTRING: /* libstdc++, new ABI: data pointer, length */
		return bpf_probe_read_user(b, 16, (void *)obj);
	default:
		b->data = obj;
		b->size = f->max;
		return 0;
	}
}

/* The ops of one program; its value, or an error. */
__noinline int sp_eval(const struct sp_fetch *f, const struct sp_call *c, __u64 *out)
{
	__u64 v = 0;

	if (!f || !c || !out)
		return -SP_EFAULT;
	for (int i = 0; i < SP_MAX_OPS; i++) {
		const struct sp_op *op = &f->op[i];
		__u64 from;

		if (i >= f->nops)
			break;
		switch (op->code) {
		case SP_OP_ARG: {
			__u32 n = (__u32)op->n - 1;

			if (n < c->nreg && n < SP_MAX_SAVED) {
				if (c->bad >> n & 1)
					return -SP_EFAULT;
				v = c->arg[n];
				continue;
			}
			from = c->sp + SP_STACK_ARG + 8 * (n - SP_NREG);
			break;
		}
		case SP_OP_STACK:
			from = c->sp + 8 * op->n;
			break;
		case SP_OP_DEREF:
			from = v + op->imm;
			break;
		case SP_OP_RET:
			v = c->ret;
			continue;
		case SP_OP_SP:
			v = c->sp;
			continue;
		case SP_OP_IMM:
			v = op->imm;
			continue;
		case SP_OP_ADD:
			v += op->imm;
			continue;
		case SP_OP_EACH:
			v = c->each[op->n & 1];
			continue;
		default:
			continue;
		}
		if (bpf_probe_read_user(&v, 8, (void *)from))
			return -SP_EFAULT;
	}
	*out = v;
	return 0;
}

/* Bytes of a scalar type: U8 to U64, then S8 to S64, each twice as wide as the one before. */
static __always_inline __u32 sp_width(__u8 type)
{
	return 0x8421u >> 4 * ((type - SP_T_U8) & 3) & 15;
}

/* Bring v to the width and sign of a scalar type. */
static __always_inline __u64 sp_extend(__u8 type, __u64 v)
{
	__u32 off = 64 - 8 * sp_width(type);

	v <<= off;
	return type >= SP_T_S8 ? (__u64)((__s64)v >> off) : v >> off;
}

/* The scalar of one program. */
__noinline int sp_scalar(const struct sp_fetch *f, const struct sp_call *c, __u64 *out)
{
	__u64 v = 0, mem[2] = {}; /* the verifier takes a width for up to 15 */

	if (!f || !c || !out)
		return -SP_EFAULT;
	if (sp_eval(f, c, &v))
		return -SP_EFAULT;
	if (f->flags & SP_F_MEM) {
		/* Both machines are little-endian: the low bytes come first. */
		if (bpf_probe_read_user(mem, sp_width(f->type), (void *)(v + f->off)))
			return -SP_EFAULT;
		v = mem[0];
	}
	*out = sp_extend(f->type, v);
	return 0;
}

/* A condition: false when it is zero (SP_F_ZERO: is not) or cannot be read. */
static __always_inline bool sp_cond(const struct sp_fetch *f, const struct sp_call *c)
{
	__u64 v = 0;

	if (sp_scalar(f, c, &v))
		return false;
	if (f->max)
		v &= f->max;
	return f->flags & SP_F_ZERO ? !v : v;
}

/*
 * Copy n bytes (or a string of at most n with its NUL) from the target to data[at]. The verifier
 * cannot relate two variables, so at + n <= size is shown to it one width at a time: in each class
 * of widths, at is checked against the size less the widest. The record has SP_DATA_SLACK bytes
 * more than its class, so that the rounding never refuses what fits.
 */
#define SP_WIDTH(w)                                                                                \
	if (max <= (w)) {                                                                          \
		asm volatile("" : "+r"(at), "+r"(n));                                              \
		if ((w) > d->cap || at > d->cap + SP_DATA_SLACK - (w) || n > (w))                  \
			return -SP_E2BIG;                                                          \
	} else

static __always_inline long sp_copy(struct sp_dst *d, __u32 at, __u32 max, __u64 n, __u64 from,
				    bool string)
{
	if (!d->cap)
		return -SP_E2BIG;
	if (n > max)
		n = max;
	SP_WIDTH(32)
	SP_WIDTH(64)
	SP_WIDTH(96)
	SP_WIDTH(128)
	SP_WIDTH(160)
	SP_WIDTH(192)
	SP_WIDTH(224)
	SP_WIDTH(256)
	return -SP_E2BIG;
	asm volatile("" : "+r"(at), "+r"(n));
	if (string)
		return bpf_probe_read_user_str(d->rec->data + at, n, (void *)from);
	return bpf_probe_read_user(d->rec->data + at, n, (void *)from);
}

/* A composite argument, whose object is at obj: its bytes to data[], its full length to *full.
 * Bytes copied (> 0), SP_LEN_EMPTY, or the error. */
static __always_inline long sp_composite(const struct sp_fetch *f, __u64 obj, struct sp_dst *d,
					 __u64 *full)
{
	bool string = f->type == SP_T_STRING;
	struct sp_bytes b = {.data = obj, .size = f->max};
	long got;

	if (!string && f->type != SP_T_BYTES && sp_locate(f, obj, &b))
		return -SP_EFAULT;
	*full = b.size;
	if (!b.size)
		return SP_LEN_EMPTY;
	got = sp_copy(d, f->data_at, f->max, b.size, b.data, string);
	if (got < 0)
		return got;
	if (!string)
		return b.size < f->max ? b.size : f->max;
	*full = got > 0 ? got - 1 : 0; /* without the NUL */
	if (got == f->max) {           /* it fits exactly, or there is more */
		char last = 1;

		bpf_probe_read_user(&last, 1, (void *)(b.data + got - 1));
		*full += last != 0;
	}
	return got > 1 ? got - 1 : SP_LEN_EMPTY;
}

#endif
