// SPDX-License-Identifier: Apache-2.0
/*
 * By its name a libc, and one whose read makes its system call elsewhere, as musl's does: all that
 * can be probed is its beginning and its end. The program's own libc stays the one it calls.
 */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>

static volatile long calls;

ssize_t read(int fd, void *buf, size_t n)
{
	long got = syscall(SYS_read, fd, buf, n);

	calls++;
	return got;
}

long smoke_wait(long n)
{
	int fd[2];
	char c;

	if (pipe(fd))
		return -1;
	return read(fd[0], &c, 1) + n; /* nobody ever writes */
}
