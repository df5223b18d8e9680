/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_CLI_CHOOSE_H
#define SP_CLI_CHOOSE_H

#include "attach/attach.h"
#include "profile/profile.h"

/* The profile for a process: the one named, else the one whose match fits its command line, else
 * the only one. NULL: none, err says what to do (exit code 2). */
const struct profile *cli_choose_profile(const struct profile_file *pf, const char *name,
					 const char *cmdline, struct sp_err *err);

/* What the environment asks for (SILENTPIN_UPROBE, SILENTPIN_SOCKETS), for tests and for kernels
 * that behave oddly. 0, or -EINVAL: an unknown word (exit code 2). */
int cli_forced(struct attach_opts *ao, struct sp_err *err);

#endif
