/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_CLI_CHOOSE_H
#define SP_CLI_CHOOSE_H

#include "attach/attach.h"
#include "profile/profile.h"

/* The profile whose match fits a process; of several those whose libraries it has mapped, of these
 * the one whose python root it has, else the first. NULL: none. */
const struct profile *cli_profile_of(const struct profile_file *pf, pid_t pid);
/* For a process that no match fits (its title is another, or not set yet): the first profile whose
 * root or libraries it has, else the first. pid 0: no process yet. Never NULL. */
const struct profile *cli_profile_guess(const struct profile_file *pf, pid_t pid);
/* Does the process have the root, or the libraries, of another profile that fits it, and not p's?
 */
bool cli_is_anothers(const struct profile_file *pf, pid_t pid, const struct profile *p);
/* The profile for a process: the one named, else the one that fits it, else a guess. NULL: none has
 * that name (err; exit code 2). */
const struct profile *cli_choose_profile(const struct profile_file *pf, const char *name, pid_t pid,
					 struct sp_err *err);

/* What the environment asks for (SILENTPIN_UPROBE, SILENTPIN_SOCKETS), for tests and for kernels
 * that behave oddly. 0, or -EINVAL: an unknown word (exit code 2). */
int cli_forced(struct attach_opts *ao, struct sp_err *err);

#endif
