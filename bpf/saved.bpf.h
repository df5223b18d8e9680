/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What is kept of a call from its entry to its return. What is called at several places is a global
 * function: the verifier looks at it once, and not once for each place.
 */
#ifndef SP_SAVED_BPF_H
#define SP_SAVED_BPF_H

static const struct sp_saved sp_saved_none;

/* The return address of a function that has just been entered; 0: not known. */
static __always_inline __u64 sp_return_address(__u64 sp)
{
	__u64 ra = 0;

	/* On arm64 it is in a register: nothing in memory tells whether the call is still there. */
	if (SP_RET_POP)
		bpf_probe_read_user(&ra, 8, (void *)sp);
	return ra;
}

/*
 * Where a call is kept: a call inside another of the same probe has a level of its own. A level
 * whose call has returned (sp 0), or lies no higher on the stack, is free: that one has ended
 * without a return that was seen. Of more than there are levels the innermost before is given up.
 */
static __noinline struct sp_saved *sp_saved_slot(__u64 pid_tgid, __u32 probe, __u64 sp)
{
	struct sp_saved_key key = {.pid_tgid = pid_tgid, .probe = probe};
	struct sp_saved *s = NULL;

	for (__u32 i = 0; i < SP_SAVED_LEVELS; i++) {
		key.level = i;
		s = bpf_map_lookup_elem(&sp_saved, &key);
		if (!s) {
			if (!bpf_map_update_elem(&sp_saved, &key, &sp_saved_none, BPF_ANY))
				s = bpf_map_lookup_elem(&sp_saved, &key);
			if (!s)
				sp_count(SP_C_SAVE_FULL);
			return s;
		}
		if (s->sp <= sp)
			return s;
	}
	sp_count(SP_C_SAVE_FULL);
	return s;
}

/* The thread has ended. A level is there only with those before it. */
__noinline int sp_saved_forget(__u64 pid_tgid, __u32 probe)
{
	struct sp_saved_key key = {.pid_tgid = pid_tgid, .probe = probe};

	for (__u32 i = 0; i < SP_SAVED_LEVELS; i++) {
		key.level = i;
		if (bpf_map_delete_elem(&sp_saved, &key))
			break;
	}
	return 0;
}

/* Keep what the return needs. What was kept, NULL: nothing. Called by sp_call_enter alone. */
static __always_inline struct sp_saved *sp_call_save(const struct sp_probe *p, __u32 probe,
						     const struct sp_call *c, __u64 pid_tgid)
{
	struct sp_saved *s = sp_saved_slot(pid_tgid, probe, c->sp);

	if (!s)
		return NULL;
	/* Written in place: the key names the thread, so nobody else writes here. User space may
	 * be reading: sp says that the rest holds. */
	s->sp = 0; /* what an exception has left here */
	asm volatile("" ::: "memory");
	s->bad = 0;
	for (int i = 0; i < SP_NREG; i++)
		s->arg[i] = c->arg[i];
	if (p->nsaved > SP_NREG)
		for (__u32 i = SP_NREG; i < SP_MAX_SAVED; i++) {
			__u64 at = c->sp + SP_STACK_ARG + 8 * (i - SP_NREG);

			if (i < p->nsaved && bpf_probe_read_user(&s->arg[i], 8, (void *)at))
				s->bad |= 1ull << i;
		}
	s->scope_ns = c->scope_ns;
	s->ra = sp_return_address(c->sp); /* a return probe replaces it later */
	s->ns = bpf_ktime_get_ns();
	asm volatile("" ::: "memory");
	s->sp = c->sp;
	return s;
}

/* At a return, where the stack pointer was sp at the entry: the call that was saved, NULL: none.
 * Those below it on the stack have ended, left by an exception. */
static __noinline struct sp_saved *sp_saved_find(__u64 pid_tgid, __u32 probe, __u64 sp)
{
	struct sp_saved_key key = {.pid_tgid = pid_tgid, .probe = probe};

	for (__u32 i = 0; i < SP_SAVED_LEVELS; i++) {
		struct sp_saved *s;

		key.level = i;
		s = bpf_map_lookup_elem(&sp_saved, &key);
		if (!s || s->sp == sp)
			return s;
		if (s->sp < sp)
			s->sp = 0;
	}
	return NULL;
}

/* At the return of a call that is no event. */
__noinline int sp_call_drop(__u64 pid_tgid, __u32 probe, __u64 sp)
{
	struct sp_saved *s = sp_saved_find(pid_tgid, probe, sp);

	if (s)
		s->sp = 0;
	return 0;
}

/* At the return: what was saved. 0 when there is nothing, or another call's. */
__noinline int sp_call_saved(__u64 pid_tgid, __u32 probe, struct sp_call *c)
{
	struct sp_saved *s;

	if (!c)
		return 0;
	s = sp_saved_find(pid_tgid, probe, c->sp);
	if (!s)
		return 0;
	for (int i = 0; i < SP_MAX_SAVED; i++)
		c->arg[i] = s->arg[i];
	c->bad = s->bad;
	c->nreg = SP_MAX_SAVED;
	c->enter_ns = s->ns;
	c->scope_ns = s->scope_ns;
	s->sp = 0; /* used up */
	return 1;
}

#endif
