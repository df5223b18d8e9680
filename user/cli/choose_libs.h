/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_CLI_CHOOSE_LIBS_H
#define SP_CLI_CHOOSE_LIBS_H

#include <sys/types.h>

#include "profile/profile.h"

/* Are the libraries that the profile cannot do without (of its own required probes) mapped in this
 * process now? 1: yes; 0: not all, or it needs none; -errno: it could not be looked for. */
int cli_libs_mapped(pid_t pid, const struct profile *p);

#endif
