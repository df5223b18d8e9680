// SPDX-License-Identifier: Apache-2.0
/* Symbols and code of ELF files: this program, the C library, and files that are broken. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "attach/elf.h"
#include "attach/func.h"
#include "attach/maps.h"
#include "attach/optable.h"
#include "attach/reloc.h"
#include "attach/unwind.h"

/* Functions to be found, in .symtab only. */
__attribute__((noinline, used)) int elf_test_one(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x + 1;
}
__attribute__((noinline, used)) int elf_test_two(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x + 2;
}
int elf_test_alias(int x) __attribute__((alias("elf_test_two"), used));

static struct elf_file *open_path(const char *path, int *fd)
{
	struct elf_file *ef;
	char why[128];

	*fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(*fd >= 0);
	if (elf_file_open(*fd, &ef, why, sizeof(why)))
		fail_msg("%s: %s", path, why);
	return ef;
}

static void close_path(struct elf_file *ef, int fd)
{
	elf_file_close(ef);
	close(fd);
}

static void libc_path(char *out, size_t len)
{
	struct map_files m;

	out[0] = 0;
	assert_int_equal(maps_read(getpid(), &m), 0);
	for (int i = 0; i < m.n; i++)
		if (!strncmp(m.file[i].base, "libc.so", 7) || !strncmp(m.file[i].base, "libc-", 5))
			snprintf(out, len, "%s", m.file[i].path);
	maps_free(&m);
	assert_true(out[0] != 0);
}

static void test_own_symbols(void **state)
{
	struct elf_sym s[8];
	struct insn_part p;
	uint64_t off;
	uint8_t bytes[8];
	char near[200];
	int fd;
	struct elf_file *ef = open_path("/proc/self/exe", &fd);

	assert_int_equal(elf_find(ef, "elf_test_one", s, 8), 1);
	assert_string_equal(s[0].name, "elf_test_one");
	assert_true(s[0].size > 0);
	assert_int_equal(elf_code(ef, s[0].addr, s[0].size, &p), 0);
	assert_int_equal(p.len, s[0].size);
	assert_int_equal(elf_offset(ef, s[0].addr, &off), 0);
	assert_int_equal(pread(fd, bytes, sizeof(bytes), (off_t)off), sizeof(bytes));
	assert_memory_equal(bytes, p.code, sizeof(bytes));
	assert_memory_equal(bytes, (void *)(uintptr_t)elf_test_one, sizeof(bytes));
	/* two names at one address are one function */
	assert_int_equal(elf_find(ef, "elf_test_*", s, 8), 2);
	assert_true(elf_find(ef, "elf_test_*", s, 1) > 1); /* more than asked for: said */
	assert_int_equal(elf_find(ef, "elf_test_???", s, 8), 2);
	assert_int_equal(elf_find(ef, "elf_test_[o]ne", s, 8), 1);
	assert_int_equal(elf_find(ef, "elf_test_on", s, 8), 0);
	elf_nearest(ef, "elf_test_onx", near, sizeof(near));
	assert_non_null(strstr(near, "elf_test_one"));
	elf_nearest(ef, "qqqqzzzz_nothing", near, sizeof(near));
	assert_string_equal(near, "");
	assert_int_equal(elf_offset(ef, 0, &off), -ENOENT);
	close_path(ef, fd);
}

static void test_c_library(void **state)
{
	struct elf_sym s[8];
	struct unwind_piece piece;
	char path[512];
	int fd;
	struct elf_file *ef;

	libc_path(path, sizeof(path));
	ef = open_path(path, &fd);
	assert_true(elf_machine(ef) != MACHINE_NONE);
	assert_int_equal(elf_find(ef, "printf", s, 8), 1);
	assert_int_equal(s[0].type, STT_FUNC);
	/* stripped or not, the unwind table knows its extent */
	assert_int_equal(unwind_piece(ef, s[0].addr + 1, &piece), 0);
	assert_int_equal(piece.addr, s[0].addr);
	assert_int_equal(piece.len, s[0].size);
	assert_int_equal(elf_find(ef, "strlen", s, 8), 1);
#if defined(__x86_64__)
	assert_int_equal(s[0].type, STT_GNU_IFUNC);
#endif
	close_path(ef, fd);
}

static int open_bytes(const void *bytes, size_t len, struct elf_file **ef, char *why, size_t n)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), (ssize_t)len);
	if (elf_file_open(fd, ef, why, n)) {
		assert_null(*ef);
		close(fd);
		return -1;
	}
	return fd;
}

static void test_not_elf(void **state)
{
	struct elf_file *ef;
	char why[128];
	int fd;

	assert_int_equal(open_bytes("#!/bin/sh\n", 10, &ef, why, sizeof(why)), -1);
	assert_string_equal(why, "not an ELF file");
	assert_int_equal(open_bytes("\x7f"
				    "ELF",
				    4, &ef, why, sizeof(why)),
			 -1);
	assert_int_equal(open_bytes("", 0, &ef, why, sizeof(why)), -1);
	fd = open("/", O_RDONLY | O_CLOEXEC);
	assert_int_equal(elf_file_open(fd, &ef, why, sizeof(why)), -ENOEXEC);
	assert_string_equal(why, "not a regular file");
	close(fd);
}

