// SPDX-License-Identifier: Apache-2.0
/*
 * The program that the attach smoke test watches. It does what the lines on its standard input say
 * and answers each with a line. usage: smoke_target LIBRARY... (opened at the start)
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "smoke_lib.h"

static void *find(const char *name)
{
	void *f = dlsym(RTLD_DEFAULT, name);

	if (!f) {
		printf("no %s\n", name);
		exit(1);
	}
	return f;
}

static void open_lib(const char *path)
{
	if (!dlopen(path, RTLD_NOW | RTLD_GLOBAL)) {
		printf("%s\n", dlerror());
		exit(1);
	}
}

static void do_stack(void)
{
	long (*fn)(long, long, long, long, long, long, long, const char *, long, int *) =
		find("smoke_stack");
	int j = 1010;

	fn(1, 2, 3, 4, 5, 6, 7, "eight", 9, &j);
}

static void do_polls(int times, int answer, int fresh)
{
	static struct smoke_op op;
	struct smoke_op *out = NULL;
	int (*status)(struct smoke_op *) = find("smoke_status");
	int (*make)(int, struct smoke_op **, struct smoke_op *) = find("smoke_make");
	int (*release)(struct smoke_op *) = find("smoke_release");

	op.answer = answer;
	if (fresh)
		make(0, &out, &op);
	for (int i = 0; i < times; i++)
		status(&op);
	if (fresh == 2)
		release(&op);
}

/* ---- libzmq, by its ABI ---------------------------------------------------------------------- */

#define ZMQ_PULL     7
#define ZMQ_PUSH     8
#define ZMQ_SNDMORE  2
#define ZMQ_RCVTIMEO 27

struct zmq {
	void *ctx, *pull, *push;
	int (*recv)(void *, void *, int);
	int (*send)(void *, void *, int);
	int (*init)(void *);
	int (*init_size)(void *, size_t);
	void *(*data)(void *);
	int (*more)(const void *);
	int (*close)(void *);
} zmq;

static pthread_t zmq_thread;

static void *zmq_reader(void *arg)
{
	char msg[64] __attribute__((aligned(64)));

	for (;;) {
		zmq.init(msg);
		int n = zmq.recv(msg, zmq.pull, 0);
		int stop = n == 4 && !memcmp(zmq.data(msg), "STOP", 4);

		zmq.close(msg);
		if (n < 0 || stop)
			return arg;
	}
}

static void zmq_start(void)
{
	void *(*new_ctx)(void);
	void *(*sock)(void *, int);
	int (*bind_to)(void *, const char *), (*connect_to)(void *, const char *);

	new_ctx = (void *(*)(void))find("zmq_ctx_new");
	sock = (void *(*)(void *, int))find("zmq_socket");
	bind_to = (int (*)(void *, const char *))find("zmq_bind");
	connect_to = (int (*)(void *, const char *))find("zmq_connect");
	zmq.recv = (int (*)(void *, void *, int))find("zmq_msg_recv");
	zmq.send = (int (*)(void *, void *, int))find("zmq_msg_send");
	zmq.init = (int (*)(void *))find("zmq_msg_init");
	zmq.init_size = (int (*)(void *, size_t))find("zmq_msg_init_size");
	zmq.data = (void *(*)(void *))find("zmq_msg_data");
	zmq.close = (int (*)(void *))find("zmq_msg_close");
	zmq.ctx = new_ctx();
	zmq.pull = sock(zmq.ctx, ZMQ_PULL);
	zmq.push = sock(zmq.ctx, ZMQ_PUSH);
	if (bind_to(zmq.pull, "inproc://smoke") || connect_to(zmq.push, "inproc://smoke"))
		exit(1);
	pthread_create(&zmq_thread, NULL, zmq_reader, NULL);
}

/* "a|b|c": three frames; "*N" stands for N bytes of "x". */
static void zmq_send_message(char *text)
{
	char msg[64] __attribute__((aligned(64)));

	while (text) {
		char *frame = strsep(&text, "|");
		size_t len = frame[0] == '*' ? strtoul(frame + 1, NULL, 10) : strlen(frame);

		zmq.init_size(msg, len);
		if (frame[0] == '*')
			memset(zmq.data(msg), 'x', len);
		else
			memcpy(zmq.data(msg), frame, len);
		zmq.send(msg, zmq.push, text ? ZMQ_SNDMORE : 0);
	}
}

static void zmq_poll_empty(int times)
{
	char msg[64] __attribute__((aligned(64)));
	void *(*sock)(void *, int) = (void *(*)(void *, int))find("zmq_socket");
	void *idle = sock(zmq.ctx, ZMQ_PULL);

	zmq.init(msg);
	for (int i = 0; i < times; i++)
		zmq.recv(msg, idle, 1); /* ZMQ_DONTWAIT: nothing there */
	zmq.close(msg);
}

/* ---- processes ------------------------------------------------------------------------------- */

static pid_t child;

static void loop(FILE *in, FILE *out);

/* A child that obeys lines of its own, sent by "child LINE". */
static int to_child[2], from_child[2];

