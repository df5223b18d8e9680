/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Probes that look at several elements (struct sp_each): lists and arrays, of one or two levels.
 * All that has a state is a global function: the verifier then knows nothing of what it wrote, and
 * looks at each turn of the loop as at the one before.
 */
#ifndef SP_EACH_BPF_H
#define SP_EACH_BPF_H

struct sp_cursor {
	__u64 at;     /* the element */
	__u64 left;   /* elements, this one included; of a list, 1 */
	__u64 stride; /* of a list, 0 */
};

enum sp_walk_for {
	SP_WALK_RECORDS = 1,
	SP_WALK_POST = 2, /* count what is posted */
	SP_WALK_BACK = 4, /* it was not posted: from w->refused on */
	SP_WALK_DONE = 8, /* count what is completed */
	SP_WALK_END = 16, /* forget what was counted */
};

/* Where a walk over the elements stands. */
struct sp_walk {
	struct sp_cursor cur[2];
	__u64 first[2]; /* sp_call.each of the first element that qualified */
	__u64 refused;  /* SP_WALK_BACK: the first element that was not posted; 0: all were not */
	__u32 looked;   /* elements, of both levels */
	__u16 count;    /* of the level that gives records */
	__u16 posted;   /* of these, what stays counted as posted */
	__u32 idx;      /* the probe */
	__u8 what;      /* SP_WALK_* */
	__u8 inner;     /* cur[1] is in use */
	__u8 found;     /* first is set */
	__u8 cut;
};

enum sp_next { SP_NEXT_END, SP_NEXT_AGAIN, SP_NEXT_ELEMENT };

/* The first element of a level; left is 0 where there is none. */
__noinline int sp_each_open(const struct sp_each_level *l, const struct sp_call *c,
			    struct sp_cursor *cur)
{
	__u64 base = 0, count = 0, number = 0;
	bool bad;

	if (!l || !c || !cur)
		return 0;
	cur->left = 0;
	cur->stride = l->stride;
	bad = sp_scalar(&l->base, c, &base);
	if (l->kind != SP_EACH_LIST)
		bad |= sp_scalar(&l->count, c, &count) != 0;
	if (l->kind == SP_EACH_END && !l->stride)
		bad |= sp_scalar(&l->number, c, &number) != 0;
	if (bad) {
		sp_count(SP_C_READ_FAULT);
		return 0;
	}
	cur->at = base;
	if (!base)
		return 0;
	if (l->kind == SP_EACH_LIST) {
		cur->left = 1;
	} else if (l->kind == SP_EACH_COUNT) {
		cur->left = (__s64)count > 0 ? count : 0;
	} else if (l->kind == SP_EACH_END && count > base) {
		if (!l->stride && (__s64)number > 0)
			cur->stride = (count - base) / number;
		if (cur->stride)
			cur->left = (count - base) / cur->stride;
	}
	return 0;
}

/* Go on to the next one. False: this one cannot be read, and is none. */
static __always_inline bool sp_each_step(const struct sp_each_level *l, struct sp_cursor *cur)
{
	if (l->kind != SP_EACH_LIST) {
		cur->at += cur->stride;
		cur->left--;
		return true;
	}
	if (bpf_probe_read_user(&cur->at, 8, (void *)(cur->at + l->next))) {
		sp_count(SP_C_READ_FAULT);
		cur->left = 0;
		return false;
	}
	cur->left = cur->at ? 1 : 0;
	return true;
}

/* Count one more element. False: so many are not looked at. */
static __always_inline bool sp_each_look(struct sp_walk *w)
{
	if (w->looked >= SP_EACH_MAX) {
		w->cut = 1;
		return false;
	}
	w->looked++;
	return true;
}

/* The next element to c->each: enum sp_next. */
__noinline int sp_each_next(const struct sp_each *e, struct sp_call *c, struct sp_walk *w)
{
	if (!e || !c || !w)
		return SP_NEXT_END;
	if (w->inner && w->cur[1].left) {
		if (!sp_each_look(w))
			return SP_NEXT_END;
		c->each[0] = w->cur[1].at;
		c->each[1] = w->cur[0].at;
		return sp_each_step(&e->level[1], &w->cur[1]) ? SP_NEXT_ELEMENT : SP_NEXT_AGAIN;
	}
	if (w->inner) {
		w->inner = 0;
		sp_each_step(&e->level[0], &w->cur[0]);
	}
	if (!w->cur[0].left || !sp_each_look(w))
		return SP_NEXT_END;
	c->each[0] = w->cur[0].at;
	c->each[1] = w->cur[0].at;
	if (e->nlevels > 1) {
		sp_each_open(&e->level[1], c, &w->cur[1]);
		w->inner = 1;
		return SP_NEXT_AGAIN;
	}
	return sp_each_step(&e->level[0], &w->cur[0]) ? SP_NEXT_ELEMENT : SP_NEXT_END;
}

