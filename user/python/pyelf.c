// SPDX-License-Identifier: Apache-2.0
#include <ctype.h>
#include <errno.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "python/pyelf.h"

static void find_symbols(Elf_Scn *scn, const GElf_Shdr *sh, Elf *elf, struct pyelf *out)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	size_t n = data && sh->sh_entsize ? data->d_size / sh->sh_entsize : 0;

	for (size_t i = 0; i < n && !(out->runtime && out->version); i++) {
		const char *name;
		GElf_Sym sym;

		if (!gelf_getsym(data, (int)i, &sym))
			return;
		if (sym.st_shndx == SHN_UNDEF || GELF_ST_TYPE(sym.st_info) != STT_OBJECT)
			continue;
		name = elf_strptr(elf, sh->sh_link, sym.st_name);
		if (!name)
			continue;
		if (!out->runtime && !strcmp(name, "_PyRuntime"))
			out->runtime = sym.st_value;
		if (!out->version && sym.st_size == 8 && !strcmp(name, "Py_Version"))
			out->version = sym.st_value;
	}
}

static Elf_Scn *next_of_type(Elf *elf, Elf_Scn *scn, uint32_t type, GElf_Shdr *sh)
{
	while ((scn = elf_nextscn(elf, scn)))
		if (gelf_getshdr(scn, sh) && sh->sh_type == type)
			return scn;
	return NULL;
}

/* "3.10.13" between two NULs; SQLite's and others' versions begin with a 3 too, but not with the
 * minor of a CPython that has no Py_Version and could be met (3.5 to 3.10, two digits behind). */
static bool is_version(const char *s, size_t len)
{
	int minor, micro, end = 0;
	char text[16];

	if (len < 5 || len >= sizeof(text) || s[0] != '3' || s[1] != '.')
		return false;
	memcpy(text, s, len);
	text[len] = 0;
	if (sscanf(text, "3.%2d.%2d%n", &minor, &micro, &end) != 2 || minor < 5 || minor > 10)
		return false;
	return !text[end] || strchr("abr+", text[end]);
}

/* The version is a constant of Py_GetVersion(). Two that differ tell nothing. */
static void find_text(const char *s, size_t len, struct pyelf *out, bool *several)
{
	const char *p = s;

	while (p && len - (size_t)(p - s) > 6) {
		size_t left = len - (size_t)(p - s), n = strnlen(p, left < 16 ? left : 16);

		if (n < left && n < 16 && is_version(p, n)) {
			if (out->text[0] && strcmp(out->text, p) != 0)
				*several = true;
			snprintf(out->text, sizeof(out->text), "%s", p);
		}
		p = memchr(p + n, 0, left - n);
		p = p ? p + 1 : NULL;
	}
}

static void scan_sections(Elf *elf, struct pyelf *out)
{
	size_t names = 0;
	bool several = false;
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;

	if (elf_getshdrstrndx(elf, &names))
		return;
	while ((scn = next_of_type(elf, scn, SHT_PROGBITS, &sh))) {
		const char *name = elf_strptr(elf, names, sh.sh_name);
		Elf_Data *data;

		if (!name)
			continue;
		if (!strcmp(name, ".PyRuntime") && !out->runtime)
			out->runtime = sh.sh_addr;
		if (strcmp(name, ".rodata") != 0 || out->version)
			continue;
		data = elf_rawdata(scn, NULL);
		if (data && data->d_buf)
			find_text(data->d_buf, data->d_size, out, &several);
	}
	if (several)
		out->text[0] = 0;
}

static int find_exec(Elf *elf, struct pyelf *out)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	size_t n = 0;

	if (elf_getphdrnum(elf, &n))
		return -ENOEXEC;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;

		if (!gelf_getphdr(elf, (int)i, &ph))
			return -ENOEXEC;
		if (ph.p_type != PT_LOAD || !(ph.p_flags & PF_X))
			continue;
		out->exec_start = ph.p_vaddr & ~(page - 1);
		return 0;
	}
	return -ENOEXEC;
}

static int read_elf(Elf *elf, struct pyelf *out)
{
	GElf_Shdr sh;
	Elf_Scn *scn;
	GElf_Ehdr eh;
	int err;

	if (elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &eh) ||
	    eh.e_ident[EI_CLASS] != ELFCLASS64)
		return -ENOEXEC;
	err = find_exec(elf, out);
	if (err)
		return err;
	scn = next_of_type(elf, NULL, SHT_DYNSYM, &sh);
	if (scn)
		find_symbols(scn, &sh, elf, out);
	if (!out->runtime && (scn = next_of_type(elf, NULL, SHT_SYMTAB, &sh)))
		find_symbols(scn, &sh, elf, out);
	scan_sections(elf, out);
	return out->runtime ? 0 : -ENOENT;
}

int pyelf_read(int fd, struct pyelf *out)
{
	Elf *elf;
	int err;

	memset(out, 0, sizeof(*out));
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf)
		return -ENOEXEC;
	err = read_elf(elf, out);
	elf_end(elf);
	return err;
}
