/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probes on functions that no symbol names (probe_pointer of the profile). Two ways to them: from
 * files alone (optable.h), and by the pointer itself, read when the function of `after` returns in
 * the process. For the latter attach has probes of its own behind those of the profile, finders;
 * their records end here.
 */
#ifndef SP_ATTACH_POINTER_H
#define SP_ATTACH_POINTER_H

#include "attach/maps.h"
#include "attach/plan.h"
#include "profile/profile.h"

#define POINTER_FINDERS 16

struct pointer_finder {
	struct {
		int probe, pointer; /* of the profile; of the probe */
	} of[SP_MAX_ARGS];          /* argument i of its records is this one's */
	int n;
};
/* A profile with finders. */
struct pointers {
	struct profile profile; /* shares everything with the given one but the list of probes */
	struct pointer_finder finder[POINTER_FINDERS];
	int nfinders;
	int given; /* probes of the given profile: finder i is probe given + i */
};
int pointers_open(const struct profile *p, struct pointers *out); /* -ENOMEM, -E2BIG */
void pointers_close(struct pointers *ps);

/* Plan what can be told from files: this one and the libraries that the process has mapped. To be
 * called once for a new plan. -ENOMEM. */
int pointer_plan(const struct profile *p, pid_t pid, const struct map_files *files,
		 struct plan *plan);
/* Must this file wait for a library that is on its way into the process? */
bool pointer_waits(const struct profile *p, const struct map_files *files,
		   const struct map_file *f);

/* Note that this function of the file is planned for this probe of the profile; is it? offset: in
 * the file, of its first byte. -ENOMEM. */
int pointer_note(struct plan *plan, int probe, uint64_t offset);
bool pointer_known(const struct plan *plan, int probe, uint64_t offset);
/* Its symbol when it has one after all, else "libmlx5.so.1+0x552e0". */
void pointer_name(const struct elf_file *ef, const char *path, uint64_t addr, char *buf,
		  size_t len);
void pointer_say_how(struct plan_probe *out, const char *how, int functions);

struct attach;
struct watched;
/* Has a pointer led to this probe's function in the process? */
bool pointer_found(const struct watched *w, int probe);
/* A record of a finder. */
void pointer_record(struct attach *a, const struct sp_rec_hit *rec);

#endif
