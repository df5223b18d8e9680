// SPDX-License-Identifier: Apache-2.0
/* Functions without a symbol, from pointers read in the process: finders, and what they find. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/optable.h"
#include "attach/pointer.h"
#include "attach/watched.h"
#include "util/cleanup.h"
#include "util/clock.h"

/* ---- finders --------------------------------------------------------------------------------- */

/* How many arguments of the function does the program use? */
static uint8_t saved_by(const struct sp_fetch *f)
{
	uint8_t most = 0;

	for (int i = 0; i < f->nops; i++)
		if (f->op[i].code == SP_OP_ARG && f->op[i].n > most)
			most = f->op[i].n;
	return most;
}

static struct profile_probe *finder_probe(struct pointers *ps, int i)
{
	return &ps->profile.probes[ps->given + i];
}

/* The finder at this function, with room for one more; made when there is none. -E2BIG. */
static int finder_at(struct pointers *ps, const struct probe_pointer *ptr)
{
	struct profile_probe *fp;

	for (int i = 0; i < ps->nfinders; i++) {
		fp = finder_probe(ps, i);
		if (fp->library == ptr->library && !strcmp(fp->symbol, ptr->function) &&
		    ps->finder[i].n < SP_MAX_ARGS)
			return i;
	}
	if (ps->nfinders == POINTER_FINDERS || ps->given + ps->nfinders == SP_MAX_PROBES)
		return -E2BIG;
	fp = finder_probe(ps, ps->nfinders);
	*fp = (struct profile_probe){
		.name = ptr->function,
		.library = ptr->library,
		.socket = -1,
		.symbol = ptr->function,
		.on = ON_RETURN,
		.prog = {.size_class = SP_CLASS_NONE},
	};
	return ps->nfinders++;
}

static int add_finder(struct pointers *ps, int probe, int k)
{
	const struct probe_pointer *ptr = &ps->profile.probes[probe].pointer[k];
	struct pointer_finder *f;
	struct sp_probe *prog;
	int i = finder_at(ps, ptr);

	if (i < 0)
		return i;
	f = &ps->finder[i];
	prog = &finder_probe(ps, i)->prog;
	f->of[f->n].probe = probe;
	f->of[f->n].pointer = k;
	prog->fetch[f->n] = ptr->fetch;
	prog->fetch[f->n].arg = (uint8_t)f->n;
	if (saved_by(&ptr->fetch) > prog->nsaved)
		prog->nsaved = saved_by(&ptr->fetch);
	f->n++;
	prog->nfetch = prog->nargs = (uint8_t)f->n;
	return 0;
}

int pointers_open(const struct profile *p, struct pointers *ps)
{
	int err = 0;

	memset(ps, 0, sizeof(*ps));
	ps->profile = *p;
	ps->given = p->nprobes;
	ps->profile.probes =
		calloc((size_t)p->nprobes + POINTER_FINDERS, sizeof(*ps->profile.probes));
	if (!ps->profile.probes)
		return -ENOMEM;
	if (p->nprobes)
		memcpy(ps->profile.probes, p->probes, sizeof(*p->probes) * (size_t)p->nprobes);
	for (int i = 0; i < p->nprobes && !err; i++)
		for (int k = 0; k < p->probes[i].npointers && !err; k++)
			if (!p->probes[i].off && p->probes[i].pointer[k].at_call)
				err = add_finder(ps, i, k);
	ps->profile.nprobes += ps->nfinders;
	if (err)
		pointers_close(ps);
	return err;
}

void pointers_close(struct pointers *ps)
{
	free(ps->profile.probes);
	memset(ps, 0, sizeof(*ps));
}

/* ---- what they find -------------------------------------------------------------------------- */

struct place {
	struct map_file file;
	uint64_t offset; /* in the file, of the function's first byte */
	int fd;
	char name[160];
};

/* The function behind an address of a file, if it is one. The file stays open. */
static int function_at(struct place *at)
{
	char why[128];
	struct elf_file *ef;
	uint64_t addr, real;
	int err = elf_file_open(at->fd, &ef, why, sizeof(why));

	if (err)
		return err;
	err = elf_address(ef, at->offset, &addr);
	if (!err && !optable_function(ef, addr, &real))
		err = -ENOENT;
	if (!err)
		err = elf_offset(ef, real, &at->offset);
	if (!err)
		pointer_name(ef, at->file.path, real, at->name, sizeof(at->name));
	elf_file_close(ef);
	return err;
}

