/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Sockets: calls seen by uprobes on libc's functions. */
#ifndef SP_SOCK_LIBC_BPF_H
#define SP_SOCK_LIBC_BPF_H

#if defined(__TARGET_ARCH_x86)
/* The kernel leaves the arguments' registers as they were. */
static __always_inline void sp_after_regs(struct pt_regs *ctx, struct sp_syscall *s)
{
	s->arg[0] = ctx->di;
	s->arg[1] = ctx->si;
	s->arg[2] = ctx->dx;
	s->arg[3] = ctx->r10;
}
static __always_inline void sp_entry_regs(struct pt_regs *ctx, struct sp_syscall *s)
{
	s->arg[0] = ctx->di;
	s->arg[1] = ctx->si;
	s->arg[2] = ctx->dx;
	s->arg[3] = ctx->cx;
}
#else
/* The first argument's register holds the result: there is no such place (attach knows). */
static __always_inline void sp_after_regs(struct pt_regs *ctx, struct sp_syscall *s)
{
	s->call = SP_CALL_MAX;
}
static __always_inline void sp_entry_regs(struct pt_regs *ctx, struct sp_syscall *s)
{
	s->arg[0] = ctx->user_regs.regs[0];
	s->arg[1] = ctx->user_regs.regs[1];
	s->arg[2] = ctx->user_regs.regs[2];
	s->arg[3] = ctx->user_regs.regs[3];
}
#endif

/* Keep the arguments until the function's end. */
__noinline int sp_libc_save(const struct sp_syscall *s)
{
	struct sp_sock_saved saved = {};
	__u64 key;

	if (!s)
		return 0;
	key = s->pid_tgid;
	for (int i = 0; i < 4; i++)
		saved.arg[i] = s->arg[i];
	saved.call = s->call;
	if (bpf_map_update_elem(&sp_sock_saved, &key, &saved, BPF_ANY))
		sp_count(SP_C_SAVE_FULL);
	return 0;
}

/* False: the call began before the attach. */
static __always_inline bool sp_libc_ret(struct sp_syscall *s)
{
	struct sp_sock_saved *saved = bpf_map_lookup_elem(&sp_sock_saved, &s->pid_tgid);

	if (!saved || saved->call != s->call)
		return false;
	for (int i = 0; i < 4; i++)
		s->arg[i] = saved->arg[i];
	bpf_map_delete_elem(&sp_sock_saved, &s->pid_tgid);
	return true;
}

/* Of a function that returns an int, the register's upper half may be anything. */
static __always_inline bool sp_libc_int(__u32 call)
{
	return call == SP_CALL_RECVMMSG || call == SP_CALL_SENDMMSG || call >= SP_CALL_ACCEPT;
}

SEC("sp_uprobe")
int sock_libc(struct pt_regs *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx);
	__u32 site = SP_SOCK_COOKIE_SITE(cookie);
	struct sp_syscall s = {.call = SP_SOCK_COOKIE_CALL(cookie)};

	s.ret = sp_reg_ret(ctx);
	if (site == SP_SOCK_RET && sp_libc_int(s.call))
		s.ret = (__s32)s.ret;
	if (site == SP_SOCK_AFTER && sp_call_idle(s.call, s.ret))
		return 0;
	s.pid_tgid = sp_pid_tgid();
	if (site == SP_SOCK_ENTRY) {
		sp_entry_regs(ctx, &s);
		if (s.call != SP_CALL_CLOSE) /* that is looked at before it happens */
			return sp_libc_save(&s);
	} else if (site == SP_SOCK_AFTER) {
		sp_after_regs(ctx, &s);
	} else if (!sp_libc_ret(&s) || sp_call_idle(s.call, s.ret)) {
		return 0;
	}
	sp_sock_call(&s);
	return 0;
}

#endif
