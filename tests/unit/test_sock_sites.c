// SPDX-License-Identifier: Apache-2.0
/* Where in a libc's socket functions to probe: the code of real ones, and what must not be taken.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "attach/maps.h"
#include "attach/sock_links.h"
#include "attach/sock_sites.h"
#include "sock_code.h"
#include "sp_sock.h"

#define BASE 0x10000

static const struct sock_func recv_func = {"recv", SP_CALL_RECV, false, true};
static const struct sock_func close_func = {"close", SP_CALL_CLOSE, true, false};

static int sites(enum insn_machine m, const void *code, size_t len, const struct sock_func *f,
		 struct sock_sites *s)
{
	struct insn_part part = {BASE, code, len};

	return sock_sites(m, &part, 1, f, s);
}

static void site_is(const struct sock_sites *s, int i, uint64_t at, enum sp_sock_site site)
{
	assert_int_equal(s->site[i].addr, BASE + at);
	assert_int_equal(SP_SOCK_COOKIE_SITE(s->site[i].cookie), site);
	assert_int_equal(SP_SOCK_COOKIE_CALL(s->site[i].cookie), SP_CALL_RECV);
}

#define X86(code, f, s)   sites(MACHINE_X86_64, code, sizeof(code), f, s)
#define ARM64(code, f, s) sites(MACHINE_ARM64, code, sizeof(code), f, s)

/* glibc before 2.41: on the conditional jump behind each system call. */
static void test_after(void **state)
{
	struct sock_sites s;

	assert_int_equal(X86(glibc236_recv, &recv_func, &s), 0);
	assert_int_equal(s.way, SOCK_WAY_AFTER);
	assert_string_equal(s.where, "2 after syscall");
	assert_true(s.emulated);
	assert_int_equal(s.n, 2);
	site_is(&s, 0, 0x1f, SP_SOCK_AFTER);
	site_is(&s, 1, 0x6a, SP_SOCK_AFTER);

	assert_int_equal(X86(glibc239_recv, &recv_func, &s), 0);
	assert_int_equal(s.n, 2);
	site_is(&s, 0, 0x23, SP_SOCK_AFTER);
	site_is(&s, 1, 0x70, SP_SOCK_AFTER);

	assert_int_equal(X86(glibc236_sendfile, &recv_func, &s), 0);
	assert_int_equal(s.n, 1);
	site_is(&s, 0, 0x10, SP_SOCK_AFTER);

	assert_int_equal(X86(glibc241_shutdown, &recv_func, &s), 0);
	assert_int_equal(s.way, SOCK_WAY_AFTER);
}

/* The system call is made elsewhere: the entry, and every way out. */
static void test_around(void **state)
{
	struct sock_sites s;

	assert_int_equal(X86(glibc241_recv, &recv_func, &s), 0);
	assert_int_equal(s.way, SOCK_WAY_AROUND);
	assert_int_equal(s.n, 2);
	site_is(&s, 0, 0, SP_SOCK_ENTRY);
	site_is(&s, 1, 0x1b, SP_SOCK_RET);
	assert_string_equal(s.where, "entry, sub; 1 ret");

	assert_int_equal(X86(musl_recvmsg, &recv_func, &s), 0);
	assert_int_equal(s.n, 2);
	site_is(&s, 0, 0, SP_SOCK_ENTRY);
	site_is(&s, 1, 0xb2, SP_SOCK_RET);
}

/* musl: the raw result goes to __syscall_ret by a jump, where it is at hand. */
static void test_musl(void **state)
{
	struct sock_sites s;

	assert_int_equal(X86(musl_recvfrom, &recv_func, &s), 0);
	assert_int_equal(s.way, SOCK_WAY_AROUND);
	assert_int_equal(s.n, 2);
	site_is(&s, 0, 0, SP_SOCK_ENTRY);
	site_is(&s, 1, 0x29, SP_SOCK_RET);

	assert_int_equal(X86(musl_sendfile, &recv_func, &s), 0);
	assert_int_equal(s.n, 2);
	site_is(&s, 1, 0x13, SP_SOCK_RET);

	assert_int_equal(X86(musl_recv, &recv_func, &s), 0);
	assert_int_equal(s.way, SOCK_WAY_LEADS);
	assert_int_equal(s.leads, BASE + 0x10);

	assert_int_equal(ARM64(musl_arm64_recvfrom, &recv_func, &s), 0);
	assert_int_equal(s.n, 2);
	site_is(&s, 0, 0, SP_SOCK_ENTRY);
	site_is(&s, 1, 0x38, SP_SOCK_RET);

	/* its jump to accept() leaves with nothing at hand, its system calls are fcntl */
	assert_int_equal(X86(musl_accept4, &recv_func, &s), -ENOENT);
	assert_int_equal(s.way, SOCK_WAY_NONE);
	assert_int_equal(s.n, 0);
	assert_non_null(strstr(s.why, "leaves the function"));
}

