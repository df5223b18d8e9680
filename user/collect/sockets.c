// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/confirm.h"
#include "collect/conns.h"
#include "collect/http.h"

#define MAX_SEALED 64

struct sockets {
	struct {
		uint32_t pid;
		uint8_t why;
	} sealed[MAX_SEALED]; /* told */
	int nsealed;
	const struct profile *p;
	struct sock_out out;
	struct conns *conns;
	struct http *http;
	struct confirm *confirm;
};

static void on_told(void *ctx, const struct sp_event *ev, uint64_t conn, uint64_t ns)
{
	const struct sockets *s = ctx;

	conns_told(s->conns, ev, conn, ns);
}

struct sockets *sockets_new(const struct profile *p, const struct collect_ops *ops, void *ops_ctx,
			    sockets_emit emit, void *ctx)
{
	struct sockets *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->p = p;
	s->out = (struct sock_out){.ops_ctx = ops_ctx, .emit = emit, .ctx = ctx};
	if (ops)
		s->out.ops = *ops;
	s->conns = conns_new(p, &s->out);
	s->http = http_new(p, &s->out);
	s->confirm = confirm_new(p, &s->out, on_told, s);
	if (!s->conns || !s->http || !s->confirm) {
		sockets_free(s);
		return NULL;
	}
	return s;
}

void sockets_free(struct sockets *s)
{
	if (!s)
		return;
	confirm_free(s->confirm);
	http_free(s->http);
	conns_free(s->conns);
	free(s);
}

/* Are requests expected in this process? */
static bool takes_requests(const struct sockets *s, uint32_t pid)
{
	uint32_t owner = pid;

	for (int i = 0; s->p->sockets && i < s->p->sockets->nentries; i++) {
		const struct sock_entry *e = &s->p->sockets->entry[i];

		if (e->rule.decode == SP_DEC_HTTP && e->process.is & SOCK_IS_SELF)
			return true;
	}
	return s->out.ops.owners && s->out.ops.owners(s->out.ops_ctx, pid, &owner, 1) > 0 &&
	       owner != pid;
}

/* Requests that nobody can read: told once for each process and reason, as clients come and go. */
static void tell_sealed(struct sockets *s, const struct sp_rec_conn *rec)
{
	struct sp_event ev;

	if (rec->why != SP_WHY_TLS && (rec->why != SP_WHY_VERSION || rec->decode != SP_DEC_HTTP))
		return;
	for (int i = 0; i < s->nsealed; i++)
		if (s->sealed[i].pid == rec->h.pid && s->sealed[i].why == rec->why)
			return;
	if (s->nsealed == MAX_SEALED || !takes_requests(s, rec->h.pid))
		return;
	s->sealed[s->nsealed].pid = rec->h.pid;
	s->sealed[s->nsealed++].why = rec->why;
	sp_event_init(&ev);
	ev.ns = rec->h.ns;
	ev.pid = rec->h.pid;
	ev.role = ROLE_PEER;
	snprintf(ev.kind, sizeof(ev.kind), "sealed");
	snprintf(ev.note, sizeof(ev.note), "%s", conns_why(rec->why));
	conns_address(rec->family, rec->raddr, rec->rport, ev.peer, sizeof(ev.peer));
	owners_emit(&s->out, &ev);
}

static void conn_record(struct sockets *s, const struct sp_rec_conn *rec)
{
	bool replies = conns_follows(s->conns, rec->conn, SP_DIR_OUT);

	switch (rec->what) {
	case SP_CONN_LOST:
	case SP_CONN_UNREADABLE:
		tell_sealed(s, rec);
		if (rec->why == SP_WHY_ENCODED)
			http_unreadable(s->http, rec->conn);
		else
			http_lost(s->http, rec->conn, rec->h.ns, conns_why(rec->why));
		break;
	case SP_CONN_CLOSED:
	case SP_CONN_RESET:
		if (rec->what == SP_CONN_RESET && replies)
			http_reset(s->http, rec);
		else
			http_ended(s->http, rec->conn, rec->h.ns, replies);
		break;
	default:
		break;
	}
	conns_record(s->conns, rec);
}

void sockets_record(struct sockets *s, const void *rec, size_t len)
{
	const struct sp_rec *h = rec;

	if (len < sizeof(*h))
		return;
	if (h->type == SP_REC_CONN && len >= sizeof(struct sp_rec_conn)) {
		conn_record(s, rec);
	} else if (h->type == SP_REC_HTTP && len >= sizeof(struct sp_rec_http)) {
		const struct sp_rec_http *http = rec;

		if (http->h.probe < s->p->nprobes)
			http_record(s->http, http, conns_follows(s->conns, http->conn, SP_DIR_OUT));
	}
}

void sockets_message(struct sockets *s, const struct sp_event *ev, uint64_t conn, bool sent)
{
	/* what the watched process says does not introduce the other side */
	if (!sent)
		conns_message(s->conns, ev, conn);
	confirm_socket(s->confirm, ev, conn, sent);
}

bool sockets_native(struct sockets *s, const struct sp_event *ev)
{
	return confirm_native(s->confirm, ev);
}

void sockets_tick(struct sockets *s, uint64_t now_ns)
{
	confirm_tick(s->confirm, now_ns);
	http_tick(s->http, now_ns);
	conns_tick(s->conns, now_ns);
}

void sockets_process_gone(struct sockets *s, uint32_t pid, uint64_t ns)
{
	for (int i = s->nsealed - 1; i >= 0; i--)
		if (s->sealed[i].pid == pid)
			s->sealed[i] = s->sealed[--s->nsealed];
	confirm_process_gone(s->confirm, pid);
	http_process_gone(s->http, pid, ns);
	conns_process_gone(s->conns, pid);
}

void sockets_stats(const struct sockets *s, struct collect_stats *st)
{
	st->sockets_over = 0;
	conns_stats(s->conns, st);
	http_stats(s->http, st);
	confirm_stats(s->confirm, st);
}
