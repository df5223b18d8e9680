// SPDX-License-Identifier: Apache-2.0
/* Servers of one title with different transports: what they have mapped tells them apart. */
#include "cli/choose_libs.h"
#include "attach/maps.h"

static bool mapped(const struct map_files *m, const struct profile_lib *lib)
{
	for (int i = 0; i < m->n; i++)
		if (profile_lib_fits(lib, m->file[i].base))
			return true;
	return false;
}

static bool needs(const struct profile *p, int lib)
{
	for (int i = 0; i < p->nuprobes; i++)
		if (p->probes[i].library == lib && p->probes[i].required && !p->probes[i].off &&
		    !p->probes[i].group)
			return true;
	return false;
}

int cli_libs_mapped(pid_t pid, const struct profile *p)
{
	struct map_files m = {0};
	int rc = maps_read(pid, &m), n = 0;

	if (rc)
		return rc;
	for (int i = 0; i < p->nlibs && !rc; i++) {
		if (!needs(p, i))
			continue;
		n++;
		rc = !mapped(&m, &p->libs[i]);
	}
	maps_free(&m);
	return n && !rc;
}
