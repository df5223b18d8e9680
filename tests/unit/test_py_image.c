// SPDX-License-Identifier: Apache-2.0
/*
 * The readers on memory recorded from CPython 3.10 to 3.13 (tests/unit/data/record.py): every value
 * is what the recorded program said of itself; memory that changes between two looks gives -EAGAIN;
 * broken memory gives errors and never a crash, an endless walk or more reads than allowed.
 *
 * With --record PID FILE this program writes such an image.
 */
#include "py_walk.h"

/* ---- values ---------------------------------------------------------------------------------- */

/* Line by line, so that a failure names the case. 3.10 does not record the ids of threads. */
static void compare(char *got, FILE *expected, int minor)
{
	char *g = NULL, *saved = NULL, line[32768];

	for (g = strtok_r(got, "\n", &saved); g; g = strtok_r(NULL, "\n", &saved)) {
		assert_non_null(fgets(line, sizeof(line), expected));
		line[strcspn(line, "\n")] = 0;
		if (minor == 10 && !strncmp(line, "thread ", 7)) {
			assert_memory_equal(g, "thread 0 ", 9);
			assert_string_equal(g + 8, strchr(line + 7, ' '));
		} else {
			assert_string_equal(g, line);
		}
	}
	assert_null(fgets(line, sizeof(line), expected));
}

static void test_values(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(minors); i++) {
		struct py_runtime rt;
		struct pymem *m = load(minors[i], &rt);
		__free char *got = NULL;
		char path[64];
		FILE *expected;

		assert_int_equal(py_runtime_check(&rt, NULL), 0);
		assert_int_equal(walk(&rt, 0, &got), 0);
		snprintf(path, sizeof(path), DATA "py-3.%d.txt", minors[i]);
		expected = fopen(path, "re");
		assert_non_null(expected);
		compare(got, expected, minors[i]);
		fclose(expected);
		pymem_close(m);
	}
}

/* ---- recording ------------------------------------------------------------------------------- */

struct recorder {
	struct pymem mem; /* what the readers use */
	struct pymem *live;
	struct piece_head *piece;
	uint8_t **bytes;
	size_t n;
};

static int record_readv(void *ctx, struct pymem_span *span, size_t n)
{
	struct recorder *r = ctx;
	int err = pymem_readv(r->live, span, n);

	r->piece = realloc(r->piece, (r->n + n) * sizeof(*r->piece));
	r->bytes = realloc(r->bytes, (r->n + n) * sizeof(*r->bytes));
	if (!r->piece || !r->bytes)
		abort();
	for (size_t i = 0; i < n && !err; i++) {
		if (span[i].rc || !span[i].len)
			continue;
		r->piece[r->n] = (struct piece_head){span[i].addr, span[i].len};
		r->bytes[r->n] = malloc(span[i].len);
		if (!r->bytes[r->n])
			abort();
		memcpy(r->bytes[r->n++], span[i].buf, span[i].len);
	}
	return err;
}

/* In 8-byte cells, in the order of addresses, neighbours joined. */
struct cell {
	uint64_t addr;
	uint8_t byte;
};

static int by_addr(const void *a, const void *b)
{
	const struct cell *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static int write_image(const struct recorder *r, const struct py_runtime *rt, const char *path)
{
	__fclose FILE *f = fopen(path, "we");
	struct piece_head h = {rt->addr, rt->lay.minor};
	struct cell *cell;
	size_t total = 0, n = 0;

	for (size_t i = 0; i < r->n; i++)
		total += r->piece[i].len;
	cell = malloc(total * sizeof(*cell));
	if (!f || !cell || fwrite(&h, sizeof(h), 1, f) != 1)
		return 1;
	for (size_t i = 0; i < r->n; i++)
		for (size_t k = 0; k < r->piece[i].len; k++)
			cell[n++] = (struct cell){r->piece[i].addr + k, r->bytes[i][k]};
	qsort(cell, n, sizeof(*cell), by_addr);
	for (size_t i = 0, end; i < n; i = end) {
		size_t len = 1;

		for (end = i + 1;
		     end < n && len < UINT16_MAX && cell[end].addr <= cell[end - 1].addr + 1; end++)
			len += cell[end].addr != cell[end - 1].addr;
		h = (struct piece_head){cell[i].addr, len};
		fwrite(&h, sizeof(h), 1, f);
		for (size_t k = i; k < end; k++)
			if (k == i || cell[k].addr != cell[k - 1].addr)
				fputc(cell[k].byte, f);
	}
	free(cell);
	return ferror(f) ? 1 : 0;
}

static int record(pid_t pid, const char *path)
{
	struct recorder r = {.mem = {.readv = record_readv}};
	struct py_runtime rt;
	struct sp_err err;
	char *text = NULL;
	int rc = pymem_open(pid, &r.live, &err);

	r.mem.ctx = &r;
	pymem_budget(&r.mem, 0, 0);
	if (!rc)
		rc = py_locate(pid, &r.mem, &rt, &err);
	if (rc) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	/* Again with nothing known, as a reader of the image begins. */
	rc = py_runtime_at(&r.mem, rt.lay.minor, rt.addr, &rt);
	rc = rc ? rc : py_runtime_check(&rt, &err);
	rc = rc ? rc : walk(&rt, 0, &text);
	if (!rc)
		rc = write_image(&r, &rt, path);
	pymem_close(r.live);
	for (size_t i = 0; i < r.n; i++)
		free(r.bytes[i]);
	free(r.bytes);
	free(r.piece);
	free(text);
	return rc ? 1 : 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
	};

	if (argc == 4 && !strcmp(argv[1], "--record"))
		return record((pid_t)strtol(argv[2], NULL, 10), argv[3]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