static void use(const struct elf_file *ef)
{
	struct elf_sym s[8];
	struct unwind_piece piece;
	char near[100];
	int n = elf_find(ef, "*", s, 8);

	for (int i = 0; i < n && i < 8; i++) {
		struct insn_site site;
		struct insn_part p;
		uint64_t off;

		elf_offset(ef, s[i].addr, &off);
		unwind_piece(ef, s[i].addr, &piece);
		elf_cold(ef, s[i].name, s + 7, 1);
		if (!elf_code(ef, s[i].addr, s[i].size ? s[i].size : 64, &p) && p.len < 4096)
			insn_entry(elf_machine(ef), &p, 1, true, &site);
	}
	elf_nearest(ef, "elf_test_onx", near, sizeof(near));
}

/* A file that is cut, or in which bytes are changed, is refused or read within its bounds. */
static void test_broken(void **state)
{
	uint64_t seed = 0x9e3779b97f4a7c15ull;
	size_t size;
	uint8_t *file, *copy;
	struct elf_file *ef;
	char why[128], path[512];
	int fd;

	libc_path(path, sizeof(path));
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	size = (size_t)lseek(fd, 0, SEEK_END);
	file = malloc(size);
	copy = malloc(size);
	assert_int_equal(pread(fd, file, size, 0), (ssize_t)size);
	close(fd);
	for (int round = 0; round < 60; round++) {
		size_t len = size;

		memcpy(copy, file, size);
		for (int i = 0; i < 40; i++) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			if (round % 3 == 0)
				copy[seed >> 33 & 0x3ff] ^= (uint8_t)(seed >> 20);
			else if (round % 3 == 1)
				copy[(seed >> 20) % size] ^= (uint8_t)(seed >> 8);
		}
		if (round % 3 == 2)
			len = (seed >> 12) % size;
		fd = open_bytes(copy, len, &ef, why, sizeof(why));
		if (fd < 0)
			continue;
		use(ef);
		close_path(ef, fd);
	}
	free(copy);
	free(file);
}

/* Every reader, over all of what the file was when it was opened. */
static void read_all(const struct elf_file *ef, const struct elf_sym *known)
{
	char why[OPTABLE_WHY_LEN];
	uint64_t at[4], real, got, off;
	struct optable found;
	struct insn_part p;
	struct func f;
	int64_t slot;

	use(ef);
	for (int i = 0; elf_text(ef, i, &p); i++)
		for (size_t k = 0; k < p.len; k += 512)
			(void)*(volatile const uint8_t *)(p.code + k);
	if (!func_read(ef, known, &f))
		elf_name_at(ef, known->addr);
	elf_data(ef, known->addr, 1 << 20, &got);
	elf_address(ef, known->addr, &off);
	reloc_imports(ef, "free", at, 4);
	reloc_pointer(ef, known->addr, &real);
	optable_function(ef, known->addr, &real);
	optable_slot(ef, known->name, 1, 8, &slot, why);
	optable_find(ef, "free", 1, 8, &found, why);
}

static int copy_of(const char *path)
{
	int from = open(path, O_RDONLY | O_CLOEXEC), to = memfd_create("elf", MFD_CLOEXEC);
	char buf[65536];
	ssize_t n;

	assert_true(from >= 0 && to >= 0);
	while ((n = read(from, buf, sizeof(buf))) > 0)
		assert_int_equal(write(to, buf, (size_t)n), n);
	close(from);
	return to;
}

/* A library that is replaced, or cut short by its process, while it is looked at: what is gone is
 * not found, and what was read stays. */
static void test_cut_while_read(void **state)
{
	const off_t left[] = {-1, 0, 1, 64, 4096, 65536, 200000};
	struct elf_sym sym = {0};

	for (size_t i = 0; i < 2 * sizeof(left) / sizeof(left[0]); i++) {
		int fd = copy_of("/proc/self/exe");
		struct elf_file *ef;
		uint8_t bytes[8];
		struct insn_part p = {0};
		char why[128], name[32] = "elf_test_one";
		bool used = i % 2;
		off_t size = lseek(fd, 0, SEEK_END), to = left[i / 2];

		assert_int_equal(elf_file_open(fd, &ef, why, sizeof(why)), 0);
		assert_false(elf_cut_short(ef));
		if (used || !i) {
			assert_int_equal(elf_find(ef, name, &sym, 1), 1);
			assert_int_equal(elf_code(ef, sym.addr, sizeof(bytes), &p), 0);
			memcpy(bytes, p.code, sizeof(bytes));
		}
		sym.name = name;
		assert_int_equal(ftruncate(fd, to < 0 ? size - 1 : to), 0);
		assert_true(elf_cut_short(ef));
		if (to >= 0 && !used)
			assert_int_equal(elf_find(ef, name, &sym, 1), 0);
		read_all(ef, &sym);
		if (used)
			assert_memory_equal(p.code, bytes, sizeof(bytes));
		close_path(ef, fd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_symbols),    cmocka_unit_test(test_c_library),
		cmocka_unit_test(test_not_elf),        cmocka_unit_test(test_broken),
		cmocka_unit_test(test_cut_while_read),
	};

	return cmocka_run_group_tests_name("elf", tests, NULL, NULL);
}
