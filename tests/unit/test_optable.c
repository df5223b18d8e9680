// SPDX-License-Identifier: Apache-2.0
/*
 * Functions behind a library's table of pointers: in every provider of verbs that is installed,
 * against what objdump and readelf say of it and what verbs_set_ops itself does; and what registers
 * may hold, in small pieces of code.
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

/* ---- what registers may hold ----------------------------------------------------------------- */

#define BASE  0x10000
#define X_RSI 6
#define X_RDI 7

static int values(enum insn_machine m, const void *code, size_t len, uint64_t at, uint8_t reg,
		  struct flow_value *v, int max)
{
	struct insn_part part = {BASE, code, len};
	struct flow *f = flow_open(m, &part);
	int i, n;

	assert_non_null(f);
	i = flow_step_at(f, BASE + at);
	assert_true(i >= 0);
	n = flow_values(f, i, reg, v, max);
	flow_close(f);
	return n;
}

static bool holds(const struct flow_value *v, int n, enum flow_kind kind, uint8_t reg, int64_t off)
{
	for (int i = 0; i < n; i++)
		if (v[i].kind == kind && v[i].reg == reg && v[i].off == off)
			return true;
	return false;
}

static void test_x86_ways(void **state)
{
	static const uint8_t code[] = {
		0x48, 0x8d, 0x1d, 0xf9, 0x0f, 0x00, 0x00, /* 0: lea 0xff9(%rip),%rbx = 0x11000 */
		0x48, 0x8d, 0x35, 0xf2, 0x1f, 0x00, 0x00, /* 7: lea 0x1ff2(%rip),%rsi = 0x12000 */
		0x85, 0xff,                               /* e: test %edi,%edi */
		0x74, 0x08,                               /* 10: je 1a */
		0xe8, 0xe9, 0xff, 0x00, 0x00,             /* 12: call 0x20000 */
		0x48, 0x89, 0xde,                         /* 17: mov %rbx,%rsi */
		0xe8, 0xe1, 0xff, 0x00, 0x00,             /* 1a: call 0x20000 */
		0xc3,                                     /* 1f: ret */
	};
	struct flow_value v[8];
	int n = values(MACHINE_X86_64, code, sizeof(code), 0x1a, X_RSI, v, 8);

	assert_int_equal(n, 2); /* one by each way; rbx outlives the call between */
	assert_true(holds(v, n, FLOW_CONST, 0, BASE + 0x1000));
	assert_true(holds(v, n, FLOW_CONST, 0, BASE + 0x2000));
	n = values(MACHINE_X86_64, code, sizeof(code), 0x17, X_RSI, v, 8);
	assert_int_equal(n, 1);
	assert_true(holds(v, n, FLOW_UNKNOWN, 0, 0)); /* rsi does not */
	n = values(MACHINE_X86_64, code, sizeof(code), 0x10, X_RDI, v, 8);
	assert_int_equal(n, 1);
	assert_true(holds(v, n, FLOW_ENTRY, X_RDI, 0));
}

static void test_x86_forms(void **state)
{
	static const uint8_t code[] = {
		0x48, 0x83, 0xec, 0x18, /* 0: sub $0x18,%rsp */
		0x48, 0x8d, 0x05, 0xf5, 0x0f,
		0x00, 0x00,                   /* 4: lea 0xff5(%rip),%rax = 0x11000 */
		0x48, 0x83, 0xc0, 0x10,       /* b: add $0x10,%rax */
		0x48, 0x89, 0x44, 0x24, 0x08, /* f: mov %rax,8(%rsp) */
		0x31, 0xc0,                   /* 14: xor %eax,%eax */
		0x48, 0x8b, 0x74, 0x24, 0x08, /* 16: mov 8(%rsp),%rsi */
		0x48, 0x0f, 0x44, 0xf0,       /* 1b: cmove %rax,%rsi */
		0x48, 0x8b, 0x57, 0x28,       /* 1f: mov 0x28(%rdi),%rdx */
		0x48, 0x8b, 0x0d, 0xd6, 0x1f,
		0x00, 0x00,       /* 23: mov 0x1fd6(%rip),%rcx = (0x12000) */
		0x4c, 0x8b, 0x02, /* 2a: mov (%rdx),%r8 */
		0xc3,             /* 2d: ret */
	};
	struct flow_value v[8];
	int n = values(MACHINE_X86_64, code, sizeof(code), 0x2d, X_RSI, v, 8);

	assert_int_equal(n, 2); /* through the stack; or the zero of the conditional move */
	assert_true(holds(v, n, FLOW_CONST, 0, BASE + 0x1010));
	assert_true(holds(v, n, FLOW_CONST, 0, 0));
	n = values(MACHINE_X86_64, code, sizeof(code), 0x2d, 2, v, 8);
	assert_true(n == 1 && holds(v, n, FLOW_LOAD_ENTRY, X_RDI, 0x28));
	n = values(MACHINE_X86_64, code, sizeof(code), 0x2d, 1, v, 8);
	assert_true(n == 1 && holds(v, n, FLOW_LOAD_CONST, 0, BASE + 0x2000));
	n = values(MACHINE_X86_64, code, sizeof(code), 0x2d, 8, v, 8);
	assert_true(n == 1 && holds(v, n, FLOW_UNKNOWN, 0, 0)); /* a pointer's pointer */
}

