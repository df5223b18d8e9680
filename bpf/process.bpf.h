/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Fork, exec and exit of the targets. Raw tracepoints: they need the least rights. */
#ifndef SP_PROCESS_BPF_H
#define SP_PROCESS_BPF_H

/* Rare, and user space must act on it (attach to a child): wake the reader at once. */
static __always_inline void sp_process_emit(__u16 type, __u64 pid_tgid, __u64 v0, __u64 v1)
{
	__u64 seq = sp_next_seq();
	struct sp_rec_hit *rec = bpf_ringbuf_reserve(&sp_ring, sizeof(*rec), 0);

	if (!rec) {
		sp_count(SP_C_RING_FULL);
		return;
	}
	sp_rec_head(rec, seq, type, pid_tgid);
	rec->h.nargs = 2;
	for (int i = 0; i < SP_MAX_ARGS; i++) {
		rec->val[i] = 0;
		rec->len[i] = i < 2 ? 0 : SP_LEN_UNSET;
		rec->alt[i] = 0;
	}
	rec->val[0] = v0;
	rec->val[1] = v1;
	bpf_ringbuf_submit(rec, BPF_RB_FORCE_WAKEUP);
}

SEC("raw_tp/sched_process_fork")
int on_fork(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *parent = (void *)ctx->args[0], *child = (void *)ctx->args[1];
	__u64 pid_tgid = sp_pid_tgid();
	__u32 pid = pid_tgid >> 32, one = 1;
	bool shared;

	if (!sp_follow || !bpf_map_lookup_elem(&sp_targets, &pid))
		return 0;
	if (BPF_CORE_READ(child, pid) != BPF_CORE_READ(child, tgid))
		return 0; /* a thread */
	pid = sp_pidns_ino ? sp_pid_of(child) : BPF_CORE_READ(child, pid);
	/* The child of a vfork runs in its parent's memory until it calls exec. */
	shared = BPF_CORE_READ(child, mm) == BPF_CORE_READ(parent, mm);
	if (pid)
		bpf_map_update_elem(&sp_targets, &pid, &one, BPF_ANY);
	sp_process_emit(SP_REC_FORK, pid_tgid, pid, shared);
	return 0;
}

SEC("raw_tp/sched_process_exec")
int on_exec(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 pid_tgid = sp_pid_tgid();
	__u32 pid = pid_tgid >> 32;

	if (!bpf_map_lookup_elem(&sp_targets, &pid))
		return 0;
	if (sp_have_scopes)
		bpf_map_delete_elem(&sp_scopes, &pid_tgid);
	sp_process_emit(SP_REC_EXEC, pid_tgid, 0, 0);
	return 0;
}

SEC("raw_tp/sched_process_exit")
int on_exit(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];
	__u64 pid_tgid = sp_pid_tgid();
	__u32 pid = pid_tgid >> 32;
	bool last;

	/* Of whatever process: an HTTP front is no target. */
	if (sp_have_calls)
		bpf_map_delete_elem(&sp_sock_saved, &pid_tgid);
	if (!bpf_map_lookup_elem(&sp_targets, &pid))
		return 0;
	for (__u32 i = 0; i < SP_MAX_PROBES; i++) {
		if (i >= sp_nprobes)
			break;
		sp_saved_forget(pid_tgid, i);
	}
	if (sp_have_scopes)
		bpf_map_delete_elem(&sp_scopes, &pid_tgid);
	/* The kernel has already counted this thread out (kernel/exit.c, do_exit). */
	last = BPF_CORE_READ(task, signal, live.counter) == 0;
	if (last)
		bpf_map_delete_elem(&sp_targets, &pid);
	sp_process_emit(SP_REC_EXIT, pid_tgid, last, 0);
	return 0;
}

#endif
