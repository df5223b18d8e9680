/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What a hit begins with: which call it is, and whether it is an event. */
#ifndef SP_ARRIVE_BPF_H
#define SP_ARRIVE_BPF_H

enum sp_turn {
	SP_TURN_NONE,  /* nothing to do */
	SP_TURN_SAVED, /* an entry, kept for the return */
	SP_TURN_DROP,  /* a return that is no event */
	SP_TURN_EVENT,
};

/* The result that the probe's flags say is no event. */
static __always_inline bool sp_no_event(const struct sp_probe *p, const struct sp_call *c)
{
	return (p->flags & SP_P_DROP_NEGATIVE && (__s32)c->ret < 0) ||
	       (p->flags & SP_P_DROP_ZERO && !(__s32)c->ret);
}

/* At a return. each: the arguments are needed even of what is no event. */
static __always_inline enum sp_turn sp_left(const struct sp_probe *p, __u32 idx, struct sp_call *c,
					    __u64 pid_tgid, bool each)
{
	bool drop = sp_no_event(p, c);

	if (sp_have_scopes && p->flags & SP_P_SCOPE)
		sp_scope_leave(pid_tgid, c->sp);
	/* Some functions answer "nothing" 60,000 times a second. */
	if (drop && !each) {
		sp_call_drop(pid_tgid, idx, c->sp);
		return SP_TURN_DROP;
	}
	if (!sp_call_saved(pid_tgid, idx, c) && p->nsaved) {
		sp_count(SP_C_NO_ENTRY);
		return SP_TURN_NONE;
	}
	c->count = 1;
	return drop ? SP_TURN_DROP : SP_TURN_EVENT;
}

/* What both programs begin with: the call, as far as this site tells it. */
static __always_inline enum sp_turn sp_arrive(struct pt_regs *ctx, const struct sp_probe *p,
					      __u64 cookie, struct sp_call *c, __u64 pid_tgid,
					      bool each)
{
	__u32 idx = SP_COOKIE_PROBE(cookie), site = SP_COOKIE_SITE(cookie);
	bool save = site == SP_SITE_SAVE;

	if (site >= SP_SITE_RETURN) {
		c->ret = sp_reg_ret(ctx);
		c->sp = sp_reg_sp(ctx) - (site == SP_SITE_RETURN ? SP_RET_POP : 0);
		return sp_left(p, idx, c, pid_tgid, each);
	}
	sp_call_entry(ctx, SP_COOKIE_SHIFT(cookie), c);
	if (save || (sp_have_scopes && p->flags & (SP_P_SCOPE | SP_P_SCOPED)))
		sp_call_enter(p, idx, c, pid_tgid, save);
	return save ? SP_TURN_SAVED : SP_TURN_EVENT;
}

#endif
