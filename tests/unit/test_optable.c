// SPDX-License-Identifier: Apache-2.0
/*
 * Functions behind a library's table of pointers: in every provider of verbs that is installed,
 * against what objdump and readelf say of it and what verbs_set_ops itself does.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <infiniband/verbs.h>
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

#include "attach/flow.h"
#include "attach/maps.h"
#include "attach/optable.h"
#include "attach/reloc.h"
#include "elf_image.h"
#include "util/cleanup.h"

#define SLOTS     160
#define MAX_TABLE 8

/* Where they are in struct verbs_context, from its end: struct ibv_context_ops is 256 bytes. */
#define FROM_END(op)                                                                               \
	((int64_t)offsetof(struct ibv_context_ops, op) - (int64_t)sizeof(struct ibv_context_ops))

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

/* ---- a made-up library, of both machines ----------------------------------------------------- */

static struct elf_file *open_image(const uint8_t *image, size_t len, int *fd)
{
	struct elf_file *ef;
	char why[128];

	*fd = memfd_create("image", MFD_CLOEXEC);
	assert_true(*fd >= 0);
	assert_int_equal(write(*fd, image, len), (ssize_t)len);
	if (elf_file_open(*fd, &ef, why, sizeof(why)))
		fail_msg("%s", why);
	return ef;
}

static void check_image(enum insn_machine m)
{
	uint8_t image[IMAGE_BYTES];
	char why[OPTABLE_WHY_LEN];
	struct optable found;
	struct elf_file *ef;
	int64_t slot;
	int fd;

	image_make(image, m);
	ef = open_image(image, sizeof(image), &fd);
	assert_int_equal(optable_slot(ef, "copy", 2, IMAGE_TO, &slot, why), 0);
	assert_int_equal(slot, IMAGE_SLOT);
	assert_int_equal(optable_slot(ef, "copy", 2, -8, &slot, why), 0);
	assert_int_equal(slot, IMAGE_SLOT);
	/* one entry by a relocation with its value beside it, one by a packed one */
	assert_int_equal(optable_find(ef, "set_ops", 2, 0, &found, why), 0);
	assert_int_equal(found.n, 1);
	assert_int_equal(found.addr[0], IMAGE_F);
	assert_int_equal(found.calls, 1);
	assert_int_equal(found.opaque, 0);
	assert_int_equal(optable_find(ef, "set_ops", 2, 8, &found, why), 0);
	assert_int_equal(found.addr[0], IMAGE_COPY);
	assert_int_equal(optable_find(ef, "set_ops", 2, 16, &found, why), -ENOENT);
	assert_int_equal(optable_find(ef, "set_ops", 3, 0, &found, why), -ENOENT);
	elf_file_close(ef);
	close(fd);
}

static void test_image(void **state)
{
	check_image(MACHINE_X86_64);
	check_image(MACHINE_ARM64);
}

/* ---- the slots, by asking the function itself ------------------------------------------------ */

struct slots {
	int64_t post_send, poll_cq;
	char library[512];
};

static void real_slots(struct slots *s)
{
	static char priv[1 << 14];
	static struct verbs_context v;
	void *table[SLOTS], *lib = dlopen("libibverbs.so.1", RTLD_NOW);
	void (*set_ops)(struct verbs_context *, const void *);
	struct map_files m;

	assert_non_null(lib);
	*(void **)&set_ops = dlsym(lib, "verbs_set_ops");
	assert_non_null(set_ops);
	for (uintptr_t i = 0; i < SLOTS; i++)
		table[i] = (void *)(8 * i + 1);
	v.sz = sizeof(v);
	v.priv = (void *)priv;
	set_ops(&v, table);
	s->post_send = (int64_t)(uintptr_t)v.context.ops.post_send - 1;
	s->poll_cq = (int64_t)(uintptr_t)v.context.ops.poll_cq - 1;
	assert_int_equal(maps_read(getpid(), &m), 0);
	for (int i = 0; i < m.n; i++)
		if (!strncmp(m.file[i].base, "libibverbs.so", 13))
			snprintf(s->library, sizeof(s->library), "%s", m.file[i].path);
	maps_free(&m);
}

static void test_slots(void **state)
{
	struct slots real;
	char why[OPTABLE_WHY_LEN];
	int64_t slot;
	int fd;
	struct elf_file *ef;

	real_slots(&real);
	ef = open_path(real.library, &fd);
	assert_int_equal(optable_slot(ef, "verbs_set_ops", 2, FROM_END(post_send), &slot, why), 0);
	assert_int_equal(slot, real.post_send);
	assert_int_equal(optable_slot(ef, "verbs_set_ops", 2, FROM_END(poll_cq), &slot, why), 0);
	assert_int_equal(slot, real.poll_cq);
	/* the same counted from the beginning, which other versions have elsewhere */
	assert_int_equal(optable_slot(ef, "verbs_set_ops", 2,
				      offsetof(struct verbs_context, context.ops.post_send), &slot,
				      why),
			 0);
	assert_int_equal(slot, real.post_send);
	/* no argument of its, nothing that it fills, no function */
	assert_true(optable_slot(ef, "verbs_set_ops", 3, FROM_END(post_send), &slot, why) < 0);
	assert_non_null(strstr(why, "does not tell"));
	assert_true(optable_slot(ef, "verbs_set_ops", 2, 1 << 20, &slot, why) < 0);
	assert_true(optable_slot(ef, "ibv_free_device_list", 2, FROM_END(poll_cq), &slot, why) < 0);
	assert_true(optable_slot(ef, "verbs_no_ops", 2, FROM_END(poll_cq), &slot, why) < 0);
	elf_file_close(ef);
	close(fd);
}

