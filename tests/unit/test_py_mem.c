// SPDX-License-Identifier: Apache-2.0
/* Memory of a process and of an image: what is read, what fails, and what it costs. */
#include <errno.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "python/mem.h"

#define PAGE 4096u

/* Three pages with a hole in the middle. */
static uint8_t *holed(size_t page)
{
	uint8_t *p =
		mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	for (size_t i = 0; i < 3 * page; i++)
		p[i] = (uint8_t)(i * 7 + i / page);
	assert_int_equal(munmap(p + page, page), 0);
	return p;
}

/* Spans before, into, in, out of and behind the hole; those that do not touch it are whole. */
static int read_holed(struct pymem *m, const uint8_t *p, size_t page)
{
	const size_t at[] = {0,        page - 8,    page - 4, page + 16, 2 * page - 4,
			     2 * page, 3 * page - 8};
	uint8_t buf[7][8];
	struct pymem_span s[7];

	for (int i = 0; i < 7; i++)
		s[i] = (struct pymem_span){
			.addr = (uintptr_t)(p + at[i]), .buf = buf[i], .len = 8, .rc = 1};
	if (pymem_readv(m, s, 7))
		return 1;
	for (int i = 0; i < 7; i++) {
		bool hole = at[i] + 8 > page && at[i] < 2 * page;

		if (s[i].rc != (hole ? -EFAULT : 0))
			return 2;
		if (!hole && memcmp(buf[i], p + at[i], 8) != 0)
			return 3;
	}
	return 0;
}

static void test_holes(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *p = holed(page);
	struct sp_err err = {0};
	struct pymem *m;
	uint64_t v;

	assert_int_equal(pymem_open(getpid(), &m, &err), 0);
	assert_int_equal(read_holed(m, p, page), 0);
	assert_int_equal(pymem_u64(m, (uintptr_t)p, &v), 0);
	assert_int_equal(pymem_u64(m, (uintptr_t)(p + page), &v), -EFAULT);
	assert_int_equal(pymem_u64(m, 0, &v), -EFAULT);
	assert_int_equal(pymem_u64(m, UINT64_MAX - 3, &v), -EFAULT);
	pymem_close(m);
	munmap(p, page);
	munmap(p + 2 * page, page);
}

/* More spans than one call takes; every third cannot be read. */
static void test_batches(void **state)
{
	const size_t n = 2 * IOV_MAX + 10;
	uint64_t *word = calloc(n, sizeof(*word)), *got = calloc(n, sizeof(*got));
	struct pymem_span *s = calloc(n, sizeof(*s));
	struct sp_err err = {0};
	struct pymem *m;

	assert_true(word && got && s);
	assert_int_equal(pymem_open(getpid(), &m, &err), 0);
	for (int bad = 0; bad < 2; bad++) {
		for (size_t i = 0; i < n; i++) {
			word[i] = i * 31;
			s[i] = (struct pymem_span){
				.addr = bad && i % 300 == 7 ? 8 : (uintptr_t)&word[i],
				.buf = &got[i],
				.len = 8};
		}
		m->calls = 0;
		assert_int_equal(pymem_readv(m, s, n), 0);
		assert_true(m->calls <= 3 + (bad ? n / 300 + 1 : 0));
		for (size_t i = 0; i < n; i++) {
			assert_int_equal(s[i].rc, bad && i % 300 == 7 ? -EFAULT : 0);
			assert_true(s[i].rc || got[i] == word[i]);
		}
	}
	pymem_close(m);
	free(word);
	free(got);
	free(s);
}

static void test_budget(void **state)
{
	uint64_t word[4] = {1, 2, 3, 4}, v;
	struct pymem *m = pymem_image();

	assert_non_null(m);
	assert_int_equal(pymem_image_add(m, 4096, word, sizeof(word)), 0);
	pymem_budget(m, 20, 100);
	assert_int_equal(pymem_u64(m, 4096, &v), 0);
	assert_int_equal(pymem_u64(m, 4104, &v), 0);
	assert_int_equal(pymem_u64(m, 4112, &v), -E2BIG);
	/* Once used up, it stays so, for whatever is smaller as well. */
	assert_int_equal(pymem_read(m, 4112, &v, 1), -E2BIG);
	pymem_budget(m, 0, 2);
	assert_int_equal(pymem_u64(m, 4112, &v), 0);
	assert_int_equal(pymem_u64(m, 5000, &v), -EFAULT);
	assert_int_equal(pymem_u64(m, 4112, &v), -E2BIG);
	assert_int_equal(m->bytes, 32);
	assert_int_equal(m->reads, 4);
	pymem_close(m);
}

