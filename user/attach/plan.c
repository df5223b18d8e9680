// SPDX-License-Identifier: Apache-2.0
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/elf.h"
#include "attach/func.h"
#include "attach/plan.h"
#include "attach/unwind.h"

#define MAX_MATCHES 16 /* functions one glob may fit */

bool plan_wants(const struct profile *p, const struct map_file *f)
{
	for (int i = 0; i < p->nlibs; i++)
		if (profile_lib_fits(&p->libs[i], f->base))
			return true;
	return false;
}

bool plan_is_for(const struct plan *plan, const struct map_file *f)
{
	return !plan->lone && plan->ino == f->ino && plan->dev_major == f->dev_major &&
	       plan->dev_minor == f->dev_minor;
}

static int add_site(struct plan *plan, const struct elf_file *ef, uint64_t addr, uint64_t cookie,
		    bool at_return)
{
	struct plan_site s = {
		.probe = plan->filling,
		.at_return = at_return,
		.cookie = cookie,
		.each = plan->each,
	};
	struct plan_site *grown;

	if (elf_offset(ef, addr, &s.offset))
		return -ENOENT;
	grown = realloc(plan->site, sizeof(s) * (size_t)(plan->nsite + 1));
	if (!grown)
		return -ENOMEM;
	plan->site = grown;
	plan->site[plan->nsite++] = s;
	return 0;
}

static int add_ret_sites(struct plan *plan, const struct func *f, struct plan_probe *out)
{
	enum insn_machine m = elf_machine(f->ef);
	char why[INSN_WHY_LEN];
	uint64_t rets[INSN_MAX_RETS];
	struct insn_site site;
	uint32_t idx = (uint32_t)out->index;
	int n, err;

	if (!f->whole) {
		snprintf(out->reason, sizeof(out->reason),
			 "its symbol has no size, so its returns cannot be found: use on: entry");
		return -EINVAL;
	}
	n = insn_rets(m, f->part, f->nparts, rets, why);
	if (n < 0) {
		snprintf(out->reason, sizeof(out->reason), "%.120s: use on: entry", why);
		return n;
	}
	insn_entry(m, f->part, f->nparts, f->whole, &site);
	err = add_site(plan, f->ef, site.addr, SP_COOKIE(idx, SP_SITE_SAVE, site.shift), false);
	for (int i = 0; i < n && !err; i++)
		err = add_site(plan, f->ef, rets[i], SP_COOKIE(idx, SP_SITE_RET, 0), false);
	out->emulated = m == MACHINE_ARM64 && site.emulated; /* x86 single-steps ret */
	snprintf(out->where, sizeof(out->where), "%.40s; %d ret", site.where, n);
	return err;
}

static int add_return_sites(struct plan *plan, const struct func *f, struct plan_probe *out)
{
	struct insn_site site;
	uint32_t idx = (uint32_t)out->index;
	int err;

	insn_return_entry(elf_machine(f->ef), f->part, f->nparts, f->whole, &site);
	/* One trap serves both. */
	err = add_site(plan, f->ef, site.addr, SP_COOKIE(idx, SP_SITE_SAVE, 0), false);
	if (!err)
		err = add_site(plan, f->ef, site.addr, SP_COOKIE(idx, SP_SITE_RETURN, 0), true);
	out->emulated = site.emulated;
	snprintf(out->where, sizeof(out->where), "%.40s; return", site.where);
	return err;
}

/* In a process whose returns may not be probed. */
static int add_rets_instead(struct plan *plan, const struct func *f, struct plan_probe *out)
{
	char why[sizeof(out->reason)];
	int err = add_ret_sites(plan, f, out);

	if (!err || err == -ENOMEM)
		return err;
	snprintf(why, sizeof(why), "%.*s", (int)strcspn(out->reason, ":"), out->reason);
	snprintf(out->reason, sizeof(out->reason),
		 "return probes are not used in this process (see doctor), nor its rets: %.80s",
		 why);
	return err;
}

static int add_entry_site(struct plan *plan, const struct func *f, struct plan_probe *out)
{
	struct insn_site site;

	insn_entry(elf_machine(f->ef), f->part, f->nparts, f->whole, &site);
	out->emulated = site.emulated;
	snprintf(out->where, sizeof(out->where), "%s", site.where);
	return add_site(plan, f->ef, site.addr,
			SP_COOKIE((uint32_t)out->index, SP_SITE_ENTRY, site.shift), false);
}

/* One function of one probe. Fills out->reason on error, except -ENOMEM. */
static int add_function(struct plan *plan, const struct elf_file *ef,
			const struct profile_probe *pp, const struct elf_sym *sym,
			struct plan_probe *out)
{
	struct func f;
	int err;

