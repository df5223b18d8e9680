// SPDX-License-Identifier: Apache-2.0
// A server on the ferry with a number of workers, driven by lines on stdin; each is answered by
// one.
//   request ROOM NEED      a request that waits for NEED peers
//   trouble ROOM HOW       "nolast", "keep", "lift" or "pull" once it comes
//   busy N                 answered when N workers are at a room
//   turn                   answered when a poll that began after this has returned
//   free LANE              the crane's lane moves again
#include "crane.h"
#include "ferry.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOMS = 256, PEERS = 4, OWNERS = 65536, LIFT_LANE = 1, PULL_LANE = 2 };

struct room {
	char name[FERRY_ROOM];
	char trouble[16];
	uint32_t need, hailed, open, given, failed, over;
	struct ferry_pier *piers[PEERS];
};

static struct ferry_harbour *harbour;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct room rooms[ROOMS];
static struct room *owners[OWNERS];
static int working;
static unsigned polls;
static pthread_cond_t worked = PTHREAD_COND_INITIALIZER;

static struct room *room_of(const char *name)
{
	for (int i = 0; i < ROOMS; i++) {
		if (!rooms[i].name[0])
			strncpy(rooms[i].name, name, FERRY_ROOM - 1);
		if (!strcmp(rooms[i].name, name))
			return &rooms[i];
	}
	abort();
}

static void hear(const struct ferry_news *news)
{
	struct room *r;

	pthread_mutex_lock(&lock);
	r = room_of(news->room);
	if (news->word == FERRY_HAIL && r->hailed < PEERS) {
		r->need = news->need;
		r->piers[r->hailed++] = news->pier;
		if (r->hailed == r->need)
			ferry_hand(harbour, r->name);
	}
	pthread_mutex_unlock(&lock);
}

static void *ears(void *unused)
{
	struct ferry_news news;

	while (!ferry_news(harbour, &news))
		hear(&news);
	return unused;
}

// Everybody has got everything, or something went wrong.
static void finish(struct room *r)
{
	int bad = r->failed && strcmp(r->trouble, "keep");

	if (r->over || !(bad || (r->given && !r->open && !r->failed)))
		return;
	r->over = 1;
	for (uint32_t i = 0; i < r->hailed; i++)
		ferry_farewell(r->piers[i], r->name, r->failed ? FERRY_SUNK : FERRY_LANDED);
}

static void *eyes(void *unused)
{
	struct ferry_arrival came[8];

	for (;;) {
		int n = ferry_poll(harbour, came, 8);

		pthread_mutex_lock(&lock);
		polls++;
		pthread_cond_broadcast(&worked);
		for (int i = 0; i < n; i++) {
			struct room *r = owners[came[i].handle % OWNERS];

			if (!r)
				continue;
			r->open--;
			r->failed |= came[i].code != FERRY_LANDED;
			finish(r);
		}
		pthread_mutex_unlock(&lock);
	}
	return unused;
}

static void ship(struct room *r, uint32_t to, int first, const void *data, uint32_t lane)
{
	struct ferry_cargo *cargo = calloc(2, sizeof(*cargo));

	for (int i = 0; cargo && i < 2; i++) {
		char tag[FERRY_TAG];

		if (first + i == 3)
			snprintf(tag, sizeof(tag), "%s/meta/%u", r->name, to);
		else
			snprintf(tag, sizeof(tag), "%s/kv/%d/%d/%u", r->name, first + i,
				 first + i == 2, to);
		if (ferry_book(r->piers[to], tag, &cargo[i]))
			abort();
		cargo[i].next = i ? NULL : &cargo[1];
		cargo[i].data = data;
		cargo[i].size = FERRY_SIZE;
		cargo[i].lane = lane;
		pthread_mutex_lock(&lock);
		owners[cargo[i].handle % OWNERS] = r;
		r->open++;
		pthread_mutex_unlock(&lock);
	}
	if (!cargo || ferry_load(r->piers[to], cargo))
		abort();
	free(cargo);
}

static void serve(struct room *r)
{
	unsigned char data[FERRY_SIZE];
	int pull = !strcmp(r->trouble, "pull"), lift = !strcmp(r->trouble, "lift");

	if (crane_pull(pull ? PULL_LANE : 0, sizeof(data), (unsigned char)r->name[0], data))
		abort();
	for (uint32_t to = 0; to < r->hailed; to++)
		ship(r, to, 0, data, 0);
	if (!strcmp(r->trouble, "nolast"))
		return;
	for (uint32_t to = 0; to < r->hailed; to++)
		ship(r, to, 2, data, lift ? LIFT_LANE : 0);
	pthread_mutex_lock(&lock);
	r->given = 1;
	finish(r);
	pthread_mutex_unlock(&lock);
}

static void at_work(int by)
{
	pthread_mutex_lock(&lock);
	working += by;
	pthread_cond_broadcast(&worked);
	pthread_mutex_unlock(&lock);
}

static void *hands(void *unused)
{
	char name[FERRY_ROOM];

	while (!ferry_take(harbour, name)) {
		struct room *r;

		pthread_mutex_lock(&lock);
		r = room_of(name);
		pthread_mutex_unlock(&lock);
		at_work(1);
		serve(r);
		at_work(-1);
		ferry_leave(harbour, name);
	}
	return unused;
}

static void obey(const char *line)
{
	char name[FERRY_ROOM], how[16];
	unsigned n;
	struct room *r;

	if (sscanf(line, "request %47s %u", name, &n) == 2) {
		ferry_expect(harbour, name, n);
	} else if (sscanf(line, "trouble %47s %15s", name, how) == 2) {
		pthread_mutex_lock(&lock);
		r = room_of(name);
		memcpy(r->trouble, how, sizeof(how));
		pthread_mutex_unlock(&lock);
		if (!strcmp(how, "lift"))
			crane_jam(LIFT_LANE, 1);
		if (!strcmp(how, "pull"))
			crane_jam(PULL_LANE, 1);
	} else if (sscanf(line, "busy %u", &n) == 1) {
		pthread_mutex_lock(&lock);
		while (working != (int)n)
			pthread_cond_wait(&worked, &lock);
		pthread_mutex_unlock(&lock);
	} else if (!strcmp(line, "turn\n")) {
		pthread_mutex_lock(&lock);
		for (n = polls + 2; (int)(polls - n) < 0;)
			pthread_cond_wait(&worked, &lock);
		pthread_mutex_unlock(&lock);
	} else if (sscanf(line, "free %u", &n) == 1) {
		crane_jam((int)n, 0);
	} else {
		puts("what?");
		return;
	}
	puts("ok");
}

int main(int argc, char **argv)
{
	int port, workers = argc > 1 ? atoi(argv[1]) : 4;
	pthread_t thread;
	char line[128];

	setvbuf(stdout, NULL, _IOLBF, 0);
	harbour = ferry_open("tcp", &port);
	if (!harbour)
		return 1;
	pthread_create(&thread, NULL, ears, NULL);
	pthread_create(&thread, NULL, eyes, NULL);
	for (int i = 0; i < workers; i++)
		pthread_create(&thread, NULL, hands, NULL);
	printf("port %d\n", port);
	while (fgets(line, sizeof(line), stdin))
		obey(line);
	return 0;
}
