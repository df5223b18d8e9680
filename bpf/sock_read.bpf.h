/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Sockets: a call's bytes, from the process's own buffers, to the decoder. Nested loops in global
 * functions: the verifier walks each of them once.
 */
#ifndef SP_SOCK_READ_BPF_H
#define SP_SOCK_READ_BPF_H

/* Times SP_FEED: 4 MiB a call can be looked at byte by byte, 128 MiB eight at a time, any number
 * skipped. */
#define SP_PUMP_INNER 8
#define SP_PUMP_MID   256
#define SP_PUMP_OUTER 256
#define SP_PEEK_SEGS  32 /* empty ones before the first byte */

/* User ABI, 64 bit: struct msghdr, struct mmsghdr. */
#define SP_MSG_IOV    16 /* msg_iov, then msg_iovlen */
#define SP_MMSG_BYTES 56 /* msg_len */
#define SP_MMSG_NEXT  64

/* The next segment, or the next message. False: there is none. */
__noinline int sp_io_next(struct sp_io *io)
{
	__u64 v[2] = {};

	if (!io)
		return 0;
	if (!io->at.left && io->at.msgs) {
		__u32 n = 0;

		if (bpf_probe_read_user(v, 16, (void *)(io->at.mm + SP_MSG_IOV)) ||
		    bpf_probe_read_user(&n, 4, (void *)(io->at.mm + SP_MMSG_BYTES)))
			return 0;
		io->at.mm += SP_MMSG_NEXT;
		io->at.msgs--;
		io->at.iov = v[0];
		io->at.segs = v[1];
		io->at.left = n;
		io->at.len = 0;
		return 1;
	}
	if (!io->at.segs)
		return 0;
	if (io->kernel ? bpf_probe_read_kernel(v, 16, (void *)io->at.iov)
		       : bpf_probe_read_user(v, 16, (void *)io->at.iov))
		return 0;
	io->at.iov += 16;
	io->at.segs--;
	io->at.cur = v[0];
	io->at.len = v[1] < io->at.left ? v[1] : io->at.left;
	return 1;
}

static __always_inline void sp_io_take(struct sp_io *io, __u64 n)
{
	io->at.cur += n;
	io->at.len -= n;
	io->at.left -= n;
}

/* The first byte, without taking it. False: it cannot be read. */
__noinline int sp_io_peek(struct sp_io *io)
{
	if (!io)
		return 0;
	for (int i = 0; i < SP_PEEK_SEGS; i++) {
		if (io->at.len)
			return !bpf_probe_read_user(&io->peek, 1, (void *)io->at.cur);
		if (!sp_io_next(io))
			break;
	}
	return 0;
}

static __always_inline __u64 sp_dir_skip(const struct sp_conn *c, const struct sp_dir *d)
{
	return c->kind == SP_KIND_HTTP ? sp_http_skip(&d->h) : sp_zmtp_pass(&d->z);
}

static __always_inline void sp_dir_skipped(const struct sp_conn *c, struct sp_dir *d, __u64 n)
{
	if (c->kind == SP_KIND_HTTP)
		sp_http_skipped(&d->h, n);
	else
		sp_zmtp_skipped(&d->z, n);
}

/* A few blocks. True: there is more to do. */
__noinline int sp_pump_some(struct sp_conn *c, struct sp_dir *d, struct sp_block *b,
			    struct sp_io *io)
{
	if (!c || !d || !b || !io)
		return 0;
	for (int i = 0; i < SP_PUMP_INNER; i++) {
		__u64 n, skip;

		if (!io->at.left && !io->at.msgs)
			return 0;
		if (!io->at.len) {
			if (sp_io_next(io))
				continue;
			io->fault = 1;
			return 0;
		}
		n = io->at.len;
		skip = sp_dir_skip(c, d);
		if (skip) {
			n = n < skip ? n : skip;
			sp_dir_skipped(c, d, n);
			sp_io_take(io, n);
			continue;
		}
		if (n > SP_BLOCK)
			n = SP_BLOCK;
		if (bpf_probe_read_user(b->data, n, (void *)io->at.cur)) {
			io->fault = 1;
			return 0;
		}
		b->n = n;
		b->at = 0;
		io->stop = c->kind == SP_KIND_HTTP ? sp_http_feed(c, d, b, io)
						   : sp_zmtp_feed(c, d, b, io);
		n = b->at;
		if (io->stop || n > io->at.len)
			return 0;
		sp_io_take(io, n);
	}
	return 1;
}

__noinline int sp_pump_more(struct sp_conn *c, struct sp_dir *d, struct sp_block *b,
			    struct sp_io *io)
{
	int more = 1;

	if (!c || !d || !b || !io)
		return 0;
	for (int i = 0; i < SP_PUMP_MID && more; i++)
		more = sp_pump_some(c, d, b, io);
	return more;
}

/* A free block: its number plus one, 0: none. */
static __always_inline __u32 sp_block_take(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	for (__u32 i = 0; i < SP_SLOT_TRIES; i++) {
		__u32 at = (cpu * SP_SLOT_TRIES + i) & (SP_BLOCKS - 1);
		struct sp_block *b = bpf_map_lookup_elem(&sp_blocks, &at);

		if (b && sp_take(&b->busy))
			return at + 1;
	}
	return 0;
}

/* All bytes of the call to the direction's decoder. */
__noinline int sp_pump(struct sp_conn *c, struct sp_dir *d, struct sp_io *io)
{
	__u32 at = sp_block_take() - 1;
	struct sp_block *b = bpf_map_lookup_elem(&sp_blocks, &at);
	int more = 1;

	if (!c || !d || !io)
		return 0;
	if (!b) {
		io->fault = 1;
		return 0;
	}
	for (int i = 0; i < SP_PUMP_OUTER && more; i++)
		more = sp_pump_more(c, d, b, io);
	if (more)
		io->fault = 1;
	/* A read that fails leaves zeros. */
	bpf_probe_read_user(b->data, sizeof(b->data), 0);
	sp_give(&b->busy);
	return 0;
}

#endif
