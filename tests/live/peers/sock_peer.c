// SPDX-License-Identifier: Apache-2.0
/*
 * A process whose socket calls a test decides one by one: commands come as lines on stdin, each is
 * answered by a line. Linked dynamically (its calls are libc's) and statically (no libc to probe).
 *
 *   listen | listen PATH              -> the port, or 0
 *   accept | connect PORT|PATH        -> descriptor
 *   read CALL FD N [SIZE]             until N bytes have come, SIZE at a time -> bytes
 *   write CALL FD HEX|*N [SIZE]       all of it, SIZE at a time -> bytes
 *   peek FD N | dup FD | dup2 FD NEW | close FD | shutdown FD | uring
 *   bg COMMAND                        in a thread -> its number; join N -> its answer
 *   child COMMAND                     in a forked child, waited for -> its answer
 *   loop OUT IN N HEX                 N times: written to OUT, read from IN, which is its other
 * end; the least of twenty turns -> ns for one A call that fails ends the command: "BYTES
 * ERRNO-NAME".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PARTS 3 /* of a vectored call */

static int listener = -1;

static struct thread {
	pthread_t id;
	char *command, answer[128];
} threads[64];
static int nthreads;

static void run(char *command, char *answer, size_t len);

/* iov of up to PARTS pieces of buf; their number. */
static int pieces(struct iovec *iov, char *buf, size_t n)
{
	size_t each = n / PARTS, at = 0;
	int count = 0;

	for (int i = 0; i < PARTS; i++) {
		size_t size = i == PARTS - 1 ? n - at : each;

		if (size)
			iov[count++] = (struct iovec){buf + at, size};
		at += size;
	}
	return count;
}

/* Two messages of a call for many: the first half and the rest. */
static int halves(struct mmsghdr *m, struct iovec *iov, char *buf, size_t n)
{
	memset(m, 0, 2 * sizeof(*m));
	iov[0] = (struct iovec){buf, n / 2 ? n / 2 : n};
	iov[1] = (struct iovec){buf + iov[0].iov_len, n - iov[0].iov_len};
	for (int i = 0; i < 2; i++)
		m[i].msg_hdr = (struct msghdr){.msg_iov = &iov[i], .msg_iovlen = 1};
	return iov[1].iov_len ? 2 : 1;
}

static ssize_t both(const struct mmsghdr *m, int n)
{
	return n < 0 ? n : (ssize_t)m[0].msg_len + (n > 1 ? (ssize_t)m[1].msg_len : 0);
}

static ssize_t read_once(const char *call, int fd, char *buf, size_t n)
{
	struct iovec iov[PARTS];
	struct mmsghdr many[2];
	int count;

	if (!strcmp(call, "read"))
		return read(fd, buf, n);
	if (!strcmp(call, "sysread"))
		return syscall(SYS_read, fd, buf, n);
	if (!strcmp(call, "recv"))
		return recv(fd, buf, n, 0);
	if (!strcmp(call, "waitall"))
		return recv(fd, buf, n, MSG_WAITALL);
	if (!strcmp(call, "recvfrom"))
		return recvfrom(fd, buf, n, 0, NULL, NULL);
	if (!strcmp(call, "readv"))
		return readv(fd, iov, pieces(iov, buf, n));
	if (!strcmp(call, "recvmsg")) {
		struct msghdr m = {.msg_iov = iov, .msg_iovlen = (size_t)pieces(iov, buf, n)};

		return recvmsg(fd, &m, 0);
	}
	if (!strcmp(call, "recvmmsg")) {
		count = halves(many, iov, buf, n);
		return both(many, recvmmsg(fd, many, (unsigned)count, MSG_WAITFORONE, NULL));
	}
	errno = ENOSYS;
	return -1;
}

/* Through a file or a pipe: the bytes are in no buffer of this process. */
static ssize_t move(int fd, const char *buf, size_t n, int by_splice)
{
	int file, pipes[2];
	ssize_t sent;

	if (by_splice) {
		if (n > 65536)
			n = 65536;
		if (pipe(pipes) || write(pipes[1], buf, n) != (ssize_t)n)
			return -1;
		sent = splice(pipes[0], NULL, fd, NULL, n, 0);
		close(pipes[0]);
		close(pipes[1]);
		return sent;
	}
	file = memfd_create("bytes", 0);
	if (file < 0 || write(file, buf, n) != (ssize_t)n || lseek(file, 0, SEEK_SET))
		return -1;
	sent = sendfile(fd, file, NULL, n);
	close(file);
	return sent;
}

