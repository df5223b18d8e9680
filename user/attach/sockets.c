// SPDX-License-Identifier: Apache-2.0
/* Which processes' sockets are watched, and whose events they are. */
#include "attach/watched.h"

const char *attach_sockets_name(enum attach_sockets s)
{
	static const char *const names[] = {"none", "libc", "syscall", "tcp"};

	return (unsigned)s < 4 ? names[s] : "?";
}

int attach_owners(const struct attach *a, uint32_t pid, uint32_t *owners, int max)
{
	for (int i = 0; i < a->nwatched; i++)
		if ((uint32_t)a->watched[i]->id.pid == pid && max > 0) {
			owners[0] = pid;
			return 1;
		}
	return 0;
}

bool attach_sees_sockets(const struct attach *a, uint32_t pid, bool front)
{
	return false;
}

enum attach_sockets attach_sockets_used(const struct attach *a)
{
	return SOCKETS_NONE;
}

bool attach_has(const struct attach *a, uint32_t pid, int probe)
{
	for (int i = 0; i < a->nwatched; i++) {
		const struct watched *w = a->watched[i];

		for (int k = 0; (uint32_t)w->id.pid == pid && k < w->nlib; k++)
			for (int n = 0; n < w->lib[k].plan->nprobe; n++)
				if (w->lib[k].plan->probe[n].index == probe &&
				    w->lib[k].plan->probe[n].ok && !w->lib[k].err[n])
					return true;
	}
	return false;
}
