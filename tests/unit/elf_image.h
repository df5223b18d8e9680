/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small library in memory, one page, without its toolchain: f passes a table of pointers to the
 * imported function set_ops; copy copies one of such a table's into its first argument. For tests
 * and for the fuzz target, which changes it.
 */
#ifndef ELF_IMAGE_H
#define ELF_IMAGE_H

#include <elf.h>
#include <stdint.h>
#include <string.h>

#include "attach/insn.h"

/* Where things are, as offsets and as addresses. */
enum {
	IMAGE_PHDR = 0x40,
	IMAGE_DYNAMIC = 0x120,
	IMAGE_DYNSYM = 0x1e0,
	IMAGE_DYNSTR = 0x240,
	IMAGE_RELA = 0x260,
	IMAGE_JMPREL = 0x278,
	IMAGE_RELR = 0x290,
	IMAGE_GOT = 0x2a0,
	IMAGE_TABLE = 0x2a8, /* four pointers: f, copy, none, none */
	IMAGE_EH_HDR = 0x2d0,
	IMAGE_EH_FRAME = 0x300,
	IMAGE_PLT = 0x380,
	IMAGE_F = 0x3a0,
	IMAGE_F_END = 0x400,
	IMAGE_COPY = 0x400,
	IMAGE_COPY_END = 0x480,
	IMAGE_SHDR = 0x480,
	IMAGE_BYTES = 0x1000,
	IMAGE_SLOT = 8, /* the table's entry that copy copies */
	IMAGE_TO = 16,  /* ... to here */
};

static inline void image_put(uint8_t *image, uint64_t at, const void *bytes, size_t n)
{
	memcpy(image + at, bytes, n);
}

static inline void image_word(uint8_t *image, uint64_t at, uint32_t w)
{
	image_put(image, at, &w, sizeof(w));
}

static inline void image_x86(uint8_t *image)
{
	static const uint8_t plt[] = {0xff, 0x25};                /* jmp *got(%rip) */
	static const uint8_t f[] = {0x48, 0x8d, 0x35, 0, 0, 0, 0, /* lea table(%rip), %rsi */
				    0xe8, 0,    0,    0, 0,       /* call set_ops */
				    0xc3};
	static const uint8_t copy[] = {0x48, 0x8b, 0x46, IMAGE_SLOT, /* mov 8(%rsi), %rax */
				       0x48, 0x89, 0x47, IMAGE_TO,   /* mov %rax, 16(%rdi) */
				       0xc3};

	memset(image + IMAGE_PLT, 0x90, IMAGE_COPY_END - IMAGE_PLT); /* nops behind them */
	image_put(image, IMAGE_PLT, plt, sizeof(plt));
	image_word(image, IMAGE_PLT + 2, (uint32_t)(IMAGE_GOT - (IMAGE_PLT + 6)));
	image_put(image, IMAGE_F, f, sizeof(f));
	image_word(image, IMAGE_F + 3, (uint32_t)(IMAGE_TABLE - (IMAGE_F + 7)));
	image_word(image, IMAGE_F + 8, (uint32_t)(IMAGE_PLT - (IMAGE_F + 12)));
	image_put(image, IMAGE_COPY, copy, sizeof(copy));
}

static inline void image_arm64(uint8_t *image)
{
	image_word(image, IMAGE_PLT, 0x90000010);                           /* adrp x16, 0 */
	image_word(image, IMAGE_PLT + 4, 0xf9400211 | IMAGE_GOT / 8 << 10); /* ldr x17, got */
	image_word(image, IMAGE_PLT + 8, 0x91000210 | IMAGE_GOT << 10);     /* add x16, got */
	image_word(image, IMAGE_PLT + 12, 0xd61f0220);                      /* br x17 */
	image_word(image, IMAGE_F, 0x90000001);                             /* adrp x1, 0 */
	image_word(image, IMAGE_F + 4, 0x91000021 | IMAGE_TABLE << 10);     /* add x1, table */
	image_word(image, IMAGE_F + 8,
		   0x94000000 | ((uint32_t)((IMAGE_PLT - (IMAGE_F + 8)) / 4) & 0x3ffffff));
	image_word(image, IMAGE_F + 12, 0xd65f03c0);                        /* ret */
	image_word(image, IMAGE_COPY, 0xf9400028 | IMAGE_SLOT / 8 << 10);   /* ldr x8, [x1, 8] */
	image_word(image, IMAGE_COPY + 4, 0xf9000008 | IMAGE_TO / 8 << 10); /* str x8, [x0, 16] */
	image_word(image, IMAGE_COPY + 8, 0xd65f03c0);                      /* ret */
}

