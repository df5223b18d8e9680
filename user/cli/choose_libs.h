/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_CLI_CHOOSE_LIBS_H
#define SP_CLI_CHOOSE_LIBS_H

#include "attach/maps.h"
#include "profile/profile.h"

/* Are the libraries that the profile cannot do without (of its own required probes) among these
 * files? One that needs none: no. */
bool cli_libs_among(const struct map_files *m, const struct profile *p);
/* Is any library of its own probes? */
bool cli_any_lib_among(const struct map_files *m, const struct profile *p);

#endif
