/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The unwind table of an ELF file (.eh_frame, which stripping leaves in place). It tells the extent
 * of every piece of code, and so whether a jump out of a function goes to the function's own cold
 * part or to another function.
 */
#ifndef SP_ATTACH_UNWIND_H
#define SP_ATTACH_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

#include "attach/elf.h"

struct unwind_piece {
	uint64_t addr, len;
	bool framed; /* a frame is in place already at its first byte: it is no function's entry */
};
/* The piece of code that holds addr. 0, -ENOENT, or -EBADMSG for a table that cannot be read. */
int unwind_piece(const struct elf_file *ef, uint64_t addr, struct unwind_piece *out);

#endif