static ssize_t write_once(const char *call, int fd, char *buf, size_t n)
{
	struct iovec iov[PARTS];
	struct mmsghdr many[2];
	int count;

	if (!strcmp(call, "write"))
		return write(fd, buf, n);
	if (!strcmp(call, "syswrite"))
		return syscall(SYS_write, fd, buf, n);
	if (!strcmp(call, "send"))
		return send(fd, buf, n, MSG_NOSIGNAL);
	if (!strcmp(call, "sendto"))
		return sendto(fd, buf, n, MSG_NOSIGNAL, NULL, 0);
	if (!strcmp(call, "writev"))
		return writev(fd, iov, pieces(iov, buf, n));
	if (!strcmp(call, "sendmsg")) {
		struct msghdr m = {.msg_iov = iov, .msg_iovlen = (size_t)pieces(iov, buf, n)};

		return sendmsg(fd, &m, MSG_NOSIGNAL);
	}
	if (!strcmp(call, "sendmmsg")) {
		count = halves(many, iov, buf, n);
		return both(many, sendmmsg(fd, many, (unsigned)count, MSG_NOSIGNAL));
	}
	if (!strcmp(call, "sendfile") || !strcmp(call, "splice"))
		return move(fd, buf, n, call[1] == 'p');
	errno = ENOSYS;
	return -1;
}

static void do_read(const char *call, int fd, size_t n, size_t size, char *answer, size_t len)
{
	size_t got = 0;
	char *buf = malloc(size);
	ssize_t one = 1;

	while (got < n && one > 0) {
		one = read_once(call, fd, buf, n - got < size ? n - got : size);
		if (one > 0)
			got += (size_t)one;
	}
	snprintf(answer, len, "%zu%s%s", got, one < 0 ? " " : "",
		 one < 0 ? strerrorname_np(errno) : "");
	free(buf);
}

/* HEX, or *N: so many bytes of the letter x. */
static char *bytes_of(const char *text, size_t *n)
{
	char *buf;

	if (text[0] == '*') {
		*n = strtoul(text + 1, NULL, 10);
		buf = malloc(*n);
		memset(buf, 'x', *n);
		return buf;
	}
	*n = strlen(text) / 2;
	buf = malloc(*n + 1);
	for (size_t i = 0; i < *n; i++) {
		char two[3] = {text[2 * i], text[2 * i + 1], 0};

		buf[i] = (char)strtoul(two, NULL, 16);
	}
	return buf;
}

static void do_write(const char *call, int fd, const char *text, size_t size, char *answer,
		     size_t len)
{
	size_t n, at = 0;
	char *buf = bytes_of(text, &n);
	ssize_t one = 1;

	while (at < n && one > 0) {
		one = write_once(call, fd, buf + at, n - at < size ? n - at : size);
		if (one > 0)
			at += (size_t)one;
	}
	snprintf(answer, len, "%zu%s%s", at, one < 0 ? " " : "",
		 one < 0 ? strerrorname_np(errno) : "");
	free(buf);
}

static int address(const char *where, struct sockaddr_storage *ss, socklen_t *len)
{
	struct sockaddr_un *un = (struct sockaddr_un *)ss;
	struct sockaddr_in *in = (struct sockaddr_in *)ss;

	memset(ss, 0, sizeof(*ss));
	if (where && where[0] == '/') {
		un->sun_family = AF_UNIX;
		snprintf(un->sun_path, sizeof(un->sun_path), "%s", where);
		*len = sizeof(*un);
		return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	}
	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	in->sin_port = htons(where ? (uint16_t)atoi(where) : 0);
	*len = sizeof(*in);
	return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static int do_listen(const char *where)
{
	struct sockaddr_storage ss;
	struct sockaddr_in in = {0};
	socklen_t len;

	listener = address(where, &ss, &len);
	if (bind(listener, (struct sockaddr *)&ss, len) || listen(listener, 128))
		return -1;
	len = sizeof(in);
	getsockname(listener, (struct sockaddr *)&in, &len);
	return in.sin_family == AF_INET ? ntohs(in.sin_port) : 0;
}

static int do_connect(const char *where)
{
	struct sockaddr_storage ss;
	socklen_t len;
	int fd = address(where, &ss, &len);

	return connect(fd, (struct sockaddr *)&ss, len) ? -1 : fd;
}

static long ns_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000 + t.tv_nsec;
}

