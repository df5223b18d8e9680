/* SPDX-License-Identifier: Apache-2.0 */
/* How much the model keeps at most, and the spans of time that no profile sets. */
#ifndef SP_MODEL_BOUNDS_H
#define SP_MODEL_BOUNDS_H

#include <stdint.h>

#define NS_S  1000000000ull
#define NEVER UINT64_MAX

/* Bounds. What comes from the target is hostile until shown otherwise; none of these is near
 * anything a healthy server does. */
#define MAX_LIVES          (1u << 20) /* open lives; beyond, the oldest that is no pin is forgotten */
#define MAX_DOUBTFUL       65536u     /* open lives that are overdue but no known pin */
#define MAX_IDLE_ROOMS     65536u     /* rooms without an open life that are remembered */
#define MAX_OPS            (1u << 22)
#define MAX_PEERS          (1u << 22)
#define MAX_OPS_OF_LIFE    4096u
#define MAX_GROUPS_OF_LIFE 4096u
#define MAX_PEERS_OF_LIFE  4096u
#define MAX_LIVES_OF_ROOM  64u
#define MAX_ORPHANS        65536u
#define MAX_AGENTS         65536u
#define MAX_WORKERS        65536u
#define MAX_KINDS          64
#define MAX_FLOW           1024u

/* Of one process: operations of no known room, calls under way, things that work is handed to. */
#define MAX_LOOSE  1024u
#define MAX_INSIDE 1024u
#define MAX_WORKED 256u

/* An abort for an unknown room waits this long for the room (design: Vocabulary). */
#define ABORT_KEPT_NS (60 * NS_S)
/* Rooms in bootstrap this long after the bootstrap thread's end are alerted (design: Alert lines).
 */
#define BOOT_DEAD_NS (5 * NS_S)
/* A room that opens this soon after a gap may have been announced before it: the ranks of one
 * decode instance announce within milliseconds of each other. */
#define GAP_BLUR_NS (NS_S / 5)
/* Operations for a room this soon after its life ended well are most likely that life's own, more
 * than was asked for: they open a life, which is doubted. */
#define STRAGGLE_NS NS_S
/* A rule that names a room's thread is believed after it has held for so many rooms, see learn.c.
 * Servers have up to 16 such threads. */
#define LEARN_MIN    8u
#define LEARN_MODULI 16u
/* Is every worker blocked? Not asked of a process with more threads than this. */
#define MAX_POSTERS 256u
/* Other processes (ranks of one server) that are asked about a room. */
#define MAX_RANKS 64
/* Streams of a process that cannot be read, by peer. */
#define MAX_DIM 8

#endif
