// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/http_priv.h"

#define MAX_HELD 262144 /* values and rooms in memory, about 200 bytes each at most */
/* After a reset, what is told by calls that were under way: the bytes have moved, the thread has
 * not come back from the kernel yet. */
#define AFTER_RESET_NS 500000000ull

struct http *http_new(const struct profile *p, const struct sock_out *out)
{
	struct http *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->p = p;
	h->out = out;
	return h;
}

/* ---- what is held ------------------------------------------------------------------------- */

static void in_drop(struct http *h, struct stream *s)
{
	for (int i = 0; i < SOCK_NKEYS; i++) {
		h->held -= s->in.key[i].n;
		values_free(&s->in.key[i]);
	}
	s->in = (struct coming){.num = 0};
	s->receiving = false;
}

static void first_drop(struct http *h, struct stream *s)
{
	struct request *r = s->first;

	s->first = r->next;
	if (!s->first)
		s->last = NULL;
	h->held -= r->nrooms;
	free(r);
}

static void stream_drop(struct http *h, struct stream *s)
{
	in_drop(h, s);
	while (s->first)
		first_drop(h, s);
	HASH_DEL(h->by_id, s);
	free(s);
}

void http_free(struct http *h)
{
	struct stream *s, *next;

	if (!h)
		return;
	HASH_ITER (hh, h->by_id, s, next)
		stream_drop(h, s);
	free(h);
}

/* Nothing is known of it any more, and nothing waited for. */
static void stream_drop_idle(struct http *h, struct stream *s)
{
	if (!s->first && !s->receiving && !s->reset_ns)
		stream_drop(h, s);
}

static struct stream *find(const struct http *h, uint64_t id)
{
	struct stream *s;

	HASH_FIND(hh, h->by_id, &id, sizeof(id), s);
	return s;
}

/* ---- given up ----------------------------------------------------------------------------- */

/* The first request will not be seen answered. */
static void give_up(struct http *h, struct stream *s, uint64_t ns, const char *note)
{
	http_say_all(h, s, s->first, ROLE_PEER, "untracked", ns, 0, note);
	first_drop(h, s);
}

static void give_up_all(struct http *h, struct stream *s, uint64_t ns, const char *note)
{
	while (s->first)
		give_up(h, s, ns, note);
	stream_drop(h, s);
}

/* ---- requests ----------------------------------------------------------------------------- */

static struct stream *get(struct http *h, uint64_t conn, const struct sp_rec *rec)
{
	struct stream *s = find(h, conn);

	if (s)
		return s;
	if (HASH_COUNT(h->by_id) >= SP_MAX_CONNS) { /* the head is the oldest */
		h->over++;
		give_up_all(h, h->by_id, rec->ns, "too many requests at once");
	}
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->id = conn;
	s->pid = rec->pid;
	HASH_ADD(hh, h->by_id, id, sizeof(s->id), s);
	if (!s->hh.tbl) {
		free(s);
		return NULL;
	}
	return s;
}

/* text: "POST /abort_request" */
static bool goes_to(const struct sp_rec_http *rec, const char *path)
{
	size_t len = rec->len < sizeof(rec->text) ? rec->len : sizeof(rec->text);
	const char *at = memchr(rec->text, ' ', len);

	if (!at || !path)
		return false;
	at++;
	len -= (size_t)(at - rec->text);
	return len == strlen(path) && !memcmp(at, path, len);
}

static void request(struct http *h, const struct sp_rec_http *rec)
{
	const struct sock_entry *e = http_entry(h, rec->h.probe);
	struct stream *s = get(h, rec->conn, &rec->h);

	if (!s)
		return;
	s->pid = rec->h.pid;
	s->probe = rec->h.probe;
	in_drop(h, s); /* the end of the one before was lost */
	s->receiving = true;
	s->in.num = rec->req;
	s->in.aborts = e && goes_to(rec, e->abort_path);
}

static void value(struct http *h, const struct sp_rec_http *rec)
{
	struct stream *s = find(h, rec->conn);
	struct values *v;
	int rc;

	if (!s || !s->receiving || s->in.num != rec->req || rec->key >= SOCK_NKEYS)
		return;
	v = &s->in.key[rec->key];
	h->held -= v->n;
	rc = h->held < MAX_HELD ? values_take(v, rec, rec->key == SOCK_KEY_ROOM && h->p->room_u64)
				: -1;
	h->held += v->n;
	if (rc < 0) {
		h->over++;
		s->in.cut = true;
	}
}

/* With several rooms the one reply comes when the last is done: it is no room's own. */
static bool is_single(const struct coming *in)
{
	const struct values *rooms = &in->key[SOCK_KEY_ROOM];

	return rooms->n == 1 && !in->cut && (!rooms->list || !rooms->v[0].index);
}

/* The rooms that came in, with what goes with each. NULL: none, or no memory. */
static struct request *rooms_of(const struct coming *in)
{
	const struct values *rooms = &in->key[SOCK_KEY_ROOM];
	uint32_t at_rid = 0, at_host = 0;
	struct request *r;

	if (!rooms->n)
		return NULL;
	r = calloc(1, sizeof(*r) + rooms->n * sizeof(r->rooms[0]));
	if (!r)
		return NULL;
	r->num = in->num;
	r->nrooms = rooms->n;
	for (uint32_t i = 0; i < rooms->n; i++) {
		uint16_t index = rooms->list ? rooms->v[i].index : UINT16_MAX;

		snprintf(r->rooms[i].room, SP_ROOM_MAX, "%.63s", rooms->v[i].text);
		snprintf(r->rooms[i].rid, SP_ROOM_MAX, "%.63s",
			 values_at(&in->key[SOCK_KEY_RID], index, &at_rid));
		snprintf(r->rooms[i].host, SP_ROOM_MAX, "%.63s",
			 values_at(&in->key[SOCK_KEY_HOST], index, &at_host));
	}
	return r;
}

