/* SPDX-License-Identifier: Apache-2.0 */
/* A profile made by hand, hand-fed records of sockets, and the events that come of them. */
#ifndef SOCKETS_RIG_H
#define SOCKETS_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "collect/collect.h"

#define SEC 1000000000ull
#define MS  1000000ull

/* Probes: the uprobes first, then one for each socket. */
enum { P_RECV = 0, P_SEND, P_BOOTSTRAP, P_HTTP, P_STATUS, P_SENT, P_N };
/* Sockets: confirmed by P_RECV; HTTP; messages of its own; confirmed by P_SEND. */
enum { S_BOOTSTRAP = 0, S_HTTP, S_STATUS, S_SENT, S_N };

#define PID   10
#define FRONT 20

struct rig {
	struct profile p;
	struct profile_probe probes[P_N];
	struct profile_sockets entries;
	struct collect_ops ops;
	struct sockets *s;
	struct sp_event *ev;
	size_t n, cap;
	bool has[P_N];       /* the uprobe is in place */
	uint32_t owners[80]; /* of FRONT */
	int nowners;
};

static void rig_emit(void *ctx, const struct sp_event *ev)
{
	struct rig *r = ctx;

	if (r->n == r->cap) {
		r->cap = r->cap ? 2 * r->cap : 64;
		r->ev = realloc(r->ev, r->cap * sizeof(*r->ev));
		assert_non_null(r->ev);
	}
	r->ev[r->n++] = *ev;
}

static int rig_owners(void *ctx, uint32_t pid, uint32_t *owners, int max)
{
	const struct rig *r = ctx;
	int n = 0;

	if (pid != FRONT) {
		owners[0] = pid;
		return 1;
	}
	for (; n < r->nowners && n < max; n++)
		owners[n] = r->owners[n];
	return n;
}

static bool rig_has(void *ctx, uint32_t pid, int probe)
{
	const struct rig *r = ctx;

	return pid == PID && probe >= 0 && r->has[probe];
}

static int rig_setup(void **state)
{
	static const int entry_probe[S_N] = {P_BOOTSTRAP, P_HTTP, P_STATUS, P_SENT};
	struct rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->p = (struct profile){.room_u64 = true,
				.probes = r->probes,
				.nprobes = P_N,
				.nuprobes = P_BOOTSTRAP,
				.fake_hosts = {"2.2.2.2"},
				.nfake_hosts = 1,
				.sockets = &r->entries};
	r->probes[P_RECV].socket = r->probes[P_SEND].socket = -1;
	r->entries.nentries = S_N;
	for (int i = 0; i < S_N; i++) {
		struct sock_entry *e = &r->entries.entry[i];

		e->probe = entry_probe[i];
		e->same_as = -1;
		e->rule.decode = i == S_HTTP ? SP_DEC_HTTP : SP_DEC_ZMTP;
		e->rule.dirs = 1 << SP_DIR_IN;
		r->probes[e->probe].socket = i;
	}
	r->entries.entry[S_BOOTSTRAP].same_as = P_RECV;
	r->entries.entry[S_BOOTSTRAP].wins = SOCK_WINS_PROBE;
	r->entries.entry[S_SENT].same_as = P_SEND;
	r->entries.entry[S_SENT].wins = SOCK_WINS_PROBE;
	r->entries.entry[S_HTTP].abort_path = "/abort_request";
	r->has[P_RECV] = r->has[P_SEND] = true;
	r->owners[0] = PID;
	r->nowners = 1;
	r->ops = (struct collect_ops){.owners = rig_owners, .has_probe = rig_has};
	r->s = sockets_new(&r->p, &r->ops, r, rig_emit, r);
	assert_non_null(r->s);
	*state = r;
	return 0;
}

static int rig_teardown(void **state)
{
	struct rig *r = *state;

	sockets_free(r->s);
	free(r->ev);
	free(r);
	return 0;
}

static __attribute__((unused)) void rig_none(struct rig *r)
{
	assert_int_equal(r->n, 0);
}

/* Take the oldest emitted event. */
static __attribute__((unused)) struct sp_event rig_take(struct rig *r)
{
	struct sp_event ev;

	assert_true(r->n > 0);
	ev = r->ev[0];
	r->n--;
	memmove(r->ev, r->ev + 1, r->n * sizeof(ev));
	return ev;
}

static __attribute__((unused)) struct sp_event rig_expect(struct rig *r, enum sp_role role,
							  const char *kind)
{
	struct sp_event ev = rig_take(r);

	assert_string_equal(sp_role_name(ev.role), sp_role_name(role));
	assert_string_equal(ev.kind, kind);
	return ev;
}

static __attribute__((unused)) struct collect_stats rig_stats(const struct rig *r)
{
	struct collect_stats st = {0};

	sockets_stats(r->s, &st);
	return st;
}

/* ---- records ------------------------------------------------------------------------------ */

/* Connection id comes from 10.0.0.N:41000+N, N its number. */
static __attribute__((unused)) struct sp_rec_conn conn_rec(uint64_t ns, uint32_t pid, uint64_t id,
							   int rule, int what)
{
	struct sp_rec_conn rec = {.h = {.ns = ns, .pid = pid, .type = SP_REC_CONN},
				  .conn = id,
				  .what = (uint8_t)what,
				  .family = AF_INET,
				  .rule = (uint8_t)rule,
				  .lport = 8998,
				  .rport = (uint16_t)(41000 + id),
				  .raddr = {10, 0, 0, (uint8_t)id}};

	if (what != SP_CONN_OPEN && rule < S_N)
		rec.decode = rule == S_HTTP ? SP_DEC_HTTP : SP_DEC_ZMTP;
	return rec;
}

static __attribute__((unused)) void feed_conn(struct rig *r, const struct sp_rec_conn *rec)
{
	sockets_record(r->s, rec, sizeof(*rec));
}

/* From its very beginning: OPEN, and KIND. */
static __attribute__((unused)) void conn_opens(struct rig *r, uint64_t ns, uint32_t pid,
					       uint64_t id, int rule)
{
	struct sp_rec_conn rec = conn_rec(ns, pid, id, rule, SP_CONN_OPEN);

	rec.num = 1;
	feed_conn(r, &rec);
	rec = conn_rec(ns, pid, id, rule, SP_CONN_KIND);
	rec.num = 1;
	feed_conn(r, &rec);
}

static __attribute__((unused)) void conn_is(struct rig *r, uint64_t ns, uint64_t id, int rule,
					    int what, int why, int dir)
{
	struct sp_rec_conn rec = conn_rec(ns, 0, id, rule, what); /* a packet did it */

	rec.why = (uint8_t)why;
	rec.dir = (uint8_t)dir;
	feed_conn(r, &rec);
}

static __attribute__((unused)) struct sp_event message(uint64_t ns, int probe, enum sp_role role,
						       const char *room, const char *agent,
						       const char *peer)
{
	struct sp_event ev;

	sp_event_init(&ev);
	ev.ns = ns;
	ev.pid = PID;
	ev.role = (uint8_t)role;
	ev.probe = (int16_t)probe;
	snprintf(ev.room, sizeof(ev.room), "%s", room);
	snprintf(ev.agent, sizeof(ev.agent), "%s", agent);
	snprintf(ev.peer, sizeof(ev.peer), "%s", peer);
	return ev;
}

#endif
