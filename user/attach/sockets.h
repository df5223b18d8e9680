/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes' sockets are watched: the targets' own, and those of their fronts. */
#ifndef SP_ATTACH_SOCKETS_H
#define SP_ATTACH_SOCKETS_H

#include "attach/watched.h"

/* Choose how, after the object is loaded. */
int socks_open(struct attach *a, struct sp_err *err);
void socks_close(struct attach *a, struct links *all);
/* Which entries of the profile hold in a target, for itself or as a front of others. */
uint32_t socks_rules(const struct attach *a, pid_t pid);
/* May requests be its own? Not those of each helper that a scheduler forks: with two owners of a
 * front, neither can be said to own a request. */
bool socks_is_server(const struct attach *a, const struct watched *w);
/* A process becomes a target: it may have been a front. Nothing is linked yet. */
void socks_adopt(struct attach *a, struct watched *w);
/* Its own sockets are linked: its fronts, and what is to be said. */
void socks_added(struct attach *a, struct watched *w);
/* A target is gone: so are the fronts that it alone had. */
void socks_removed(struct attach *a, struct watched *w);
/* Look for fronts that came or went, libcs, io_urings: at most once a second. */
void socks_tick(struct attach *a, uint64_t now);
/* Processes that are no targets and whose sockets are watched: in front of pid, or (0) all. */
int socks_fronts(const struct attach *a, uint32_t pid);
const struct sock_watch *socks_of(const struct attach *a, const struct front *f);
/* Rows for attach_rows and attach_dry_rows. */
void socks_rows(const struct attach *a, const struct watched *w, attach_row_fn fn, void *ctx);
void socks_dry_rows(const struct profile *p, pid_t pid, const struct map_files *files,
		    attach_row_fn fn, void *ctx);

#endif
