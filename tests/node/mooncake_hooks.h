/* SPDX-License-Identifier: Apache-2.0 */
/* What a test may ask of the stand-in transfer engine: see the end of mooncake.h. */
#ifndef NODE_MOONCAKE_HOOKS_H
#define NODE_MOONCAKE_HOOKS_H

#include <cstdint>
#include <vector>

namespace mooncake
{
enum Hook {
	HOOK_OPEN,
	HOOK_ALLOCATE,
	HOOK_SUBMIT,
	HOOK_STATUS,
	HOOK_BATCH_STATUS,
	HOOK_FREE,
	HOOK_MAX
};

void test_point(Hook h); /* throws when armed */
/* Notes whose batch it is; copies, blocks when told to; whether its first request shall fail. */
bool test_submission(uint64_t batch_id);

struct Submitted {
	uint64_t batch_id, room; /* an id is an address: it comes again */
};
std::vector<Submitted> test_batches(); /* the last ones, in order */
} // namespace mooncake

#endif
