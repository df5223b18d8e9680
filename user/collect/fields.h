/* SPDX-License-Identifier: Apache-2.0 */
/* From a hit's arguments and captures to the fields of an event, by a plan made once per
 * alternative. */
#ifndef SP_COLLECT_FIELDS_H
#define SP_COLLECT_FIELDS_H

#include "event/event.h"
#include "profile/profile.h"
#include "sp_shared.h"

enum field {
	F_ROOM,
	F_OP,
	F_KIND,
	F_CHUNK,
	F_LAST,
	F_RANK,
	F_PART,
	F_PARTS,
	F_PEER,
	F_AGENT,
	F_NEED,
	F_RID,
	F_STATUS,
	F_ERROR,
	F_NOTE,
	F_CREATED,
	F_BYTES,
	F_OBJECT,
	F_COUNT,
	F_WORK,
	F_ADDRESS,
	F_SEGMENT,
	F_PAGES,
	F_BASES,
	F_ITEM,
	F_MAX,
};

enum field_from { FROM_NOWHERE = 0, FROM_CONST, FROM_ARG, FROM_CAPTURE, FROM_TEMPLATE };

struct field_plan {
	const struct evt_spec *spec;
	struct {
		enum field_from from;
		int arg;
		uint8_t element; /* an array's: bytes of an element */
		const char *
			text; /* constant, name of the capture, or template; owned by the profile */
	} f[F_MAX];
	uint8_t used[F_MAX]; /* the fields that come from somewhere */
	int nused;
	uint32_t covers;
};

/* What an event's record says beside the event: by what the event is tied to a room. */
struct array_ref {
	const char *raw; /* little-endian, not aligned; valid until the next record */
	size_t n;
	uint8_t size; /* bytes of an element */
	bool cut;     /* there are more, which were not copied */
};
enum field_work { WORK_NONE = 0, WORK_BEGIN, WORK_END };
struct event_more {
	bool has_address, has_segment, has_item;
	enum field_work work;
	uint64_t address, segment, item;
	struct array_ref pages, bases;
};

void fields_plan(const struct profile *p, const struct profile_probe *pr, const struct evt_match *m,
		 struct field_plan *plan);
/* Index of the argument of that name, -1. */
int fields_arg_named(const struct profile_probe *pr, const char *name);
/* 1: ev is filled, and *more (cleared before by the caller); 0: it lacks the room that its role
 * needs; -EFAULT: an argument could not be read, or not all of the room. */
int fields_fill(const struct profile *p, const struct profile_probe *pr,
		const struct field_plan *plan, const struct sp_rec_hit *rec, size_t len,
		const struct captures *caps, struct sp_event *ev, struct event_more *more);

struct arg_value {
	bool is_num;
	uint64_t num;
	const char *text; /* into the record; of a number "" until arg_text */
	size_t text_len, full_len;
	char own[24];
};
/* 0; -ENODATA: not there (no alternative applied); another -errno: the read failed. On an error the
 * value is an empty text. */
int fields_arg(const struct profile_probe *pr, const struct sp_rec_hit *rec, size_t len, int arg,
	       struct arg_value *v);
/* Give a number its text; hex: as the profile says, else in decimal always. */
void fields_arg_text(const struct profile_probe *pr, int arg, bool hex, struct arg_value *v);

#endif
