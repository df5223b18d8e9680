// SPDX-License-Identifier: Apache-2.0
/* Which processes stand in front of a target, read from a made-up /proc. */
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "attach/sock_front.h"

static char proc[] = "/tmp/sp-proc-XXXXXX";

static void put(const char *text, size_t len, int pid, const char *name)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%d/%s", proc, pid, name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	fclose(f);
}

static void put_text(int pid, const char *name, const char *text)
{
	put(text, strlen(text), pid, name);
}

static void put_dir(int pid, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%d/%s", proc, pid, name);
	assert_int_equal(mkdir(path, 0700), 0);
}

static void put_link(int pid, const char *name, const char *to)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%d/%s", proc, pid, name);
	assert_int_equal(symlink(to, path), 0);
}

#define HEAD "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"

static void process(int pid, int parent, const char *exe, const char *cmdline)
{
	char text[256];

	put_dir(pid, "");
	put_dir(pid, "fd");
	put_dir(pid, "net");
	put_dir(pid, "task");
	put_text(pid, "net/tcp", HEAD);
	put_text(pid, "net/tcp6", HEAD);
	/* a comm that tries to look like the rest */
	snprintf(text, sizeof(text), "%d (a) S 1 (b) R %d 7 7 0 -1\n", pid, parent);
	put_text(pid, "stat", text);
	put(cmdline, strlen(cmdline) + 1, pid, "cmdline"); /* with its NUL */
	put_text(pid, "comm", "python3\n");
	put_link(pid, "exe", exe);
}

static void has_children(int pid, int thread, const char *children)
{
	char name[64];

	snprintf(name, sizeof(name), "task/%d", thread);
	put_dir(pid, name);
	snprintf(name, sizeof(name), "task/%d/children", thread);
	put_text(pid, name, children);
}

static void listens(int pid, const char *name, int ino)
{
	char text[512];

	snprintf(
		text, sizeof(text),
		HEAD
		"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0 "
		"       0 %d 1 0000000000000000 100 0 0 10 0\n"
		"   1: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0 "
		"       0 999 1 0000000000000000 20 4 30 10 -1\n",
		ino);
	put_text(pid, name, text);
	snprintf(text, sizeof(text), "socket:[%d]", ino);
	put_link(pid, "fd/5", text);
}

/*
 * 1 init - 50 shell - 100 launcher - 200 front - 300 target, 301 sibling that listens, 302 sibling
 * of another program, 303 sibling that does not
 */
