/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Process and thread numbers as silentpin's own pid namespace sees them. */
#ifndef SP_IDS_BPF_H
#define SP_IDS_BPF_H

#define SP_PID_LEVELS 8 /* nested pid namespaces looked through; the kernel allows 32 */

/* The number of a task in the namespace sp_pidns_ino, 0 when it has none there. */
static __always_inline __u32 sp_pid_of(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	__u32 level = BPF_CORE_READ(pid, level);

	for (__u32 i = 0; i < SP_PID_LEVELS; i++) {
		struct upid *up = (void *)pid + bpf_core_field_offset(struct pid, numbers) +
				  i * bpf_core_type_size(struct upid);

		if (i > level)
			break;
		if (BPF_CORE_READ(up, ns, ns.inum) == sp_pidns_ino)
			return BPF_CORE_READ(up, nr);
	}
	return 0;
}

/* The number of a task's process, as silentpin sees it. */
static __always_inline __u32 sp_pid_of_task(struct task_struct *task)
{
	if (!sp_pidns_ino)
		return BPF_CORE_READ(task, tgid);
	return sp_pid_of(BPF_CORE_READ(task, group_leader));
}

static __always_inline __u64 sp_pid_tgid(void)
{
	struct bpf_pidns_info ids = {};
	struct task_struct *task;

	if (!sp_pidns_ino)
		return bpf_get_current_pid_tgid();
	/* Works only for a task whose own namespace this is, not for one nested deeper. */
	if (!bpf_get_ns_current_pid_tgid(sp_pidns_dev, sp_pidns_ino, &ids, sizeof(ids)))
		return (__u64)ids.tgid << 32 | ids.pid;
	task = (void *)bpf_get_current_task();
	return (__u64)sp_pid_of(BPF_CORE_READ(task, group_leader)) << 32 | sp_pid_of(task);
}

#endif
