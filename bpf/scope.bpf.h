/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Calls within calls: which call with SP_P_SCOPE encloses another one on its thread. A call that an
 * exception or longjmp has ended never returns: it is told by the stack.
 */
#ifndef SP_SCOPE_BPF_H
#define SP_SCOPE_BPF_H

#define SP_TRAMPOLINE_LEN 4096 /* the page that the kernel maps as [uprobes] */

static const struct sp_scopes sp_scopes_none;

/* Is this the address to which a function with a return probe returns instead? */
static __noinline bool sp_is_trampoline(__u64 ra)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct xol_area *area = NULL;

	if (!bpf_core_field_exists(area->vaddr))
		return true; /* cannot be told */
	area = BPF_CORE_READ(task, mm, uprobes_state.xol_area);
	return area && ra - BPF_CORE_READ(area, vaddr) < SP_TRAMPOLINE_LEN;
}

/* Does the stack still say that this call will return? */
static __always_inline bool sp_scope_holds(const struct sp_scope *s)
{
	__u64 word = 0;

	if (!SP_RET_POP)
		return true; /* cannot be told */
	if (bpf_probe_read_user(&word, 8, (void *)s->sp))
		return false;
	return (s->ra && word == s->ra) || sp_is_trampoline(word);
}

/* Drop what has ended, where the stack pointer at a function's entry is sp. When the innermost
 * call that is left was entered, 0: none is. */
static __noinline __u64 sp_scope_top(struct sp_scopes *t, __u64 sp)
{
	for (int i = 0; i < SP_SCOPES; i++) {
		__u64 top = t->n - 1;

		if (top >= SP_SCOPES)
			return 0;
		if (t->s[top].sp > sp && sp_scope_holds(&t->s[top]))
			return t->s[top].ns;
		t->n = top;
	}
	return 0;
}

static __always_inline void sp_scope_push(struct sp_scopes *t, const struct sp_saved *s)
{
	__u64 n = t->n;

	if (n >= SP_SCOPES) {
		for (int i = 0; i < SP_SCOPES - 1; i++)
			t->s[i] = t->s[i + 1];
		n = SP_SCOPES - 1;
	}
	t->s[n] = (struct sp_scope){.sp = s->sp, .ns = s->ns, .ra = s->ra};
	t->n = n + 1;
}

/* The thread's own, new where it has none and is about to get one. */
static __always_inline struct sp_scopes *sp_scopes_of(__u64 pid_tgid, bool make)
{
	struct sp_scopes *t = bpf_map_lookup_elem(&sp_scopes, &pid_tgid);

	if (t || !make)
		return t;
	if (!bpf_map_update_elem(&sp_scopes, &pid_tgid, &sp_scopes_none, BPF_ANY))
		t = bpf_map_lookup_elem(&sp_scopes, &pid_tgid);
	if (!t)
		sp_count(SP_C_SCOPE_FULL);
	return t;
}

/* At an entry: c->scope_ns; the call is saved for its return, and becomes a scope itself. A global
 * function, like those of saved.bpf.h. */
__noinline int sp_call_enter(const struct sp_probe *p, __u32 idx, struct sp_call *c, __u64 pid_tgid,
			     bool save)
{
	struct sp_scopes *t = NULL;
	struct sp_saved *s;
	bool push;

	if (!p || !c)
		return 0;
	push = sp_have_scopes && save && p->flags & SP_P_SCOPE;
	if (sp_have_scopes && p->flags & (SP_P_SCOPE | SP_P_SCOPED))
		t = sp_scopes_of(pid_tgid, push);
	if (t)
		c->scope_ns = sp_scope_top(t, c->sp);
	if (!save)
		return 0;
	s = sp_call_save(p, idx, c, pid_tgid);
	if (t && push && s)
		sp_scope_push(t, s);
	return 0;
}

/* At a return, where the stack pointer was sp at the entry. */
__noinline int sp_scope_leave(__u64 pid_tgid, __u64 sp)
{
	struct sp_scopes *t = bpf_map_lookup_elem(&sp_scopes, &pid_tgid);

	if (!t)
		return 0;
	for (int i = 0; i < SP_SCOPES; i++) {
		__u64 top = t->n - 1;

		if (top >= SP_SCOPES || t->s[top].sp > sp)
			break;
		t->n = top;
	}
	return 0;
}

#endif
