// SPDX-License-Identifier: Apache-2.0
/* Layouts: System V gABI, "Dynamic Section" and "Relocation"; DT_RELR: gABI draft of 2022. */
#include <elf.h>
#include <stdbool.h>
#include <string.h>

#include "attach/reloc.h"

#ifndef DT_RELR
#define DT_RELRSZ 35
#define DT_RELR   36
#endif

#define DYN_MAX    256    /* entries of a dynamic section that are looked at */
#define RELR_BYTES 504ull /* what one bitmap stands for: 63 words */

struct table {
	const uint8_t *p;
	uint64_t bytes;
};

struct dynamic {
	const struct elf_file *ef;
	enum insn_machine machine;
	struct table rela[2]; /* DT_RELA, DT_JMPREL */
	struct table relr;
	uint64_t sym, str; /* addresses */
};

static struct table table_at(const struct elf_file *ef, uint64_t addr, uint64_t bytes)
{
	struct table t = {0};

	t.p = bytes ? elf_data(ef, addr, bytes, &t.bytes) : NULL;
	if (!t.p)
		t.bytes = 0;
	return t;
}

/* false: no dynamic section. Tables that are not there stay empty. */
static bool dynamic_read(const struct elf_file *ef, struct dynamic *d)
{
	uint64_t left, val[DT_RELR + 1] = {0}, at = elf_dynamic(ef);
	const uint8_t *p = at ? elf_data(ef, at, DYN_MAX * sizeof(Elf64_Dyn), &left) : NULL;
	Elf64_Dyn dyn;

	memset(d, 0, sizeof(*d));
	if (!p)
		return false;
	for (int i = 0; i < DYN_MAX && left >= sizeof(dyn); i++) {
		memcpy(&dyn, p, sizeof(dyn));
		if (dyn.d_tag == DT_NULL)
			break;
		if (dyn.d_tag > 0 && dyn.d_tag <= DT_RELR)
			val[dyn.d_tag] = dyn.d_un.d_val;
		p += sizeof(dyn);
		left -= sizeof(dyn);
	}
	d->ef = ef;
	d->machine = elf_machine(ef);
	d->rela[0] = table_at(ef, val[DT_RELA], val[DT_RELASZ]);
	d->rela[1] = table_at(ef, val[DT_JMPREL], val[DT_PLTREL] == DT_RELA ? val[DT_PLTRELSZ] : 0);
	d->relr = table_at(ef, val[DT_RELR], val[DT_RELRSZ]);
	d->sym = val[DT_SYMTAB];
	d->str = val[DT_STRTAB];
	return true;
}

static bool symbol(const struct dynamic *d, uint64_t n, Elf64_Sym *sym)
{
	uint64_t got;
	const uint8_t *p =
		d->sym ? elf_data(d->ef, d->sym + n * sizeof(*sym), sizeof(*sym), &got) : NULL;

	if (!p || got < sizeof(*sym))
		return false;
	memcpy(sym, p, sizeof(*sym));
	return true;
}

static bool is_named(const struct dynamic *d, const Elf64_Sym *sym, const char *name)
{
	uint64_t len = strlen(name) + 1, got;
	const uint8_t *p = d->str ? elf_data(d->ef, d->str + sym->st_name, len, &got) : NULL;

	return p && got == len && !memcmp(p, name, len);
}

typedef bool (*rela_fn)(void *ctx, const struct dynamic *d, const Elf64_Rela *r); /* true: stop */

static void each_rela(const struct dynamic *d, rela_fn fn, void *ctx)
{
	Elf64_Rela r;

	for (int t = 0; t < 2; t++)
		for (uint64_t at = 0; at + sizeof(r) <= d->rela[t].bytes; at += sizeof(r)) {
			memcpy(&r, d->rela[t].p + at, sizeof(r));
			if (fn(ctx, d, &r))
				return;
		}
}

/* Relocations that write an address: of something of this file, of a symbol. */
static bool is_relative(const struct dynamic *d, const Elf64_Rela *r)
{
	return ELF64_R_TYPE(r->r_info) ==
	       (d->machine == MACHINE_X86_64 ? R_X86_64_RELATIVE : R_AARCH64_RELATIVE);
}

static bool is_symbolic(const struct dynamic *d, const Elf64_Rela *r)
{
	switch (ELF64_R_TYPE(r->r_info)) {
	case R_X86_64_64:
	case R_X86_64_GLOB_DAT:
	case R_X86_64_JUMP_SLOT:
		return d->machine == MACHINE_X86_64;
	case R_AARCH64_ABS64:
	case R_AARCH64_GLOB_DAT:
	case R_AARCH64_JUMP_SLOT:
		return d->machine == MACHINE_ARM64;
	default:
		return false;
	}
}

struct imports {
	const char *function;
	uint64_t *at;
	int n, max;
};

static bool import_one(void *ctx, const struct dynamic *d, const Elf64_Rela *r)
{
	struct imports *im = ctx;
	Elf64_Sym sym;

	if (is_symbolic(d, r) && !r->r_addend && symbol(d, ELF64_R_SYM(r->r_info), &sym) &&
	    sym.st_shndx == SHN_UNDEF && is_named(d, &sym, im->function))
		im->at[im->n++] = r->r_offset;
	return im->n == im->max;
}

int reloc_imports(const struct elf_file *ef, const char *function, uint64_t *at, int max)
{
	struct imports im = {.function = function, .at = at, .max = max};
	struct dynamic d;

	if (dynamic_read(ef, &d))
		each_rela(&d, import_one, &im);
	return im.n;
}

struct pointer {
	uint64_t at, value;
	bool found;
};

static bool pointer_one(void *ctx, const struct dynamic *d, const Elf64_Rela *r)
{
	struct pointer *p = ctx;
	Elf64_Sym sym;

	if (r->r_offset != p->at)
		return false;
	if (is_relative(d, r)) {
		p->value = (uint64_t)r->r_addend;
		p->found = true;
	} else if (is_symbolic(d, r) && symbol(d, ELF64_R_SYM(r->r_info), &sym) &&
		   sym.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(sym.st_info) != STT_GNU_IFUNC) {
		p->value = sym.st_value + (uint64_t)r->r_addend;
		p->found = true;
	}
	return true;
}

/* Packed relative relocations: an address, and bitmaps of the words behind it. */
static bool in_relr(const struct table *t, uint64_t at)
{
	uint64_t word, base = 0;

	for (uint64_t i = 0; i + 8 <= t->bytes; i += 8) {
		memcpy(&word, t->p + i, 8);
		if (!(word & 1)) {
			if (word == at)
				return true;
			base = word + 8;
			continue;
		}
		if (at >= base && at - base < RELR_BYTES && (at - base) % 8 == 0 &&
		    word >> ((at - base) / 8 + 1) & 1)
			return true;
		base += RELR_BYTES;
	}
	return false;
}

bool reloc_pointer(const struct elf_file *ef, uint64_t at, uint64_t *out)
{
	struct pointer p = {.at = at};
	const uint8_t *word;
	struct dynamic d;
	uint64_t left;

	if (!dynamic_read(ef, &d))
		return false;
	each_rela(&d, pointer_one, &p);
	if (!p.found && in_relr(&d.relr, at)) {
		word = elf_data(ef, at, 8, &left);
		if (!word || left < 8)
			return false;
		memcpy(&p.value, word, 8);
		p.found = true;
	}
	*out = p.value;
	return p.found;
}