static void test_arm64(void **state)
{
	struct sock_sites s;

	assert_int_equal(ARM64(glibc236_arm64_recv, &recv_func, &s), 0);
	assert_int_equal(s.way, SOCK_WAY_AROUND); /* the result overwrites the descriptor */
	assert_int_equal(s.n, 3);
	site_is(&s, 0, 4, SP_SOCK_ENTRY);
	site_is(&s, 1, 0x50, SP_SOCK_RET);
	site_is(&s, 2, 0xac, SP_SOCK_RET);
	assert_true(s.emulated);

	/* only failures leave for __syscall_error */
	assert_int_equal(ARM64(glibc236_arm64_sendfile, &recv_func, &s), 0);
	assert_int_equal(s.n, 2);
	site_is(&s, 1, 0x14, SP_SOCK_RET);

	assert_int_equal(ARM64(glibc241_arm64_recv, &recv_func, &s), 0);
	assert_int_equal(s.way, SOCK_WAY_LEADS);
}

static void test_close(void **state)
{
	struct sock_sites s;

	assert_int_equal(X86(musl_close, &close_func, &s), 0);
	assert_int_equal(s.way, SOCK_WAY_ENTRY);
	assert_int_equal(s.n, 1);
	assert_int_equal(s.site[0].addr, BASE + 4); /* the call to __aio_close: fd still in edi */
	assert_int_equal(s.site[0].cookie, SP_SOCK_COOKIE(SP_CALL_CLOSE, SP_SOCK_ENTRY));
	assert_string_equal(s.where, "entry+4, call");
}

#define MOV_EAX "\xb8\x2d\x00\x00\x00"
#define SYSCALL "\x0f\x05"
#define CMP     "\x48\x3d\x00\xf0\xff\xff"
#define JA      "\x77\x01" /* to behind the ret */
#define RET     "\xc3"
#define NOP     "\x90"

#define CODE(text, s) sites(MACHINE_X86_64, text, sizeof(text) - 1, &recv_func, s)

/* What stands between the system call and the jump. */
static void test_registers(void **state)
{
	static const struct {
		const char *insn;
		size_t len;
		bool spoils;
	} between[] = {
		{NOP, 1, false},
		{"\x89\xc5", 2, false},            /* mov %eax,%ebp */
		{"\x4c\x89\xdb", 3, false},        /* mov %r11,%rbx */
		{"\x48\x89\xc7", 3, true},         /* mov %rax,%rdi */
		{"\x31\xf6", 2, true},             /* xor %esi,%esi */
		{"\x40\xb6\x00", 3, true},         /* mov $0,%sil */
		{"\x31\xd2", 2, true},             /* xor %edx,%edx */
		{"\x45\x31\xd2", 3, true},         /* xor %r10d,%r10d */
		{"\x45\x31\xc0", 3, true},         /* xor %r8d,%r8d */
		{"\x45\x31\xc9", 3, true},         /* xor %r9d,%r9d */
		{"\xf7\xd8", 2, true},             /* neg %eax */
		{"\xb0\x00", 2, true},             /* mov $0,%al */
		{"\xe8\x00\x00\x00\x00", 5, true}, /* call */
		{"\xeb\x00", 2, true},             /* jmp */
	};
	struct sock_sites s;
	uint8_t code[64];

	for (size_t i = 0; i < sizeof(between) / sizeof(between[0]); i++) {
		size_t n = sizeof(MOV_EAX SYSCALL) - 1;

		memcpy(code, MOV_EAX SYSCALL, n);
		memcpy(code + n, between[i].insn, between[i].len);
		n += between[i].len;
		memcpy(code + n, CMP JA RET RET, sizeof(CMP JA RET RET) - 1);
		n += sizeof(CMP JA RET RET) - 1;
		assert_int_equal(sites(MACHINE_X86_64, code, n, &recv_func, &s), 0);
		assert_int_equal(s.way, between[i].spoils ? SOCK_WAY_AROUND : SOCK_WAY_AFTER);
	}
}

