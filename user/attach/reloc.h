/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dynamic relocations of an ELF file: what the loader will write where. Read through the dynamic
 * section alone, which every library has, however stripped.
 */
#ifndef SP_ATTACH_RELOC_H
#define SP_ATTACH_RELOC_H

#include "attach/elf.h"

/* Places that the loader fills with the address of an imported function (its entries in the GOT).
 * Their number, at most max. */
int reloc_imports(const struct elf_file *ef, const char *function, uint64_t *at, int max);
/* The pointer that the loader writes at this address, as an address of this same file. false: it
 * writes none, or one that leads elsewhere. */
bool reloc_pointer(const struct elf_file *ef, uint64_t at, uint64_t *out);

#endif
