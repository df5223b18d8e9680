/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The decoder of sp_zmtp.h. No helper, no map: the kernel and the fuzzer run the same code. */
#ifndef SP_ZMTP_STEP_H
#define SP_ZMTP_STEP_H

#include "sp_zmtp.h"
#include "sp_sock.h" /* enum sp_conn_why */

#ifndef SP_STEP_FN /* the kernel side makes them global functions: verified once each */
#define SP_STEP_FN static inline
#endif

/* Where things stand in a greeting (RFC 37, "The greeting"). */
#define SP_ZMTP_AT_MARK      9 /* 0x7f, behind 0xff and 8 bytes of padding */
#define SP_ZMTP_AT_MAJOR     10
#define SP_ZMTP_AT_MINOR     11
#define SP_ZMTP_AT_MECHANISM 12 /* 20 bytes, zeros behind the name */
#define SP_ZMTP_MECHANISM    20

static inline int sp_zmtp_bad(struct sp_zmtp *z)
{
	z->is = SP_ZMTP_DEAD;
	return SP_ZMTP_BAD;
}

static inline int sp_zmtp_unreadable(struct sp_zmtp *z, __u8 why)
{
	z->is = SP_ZMTP_DEAD;
	z->why = why;
	return SP_ZMTP_UNREADABLE;
}

/*
 * Before 3.0: an unversioned peer (1.0) begins with its identity as a frame: a length, flags 0, or
 * 0xff, 8 bytes of length and flags 0 (libzmq tells them apart by the lowest bit of the tenth
 * byte). Later ones send the signature and a number below 3.
 */
static inline int sp_zmtp_signature(struct sp_zmtp *z, __u8 at, __u8 c)
{
	if (at == 0) {
		z->flags = c; /* 0xff, or a length: the next byte tells */
		return c ? SP_ZMTP_NOTHING : sp_zmtp_bad(z);
	}
	if (at == 1 && z->flags != 0xff)
		return c ? sp_zmtp_bad(z) : sp_zmtp_unreadable(z, SP_WHY_VERSION);
	if (at == SP_ZMTP_AT_MARK && c != 0x7f)
		return c & 1 ? sp_zmtp_bad(z) : sp_zmtp_unreadable(z, SP_WHY_VERSION);
	if (at == SP_ZMTP_AT_MAJOR) {
		z->major = c;
		if (c != 3)
			return sp_zmtp_unreadable(z, SP_WHY_VERSION);
	}
	if (at == SP_ZMTP_AT_MINOR)
		z->minor = c;
	return SP_ZMTP_NOTHING;
}

/* The first 8 bytes as a number, the first lowest. */
static inline __u64 sp_zmtp_word(const char *p)
{
	__u64 w = 0;

#pragma GCC unroll 8
	for (int i = 0; i < 8; i++)
		w |= (__u64)(__u8)p[i] << (8 * i);
	return w;
}

/* The name is complete: zeros are behind it. */
static inline int sp_zmtp_mechanism(struct sp_zmtp *z)
{
	__u64 name = sp_zmtp_word(z->part);

	if (name == sp_zmtp_word("NULL\0\0\0")) {
		z->mechanism = 'N';
		return SP_ZMTP_NOTHING;
	}
	if (name == sp_zmtp_word("PLAIN\0\0")) {
		z->mechanism = 'P';
		return SP_ZMTP_NOTHING;
	}
	if (name == sp_zmtp_word("CURVE\0\0")) {
		z->mechanism = 'C';
		return sp_zmtp_unreadable(z, SP_WHY_CURVE);
	}
	z->mechanism = name == sp_zmtp_word("GSSAPI\0") ? 'G' : '?';
	return sp_zmtp_unreadable(z, SP_WHY_MECHANISM);
}

static inline int sp_zmtp_greet(struct sp_zmtp *z, __u8 c)
{
	__u8 at = z->at, i = at - SP_ZMTP_AT_MECHANISM;

	if (at >= SP_ZMTP_GREET)
		return sp_zmtp_bad(z);
	z->at = at + 1;
	if (at < SP_ZMTP_AT_MECHANISM)
		return sp_zmtp_signature(z, at, c);
	if (i < SP_ZMTP_MECHANISM) {
		/* No name: what libzmq sends to a peer of 2.0 behind its own major number. */
		if (!i && !c)
			return sp_zmtp_unreadable(z, SP_WHY_VERSION);
		if (c && i && z->have < i)
			return sp_zmtp_bad(z);
		z->part[i & (SP_ZMTP_PART - 1)] = (char)c;
		if (c)
			z->have = i + 1;
		return i == SP_ZMTP_MECHANISM - 1 ? sp_zmtp_mechanism(z) : SP_ZMTP_NOTHING;
	}
	/* as-server and the filler: libzmq looks at neither */
	if (z->at < SP_ZMTP_GREET)
		return SP_ZMTP_NOTHING;
	z->is = SP_ZMTP_FLAGS;
	return SP_ZMTP_GREETED;
}