static bool is_same_file(const struct plan *plan, const struct map_file *f)
{
	return plan->ino == f->ino && plan->dev_major == f->dev_major &&
	       plan->dev_minor == f->dev_minor;
}

static bool has_function(const struct watched *w, int probe, const struct place *at)
{
	for (int i = 0; i < w->nlib; i++)
		if (is_same_file(w->lib[i].plan, &at->file) &&
		    pointer_known(w->lib[i].plan, probe, at->offset))
			return true;
	return false;
}

/* A plan of this function alone: of another process, or a new one, which takes the descriptor. */
static struct plan *plan_of(struct attach *a, int probe, bool no_return, struct place *at,
			    const char *function)
{
	struct plan *plan, **grown;
	char how[48];
	int err;

	for (int i = 0; i < a->nplan; i++)
		if (a->plan[i]->lone && a->plan[i]->no_return == no_return &&
		    is_same_file(a->plan[i], &at->file) &&
		    pointer_known(a->plan[i], probe, at->offset))
			return a->plan[i];
	grown = realloc(a->plan, sizeof(void *) * (size_t)(a->nplan + 1)); /* of pointers */
	if (!grown)
		return NULL;
	a->plan = grown;
	err = plan_make_function(a->profile, probe, &at->file, no_return, at->fd, at->name,
				 at->offset, &plan);
	at->fd = -1;
	if (err)
		return NULL;
	a->plan[a->nplan++] = plan;
	snprintf(how, sizeof(how), "after %.40s", function);
	if (plan->probe[0].ok)
		pointer_say_how(&plan->probe[0], how, 1);
	return pointer_note(plan, probe, at->offset) ? NULL : plan;
}

static void place_function(struct attach *a, struct watched *w, int probe, struct place *at,
			   const char *function)
{
	struct attach_notice n = {
		.what = NOTICE_LIB, .ns = mono_ns(), .pid = (uint32_t)w->id.pid, .gap = true};
	struct plan *plan;

	if (function_at(at) || has_function(w, probe, at))
		return;
	plan = plan_of(a, probe, w->no_return, at, function);
	n.n = plan ? watched_add_plan(a, w, plan) : 0;
	if (n.n <= 0)
		return;
	/* What ran between that function's return and now is not seen. */
	snprintf(n.text, sizeof(n.text), "%s", plan->path);
	attach_notify(a, &n);
}

static void found(struct attach *a, struct watched *w, int probe, uint64_t addr,
		  const char *function)
{
	struct place at = {.fd = -1};
	char why[160];

	if (maps_at(w->id.pid, addr, &at.file, &at.offset))
		return;
	if (profile_lib_fits(&a->profile->libs[a->profile->probes[probe].library], at.file.base) &&
	    target_alive(&w->id))
		at.fd = maps_open(w->id.pid, &at.file, why, sizeof(why));
	if (at.fd >= 0)
		place_function(a, w, probe, &at, function);
	if (at.fd >= 0)
		close(at.fd);
	free(at.file.path);
}

/* The same few addresses come again and again. */
static bool seen_before(struct watched *w, int probe, uint64_t addr)
{
	struct watched_pointer *grown;

	for (int i = 0; i < w->npointers; i++)
		if (w->pointer[i].probe == probe && w->pointer[i].addr == addr)
			return true;
	if (w->npointers == WATCHED_POINTERS)
		return true;
	grown = realloc(w->pointer, sizeof(*grown) * (size_t)(w->npointers + 1));
	if (!grown)
		return true;
	w->pointer = grown;
	grown[w->npointers++] = (struct watched_pointer){probe, addr};
	return false;
}

bool pointer_found(const struct watched *w, int probe)
{
	for (int i = 0; i < w->nlib; i++)
		if (w->lib[i].plan->lone && w->lib[i].plan->probe[0].index == probe &&
		    w->lib[i].plan->probe[0].ok)
			return true;
	return false;
}

void pointer_record(struct attach *a, const struct sp_rec_hit *rec)
{
	struct watched *w = watched_find(a, rec->h.pid);
	int i = rec->h.probe - a->pointers.given;
	const struct pointer_finder *f;

	if (!w || i < 0 || i >= a->pointers.nfinders || w->borrowed || rec->h.ns < w->born_ns)
		return;
	f = &a->pointers.finder[i];
	for (int k = 0; k < f->n; k++)
		if (!rec->len[k] && rec->val[k] && !seen_before(w, f->of[k].probe, rec->val[k]))
			found(a, w, f->of[k].probe, rec->val[k],
			      finder_probe(&a->pointers, i)->symbol);
}
