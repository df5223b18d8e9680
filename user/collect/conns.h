/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connections of watched sockets, and which agents announced themselves over them -> `peer`
 * events. A peer has gone with the last connection over which it had announced itself, so that one
 * that connects anew before its old connection ends has not.
 */
#ifndef SP_COLLECT_CONNS_H
#define SP_COLLECT_CONNS_H

#include "collect/owners.h"
#include "sp_sock.h"

struct conns;
struct conns *conns_new(const struct profile *p, const struct sock_out *out);
void conns_free(struct conns *c);
void conns_record(struct conns *c, const struct sp_rec_conn *rec);
/* A message came over the connection: its sender is one of the agents behind it. */
void conns_message(struct conns *c, const struct sp_event *ev, uint64_t conn);
/* The message goes to the model, at ns. When its connection has ended by then, and its sender has
 * no other, the model hears of that once more: before the message it could not place it. */
void conns_told(struct conns *c, const struct sp_event *ev, uint64_t conn, uint64_t ns);
/* Is this direction (SP_DIR_*) of the connection decoded now? */
bool conns_follows(const struct conns *c, uint64_t conn, int dir);
void conns_tick(struct conns *c, uint64_t now_ns);
void conns_process_gone(struct conns *c, uint32_t pid);
void conns_stats(const struct conns *c, struct collect_stats *st);
/* enum sp_conn_why in words. */
const char *conns_why(unsigned int why);
/* "10.0.0.7:41231", "[::1]:80", "unix"; an IPv4 address in IPv6's clothes as IPv4. "": unknown. */
void conns_address(unsigned int family, const unsigned char *addr, unsigned int port, char *buf,
		   size_t len);

#endif
