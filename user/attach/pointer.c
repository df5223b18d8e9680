// SPDX-License-Identifier: Apache-2.0
/* Functions without a symbol, from files. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/optable.h"
#include "attach/pointer.h"
#include "util/cleanup.h"

static const struct map_file *find_library(const struct profile *p, int library,
					   const struct map_files *files)
{
	for (int i = 0; i < files->n; i++)
		if (profile_lib_fits(&p->libs[library], files->file[i].base))
			return &files->file[i];
	return NULL;
}

bool pointer_waits(const struct profile *p, const struct map_files *files, const struct map_file *f)
{
	for (int i = 0; i < p->nprobes; i++) {
		const struct profile_probe *pp = &p->probes[i];

		if (!pp->npointers || pp->off || !profile_lib_fits(&p->libs[pp->library], f->base))
			continue;
		for (int k = 0; k < pp->npointers; k++)
			if (!pp->pointer[k].at_call &&
			    !find_library(p, pp->pointer[k].library, files))
				return true;
	}
	return false;
}

/* The slot in the table, from the code of the library that is mapped; else the profile's. */
static int slot_of(const struct profile *p, pid_t pid, const struct map_files *files,
		   const struct probe_pointer *ptr, int64_t *slot, char why[OPTABLE_WHY_LEN])
{
	const struct map_file *f = find_library(p, ptr->library, files);
	__closefd int fd = f ? maps_open(pid, f, why, OPTABLE_WHY_LEN) : -1;
	struct elf_file *ef = NULL;
	int err = -ENOENT;

	if (!f)
		snprintf(why, OPTABLE_WHY_LEN, "no mapped file is named %.60s",
			 p->libs[ptr->library].file[0]);
	if (fd >= 0 && ptr->copied_to && !elf_file_open(fd, &ef, why, OPTABLE_WHY_LEN))
		err = optable_slot(ef, ptr->function, ptr->argument, ptr->copied_to, slot, why);
	elf_file_close(ef);
	if (err && ptr->slot >= 0) {
		*slot = ptr->slot;
		err = 0;
	}
	return err;
}

int pointer_note(struct plan *plan, int probe, uint64_t offset)
{
	struct plan_pointed *grown =
		realloc(plan->pointed, sizeof(*grown) * (size_t)(plan->npointed + 1));

	if (!grown)
		return -ENOMEM;
	plan->pointed = grown;
	grown[plan->npointed++] = (struct plan_pointed){probe, offset};
	return 0;
}

bool pointer_known(const struct plan *plan, int probe, uint64_t offset)
{
	for (int i = 0; i < plan->npointed; i++)
		if (plan->pointed[i].probe == probe && plan->pointed[i].offset == offset)
			return true;
	return false;
}

void pointer_name(const struct elf_file *ef, const char *path, uint64_t addr, char *buf, size_t len)
{
	const char *symbol = elf_name_at(ef, addr), *base = strrchr(path, '/');

	if (symbol)
		snprintf(buf, len, "%s", symbol);
	else
		snprintf(buf, len, "%s+0x%llx", base ? base + 1 : path, (unsigned long long)addr);
}

void pointer_say_how(struct plan_probe *out, const char *how, int functions)
{
	char rest[sizeof(out->where)], count[24] = "";

	if (functions > 1)
		snprintf(count, sizeof(count), ", %d functions", functions);
	snprintf(rest, sizeof(rest), "%s", out->where);
	snprintf(out->where, sizeof(out->where), "%.20s%.16s; %.25s", how, count, rest);
}

/* All of them, or none: -ENOMEM, else 0 with the reason in out. */
static int add_functions(const struct profile *p, struct plan *plan, const struct elf_file *ef,
			 const struct optable *found, struct plan_probe *out)
{
	const struct profile_probe *pp = &p->probes[out->index];
	int err = 0, had = plan->npointed;
	char name[160];

	for (int i = 0; i < found->n && !err; i++) {
		uint64_t offset;

		pointer_name(ef, plan->path, found->addr[i], name, sizeof(name));
		err = plan_add_function(plan, ef, pp, out, name, found->addr[i]);
		if (!err && !elf_offset(ef, found->addr[i], &offset))
			err = pointer_note(plan, out->index, offset);
	}
	if (!err)
		pointer_say_how(out, "ops table", found->n);
	else
		plan->npointed = had;
	return err == -ENOMEM ? err : 0;
}

static const char *live_function(const struct profile_probe *pp)
{
	for (int k = 0; k < pp->npointers; k++)
		if (pp->pointer[k].at_call)
			return pp->pointer[k].function;
	return NULL;
}

static int plan_one(const struct profile *p, pid_t pid, const struct map_files *files,
		    struct plan *plan, const struct elf_file *ef, struct plan_probe *out)
{
	const struct profile_probe *pp = &p->probes[out->index];
	const char *live = live_function(pp);
	char why[OPTABLE_WHY_LEN] = "";
	struct optable found;

	for (int k = 0; k < pp->npointers; k++) {
		const struct probe_pointer *ptr = &pp->pointer[k];
		int64_t slot;

		if (ptr->at_call || slot_of(p, pid, files, ptr, &slot, why) ||
		    optable_find(ef, ptr->function, ptr->argument, slot, &found, why))
			continue;
		return add_functions(p, plan, ef, &found, out);
	}
	out->later = live;
	if (live)
		snprintf(out->reason, sizeof(out->reason),
			 "not yet: when %.30s next returns%s%.90s", live, why[0] ? ": " : "", why);
	else
		snprintf(out->reason, sizeof(out->reason), "%s", why);
	return 0;
}

int pointer_plan(const struct profile *p, pid_t pid, const struct map_files *files,
		 struct plan *plan)
{
	struct elf_file *ef = NULL;
	char why[128];
	int err = 0;

	for (int i = 0; i < plan->nprobe && !err; i++) {
		struct plan_probe *out = &plan->probe[i];

		if (!p->probes[out->index].npointers || out->off || plan->fd < 0)
			continue;
		if (!ef && elf_file_open(plan->fd, &ef, why, sizeof(why)))
			return 0; /* the plan says so already */
		err = plan_one(p, pid, files, plan, ef, out);
	}
	elf_file_close(ef);
	return err;
}
