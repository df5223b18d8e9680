// SPDX-License-Identifier: Apache-2.0
#include <elf.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/func.h"
#include "attach/sock_links.h"
#include "attach/sock_sites.h"
#include "util/cleanup.h"

#define FUNCS_MAX 32
#define INSTEAD   "say SILENTPIN_SOCKETS=syscall"

bool sock_is_libc(const char *base)
{
	static const char *const globs[] = {"libc.so.6",        "libc-2.*.so",     "libc.so",
					    "ld-musl-*.so*",    "libc.musl-*.so*", "libpthread.so*",
					    "libpthread-2.*.so"};

	for (size_t i = 0; i < ARRAY_SIZE(globs); i++)
		if (!fnmatch(globs[i], base, 0))
			return true;
	return false;
}

/* The functions of one file. */
struct libc {
	const struct elf_file *ef;
	struct elf_sym sym[FUNCS_MAX];
	bool has[FUNCS_MAX]; /* under an address of its own */
};

static int named_at(const struct libc *c, uint64_t addr)
{
	for (int i = 0; i < sock_nfuncs; i++)
		if (c->has[i] && c->sym[i].addr == addr)
			return i;
	return -1;
}

static void find_functions(struct libc *c)
{
	for (int i = 0; i < sock_nfuncs; i++) {
		struct elf_sym *s = &c->sym[i];

		c->has[i] =
			elf_find(c->ef, sock_funcs[i].name, s, 1) > 0 && named_at(c, s->addr) < 0;
	}
}

static int calls_another(void *ctx, const struct insn_part *part, size_t at, const struct insn *in)
{
	const struct libc *c = ctx;
	int i;

	if (in->kind != INSN_CALL && !insn_is_direct(in))
		return 0;
	i = named_at(c, part->addr + in->target);
	return i >= 0 && part->addr + in->target != part->addr ? i + 1 : 0;
}

static int add_sites(struct plan *plan, const struct libc *c, const struct sock_sites *s)
{
	struct plan_site *grown =
		realloc(plan->site, sizeof(*grown) * (size_t)(plan->nsite + s->n + 1));

	if (!grown)
		return -ENOMEM;
	plan->site = grown;
	for (int i = 0; i < s->n; i++) {
		struct plan_site *site = &plan->site[plan->nsite + i];

		*site = (struct plan_site){.probe = plan->nprobe, .cookie = s->site[i].cookie};
		if (elf_offset(c->ef, s->site[i].addr, &site->offset))
			return -ENOENT;
	}
	plan->nsite += s->n;
	return 0;
}

/* One function. out->reason says why not; only -ENOMEM is an error. */
static int add_function(struct plan *plan, const struct libc *c, struct plan_probe *out)
{
	const struct elf_sym *sym = &c->sym[out->index];
	struct sock_sites s;
	struct func f;
	int rc, other;

	if (sym->type == STT_GNU_IFUNC || func_read(c->ef, sym, &f) || !f.whole) {
		snprintf(out->reason, sizeof(out->reason), "its code is not known: %s", INSTEAD);
		return 0;
	}
	rc = sock_sites(elf_machine(c->ef), f.part, f.nparts, &sock_funcs[out->index], &s);
	/* musl: sendmmsg calls sendmsg for each message; seen twice would be worse than once. */
	other = insn_walk(elf_machine(c->ef), f.part, f.nparts, calls_another, (void *)c);
	if (!rc && other > 0) {
		out->ok = out->emulated = true;
		snprintf(out->where, sizeof(out->where), "in %s", sock_funcs[other - 1].name);
		return 0;
	}
	if (rc || s.way == SOCK_WAY_LEADS) {
		snprintf(out->reason, sizeof(out->reason), "%.100s: %s",
			 rc ? s.why : "it only leads to a function without a name", INSTEAD);
		return 0;
	}
	rc = add_sites(plan, c, &s);
	if (rc == -ENOENT)
		snprintf(out->reason, sizeof(out->reason), "its code is not in the file: %s",
			 INSTEAD);
	out->ok = !rc;
	out->emulated = s.emulated;
	snprintf(out->where, sizeof(out->where), "%s", s.where);
	return rc == -ENOMEM ? rc : 0;
}

static int add_functions(struct plan *plan, const struct elf_file *ef, const char *why)
{
	__free struct libc *c = calloc(1, sizeof(*c));
	int rc = 0;

	plan->probe = calloc((size_t)sock_nfuncs, sizeof(*plan->probe));
	if (!c || !plan->probe)
		return -ENOMEM;
	c->ef = ef;
	if (ef)
		find_functions(c);
	for (int i = 0; i < sock_nfuncs && !rc; i++) {
		struct plan_probe *out = &plan->probe[plan->nprobe];

		if (ef && !c->has[i])
			continue;
		out->index = i;
		out->symbol = strdup(sock_funcs[i].name);
		if (!out->symbol)
			return -ENOMEM;
		if (ef)
			rc = add_function(plan, c, out);
		else
			snprintf(out->reason, sizeof(out->reason), "%s", why);
		plan->nprobe++;
	}
	return rc;
}

int sock_plan_make(const struct map_file *f, int fd, const char *why, struct plan **out)
{
	struct plan *plan = calloc(1, sizeof(*plan));
	struct elf_file *ef = NULL;
	char elf_why[128];
	int rc;

	*out = NULL;
	if (!plan || !(plan->path = strdup(f->path))) {
		free(plan);
		if (fd >= 0)
			close(fd);
		return -ENOMEM;
	}
	plan->fd = fd;
	plan->ino = f->ino;
	plan->dev_major = f->dev_major;
	plan->dev_minor = f->dev_minor;
	if (fd >= 0 && elf_file_open(fd, &ef, elf_why, sizeof(elf_why))) {
		why = elf_why;
		ef = NULL;
	}
	rc = add_functions(plan, ef, why);
	elf_file_close(ef);
	if (rc) {
		plan_free(plan);
		return rc;
	}
	*out = plan;
	return 0;
}

bool sock_plan_good(const struct plan *plan, const int *err, enum attach_backend backend, char *buf,
		    size_t len)
{
	char why[160];

	for (int i = 0; i < plan->nprobe; i++) {
		const struct plan_probe *p = &plan->probe[i];
		bool linked = !err || !err[i];

		if (!sock_funcs[p->index].needed || (p->ok && linked))
			continue;
		if (!p->ok)
			snprintf(why, sizeof(why), "%s", p->reason);
		else
			uprobe_reason(err[i], backend, why, sizeof(why));
		snprintf(buf, len, "%s of %.60s cannot be probed: %s", sock_funcs[p->index].name,
			 strrchr(plan->path, '/') + 1, why);
		return false;
	}
	return true;
}
