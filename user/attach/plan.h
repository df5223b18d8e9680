/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What to attach in one library file: resolved once, used for every process that maps the file, and
 * kept for as long as one of them is watched. A
 * file that cannot be read has a plan too, in which every probe carries the reason.
 */
#ifndef SP_ATTACH_PLAN_H
#define SP_ATTACH_PLAN_H

#include "attach/elf.h"
#include "attach/maps.h"
#include "profile/profile.h"

struct plan_site {
	int probe;       /* index into plan.probe */
	bool each;       /* with the program for probes of elements */
	bool at_return;  /* uretprobe: the other program */
	uint64_t offset; /* in the file */
	uint64_t cookie; /* SP_COOKIE */
};

struct plan_probe {
	int index; /* into the profile's probes */
	bool ok, emulated;
	bool off;     /* not asked for: no fault */
	bool later;   /* a pointer will lead to it, when a call next returns: no fault */
	bool hidden;  /* another probe has its place, or it takes nobody's: nothing to tell */
	char *symbol; /* as found; NULL when not */
	char where[64];
	char reason[160]; /* when not ok */
};

struct plan_pointed {    /* a function without a symbol */
	int probe;       /* of the profile */
	uint64_t offset; /* in the file, of its first byte */
};

struct plan {
	unsigned dev_major, dev_minor;
	uint64_t ino;
	char *path;     /* as the first process saw it */
	int fd;         /* the file, kept open: later processes attach through it; -1: unreadable */
	bool lone;      /* of one function, see plan_make_function */
	bool no_return; /* for processes without return probes: at the `ret`s in their place */
	struct plan_site *site;
	int nsite;
	struct plan_probe *probe;
	int nprobe;
	struct plan_pointed *pointed; /* by pointer.h */
	int npointed;
	uint64_t swept_ns; /* internal: when plans_sweep first met it */
	int filling; /* internal: the probe that sites are being added to, and whether it is one of
			elements */
	bool each;
};

/* Does any library of the profile name this file? */
bool plan_wants(const struct profile *p, const struct map_file *f);
bool plan_is_for(const struct plan *plan, const struct map_file *f);
/* no_return: no return probes (attach.h, enum attach_returns). fd is taken over, closed on error
 * too; < 0: why tells the reason. -ENOMEM. */
int plan_make(const struct profile *p, const struct map_file *f, bool no_return, int fd,
	      const char *why, struct plan **out);
void plan_free(struct plan *plan);
void plan_say_off(const struct profile_probe *pp, char *reason, size_t len);

/*
 * For probes with `pointer`: a function that no symbol names, at an address of the file (as its
 * program headers count): planned for this probe of the plan like one with a symbol. Its end comes
 * from the unwind table. name: shown as the symbol, copied; NULL: "0xADDR". A probe with several
 * functions: one call after the other, none for another probe between them. On an error other than
 * -ENOMEM out->reason tells it, and the probe is attached nowhere.
 */
int plan_add_function(struct plan *plan, const struct elf_file *ef, const struct profile_probe *pp,
		      struct plan_probe *out, const char *name, uint64_t addr);
/*
 * A plan of this one function only (found in a live process, when the file's other probes are in
 * place already), by its offset in the file. It is not found by plan_is_for. fd (which is open),
 * no_return, errors as for plan_make.
 */
int plan_make_function(const struct profile *p, int probe, const struct map_file *f, bool no_return,
		       int fd, const char *name, uint64_t offset, struct plan **out);

#endif
