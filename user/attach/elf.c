// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fnmatch.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "attach/elf.h"
#include "attach/image.h"

#define NEAREST     3 /* names suggested */
#define NEAR_MIN    4 /* leading characters a suggestion shares at least */
#define SEGMENT_MAX 64
/* More is a file that lies: libtorch's symbols have tens of megabytes, a provider's code a few. */
#define SYMBOLS_MAX (256ull << 20)
#define TEXT_MAX    (256ull << 20)

struct segment {
	uint64_t addr, off, len;
	bool code;
};

struct elf_file {
	Elf *elf;            /* reads headers and symbols by itself */
	struct image *image; /* the rest */
	int fd;
	uint64_t size;
	enum insn_machine machine;
	struct segment seg[SEGMENT_MAX];
	int nseg;
	Elf_Scn *dynsym, *symtab;
};

enum insn_machine elf_machine(const struct elf_file *ef)
{
	return ef->machine;
}

static int read_segments(struct elf_file *ef)
{
	size_t n = 0;
	bool code = false;

	if (elf_getphdrnum(ef->elf, &n))
		return -ENOEXEC;
	for (size_t i = 0; i < n && ef->nseg < SEGMENT_MAX; i++) {
		bool runs;

		GElf_Phdr ph;

		if (!gelf_getphdr(ef->elf, (int)i, &ph))
			return -ENOEXEC;
		runs = ph.p_flags & PF_X;
		if (ph.p_type != PT_LOAD)
			continue;
		if (ph.p_offset > ef->size || ph.p_filesz > ef->size - ph.p_offset) {
			if (runs)
				return -ENOEXEC; /* cut short */
			continue;
		}
		ef->seg[ef->nseg++] = (struct segment){ph.p_vaddr, ph.p_offset, ph.p_filesz, runs};
		code |= runs;
	}
	return code ? 0 : -ENOEXEC;
}

static void find_tables(struct elf_file *ef)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(ef->elf, scn))) {
		GElf_Shdr sh;

		if (!gelf_getshdr(scn, &sh))
			continue;
		if (sh.sh_type == SHT_DYNSYM && !ef->dynsym)
			ef->dynsym = scn;
		if (sh.sh_type == SHT_SYMTAB && !ef->symtab)
			ef->symtab = scn;
	}
}

static int open_elf(struct elf_file *ef, char *why, size_t why_len)
{
	GElf_Ehdr eh;

	elf_version(EV_CURRENT);
	ef->elf = elf_begin(ef->fd, ELF_C_READ, NULL);
	if (!ef->elf || elf_kind(ef->elf) != ELF_K_ELF || !gelf_getehdr(ef->elf, &eh)) {
		snprintf(why, why_len, "not an ELF file");
		return -ENOEXEC;
	}
	/* Both are little-endian, as this program is: the tables are read as they are. */
	if (eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_ident[EI_DATA] != ELFDATA2LSB)
		ef->machine = MACHINE_NONE;
	else if (eh.e_machine == EM_X86_64)
		ef->machine = MACHINE_X86_64;
	else if (eh.e_machine == EM_AARCH64)
		ef->machine = MACHINE_ARM64;
	if (ef->machine == MACHINE_NONE) {
		snprintf(why, why_len, "neither x86-64 nor arm64 code");
		return -ENOEXEC;
	}
	if (read_segments(ef)) {
		snprintf(why, why_len, "no executable segment, or the file is cut short");
		return -ENOEXEC;
	}
	find_tables(ef);
	return 0;
}

int elf_file_open(int fd, struct elf_file **out, char *why, size_t why_len)
{
	struct elf_file *ef = calloc(1, sizeof(*ef));
	struct stat st;
	int err;

	*out = NULL;
	if (!ef)
		return -ENOMEM;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size == 0) {
		snprintf(why, why_len, "not a regular file");
		free(ef);
		return -ENOEXEC;
	}
	ef->fd = fd;
	ef->size = (uint64_t)st.st_size;
	err = image_open(fd, ef->size, &ef->image);
	if (err) {
		snprintf(why, why_len, "cannot be read: %s", strerror(-err));
		free(ef);
		return err;
	}
	err = open_elf(ef, why, why_len);
	if (err) {
		elf_file_close(ef);
		return err;
	}
	*out = ef;
	return 0;
}

