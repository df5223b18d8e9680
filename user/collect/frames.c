// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "collect/collect.h"

/* Threads that are in the middle of a message; more than these are given up, oldest first. */
#define OPEN_MAX_MESSAGES 4096
#define FRAME_NUMBER_MAX  255 /* sp_rec.frame counts no further */

struct key {
	uint64_t sock;
	uint32_t tid;   /* 0: a socket's frames; which thread reads it does not matter */
	uint32_t probe; /* and, above it, SP_RF_OUT: a socket's two directions do not mix */
};

struct open_message {
	struct key key;
	struct message msg;
	size_t used, cap; /* of msg.bytes */
	UT_hash_handle hh;
};

struct frames {
	struct open_message *open;
	struct message done;
};

struct frames *frames_new(void)
{
	return calloc(1, sizeof(struct frames));
}

static void drop(struct frames *f, struct open_message *o)
{
	HASH_DEL(f->open, o);
	free(o->msg.bytes);
	free(o);
}

void frames_free(struct frames *f)
{
	struct open_message *o, *next;

	if (!f)
		return;
	HASH_ITER (hh, f->open, o, next)
		drop(f, o);
	free(f->done.bytes);
	free(f);
}

static struct open_message *open_new(struct frames *f, const struct key *key)
{
	struct open_message *o;

	if (HASH_COUNT(f->open) >= OPEN_MAX_MESSAGES)
		drop(f, f->open); /* uthash keeps insertion order: the head is the oldest */
	o = calloc(1, sizeof(*o));
	if (!o)
		return NULL;
	o->key = *key;
	HASH_ADD(hh, f->open, key, sizeof(o->key), o);
	return o;
}

static bool keep(struct open_message *o, uint32_t size, const char *data, uint16_t len)
{
	struct frame *fr = &o->msg.frame[o->msg.n];

	if (len > FRAME_BYTES)
		len = FRAME_BYTES;
	if (o->used + len > o->cap) {
		size_t cap = o->cap ? o->cap * 2 : (size_t)4 * FRAME_BYTES;
		char *more = realloc(o->msg.bytes, cap);

		if (!more)
			return false;
		o->msg.bytes = more;
		o->cap = cap;
	}
	fr->size = size;
	fr->len = len;
	if (len)
		memcpy(o->msg.bytes + o->used, data, len);
	o->used += len;
	return true;
}

/* The message is whole: it is handed out, and its place is free again. */
static void finish(struct frames *f, struct open_message *o)
{
	const char *at;
	int n = o->msg.n < FRAMES_MAX ? o->msg.n : FRAMES_MAX;

	free(f->done.bytes);
	memcpy(&f->done, &o->msg, offsetof(struct message, frame) + n * sizeof(o->msg.frame[0]));
	o->msg.bytes = NULL;
	at = f->done.bytes;
	for (int i = 0; i < n; i++) {
		f->done.frame[i].data = at ? at : "";
		if (at)
			at += f->done.frame[i].len;
	}
	drop(f, o);
}

static struct key key_of(const struct sp_rec_hit *rec, uint64_t sock)
{
	return (struct key){
		.sock = sock,
		.tid = rec->h.tid,
		.probe = rec->h.probe | (uint32_t)(rec->h.flags & SP_RF_OUT) << 16,
	};
}

void frames_lost(struct frames *f, const struct sp_rec_hit *rec, const uint64_t *sock)
{
	struct key key = key_of(rec, sock ? *sock : 0);
	struct open_message *o, *next;

	HASH_ITER (hh, f->open, o, next)
		if (o->key.tid == key.tid && o->key.probe == key.probe &&
		    (!sock || o->key.sock == key.sock))
			drop(f, o);
}

