/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The contract between bpf/ and user/: probe programs (compiled in user space, interpreted in the
 * kernel), records (kernel to user, through the ring buffer), maps' keys and values, counters.
 * Everything here has the same layout on x86-64 and arm64. Times are CLOCK_MONOTONIC nanoseconds.
 */
#ifndef SP_SHARED_H
#define SP_SHARED_H

#ifndef __BPF__
#include <linux/types.h>
#endif

#define SP_MAX_PROBES 128 /* probes of one profile, those of its groups included */
#define SP_MAX_ARGS   8   /* arguments of one probe */
#define SP_MAX_FETCH                                                                               \
	16              /* fetch programs of one probe: arguments x alternatives, plus conditions  \
			 */
#define SP_MAX_OPS   6  /* steps of one fetch program */
#define SP_MAX_SAVED 10 /* $arg1..$arg10: what an entry keeps for the return */
#define SP_MAX_HEADS 8  /* first-frame patterns of one probe */
#define SP_HEAD_LEN  30 /* longest literal of a first frame */
/* Bytes for texts in a record, by its class (enum sp_class): smaller ones cost the target less. */
#define SP_DATA_SMALL  64
#define SP_DATA_MEDIUM 128
#define SP_DATA_LARGE  512
#define SP_SLOT_MAX    256 /* most bytes copied for one argument */
#define SP_DATA_SLACK  32  /* bytes a record with data has beyond its class; see bpf/fetch.bpf.h */

/* One step of a fetch program. It works on one 64-bit value v, which starts as 0. */
enum sp_op_code {
	SP_OP_NOP = 0,
	SP_OP_ARG,   /* v = argument n (1-based) as it was at function entry, registers or stack */
	SP_OP_RET,   /* v = return value (return and ret probes only) */
	SP_OP_STACK, /* v = the n-th 8-byte word above the stack pointer of function entry */
	SP_OP_SP,    /* v = the stack pointer of function entry */
	SP_OP_IMM,   /* v = imm */
	SP_OP_DEREF, /* v = 8 bytes read at v + imm */
	SP_OP_ADD,   /* v += imm: what is left of an outermost +OFF() of a composite type */
	SP_OP_EACH,  /* v = address of the element at hand (n = 0), of the outer one (n = 1) */
};

struct sp_op {
	__u8 code; /* enum sp_op_code */
	__u8 n;
	__u16 pad;
	__s32 imm;
};

enum sp_type {
	SP_T_U8 = 1,
	SP_T_U16,
	SP_T_U32,
	SP_T_U64,
	SP_T_S8,
	SP_T_S16,
	SP_T_S32,
	SP_T_S64,
	SP_T_STRING = 16, /* NUL-terminated bytes at v */
	SP_T_STDSTRING,   /* std::string (new ABI) object at v: data pointer +0, length +8 */
	SP_T_BYTES,       /* max bytes at v */
	SP_T_ZMQMSG,      /* zmq_msg_t object at v */
};

/*
 * One fetch program. For a scalar type with SP_F_MEM the last step was an outermost +OFF(): the
 * interpreter reads sizeof(type) bytes at v + off. Without it, v itself is truncated to the type.
 * For composite types v + off is the address of the object.
 * A program with SP_F_COND produces no argument: when it is zero or cannot be read, the program
 * after it is skipped; with a mask (max, 0: none) only these bits of it count; with SP_F_ZERO it
 * holds when it is zero. Programs with the same arg are alternatives: the first that can be read
 * wins.
 */
#define SP_F_MEM  1
#define SP_F_COND 2
#define SP_F_ZERO 4
struct sp_fetch {
	struct sp_op op[SP_MAX_OPS];
	__s32 off;
	__u8 nops;
	__u8 type;     /* enum sp_type */
	__u8 arg;      /* which argument this produces */
	__u8 flags;    /* SP_F_* */
	__u16 max;     /* composite: most bytes to copy, <= SP_SLOT_MAX, a multiple of 8 */
	__u16 data_at; /* composite: where in the record's data[] they go */
};

