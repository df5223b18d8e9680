/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the fuzz targets share. An input that fails is printed as hex digits: xxd -r -p makes a file
 * of them, build/fuzz/fuzz_X FILE runs it again. build/fuzz/fuzz_X -help=1 tells of libFuzzer.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include "../unit/stream_rig.h"

/* Ends the program, so that libFuzzer keeps the input. */
#define CHECK(x)                                                                                   \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #x);            \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The next piece of n bytes: its size is drawn from *seed, 1 to 16 or anything. */
static inline size_t fuzz_piece(uint32_t *seed, size_t n)
{
	size_t piece;

	*seed = *seed * 1664525u + 1013904223u;
	piece = 1 + (*seed & 1 << 30 ? *seed >> 16 & 15 : *seed >> 10 & 0xfff);
	return piece < n ? piece : n;
}

static inline bool fuzz_zero(const char *p, size_t n)
{
	static const char zero[64];

	return n <= sizeof(zero) && !memcmp(p, zero, n);
}

#endif