/* The record of the element at hand. */
__noinline int sp_each_emit(const struct sp_probe *p, struct sp_call *c, __u32 idx, __u64 pid_tgid)
{
	if (p && c)
		sp_emit(p, idx, c, pid_tgid, NULL);
	return 0;
}

static __always_inline struct sp_tally *sp_tally_of(const struct sp_tally_key *key, bool make)
{
	static const struct sp_tally none;
	struct sp_tally *t = bpf_map_lookup_elem(&sp_tallies, key);

	if (t || !make)
		return t;
	/* another thread may be as far */
	bpf_map_update_elem(&sp_tallies, key, &none, BPF_NOEXIST);
	t = bpf_map_lookup_elem(&sp_tallies, key);
	if (!t)
		sp_count(SP_C_TALLY_FULL);
	return t;
}

/* Two at once may miss what the next one makes good. */
static __always_inline void sp_ahead(__u64 completed, __u64 of, __u64 *most)
{
	__s64 ahead = completed - of;

	if (ahead > (__s64)*most)
		*most = ahead;
}

/* Which tally the element at hand is of. False: it cannot be read. */
static __always_inline bool sp_tally_key_of(const struct sp_each *e, const struct sp_probe *p,
					    const struct sp_call *c, struct sp_tally_key *key)
{
	key->id = e->tally_id;
	if (!sp_arg(p, e->tally_fetch, c, &key->key) &&
	    (!e->has_within || !sp_arg(p, e->within_fetch, c, &key->within)))
		return true;
	sp_count(SP_C_READ_FAULT);
	return false;
}

/* Count the element at hand. */
__noinline int sp_each_tally(const struct sp_each *e, const struct sp_probe *p,
			     const struct sp_call *c, __u8 what, __u64 pid_tgid)
{
	struct sp_tally_key key = {.pid = pid_tgid >> 32};
	struct sp_tally *t;
	bool asks;

	if (!e || !p || !c)
		return 0;
	if (!sp_tally_key_of(e, p, c, &key))
		return 0;
	asks = !e->has_asks || sp_cond(&e->asks, c);
	if (what & (SP_WALK_DONE | SP_WALK_END) && !asks)
		return 0;
	if (what & SP_WALK_END) {
		if (!e->has_only || sp_cond(&e->only, c))
			bpf_map_delete_elem(&sp_tallies, &key);
		return 0;
	}
	t = sp_tally_of(&key, !(what & SP_WALK_BACK));
	if (!t)
		return 0;
	if (what & SP_WALK_DONE) {
		__sync_fetch_and_add(&t->completed, 1);
		sp_ahead(t->completed, t->posted, &t->early);
		sp_ahead(t->completed, t->asked, &t->early_asked);
		if (e->has_only && sp_cond(&e->only, c))
			__sync_fetch_and_add(&t->failed, 1);
		t->done_ns = bpf_ktime_get_ns();
		return 0;
	}
	__sync_fetch_and_add(&t->posted, what & SP_WALK_BACK ? -1ull : 1ull);
	if (asks)
		__sync_fetch_and_add(&t->asked, what & SP_WALK_BACK ? -1ull : 1ull);
	if (what & SP_WALK_POST) {
		t->post_ns = bpf_ktime_get_ns();
		t->tid = (__u32)pid_tgid;
	}
	return 0;
}

/* What the walk is for, with the element at hand. */
__noinline int sp_each_one(const struct sp_each *e, const struct sp_probe *p, struct sp_call *c,
			   struct sp_walk *w, __u64 pid_tgid)
{
	__u8 what;

