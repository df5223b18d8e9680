// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include "attach/func.h"
#include "attach/unwind.h"

#define PROLOGUE_LEN  64 /* bytes looked at when the symbol has no size */
#define MAX_FUNC_SIZE (4 << 20)

/*
 * A stripped library has no ".cold" symbols. Where a jump leaves the function, the unwind table
 * tells the function's own cold part (it begins inside a frame, or is entered in its middle, or by
 * a conditional jump; and it has no name) from another function (a tail call).
 */
static void add_unnamed_cold(const struct elf_file *ef, struct func *f)
{
	uint64_t target;
	bool conditional;

	while (f->nparts < INSN_MAX_PARTS &&
	       insn_leaves(elf_machine(ef), f->part, f->nparts, &target, &conditional)) {
		struct unwind_piece piece;
		struct insn_part code;

		if (elf_code(ef, target, PROLOGUE_LEN, &code) ||
		    insn_is_stub(elf_machine(ef), &code))
			return; /* a tail call to another library */
		if (unwind_piece(ef, target, &piece) || piece.len > MAX_FUNC_SIZE ||
		    elf_name_at(ef, piece.addr))
			return;
		if (!piece.framed && !conditional && target == piece.addr)
			return;
		if (elf_code(ef, piece.addr, piece.len, &f->part[f->nparts]))
			return;
		f->nparts++;
	}
}

int func_read(const struct elf_file *ef, const struct elf_sym *sym, struct func *f)
{
	struct elf_sym cold[INSN_MAX_PARTS / 2];
	size_t len = sym->size ? sym->size : PROLOGUE_LEN;
	int n;

	memset(f, 0, sizeof(*f));
	f->ef = ef;
	if (len > MAX_FUNC_SIZE || elf_code(ef, sym->addr, len, &f->part[0]))
		return -ENOENT;
	f->nparts = 1;
	f->whole = sym->size && f->part[0].len == sym->size;
	n = elf_cold(ef, sym->name, cold, INSN_MAX_PARTS / 2);
	for (int i = 0; i < n; i++)
		if (cold[i].size && cold[i].size < MAX_FUNC_SIZE &&
		    !elf_code(ef, cold[i].addr, cold[i].size, &f->part[f->nparts]))
			f->nparts++;
	if (f->whole)
		add_unnamed_cold(ef, f);
	return 0;
}