static void test_refused(void **state)
{
	struct sock_sites s;

	/* one of two system calls has no place: then none is taken there */
	assert_int_equal(CODE(MOV_EAX SYSCALL CMP JA RET SYSCALL RET, &s), 0);
	assert_int_equal(s.way, SOCK_WAY_AROUND);
	assert_int_equal(s.n, 3);
	/* the jump asks something else */
	assert_int_equal(CODE(MOV_EAX SYSCALL "\x48\x85\xc0" JA RET RET, &s), 0);
	assert_int_equal(s.way, SOCK_WAY_AROUND);
	/* the comparison is also reached from elsewhere, without a system call: the jump at 0 */
	assert_int_equal(CODE("\x74\x07" MOV_EAX SYSCALL CMP JA RET RET, &s), 0);
	assert_int_equal(s.way, SOCK_WAY_AROUND);
	/* no jump at all */
	assert_int_equal(CODE(MOV_EAX SYSCALL CMP RET, &s), 0);
	assert_int_equal(s.way, SOCK_WAY_AROUND);
	/* a tail call with something else in rax, or reached with it from elsewhere */
	assert_int_equal(
		CODE("\x55\xe8\x00\x01\x00\x00\x31\xc0\x48\x89\xc7\xe9\x00\x01\x00\x00", &s),
		-ENOENT);
	assert_int_equal(CODE("\x74\x05\xe8\x00\x01\x00\x00\x48\x89\xc7\xe9\x00\x01\x00\x00", &s),
			 -ENOENT);
	/* the result is not what it passes on */
	assert_int_equal(CODE("\x55\xe8\x00\x01\x00\x00\x48\x89\xdf\xe9\x00\x01\x00\x00", &s),
			 -ENOENT);
	assert_non_null(strstr(s.why, "leaves the function"));
	/* bytes that are no code */
	assert_int_equal(CODE("\x06\x06", &s), -EILSEQ);
	assert_string_equal(s.why, "its code cannot be decoded");
}

/* The libc that this test runs with. */
static void test_this_libc(void **state)
{
	struct map_files files;
	char why[200] = "";
	int found = 0;

	assert_int_equal(maps_read(getpid(), &files), 0);
	for (int i = 0; i < files.n; i++) {
		struct plan *plan;
		int fd;

		if (!sock_is_libc(files.file[i].base))
			continue;
		fd = maps_open(getpid(), &files.file[i], why, sizeof(why));
		assert_true(fd >= 0);
		assert_int_equal(sock_plan_make(&files.file[i], fd, why, &plan), 0);
		found++;
		if (!sock_plan_good(plan, NULL, BACKEND_NONE, why, sizeof(why)))
			fail_msg("%s", why);
		assert_true(plan->nprobe > 15);
		assert_true(plan->nsite >= plan->nprobe);
		for (int k = 1; k < plan->nsite; k++)
			for (int n = 0; n < k; n++)
				assert_int_not_equal(plan->site[k].offset, plan->site[n].offset);
		plan_free(plan);
	}
	maps_free(&files);
	assert_true(found >= 1);
}

static void test_names(void **state)
{
	assert_true(sock_is_libc("libc.so.6"));
	assert_true(sock_is_libc("libc-2.31.so"));
	assert_true(sock_is_libc("libpthread-2.31.so"));
	assert_true(sock_is_libc("ld-musl-x86_64.so.1"));
	assert_true(sock_is_libc("libc.so"));
	assert_false(sock_is_libc("libcrypto.so.3"));
	assert_false(sock_is_libc("libc++.so.1"));
	assert_false(sock_is_libc("ld-linux-x86-64.so.2"));
}

/* A file that cannot be read: every function carries the reason. */
static void test_unreadable(void **state)
{
	struct map_file f = {.path = (char *)"/lib/libc.so.6", .base = "libc.so.6"};
	struct plan *plan;
	char why[200];

	assert_int_equal(sock_plan_make(&f, -1, "the file is gone", &plan), 0);
	assert_false(sock_plan_good(plan, NULL, BACKEND_NONE, why, sizeof(why)));
	assert_string_equal(why, "read of libc.so.6 cannot be probed: the file is gone");
	assert_int_equal(plan->nsite, 0);
	plan_free(plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_after),   cmocka_unit_test(test_around),
		cmocka_unit_test(test_musl),    cmocka_unit_test(test_arm64),
		cmocka_unit_test(test_close),   cmocka_unit_test(test_registers),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_this_libc),
		cmocka_unit_test(test_names),   cmocka_unit_test(test_unreadable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
