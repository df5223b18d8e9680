// SPDX-License-Identifier: Apache-2.0
/*
 * The readers on memory recorded from CPython 3.10 to 3.13 (tests/unit/data/record.py): every value
 * is what the recorded program said of itself; memory that changes between two looks gives -EAGAIN;
 * broken memory gives errors and never a crash, an endless walk or more reads than allowed.
 *
 * With --record PID FILE this program writes such an image.
 */
#include <fcntl.h>
#include <unistd.h>

#include "py_walk.h"
#include "python/pyelf.h"
#include "python/raw.h"

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

/* ---- what is refused ------------------------------------------------------------------------- */

static void put(struct pymem *m, uint64_t addr, uint64_t value)
{
	assert_int_equal(pymem_image_add(m, addr, &value, sizeof(value)), 0);
}

static uint64_t word(struct pymem *m, uint64_t addr)
{
	uint64_t v;

	assert_int_equal(pymem_u64(m, addr, &v), 0);
	return v;
}

/* One word of an image replaced, then put back: what the check says of it. */
static void check_with(struct py_runtime rt, uint64_t addr, uint64_t value, int expected,
		       const char *words)
{
	uint64_t old = word(rt.mem, addr);
	struct sp_err err = {0};

	put(rt.mem, addr, value);
	assert_int_equal(py_runtime_check(&rt, &err), expected);
	if (!strstr(err.text, words) || strchr(err.text, '\n'))
		fail_msg("3.%d: %s", rt.lay.minor, err.text);
	put(rt.mem, addr, old);
	assert_int_equal(py_runtime_check(&rt, &err), 0);
}

static void test_refused(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(minors); i++) {
		struct py_runtime rt;
		struct pymem *m = load(minors[i], &rt);
		const struct py_layout *l = &rt.lay;
		uint64_t head = rt.addr + l->runtime.interpreters_head, interp = word(m, head);
		uint64_t thread = word(m, interp + l->interp.threads_head), hex;
		struct sp_err err;

		check_with(rt, head, 0, -EAGAIN, "is still starting");
		check_with(rt, interp + l->interp.threads_head, 0, -EAGAIN, "is still starting");
		check_with(rt, interp + l->interp.sysdict, 0, -EAGAIN, "is still starting");
		check_with(rt, head, 4096, -ENOTSUP, "not laid out as");
		check_with(rt, thread + l->thread.interp, interp + 8, -ENOTSUP, "not laid out as");
		check_with(rt, interp + l->interp.sysdict, interp, -ENOTSUP, "not laid out as");
		/* sys.hexversion of another minor: its digits begin at 24 */
		assert_int_equal(
			py_dict_find(&rt, word(m, interp + l->interp.sysdict), "hexversion", &hex),
			0);
		check_with(rt, hex + 24, word(m, hex + 24) ^ 0x10000, -ENOTSUP, "not laid out as");
		pymem_budget(m, 4, 0);
		assert_int_not_equal(py_runtime_check(&rt, &err), 0);
		pymem_close(m);
	}
}

static void test_debug_offsets(void **state)
{
	struct py_runtime rt, plain;
	struct pymem *m = load(13, &rt);
	struct sp_err err;

	/* They say of 3.13.0 what its table says. */
	plain = rt;
	assert_int_equal(py_runtime_check(&rt, &err), 0);
	assert_memory_equal(&rt.lay, &plain.lay, sizeof(rt.lay));
	assert_string_equal(rt.version, "3.13.0");
	check_with(plain, plain.addr, 0, -ENOTSUP, "debug offsets are missing");
	check_with(plain, plain.addr + 16, 1, -ENOTSUP, "free-threaded");
	check_with(plain, plain.addr + 40, 70000, -ENOTSUP, "make no sense");
	pymem_close(m);
}

static void test_tables(void **state)
{
	struct py_runtime rt;

	for (int minor = 0; minor < 20; minor++) {
		bool known = minor >= 10 && minor <= 13;

		assert_int_equal(py_layout(minor) != NULL, known);
		assert_int_equal(py_runtime_at(NULL, minor, 4096, &rt), known ? 0 : -ENOTSUP);
		assert_true(!known || py_layout(minor)->minor == minor);
	}
}

/* Files that hold no interpreter. */
static void test_files(void **state)
{
	struct pyelf elf;
	FILE *text = tmpfile();
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0 && text);
	assert_int_equal(pyelf_read(fd, &elf), -ENOENT);
	assert_int_equal(pyelf_read(fileno(text), &elf), -ENOEXEC);
	fputs("#!/bin/sh\n", text);
	fflush(text);
	assert_int_equal(pyelf_read(fileno(text), &elf), -ENOEXEC);
	fclose(text);
	close(fd);
}

/* This very program: it is no Python. */
static void test_no_python(void **state)
{
	struct py_runtime rt;
	struct sp_err err = {0};
	struct pymem *m;

	assert_int_equal(pymem_open(getpid(), &m, &err), 0);
	assert_int_equal(py_locate(getpid(), m, &rt, &err), -ENOENT);
	assert_non_null(strstr(err.text, "no Python interpreter"));
	pymem_close(m);
}

/* ---- names ----------------------------------------------------------------------------------- */

static void test_globs(void **state)
{
	struct py_code c = {.name = "transfer_worker",
			    .qualname = "KVManager.start.<locals>.transfer_worker"};
	struct py_code old = {.name = "transfer_worker"};

	assert_true(py_code_matches(&c, "transfer_worker"));
	assert_true(py_code_matches(&c, "transfer_*"));
	assert_true(py_code_matches(&c, "*.transfer_worker"));
	assert_true(py_code_matches(&c, "KVManager.*"));
	assert_false(py_code_matches(&c, "worker"));
	assert_false(py_code_matches(&c, "Other.*worker"));
	/* 3.10 has no qualified names: a dotted glob means its last part. */
	assert_true(py_code_matches(&old, "*.transfer_worker"));
	assert_true(py_code_matches(&old, "Other.transfer_worker"));
	assert_false(py_code_matches(&old, "KVManager.start"));
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
		cmocka_unit_test(test_values),        cmocka_unit_test(test_refused),
		cmocka_unit_test(test_debug_offsets), cmocka_unit_test(test_tables),
		cmocka_unit_test(test_files),         cmocka_unit_test(test_no_python),
		cmocka_unit_test(test_globs),
	};

	if (argc == 4 && !strcmp(argv[1], "--record"))
		return record((pid_t)strtol(argv[2], NULL, 10), argv[3]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
