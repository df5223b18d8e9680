/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Poll functions, called thousands of times a second with the same answer. */
#ifndef SP_POLLS_BPF_H
#define SP_POLLS_BPF_H

/* Note this poll. True: its answer differs from the last one for the operation. */
__noinline int sp_poll_changed(const struct sp_probe *p, const struct sp_call *c, __u64 pid_tgid)
{
	struct sp_poll_key key = {.pid = pid_tgid >> 32};
	struct sp_poll *last;
	__s32 answer;

	if (!p || !c)
		return true;
	answer = (__s32)c->ret;
	if (sp_arg(p, p->op_fetch, c, &key.op))
		return true; /* which operation is unknown: let user space see it */
	last = bpf_map_lookup_elem(&sp_polls, &key);
	if (last) {
		last->ns = bpf_ktime_get_ns();
		last->tid = (__u32)pid_tgid;
		if (last->answer == answer) {
			last->count++;
			return false;
		}
		last->answer = answer;
		last->count = 1;
	} else {
		struct sp_poll first = {
			.ns = bpf_ktime_get_ns(),
			.count = 1,
			.answer = answer,
			.tid = (__u32)pid_tgid,
		};

		if (bpf_map_update_elem(&sp_polls, &key, &first, BPF_ANY))
			sp_count(SP_C_POLL_FULL);
	}
	return true;
}

__noinline int sp_poll_clear(const struct sp_probe *p, const struct sp_call *c, __u64 pid_tgid)
{
	struct sp_poll_key key = {.pid = pid_tgid >> 32};

	if (p && c && !sp_arg(p, p->op_fetch, c, &key.op))
		bpf_map_delete_elem(&sp_polls, &key);
	return 0;
}

#endif
