// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <gelf.h>
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

/*
 * "lib/python3.9": where an interpreter looks for its library (Modules/getpath.c, up to 3.10). It
 * serves to name a version, not to believe it: newer ones say more, and older ones cannot be read.
 */
static int minor_in(const char *s, size_t len)
{
	static const char word[] = "python3.";
	size_t at = len;
	int minor = 0;

	while (at > 0 && s[at - 1] >= '0' && s[at - 1] <= '9')
		at--;
	if (len - at < 1 || len - at > 2 || at < sizeof(word) - 1 ||
	    memcmp(s + at - (sizeof(word) - 1), word, sizeof(word) - 1) != 0)
		return 0;
	for (size_t i = at; i < len; i++)
		minor = minor * 10 + s[i] - '0';
	return minor;
}

static void find_minor(const char *s, size_t len, struct pyelf *out)
{
	const char *end;

	for (; out->minor >= 0 && (end = memchr(s, 0, len)); s = end + 1) {
		int minor = minor_in(s, (size_t)(end - s));

		if (minor && out->minor && minor != out->minor)
			out->minor = -1;
		else if (minor)
			out->minor = minor;
		len -= (size_t)(end - s) + 1;
	}
}

static void scan_sections(Elf *elf, struct pyelf *out)
{
	size_t names = 0;
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
			find_minor(data->d_buf, data->d_size, out);
	}
	if (out->minor < 0)
		out->minor = 0;
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