static inline int sp_zmtp_flags(struct sp_zmtp *z, __u8 c)
{
	if (c & ~(SP_ZMTP_F_MORE | SP_ZMTP_F_LONG | SP_ZMTP_F_COMMAND) ||
	    (c & (SP_ZMTP_F_MORE | SP_ZMTP_F_COMMAND)) == (SP_ZMTP_F_MORE | SP_ZMTP_F_COMMAND))
		return sp_zmtp_bad(z);
	__builtin_memset(z->part, 0, sizeof(z->part));
	z->flags = c;
	z->size = 0;
	z->at = 0;
	z->have = 0;
	if (!(c & SP_ZMTP_F_COMMAND))
		z->index = z->more ? z->index + 1 : 0;
	z->is = SP_ZMTP_LENGTH;
	return SP_ZMTP_NOTHING;
}

static inline int sp_zmtp_complete(struct sp_zmtp *z)
{
	z->is = SP_ZMTP_FLAGS;
	if (z->flags & SP_ZMTP_F_COMMAND)
		return SP_ZMTP_COMMAND;
	z->more = z->flags & SP_ZMTP_F_MORE;
	return SP_ZMTP_FRAME;
}

static inline int sp_zmtp_length(struct sp_zmtp *z, __u8 c)
{
	z->size = z->size << 8 | c;
	z->at++;
	if (z->size > SP_ZMTP_SIZE_MAX)
		return sp_zmtp_bad(z);
	if (z->flags & SP_ZMTP_F_LONG && z->at < 8)
		return SP_ZMTP_NOTHING;
	z->left = z->size;
	if (z->size) {
		z->is = SP_ZMTP_BODY;
		return SP_ZMTP_NOTHING;
	}
	return z->flags & SP_ZMTP_F_COMMAND ? sp_zmtp_bad(z) : sp_zmtp_complete(z);
}

static inline int sp_zmtp_body(struct sp_zmtp *z, __u8 c)
{
	__u8 have = z->have;

	/* a command begins with its name's length, and the name */
	if (z->flags & SP_ZMTP_F_COMMAND && !have && (!c || c >= z->size))
		return sp_zmtp_bad(z);
	if (have < SP_ZMTP_PART) {
		z->part[have & (SP_ZMTP_PART - 1)] = (char)c;
		z->have = have + 1;
	}
	if (z->left > 1) {
		z->left--;
		return SP_ZMTP_NOTHING;
	}
	z->left = 0;
	return sp_zmtp_complete(z);
}

/* Take one byte: enum sp_zmtp_did. */
SP_STEP_FN int sp_zmtp_byte(struct sp_zmtp *z, __u32 c)
{
	if (!z)
		return SP_ZMTP_BAD;
	switch (z->is) {
	case SP_ZMTP_GREETING:
		return sp_zmtp_greet(z, (__u8)c);
	case SP_ZMTP_FLAGS:
		return sp_zmtp_flags(z, (__u8)c);
	case SP_ZMTP_LENGTH:
		return sp_zmtp_length(z, (__u8)c);
	case SP_ZMTP_BODY:
		return sp_zmtp_body(z, (__u8)c);
	default:
		return SP_ZMTP_NOTHING;
	}
}

/* How many of the bytes to come need not be looked at: they are the rest of a body of which enough
 * is kept, its last byte excepted (give that one to sp_zmtp_byte). */
static inline __u64 sp_zmtp_skip(const struct sp_zmtp *z)
{
	if (z->is != SP_ZMTP_BODY || z->have < SP_ZMTP_PART || z->left < 2)
		return 0;
	return z->left - 1;
}

/* n bytes, at most sp_zmtp_skip(), have passed. */
static inline void sp_zmtp_skipped(struct sp_zmtp *z, __u64 n)
{
	if (n < z->left)
		z->left -= n;
}

/* Start at a frame's boundary, in the middle of a stream. */
static inline void sp_zmtp_resync(struct sp_zmtp *z)
{
	__builtin_memset(z, 0, sizeof(*z));
	z->is = SP_ZMTP_FLAGS;
}

#endif
