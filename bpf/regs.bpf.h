/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The traced function's arguments, as they were at its entry. */
#ifndef SP_REGS_BPF_H
#define SP_REGS_BPF_H

/*
 * All registers are copied to an array at once and indexed there: clang merges a switch over
 * registers of the context into a computed context pointer, which the verifier refuses.
 */
struct sp_call {
	__u64 arg[SP_MAX_SAVED]; /* arg[i] = $arg(i+1), i < nreg */
	__u64 sp;                /* stack pointer at function entry */
	__u64 ret;
	__u64 bad;      /* bit i: arg[i] could not be read when it was saved */
	__u64 enter_ns; /* as of struct sp_rec, like the next */
	__u64 scope_ns;
	__u64 each[2]; /* the element at hand, and the outer one: SP_OP_EACH */
	__u32 nreg;    /* arguments held in arg[]; the others are still on the stack */
	__u16 count;   /* as of struct sp_rec, like the next */
	__u16 posted;
};

#if defined(__TARGET_ARCH_x86)
/* System V psABI for x86-64, 3.2.3: six integer arguments in registers, the rest above the return
 * address. */
#define SP_NREG         6
#define SP_STACK_ARG    8 /* from the entry's stack pointer to its first stack argument */
#define SP_RET_POP      8 /* what the return has popped when a return probe runs */
#define sp_reg_sp(ctx)  ((ctx)->sp)
#define sp_reg_ret(ctx) ((ctx)->ax)

static __always_inline void sp_regs_copy(struct pt_regs *ctx, struct sp_call *c)
{
	c->arg[0] = ctx->di;
	c->arg[1] = ctx->si;
	c->arg[2] = ctx->dx;
	c->arg[3] = ctx->cx;
	c->arg[4] = ctx->r8;
	c->arg[5] = ctx->r9;
}
#elif defined(__TARGET_ARCH_arm64)
/* AAPCS64, 6.8.2: eight in registers, the rest at the stack pointer; the return address is in a
 * register. */
#define SP_NREG         8
#define SP_STACK_ARG    0
#define SP_RET_POP      0
#define sp_reg_sp(ctx)  ((ctx)->user_regs.sp)
#define sp_reg_ret(ctx) ((ctx)->user_regs.regs[0])

static __always_inline void sp_regs_copy(struct pt_regs *ctx, struct sp_call *c)
{
	c->arg[0] = ctx->user_regs.regs[0];
	c->arg[1] = ctx->user_regs.regs[1];
	c->arg[2] = ctx->user_regs.regs[2];
	c->arg[3] = ctx->user_regs.regs[3];
	c->arg[4] = ctx->user_regs.regs[4];
	c->arg[5] = ctx->user_regs.regs[5];
	c->arg[6] = ctx->user_regs.regs[6];
	c->arg[7] = ctx->user_regs.regs[7];
}
#endif

/* At an entry site: shift words have been pushed since the function's first instruction. */
static __always_inline void sp_call_entry(struct pt_regs *ctx, __u32 shift, struct sp_call *c)
{
	sp_regs_copy(ctx, c);
	c->nreg = SP_NREG;
	c->count = 1;
	c->sp = sp_reg_sp(ctx) + 8 * shift;
}

#endif
