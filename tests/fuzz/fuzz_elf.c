// SPDX-License-Identifier: Apache-2.0
/*
 * What reads libraries, on a library with any bytes in it: nothing is read beyond the file, nothing
 * that is found lies outside of it, and it ends. Input: the machine (bit 0), how many changes
 * (each where, 16 bits, and what, 64 bits), the changes, then code for f.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "attach/flow.h"
#include "attach/func.h"
#include "attach/optable.h"
#include "attach/reloc.h"
#include "attach/sock_sites.h"
#include "attach/unwind.h"
#include "fuzz.h"
#include "../unit/elf_image.h"

#define CHANGES_MAX 32
#define VALUES      4

/* The file is one whole page: what reads on behind it is caught. The changes may cut it short. */
static int make_file(const uint8_t *data, size_t size, enum insn_machine m)
{
	static uint8_t image[IMAGE_BYTES];
	static int fd = -1;
	size_t n = size ? data[0] % (CHANGES_MAX + 1) : 0, length = IMAGE_BYTES, at = 1;
	uint16_t where;

	if (fd < 0)
		fd = memfd_create("fuzz_elf", MFD_CLOEXEC);
	CHECK(fd >= 0);
	image_make(image, m);
	for (; n && size - at >= 10; n--, at += 10) {
		memcpy(&where, data + at, 2);
		if (where + 8u <= IMAGE_BYTES)
			memcpy(image + where, data + at + 2, 8);
		else
			length = 1 + where % IMAGE_BYTES;
	}
	if (at < size)
		memcpy(image + IMAGE_F, data + at,
		       size - at < IMAGE_F_END - IMAGE_F ? size - at : IMAGE_F_END - IMAGE_F);
	CHECK(!ftruncate(fd, (off_t)length));
	CHECK(pwrite(fd, image, length, 0) == (ssize_t)length);
	return fd;
}

static void use_flow(enum insn_machine m, const struct insn_part *part)
{
	struct flow *f = flow_open(m, part);
	struct flow_value v[VALUES];

	for (int i = 0; f && i < flow_steps(f);
	     i += 1 + i / 8) { /* what is wanted is near the start */
		int n = flow_values(f, i, i & 1 ? flow_argument(m, 2) : (uint8_t)(i % FLOW_REGS), v,
				    VALUES);

		CHECK(n >= 0 && n <= VALUES);
		CHECK(flow_step_at(f, part->addr + flow_step(f, i)->at) == i);
	}
	flow_close(f);
}

static void use_function(const struct elf_file *ef, const struct elf_sym *sym)
{
	enum insn_machine m = elf_machine(ef);
	uint64_t rets[INSN_MAX_RETS], off, addr;
	struct sock_sites sites;
	struct insn_site site;
	char why[INSN_WHY_LEN];
	struct func f;

	if (func_read(ef, sym, &f))
		return;
	CHECK(f.nparts >= 1 && f.nparts <= INSN_MAX_PARTS);
	insn_entry(m, f.part, f.nparts, f.whole, &site);
	CHECK(!elf_offset(ef, site.addr, &off) && !elf_address(ef, off, &addr));
	insn_return_entry(m, f.part, f.nparts, f.whole, &site);
	CHECK(insn_rets(m, f.part, f.nparts, rets, why) <= INSN_MAX_RETS);
	for (int i = 0; i < sock_nfuncs; i += 5)
		sock_sites(m, f.part, f.nparts, &sock_funcs[i], &sites);
	use_flow(m, &f.part[0]);
}

static void use(const struct elf_file *ef)
{
	char why[OPTABLE_WHY_LEN], near[100];
	struct elf_sym sym[4];
	struct optable found;
	struct unwind_piece piece;
	int64_t slot;
	uint64_t to;
	int n = elf_find(ef, "*", sym, 4);

	for (int i = 0; i < n && i < 4; i++) {
		use_function(ef, &sym[i]);
		unwind_piece(ef, sym[i].addr + 1, &piece);
		elf_name_at(ef, sym[i].addr);
	}
	elf_nearest(ef, "set_opt", near, sizeof(near));
	for (uint64_t at = IMAGE_TABLE; at < IMAGE_TABLE + 32; at += 8)
		reloc_pointer(ef, at, &to);
	optable_slot(ef, "copy", 2, IMAGE_TO, &slot, why);
	optable_slot(ef, "copy", 2, -8, &slot, why);
	for (slot = 0; slot < 32; slot += 8) {
		optable_find(ef, "set_ops", 2, slot, &found, why);
		CHECK(found.n <= OPTABLE_FUNCTIONS);
		for (int i = 0; i < found.n; i++)
			CHECK(!elf_offset(ef, found.addr[i], &to));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum insn_machine m = size && data[0] & 1 ? MACHINE_ARM64 : MACHINE_X86_64;
	struct elf_file *ef;
	char why[128];

	if (!size)
		return 0;
	if (!elf_file_open(make_file(data + 1, size - 1, m), &ef, why, sizeof(why)))
		use(ef);
	elf_file_close(ef);
	return 0;
}
