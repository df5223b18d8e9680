/* SPDX-License-Identifier: Apache-2.0 */
/* Completions of a queue, kept so that one question is answered in O(log n): when did a thing with
 * a number below n last complete? */
#ifndef SP_MODEL_FLOW_H
#define SP_MODEL_FLOW_H

#include <stdint.h>

struct model;

/* seq and ns both grow along the array. */
struct flow {
	struct {
		uint64_t seq, ns;
	} * e;
	uint32_t n, cap;
};
/* Something with number seq completed at ns (never older than the last). quantum: completions in
 * the same span of time may be merged; window: older ones may be dropped. */
int flow_push(struct model *m, struct flow *f, uint64_t seq, uint64_t ns);
uint64_t flow_before(const struct flow *f, uint64_t seq); /* 0: nothing */
void flow_free(struct model *m, struct flow *f);

#endif
