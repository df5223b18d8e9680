/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work posted and not completed, by key (a queue pair) -> events of role call, kind tally: when
 * nothing has been posted or completed for TALLIES_NS and work is open; again when the number has
 * changed then, or when completions go on; 0 when all is complete.
 *
 * What was posted before the attach completes too. The most that completions were ever ahead of
 * posts (the kernel side counts it) is taken to be that, so that the number told is at most the
 * true one. Unsignalled posts count only where they are seen to complete as well: none is asked for
 * and some complete, or more than were asked for, in three looks at least, as one burst may be work
 * from before the attach.
 *
 * Its room is that of the last posts, when these are all that is open and of one room.
 */
#ifndef SP_COLLECT_TALLIES_H
#define SP_COLLECT_TALLIES_H

#include "attach/attach.h"
#include "collect/calls.h"

#define TALLIES_NS    1000000000ull
#define TALLIES_MAX   (2 * SP_MAX_TALLIES) /* all that are counted, and those that are just over */
#define TALLIES_LOOKS 3

struct tallies;
struct tallies *tallies_new(const struct profile *p, calls_emit emit, void *ctx);
void tallies_free(struct tallies *t);
/* A post of n elements. room "": not known, unless enter_ns, when it waits for that call. */
void tallies_post(struct tallies *t, const struct sp_rec_hit *rec, const char *room,
		  uint64_t enter_ns, const char *object);
/* The call that was waited for is of that room ("": none), or leaves it to another one. */
void tallies_known(struct tallies *t, uint32_t pid, uint32_t tid, uint64_t enter_ns,
		   const char *room);
void tallies_moved(struct tallies *t, uint32_t pid, uint32_t tid, uint64_t from_ns, uint64_t to_ns);
/* The key is over, and what was open there with it (told, kind "dropped", where it has been told):
 * another one may come by the same number. False: by the tally's `if` it is not over; told only
 * where an argument of the probe has the value that is asked for. */
bool tallies_end(struct tallies *t, const struct sp_rec_hit *rec);
/* Posts may have gone missing. */
void tallies_loss(struct tallies *t, uint32_t pid);
void tallies_gone(struct tallies *t, uint32_t pid);
/* All there are. */
void tallies_look(struct tallies *t, const struct attach_tally *row, int n, uint64_t now_ns);

#endif
