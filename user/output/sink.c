// SPDX-License-Identifier: Apache-2.0
/*
 * A writer thread in front of a descriptor. The descriptor belongs to the outside: it may be a pipe
 * that nobody reads, a terminal that has been stopped, or closed.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "output/output.h"
#include "util/clock.h"

#define QUEUE_BYTES   (64u << 20) /* 50,000 rooms that all pass their deadline at once */
#define CLOSE_WAIT_NS (1 * NS_PER_SEC)

struct line {
	struct line *next;
	size_t len;
	char text[];
};

struct sink {
	int fd;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	struct line *head, **tail;
	size_t bytes; /* queued, the line being written included */
	uint64_t dropped;
	bool stop, dead, started;
	bool done, abandoned; /* the thread has ended; it is the thread that frees s */
	pthread_t thread;
};

/* 0, or -errno: nothing more can be written to the descriptor. */
static int write_all(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(fd, text, len);

		if (n >= 0) {
			text += n;
			len -= (size_t)n;
		} else if (errno == EAGAIN) {
			/* whoever shares the descriptor has made it non-blocking */
			struct pollfd p = {.fd = fd, .events = POLLOUT};

			poll(&p, 1, -1);
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

static void destroy(struct sink *s)
{
	pthread_cond_destroy(&s->cond);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static void *sink_main(void *arg)
{
	struct sink *s = arg;
	bool abandoned;

	pthread_mutex_lock(&s->lock);
	for (;;) {
		struct line *l = s->head;
		int rc = 0;

		if (!l) {
			if (s->stop)
				break;
			pthread_cond_wait(&s->cond, &s->lock);
			continue;
		}
		s->head = l->next;
		if (!s->head)
			s->tail = &s->head;
		if (!s->dead) {
			pthread_mutex_unlock(&s->lock);
			rc = write_all(s->fd, l->text, l->len);
			pthread_mutex_lock(&s->lock);
		}
		/* a full disk may have room again, a broken pipe has no reader for ever */
		if (rc && rc != -ENOSPC && rc != -EDQUOT)
			s->dead = true;
		if (rc || s->dead)
			s->dropped++;
		s->bytes -= l->len;
		free(l);
	}
	s->done = true;
	abandoned = s->abandoned;
	pthread_mutex_unlock(&s->lock);
	if (abandoned)
		destroy(s);
	return NULL;
}

struct sink *sink_open(int fd)
{
	struct sink *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->fd = fd;
	s->tail = &s->head;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->cond, NULL);
	return s;
}

/*
 * At the first line, not before: a thread keeps the capabilities that its creator gives up later.
 * It takes no signals; a SIGPIPE of its writes stays pending in it for ever.
 */
static bool start(struct sink *s)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	s->started = !pthread_create(&s->thread, NULL, sink_main, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return s->started;
}

void sink_write(struct sink *s, const char *text)
{
	size_t len = strlen(text);
	struct line *l = malloc(sizeof(*l) + len + 1);

	if (l) {
		l->next = NULL;
		l->len = len;
		memcpy(l->text, text, len + 1);
	}
	pthread_mutex_lock(&s->lock);
	if (!l || s->dead || s->bytes + len > QUEUE_BYTES || (!s->started && !start(s))) {
		s->dropped++;
		free(l);
	} else {
		*s->tail = l;
		s->tail = &l->next;
		s->bytes += len;
		pthread_cond_signal(&s->cond);
	}
	pthread_mutex_unlock(&s->lock);
}

uint64_t sink_dropped(const struct sink *s)
{
	struct sink *m = (struct sink *)s; /* the lock only */
	uint64_t n;

	pthread_mutex_lock(&m->lock);
	n = s->dropped;
	pthread_mutex_unlock(&m->lock);
	return n;
}

void sink_close(struct sink *s)
{
	uint64_t until = clock_ns(CLOCK_REALTIME) + CLOSE_WAIT_NS;
	struct timespec ts = {.tv_sec = (time_t)(until / NS_PER_SEC),
			      .tv_nsec = (long)(until % NS_PER_SEC)};

	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_signal(&s->cond);
	pthread_mutex_unlock(&s->lock);
	if (s->started && pthread_timedjoin_np(s->thread, NULL, &ts)) {
		pthread_t thread = s->thread;
		bool done;

		/* it sits in a write that may never end */
		pthread_mutex_lock(&s->lock);
		done = s->done;
		s->abandoned = !done;
		pthread_mutex_unlock(&s->lock);
		if (!done) {
			pthread_detach(thread);
			return;
		}
		pthread_join(thread, NULL);
	}
	destroy(s);
}
