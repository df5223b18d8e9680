/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Sockets: what is kept of a connection, and the maps. */
#ifndef SP_SOCK_MAPS_BPF_H
#define SP_SOCK_MAPS_BPF_H

#include "sp_conn.h"

/* Set by user space before the object is loaded. */
/* What the kernel calls a list of user segments, and one; 0xff: no such thing. */
const volatile __u8 sp_iter_iovec, sp_iter_ubuf;
const volatile __u32 sp_hz;        /* jiffies of a second */
const volatile bool sp_have_calls; /* calls are kept from ENTRY to RET: sp_sock_saved is there */
/* Where records' connection numbers come from. */
__u64 sp_conn_ids __attribute__((aligned(64)));

#define SP_FEED        8            /* bytes looked at one by one in one go */
#define SP_WORDS       4            /* and eight at a time */
#define SP_BLOCK       512          /* bytes of payload looked at in one go */
#define SP_BLOCKS      128          /* scratch blocks */
#define SP_SLOT_TRIES  8            /* blocks tried before giving up */
#define SP_SAVED_CALLS 8192         /* threads inside a call, between ENTRY and RET */
#define SP_ENDED       SP_MAX_CONNS /* ended connections that wait for their removal: all may */
#define SP_ENDED_NS    2000000000ull
#define SP_IDLE_NS     1000000000ull /* silence after which a message is believed to begin */
#define SP_TRIALS      8             /* reads in a row that vouch for a boundary */
#define SP_FAILS       64 /* reads that fitted nothing: only silences count from there on */
#define SP_ODD         3 /* silences after which nothing known began: the connection is of no interest */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SP_MAX_SOCK_RULES);
	__type(key, __u32);
	__type(value, struct sp_sock_rule);
} sp_sock_rules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u32);
} sp_sock_procs SEC(".maps");

/* By the address of the kernel's struct sock. The size is set before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SP_MAX_CONNS);
	__type(key, __u64);
	__type(value, struct sp_conn);
} sp_conns SEC(".maps");

/* A new connection is a copy of this one: it does not fit the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sp_conn);
} sp_conn_none SEC(".maps");

/*
 * Ended connections. A program on another CPU may still be at work on one, so it is removed later,
 * by whoever enters a new one.
 */
struct sp_ended {
	__u64 sk;
	__u64 ino;
	__u64 ns;
};
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, SP_ENDED);
	__type(value, struct sp_ended);
} sp_ended SEC(".maps");

/* Where payload is looked at; cleared after each call. */
struct sp_block {
	__u32 busy;
	__u32 n;  /* bytes in data */
	__u32 at; /* the next one */
	__u32 pad;
	char data[SP_BLOCK + 8];
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SP_BLOCKS);
	__type(key, __u32);
	__type(value, struct sp_block);
} sp_blocks SEC(".maps");

/* A call's arguments between ENTRY and RET. A thread that ends in a call has no RET. */
struct sp_sock_saved {
	__u64 arg[4];
	__u64 call;
};
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SP_SAVED_CALLS);
	__type(key, __u64);
	__type(value, struct sp_sock_saved);
} sp_sock_saved SEC(".maps");

/* One socket call that moved bytes. */
struct sp_io {
	struct sp_at at;
	__u64 pid_tgid;
	__u64 total; /* bytes moved */
	__u8 dir;
	__u8 unseen; /* enum sp_conn_why: the bytes are nowhere to be read */
	__u8 dry;    /* look, but tell nothing */
	__u8 stop;   /* no more bytes are wanted */
	__u8 fault;
	__u8 bad;  /* dry: it is not the protocol */
	__u8 head; /* dry: it begins as a message should */
	__u8 peek; /* the first byte */
	__u8 tcp;
	__u8 kind, rule; /* of the connection before a dry run */
	__u8 kernel;     /* the segments' list is in the kernel's memory */
	__u8 pad[4];
};

/*
 * A lock without waiting: true when nobody else has it. Fetch-and-add that returns a value does not
 * exist everywhere, but whoever reads back 1 behind his own addition is alone.
 */
static __always_inline bool sp_take(__u32 *busy)
{
	__sync_fetch_and_add(busy, 1);
	if (*(volatile __u32 *)busy == 1)
		return true;
	__sync_fetch_and_add(busy, -1);
	return false;
}

static __always_inline void sp_give(__u32 *busy)
{
	__sync_fetch_and_add(busy, -1);
}

#endif
