/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What to attach in one library file: resolved once, used for every process that maps the file. A
 * file that cannot be read has a plan too, in which every probe carries the reason.
 */
#ifndef SP_ATTACH_PLAN_H
#define SP_ATTACH_PLAN_H

#include "attach/maps.h"
#include "profile/profile.h"

struct plan_site {
	int probe;       /* index into plan.probe */
	bool at_return;  /* uretprobe: the other program */
	uint64_t offset; /* in the file */
	uint64_t cookie; /* SP_COOKIE */
};

struct plan_probe {
	int index; /* into the profile's probes */
	bool ok, emulated;
	char *symbol; /* as found; NULL when not */
	char where[64];
	char reason[160]; /* when not ok */
};

struct plan {
	unsigned dev_major, dev_minor;
	uint64_t ino;
	char *path; /* as the first process saw it */
	int fd;     /* the file, kept open: later processes attach through it; -1: unreadable */
	struct plan_site *site;
	int nsite;
	struct plan_probe *probe;
	int nprobe;
};

/* Does any library of the profile name this file? */
bool plan_wants(const struct profile *p, const struct map_file *f);
bool plan_is_for(const struct plan *plan, const struct map_file *f);
/* fd is taken over, closed on error too; < 0: why tells the reason. -ENOMEM. */
int plan_make(const struct profile *p, const struct map_file *f, int fd, const char *why,
	      struct plan **out);
void plan_free(struct plan *plan);

#endif
