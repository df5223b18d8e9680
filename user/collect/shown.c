// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#define HASH_NONFATAL_OOM        1
#define uthash_nonfatal_oom(elt) ((elt)->hh.tbl = NULL)
#include <uthash.h>

#include "collect/shown.h"

struct shown {
	struct shown_key {
		uint32_t pid;
		int32_t probe;
	} key;
	bool whole; /* it has shown a whole message */
	bool begun; /* a socket has shown one of its messages */
	UT_hash_handle hh;
};

static struct shown *find(struct shown *all, uint32_t pid, int probe)
{
	struct shown_key key = {.pid = pid, .probe = probe};
	struct shown *s;

	HASH_FIND(hh, all, &key, sizeof(key), s);
	return s;
}

/* NULL: no memory. */
static struct shown *get(struct shown **all, uint32_t pid, int probe)
{
	struct shown *s = find(*all, pid, probe);

	if (s)
		return s;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->key = (struct shown_key){.pid = pid, .probe = probe};
	HASH_ADD(hh, *all, key, sizeof(s->key), s);
	if (s->hh.tbl)
		return s;
	free(s);
	return NULL;
}

bool shown_first(struct shown **all, uint32_t pid, int probe)
{
	struct shown *s = get(all, pid, probe);
	bool first = s && !s->begun && !s->whole;

	if (s)
		s->begun = true;
	return first;
}

void shown_message(struct shown **all, uint32_t pid, int probe)
{
	struct shown *s = get(all, pid, probe);

	if (s)
		s->whole = true;
}

bool shown_whole(struct shown *all, uint32_t pid, int probe)
{
	const struct shown *s = find(all, pid, probe);

	return s && s->whole;
}

void shown_gone(struct shown **all, uint32_t pid)
{
	struct shown *s, *next;

	HASH_ITER (hh, *all, s, next)
		if (s->key.pid == pid) {
			HASH_DEL(*all, s);
			free(s);
		}
}

void shown_free(struct shown **all)
{
	struct shown *s, *next;

	HASH_ITER (hh, *all, s, next) {
		HASH_DEL(*all, s);
		free(s);
	}
}
