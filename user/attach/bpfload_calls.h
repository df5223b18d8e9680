/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the BPF object for calls within calls, and for probes of elements. */
#ifndef SP_ATTACH_BPFLOAD_CALLS_H
#define SP_ATTACH_BPFLOAD_CALLS_H

#include <stdbool.h>

#include "attach/attach.h"

struct silentpin_bpf;
/* Before the load: what the profile does not need costs nothing. */
int calls_configure(struct silentpin_bpf *skel, const struct profile *p,
		    enum attach_backend backend);
/* Is there a probe of elements in it? */
bool calls_want_each(const struct profile *p);
/* After it. */
int calls_fill(const struct silentpin_bpf *skel, const struct profile *p);
/* Forget what is kept of a process that has ended, or (ended false) has another program. */
void calls_forget(const struct silentpin_bpf *skel, uint32_t pid, bool ended);
/* The first alternative that produces an argument, SP_MAX_FETCH: none. */
uint8_t calls_fetch_of(const struct sp_probe *p, uint8_t arg);

#endif