static int make_proc(void **state)
{
	assert_non_null(mkdtemp(proc));
	process(1, 0, "/sbin/init-not-there", "init");
	process(50, 1, "/bin/sh", "-bash");
	process(100, 50, "/gone/python3", "python3 -m server --port 30000");
	process(200, 100, "/gone/python3", "python3 -m server worker");
	process(300, 200, "/gone/python3", "sglang::scheduler");
	process(301, 200, "/gone/python3", "python3 -m server worker");
	process(302, 200, "/bin/sh", "sh -c true");
	process(303, 200, "/gone/python3", "sglang::detokenizer");
	has_children(200, 200, "300 301 ");
	has_children(200, 207, "302 303 ");
	listens(100, "net/tcp", 4000);
	listens(301, "net/tcp6", 4001);
	listens(302, "net/tcp", 4002);
	/* another's listening socket, and a connection of its own */
	listens(303, "net/tcp", 999);
	put_text(303, "net/tcp",
		 HEAD "   0: 0100007F:1F90 00000000:0000 0A 0:0 0:0 0 0 0 4001 1\n"
		      "   1: 0100007F:1F90 0100007F:C350 01 0:0 0:0 0 0 0 999 1\n");
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static int remove_proc(void **state)
{
	return nftw(proc, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static int find(unsigned is, bool same_exe, bool listening, const char *cmdline, pid_t *out)
{
	struct sock_process want = {
		.is = is, .same_exe = same_exe, .listens = listening, .cmdline = (char *)cmdline};

	memset(out, 0, sizeof(*out) * FRONTS_MAX);
	return front_find(proc, &want, 300, NULL, NULL, out);
}

static void test_parent(void **state)
{
	pid_t out[FRONTS_MAX];

	assert_int_equal(front_parent(proc, 300), 200);
	assert_int_equal(front_parent(proc, 1), 0);
	assert_int_equal(front_parent(proc, 12345), 0);
	assert_int_equal(find(SOCK_IS_PARENT, true, false, NULL, out), 1);
	assert_int_equal(out[0], 200);
	assert_int_equal(find(SOCK_IS_PARENT, true, true, NULL, out), 0); /* it does not listen */
}

static void test_ancestor(void **state)
{
	pid_t out[FRONTS_MAX];

	assert_int_equal(find(SOCK_IS_ANCESTOR, true, true, NULL, out), 1);
	assert_int_equal(out[0], 100); /* the nearest that fits */
	assert_int_equal(find(SOCK_IS_ANCESTOR, true, false, NULL, out), 1);
	assert_int_equal(out[0], 200);
	assert_int_equal(find(SOCK_IS_ANCESTOR, false, false, "-bash", out), 1);
	assert_int_equal(out[0], 50);
	/* process 1 is everybody's ancestor */
	assert_int_equal(find(SOCK_IS_ANCESTOR, false, false, "init", out), 0);
}

static void test_sibling(void **state)
{
	pid_t out[FRONTS_MAX];

	assert_int_equal(find(SOCK_IS_SIBLING, true, true, NULL, out), 1);
	assert_int_equal(out[0], 301);
	assert_int_equal(find(SOCK_IS_SIBLING, false, true, NULL, out), 2);
	assert_int_equal(out[0] + out[1], 301 + 302);
	assert_int_equal(find(SOCK_IS_SIBLING, false, false, NULL, out), 3); /* never itself */
	assert_int_equal(find(SOCK_IS_SIBLING, true, false, "sglang::deto*", out), 1);
	assert_int_equal(out[0], 303);
	/* an ancestor and siblings */
	assert_int_equal(
		find(SOCK_IS_PARENT | SOCK_IS_ANCESTOR | SOCK_IS_SIBLING, true, true, NULL, out),
		2);
	assert_int_equal(out[0], 100);
	assert_int_equal(out[1], 301);
}

static bool is_100(void *ctx, pid_t pid)
{
	++*(int *)ctx;
	return pid == 100;
}

static void test_skip(void **state)
{
	struct sock_process want = {.is = SOCK_IS_ANCESTOR, .same_exe = true, .listens = true};
	pid_t out[FRONTS_MAX];
	int asked = 0;

	assert_int_equal(front_find(proc, &want, 300, is_100, &asked, out), 0);
	assert_true(asked >= 2);
}

static void test_self(void **state)
{
	struct sock_process want = {.is = SOCK_IS_SELF, .same_exe = true};
	pid_t out[FRONTS_MAX];

	assert_true(front_self(proc, &want, 300));
	assert_int_equal(front_find(proc, &want, 300, NULL, NULL, out), 0);
	want.cmdline = (char *)"sglang::sched*";
	assert_true(front_self(proc, &want, 300));
	assert_false(front_self(proc, &want, 303));
	want.cmdline = (char *)"python3"; /* the comm */
	assert_true(front_self(proc, &want, 303));
	want.listens = true;
	assert_false(front_self(proc, &want, 303));
	assert_true(front_self(proc, &want, 301));
	want.is = SOCK_IS_PARENT;
	assert_false(front_self(proc, &want, 301));
}

/* The server as a container's first process: of all that it may be, only the same program. */
static void test_process_one(void **state)
{
	struct sock_process want = {
		.is = SOCK_IS_PARENT | SOCK_IS_SIBLING, .same_exe = true, .listens = true};
	pid_t out[FRONTS_MAX];

	process(400, 1, "/sbin/init-not-there", "worker");
	has_children(1, 1, "50 400 301");
	assert_int_equal(front_find(proc, &want, 400, NULL, NULL, out), 0);
	listens(1, "net/tcp", 4100);
	assert_int_equal(front_find(proc, &want, 400, NULL, NULL, out), 1);
	assert_int_equal(out[0], 1);
	want.same_exe = false;
	assert_int_equal(front_find(proc, &want, 400, NULL, NULL, out), 0);
}

/* A host's network namespace may hold more listening sockets than anybody would think; the
 * process's own stands anywhere among them. */
static void test_many_that_listen(void **state)
{
	struct sock_process want = {.is = SOCK_IS_SELF, .listens = true};
	size_t cap = 5000 * 80;
	char *text = malloc(cap);
	int at;

	assert_non_null(text);
	at = snprintf(text, cap, HEAD);
	for (int i = 0; i < 4000; i++)
		at += snprintf(text + at, cap - (size_t)at,
			       "%4d: 0100007F:1F90 00000000:0000 0A 0:0 0:0 0 0 0 %d 1\n", i,
			       i == 3999 ? 4001 : 9000 - i);
	for (int pid = 500; pid < 503; pid++) {
		process(pid, 1, "/gone/python3", "python3");
		put_text(pid, "net/tcp", text);
	}
	put_link(500, "fd/5", "socket:[4001]"); /* the last */
	put_link(501, "fd/5", "socket:[9000]"); /* the first */
	put_link(502, "fd/5", "socket:[4002]"); /* none */
	assert_true(front_self(proc, &want, 500));
	assert_true(front_self(proc, &want, 501));
	assert_false(front_self(proc, &want, 502));
	free(text);
}

static void test_same_exe(void **state)
{
	assert_true(front_same_exe(proc, 100, 300)); /* by name: the file is not there */
	assert_true(front_same_exe(proc, 50, 302));  /* by the file */
	assert_false(front_same_exe(proc, 50, 300));
	assert_false(front_same_exe(proc, 300, 12345)); /* gone */
	assert_true(front_same_exe("/proc", getpid(), getpid()));
	assert_false(front_same_exe("/proc", getpid(), 1));
}

static void test_uring(void **state)
{
	assert_false(front_has_uring(proc, 300));
	put_link(300, "fd/9", "anon_inode:[io_uring]");
	assert_true(front_has_uring(proc, 300));
	assert_false(front_has_uring(proc, 12345));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parent),
		cmocka_unit_test(test_ancestor),
		cmocka_unit_test(test_sibling),
		cmocka_unit_test(test_skip),
		cmocka_unit_test(test_self),
		cmocka_unit_test(test_process_one),
		cmocka_unit_test(test_same_exe),
		cmocka_unit_test(test_uring),
		cmocka_unit_test(test_many_that_listen),
	};

	return cmocka_run_group_tests(tests, make_proc, remove_proc);
}
