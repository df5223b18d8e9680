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
	F_MAX,
};

enum field_from { FROM_NOWHERE = 0, FROM_CONST, FROM_ARG, FROM_CAPTURE, FROM_TEMPLATE };

struct field_plan {
	const struct evt_spec *spec;
	struct {
		enum field_from from;
		int arg;
		const char *
			text; /* constant, name of the capture, or template; owned by the profile */
	} f[F_MAX];
	uint32_t covers;
};

void fields_plan(const struct profile *p, const struct profile_probe *pr, const struct evt_match *m,
		 struct field_plan *plan);
/* 1: ev is filled; 0: it lacks the room that its role needs; -EFAULT: an argument could not be
 * read. */
int fields_fill(const struct profile *p, const struct profile_probe *pr,
		const struct field_plan *plan, const struct sp_rec_hit *rec, size_t len,
		const struct captures *caps, struct sp_event *ev);

struct arg_value {
	bool is_num;
	uint64_t num;
	const char *text; /* into the record, or own[] */
	size_t text_len, full_len;
	char own[24];
};
/* 0; -ENODATA: not there (no alternative applied); another -errno: the read failed. On an error the
 * value is an empty text. */
int fields_arg(const struct profile_probe *pr, const struct sp_rec_hit *rec, size_t len, int arg,
	       struct arg_value *v);

#endif