int frames_add(struct frames *f, const struct sp_rec_hit *rec, uint64_t sock, uint32_t size,
	       const char *data, uint16_t len, const struct message **msg)
{
	struct key key = key_of(rec, sock);
	struct open_message *o;

	HASH_FIND(hh, f->open, &key, sizeof(key), o);
	if (rec->h.frame == 0 && o) { /* the rest of the last one was lost */
		drop(f, o);
		o = NULL;
	}
	if (!o) {
		if (rec->h.frame != 0)
			return -EBADMSG;
		o = open_new(f, &key);
		if (!o)
			return -ENOMEM;
		o->msg.pid = rec->h.pid;
		o->msg.tid = rec->h.tid;
		o->msg.probe = rec->h.probe;
		o->msg.cut = rec->h.flags & SP_RF_CUT;
	}
	if (rec->h.frame != (o->msg.n < FRAME_NUMBER_MAX ? o->msg.n : FRAME_NUMBER_MAX)) {
		drop(f, o);
		return -EBADMSG;
	}
	if (o->msg.n < FRAMES_MAX && !keep(o, size, data, len)) {
		drop(f, o);
		return -ENOMEM;
	}
	o->msg.n++;
	if (rec->h.flags & SP_RF_MORE)
		return 0;
	finish(f, o);
	*msg = &f->done;
	return 1;
}

/* Does the message, whose first frame is number `first` of the alternative, fit it? */
static bool fits(const struct evt_match *m, const struct message *msg, int first,
		 struct captures *caps)
{
	struct captures found = *caps;

	for (int i = first; i < m->nframes; i++) {
		const struct frame *fr = &msg->frame[i - first];

		if (!pattern_match(&m->frames[i], fr->data, fr->len, fr->size, &found))
			return false;
	}
	*caps = found;
	return true;
}

static int match_whole(const struct profile_probe *probe, const struct message *msg,
		       struct captures *caps)
{
	for (int i = 0; i < probe->nmatch; i++) {
		const struct evt_match *m = &probe->match[i];

		if (msg->n < m->nframes || (msg->n > m->nframes && !m->frames_open))
			continue;
		if (fits(m, msg, 0, caps))
			return i;
	}
	return -1;
}

/* Digits and free bytes alone fit the end of anything: an address or a literal must vouch for it.
 */
static bool distinctive(const struct evt_match *m, int first)
{
	for (int i = first; i < m->nframes; i++)
		for (int k = 0; k < m->frames[i].nparts; k++)
			if (!m->frames[i].part[k].is_capture ||
			    m->frames[i].part[k].shape == PAT_IP)
				return true;
	return false;
}

/*
 * Begun before the attach: the shape must be that of the end of an alternative. The thread was
 * waiting inside one call, so of an alternative without a known end just the first frame is
 * missing. Of several that fit, the one that says most (most frames) wins; if two with different
 * roles say the same, none.
 */
static int match_cut(const struct profile_probe *probe, const struct message *msg,
		     struct captures *caps)
{
	struct captures found = *caps, one;
	int which = -1;
	bool doubt = false;

	for (int i = 0; i < probe->nmatch; i++) {
		const struct evt_match *m = &probe->match[i];
		int first = m->frames_open ? 1 : m->nframes - msg->n;

		if (first < 1 || first >= m->nframes || msg->n < m->nframes - first)
			continue;
		if (which >= 0 && m->nframes < probe->match[which].nframes)
			continue;
		one = *caps;
		if (!distinctive(m, first) || !fits(m, msg, first, &one))
			continue;
		if (which >= 0 && m->nframes == probe->match[which].nframes) {
			doubt |= m->event.role != probe->match[which].event.role;
			continue;
		}
		which = i;
		doubt = false;
		found = one;
	}
	if (which < 0 || doubt)
		return -1;
	*caps = found;
	return which;
}

int frames_match(const struct profile_probe *probe, const struct message *msg,
		 struct captures *caps)
{
	return msg->cut ? match_cut(probe, msg, caps) : match_whole(probe, msg, caps);
}

bool frames_cut_tells(const struct profile_probe *probe, enum sp_role role)
{
	for (int i = 0; i < probe->nmatch; i++) {
		const struct evt_match *m = &probe->match[i];

		if (m->event.role != role || m->nframes < 2)
			continue;
		for (int k = 0; k < m->frames[0].nparts; k++)
			if (m->frames[0].part[k].name[0])
				return false;
		if (m->frames[1].nparts != 1 || !m->frames[1].part[0].is_capture ||
		    m->frames[1].part[0].shape != PAT_U64)
			return false;
	}
	return true;
}
