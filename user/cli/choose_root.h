/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_CLI_CHOOSE_ROOT_H
#define SP_CLI_CHOOSE_ROOT_H

#include <sys/types.h>

#include "profile/profile.h"

/* Is the root object of the profile's python section in this process now? 1: yes; 0: no, or the
 * profile has none; -errno: it could not be looked for. */
int cli_root_found(pid_t pid, const struct profile *p);

#endif
