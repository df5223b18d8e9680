// SPDX-License-Identifier: Apache-2.0
/*
 * A process with libzmq linked into it, stripped: no symbol tells of ZMQ. Commands come as lines on
 * stdin, each is answered by a line.
 *
 *   bind ENDPOINT        a PULL socket, received from by a thread -> its endpoint
 *   connect ENDPOINT     a PUSH socket -> its number
 *   heartbeat MS         of the sockets made later -> 0
 *   send N FRAME...      one message; a frame is text, or *SIZE: so many bytes -> 0
 *   flood N COUNT SIZE   COUNT messages of one frame -> 0
 *   close N              -> 0
 *   count                -> messages received so far
 *   until COUNT          waits until so many were received -> ns from the first to the last
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

#define SOCKETS 4096

static void *ctx, *push[SOCKETS], *pull;
static int npush, heartbeat;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static long received;
static struct timespec first, last;

static void *receiver(void *arg)
{
	zmq_msg_t msg;

	(void)arg;
	for (;;) {
		zmq_msg_init(&msg);
		if (zmq_msg_recv(&msg, pull, 0) < 0)
			return NULL;
		if (!zmq_msg_more(&msg)) {
			pthread_mutex_lock(&lock);
			clock_gettime(CLOCK_MONOTONIC, received++ ? &last : &first);
			pthread_cond_signal(&more);
			pthread_mutex_unlock(&lock);
		}
		zmq_msg_close(&msg);
	}
}

static void *make(int type)
{
	void *s = zmq_socket(ctx, type);
	int linger = 10000, unbounded = 0, patience = 60000;

	zmq_setsockopt(s, ZMQ_LINGER, &linger, sizeof(linger));
	if (type == ZMQ_PULL)
		zmq_setsockopt(s, ZMQ_RCVHWM, &unbounded, sizeof(unbounded));
	if (heartbeat) { /* a busy machine may answer late: no reason to part */
		zmq_setsockopt(s, ZMQ_HEARTBEAT_IVL, &heartbeat, sizeof(heartbeat));
		zmq_setsockopt(s, ZMQ_HEARTBEAT_TIMEOUT, &patience, sizeof(patience));
	}
	return s;
}

static void bind_pull(const char *endpoint)
{
	pthread_t id;
	char bound[256] = "";
	size_t len = sizeof(bound);

	pull = make(ZMQ_PULL);
	if (zmq_bind(pull, endpoint) || zmq_getsockopt(pull, ZMQ_LAST_ENDPOINT, bound, &len)) {
		puts("-1");
		return;
	}
	pthread_create(&id, NULL, receiver, NULL);
	puts(bound);
}

static int send_frames(void *s, char **save)
{
	char *frame = strtok_r(NULL, " ", save);

	while (frame) {
		char *next = strtok_r(NULL, " ", save);
		size_t size = frame[0] == '*' ? strtoul(frame + 1, NULL, 10) : strlen(frame);
		zmq_msg_t msg;

		zmq_msg_init_size(&msg, size);
		if (frame[0] == '*')
			memset(zmq_msg_data(&msg), 'x', size);
		else
			memcpy(zmq_msg_data(&msg), frame, size);
		if (zmq_msg_send(&msg, s, next ? ZMQ_SNDMORE : 0) < 0)
			return -1;
		frame = next;
	}
	return 0;
}

static int flood(void *s, long count, size_t size)
{
	char *buf = calloc(1, size);
	int rc = 0;

	for (long i = 0; i < count && rc >= 0; i++)
		rc = zmq_send(s, buf, size, 0);
	free(buf);
	return rc < 0 ? -1 : 0;
}

static long until(long count)
{
	long ns;

	pthread_mutex_lock(&lock);
	while (received < count)
		pthread_cond_wait(&more, &lock);
	ns = (last.tv_sec - first.tv_sec) * 1000000000 + last.tv_nsec - first.tv_nsec;
	received = 0;
	pthread_mutex_unlock(&lock);
	return ns;
}

static long number(char **save)
{
	char *word = strtok_r(NULL, " ", save);

	return word ? strtol(word, NULL, 10) : 0;
}

static long run(const char *verb, char **save)
{
	long n;

	if (!strcmp(verb, "connect")) {
		push[npush] = make(ZMQ_PUSH);
		return zmq_connect(push[npush], strtok_r(NULL, " ", save)) ? -1 : npush++;
	}
	if (!strcmp(verb, "count")) {
		pthread_mutex_lock(&lock);
		n = received;
		pthread_mutex_unlock(&lock);
		return n;
	}
	n = number(save);
	if (!strcmp(verb, "heartbeat"))
		return heartbeat = (int)n, 0;
	if (!strcmp(verb, "until"))
		return until(n);
	if (n < 0 || n >= npush)
		return -1;
	if (!strcmp(verb, "send"))
		return send_frames(push[n], save);
	if (!strcmp(verb, "close"))
		return zmq_close(push[n]);
	if (!strcmp(verb, "flood")) {
		long count = number(save);

		return flood(push[n], count, (size_t)number(save));
	}
	return -1;
}

int main(void)
{
	size_t size = 0;
	char *line = NULL;
	ssize_t n;

	prctl(PR_SET_PDEATHSIG, 9);
	setvbuf(stdout, NULL, _IOLBF, 0);
	ctx = zmq_ctx_new();
	zmq_ctx_set(ctx, ZMQ_MAX_SOCKETS, SOCKETS);
	puts("ready");
	while ((n = getline(&line, &size, stdin)) > 0) {
		char *save, *verb;

		line[n - 1] = '\0';
		verb = strtok_r(line, " ", &save);
		if (verb && !strcmp(verb, "bind"))
			bind_pull(strtok_r(NULL, " ", &save));
		else
			printf("%ld\n", verb ? run(verb, &save) : -1);
	}
	_exit(0); /* what is open ends with it: a PULL blocks in its thread */
}
