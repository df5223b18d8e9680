/* SPDX-License-Identifier: Apache-2.0 */
/* What the uprobes on messages have shown in each process: does a probe see all there is? */
#ifndef SP_SHOWN_H
#define SP_SHOWN_H

#include <stdbool.h>
#include <stdint.h>

struct shown; /* a table; NULL: an empty one */

/* A socket shows a message of the probe. Is it the first of the process, and the probe has shown
 * no whole one? The call that takes it may have begun before the attach. */
bool shown_first(struct shown **all, uint32_t pid, int probe);
/* The probe has shown a whole message. */
void shown_message(struct shown **all, uint32_t pid, int probe);
/* Has it ever? */
bool shown_whole(struct shown *all, uint32_t pid, int probe);
void shown_gone(struct shown **all, uint32_t pid);
void shown_free(struct shown **all);

#endif
