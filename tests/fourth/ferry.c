// SPDX-License-Identifier: Apache-2.0
#include "ferry.h"
#include "crane.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PIERS = 32, QUEUE = 1024 };

struct ferry_harbour {
	void *reserved;
	const struct dock_ops *ops;
	int fd;
	uint64_t handles;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct ferry_pier piers[PIERS];
	pthread_mutex_t writing[PIERS];
	uint32_t piers_n;
	struct ferry_news news[QUEUE];
	uint32_t news_in, news_out;
	struct ferry_arrival arrivals[QUEUE];
	uint32_t arrivals_in, arrivals_out;
	char orders[QUEUE][FERRY_ROOM];
	uint32_t orders_in, orders_out;
};

static struct {
	const char *name;
	const struct dock_ops *ops;
} drivers[4];

void dock_enlist(const char *name, const struct dock_ops *ops)
{
	for (unsigned i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
		if (drivers[i].name)
			continue;
		drivers[i].name = name;
		drivers[i].ops = ops;
		return;
	}
}

static int whole(int fd, char *data, size_t size, int out)
{
	while (size) {
		ssize_t n = out ? send(fd, data, size, MSG_NOSIGNAL) : recv(fd, data, size, 0);

		if (n <= 0)
			return -1;
		data += n;
		size -= (size_t)n;
	}
	return 0;
}

int dock_write(int fd, const void *data, uint32_t size)
{
	return whole(fd, (char *)data, size, 1);
}

static void heard(struct ferry_harbour *h, struct ferry_pier *pier, const struct ferry_wire *w)
{
	pthread_mutex_lock(&h->lock);
	if (w->word == FERRY_RECEIPT) {
		h->arrivals[h->arrivals_in++ % QUEUE] = (struct ferry_arrival){
			.handle = w->handle, .code = w->code, .pier = pier->number};
	} else {
		struct ferry_news *news = &h->news[h->news_in++ % QUEUE];

		*news = (struct ferry_news){.word = w->word, .need = w->need, .pier = pier};
		memcpy(news->room, w->room, sizeof(news->room) - 1);
		memcpy(news->name, w->name, sizeof(news->name) - 1);
		memcpy(pier->name, news->name, sizeof(pier->name));
	}
	pthread_cond_broadcast(&h->changed);
	pthread_mutex_unlock(&h->lock);
}

static void *listen_to(void *arg)
{
	struct ferry_pier *pier = arg;
	struct ferry_wire w;

	while (!whole(pier->fd, (char *)&w, sizeof(w), 0))
		heard(pier->harbour, pier, &w);
	return NULL;
}

static void *accept_all(void *arg)
{
	struct ferry_harbour *h = arg;
	pthread_t thread;

	while (h->piers_n < PIERS) {
		int fd = accept(h->fd, NULL, NULL);
		uint32_t n = h->piers_n;
		struct ferry_pier *pier = &h->piers[n];

		if (fd < 0)
			continue;
		*pier = (struct ferry_pier){.harbour = h, .ops = h->ops, .number = n + 1, .fd = fd};
		pthread_mutex_init(&h->writing[n], NULL);
		h->piers_n++;
		if (pier->ops->ready(pier) || pthread_create(&thread, NULL, listen_to, pier))
			abort();
	}
	return NULL;
}

struct ferry_harbour *ferry_open(const char *driver, int *port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(at);
	struct ferry_harbour *h = calloc(1, sizeof(*h));
	pthread_t thread;

	if (!h)
		return NULL;
	for (unsigned i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
		if (drivers[i].name && !strcmp(drivers[i].name, driver))
			h->ops = drivers[i].ops;
	}
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->changed, NULL);
	h->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (!h->ops || h->fd < 0 || bind(h->fd, (struct sockaddr *)&at, sizeof(at)) ||
	    listen(h->fd, PIERS) || getsockname(h->fd, (struct sockaddr *)&at, &size) ||
	    pthread_create(&thread, NULL, accept_all, h)) {
		free(h);
		return NULL;
	}
	*port = ntohs(at.sin_port);
	return h;
}

int ferry_expect(struct ferry_harbour *h, const char *room, uint32_t need)
{
	return h && *room && need ? 0 : -1;
}

int ferry_news(struct ferry_harbour *h, struct ferry_news *out)
{
	pthread_mutex_lock(&h->lock);
	while (h->news_in == h->news_out)
		pthread_cond_wait(&h->changed, &h->lock);
	*out = h->news[h->news_out++ % QUEUE];
	pthread_mutex_unlock(&h->lock);
	return 0;
}

int ferry_hand(struct ferry_harbour *h, const char *room)
{
	pthread_mutex_lock(&h->lock);
	strncpy(h->orders[h->orders_in++ % QUEUE], room, FERRY_ROOM - 1);
	pthread_cond_broadcast(&h->changed);
	pthread_mutex_unlock(&h->lock);
	return 0;
}

int ferry_take(struct ferry_harbour *h, char *room)
{
	pthread_mutex_lock(&h->lock);
	while (h->orders_in == h->orders_out)
		pthread_cond_wait(&h->changed, &h->lock);
	memcpy(room, h->orders[h->orders_out++ % QUEUE], FERRY_ROOM);
	pthread_mutex_unlock(&h->lock);
	return 0;
}

int ferry_leave(struct ferry_harbour *h, const char *room)
{
	return h && *room ? 0 : -1;
}

int ferry_book(struct ferry_pier *pier, const char *tag, struct ferry_cargo *out)
{
	pthread_mutex_lock(&pier->harbour->lock);
	out->handle = 0xb0a70000 + ++pier->harbour->handles;
	pthread_mutex_unlock(&pier->harbour->lock);
	strncpy(out->tag, tag, sizeof(out->tag) - 1);
	return 0;
}

int ferry_load(struct ferry_pier *pier, struct ferry_cargo *list)
{
	pthread_mutex_t *writing = &pier->harbour->writing[pier->number - 1];
	int code = 0;

	for (struct ferry_cargo *c = list; c; c = c->next) {
		if (c->size > sizeof(c->staged) ||
		    crane_lift(c->staged, c->data, c->size, (int)c->lane) ||
		    crane_seal(c->staged, c->size, 0, &c->seal))
			return -1;
	}
	pthread_mutex_lock(writing);
	code = pier->ops->shove(pier, list);
	pthread_mutex_unlock(writing);
	return code;
}

int ferry_poll(struct ferry_harbour *h, struct ferry_arrival *out, int max)
{
	struct timespec until;
	int n = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 20000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_mutex_lock(&h->lock);
	while (h->arrivals_in == h->arrivals_out) {
		if (pthread_cond_timedwait(&h->changed, &h->lock, &until))
			break;
	}
	while (n < max && h->arrivals_in != h->arrivals_out)
		out[n++] = h->arrivals[h->arrivals_out++ % QUEUE];
	pthread_mutex_unlock(&h->lock);
	return n;
}

int ferry_farewell(struct ferry_pier *pier, const char *room, int code)
{
	pthread_mutex_t *writing = &pier->harbour->writing[pier->number - 1];
	struct ferry_label label = {.word = FERRY_FAREWELL, .code = code};
	int failed;

	strncpy(label.tag, room, sizeof(label.tag) - 1);
	pthread_mutex_lock(writing);
	failed = dock_write(pier->fd, &label, sizeof(label));
	pthread_mutex_unlock(writing);
	return failed;
}
