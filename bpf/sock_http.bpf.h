/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* HTTP on a socket: requests come in, replies go out, in the same order. */
#ifndef SP_SOCK_HTTP_BPF_H
#define SP_SOCK_HTTP_BPF_H

/* A request's head is complete. */
static __always_inline void sp_http_got_request(struct sp_conn *c, struct sp_http *h,
						const struct sp_io *io)
{
	__u32 n = ++c->requests;
	bool head = h->text[0] == 'H' && h->text[1] == 'E' && h->text[2] == 'A' &&
		    h->text[3] == 'D' && h->text[4] == ' ';

	if (head)
		c->heads |= 1ull << (n & 63);
	else
		c->heads &= ~(1ull << (n & 63));
	sp_http_emit(c, h, io->pid_tgid, SP_HTTP_REQUEST, n);
	if (h->why == SP_WHY_ENCODED)
		sp_conn_tell(c, io->pid_tgid,
			     SP_CONN_CODE(SP_CONN_UNREADABLE, SP_WHY_ENCODED, io->dir), n);
	if (sp_http_bodyless(h))
		sp_http_emit(c, h, io->pid_tgid, SP_HTTP_REQUEST_END, n);
}

static __always_inline void sp_http_got_reply(struct sp_conn *c, struct sp_http *h,
					      const struct sp_io *io)
{
	__u32 n = ++c->replies;

	h->head_only = c->heads >> (n & 63) & 1;
	sp_http_emit(c, h, io->pid_tgid, SP_HTTP_REPLY, n);
	if (sp_http_bodyless(h))
		sp_http_emit(c, h, io->pid_tgid, SP_HTTP_REPLY_END, n);
}

/* Nothing more of both directions (UPGRADE, VERSION), or of this one from here on (LONG). */
static __always_inline void sp_http_got_unreadable(struct sp_conn *c, struct sp_dir *d,
						   const struct sp_io *io)
{
	__u8 why = d->h.why;

	sp_conn_tell(c, io->pid_tgid, SP_CONN_CODE(SP_CONN_UNREADABLE, why, io->dir), 0);
	d->is = SP_DIR_SEEK;
	d->idle = 0;
	d->begun = 0;
	if (why == SP_WHY_UPGRADE || why == SP_WHY_VERSION) {
		c->dir[0].is = SP_DIR_OFF;
		c->dir[1].is = SP_DIR_OFF;
	}
}

/* What a byte completed (did is not NOTHING). True: look at no more bytes. */
__noinline int sp_http_done(struct sp_conn *c, struct sp_dir *d, struct sp_io *io, __u32 did)
{
	bool out;

	if (!c || !d || !io)
		return 1;
	if (io->dry) {
		io->head = did == SP_HTTP_DID_HEAD;
		io->bad = !io->head;
		return 1;
	}
	out = io->dir == SP_DIR_OUT;
	switch (did) {
	case SP_HTTP_DID_HEAD:
		if (out)
			sp_http_got_reply(c, &d->h, io);
		else
			sp_http_got_request(c, &d->h, io);
		return 0;
	case SP_HTTP_DID_LIST:
	case SP_HTTP_DID_VALUE:
		sp_http_emit(c, &d->h, io->pid_tgid,
			     SP_HTTP_VALUE | (did == SP_HTTP_DID_LIST) << 16, c->requests);
		if (!sp_http_bodyless(&d->h))
			return 0;
		/* fallthrough */
	case SP_HTTP_DID_END:
		sp_http_emit(c, &d->h, io->pid_tgid, out ? SP_HTTP_REPLY_END : SP_HTTP_REQUEST_END,
			     out ? c->replies : c->requests);
		return 0;
	case SP_HTTP_DID_UNREADABLE:
		sp_http_got_unreadable(c, d, io);
		return 1;
	default:
		sp_lost(c, d, io, SP_WHY_BAD, 0);
		return 1;
	}
}

/* Eight bytes at a time, as far as it goes. */
__noinline int sp_http_words(struct sp_http *h, struct sp_block *b)
{
	if (!h || !b || h->json < SP_JSON_KEY)
		return 0;
	for (int i = 0; i < SP_WORDS; i++) {
		__u32 at = b->at;

		if (at + 8 > b->n ||
		    !sp_http_word(h, *(const sp_word *)(b->data + (at & (SP_BLOCK - 1)))))
			break;
		b->at = at + 8;
	}
	return 0;
}

__noinline int sp_http_feed(struct sp_conn *c, struct sp_dir *d, struct sp_block *b,
			    struct sp_io *io)
{
	const struct sp_sock_rule *rule;
	__u32 idx;

	if (!c || !d || !b || !io)
		return 1;
	idx = c->rule;
	rule = bpf_map_lookup_elem(&sp_sock_rules, &idx);
	if (!rule)
		return 1;
	for (int i = 0; i < SP_FEED; i++) {
		__u32 at;
		int did;

		sp_http_words(&d->h, b);
		at = b->at;
		if (at >= b->n)
			break;
		b->at = at + 1;
		did = sp_http_byte(&d->h, (const struct sp_http_keys *)rule->key,
				   (__u8)b->data[at & (SP_BLOCK - 1)]);
		if (did && sp_http_done(c, d, io, did))
			return 1;
		if (sp_http_skip(&d->h))
			break;
	}
	return 0;
}

#endif