/* As gcc makes the calls of libmthca: the table's base spilled over a call, and offset after it. */
static void test_arm64(void **state)
{
	static const uint32_t code[] = {
		0xd10083ff, /* 0: sub sp, sp, #32 */
		0xaa0003f3, /* 4: mov x19, x0 */
		0x90000001, /* 8: adrp x1, 0x10000 */
		0x910dc021, /* c: add x1, x1, #880 */
		0xf90007e1, /* 10: str x1, [sp, #8] */
		0x94003ffb, /* 14: bl 0x20000 */
		0xf940ba60, /* 18: ldr x0, [x19, #368] */
		0xf94007e1, /* 1c: ldr x1, [sp, #8] */
		0x34000060, /* 20: cbz w0, 2c */
		0x91174021, /* 24: add x1, x1, #1488 */
		0x14000002, /* 28: b 30 */
		0x910ba021, /* 2c: add x1, x1, #744 */
		0xaa1303e0, /* 30: mov x0, x19 */
		0x94003ff3, /* 34: bl 0x20000 */
		0xf90007ff, /* 38: str xzr, [sp, #8] */
		0xf94007e2, /* 3c: ldr x2, [sp, #8] */
		0xd65f03c0, /* 40: ret */
	};
	struct flow_value v[8];
	int n = values(MACHINE_ARM64, code, sizeof(code), 0x34, 1, v, 8);

	assert_int_equal(n, 2);
	assert_true(holds(v, n, FLOW_CONST, 0, BASE + 880 + 1488));
	assert_true(holds(v, n, FLOW_CONST, 0, BASE + 880 + 744));
	n = values(MACHINE_ARM64, code, sizeof(code), 0x34, 0, v, 8);
	assert_true(n == 1 && holds(v, n, FLOW_ENTRY, 0, 0));
	n = values(MACHINE_ARM64, code, sizeof(code), 0x40, 2, v, 8);
	assert_true(n == 1 && holds(v, n, FLOW_UNKNOWN, 0, 0)); /* the word was overwritten */
}

/* A number at the end of its range, and what is added to it, wraps as in the machine. */
static void test_wraps(void **state)
{
	static const uint8_t code[] = {
		0x48, 0xbe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, /* movabs max, %rsi */
		0x48, 0x83, 0xc6, 0x01,                                     /* add $1, %rsi */
		0xc3,
	};
	struct flow_value v[2];
	int n = values(MACHINE_X86_64, code, sizeof(code), 14, 6, v, 2);

	assert_true(n == 1 && holds(v, n, FLOW_CONST, 0, INT64_MIN));
}

/* A loop that adds, walked from each of its steps: the work is bounded, and then all is unknown. */
static void test_bounded(void **state)
{
	enum { ADDS = 2000 };
	static const int32_t back = -(4 * ADDS + 5);
	static uint8_t code[ADDS * 4 + 6];
	struct insn_part part = {BASE, code, sizeof(code)};
	struct flow_value v[4];
	struct flow *f;
	int n = 0;

	for (int i = 0; i < ADDS; i++)
		memcpy(code + 4 * i, "\x48\x83\xc6\x01", 4); /* add $1, %rsi */
	code[4 * ADDS] = 0xe9;                               /* jmp to the start */
	memcpy(code + 4 * ADDS + 1, &back, sizeof(back));
	code[4 * ADDS + 5] = 0xc3;
	f = flow_open(MACHINE_X86_64, &part);
	assert_non_null(f);
	for (int i = 0; i < ADDS; i++)
		n = flow_values(f, i, 6, v, 4);
	assert_true(n == 1 && holds(v, n, FLOW_UNKNOWN, 0, 0));
	flow_close(f);
}

/* Random bytes: no crash, no endless walk. */
static void test_garbage(void **state)
{
	uint64_t seed = 0x9e3779b97f4a7c15ull;
	uint32_t code[256];
	struct flow_value v[4];

	for (int round = 0; round < 400; round++) {
		enum insn_machine m = round % 2 ? MACHINE_ARM64 : MACHINE_X86_64;
		struct insn_part part = {BASE, (uint8_t *)code, sizeof(code)};
		struct flow *f;

		for (size_t i = 0; i < ARRAY_SIZE(code); i++) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			code[i] = (uint32_t)(seed >> 32);
			if (i % 3 == 0) /* jumps to near places */
				code[i] = m == MACHINE_ARM64 ? 0x54000000 | (code[i] & 0x7f) << 5
							     : 0x9090ffeb - (code[i] & 0x3f00);
		}
		f = flow_open(m, &part);
		for (int i = 0; f && i < flow_steps(f); i += 7)
			assert_in_range(flow_values(f, i, (uint8_t)(i % 16), v, 4), 0, 4);
		flow_close(f);
	}
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
		cmocka_unit_test(test_x86_ways),
		cmocka_unit_test(test_x86_forms),
		cmocka_unit_test(test_arm64),
		cmocka_unit_test(test_wraps),
		cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_garbage),
	};

	return cmocka_run_group_tests_name("optable", tests, NULL, NULL);
}
