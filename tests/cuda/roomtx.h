/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A made-up transport whose calls do their work inside (body), on the caller's thread: what body
 * does is done for the room of the call, as a real transport copies within the call that posts.
 */
#ifndef CUDA_ROOMTX_H
#define CUDA_ROOMTX_H

#include <stdint.h>

typedef void rtx_body(void *arg);

/* A peer has announced itself for the room. */
void rtx_announce(uint64_t room, const char *peer);
/* The last chunk of a room: its data, posted as operation *op. */
int rtx_send(uint64_t room, uint64_t *op, rtx_body *body, void *arg);
/* The same in two steps: only the first one knows the room. */
int rtx_make(uint64_t room, uint64_t *op);
int rtx_post(uint64_t op, rtx_body *body, void *arg);
/* 0: complete; 1: not yet. */
int rtx_status(uint64_t op, int answer);
int rtx_close(uint64_t op);
/* The calling thread works for the room from here on, until the end. */
void rtx_begin(uint64_t room);
void rtx_end(void);

#endif