static void fork_child(void)
{
	if (pipe(to_child) || pipe(from_child))
		exit(1);
	pid_t parent = getpid();

	child = fork();
	if (child)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1); /* it has ended before it could be noticed */
	loop(fdopen(to_child[0], "r"), fdopen(from_child[1], "w"));
	_exit(0);
}

static void ask_child(const char *line)
{
	char answer[256];
	size_t n = 0;

	dprintf(to_child[1], "%s\n", line);
	while (n < sizeof(answer) - 1 && read(from_child[0], answer + n, 1) == 1 &&
	       answer[n] != '\n')
		n++;
}

/* "FUNCTION NUMBER": long f(long), here or in a thread of its own. */
struct job {
	long (*fn)(long);
	long arg;
	pthread_t thread;
} job;

static struct job read_job(char *line)
{
	char *name = strsep(&line, " ");

	return (struct job){.fn = (long (*)(long))find(name), .arg = strtol(line, NULL, 0)};
}

static void *run_job(void *arg)
{
	struct job *j = arg;

	j->fn(j->arg);
	return NULL;
}

/* No system call of a probe from here on: so do container runtimes and systemd, with a list of
 * those that they know. */
static void take_filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 335, 2, 0), /* uretprobe, of x86-64 */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 336, 1, 0), /* uprobe */
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	};
	const struct sock_fprog filter = {sizeof(code) / sizeof(code[0]), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		exit(1);
}

static void do_line(char *line, FILE *out)
{
	char *word = strsep(&line, " ");
	long n = line ? strtol(line, NULL, 0) : 0;

	if (!strcmp(word, "scalars")) {
		((long (*)(int, unsigned char, long))find("smoke_scalars"))(-5, 200, n);
	} else if (!strcmp(word, "stack")) {
		do_stack();
	} else if (!strcmp(word, "text")) {
		((int (*)(const char *))find("smoke_text"))(line ? line : "");
	} else if (!strcmp(word, "release")) {
		((int (*)(struct smoke_op *))find("smoke_release"))(&(struct smoke_op){(int)n});
	} else if (!strcmp(word, "make")) {
		struct smoke_op op = {0}, *p = NULL;

		((int (*)(int, struct smoke_op **, struct smoke_op *))find("smoke_make"))((int)n,
											  &p, &op);
	} else if (!strcmp(word, "polls")) {
		int times, answer, fresh;

		if (sscanf(line, "%d %d %d", &times, &answer, &fresh) == 3)
			do_polls(times, answer, fresh);
	} else if (!strcmp(word, "ways")) {
		((long (*)(long))find("smoke_ways"))(n);
	} else if (!strcmp(word, "registers")) {
		int (*fn)(long (*)(long), long) = find("smoke_saved_registers");

		fprintf(out, "bad=%d ", fn(find("smoke_ways"), n));
	} else if (!strcmp(word, "string")) {
		char *text = strsep(&line, " ");

		((long (*)(const char *, const char *))find("smoke_call_string"))(text, line);
	} else if (!strcmp(word, "throw")) {
		fprintf(out, "thrown=%d ", ((int (*)(long))find("smoke_call_throw"))(n));
	} else if (!strcmp(word, "call")) {
		struct job j = read_job(line);

		fprintf(out, "%ld ", j.fn(j.arg));
	} else if (!strcmp(word, "thread")) {
		job = read_job(line);
		pthread_create(&job.thread, NULL, run_job, &job);
	} else if (!strcmp(word, "ended")) {
		pthread_join(job.thread, NULL);
	} else if (!strcmp(word, "open")) {
		open_lib(line);
	} else if (!strcmp(word, "filter")) {
		take_filter();
	} else if (!strcmp(word, "zmq")) {
		zmq_start();
	} else if (!strcmp(word, "send")) {
		zmq_send_message(line);
	} else if (!strcmp(word, "join")) {
		pthread_join(zmq_thread, NULL);
	} else if (!strcmp(word, "empty")) {
		zmq_poll_empty((int)n);
	} else if (!strcmp(word, "fork")) {
		fork_child();
		fprintf(out, "pid=%d ", child);
	} else if (!strcmp(word, "child")) {
		ask_child(line);
	} else if (!strcmp(word, "killchild")) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	} else if (!strcmp(word, "exec")) {
		char *argv[16];
		int argc = 0;

		while (line && argc < 15)
			argv[argc++] = strsep(&line, " ");
		argv[argc] = NULL;
		execv(argv[0], argv);
		fprintf(out, "exec failed ");
	} else if (!strcmp(word, "spawn")) {
		/* vfork and exec, as subprocess does */
		pid_t pid = vfork();

		if (pid == 0) {
			execl("/bin/true", "true", (char *)NULL);
			_exit(1);
		}
		waitpid(pid, NULL, 0);
	} else {
		fprintf(out, "what? ");
	}
	fprintf(out, "ok\n");
	fflush(out);
}

static void loop(FILE *in, FILE *out)
{
	char line[4096];

	while (fgets(line, sizeof(line), in)) {
		line[strcspn(line, "\n")] = 0;
		do_line(line, out);
	}
}

int main(int argc, char **argv)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 1; i < argc; i++)
		open_lib(argv[i]);
	printf("ready\n");
	fflush(stdout);
	loop(stdin, stdout);
	return 0;
}
