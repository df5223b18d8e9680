/* SPDX-License-Identifier: Apache-2.0 */
/* What a test may ask of the library: an exception out of a probed call, an error status. */
#ifndef NODE_HOOKS_H
#define NODE_HOOKS_H

#include "nixl.h"

enum Hook {
	HOOK_MAKE,
	HOOK_CREATE,
	HOOK_POST,
	HOOK_STATUS,
	HOOK_RELEASE,
	HOOK_NOTIFS,
	HOOK_GEN,
	HOOK_MAX
};

void test_point(Hook h);                                              /* throws when armed */
nixl_status_t test_status(const std::string &notif, nixl_status_t s); /* s, or the injected one */

#endif
