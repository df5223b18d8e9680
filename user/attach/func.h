/* SPDX-License-Identifier: Apache-2.0 */
/* The code of one function: its body, its cold parts. */
#ifndef SP_ATTACH_FUNC_H
#define SP_ATTACH_FUNC_H

#include "attach/elf.h"
#include "attach/insn.h"

struct func {
	const struct elf_file *ef;
	struct insn_part part[INSN_MAX_PARTS];
	int nparts;
	bool whole; /* the parts are all of it */
};

/* -ENOENT: its code is not in the file. */
int func_read(const struct elf_file *ef, const struct elf_sym *sym, struct func *f);

#endif
