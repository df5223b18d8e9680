/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests and replies on the HTTP front's connections -> arrive, reply, abort. A request is
 * followed from its end to its reply's: replies come in the order of the requests and both are
 * numbered. What can no longer be answered for is said to be untracked.
 */
#ifndef SP_COLLECT_HTTP_H
#define SP_COLLECT_HTTP_H

#include "collect/owners.h"
#include "sp_sock.h"

struct http;
struct http *http_new(const struct profile *p, const struct sock_out *out);
void http_free(struct http *h);
/* replies: the other direction of this connection is decoded, too. */
void http_record(struct http *h, const struct sp_rec_http *rec, bool replies);
/* The connection has ended: the clients of unanswered requests have gone. Their replies may have
 * passed unseen where that direction was not decoded. */
void http_ended(struct http *h, uint64_t conn, uint64_t ns, bool replies);
/* The same by a reset. A call may have moved the reply before, and be told behind it: the clients
 * have gone when nothing has come for a while. */
void http_reset(struct http *h, const struct sp_rec_conn *rec);
/* All that is older than now has been given. */
void http_tick(struct http *h, uint64_t now_ns);
/* What comes on this connection can no longer be followed: note says why. */
void http_lost(struct http *h, uint64_t conn, uint64_t ns, const char *note);
/* The body of the request that comes in cannot be read; what follows can. */
void http_unreadable(struct http *h, uint64_t conn);
void http_process_gone(struct http *h, uint32_t pid, uint64_t ns);
void http_stats(const struct http *h, struct collect_stats *st);
/* Values and rooms in memory: for tests of the bounds. */
size_t http_held(const struct http *h);

#endif