	if (sym->type == STT_GNU_IFUNC) {
		snprintf(out->reason, sizeof(out->reason),
			 "%.60s is an IFUNC, one of several functions chosen at load time: name "
			 "that function",
			 sym->name);
		return -EINVAL;
	}
	if (pp->on == ON_RETURN && !pp->nothrow && !strncmp(sym->name, "_Z", 2)) {
		snprintf(out->reason, sizeof(out->reason),
			 "an exception through a return probe would kill the process: use on: ret "
			 "or entry, or state nothrow");
		return -EINVAL;
	}
	plan->each = pp->prog.flags & SP_P_EACH;
	if (func_read(ef, sym, &f)) {
		snprintf(out->reason, sizeof(out->reason), "its code is not in the file");
		return -ENOENT;
	}
	if (pp->on == ON_RETURN && plan->no_return)
		err = add_rets_instead(plan, &f, out);
	else if (pp->on == ON_RETURN)
		err = add_return_sites(plan, &f, out);
	else if (pp->on == ON_RET)
		err = add_ret_sites(plan, &f, out);
	else
		err = add_entry_site(plan, &f, out);
	return err;
}

static void say_not_found(const struct elf_file *ef, const char *glob, struct plan_probe *out)
{
	char near[80];

	elf_nearest(ef, glob, near, sizeof(near));
	if (near[0])
		snprintf(out->reason, sizeof(out->reason), "no function %.60s; near: %s", glob,
			 near);
	else
		snprintf(out->reason, sizeof(out->reason),
			 "no function %.80s, nor one like it: another version?", glob);
}

static int resolve(struct plan *plan, const struct elf_file *ef, const struct profile_probe *pp,
		   struct plan_probe *out)
{
	struct elf_sym sym[MAX_MATCHES];
	int n = elf_find(ef, pp->symbol, sym, MAX_MATCHES), first = plan->nsite, err = 0;
	char tail[24];

	if (n == 0) {
		say_not_found(ef, pp->symbol, out);
		return 0;
	}
	out->symbol = strdup(sym[0].name);
	if (!out->symbol)
		return -ENOMEM;
	if (n > MAX_MATCHES) {
		snprintf(out->reason, sizeof(out->reason), "%.60s fits %d functions: narrow it",
			 pp->symbol, n);
		return 0;
	}
	for (int i = 0; i < n && !err; i++)
		err = add_function(plan, ef, pp, &sym[i], out);
	if (err)
		plan->nsite = first; /* all of it or nothing */
	if (err == -ENOMEM)
		return err;
	out->ok = !err;
	if (out->ok && n > 1) {
		snprintf(tail, sizeof(tail), " (%d functions)", n);
		strncat(out->where, tail, sizeof(out->where) - strlen(out->where) - 1);
	}
	return 0;
}

void plan_say_off(const struct profile_probe *pp, char *reason, size_t len)
{
	snprintf(reason, len, "off: --enable %.40s", pp->name);
}

static int resolve_all(struct plan *plan, const struct profile *p, const char *base,
		       const struct elf_file *ef, const char *why)
{
	plan->probe = calloc((size_t)p->nprobes + 1, sizeof(*plan->probe));
	if (!plan->probe)
		return -ENOMEM;
	for (int i = 0; i < p->nprobes; i++) {
		struct plan_probe *out = &plan->probe[plan->nprobe];
		int err = 0;

		if (p->probes[i].library < 0 ||
		    !profile_lib_fits(&p->libs[p->probes[i].library], base))
			continue;
		out->index = i;
		plan->filling = plan->nprobe;
		out->off = p->probes[i].off;
		if (out->off)
			plan_say_off(&p->probes[i], out->reason, sizeof(out->reason));
		else if (ef && p->probes[i].npointers)
			snprintf(out->reason, sizeof(out->reason), "no pointer to it found yet");
		else if (ef)
			err = resolve(plan, ef, &p->probes[i], out);
		else
			snprintf(out->reason, sizeof(out->reason), "%s", why);
		if (err)
			return err;
		plan->nprobe++;
	}
	return 0;
}

static void drop_sites(struct plan *plan, int probe)
{
	int n = 0;

	for (int i = 0; i < plan->nsite; i++)
		if (plan->site[i].probe != probe)
			plan->site[n++] = plan->site[i];
	plan->nsite = n;
}

/* What has another probe's place in this file has it alone: a call of the one function may go
 * through the other, and would be seen twice. */
static void settle_places(struct plan *plan, const struct profile *p)
{
	for (int i = 0; i < plan->nprobe; i++) {
		int base = p->probes[plan->probe[i].index].instead_of - 1;

		if (base < 0)
			continue;
		plan->probe[i].hidden = !plan->probe[i].symbol && !plan->probe[i].off;
		for (int k = 0; plan->probe[i].ok && k < plan->nprobe; k++) {
			struct plan_probe *out = &plan->probe[k];

			if (out->index != base || out->off)
				continue;
			drop_sites(plan, k);
			out->ok = false;
			out->hidden = true;
		}
	}
}

