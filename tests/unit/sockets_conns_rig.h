/* SPDX-License-Identifier: Apache-2.0 */
/* Connections and those behind them; see sockets_rig.h. */
#ifndef SOCKETS_CONNS_RIG_H
#define SOCKETS_CONNS_RIG_H

#include "sockets_rig.h"
#include "collect/conns.h"
#define NO_RULE 0xff
#define ADDR    "10.0.0.7:5555"

static __attribute__((unused)) void announce(struct rig *r, uint64_t ns, uint64_t conn,
					     const char *room, const char *agent, const char *peer)
{
	struct sp_event ev = message(ns, P_STATUS, ROLE_ANNOUNCE, room, agent, peer);

	sockets_message(r->s, &ev, conn, false);
}

static __attribute__((unused)) struct sp_event peer(struct rig *r, const char *kind,
						    const char *agent, const char *addr)
{
	struct sp_event ev = rig_expect(r, ROLE_PEER, kind);

	assert_string_equal(ev.agent, agent);
	assert_string_equal(ev.peer, addr);
	assert_int_equal(ev.pid, PID);
	assert_int_equal(ev.tid, 0);
	assert_int_equal(ev.probe, P_STATUS);
	return ev;
}

static __attribute__((unused)) void announced(struct rig *r)
{
	rig_expect(r, ROLE_ANNOUNCE, "");
}

#define T(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

#endif