static inline void image_headers(uint8_t *image, enum insn_machine m)
{
	const Elf64_Ehdr eh = {
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = m == MACHINE_ARM64 ? EM_AARCH64 : EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = IMAGE_PHDR,
		.e_shoff = IMAGE_SHDR,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 3,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 3,
	};
	const Elf64_Phdr ph[] = {
		{PT_LOAD, PF_R | PF_X, 0, 0, 0, IMAGE_BYTES, IMAGE_BYTES, 0x1000},
		{PT_DYNAMIC, PF_R, IMAGE_DYNAMIC, IMAGE_DYNAMIC, 0, 0xc0, 0xc0, 8},
		{PT_GNU_EH_FRAME, PF_R, IMAGE_EH_HDR, IMAGE_EH_HDR, 0, 0x24, 0x24, 4},
	};
	const Elf64_Shdr sh[] = {
		{0},
		{.sh_type = SHT_DYNSYM,
		 .sh_offset = IMAGE_DYNSYM,
		 .sh_size = 4 * sizeof(Elf64_Sym),
		 .sh_link = 2,
		 .sh_addralign = 8,
		 .sh_entsize = sizeof(Elf64_Sym)},
		{.sh_type = SHT_STRTAB, .sh_offset = IMAGE_DYNSTR, .sh_size = 0x20},
	};

	image_put(image, 0, &eh, sizeof(eh));
	image_put(image, IMAGE_PHDR, ph, sizeof(ph));
	image_put(image, IMAGE_SHDR, sh, sizeof(sh));
}

static inline void image_dynamic(uint8_t *image, enum insn_machine m)
{
	bool arm = m == MACHINE_ARM64;
	const Elf64_Dyn dyn[] = {
		{DT_RELA, {IMAGE_RELA}},     {DT_RELASZ, {24}},
		{DT_JMPREL, {IMAGE_JMPREL}}, {DT_PLTRELSZ, {24}},
		{DT_PLTREL, {DT_RELA}},      {36 /* DT_RELR */, {IMAGE_RELR}},
		{35 /* DT_RELRSZ */, {8}},   {DT_SYMTAB, {IMAGE_DYNSYM}},
		{DT_STRTAB, {IMAGE_DYNSTR}}, {DT_NULL, {0}},
	};
	static const char str[0x20] = "\0set_ops\0f\0copy";
	const Elf64_Sym sym[] = {
		{0},
		{1, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, SHN_UNDEF, 0, 0},
		{9, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, 1, IMAGE_F, IMAGE_F_END - IMAGE_F},
		{11, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, 1, IMAGE_COPY,
		 IMAGE_COPY_END - IMAGE_COPY},
	};
	const Elf64_Rela rela[] = {
		{IMAGE_TABLE, ELF64_R_INFO(0, arm ? R_AARCH64_RELATIVE : R_X86_64_RELATIVE),
		 IMAGE_F},
		{IMAGE_GOT, ELF64_R_INFO(1, arm ? R_AARCH64_JUMP_SLOT : R_X86_64_JUMP_SLOT), 0},
	};
	const uint64_t relr = IMAGE_TABLE + 8, copy = IMAGE_COPY;

	image_put(image, IMAGE_DYNAMIC, dyn, sizeof(dyn));
	image_put(image, IMAGE_DYNSTR, str, sizeof(str));
	image_put(image, IMAGE_DYNSYM, sym, sizeof(sym));
	image_put(image, IMAGE_RELA, rela, sizeof(rela));
	image_put(image, IMAGE_RELR, &relr, sizeof(relr));
	image_put(image, IMAGE_TABLE + 8, &copy, sizeof(copy));
}

/* One CIE ("zR", addresses relative to their place), an FDE for f and one for copy. */
static inline void image_unwind(uint8_t *image)
{
	static const uint8_t hdr[] = {1, 0x1b, 0x03, 0x3b},
			     cie[] = {1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b};
	static const struct {
		uint32_t from, len;
	} piece[] = {{IMAGE_F, IMAGE_F_END - IMAGE_F}, {IMAGE_COPY, IMAGE_COPY_END - IMAGE_COPY}};

	image_put(image, IMAGE_EH_HDR, hdr, sizeof(hdr));
	image_word(image, IMAGE_EH_HDR + 4, IMAGE_EH_FRAME - (IMAGE_EH_HDR + 4));
	image_word(image, IMAGE_EH_HDR + 8, 2);
	image_word(image, IMAGE_EH_FRAME, 20);
	image_put(image, IMAGE_EH_FRAME + 8, cie, sizeof(cie));
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t row = IMAGE_EH_HDR + 12 + 8 * i, fde = IMAGE_EH_FRAME + 24 + 24 * i;

		image_word(image, row, piece[i].from - IMAGE_EH_HDR);
		image_word(image, row + 4, fde - IMAGE_EH_HDR);
		image_word(image, fde, 20);
		image_word(image, fde + 4, fde + 4 - IMAGE_EH_FRAME);
		image_word(image, fde + 8, piece[i].from - (fde + 8));
		image_word(image, fde + 12, piece[i].len);
	}
}

static inline void image_make(uint8_t image[IMAGE_BYTES], enum insn_machine m)
{
	memset(image, 0, IMAGE_BYTES);
	image_headers(image, m);
	image_dynamic(image, m);
	image_unwind(image);
	if (m == MACHINE_ARM64)
		image_arm64(image);
	else
		image_x86(image);
}

#endif