void elf_file_close(struct elf_file *ef)
{
	if (!ef)
		return;
	if (ef->elf)
		elf_end(ef->elf);
	image_close(ef->image);
	free(ef);
}

/* ---- symbols --------------------------------------------------------------------------------- */

typedef bool (*sym_fn)(void *ctx, const struct elf_sym *sym); /* false: stop */

static void each_function(const struct elf_file *ef, Elf_Scn *scn, sym_fn fn, void *ctx)
{
	Elf_Data *data;
	GElf_Shdr sh;

	/* the section is read as a whole, and its size is what the file says */
	if (!scn || !gelf_getshdr(scn, &sh) || !sh.sh_entsize || sh.sh_size > SYMBOLS_MAX)
		return;
	data = elf_getdata(scn, NULL);
	if (!data)
		return;
	for (size_t i = 0; i < sh.sh_size / sh.sh_entsize; i++) {
		struct elf_sym sym;
		GElf_Sym s;

		if (!gelf_getsym(data, (int)i, &s))
			return;
		sym.type = GELF_ST_TYPE(s.st_info);
		if (s.st_shndx == SHN_UNDEF || !s.st_value ||
		    (sym.type != STT_FUNC && sym.type != STT_GNU_IFUNC))
			continue;
		sym.name = elf_strptr(ef->elf, sh.sh_link, s.st_name);
		sym.addr = s.st_value;
		sym.size = s.st_size;
		if (sym.name && *sym.name && !fn(ctx, &sym))
			return;
	}
}

struct finder {
	const char *glob;
	size_t literal; /* characters before the first wildcard: compared first, for speed */
	bool plain;     /* no wildcard at all */
	bool dot;       /* pieces count too */
	struct elf_sym *syms;
	int n, max;
};

static bool find_one(void *ctx, const struct elf_sym *sym)
{
	struct finder *f = ctx;

	if (strncmp(sym->name, f->glob, f->literal) != 0)
		return true;
	if (f->plain ? sym->name[f->literal] != 0 : fnmatch(f->glob, sym->name, 0) != 0)
		return true;
	if (!f->dot && strchr(sym->name, '.'))
		return true;
	for (int i = 0; i < f->n && i < f->max; i++)
		if (f->syms[i].addr == sym->addr)
			return true;
	if (f->n < f->max)
		f->syms[f->n] = *sym;
	f->n++;
	return true;
}

int elf_find(const struct elf_file *ef, const char *glob, struct elf_sym *syms, int max)
{
	struct finder f = {.glob = glob, .syms = syms, .max = max};

	f.literal = strcspn(glob, "*?[\\");
	f.plain = glob[f.literal] == 0;
	f.dot = strchr(glob, '.') != NULL;
	each_function(ef, ef->dynsym, find_one, &f);
	if (f.n == 0)
		each_function(ef, ef->symtab, find_one, &f);
	return f.n;
}

static bool cold_one(void *ctx, const struct elf_sym *sym)
{
	struct finder *f = ctx;
	const char *rest = sym->name + f->literal;

	if (strncmp(sym->name, f->glob, f->literal) == 0 && !strncmp(rest, ".cold", 5) &&
	    (rest[5] == 0 || rest[5] == '.') && f->n < f->max)
		f->syms[f->n++] = *sym;
	return f->n < f->max;
}

int elf_cold(const struct elf_file *ef, const char *name, struct elf_sym *syms, int max)
{
	struct finder f = {.glob = name, .literal = strlen(name), .syms = syms, .max = max};

	each_function(ef, ef->symtab, cold_one, &f);
	return f.n;
}

struct nearest {
	const char *glob;
	struct {
		const char *name;
		size_t shared;
	} best[NEAREST];
};

static bool near_one(void *ctx, const struct elf_sym *sym)
{
	struct nearest *n = ctx;
	size_t shared = 0;

	while (sym->name[shared] && sym->name[shared] == n->glob[shared])
		shared++;
	for (int i = 0; i < NEAREST; i++) {
		if (n->best[i].name && !strcmp(n->best[i].name, sym->name))
			return true;
		if (shared <= n->best[i].shared)
			continue;
		memmove(&n->best[i + 1], &n->best[i], sizeof(n->best[0]) * (NEAREST - 1 - i));
		n->best[i].name = sym->name;
		n->best[i].shared = shared;
		return true;
	}
	return true;
}

