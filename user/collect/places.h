/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where data goes tells whose it is: a peer's registration gives the addresses of its buffers
 * (`bases`) and the bytes of a page (`item`), a room's announcement which of the peer's pages are
 * the room's. A post's address then lies in a page of exactly one open room, or its room is not
 * known. What is not known makes no room: a peer whose registration was not seen, a segment whose
 * peer was not, pages beyond those that were copied, and a page that a newer announcement, cut,
 * may have taken over without an end of the older one being seen.
 */
#ifndef SP_COLLECT_PLACES_H
#define SP_COLLECT_PLACES_H

#include "collect/fields.h"

/* The oldest are forgotten. */
#define PLACES_AGENTS   4096
#define PLACES_SEGMENTS 16384
#define PLACES_CLAIMS   16384
#define PLACES_NOTE     "tied by its address"

struct places;
struct places *places_new(void);
void places_free(struct places *p);
/* What an event says of peers, their pages, and rooms that are over. */
void places_learn(struct places *p, const struct sp_event *ev, const struct event_more *more);
/* A post without a room gets it from its address. False: it cannot be told. */
bool places_tie(const struct places *p, struct sp_event *ev, const struct event_more *more);
/* Ends of rooms may have gone unseen: pages are forgotten, peers and segments are not. pid 0: of
 * all processes. */
void places_loss(struct places *p, uint32_t pid);
void places_gone(struct places *p, uint32_t pid);
size_t places_claims(const struct places *p);

#endif
