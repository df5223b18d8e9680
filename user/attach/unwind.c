// SPDX-License-Identifier: Apache-2.0
/*
 * Layouts: Linux Standard Base Core 5.0, chapter 10.6 (.eh_frame, .eh_frame_hdr); call frame
 * instructions: DWARF 5, 6.4.2 and 7.24.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "attach/unwind.h"

/* Pointer encodings that linkers and compilers write into these tables. */
#define ENC_UDATA4       0x03
#define ENC_PCREL_SDATA4 0x1b
#define ENC_DATA_SDATA4  0x3b
#define HDR_BYTES        12 /* version, three encodings, eh_frame_ptr, fde_count */
#define ROW_BYTES        8  /* initial location, address of the FDE */
#define ENTRY_MAX        (1 << 20)

#define CFA_advance_loc        0x40 /* in the top two bits */
#define CFA_offset             0x80
#define CFA_restore            0xc0
#define CFA_nop                0x00
#define CFA_set_loc            0x01
#define CFA_advance_loc1       0x02
#define CFA_advance_loc2       0x03
#define CFA_advance_loc4       0x04
#define CFA_remember_state     0x0a
#define CFA_def_cfa            0x0c
#define CFA_def_cfa_register   0x0d
#define CFA_def_cfa_offset     0x0e
#define CFA_def_cfa_expression 0x0f

struct cursor {
	const uint8_t *p, *end;
	bool bad;
};

static uint64_t take(struct cursor *c, size_t n)
{
	uint64_t v = 0;

	if ((size_t)(c->end - c->p) < n) {
		c->bad = true;
		return 0;
	}
	memcpy(&v, c->p, n); /* both architectures are little-endian */
	c->p += n;
	return v;
}

static uint64_t take_uleb(struct cursor *c)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint8_t b = (uint8_t)take(c, 1);

		v |= (uint64_t)(b & 0x7f) << shift;
		if (c->bad || !(b & 0x80))
			return v;
	}
	c->bad = true;
	return 0;
}

static uint64_t relative(uint64_t base, uint64_t raw32)
{
	return base + (uint64_t)(int64_t)(int32_t)raw32;
}

/* Exactly n bytes at an address. */
static bool cursor_at(const struct elf_file *ef, uint64_t addr, uint64_t n, struct cursor *c)
{
	uint64_t got;
	const uint8_t *p = elf_data(ef, addr, n, &got);

	if (!p || got < n)
		return false;
	*c = (struct cursor){p, p + n, false};
	return true;
}

static bool row_at(const struct elf_file *ef, uint64_t hdr, uint64_t i, struct cursor *c)
{
	return cursor_at(ef, hdr + HDR_BYTES + i * ROW_BYTES, ROW_BYTES, c);
}

/* Address of the FDE whose first address is the last one <= addr. */
static int search(const struct elf_file *ef, uint64_t addr, uint64_t *fde)
{
	uint64_t hdr = elf_unwind_header(ef), count, lo = 0, hi;
	struct cursor c;

	if (!hdr || !cursor_at(ef, hdr, HDR_BYTES, &c))
		return -ENOENT;
	if (c.p[0] != 1 || c.p[1] != ENC_PCREL_SDATA4 || c.p[2] != ENC_UDATA4 ||
	    c.p[3] != ENC_DATA_SDATA4)
		return -EBADMSG;
	c.p += 8;
	count = take(&c, 4);
	if (!count || !row_at(ef, hdr, count - 1, &c))
		return -EBADMSG;
	for (hi = count; hi - lo > 1;) {
		uint64_t mid = lo + (hi - lo) / 2;

		if (!row_at(ef, hdr, mid, &c))
			return -EBADMSG;
		if (relative(hdr, take(&c, 4)) <= addr)
			lo = mid;
		else
			hi = mid;
	}
	if (!row_at(ef, hdr, lo, &c))
		return -EBADMSG;
	c.p += 4;
	*fde = relative(hdr, take(&c, 4));
	return 0;
}

/* The entry (CIE or FDE) at an address: its bytes behind the length. */
static int entry(const struct elf_file *ef, uint64_t at, struct cursor *c)
{
	uint64_t len;

	if (!cursor_at(ef, at, 4, c))
		return -EBADMSG;
	len = take(c, 4);
	/* 64-bit entries (a length of 2^32 - 1): nobody writes them */
	return len && len <= ENTRY_MAX && cursor_at(ef, at + 4, len, c) ? 0 : -EBADMSG;
}

/* Of a CIE: does its augmentation begin with z (so that FDEs say how much to skip), and are
 * addresses relative to their place, 4 bytes? */
static int check_cie(const struct elf_file *ef, uint64_t at)
{
	struct cursor c;
	const char *aug;
	int err = entry(ef, at, &c);

	if (err)
		return err;
	if (take(&c, 4) != 0)
		return -EBADMSG;
	take(&c, 1); /* version */
	aug = (const char *)c.p;
	while (take(&c, 1) && !c.bad)
		;
	if (c.bad || aug[0] != 'z')
		return -EBADMSG;
	take_uleb(&c); /* code alignment */
	take_uleb(&c); /* data alignment: signed, the same length */
	take_uleb(&c); /* return address register */
	take_uleb(&c); /* length of the augmentation data */
	for (aug++; *aug && !c.bad; aug++) {
		uint8_t enc;

		switch (*aug) {
		case 'R':
			return take(&c, 1) == ENC_PCREL_SDATA4 ? 0 : -EBADMSG;
		case 'L':
			take(&c, 1);
			break;
		case 'P':
			enc = (uint8_t)take(&c, 1);
			take(&c, (enc & 7) == ENC_UDATA4 || (enc & 0xf) == 0xb ? 4 : 8);
			break;
		case 'S':
		case 'B':
			break;
		default:
			return -EBADMSG;
		}
	}
	return -EBADMSG;
}

/* Do the call frame instructions of an FDE set up a frame before they first advance? */
static bool starts_framed(struct cursor *c)
{
	while (c->p < c->end && !c->bad) {
		uint8_t op = (uint8_t)take(c, 1);

		switch (op & 0xc0) {
		case CFA_advance_loc:
			return false;
		case CFA_offset:
			take_uleb(c);
			continue;
		case CFA_restore:
			continue;
		default:
			break;
		}
		switch (op) {
		case CFA_def_cfa:
		case CFA_def_cfa_register:
		case CFA_def_cfa_offset:
		case CFA_def_cfa_expression:
			return true;
		case CFA_nop:
		case CFA_remember_state:
			continue;
		default:
			return false;
		}
	}
	return false;
}

int unwind_piece(const struct elf_file *ef, uint64_t addr, struct unwind_piece *out)
{
	uint64_t fde, cie_at;
	struct cursor c;
	int err = search(ef, addr, &fde);

	if (!err)
		err = entry(ef, fde, &c);
	if (err)
		return err;
	/* the distance back to the CIE, counted from this very field */
	cie_at = fde + 4 - take(&c, 4);
	err = check_cie(ef, cie_at);
	if (err)
		return err;
	out->addr = relative(fde + 8, take(&c, 4));
	out->len = take(&c, 4);
	for (uint64_t skip = take_uleb(&c); skip && !c.bad; skip--)
		take(&c, 1);
	if (c.bad)
		return -EBADMSG;
	if (addr < out->addr || addr - out->addr >= out->len)
		return -ENOENT;
	out->framed = starts_framed(&c);
	return 0;
}
