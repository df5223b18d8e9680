/* SPDX-License-Identifier: Apache-2.0 */
/* A message as a socket and as a uprobe show it, and what is told of it. */
#ifndef CONFIRM_RIG_H
#define CONFIRM_RIG_H

#include "sockets_rig.h"

#define ADDR "10.0.0.7:5555"

static inline struct sp_event announce(uint64_t ns, int probe, const char *room)
{
	struct sp_event ev = message(ns, probe, ROLE_ANNOUNCE, room, "a", ADDR);

	ev.need = 2;
	return ev;
}

/* The socket shows it; the agent's connection is not of interest here. */
static inline void by_socket(struct rig *r, uint64_t ns, const char *room)
{
	struct sp_event ev = announce(ns, P_BOOTSTRAP, room);

	sockets_message(r->s, &ev, 1, false);
	while (r->n && r->ev[0].role == ROLE_PEER && !strcmp(r->ev[0].kind, "opened"))
		rig_take(r);
}

static inline bool by_probe(struct rig *r, uint64_t ns, const char *room)
{
	struct sp_event ev = announce(ns, P_RECV, room);

	ev.tid = 77;
	return sockets_native(r->s, &ev);
}

static inline struct sp_event socket_told(struct rig *r, uint64_t ns, const char *room)
{
	struct sp_event ev = rig_expect(r, ROLE_ANNOUNCE, "");

	assert_int_equal(ev.ns, ns);
	assert_int_equal(ev.probe, P_BOOTSTRAP);
	assert_string_equal(ev.room, room);
	assert_int_equal(ev.need, 2);
	assert_int_equal(ev.flags, 0);
	return ev;
}

#endif
