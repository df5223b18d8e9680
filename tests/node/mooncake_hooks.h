/* SPDX-License-Identifier: Apache-2.0 */
/* What a test may ask of the stand-in transfer engine: see the end of mooncake.h. */
#ifndef NODE_MOONCAKE_HOOKS_H
#define NODE_MOONCAKE_HOOKS_H

namespace mooncake
{
enum Hook { HOOK_ALLOCATE, HOOK_SUBMIT, HOOK_STATUS, HOOK_BATCH_STATUS, HOOK_FREE, HOOK_MAX };

void test_point(Hook h); /* throws when armed */
bool test_submission();  /* blocks when told to; whether its first request shall fail */
} // namespace mooncake

#endif
