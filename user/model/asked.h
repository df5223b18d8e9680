/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests as their clients see them: they arrive, are answered, are given up. What the transport's
 * sockets show beyond that: a peer's connection that has ended, a message that nobody takes. (Their
 * events: event/event.h, "What sockets show".)
 */
#ifndef SP_MODEL_ASKED_H
#define SP_MODEL_ASKED_H

#include "model/seen.h"
#include "model/words.h"

/* ---- asked.c ------------------------------------------------------------------------------- */

int route_arrive(struct model *m, struct proc *p, const struct sp_event *ev);
int route_reply(struct model *m, const struct sp_event *ev);
int route_client_gone(struct model *m, const struct sp_event *ev);
/* peer events that name a room */
int route_unread(struct model *m, const struct sp_event *ev);
int route_untracked(struct model *m, const struct sp_event *ev);
/* The life whose client is spoken of, NULL: of none is that known. exact: by its request id only.
 */
struct life *asked_life(const struct room *r, const struct sp_event *ev, bool exact);
/* ev is of l, or of its room in this process: the room is this process's. */
void asked_shows(struct model *m, struct life *l, const struct sp_event *ev);
/* Neither what is sent for it nor its end can be seen. */
bool asked_unfollowed(const struct model *m, const struct life *l);
/* Nor was its request seen, which may have come before the watch, and perhaps announcements: that
 * no more is heard of it is what a room that ends well looks like. */
bool asked_unbegun(const struct model *m, const struct life *l);
/* route.c: lives of r that are given up by whoever asked for them, for it is opened again */
void route_supersede(struct model *m, struct room *r);
/* An end told by events, the nearest at hand (route.c). */
struct life *route_ending(const struct room *r, const struct sp_event *ev);

/* ---- peer.c -------------------------------------------------------------------------------- */

/* The connection of one of its peers has ended then, and is not back; 0: no. */
uint64_t life_gone_ns(const struct life *l);
/* For every such peer that is most likely no trouble: it does so all the time. */
bool life_gone_well(const struct life *l);
void peer_note_end(const struct life *l); /* it ended well */

/* ---- verdict_asked.c ----------------------------------------------------------------------- */

/* What only sockets tell, and with what doubt. */
void asked_cap(const struct model *m, const struct life *l, struct choice *c);
/* Since then nothing has told that the server's main loop has turned, and it may be kept from it by
 * another room's forward pass. */
bool loop_unseen(const struct model *m, const struct life *l, uint64_t since, uint64_t now);

/* ---- evidence_asked.c ---------------------------------------------------------------------- */

void evidence_asked(struct scene *s);

#endif
