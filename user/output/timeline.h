/* SPDX-License-Identifier: Apache-2.0 */
/* The timeline of one life: for a person, and as a trace for Perfetto. */
#ifndef SP_OUTPUT_TIMELINE_H
#define SP_OUTPUT_TIMELINE_H

#include <stdio.h>

#include "store/store.h"

#define TIMELINE_NAME 40
struct timeline_event {
	struct sp_event ev;
	bool own; /* given to this life; else what befell the watch, or was seen of the room before
		   */
};
struct timeline {
	struct rec_life life;
	struct timeline_event *ev; /* in order of time */
	size_t nev, cap_ev;
	struct rec_alert *alerts; /* this life's, in order */
	size_t nalerts, cap_alerts;
	char (*probe)[TIMELINE_NAME]; /* names of the probes */
	int nprobes;
};
int timeline_load(struct recording *r, const struct rec_life *l, struct timeline *t,
		  struct sp_err *err);
void timeline_free(struct timeline *t);
/* The event in words; a call's begin with the name of its probe. */
void timeline_describe(const struct timeline *t, const struct sp_event *ev, char *buf, size_t len);

/* now_ns: until when an open life has waited. */
void timeline_text(FILE *f, const struct timeline *t, const struct rec_session *s, uint64_t now_ns,
		   bool color);

/* Trace Event Format (JSON), read by Perfetto and chrome://tracing. n lives, a track each. */
void timeline_perfetto(FILE *f, const struct timeline *t, size_t n, const struct rec_session *s,
		       uint64_t now_ns);

#endif
