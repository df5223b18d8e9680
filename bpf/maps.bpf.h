/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Maps, constants set before loading, and counters. */
#ifndef SP_MAPS_BPF_H
#define SP_MAPS_BPF_H

/* Set by user space before the object is loaded; the verifier then drops the branches not taken. */
const volatile bool sp_have_seq;       /* atomic fetch-and-add exists (arm64: from 5.18) */
const volatile bool sp_follow;         /* forked children become targets */
const volatile __u32 sp_nprobes;       /* probes in use */
const volatile __u32 sp_classes;       /* of records in use: 1 << enum sp_class */
const volatile __u32 sp_frame_classes; /* the same of probes with frames */
const volatile __u64 sp_pidns_dev;     /* silentpin's pid namespace, when it is not the first */
const volatile __u64 sp_pidns_ino;     /* 0: the first namespace */
const volatile bool sp_have_scopes;    /* a probe has SP_P_SCOPE */
const volatile __u32 sp_wake_backlog; /* bytes waiting in the ring above which to wake the reader */

/* Read by user space through the mapped .bss. Apart from each other: they are written at every hit
 * and by all CPUs. */
__u64 sp_seq __attribute__((aligned(64)));
__u64 sp_counters[SP_C_MAX] __attribute__((aligned(64)));

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SP_MAX_PROBES);
	__type(key, __u32);
	__type(value, struct sp_probe);
} sp_probes SEC(".maps");

/* The size is set before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 << 20);
} sp_ring SEC(".maps");

/* Processes watched: fork, exec and exit of others are not reported. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u32);
} sp_targets SEC(".maps");

/*
 * Calls entered, for the return, and for user space (what is under way). An entry is not deleted at
 * the return but reused by the thread's next call (a deletion and an insertion cost more than the
 * call's other work), told apart by the stack pointer, and removed when the thread ends.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct sp_saved_key);
	__type(value, struct sp_saved);
} sp_saved SEC(".maps");

/*
 * The calls with SP_P_SCOPE that a thread is in, the innermost last. Like sp_saved an entry stays
 * until the thread ends. The size is set before loading.
 */
#define SP_SCOPES 4 /* the innermost ones are kept */
struct sp_scope {
	__u64 sp, ns, ra; /* as of struct sp_saved */
};
struct sp_scopes {
	struct sp_scope s[SP_SCOPES];
	__u64 n;
};
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SP_MAX_THREADS);
	__type(key, __u64); /* pid_tgid */
	__type(value, struct sp_scopes);
} sp_scopes SEC(".maps");

/* For probes of elements. The sizes are set before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SP_MAX_PROBES);
	__type(key, __u32);
	__type(value, struct sp_each);
} sp_each_of SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SP_MAX_TALLIES);
	__type(key, struct sp_tally_key);
	__type(value, struct sp_tally);
} sp_tallies SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SP_MAX_POLLS);
	__type(key, struct sp_poll_key);
	__type(value, struct sp_poll);
} sp_polls SEC(".maps");

/* Where a thread stands in the message it reads from (or writes to) a socket. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, struct sp_seq_key);
	__type(value, struct sp_seq_state);
} sp_frames SEC(".maps");

static __always_inline void sp_count(enum sp_counter c)
{
	__sync_fetch_and_add(&sp_counters[c], 1);
}

static __always_inline __u64 sp_next_seq(void)
{
	if (sp_have_seq)
		return __sync_fetch_and_add(&sp_seq, 1) + 1;
	return 0;
}

#endif