/* The extent of a function without a symbol: not known where the unwind table does not begin there.
 */
static uint64_t size_at(const struct elf_file *ef, uint64_t addr)
{
	struct unwind_piece piece;

	if (unwind_piece(ef, addr, &piece) || piece.addr != addr)
		return 0;
	return piece.len;
}

int plan_add_function(struct plan *plan, const struct elf_file *ef, const struct profile_probe *pp,
		      struct plan_probe *out, const char *name, uint64_t addr)
{
	struct elf_sym sym = {.addr = addr, .type = STT_FUNC, .size = size_at(ef, addr)};
	char hex[24];
	int err, first = plan->nsite;

	snprintf(hex, sizeof(hex), "0x%llx", (unsigned long long)addr);
	sym.name = name ? name : hex;
	if (!out->symbol)
		out->symbol = strdup(sym.name);
	if (!out->symbol)
		return -ENOMEM;
	while (first > 0 && &plan->probe[plan->site[first - 1].probe] == out)
		first--;
	plan->filling = (int)(out - plan->probe);
	err = add_function(plan, ef, pp, &sym, out);
	if (err)
		plan->nsite = first; /* all of it or nothing */
	else
		out->reason[0] = 0;
	out->ok = !err;
	return err;
}

static struct plan *new_plan(const struct map_file *f, bool no_return, int fd)
{
	struct plan *plan = calloc(1, sizeof(*plan));

	if (!plan || !(plan->path = strdup(f->path))) {
		free(plan);
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	plan->no_return = no_return;
	plan->fd = fd;
	plan->ino = f->ino;
	plan->dev_major = f->dev_major;
	plan->dev_minor = f->dev_minor;
	return plan;
}

static int add_lone(struct plan *plan, const struct elf_file *ef, const struct profile_probe *pp,
		    const char *name, uint64_t offset)
{
	struct plan_probe *out = &plan->probe[0];
	uint64_t addr;
	int err;

	if (elf_address(ef, offset, &addr)) {
		snprintf(out->reason, sizeof(out->reason), "the pointer leads to no code");
		return 0;
	}
	err = plan_add_function(plan, ef, pp, out, name, addr);
	return err == -ENOMEM ? err : 0;
}

int plan_make_function(const struct profile *p, int probe, const struct map_file *f, bool no_return,
		       int fd, const char *name, uint64_t offset, struct plan **out)
{
	struct plan *plan = new_plan(f, no_return, fd);
	struct elf_file *ef = NULL;
	char elf_why[128];
	int err = 0;

	*out = NULL;
	if (!plan)
		return -ENOMEM;
	plan->lone = true;
	plan->probe = calloc(1, sizeof(*plan->probe));
	if (!plan->probe) {
		plan_free(plan);
		return -ENOMEM;
	}
	plan->nprobe = 1;
	plan->probe[0].index = probe;
	if (elf_file_open(fd, &ef, elf_why, sizeof(elf_why)))
		ef = NULL;
	if (ef)
		err = add_lone(plan, ef, &p->probes[probe], name, offset);
	else
		snprintf(plan->probe[0].reason, sizeof(plan->probe[0].reason), "%s", elf_why);
	elf_file_close(ef);
	if (err) {
		plan_free(plan);
		return err;
	}
	*out = plan;
	return 0;
}

static void say_cut_short(struct plan *plan)
{
	for (int i = 0; i < plan->nprobe; i++)
		if (!plan->probe[i].ok && !plan->probe[i].off)
			snprintf(plan->probe[i].reason, sizeof(plan->probe[i].reason),
				 "the file was cut short while it was read: restart the process");
}

int plan_make(const struct profile *p, const struct map_file *f, bool no_return, int fd,
	      const char *why, struct plan **out)
{
	struct plan *plan = new_plan(f, no_return, fd);
	struct elf_file *ef = NULL;
	char elf_why[128];
	int err;

	*out = NULL;
	if (!plan)
		return -ENOMEM;
	if (fd >= 0 && elf_file_open(fd, &ef, elf_why, sizeof(elf_why))) {
		why = elf_why;
		ef = NULL;
	}
	err = resolve_all(plan, p, f->base, ef, why);
	if (!err)
		settle_places(plan, p);
	if (ef && elf_cut_short(ef))
		say_cut_short(plan);
	elf_file_close(ef);
	if (err) {
		plan_free(plan);
		return err;
	}
	*out = plan;
	return 0;
}

void plan_free(struct plan *plan)
{
	if (!plan)
		return;
	for (int i = 0; plan->probe && i < plan->nprobe; i++)
		free(plan->probe[i].symbol);
	if (plan->fd >= 0)
		close(plan->fd);
	free(plan->probe);
	free(plan->site);
	free(plan->pointed);
	free(plan->path);
	free(plan);
}
