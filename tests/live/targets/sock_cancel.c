// SPDX-License-Identifier: Apache-2.0
/*
 * Threads that are cancelled in the middle of socket calls, round after round: a cancellation
 * unwinds the stack through the function that is being called. Prints "ready", then "done N" when
 * told on stdin to end; a round that does not unwind as it should ends the program.
 */
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

struct job {
	int kind, fd;
	bool unwound;
};

static void unwound(void *arg)
{
	*(bool *)arg = true;
}

static void *run(void *arg)
{
	struct job *j = arg;
	char buf[64];
	struct iovec iov = {buf, sizeof(buf)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	pthread_cleanup_push(unwound, &j->unwound);
	for (;;) {
		switch (j->kind) {
		case 0:
			recv(j->fd, buf, sizeof(buf), 0);
			break;
		case 1:
			read(j->fd, buf, sizeof(buf));
			break;
		case 2:
			recvmsg(j->fd, &m, 0);
			break;
		case 3:
			recvfrom(j->fd, buf, sizeof(buf), 0, NULL, NULL);
			break;
		default:
			readv(j->fd, &iov, 1);
		}
	}
	pthread_cleanup_pop(0);
	return NULL;
}

static void one_round(int kind)
{
	struct job j = {.kind = kind};
	pthread_t t;
	void *ret;
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd))
		exit(2);
	j.fd = fd[0];
	if (pthread_create(&t, NULL, run, &j))
		exit(2);
	for (int i = 0; i < 3; i++)
		if (send(fd[1], "x", 1, 0) != 1)
			exit(2);
	pthread_cancel(t);
	pthread_join(t, &ret);
	if (ret != PTHREAD_CANCELED || !j.unwound)
		exit(3);
	close(fd[0]);
	close(fd[1]);
}

int main(void)
{
	struct pollfd in = {.fd = 0, .events = POLLIN};
	unsigned long n = 0;

	puts("ready");
	fflush(stdout);
	while (!poll(&in, 1, 0))
		one_round((int)(n++ % 5));
	printf("done %lu\n", n);
	return 0;
}
