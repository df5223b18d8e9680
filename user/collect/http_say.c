// SPDX-License-Identifier: Apache-2.0
/* The events of requests. */
#include <stdio.h>

#include "collect/http_priv.h"

const struct sock_entry *http_entry(const struct http *h, uint16_t probe)
{
	int at;

	if (!h->p->sockets || probe >= h->p->nprobes)
		return NULL;
	at = h->p->probes[probe].socket;
	return at >= 0 && at < h->p->sockets->nentries ? &h->p->sockets->entry[at] : NULL;
}

/* Does the profile want this of requests? */
static bool tells(const struct http *h, const struct stream *s, unsigned what)
{
	const struct sock_entry *e = http_entry(h, s->probe);

	return !e || !e->events || e->events & what;
}

/* A number that no other request has. */
static uint64_t request_id(const struct stream *s, uint32_t num)
{
	return s->id << 20 ^ num;
}

void http_say(const struct http *h, const struct stream *s, uint32_t num, const struct http_room *r,
	      enum sp_role role, const char *kind, uint64_t ns, int64_t code, const char *note)
{
	struct sp_event ev;

	if (role == ROLE_REPLY && !tells(h, s, SOCK_TELLS_REPLY))
		return;
	if (role == ROLE_ABORT && kind[0] && !tells(h, s, SOCK_TELLS_GONE)) {
		role = ROLE_PEER;
		kind = "untracked";
	}
	sp_event_init(&ev);
	ev.ns = ns;
	ev.pid = s->pid;
	ev.probe = (int16_t)s->probe;
	ev.role = role;
	ev.op = request_id(s, num);
	ev.code = code;
	snprintf(ev.kind, sizeof(ev.kind), "%s", kind);
	snprintf(ev.room, sizeof(ev.room), "%s", r->room);
	snprintf(ev.rid, sizeof(ev.rid), "%s", r->rid);
	snprintf(ev.note, sizeof(ev.note), "%s", note);
	owners_emit(h->out, &ev);
}

void http_say_all(const struct http *h, const struct stream *s, const struct request *r,
		  enum sp_role role, const char *kind, uint64_t ns, int64_t code, const char *note)
{
	for (uint32_t i = 0; i < r->nrooms; i++)
		http_say(h, s, r->num, &r->rooms[i], role, kind, ns, code, note);
}

void http_arrive(const struct http *h, const struct stream *s, uint32_t num,
		 const struct http_room *r, uint64_t ns, bool tracked)
{
	struct sp_event ev;

	sp_event_init(&ev);
	ev.ns = ns;
	ev.pid = s->pid;
	ev.probe = (int16_t)s->probe;
	ev.role = ROLE_ARRIVE;
	ev.op = request_id(s, num);
	ev.flags = tracked && tells(h, s, SOCK_TELLS_REPLY) ? EV_TRACKED : 0;
	if (r->host[0] && profile_host_is_fake(h->p, r->host))
		ev.flags |= EV_FAKE;
	snprintf(ev.room, sizeof(ev.room), "%s", r->room);
	snprintf(ev.rid, sizeof(ev.rid), "%s", r->rid);
	snprintf(ev.peer, sizeof(ev.peer), "%s", r->host);
	owners_emit(h->out, &ev);
}
