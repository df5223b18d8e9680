/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * ZMTP 3.0 and 3.1 (RFC 23/ZMTP, RFC 37/ZMTP), one direction of one connection, byte by byte
 * (sp_zmtp_step.h). The same code runs in the kernel and, for tests and fuzzing, in user space: no
 * helper, no map, no loop. The caller owns the state (zero: nothing seen yet) and feeds every byte,
 * or skips those that sp_zmtp_skip() does not want to see.
 */
#ifndef SP_ZMTP_H
#define SP_ZMTP_H

#ifndef __BPF__
#include <linux/types.h>
#endif

#define SP_ZMTP_PART     64           /* most bytes kept of a frame: as many as a record holds */
#define SP_ZMTP_GREET    64           /* bytes of a greeting */
#define SP_ZMTP_SIZE_MAX (1ull << 40) /* a frame that claims more is none */

enum sp_zmtp_is {
	SP_ZMTP_GREETING = 0, /* the 64 bytes at the beginning */
	SP_ZMTP_FLAGS,        /* the next byte is a frame's flags */
	SP_ZMTP_LENGTH,
	SP_ZMTP_BODY,
	SP_ZMTP_DEAD, /* BAD or UNREADABLE was given: whatever comes gives NOTHING */
};

/* A frame's flags; the other bits are reserved. */
#define SP_ZMTP_F_MORE    1
#define SP_ZMTP_F_LONG    2
#define SP_ZMTP_F_COMMAND 4

/* What a byte completed. */
enum sp_zmtp_did {
	SP_ZMTP_NOTHING = 0,
	SP_ZMTP_GREETED,    /* the greeting: mechanism and version are known */
	SP_ZMTP_FRAME,      /* a message frame: size, more, index, part[0..have) */
	SP_ZMTP_COMMAND,    /* a command frame (READY, PING, SUBSCRIBE...): no message, not counted:
			       it may stand between two frames of a message. size, part */
	SP_ZMTP_BAD,        /* not ZMTP, or not at a frame's boundary */
	SP_ZMTP_UNREADABLE, /* why (enum sp_conn_why): CURVE, MECHANISM, VERSION */
};

struct sp_zmtp {
	__u64 size;  /* of the frame at hand */
	__u64 left;  /* of its body */
	__u32 index; /* of the frame in its message, from 0 */
	__u8 is;     /* enum sp_zmtp_is */
	__u8 at;     /* bytes of greeting or length seen */
	__u8 flags;  /* of the frame at hand: SP_ZMTP_F_* */
	__u8 have;   /* bytes in part */
	__u8 why;    /* enum sp_conn_why of UNREADABLE */
	__u8 major, minor;
	__u8 mechanism; /* 'N'ULL, 'P'LAIN, 'C'URVE, 'G'SSAPI, '?' */
	__u8 more;      /* of the last complete message frame: another follows */
	__u8 pad[3];
	/* For the caller: whether the message is wanted, which of its frames (as struct
	 * sp_seq_state), kept here so that one map value holds all. */
	__u32 keep;
	__u64 copy;
	/* The first bytes of the frame, zeros behind them; cleared when the next frame begins, or
	 * by the caller before. While the greeting is read: the mechanism's name. */
	char part[SP_ZMTP_PART];
};

#endif
