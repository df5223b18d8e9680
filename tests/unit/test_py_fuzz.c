// SPDX-License-Identifier: Apache-2.0
/*
 * Broken memory: the recorded images with words replaced, from a fixed seed. Whatever they say, a
 * walk ends, inside its budget, without touching memory of its own that it does not have (the
 * sanitized build of this program sees that).
 */
#include "py_walk.h"
#include "util/clock.h"

#ifndef ROUNDS
#define ROUNDS 500 /* of each image */
#endif
#define PATCHES_MAX  12
#define BUDGET_SPANS 20000
#define BUDGET_BYTES (8u << 20)

struct patch {
	uint64_t addr, value;
};
struct fuzz {
	struct pymem mem;
	struct pymem *image;
	struct patch patch[PATCHES_MAX];
	int n;
	uint64_t seed;
	struct piece_head piece[4096]; /* what there is to replace, and to point to */
	int npieces;
};

/* xorshift64*, Vigna 2016 */
static uint64_t rnd(struct fuzz *f)
{
	f->seed ^= f->seed >> 12;
	f->seed ^= f->seed << 25;
	f->seed ^= f->seed >> 27;
	return f->seed * 2685821657736338717ull;
}

static void apply(const struct patch *p, struct pymem_span *s)
{
	for (int i = 0; i < 8; i++) {
		uint64_t at = p->addr + (uint64_t)i - s->addr;

		if (p->addr + (uint64_t)i >= s->addr && at < s->len)
			((uint8_t *)s->buf)[at] = (uint8_t)(p->value >> (8 * i));
	}
}

static int fuzz_readv(void *ctx, struct pymem_span *span, size_t n)
{
	struct fuzz *f = ctx;
	int err;

	pymem_budget(f->image, 0, 0);
	err = pymem_readv(f->image, span, n);
	for (size_t i = 0; i < n && !err; i++)
		for (int k = 0; k < f->n && !span[i].rc; k++)
			apply(&f->patch[k], &span[i]);
	return err;
}

static uint64_t some_address(struct fuzz *f)
{
	const struct piece_head *p = &f->piece[rnd(f) % (uint64_t)f->npieces];

	return (p->addr + rnd(f) % p->len) & ~7ull;
}

static uint64_t some_value(struct fuzz *f, uint64_t addr)
{
	uint64_t old = 0;

	switch (rnd(f) % 8) {
	case 0:
		return 0;
	case 1:
		return UINT64_MAX >> rnd(f) % 64;
	case 2:
		return rnd(f);
	case 3:
		return rnd(f) % 65536;
	case 4: /* a pointer to something else */
	case 5:
		return some_address(f);
	default:
		pymem_u64(f->image, addr, &old);
		return rnd(f) & 1 ? old ^ 1ull << rnd(f) % 64 : old + rnd(f) % 65 - 32;
	}
}

static void read_pieces(struct fuzz *f, int minor)
{
	char path[64];
	__fclose FILE *in = NULL;

	snprintf(path, sizeof(path), DATA "py-3.%d.bin", minor);
	in = fopen(path, "re");
	assert_non_null(in);
	assert_int_equal(fread(&f->piece[0], sizeof(f->piece[0]), 1, in), 1); /* its head */
	while (f->npieces < (int)ARRAY_SIZE(f->piece) &&
	       fread(&f->piece[f->npieces], sizeof(f->piece[0]), 1, in) == 1)
		assert_int_equal(fseek(in, f->piece[f->npieces++].len, SEEK_CUR), 0);
}

static void one_round(struct fuzz *f, struct py_runtime rt, unsigned *ended)
{
	char *text = NULL;
	int err;

	f->n = 1 + (int)(rnd(f) % PATCHES_MAX);
	for (int k = 0; k < f->n; k++) {
		f->patch[k].addr = some_address(f);
		f->patch[k].value = some_value(f, f->patch[k].addr);
	}
	pymem_budget(&f->mem, BUDGET_BYTES, BUDGET_SPANS);
	f->mem.bytes = f->mem.reads = 0;
	err = py_runtime_check(&rt, NULL);
	if (!err)
		err = walk(&rt, 0, &text);
	assert_true(f->mem.bytes <= BUDGET_BYTES && f->mem.reads <= BUDGET_SPANS);
	if (err != 0 && err != -EAGAIN && err != -ENOTSUP && err != -E2BIG && err != -EINVAL &&
	    err != -EFAULT && err != -ENODATA)
		fail_msg("3.%d: %d", rt.lay.minor, err);
	*ended += !err;
	free(text);
}

static void test_broken(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(minors); i++) {
		struct fuzz *f = calloc(1, sizeof(*f));
		struct py_runtime rt;
		unsigned ended = 0;

		assert_non_null(f);
		f->seed = 0x9e3779b97f4a7c15ull + (uint64_t)minors[i];
		f->image = load(minors[i], &rt);
		f->mem.readv = fuzz_readv;
		f->mem.ctx = f;
		rt.mem = &f->mem;
		read_pieces(f, minors[i]);
		for (int r = 0; r < ROUNDS; r++)
			one_round(f, rt, &ended);
		/* Else only the first few readers would have met anything broken. */
		assert_in_range(ended, ROUNDS / 4, ROUNDS - 1);
		pymem_close(f->image);
		free(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
