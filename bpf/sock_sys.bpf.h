/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Sockets: calls seen at the end of every system call of the machine. */
#ifndef SP_SOCK_SYS_BPF_H
#define SP_SOCK_SYS_BPF_H

#define SP_SYS_MAX 512

#if defined(__TARGET_ARCH_x86)
/* arch/x86/entry/syscalls/syscall_64.tbl */
static const __u8 sp_sys_call[SP_SYS_MAX] = {
	[0] = SP_CALL_READ,       [1] = SP_CALL_WRITE,     [19] = SP_CALL_READV,
	[20] = SP_CALL_WRITEV,    [40] = SP_CALL_SENDFILE, [42] = SP_CALL_CONNECT,
	[43] = SP_CALL_ACCEPT,    [44] = SP_CALL_SEND,     [45] = SP_CALL_RECV,
	[46] = SP_CALL_SENDMSG,   [47] = SP_CALL_RECVMSG,  [48] = SP_CALL_SHUTDOWN,
	[275] = SP_CALL_SPLICE,   [288] = SP_CALL_ACCEPT,  [299] = SP_CALL_RECVMMSG,
	[307] = SP_CALL_SENDMMSG,
};
#define sp_sys_nr(regs)   BPF_CORE_READ(regs, orig_ax)
#define SP_TS_COMPAT      2 /* arch/x86/include/asm/thread_info.h */
#define sp_sys_compat(ti) (BPF_CORE_READ(ti, status) & SP_TS_COMPAT)
static __always_inline void sp_sys_args(struct pt_regs *regs, struct sp_syscall *s)
{
	s->arg[0] = BPF_CORE_READ(regs, di);
	s->arg[1] = BPF_CORE_READ(regs, si);
	s->arg[2] = BPF_CORE_READ(regs, dx);
	s->arg[3] = BPF_CORE_READ(regs, r10);
}
#else
/* include/uapi/asm-generic/unistd.h */
static const __u8 sp_sys_call[SP_SYS_MAX] = {
	[63] = SP_CALL_READ,      [64] = SP_CALL_WRITE,     [65] = SP_CALL_READV,
	[66] = SP_CALL_WRITEV,    [71] = SP_CALL_SENDFILE,  [76] = SP_CALL_SPLICE,
	[202] = SP_CALL_ACCEPT,   [203] = SP_CALL_CONNECT,  [206] = SP_CALL_SEND,
	[207] = SP_CALL_RECV,     [210] = SP_CALL_SHUTDOWN, [211] = SP_CALL_SENDMSG,
	[212] = SP_CALL_RECVMSG,  [242] = SP_CALL_ACCEPT,   [243] = SP_CALL_RECVMMSG,
	[269] = SP_CALL_SENDMMSG,
};
#define sp_sys_nr(regs)   BPF_CORE_READ(regs, syscallno)
#define SP_TIF_32BIT      (1u << 22) /* arch/arm64/include/asm/thread_info.h */
#define sp_sys_compat(ti) (BPF_CORE_READ(ti, flags) & SP_TIF_32BIT)
static __always_inline void sp_sys_args(struct pt_regs *regs, struct sp_syscall *s)
{
	s->arg[0] = BPF_CORE_READ(regs, orig_x0);
	s->arg[1] = BPF_CORE_READ(regs, user_regs.regs[1]);
	s->arg[2] = BPF_CORE_READ(regs, user_regs.regs[2]);
	s->arg[3] = BPF_CORE_READ(regs, user_regs.regs[3]);
}
#endif

/* A task of 32 bits has other numbers and other arguments. */
__noinline int sp_sys_get(struct sp_syscall *s, __u64 regs)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	if (!s || sp_sys_compat(&task->thread_info))
		return 0;
	sp_sys_args((struct pt_regs *)regs, s);
	return 1;
}

SEC("sp_raw_tp")
int sock_sys(struct bpf_raw_tracepoint_args *ctx)
{
	struct pt_regs *regs = (void *)ctx->args[0];
	struct sp_syscall s = {.ret = ctx->args[1]};
	__u64 nr = sp_sys_nr(regs);
	__u32 pid;

	if (nr >= SP_SYS_MAX)
		return 0;
	s.call = sp_sys_call[nr & (SP_SYS_MAX - 1)];
	if (!s.call || sp_call_idle(s.call, s.ret))
		return 0;
	s.pid_tgid = sp_pid_tgid();
	pid = s.pid_tgid >> 32;
	if (!bpf_map_lookup_elem(&sp_sock_procs, &pid))
		return 0;
	if (sp_sys_get(&s, (__u64)regs))
		sp_sock_call(&s);
	return 0;
}

#endif
