// SPDX-License-Identifier: Apache-2.0
/* Servers of one title with different transports: what they have mapped tells them apart. */
#include "cli/choose_libs.h"

static bool mapped(const struct map_files *m, const struct profile_lib *lib)
{
	for (int i = 0; i < m->n; i++)
		if (profile_lib_fits(lib, m->file[i].base))
			return true;
	return false;
}

static bool has_probes(const struct profile *p, int lib, bool required)
{
	for (int i = 0; i < p->nuprobes; i++)
		if (p->probes[i].library == lib && !p->probes[i].group &&
		    (!required || (p->probes[i].required && !p->probes[i].off)))
			return true;
	return false;
}

bool cli_libs_among(const struct map_files *m, const struct profile *p)
{
	int n = 0;

	for (int i = 0; i < p->nlibs; i++) {
		if (!has_probes(p, i, true))
			continue;
		if (!mapped(m, &p->libs[i]))
			return false;
		n++;
	}
	return n > 0;
}

bool cli_any_lib_among(const struct map_files *m, const struct profile *p)
{
	for (int i = 0; i < p->nlibs; i++)
		if (has_probes(p, i, false) && mapped(m, &p->libs[i]))
			return true;
	return false;
}
