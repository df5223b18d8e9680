// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/choose.h"
#include "cli/choose_libs.h"
#include "cli/choose_root.h"

/* Does any profile that fits have its libraries in the process? */
static bool any_mapped(const struct profile_file *pf, pid_t pid, const char *cmdline)
{
	for (int i = 0; i < pf->nprofiles; i++)
		if (profile_fits(&pf->profiles[i], cmdline) &&
		    cli_libs_mapped(pid, &pf->profiles[i]) == 1)
			return true;
	return false;
}

/* Of those that fit, with their libraries mapped where that is so of any: the first whose root is
 * in the process (*rooted), or the first. */
static const struct profile *choose(const struct profile_file *pf, pid_t pid, const char *cmdline,
				    bool *rooted)
{
	bool mapped = any_mapped(pf, pid, cmdline);
	const struct profile *first = NULL;

	*rooted = false;
	for (int i = 0; i < pf->nprofiles; i++) {
		const struct profile *p = &pf->profiles[i];

		if (!profile_fits(p, cmdline) || (mapped && cli_libs_mapped(pid, p) != 1))
			continue;
		if (cli_root_found(pid, p) == 1) {
			*rooted = true;
			return p;
		}
		if (!first)
			first = p;
	}
	return first;
}

/*
 * Both ends of a transfer may have one title and the same libraries: what a process is at tells.
 * One title may also stand for several transports: the libraries tell. A process that is still
 * starting is at nothing yet, and one that has both, or none, is the first's.
 */
const struct profile *cli_profile_of(const struct profile_file *pf, pid_t pid)
{
	char cmdline[4096];
	bool rooted;
	int n = 0;

	if (target_cmdline(pid, cmdline, sizeof(cmdline)))
		return NULL;
	for (int i = 0; i < pf->nprofiles; i++)
		n += profile_fits(&pf->profiles[i], cmdline);
	return n > 1 ? choose(pf, pid, cmdline, &rooted) : profile_by_cmdline(pf, cmdline);
}

const struct profile *cli_profile_guess(const struct profile_file *pf, pid_t pid)
{
	const struct profile *best = &pf->profiles[0];
	int most = 0;

	for (int i = 0; i < pf->nprofiles && pid; i++) {
		const struct profile *p = &pf->profiles[i];
		int n = 2 * (cli_root_found(pid, p) == 1) + (cli_libs_mapped(pid, p) == 1);

		if (n > most) {
			best = p;
			most = n;
		}
	}
	return best;
}

bool cli_is_anothers(const struct profile_file *pf, pid_t pid, const struct profile *p)
{
	const struct profile *other;
	char cmdline[4096];
	bool rooted;

	if (target_cmdline(pid, cmdline, sizeof(cmdline)))
		return false;
	other = choose(pf, pid, cmdline, &rooted);
	if (!other || other == p)
		return false;
	/* by its root, or by its libraries alone, which this one's are not */
	return rooted ? cli_root_found(pid, p) == 0 || cli_libs_mapped(pid, p) != 1
		      : cli_libs_mapped(pid, other) == 1 && cli_libs_mapped(pid, p) == 0;
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
	return p ? p : cli_profile_guess(pf, pid);
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
