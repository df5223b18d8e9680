// SPDX-License-Identifier: Apache-2.0
/* Rows from what the model hands out. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/buffer.h"
#include "store/store.h"
#include "store/text.h"

static void keep_verdict(struct life_ref *ref, struct life_row *row, const struct model_verdict *v)
{
	uint32_t sum;
	char *json;

	row->stuck = v->cause != CAUSE_NONE;
	if (row->stuck) {
		ref->cause = v->cause;
		ref->confidence = v->confidence;
		sum = verdict_sum(v);
		if (sum != ref->verdict_sum) {
			json = verdict_json(v);
			if (json) {
				free(row->verdict);
				row->verdict = json;
				ref->verdict_sum = sum;
			}
		}
	}
	row->cause = ref->cause;
	row->confidence = ref->confidence;
}

static void set_text(char *dst, const char *src, size_t len)
{
	if (src && strncmp(dst, src, len))
		snprintf(dst, len, "%s", src);
}

void life_row_fill(struct life_row *row, struct life_ref *ref, const struct model_life *l)
{
	row->pid = l->pid;
	row->life = l->life;
	row->opened_ns = l->opened_ns;
	row->progress_ns = l->progress_ns;
	row->last_ns = l->last_ns;
	row->ended_ns = l->ended_ns;
	row->outcome = l->outcome;
	row->uncertain = l->uncertain;
	row->late = l->observed_late;
	row->fake = l->fake;
	row->ever_stuck = l->ever_stuck;
	row->first_seq = ref->seqs.first;
	row->last_seq = ref->seqs.last;
	row->events = ref->events;
	row->stage = l->stage;
	if (ref->stage != l->stage && l->stage < SP_STAGE_MAX) {
		row->stage_at[l->stage] = ref->stage ? l->last_ns : l->opened_ns;
		ref->stage = l->stage;
	}
	set_text(row->room, l->room, sizeof(row->room));
	set_text(row->rid, l->rid, sizeof(row->rid));
	set_text(row->peer, l->peer, sizeof(row->peer));
	keep_verdict(ref, row, l->verdict);
}

void alert_row_fill(struct alert_row *row, const struct model_alert *a)
{
	const struct model_life *l = a->life;

	row->type = a->type;
	row->ns = a->ns;
	row->pid = a->pid;
	row->tid = a->tid;
	row->age_ns = a->age_ns;
	row->idle_ns = a->idle_ns;
	row->stalled_ns = a->stalled_ns;
	row->outcome = a->outcome;
	row->lost = a->lost;
	row->pin = -1;
	set_text(row->what, a->type == ALERT_LOSS ? a->why : a->what, sizeof(row->what));
	set_text(row->note, a->note, sizeof(row->note));
	if (a->type == ALERT_PEER)
		set_text(row->note, a->peer && a->peer[0] ? a->peer : a->agent, sizeof(row->note));
	if (!l)
		return;
	row->pid = l->pid;
	row->life = l->life;
	row->stage = l->stage;
	row->cause = l->verdict->cause;
	row->confidence = l->verdict->confidence;
	row->pin = l->verdict->pin;
	set_text(row->room, l->room, sizeof(row->room));
}

char *stack_frames(char *const *line, int nlines)
{
	json_t *list = json_array();
	char *text;

	for (int i = 0; i < nlines && i < STACK_LINES_MAX; i++) {
		char safe[TEXT_SAFE_MAX(512)];

		text_safe(safe, sizeof(safe), line[i]);
		json_array_append_new(list, json_string(safe));
	}
	text = list ? json_dumps(list, JSON_COMPACT) : NULL;
	json_decref(list);
	return text;
}

const char *alert_type_name(enum model_alert_type t)
{
	static const char *const names[] = {
		[ALERT_STUCK] = "stuck", [ALERT_RECOVERED] = "recovered", [ALERT_ENDED] = "ended",
		[ALERT_LOSS] = "loss",   [ALERT_TARGET] = "target",       [ALERT_PEER] = "peer",
	};

	return (unsigned int)t <= ALERT_PEER ? names[t] : "none";
}