void elf_nearest(const struct elf_file *ef, const char *glob, char *buf, size_t len)
{
	struct nearest n = {.glob = glob};
	size_t need = strcspn(glob, "*?["), used = 0;

	/* Mangled names of one class all share their beginning: ask for half of the literal. */
	need = need / 2 > NEAR_MIN ? need / 2 : NEAR_MIN;
	buf[0] = 0;
	each_function(ef, ef->dynsym, near_one, &n);
	each_function(ef, ef->symtab, near_one, &n);
	for (int i = 0; i < NEAREST && n.best[i].name && n.best[i].shared >= need; i++) {
		int w = snprintf(buf + used, len - used, "%s%.60s", used ? ", " : "",
				 n.best[i].name);

		if (w < 0 || (size_t)w >= len - used)
			break;
		used += (size_t)w;
	}
}

/* ---- code ------------------------------------------------------------------------------------ */

static const struct segment *segment_of(const struct elf_file *ef, uint64_t addr, bool code)
{
	for (int i = 0; i < ef->nseg; i++)
		if ((ef->seg[i].code || !code) && addr >= ef->seg[i].addr &&
		    addr - ef->seg[i].addr < ef->seg[i].len)
			return &ef->seg[i];
	return NULL;
}

int elf_offset(const struct elf_file *ef, uint64_t addr, uint64_t *off)
{
	const struct segment *s = segment_of(ef, addr, true);

	if (!s)
		return -ENOENT;
	*off = addr - s->addr + s->off;
	return 0;
}

int elf_address(const struct elf_file *ef, uint64_t off, uint64_t *addr)
{
	for (int i = 0; i < ef->nseg; i++) {
		const struct segment *s = &ef->seg[i];

		if (!s->code || off < s->off || off - s->off >= s->len)
			continue;
		*addr = off - s->off + s->addr;
		return 0;
	}
	return -ENOENT;
}

int elf_code(const struct elf_file *ef, uint64_t addr, size_t len, struct insn_part *out)
{
	const struct segment *s = segment_of(ef, addr, true);
	uint64_t left;

	if (!s)
		return -ENOENT;
	left = s->len - (addr - s->addr);
	out->addr = addr;
	out->len = len < left ? len : left;
	out->code = image_at(ef->image, s->off + (addr - s->addr), out->len);
	return out->code ? 0 : -ENOENT;
}

bool elf_text(const struct elf_file *ef, int i, struct insn_part *out)
{
	for (int k = 0; k < ef->nseg; k++)
		if (ef->seg[k].code && ef->seg[k].len <= TEXT_MAX && i-- == 0)
			return !elf_code(ef, ef->seg[k].addr, ef->seg[k].len, out);
	return false;
}

const uint8_t *elf_data(const struct elf_file *ef, uint64_t addr, uint64_t want, uint64_t *got)
{
	const struct segment *s = addr ? segment_of(ef, addr, false) : NULL;
	uint64_t left;

	if (!s)
		return NULL;
	left = s->len - (addr - s->addr);
	*got = want < left ? want : left;
	return image_at(ef->image, s->off + (addr - s->addr), *got);
}

/* The address in the first program header of a type, 0: none. */
static uint64_t header_address(const struct elf_file *ef, uint32_t type)
{
	size_t n = 0;

	if (elf_getphdrnum(ef->elf, &n))
		return 0;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;

		if (gelf_getphdr(ef->elf, (int)i, &ph) && ph.p_type == type)
			return ph.p_vaddr;
	}
	return 0;
}

uint64_t elf_unwind_header(const struct elf_file *ef)
{
	return header_address(ef, PT_GNU_EH_FRAME);
}

uint64_t elf_dynamic(const struct elf_file *ef)
{
	return header_address(ef, PT_DYNAMIC);
}

bool elf_cut_short(const struct elf_file *ef)
{
	struct stat st;

	return fstat(ef->fd, &st) || (uint64_t)st.st_size < ef->size;
}

struct at_address {
	uint64_t addr;
	const char *name;
};

static bool name_one(void *ctx, const struct elf_sym *sym)
{
	struct at_address *a = ctx;

	if (sym->addr == a->addr)
		a->name = sym->name;
	return !a->name;
}

const char *elf_name_at(const struct elf_file *ef, uint64_t addr)
{
	struct at_address a = {.addr = addr};

	each_function(ef, ef->dynsym, name_one, &a);
	if (!a.name)
		each_function(ef, ef->symtab, name_one, &a);
	return a.name;
}
