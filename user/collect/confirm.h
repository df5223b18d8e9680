/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One event for a message that a uprobe and a socket both show (`same_as` in a profile). Equal
 * messages are matched one to one, in order. A message that the socket has shown and the probe has
 * not, a second later, is on the wire and the server has not taken it; unless that probe has never
 * shown a whole message there: then the socket is all there is.
 */
#ifndef SP_COLLECT_CONFIRM_H
#define SP_COLLECT_CONFIRM_H

#include "collect/owners.h"

/* The received message goes to the model, at ns: by this module or, when the probe's counts, right
 * after the call. */
typedef void (*confirm_told)(void *ctx, const struct sp_event *ev, uint64_t conn, uint64_t ns);

struct confirm;
struct confirm *confirm_new(const struct profile *p, const struct sock_out *out, confirm_told told,
			    void *ctx);
void confirm_free(struct confirm *c);
/* sent: by the watched process; else received. */
void confirm_socket(struct confirm *c, const struct sp_event *ev, uint64_t conn, bool sent);
/* True: the event is to go on; false: the socket's counts. */
bool confirm_native(struct confirm *c, const struct sp_event *ev);
void confirm_tick(struct confirm *c, uint64_t now_ns);
void confirm_process_gone(struct confirm *c, uint32_t pid);
void confirm_stats(const struct confirm *c, struct collect_stats *st);

#endif
