// SPDX-License-Identifier: Apache-2.0
// A transport that exists for the tests only: peers hail over TCP, cargo is booked, loaded by lists
// and polled by arrays, and a farewell ends a room.
#ifndef FERRY_H
#define FERRY_H

#include <stdint.h>

enum { FERRY_ROOM = 48, FERRY_NAME = 32, FERRY_TAG = 64, FERRY_SIZE = 4096 };
enum ferry_code { FERRY_LANDED = 0, FERRY_SUNK = 3, FERRY_CUSTOMS = 7 };
enum ferry_word { FERRY_HAIL = 1, FERRY_WAVE_OFF, FERRY_RECEIPT, FERRY_CARGO, FERRY_FAREWELL };

// What a peer sends.
struct ferry_wire {
	uint32_t word, need;
	uint64_t handle;
	int32_t code;
	uint32_t spare;
	char room[FERRY_ROOM];
	char name[FERRY_NAME];
};

// What it gets, with size bytes behind it.
struct ferry_label {
	uint32_t word, size;
	uint64_t handle;
	int32_t code;
	uint32_t spare;
	char tag[FERRY_TAG];
};

struct ferry_pier;
struct ferry_harbour;

// A list of work; its handles come from ferry_book.
struct ferry_cargo {
	struct ferry_cargo *next;
	uint64_t handle;
	const void *data;
	uint32_t size, lane;
	unsigned seal;
	unsigned char staged[FERRY_SIZE];
	char tag[FERRY_TAG];
};

struct dock_ops {
	int (*ready)(struct ferry_pier *);
	int (*shove)(struct ferry_pier *, struct ferry_cargo *list);
};

struct ferry_pier {
	struct ferry_harbour *harbour;
	const struct dock_ops *ops;
	uint32_t number;
	int fd;
	char name[FERRY_NAME];
};

struct ferry_news {
	uint32_t word, need;
	char room[FERRY_ROOM];
	char name[FERRY_NAME];
	struct ferry_pier *pier;
};

struct ferry_arrival {
	uint64_t handle;
	int32_t code;
	uint32_t pier;
};

struct ferry_harbour *ferry_open(const char *driver, int *port);
// The server knows of a room before its peers come.
int ferry_expect(struct ferry_harbour *, const char *room, uint32_t need);
// The next hail or wave-off; waits for one.
int ferry_news(struct ferry_harbour *, struct ferry_news *out);
// Work for the threads that ship; take waits for some.
int ferry_hand(struct ferry_harbour *, const char *room);
int ferry_take(struct ferry_harbour *, char *room);
int ferry_leave(struct ferry_harbour *, const char *room);
int ferry_book(struct ferry_pier *, const char *tag, struct ferry_cargo *out);
int ferry_load(struct ferry_pier *, struct ferry_cargo *list);
// How many have arrived, at most max; 0 after a while without any.
int ferry_poll(struct ferry_harbour *, struct ferry_arrival *out, int max);
int ferry_farewell(struct ferry_pier *, const char *room, int code);

// For drivers.
void dock_enlist(const char *name, const struct dock_ops *);
int dock_write(int fd, const void *data, uint32_t size);

#endif
