/* SPDX-License-Identifier: Apache-2.0 */
/* Symbols and code of one ELF file. */
#ifndef SP_ATTACH_ELF_H
#define SP_ATTACH_ELF_H

#include <stddef.h>
#include <stdint.h>

#include "attach/insn.h"

struct elf_sym {
	const char *name; /* owned by the file */
	uint64_t addr, size;
	uint8_t type; /* STT_* */
};

/*
 * The file may be cut short while it is read: then what is gone is not found, and nothing worse
 * happens (image.h).
 */
struct elf_file;
/* fd stays the caller's and must outlive the file. -errno + why. */
int elf_file_open(int fd, struct elf_file **out, char *why, size_t why_len);
void elf_file_close(struct elf_file *ef);
enum insn_machine elf_machine(const struct elf_file *ef);

/*
 * Functions whose name fits the glob, one for each address, at most max: those of .dynsym, or when
 * it has none, of .symtab. Pieces that the compiler has split off (".cold", ".part.0") count only
 * when the glob itself has a dot. Number found (it may exceed max), 0 when none.
 */
int elf_find(const struct elf_file *ef, const char *glob, struct elf_sym *syms, int max);
/* Symbols split off a function: "NAME.cold", "NAME.cold.1". */
int elf_cold(const struct elf_file *ef, const char *name, struct elf_sym *syms, int max);
/* The defined functions nearest to a glob that found nothing: "a, b"; "" when none is near. */
void elf_nearest(const struct elf_file *ef, const char *glob, char *buf, size_t len);

/* Offset in the file of an address in an executable segment; -ENOENT. */
int elf_offset(const struct elf_file *ef, uint64_t addr, uint64_t *off);
int elf_address(const struct elf_file *ef, uint64_t off, uint64_t *addr); /* the other way */
/* The code at an address, len bytes or fewer when the segment ends; owned by the file. */
int elf_code(const struct elf_file *ef, uint64_t addr, size_t len, struct insn_part *out);
/* The i-th executable segment, from 0; false: no more. */
bool elf_text(const struct elf_file *ef, int i, struct insn_part *out);

/* Bytes of any loaded segment; got: how many, fewer than wanted only where it ends. NULL: none
 * there. Owned by the file. */
const uint8_t *elf_data(const struct elf_file *ef, uint64_t addr, uint64_t want, uint64_t *got);
/* Address of .eh_frame_hdr (see unwind.h), 0: none. */
uint64_t elf_unwind_header(const struct elf_file *ef);
uint64_t elf_dynamic(const struct elf_file *ef); /* of the dynamic section, 0: none */
/* Has it become shorter since it was opened? What was not found may have been there. */
bool elf_cut_short(const struct elf_file *ef);
/* Name of the function that .dynsym or .symtab puts at this very address, NULL: none. */
const char *elf_name_at(const struct elf_file *ef, uint64_t addr);

#endif
