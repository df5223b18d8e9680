/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_CLI_CHOOSE_H
#define SP_CLI_CHOOSE_H

#include "attach/attach.h"
#include "profile/profile.h"

/* A profile for a process, and what speaks for it. */
struct cli_choice {
	const struct profile *profile; /* NULL: none */
	bool named;                    /* somebody insists on it: nothing else was looked at */
	bool fits;                     /* its match fits the command line */
	bool libs, root; /* what told it from others: its libraries are mapped, its python root is
			    in the process */
	int others;      /* that have as much for them: it is only the first of them */
};
/* The profile for a process: the one named, else the one that fits it, else a guess. pid 0: no
 * process yet. -ENOENT: none has that name (err; exit code 2). */
int cli_choose_profile(const struct profile_file *pf, const char *name, pid_t pid,
		       struct cli_choice *c, struct sp_err *err);
/* The profile whose match fits a process; of several those whose libraries it has mapped, of these
 * the one whose python root it has, else the first. NULL: none. */
const struct profile *cli_profile_of(const struct profile_file *pf, pid_t pid);
/* Does the process have the root, or the libraries, of another profile that fits it (*whose, may be
 * NULL), and not p's? */
bool cli_is_anothers(const struct profile_file *pf, pid_t pid, const struct profile *p,
		     const struct profile **whose);
/* Does this probe, in place in a process, say that it is the server? One of a group does not: any
 * program may use CUDA. But a profile may have no others. */
bool cli_tells_server(const struct profile *p, int probe);
/* Is there anything of p about the process: its title, a library of its own probes, its root? */
bool cli_looks_like(pid_t pid, const struct profile *p);

/* What the environment asks for (SILENTPIN_UPROBE, SILENTPIN_SOCKETS, SILENTPIN_RETURNS), for tests
 * and for kernels that behave oddly. 0, or -EINVAL: an unknown word (exit code 2). */
int cli_forced(struct attach_opts *ao, struct sp_err *err);

#endif
