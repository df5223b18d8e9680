/* SPDX-License-Identifier: Apache-2.0 */
/* What is well-formed and yet leads nowhere, as far as the probes that are on go. */
#ifndef SP_PROFILE_NOTES_H
#define SP_PROFILE_NOTES_H

#include "profile/profile.h"

#define PROFILE_NOTE_MAX 200
typedef void (*profile_note_fn)(void *ctx, const char *text); /* one line, below that */
void profile_notes(const struct profile *p, profile_note_fn fn, void *ctx);

#endif