/* How the first frame of a multipart message is recognised (frames: in the profile). */
enum sp_head_kind {
	SP_HEAD_LITERAL = 1, /* the whole frame equals lit[0..len) */
	SP_HEAD_DIGITS,      /* 1 to 20 ASCII digits: a room */
};
struct sp_head {
	__u8 kind; /* enum sp_head_kind, 0: unused */
	__u8 len;
	char lit[SP_HEAD_LEN];
	__u64 copy; /* bit i: bytes of frame i are wanted; else only its length travels */
};

enum sp_class {
	SP_CLASS_NONE = 0, /* no texts */
	SP_CLASS_SMALL,
	SP_CLASS_MEDIUM,
	SP_CLASS_LARGE
};

/* What one probe does at a hit. Value of the array map sp_probes, index = probe. */
#define SP_P_DROP_NEGATIVE 1  /* return value (s32) < 0: not an event, look no further */
#define SP_P_ON_CHANGE     2  /* emit only when the return value differs from the last for op_arg */
#define SP_P_CLEAR_POLL    4  /* forget the remembered answer of op_arg */
#define SP_P_FRAMES        8  /* frame_arg is one frame of a multipart message */
#define SP_P_DROP_ZERO     16 /* return value (s32) 0: not an event, look no further */
#define SP_P_SCOPE                                                                                 \
	32 /* a call that carries a room or an operation: what runs inside it is its own */
#define SP_P_SCOPED 64  /* its records say which call encloses them (sp_rec.scope_ns) */
#define SP_P_EACH   128 /* a record for each element: struct sp_each */
struct sp_probe {
	struct sp_fetch fetch[SP_MAX_FETCH];
	struct sp_head head[SP_MAX_HEADS];
	__u32 flags;     /* SP_P_* */
	__u32 more_mask; /* SP_P_FRAMES: bits of argument more_arg that mean "more follow";
			    0: the message's own flag (zmq_msg_t byte 43, bit 0) */
	__u8 nfetch;
	__u8 nargs;
	__u8 nheads;
	__u8 size_class; /* enum sp_class */
	__u8 op_arg;     /* for ON_CHANGE and CLEAR_POLL: index of the argument */
	__u8 frame_arg;
	__u8 more_arg;
	__u8 sock_arg; /* SP_P_FRAMES: the socket, part of the sequence's key */
	__u8 nsaved;   /* a return probe saves $arg1..$argN, N = nsaved */
	/* Index of the first fetch program of each of these arguments, SP_MAX_FETCH: none. Set when
	 * the programs are loaded. */
	__u8 op_fetch, frame_fetch, more_fetch, sock_fetch;
	__u8 pad[3];
};

/*
 * Probes that look at several elements (SP_P_EACH). Value of the array map sp_each_of, index =
 * probe. A second level's expressions may use the first level's element ($each of its own level is
 * SP_OP_EACH 0, of the outer one 1).
 */
/* Elements looked at in one hit, over both levels; more: SP_C_EACH_CUT. */
#define SP_EACH_MAX 512
enum sp_each_kind {
	SP_EACH_NONE = 0,
	SP_EACH_LIST,  /* from base while not 0, the next one's address at element + next */
	SP_EACH_COUNT, /* count elements of stride bytes from base */
	SP_EACH_END,   /* from base to below count (an address), stride bytes each */
};
struct sp_each_level {
	struct sp_fetch base, count; /* scalars; count unused for a list */
	/* stride: bytes of an element; when it is not fixed (0), (count - base) / this fetch */
	struct sp_fetch number;
	__u32 kind; /* enum sp_each_kind */
	__u32 stride;
	__s32 next;
	__u32 pad;
};
#define SP_TALLY_NONE 0
#define SP_TALLY_POST 1 /* each element is a piece of work posted; asks: a completion will come */
#define SP_TALLY_DONE                                                                              \
	2 /* each element is a completion; failed by `only`; asks: it counts at all                \
	   */
#define SP_TALLY_END                                                                               \
	3 /* each element that `only` and asks let pass is a key that is over: it counts anew */