	if (!e || !p || !c || !w)
		return 0;
	what = w->what;
	if (w->refused == c->each[0])
		w->refused = 0;
	if (w->refused)
		what &= ~SP_WALK_BACK;
	c->posted = !(what & SP_WALK_BACK);
	w->count++;
	w->posted += c->posted;
	if (what & (SP_WALK_POST | SP_WALK_BACK | SP_WALK_DONE | SP_WALK_END))
		sp_each_tally(e, p, c, what, pid_tgid);
	if (!(what & SP_WALK_RECORDS) || (e->first && w->found))
		return 0;
	if (e->has_only && !sp_cond(&e->only, c))
		return 0;
	if (!e->first)
		return sp_each_emit(p, c, w->idx, pid_tgid);
	w->found = 1;
	w->first[0] = c->each[0];
	w->first[1] = c->each[1];
	return 0;
}

/* What a hit of a probe asks for. */
static __always_inline __u8 sp_walk_what(const struct sp_each *e, enum sp_turn turn, __u32 site,
					 const struct sp_call *c)
{
	__u8 what = turn == SP_TURN_EVENT ? SP_WALK_RECORDS : 0;

	if (e->tally == SP_TALLY_POST) {
		if (site < SP_SITE_RETURN)
			what |= SP_WALK_POST;
		else if ((__s32)c->ret)
			what |= SP_WALK_BACK;
	}
	if (e->tally == SP_TALLY_END && site < SP_SITE_RETURN)
		what |= SP_WALK_END;
	/* not at the entry, when it is only saved: there they are not complete yet */
	if (e->tally == SP_TALLY_DONE && site != SP_SITE_SAVE)
		what |= SP_WALK_DONE;
	return what;
}

/*
 * Of a call that failed: where what was not posted begins. When none of its elements is there, it
 * is not known, and nothing counts as posted. A search before the walk, so that what is told of an
 * element is right.
 */
__noinline int sp_each_refused(const struct sp_each *e, struct sp_call *c, struct sp_walk *w)
{
	__u64 refused = 0;

	if (!e || !c || !w)
		return 0;
	if (sp_scalar(&e->refused, c, &refused)) {
		sp_count(SP_C_READ_FAULT);
		return 0;
	}
	sp_each_open(&e->level[0], c, &w->cur[0]);
	for (int i = 0; i <= SP_EACH_MAX; i++) {
		int next = sp_each_next(e, c, w);

		if (next == SP_NEXT_ELEMENT && c->each[0] == refused)
			w->refused = refused;
		if (next == SP_NEXT_END || w->refused)
			break;
	}
	if (w->cut) /* it is behind those that are looked at */
		w->refused = refused;
	w->looked = 0;
	w->inner = 0;
	w->cut = 0;
	return 0;
}

static __always_inline void sp_each_walk(const struct sp_each *e, const struct sp_probe *p,
					 struct sp_call *c, struct sp_walk *w, __u64 pid_tgid)
{
	sp_each_open(&e->level[0], c, &w->cur[0]);
	for (int i = 0; i <= SP_EACH_MAX; i++) {
		int next = sp_each_next(e, c, w);

		if (next == SP_NEXT_END)
			break;
		if (next == SP_NEXT_ELEMENT)
			sp_each_one(e, p, c, w, pid_tgid);
	}
	if (w->cut)
		sp_count(SP_C_EACH_CUT);
	if (w->found) {
		c->each[0] = w->first[0];
		c->each[1] = w->first[1];
		c->count = w->count;
		c->posted = w->posted;
		sp_each_emit(p, c, w->idx, pid_tgid);
	}
}

SEC("sp_uprobe")
int hit_each(struct pt_regs *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx), pid_tgid = sp_pid_tgid();
	struct sp_walk w = {.idx = SP_COOKIE_PROBE(cookie)};
	const struct sp_probe *p = bpf_map_lookup_elem(&sp_probes, &w.idx);
	const struct sp_each *e = bpf_map_lookup_elem(&sp_each_of, &w.idx);
	struct sp_call c = {};
	enum sp_turn turn;

	if (!p || !e)
		return 0;
	turn = sp_arrive(ctx, p, cookie, &c, pid_tgid, true);
	if (turn == SP_TURN_NONE)
		return 0;
	w.what = sp_walk_what(e, turn, SP_COOKIE_SITE(cookie), &c);
	if (w.what & SP_WALK_BACK && e->has_refused)
		sp_each_refused(e, &c, &w);
	if (w.what)
		sp_each_walk(e, p, &c, &w, pid_tgid);
	return 0;
}

#endif
