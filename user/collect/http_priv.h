/* SPDX-License-Identifier: Apache-2.0 */
/* What is held of requests, shared by http.c, which follows them, and http_say.c, which tells. */
#ifndef SP_COLLECT_HTTP_PRIV_H
#define SP_COLLECT_HTTP_PRIV_H

#define HASH_NONFATAL_OOM        1
#define uthash_nonfatal_oom(elt) ((elt)->hh.tbl = NULL)
#include <uthash.h>

#include "collect/http.h"
#include "collect/values.h"

/* A request whose body comes in. */
struct coming {
	uint32_t num;
	bool aborts; /* it goes to the path that aborts */
	bool cut;    /* a value is missing: one too many */
	bool replied, over;
	uint16_t code;
	struct values key[SOCK_NKEYS];
};

/* One that came in whole and has not been answered. */
struct request {
	uint32_t num, nrooms;
	uint16_t code; /* of the reply's head; 0: none yet */
	struct request *next;
	struct http_room rooms[];
};

struct stream {
	uint64_t id;
	uint32_t pid;
	uint16_t probe;
	bool receiving;
	uint64_t reset_ns; /* 0: it goes on */
	struct coming in;
	struct request *first, *last;
	UT_hash_handle hh;
};

struct http {
	const struct profile *p;
	const struct sock_out *out;
	struct stream *by_id;
	size_t held;
	uint64_t over;
	uint64_t due_ns; /* when the oldest reset stream is over; 0: there is none */
};

/* The profile's entry of a probe. NULL: none. */
const struct sock_entry *http_entry(const struct http *h, uint16_t probe);
/* kind: of the event; note: why, or "". What the profile does not want told is left out. */
void http_say(const struct http *h, const struct stream *s, uint32_t num, const struct http_room *r,
	      enum sp_role role, const char *kind, uint64_t ns, int64_t code, const char *note);
/* The same of each of its rooms. */
void http_say_all(const struct http *h, const struct stream *s, const struct request *r,
		  enum sp_role role, const char *kind, uint64_t ns, int64_t code, const char *note);
/* tracked: its reply will be seen. */
void http_arrive(const struct http *h, const struct stream *s, uint32_t num,
		 const struct http_room *r, uint64_t ns, bool tracked);

#endif
