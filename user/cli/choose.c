// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/choose.h"
#include "cli/choose_root.h"

/* The first that fits and whose root is in the process; NULL: none, or nothing can be told. */
static const struct profile *by_root(const struct profile_file *pf, pid_t pid, const char *cmdline)
{
	for (int i = 0; i < pf->nprofiles; i++)
		if (profile_fits(&pf->profiles[i], cmdline) &&
		    cli_root_found(pid, &pf->profiles[i]) == 1)
			return &pf->profiles[i];
	return NULL;
}

/*
 * Both ends of a transfer may have one title and the same libraries: what a process is at tells.
 * One that is still starting is at nothing yet.
 */
const struct profile *cli_profile_of(const struct profile_file *pf, pid_t pid)
{
	const struct profile *first, *rooted = NULL;
	char cmdline[4096];
	int n = 0;

	if (target_cmdline(pid, cmdline, sizeof(cmdline)))
		return NULL;
	first = profile_by_cmdline(pf, cmdline);
	for (int i = 0; i < pf->nprofiles; i++)
		n += profile_fits(&pf->profiles[i], cmdline);
	if (n > 1)
		rooted = by_root(pf, pid, cmdline);
	return rooted ? rooted : first;
}

bool cli_is_anothers(const struct profile_file *pf, pid_t pid, const struct profile *p)
{
	char cmdline[4096];

	if (target_cmdline(pid, cmdline, sizeof(cmdline)) || cli_root_found(pid, p) != 0)
		return false;
	return by_root(pf, pid, cmdline);
}

const struct profile *cli_choose_profile(const struct profile_file *pf, const char *name, pid_t pid,
					 struct sp_err *err)
{
	const struct profile *p = NULL;

	if (name) {
		p = profile_by_name(pf, name);
		if (!p)
			sp_err_set(err, SP_EXIT_USAGE, -ENOENT,
				   "--profile %s: no such profile in %s: see `silentpin check`",
				   name, pf->path);
		return p;
	}
	p = cli_profile_of(pf, pid);
	if (!p && pf->nprofiles == 1)
		p = &pf->profiles[0];
	if (!p)
		sp_err_set(err, SP_EXIT_USAGE, -ENOENT,
			   "%s: none of its %d profiles matches the process: say --profile NAME",
			   pf->path, pf->nprofiles);
	return p;
}

int cli_forced(struct attach_opts *ao, struct sp_err *err)
{
	static const char *const uprobe[] = {
		[BACKEND_MULTI] = "multi",
		[BACKEND_PERF] = "perf",
	};
	const char *up = getenv("SILENTPIN_UPROBE"), *so = getenv("SILENTPIN_SOCKETS");

	for (int i = BACKEND_MULTI; up && i <= BACKEND_PERF; i++)
		if (!strcmp(up, uprobe[i]))
			ao->force = (enum attach_backend)i;
	if (up && up[0] && !ao->force)
		return sp_err_set(err, SP_EXIT_USAGE, -EINVAL,
				  "SILENTPIN_UPROBE=%s: say perf or multi, or leave it unset", up);
	for (int i = SOCKETS_LIBC; so && i <= SOCKETS_TCP; i++)
		if (!strcmp(so, attach_sockets_name((enum attach_sockets)i)))
			ao->sock_force = (enum attach_sockets)i;
	if (so && so[0] && !ao->sock_force)
		return sp_err_set(
			err, SP_EXIT_USAGE, -EINVAL,
			"SILENTPIN_SOCKETS=%s: say libc, syscall or tcp, or leave it unset", so);
	return 0;
}
