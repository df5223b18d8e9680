// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attach/maps.h"
#include "cli/choose.h"
#include "cli/choose_libs.h"
#include "cli/choose_root.h"

/* A process as it is now. */
struct process {
	pid_t pid;
	char cmdline[4096];
	struct map_files files; /* none: they could not be read */
};

static int look_at(pid_t pid, struct process *o)
{
	memset(o, 0, sizeof(*o));
	o->pid = pid;
	if (!pid || target_cmdline(pid, o->cmdline, sizeof(o->cmdline)))
		return -ESRCH;
	if (maps_read(pid, &o->files))
		memset(&o->files, 0, sizeof(o->files));
	return 0;
}

/* Does any profile that fits have its libraries in the process? */
static bool any_mapped(const struct profile_file *pf, const struct process *o)
{
	for (int i = 0; i < pf->nprofiles; i++)
		if (profile_fits(&pf->profiles[i], o->cmdline) &&
		    cli_libs_among(&o->files, &pf->profiles[i]))
			return true;
	return false;
}

/*
 * Both ends of a transfer may have one title and the same libraries: what a process is at tells.
 * One title may also stand for several transports: the libraries tell. Of those that fit, with
 * their libraries mapped where that is so of any, it is the first whose root is in the process. A
 * process that is still starting is at nothing yet: then the first is taken, and one that has both
 * is the first's too.
 */
static void choose(const struct profile_file *pf, const struct process *o, struct cli_choice *c)
{
	bool mapped = any_mapped(pf, o);

	memset(c, 0, sizeof(*c));
	for (int i = 0; i < pf->nprofiles; i++) {
		const struct profile *p = &pf->profiles[i];
		bool libs = cli_libs_among(&o->files, p), root;

		if (!profile_fits(p, o->cmdline) || (mapped && !libs))
			continue;
		root = cli_root_found(o->pid, p) == 1;
		if (!c->profile || (root && !c->root))
			*c = (struct cli_choice){p, .fits = true, .libs = libs, .root = root};
		else
			c->others += root == c->root;
	}
}

/* By its command line, where any profile fits that. */
static void choose_fitting(const struct profile_file *pf, const struct process *o,
			   struct cli_choice *c)
{
	int n = 0;

	for (int i = 0; i < pf->nprofiles; i++)
		n += profile_fits(&pf->profiles[i], o->cmdline);
	if (n > 1)
		choose(pf, o, c);
	else
		*c = (struct cli_choice){profile_by_cmdline(pf, o->cmdline), .fits = n};
}

/* Its title is another than any profile's, or not set yet: the first whose root or libraries it
 * has, else the first. */
static void guess(const struct profile_file *pf, const struct process *o, struct cli_choice *c)
{
	int most = 0;

	*c = (struct cli_choice){&pf->profiles[0], .others = pf->nprofiles - 1};
	for (int i = 0; i < pf->nprofiles && o->pid; i++) {
		const struct profile *p = &pf->profiles[i];
		bool root = cli_root_found(o->pid, p) == 1, libs = cli_libs_among(&o->files, p);
		int n = 2 * root + libs;

		if (n > most) {
			*c = (struct cli_choice){p, .libs = libs, .root = root};
			most = n;
		} else if (most && n == most) {
			c->others++;
		}
	}
}

const struct profile *cli_profile_of(const struct profile_file *pf, pid_t pid)
{
	struct cli_choice c = {0};
	struct process o;

	if (!look_at(pid, &o))
		choose_fitting(pf, &o, &c);
	maps_free(&o.files);
	return c.profile;
}

bool cli_is_anothers(const struct profile_file *pf, pid_t pid, const struct profile *p,
		     const struct profile **whose)
{
	struct cli_choice c = {0};
	struct process o;
	bool is = false;

	if (!look_at(pid, &o))
		choose(pf, &o, &c);
	/* by its root, or by its libraries alone, which this one's are not */
	if (c.profile && c.profile != p)
		is = c.root ? cli_root_found(pid, p) == 0 || !cli_libs_among(&o.files, p)
			    : c.libs && !cli_libs_among(&o.files, p);
	maps_free(&o.files);
	if (is && whose)
		*whose = c.profile;
	return is;
}

bool cli_tells_server(const struct profile *p, int probe)
{
	bool own = false;

	for (int i = 0; i < p->nuprobes; i++)
		own |= !p->probes[i].group;
	return !own || !p->probes[probe].group;
}

bool cli_looks_like(pid_t pid, const struct profile *p)
{
	struct process o;
	bool does =
		!look_at(pid, &o) && (profile_fits(p, o.cmdline) || cli_any_lib_among(&o.files, p));

	maps_free(&o.files);
	return does || cli_root_found(pid, p) == 1;
}

int cli_choose_profile(const struct profile_file *pf, const char *name, pid_t pid,
		       struct cli_choice *c, struct sp_err *err)
{
	struct process o;

	*c = (struct cli_choice){.named = name};
	if (name) {
		c->profile = profile_by_name(pf, name);
		return c->profile ? 0
				  : sp_err_set(err, SP_EXIT_USAGE, -ENOENT,
					       "--profile %s: no such profile in %s: see "
					       "`silentpin check --summary`",
					       name, pf->path);
	}
	if (!look_at(pid, &o))
		choose_fitting(pf, &o, c);
	if (!c->profile)
		guess(pf, &o, c);
	maps_free(&o.files);
	return 0;
}

int cli_forced(struct attach_opts *ao, struct sp_err *err)
{
	static const char *const uprobe[] = {
		[BACKEND_MULTI] = "multi",
		[BACKEND_PERF] = "perf",
	};
	static const char *const returns[] = {
		[RETURNS_UNFILTERED] = "unfiltered",
		[RETURNS_NEVER] = "ret",
	};
	const char *up = getenv("SILENTPIN_UPROBE"), *so = getenv("SILENTPIN_SOCKETS");
	const char *re = getenv("SILENTPIN_RETURNS");

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
	for (int i = RETURNS_UNFILTERED; re && i <= RETURNS_NEVER; i++)
		if (!strcmp(re, returns[i]))
			ao->returns = (enum attach_returns)i;
	if (re && re[0] && !ao->returns)
		return sp_err_set(err, SP_EXIT_USAGE, -EINVAL,
				  "SILENTPIN_RETURNS=%s: say unfiltered or ret, or leave it unset",
				  re);
	return 0;
}