/* Abort every unanswered room of this process's requests that has the id. */
static void abort_rid(struct http *h, const struct stream *by, const char *rid, uint64_t ns)
{
	for (const struct stream *s = h->by_id; s; s = s->hh.next) {
		if (s->pid != by->pid)
			continue;
		for (const struct request *r = s->first; r; r = r->next)
			for (uint32_t i = 0; i < r->nrooms; i++)
				if (!strcmp(r->rooms[i].rid, rid))
					http_say(h, s, r->num, &r->rooms[i], ROLE_ABORT, "", ns, 0,
						 "by an abort request");
	}
}

static void request_end(struct http *h, const struct sp_rec_http *rec, bool replies)
{
	struct stream *s = find(h, rec->conn);
	struct request *r;

	if (!s || !s->receiving || s->in.num != rec->req)
		return;
	r = rooms_of(&s->in);
	for (uint32_t i = 0; s->in.aborts && !r && i < s->in.key[SOCK_KEY_RID].n; i++)
		abort_rid(h, s, s->in.key[SOCK_KEY_RID].v[i].text, rec->h.ns);
	if (r && s->in.over) { /* refused before it was complete: the server never took it */
		free(r);
		r = NULL;
	}
	if (r) {
		r->code = s->in.code;
		h->held += r->nrooms;
		if (s->last)
			s->last->next = r;
		else
			s->first = r;
		s->last = r;
		for (uint32_t i = 0; i < r->nrooms; i++)
			http_arrive(h, s, r->num, &r->rooms[i], rec->h.ns,
				    replies && is_single(&s->in));
		if (s->in.replied)
			http_say_all(h, s, r, ROLE_REPLY, "first", rec->h.ns, r->code, "");
	}
	in_drop(h, s);
	stream_drop_idle(h, s);
}

/* ---- replies ------------------------------------------------------------------------------ */

static void reply(struct http *h, const struct sp_rec_http *rec)
{
	bool end = rec->what == SP_HTTP_REPLY_END;
	struct stream *s = find(h, rec->conn);

	if (!s)
		return;
	while (s->first && s->first->num < rec->req)
		give_up(h, s, rec->h.ns, "its reply was not seen");
	if (s->first && s->first->num == rec->req) {
		if (rec->code)
			s->first->code = rec->code;
		http_say_all(h, s, s->first, ROLE_REPLY, end ? "end" : "first", rec->h.ns,
			     s->first->code, "");
		if (end)
			first_drop(h, s);
	} else if (s->receiving && s->in.num == rec->req) {
		s->in.replied = true;
		s->in.over |= end;
		if (rec->code)
			s->in.code = rec->code;
	}
	stream_drop_idle(h, s);
}

void http_record(struct http *h, const struct sp_rec_http *rec, bool replies)
{
	switch (rec->what) {
	case SP_HTTP_REQUEST:
		request(h, rec);
		break;
	case SP_HTTP_VALUE:
		value(h, rec);
		break;
	case SP_HTTP_REQUEST_END:
		request_end(h, rec, replies);
		break;
	case SP_HTTP_REPLY:
	case SP_HTTP_REPLY_END:
		reply(h, rec);
		break;
	default:
		break;
	}
}

/* ---- ends --------------------------------------------------------------------------------- */

static void clients_gone(struct http *h, struct stream *s, uint64_t ns)
{
	while (s->first) {
		http_say_all(h, s, s->first, ROLE_ABORT, "client-gone", ns, 0, "");
		first_drop(h, s);
	}
	stream_drop(h, s);
}

void http_ended(struct http *h, uint64_t conn, uint64_t ns, bool replies)
{
	struct stream *s = find(h, conn);

	if (!s)
		return;
	if (!replies)
		give_up_all(h, s, ns, "closed, and its reply may have passed unseen");
	else
		clients_gone(h, s, ns);
}

void http_reset(struct http *h, const struct sp_rec_conn *rec)
{
	struct stream *s = rec->decode == SP_DEC_HTTP ? get(h, rec->conn, &rec->h) : NULL;

	if (!s || s->reset_ns)
		return;
	s->reset_ns = rec->h.ns;
	if (!h->due_ns)
		h->due_ns = s->reset_ns + AFTER_RESET_NS;
}

void http_tick(struct http *h, uint64_t now_ns)
{
	struct stream *s, *next;

	if (!h->due_ns || now_ns < h->due_ns)
		return;
	h->due_ns = 0;
	HASH_ITER (hh, h->by_id, s, next) {
		uint64_t due_ns = s->reset_ns + AFTER_RESET_NS;

		if (!s->reset_ns)
			continue;
		if (due_ns <= now_ns)
			clients_gone(h, s, now_ns);
		else if (!h->due_ns || due_ns < h->due_ns)
			h->due_ns = due_ns;
	}
}

void http_lost(struct http *h, uint64_t conn, uint64_t ns, const char *note)
{
	struct stream *s = find(h, conn);

	if (s)
		give_up_all(h, s, ns, note);
}

void http_unreadable(struct http *h, uint64_t conn)
{
	struct stream *s = find(h, conn);

	if (!s)
		return;
	in_drop(h, s);
	stream_drop_idle(h, s);
}

void http_process_gone(struct http *h, uint32_t pid, uint64_t ns)
{
	struct stream *s, *next;

	HASH_ITER (hh, h->by_id, s, next)
		if (s->pid == pid)
			give_up_all(h, s, ns, "the process that answers has ended");
}

void http_stats(const struct http *h, struct collect_stats *st)
{
	st->sockets_over += h->over;
}

size_t http_held(const struct http *h)
{
	return h->held;
}
