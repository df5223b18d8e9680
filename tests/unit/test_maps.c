// SPDX-License-Identifier: Apache-2.0
/* /proc/PID/maps: which files, once each; and opening the very file that is mapped. */
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
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "attach/maps.h"

static const char text[] =
	"00400000-00401000 r--p 00000000 fd:01 131                        /usr/bin/srv\n"
	"00401000-00402000 r-xp 00001000 fd:01 131                        /usr/bin/srv\n"
	"00402000-00403000 r-xp 00002000 fd:01 131                        /usr/bin/srv\n"
	"01a2b000-01a4c000 rw-p 00000000 00:00 0                          [heap]\n"
	"7f0000000000-7f0000001000 r-xp 00000000 00:00 0 \n"
	"7f1000000000-7f1000001000 r-xp 00000000 fd:01 77                 /lib/libnixl.so "
	"(deleted)\n"
	"7f2000000000-7f2000001000 r--p 00000000 fd:01 78                 /lib/data-only.so\n"
	"7f3000000000-7f3000001000 rwxp 00000000 00:2f 79                 /lib/with space "
	"\\012x.so\n"
	"7f4000000000-7f4000001000 r-xp 00000000 fd:02 77                 /mnt/libnixl.so\n"
	"7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0                  [vdso]\n";

static void test_parse(void **state)
{
	struct map_files m;

	assert_int_equal(maps_parse(text, &m), 0);
	assert_int_equal(m.n, 4);
	assert_string_equal(m.file[0].path, "/usr/bin/srv");
	assert_string_equal(m.file[0].base, "srv");
	assert_true(m.file[0].start == 0x401000 && m.file[0].end == 0x402000);
	assert_false(m.file[0].deleted);
	assert_string_equal(m.file[1].path, "/lib/libnixl.so");
	assert_true(m.file[1].deleted);
	assert_int_equal(m.file[1].ino, 77);
	assert_int_equal(m.file[1].dev_major, 0xfd);
	assert_string_equal(m.file[2].base, "with space \nx.so");
	assert_int_equal(m.file[2].dev_minor, 0x2f);
	assert_string_equal(m.file[3].path, "/mnt/libnixl.so"); /* same inode, other device */
	maps_free(&m);
	assert_int_equal(m.n, 0);
}

static void test_parse_bad(void **state)
{
	struct map_files m;

	assert_int_equal(maps_parse("", &m), 0);
	assert_int_equal(m.n, 0);
	assert_int_equal(maps_parse("garbage\n", &m), -EINVAL);
	assert_int_equal(maps_parse("00400000-00401000 r-xp 00000000 fd:01 1", &m), 0);
	assert_int_equal(m.n, 0);
	/* cut anywhere: no crash, no invention */
	for (size_t len = 0; len < sizeof(text); len += 7) {
		char cut[sizeof(text)];

		memcpy(cut, text, len);
		cut[len] = 0;
		if (!maps_parse(cut, &m)) {
			assert_true(m.n <= 4);
			maps_free(&m);
		}
	}
}

static const struct map_file *find(const struct map_files *m, const char *base)
{
	for (int i = 0; i < m->n; i++)
		if (!strcmp(m->file[i].base, base))
			return &m->file[i];
	return NULL;
}

/* Map a page of a new file executable, then delete or replace the file. */
static void test_open(void **state)
{
	char dir[] = "/tmp/sp-maps-XXXXXX", path[64], other[64], why[160] = "", byte = 0;
	struct map_files m;
	struct stat mine, opened;
	void *page;
	int fd;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/libmine.so", dir);
	snprintf(other, sizeof(other), "%s/other", dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0755);
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(pwrite(fd, "m", 1, 0), 1);
	assert_int_equal(fstat(fd, &mine), 0);
	page = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_true(page != MAP_FAILED);
	close(fd);

	assert_int_equal(maps_read(getpid(), &m), 0);
	fd = maps_open(getpid(), find(&m, "libmine.so"), why, sizeof(why));
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &opened), 0);
	assert_int_equal(opened.st_ino, mine.st_ino);
	close(fd);
	maps_free(&m);

	/* replaced: what is opened is the mapped one, or nothing */
	fd = open(other, O_RDWR | O_CREAT | O_CLOEXEC, 0755);
	assert_int_equal(pwrite(fd, "o", 1, 0), 1);
	close(fd);
	assert_int_equal(rename(other, path), 0);
	assert_int_equal(maps_read(getpid(), &m), 0);
	assert_true(find(&m, "libmine.so")->deleted);
	fd = maps_open(getpid(), find(&m, "libmine.so"), why, sizeof(why));
	if (fd >= 0) {
		assert_int_equal(pread(fd, &byte, 1, 0), 1);
		assert_int_equal(byte, 'm');
		close(fd);
	} else {
		assert_int_equal(geteuid() == 0, 0); /* root may always */
		assert_non_null(strstr(why, "CAP_CHECKPOINT_RESTORE"));
	}
	maps_free(&m);
	munmap(page, 4096);
	unlink(path);
	rmdir(dir);
}

static int new_page_file(const char *path, char first)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0755);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(pwrite(fd, &first, 1, 0), 1);
	return fd;
}

/* The process has mapped another file at the same place since its maps were read. */
static void test_open_remapped(void **state)
{
	char dir[] = "/tmp/sp-maps-XXXXXX", path[64], other[64], why[160] = "", byte = 0;
	struct map_files m;
	void *page;
	int fd, fd2;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/libmine.so", dir);
	snprintf(other, sizeof(other), "%s/other", dir);
	fd = new_page_file(path, 'm');
	fd2 = new_page_file(other, 'o');
	page = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_true(page != MAP_FAILED);
	assert_int_equal(maps_read(getpid(), &m), 0);
	assert_true(mmap(page, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd2, 0) ==
		    page);
	close(fd);
	close(fd2);
	fd = maps_open(getpid(), find(&m, "libmine.so"), why, sizeof(why));
	assert_true(fd >= 0); /* by its path */
	assert_int_equal(pread(fd, &byte, 1, 0), 1);
	assert_int_equal(byte, 'm');
	close(fd);
	unlink(path);
	fd = maps_open(getpid(), find(&m, "libmine.so"), why, sizeof(why));
	assert_true(fd < 0);
	assert_true(why[0]);
	maps_free(&m);
	munmap(page, 4096);
	unlink(other);
	rmdir(dir);
}

static void test_read_gone(void **state)
{
	struct map_files m;

	assert_int_equal(maps_read(0x3fffffff, &m), -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),     cmocka_unit_test(test_parse_bad),
		cmocka_unit_test(test_open),      cmocka_unit_test(test_open_remapped),
		cmocka_unit_test(test_read_gone),
	};

	return cmocka_run_group_tests_name("maps", tests, NULL, NULL);
}