static long do_loop(int out, int in, long count, const char *text)
{
	long least = -1, start, ns;
	size_t n;
	char *buf = bytes_of(text, &n);

	for (int turn = 0; turn < 20; turn++) {
		start = ns_now();
		for (long i = 0; i < count; i++)
			if (write(out, buf, n) != (ssize_t)n || read(in, buf, n) != (ssize_t)n)
				return -1;
		ns = (ns_now() - start) / count;
		if (least < 0 || ns < least)
			least = ns;
	}
	free(buf);
	return least;
}

static void *thread_main(void *arg)
{
	struct thread *t = arg;

	run(t->command, t->answer, sizeof(t->answer));
	return NULL;
}

static int do_bg(const char *command)
{
	struct thread *t = &threads[nthreads];

	t->command = strdup(command);
	return pthread_create(&t->id, NULL, thread_main, t) ? -1 : nthreads++;
}

static void do_child(char *command, char *answer, size_t len)
{
	int pipes[2];
	ssize_t n = 0;
	pid_t pid;

	if (pipe(pipes))
		return;
	pid = fork();
	if (!pid) {
		run(command, answer, len);
		_exit(write(pipes[1], answer, strlen(answer)) < 0);
	}
	close(pipes[1]);
	n = read(pipes[0], answer, len - 1);
	answer[n < 0 ? 0 : n] = '\0';
	close(pipes[0]);
	waitpid(pid, NULL, 0);
}

static int plain(const char *verb, char **arg)
{
	char buf[65536], params[120] = {0};

	if (!strcmp(verb, "listen"))
		return do_listen(arg[0]);
	if (!strcmp(verb, "accept"))
		return accept(listener, NULL, NULL);
	if (!strcmp(verb, "connect"))
		return do_connect(arg[0]);
	if (!strcmp(verb, "uring")) /* struct io_uring_params: 120 bytes */
		return (int)syscall(425, 1, params);
	if (!strcmp(verb, "dup"))
		return dup(atoi(arg[0]));
	if (!strcmp(verb, "dup2"))
		return dup2(atoi(arg[0]), atoi(arg[1]));
	if (!strcmp(verb, "close"))
		return close(atoi(arg[0]));
	if (!strcmp(verb, "shutdown"))
		return shutdown(atoi(arg[0]), arg[1] ? atoi(arg[1]) : SHUT_RDWR);
	if (!strcmp(verb, "peek"))
		return (int)recv(atoi(arg[0]), buf, (size_t)atoi(arg[1]), MSG_PEEK | MSG_WAITALL);
	if (!strcmp(verb, "loop"))
		return (int)do_loop(atoi(arg[0]), atoi(arg[1]), atol(arg[2]), arg[3]);
	errno = ENOSYS;
	return -1;
}

static void run(char *command, char *answer, size_t len)
{
	char *save, *word[5] = {NULL}, *rest = strchr(command, ' ');
	int rc;

	if (rest && !strncmp(command, "bg ", 3)) {
		snprintf(answer, len, "%d", do_bg(rest + 1));
		return;
	}
	if (rest && !strncmp(command, "child ", 6)) {
		do_child(rest + 1, answer, len);
		return;
	}
	word[0] = strtok_r(command, " ", &save);
	for (int i = 1; i < 5 && word[i - 1]; i++)
		word[i] = strtok_r(NULL, " ", &save);
	if (word[0] && !strcmp(word[0], "join")) {
		pthread_join(threads[atoi(word[1])].id, NULL);
		snprintf(answer, len, "%s", threads[atoi(word[1])].answer);
		return;
	}
	if (word[0] && word[3] && !strcmp(word[0], "read")) {
		do_read(word[1], atoi(word[2]), strtoul(word[3], NULL, 10),
			word[4] ? strtoul(word[4], NULL, 10) : 65536, answer, len);
		return;
	}
	if (word[0] && word[3] && !strcmp(word[0], "write")) {
		do_write(word[1], atoi(word[2]), word[3],
			 word[4] ? strtoul(word[4], NULL, 10) : (size_t)-1, answer, len);
		return;
	}
	rc = word[0] ? plain(word[0], &word[1]) : -1;
	snprintf(answer, len, "%d%s%s", rc, rc < 0 ? " " : "",
		 rc < 0 ? strerrorname_np(errno) : "");
}

int main(void)
{
	size_t size = 0;
	char *line = NULL, answer[128];
	ssize_t n;

	prctl(PR_SET_PDEATHSIG, 9);
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	while ((n = getline(&line, &size, stdin)) > 0) {
		line[n - 1] = '\0';
		answer[0] = '\0';
		run(line, answer, sizeof(answer));
		puts(answer);
	}
	return 0;
}