static void test_image(void **state)
{
	struct pymem *m = pymem_image();
	uint8_t buf[16], text[PAGE];
	char name[32];

	memset(text, 'x', sizeof(text));
	assert_int_equal(pymem_image_add(m, 100, "abcd", 4), 0);
	assert_int_equal(pymem_image_add(m, 108, "ijkl", 4), 0);
	assert_int_equal(pymem_read(m, 100, buf, 12), -EFAULT);
	assert_int_equal(pymem_image_add(m, 102, "CDefgh", 6), 0); /* over one and into the gap */
	assert_int_equal(pymem_read(m, 100, buf, 12), 0);
	assert_memory_equal(buf, "abCDefghijkl", 12);
	assert_int_equal(pymem_read(m, 99, buf, 2), -EFAULT);
	assert_int_equal(pymem_read(m, 111, buf, 2), -EFAULT);
	assert_int_equal(pymem_image_add(m, UINT64_MAX - 1, "ab", 2), -EINVAL);
	/* A string that ends a page, with nothing behind it. */
	text[PAGE - 1] = 0;
	assert_int_equal(pymem_image_add(m, 5 * PAGE, text, PAGE), 0);
	assert_int_equal(pymem_cstr(m, 6 * PAGE - 5, name, sizeof(name)), 0);
	assert_string_equal(name, "xxxx");
	assert_int_equal(pymem_cstr(m, 5 * PAGE, name, 8), 0);
	assert_string_equal(name, "xxxxxxx");
	assert_int_equal(pymem_cstr(m, 7 * PAGE, name, 8), -EFAULT);
	pymem_close(m);
}

/* ---- other processes ------------------------------------------------------------------------- */

/* A child that waits until it is killed. */
static pid_t child(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return pid;
}

static void test_gone(void **state)
{
	static volatile uint64_t here = 42;
	pid_t pid = child();
	struct sp_err err = {0};
	struct pymem *m;
	uint64_t v;

	assert_int_equal(pymem_open(pid, &m, &err), 0);
	assert_int_equal(pymem_u64(m, (uintptr_t)&here, &v), 0);
	assert_int_equal(v, 42);
	kill(pid, SIGKILL);
	/* A zombie first, then nothing: neither is read. */
	assert_int_equal(waitid(P_PID, (id_t)pid, NULL, WEXITED | WNOWAIT), 0);
	assert_int_equal(pymem_u64(m, (uintptr_t)&here, &v), -ESRCH);
	waitpid(pid, NULL, 0);
	assert_int_equal(pymem_u64(m, (uintptr_t)&here, &v), -ESRCH);
	pymem_close(m);
	assert_int_equal(pymem_open(pid, &m, &err), -ESRCH);
	assert_null(m);
}

/* In a child of ours, so that what it gives up is not lost to the other tests: its exit code. */
static int in_child(int (*fn)(void))
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0)
		_exit(fn());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int without_syscall(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {.len = 4, .filter = code};
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *p = holed(page);
	struct sp_err err = {0};
	struct pymem *m;
	pid_t pid = child();
	int rc;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		return 10;
	if (syscall(SYS_process_vm_readv, pid, NULL, 0, NULL, 0, 0) != -1 || errno != ENOSYS)
		return 11;
	rc = pymem_open(pid, &m, &err);
	if (rc) {
		fprintf(stderr, "%s\n", err.text);
		return 12;
	}
	rc = read_holed(m, p, page);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (!rc && pymem_u64(m, (uintptr_t)p, &(uint64_t){0}) != -ESRCH)
		rc = 13;
	pymem_close(m);
	return rc;
}

static void test_fallback(void **state)
{
	assert_int_equal(in_child(without_syscall), 0);
}

static pid_t other; /* a process of root's */

static int without_rights(void)
{
	struct sp_err err = {0};
	struct pymem *m = NULL;

	if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		return 10;
	if (pymem_open(other, &m, &err) != -EPERM || m)
		return 11;
	if (!strstr(err.text, "CAP_SYS_PTRACE is missing") || strchr(err.text, '\n')) {
		fprintf(stderr, "%s\n", err.text);
		return 12;
	}
	return 0;
}

/* A process of the same user that has made itself undumpable. */
static int undumpable(void)
{
	struct sp_err err = {0};
	struct pymem *m = NULL;
	int ready[2], rc;
	char byte;
	pid_t pid;

	if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534) || pipe(ready))
		return 10;
	prctl(PR_SET_DUMPABLE, 1); /* taken by the change of user; the child takes it back */
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_DUMPABLE, 0);
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	if (read(ready[0], &byte, 1) != 1)
		return 11;
	rc = pymem_open(pid, &m, &err);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (rc != -EPERM || m)
		return 12;
	if (!strstr(err.text, "undumpable") && !strstr(err.text, "ptrace_scope")) {
		fprintf(stderr, "%s\n", err.text);
		return 13;
	}
	return 0;
}

static void test_rights(void **state)
{
	if (geteuid() != 0)
		skip();
	other = child();
	assert_int_equal(in_child(without_rights), 0);
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	assert_int_equal(in_child(undumpable), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_holes),  cmocka_unit_test(test_batches),
		cmocka_unit_test(test_budget), cmocka_unit_test(test_image),
		cmocka_unit_test(test_gone),   cmocka_unit_test(test_fallback),
		cmocka_unit_test(test_rights),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