struct sp_each {
	struct sp_each_level level[2];
	struct sp_fetch only; /* a condition: an element without it gives no record */
	struct sp_fetch asks; /* a condition of the tally */
	/* SP_TALLY_POST, of a call that failed: the address of the first element not posted */
	struct sp_fetch refused;
	__u8 nlevels;
	__u8 first; /* one record, of the first element that qualifies; its count: of all elements
		     */
	__u8 has_only; /* only is set */
	__u8 has_asks;
	__u8 has_refused;
	__u8 tally;     /* SP_TALLY_* */
	__u8 tally_arg; /* index of the argument that is the key, a scalar */
	__u8 tally_id;  /* which tally of the profile: probes of one tally share it */
	/* Index of the key's first fetch program, SP_MAX_FETCH: none. Set when it is loaded. */
	__u8 tally_fetch;
	/* What the key is unique in (a device), the same way. */
	__u8 has_within;
	__u8 within_arg;
	__u8 within_fetch;
};
/* What is posted and not completed. Map sp_tallies. Counted at a post's entry (before anybody can
 * poll the completion); of a post that fails what was not posted is taken back. */
#define SP_MAX_TALLIES 8192 /* keys, over all processes */
struct sp_tally_key {
	__u64 key;
	__u64 within; /* 0: the key is the process's */
	__u32 pid;
	__u32 id; /* sp_each.tally_id */
};
struct sp_tally {
	__u64 posted;    /* elements */
	__u64 asked;     /* of these, with a completion to come */
	__u64 completed; /* since the attach */
	__u64 failed;    /* of these */
	/* The most that completions were ever ahead of what was posted, and of what was asked: so
	 * many were posted before the attach, or not asked for. */
	__u64 early, early_asked;
	__u64 post_ns, done_ns; /* the last of each */
	__u32 tid;              /* who posted last */
	__u32 pad;
};

/* Cookie of an attached probe: which probe, what to do there, and how far the stack has moved. */
enum sp_site {
	SP_SITE_ENTRY = 0, /* fetch and emit */
	SP_SITE_SAVE,      /* keep the arguments for RETURN or RET */
	SP_SITE_RETURN,    /* uretprobe */
	SP_SITE_RET,       /* uprobe on a ret instruction */
};
#define SP_COOKIE(probe, site, shift) ((__u64)(probe) | (__u64)(site) << 16 | (__u64)(shift) << 24)
#define SP_COOKIE_PROBE(c)            ((__u32)((c)&0xffff))
#define SP_COOKIE_SITE(c)             ((__u32)((c) >> 16 & 0xff))
#define SP_COOKIE_SHIFT(c)            ((__u32)((c) >> 24 & 0xff)) /* 8-byte words pushed so far */

enum sp_rec_type {
	SP_REC_HIT = 1, /* struct sp_rec_hit */
	SP_REC_FORK,    /* pid = parent, val[0] = child pid (0: not known in this pid namespace) */
	SP_REC_EXEC,    /* pid has another program now */
	SP_REC_EXIT,    /* thread tid has ended; val[0] = 1 when it was the last of its process */
	SP_REC_CONN,    /* struct sp_rec_conn (sp_sock.h) */
	SP_REC_HTTP,    /* struct sp_rec_http */
};

/* Every record begins so. 56 bytes. */
#define SP_RF_MORE 1 /* frames: more frames of this message follow */
#define SP_RF_CUT  2 /* frames: the first frame seen was not the message's first */
#define SP_RF_OUT  4 /* frames on a socket: sent by the watched process; else received */
struct sp_rec {
	__u64 seq; /* taken before the reservation; 0 where the kernel cannot (see sp_have_seq) */
	__u64 ns;
	__u32 pid; /* process and thread, in silentpin's pid namespace */
	__u32 tid;
	__u16 type;
	__u16 probe;
	__u8 flags; /* SP_RF_* */
	__u8 nargs;
	__u8 frame; /* frames: index of this frame in its message, from 0; CUT: from first seen */
	__u8 ndata; /* enum sp_class */
	__u64 enter_ns; /* a return: when the call was entered; 0 not known */
	__u64 scope_ns; /* SP_P_SCOPE, SP_P_SCOPED: enter_ns of the innermost call with SP_P_SCOPE
			   on this thread that encloses this one; 0 none */
	__u32 count;    /* SP_P_EACH with first: elements; else 1 (0: not such a record) */
	__u16 posted;   /* SP_TALLY_POST: how many of these stay counted as posted */
	__u16 pad;
};

