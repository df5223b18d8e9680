// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "cli/choose.h"

const struct profile *cli_choose_profile(const struct profile_file *pf, const char *name,
					 const char *cmdline, struct sp_err *err)
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
	p = profile_by_cmdline(pf, cmdline);
	if (!p && pf->nprofiles == 1)
		p = &pf->profiles[0];
	if (!p)
		sp_err_set(err, SP_EXIT_USAGE, -ENOENT,
			   "%s: none of its %d profiles matches the process: say --profile NAME",
			   pf->path, pf->nprofiles);
	return p;
}