/* ---- the providers, by binutils -------------------------------------------------------------- */

#if defined(__x86_64__)
/* The tables that a file passes: what objdump shows in rsi at each call. Their number; *calls: all.
 */
static int tables_of(const char *path, uint64_t table[MAX_TABLE], int *calls)
{
	char cmd[600], line[512];
	uint64_t last = 0;
	int n = 0;
	FILE *f;

	snprintf(cmd, sizeof(cmd), "objdump -d --no-show-raw-insn '%s'", path);
	f = popen(cmd, "r"); /* NOLINT: of a test */
	assert_non_null(f);
	*calls = 0;
	while (fgets(line, sizeof(line), f)) {
		const char *at = strchr(line, '#');

		if (strstr(line, ",%rsi"))
			last = strstr(line, "lea ") && strstr(line, "(%rip),%rsi") && at
				       ? strtoull(at + 1, NULL, 16)
				       : 0;
		if (!strstr(line, "call") || !strstr(line, "<verbs_set_ops@plt>"))
			continue;
		++*calls;
		if (last && n < MAX_TABLE)
			table[n++] = last;
		last = 0;
	}
	assert_int_equal(pclose(f), 0);
	return n;
}

static uint64_t relocated(const char *path, uint64_t at)
{
	uint64_t where, addend, got = 0;
	char cmd[600], line[512];
	FILE *f;

	snprintf(cmd, sizeof(cmd), "readelf -rW '%s'", path);
	f = popen(cmd, "r"); /* NOLINT: of a test */
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx %*x R_X86_64_RELATIVE %lx", &where, &addend) == 2 &&
		    where == at)
			got = addend;
	assert_int_equal(pclose(f), 0);
	return got;
}

/* Where a function that is nothing but a jump leads; else itself. */
static uint64_t behind_jump(const char *path, uint64_t addr)
{
	char cmd[700], line[512];
	uint64_t at, to;
	FILE *f;

	snprintf(cmd, sizeof(cmd),
		 "objdump -d --no-show-raw-insn --start-address=%#lx --stop-address=%#lx '%s'",
		 addr, addr + 16, path);
	f = popen(cmd, "r"); /* NOLINT: of a test */
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, " %lx: jmp %lx", &at, &to) == 2 && at == addr)
			addr = to;
	}
	assert_int_equal(pclose(f), 0);
	return addr;
}

static bool has(const struct optable *found, uint64_t addr)
{
	for (int i = 0; i < found->n; i++)
		if (found->addr[i] == addr)
			return true;
	return false;
}

static int check_provider(const char *path, int64_t slot)
{
	uint64_t table[MAX_TABLE];
	char why[OPTABLE_WHY_LEN];
	struct optable found;
	int calls, fd, expected = 0, n = tables_of(path, table, &calls), rc;
	struct elf_file *ef = open_path(path, &fd);

	rc = optable_find(ef, "verbs_set_ops", 2, slot, &found, why);
	assert_int_equal(found.calls, calls);
	assert_int_equal(found.opaque, calls - n);
	for (int i = 0; i < n; i++) {
		uint64_t addr = relocated(path, table[i] + (uint64_t)slot);

		if (!addr)
			continue;
		addr = behind_jump(path, addr);
		if (!has(&found, addr))
			fail_msg("%s: %#lx in the table at %#lx was not found", path, addr,
				 table[i]);
		expected++;
	}
	assert_true(found.n <= expected);
	assert_int_equal(rc == 0, expected > 0);
	if (rc)
		assert_non_null(strstr(why, "run time"));
	elf_file_close(ef);
	close(fd);
	return found.n;
}

static void test_providers(void **state)
{
	struct slots real;
	char pattern[600], *slash;
	int checked = 0, found = 0, functions = 0;
	glob_t g;

	real_slots(&real);
	slash = strrchr(real.library, '/');
	snprintf(pattern, sizeof(pattern), "%.*s/libibverbs/*.so", (int)(slash - real.library),
		 real.library);
	assert_int_equal(glob(pattern, 0, NULL, &g), 0);
	for (size_t i = 0; i < g.gl_pathc; i++) {
		int n = check_provider(g.gl_pathv[i], real.post_send);
		int polls = check_provider(g.gl_pathv[i], real.poll_cq);

		assert_int_equal(n > 0, polls > 0);
		found += n > 0;
		functions += n + polls;
		checked++;
	}
	globfree(&g);
	print_message("%d providers, %d tell their functions: %d\n", checked, found, functions);
	assert_true(found >= 10);
	assert_true(checked - found <= 1); /* libhns chooses its table by the device */
}
#endif

/* A library that passes no table. */
static void test_none(void **state)
{
	char why[OPTABLE_WHY_LEN];
	struct optable found;
	struct slots real;
	int fd;
	struct elf_file *ef;

	real_slots(&real);
	ef = open_path(real.library, &fd);
	assert_true(optable_find(ef, "no_such_import", 2, real.poll_cq, &found, why) < 0);
	assert_string_equal(why, "it does not import no_such_import");
	assert_int_equal(found.n, 0);
	assert_true(optable_find(ef, "malloc", 2, 0, &found, why) < 0);
	elf_file_close(ef);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_image),
		cmocka_unit_test(test_slots),
#if defined(__x86_64__)
		cmocka_unit_test(test_providers),
#endif
		cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests_name("optable", tests, NULL, NULL);
}