/*
 * val[i]: a scalar argument, sign- or zero-extended to 64 bits; for a composite, its full length in
 * bytes (a std::string's or frame's size; of a string that was cut, one more than was copied).
 * len[i]: 0 scalar read well; > 0 bytes copied into data[] at the fetch program's data_at;
 * < 0 the negative errno of the read that failed (of a frame: its message is lost,
 * whatever follows of it); SP_LEN_UNSET: no alternative applied, or (frames) bytes not wanted. An
 * empty composite has len SP_LEN_EMPTY.
 */
#define SP_LEN_EMPTY (-30000)
#define SP_LEN_UNSET (-30001)
struct sp_rec_hit {
	struct sp_rec h;
	__u64 val[SP_MAX_ARGS];
	__s16 len[SP_MAX_ARGS];
	__u8 alt[SP_MAX_ARGS]; /* index of the fetch program that produced the argument */
	char data[];
};

/* Where a thread stands in the multipart message of a socket. Map sp_frames. */
struct sp_seq_key {
	__u64 sock;
	__u32 tid;
	__u32 probe;
};
enum sp_seq_is {
	SP_SEQ_START = 0, /* the next frame is a message's first */
	SP_SEQ_KEEP,
	SP_SEQ_CUT, /* wanted, but its beginning was not seen */
	SP_SEQ_DROP,
	SP_SEQ_LOST, /* a frame was lost, and with it where the next message begins */
};
struct sp_seq_state {
	__u64 copy; /* SP_SEQ_KEEP: bit i: bytes of frame i are wanted */
	__u32 is;   /* enum sp_seq_is */
	__u32 next; /* index of the next frame */
};

/*
 * A call that has been entered and not left. Map sp_saved: value struct sp_saved, whose sp is 0
 * once the call has returned. A frame left by an exception or longjmp stays: user space compares
 * ra with the word at sp (x86-64), and the thread's own stack pointer where it can be had.
 */
#define SP_SAVED_LEVELS 4 /* calls of one probe inside each other on a thread */
struct sp_saved_key {
	__u64 pid_tgid;
	__u32 probe;
	__u32 level; /* 0: the outermost of them that has not returned, as far as known */
};
struct sp_saved {
	__u64 arg[SP_MAX_SAVED];
	__u64 sp;       /* at function entry; 0: not under way */
	__u64 bad;      /* bit i: arg[i] could not be read */
	__u64 ns;       /* entered then */
	__u64 scope_ns; /* as of sp_rec */
	__u64 ra;       /* return address, 0: not known. Where a return probe is in place the word
			   at sp is (x86-64) an address of the kernel's page [uprobes] instead */
};

#define SP_MAX_THREADS 8192 /* whose enclosing calls are known */

/* Last answer of a poll function. Map sp_polls. */
#define SP_MAX_POLLS 65536
struct sp_poll_key {
	__u64 op;
	__u32 pid;
	__u32 pad;
};
struct sp_poll {
	__u64 ns;    /* last poll */
	__u64 count; /* polls since the answer last changed */
	__s32 answer;
	__u32 tid; /* last poller */
};

/* Index into the BPF object's global array sp_counters. */
enum sp_counter {
	SP_C_RING_FULL = 0, /* records lost: no room in the ring buffer */
	SP_C_READ_FAULT,    /* arguments that could not be read */
	SP_C_NO_ENTRY,      /* a return without its saved entry (already inside at the attach) */
	SP_C_SAVE_FULL,     /* entries not saved: map full */
	SP_C_POLL_FULL,
	SP_C_FRAME_FULL,
	SP_C_FRAMES_DROPPED, /* frames of messages that no pattern wants */
	SP_C_CONN_FULL,      /* connections not followed: map full */
	SP_C_SOCK_FAULT,     /* payload that could not be read */
	SP_C_SOCK_GAP,       /* directions given up because bytes passed unseen */
	SP_C_EACH_CUT,       /* hits with more elements than are looked at */
	SP_C_SCOPE_FULL,     /* calls whose enclosing calls are not known: map full */
	SP_C_TALLY_FULL,     /* elements not counted: map full */
	SP_C_MAX,
};

#endif
