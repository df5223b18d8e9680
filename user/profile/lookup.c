// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "profile/profile.h"

const struct profile *profile_by_name(const struct profile_file *pf, const char *name)
{
	for (int i = 0; i < pf->nprofiles; i++)
		if (!strcmp(pf->profiles[i].name, name))
			return &pf->profiles[i];
	return NULL;
}

bool profile_fits(const struct profile *p, const char *cmdline)
{
	return p->match_cmdline && !fnmatch(p->match_cmdline, cmdline, 0);
}

const struct profile *profile_by_cmdline(const struct profile_file *pf, const char *cmdline)
{
	for (int i = 0; i < pf->nprofiles; i++)
		if (profile_fits(&pf->profiles[i], cmdline))
			return &pf->profiles[i];
	return NULL;
}

bool profile_host_is_fake(const struct profile *p, const char *host)
{
	for (int i = 0; i < p->nfake_hosts; i++)
		if (!strcasecmp(p->fake_hosts[i], host))
			return true;
	return false;
}

bool profile_lib_fits(const struct profile_lib *lib, const char *base)
{
	for (int i = 0; i < lib->nfiles; i++)
		if (!fnmatch(lib->file[i], base, 0))
			return true;
	return false;
}

bool profile_room_is_fake(const struct profile *p, const char *room)
{
	unsigned long long v;
	char *end;

	if (!p->nfake || *room < '0' || *room > '9')
		return false;
	errno = 0;
	v = strtoull(room, &end, 10);
	if (errno || *end)
		return false;
	for (int i = 0; i < p->nfake; i++)
		if (v >= p->fake[i].lo && v <= p->fake[i].hi)
			return true;
	return false;
}
