// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/json.h"
#include "output/py_text.h"
#include "python/notes.h"
#include "store/text.h"

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *request_json(const struct pyview_request *q)
{
	json_t *o = json_pack("{s:o, s:o}", "room", out_json_string(q->room), "rid",
			      out_json_text(q->rid));

	if (o && q->total >= 0) {
		json_object_set_new(o, "sent", json_integer((json_int_t)q->sent));
		json_object_set_new(o, "total", json_integer((json_int_t)q->total));
	}
	return o;
}

static json_t *queues_json(const struct py_report *r)
{
	const struct profile_python *py = r->profile->python;
	const struct py_snapshot *s = r->snapshot;
	json_t *queues = json_object();

	for (int i = 0; i < py->nqueues; i++)
		json_object_set_new(queues, py->queue[i].name,
				    s->queue_found[i] ? json_array() : json_null());
	for (size_t i = 0; i < s->nrequest; i++)
		json_array_append_new(json_object_get(queues, py->queue[s->request[i].queue].name),
				      request_json(&s->request[i]));
	return queues;
}

static json_t *status_json(const struct py_snapshot *s)
{
	json_t *status;

	if (!s->has_status)
		return json_null();
	status = json_object();
	for (size_t i = 0; i < s->nstatus; i++) {
		char room[TEXT_SAFE_MAX(SP_ROOM_MAX)];

		text_safe(room, sizeof(room), s->status[i].room);
		json_object_set_new(status, room, json_integer((json_int_t)s->status[i].code));
	}
	return status;
}

static json_t *workers_json(const struct py_snapshot *s)
{
	json_t *workers = json_array();

	for (size_t i = 0; i < s->nworker; i++) {
		json_t *behind = json_array(), *o;

		for (size_t k = 0; k < s->nwaiting; k++)
			if (s->waiting[k].tid == s->worker[i].tid)
				json_array_append_new(behind, out_json_string(s->waiting[k].room));
		o = json_pack("{s:I, s:o, s:o}", "tid", (json_int_t)s->worker[i].tid, "room",
			      out_json_text(s->worker[i].room), "behind", behind);
		if (o && s->worker[i].unknown)
			json_object_set_new(o, "unknown", json_true());
		json_array_append_new(workers, o);
	}
	return workers;
}

static json_t *stacks_json(const struct py_report *r)
{
	json_t *threads = json_array();

	for (size_t i = 0; i < r->nstacks; i++) {
		const struct py_stack *t = &r->stacks[i];
		json_t *stack = json_array();

		for (int k = 0; k < t->nlines; k++)
			json_array_append_new(stack, out_json_string(t->line[k]));
		json_array_append_new(threads,
				      json_pack("{s:o, s:o, s:o}", "tid", out_json_count(t->tid),
						"name", out_json_string(t->name), "stack", stack));
	}
	return threads;
}

/* NULL: none */
static json_t *notes_json(const struct py_report *r)
{
	struct py_note note[PY_NOTES_MAX];
	int n = py_notes(r->profile->python, r->snapshot, note);
	json_t *notes = n ? json_array() : NULL;

	for (int i = 0; i < n; i++)
		json_array_append_new(notes, out_json_string(note[i].text));
	return notes;
}

char *py_json(const struct py_report *r)
{
	const struct py_snapshot *s = r->snapshot;
	json_t *o = json_pack("{s:i, s:I, s:o, s:b, s:I, s:b, s:o, s:o, s:o}", "v", 1, "pid",
			      (json_int_t)r->pid, "python", out_json_string(r->python), "stable",
			      (int)s->stable, "took_us", (json_int_t)(s->took_ns / 1000),
			      "complete", (int)s->complete, "queues", queues_json(r), "status",
			      status_json(s), "workers", workers_json(s));
	json_t *notes = notes_json(r);

	if (o && notes)
		json_object_set(o, "notes", notes);
	json_decref(notes);
	if (o && !s->complete)
		json_object_set_new(o, "missing", out_json_string(s->missing));
	if (o && r->with_stacks)
		json_object_set_new(o, "threads", stacks_json(r));
	return out_json_line(o);
}

/* ---- text ------------------------------------------------------------------------------------ */

static int by_room(const void *key, const void *entry)
{
	return strcmp(key, ((const struct pyview_status *)entry)->room);
}

static const struct pyview_status *status_of(const struct py_snapshot *s, const char *room)
{
	return bsearch(room, s->status, s->nstatus, sizeof(*s->status), by_room);
}

static const char *state_name(const struct profile_python *py, int64_t code)
{
	return py_state_is(py->states.failed, code)      ? " (failed)"
	       : py_state_is(py->states.bootstrap, code) ? " (bootstrap)"
	       : py_state_is(py->states.ready, code)     ? " (ready)"
	       : py_state_is(py->states.moving, code)    ? " (moving)"
	       : py_state_is(py->states.done, code)      ? " (done)"
							 : "";
}

/* Who has it: the worker that is at it, or in whose backlog it waits. */
static void say_thread(FILE *f, const struct py_snapshot *s, const char *room)
{
	for (size_t i = 0; i < s->nworker; i++)
		if (!strcmp(s->worker[i].room, room)) {
			fprintf(f, "  thread %u is at it", s->worker[i].tid);
			return;
		}
	for (size_t i = 0; i < s->nwaiting; i++) {
		const struct pyview_waiting *w = &s->waiting[i];

		if (strcmp(w->room, room) != 0)
			continue;
		if (w->tid)
			fprintf(f, "  waits for thread %u", w->tid);
		else if (w->served)
			fprintf(f, "  waits for a worker thread");
		else
			fprintf(f, "  waits for a worker thread that does not exist");
		return;
	}
}

static void say_request(FILE *f, const struct py_report *r, const struct pyview_request *q,
			const bool *other_table)
{
	const struct profile_python *py = r->profile->python;
	const struct py_snapshot *s = r->snapshot;
	const struct pyview_status *st = status_of(s, q->room);
	char room[TEXT_SAFE_MAX(SP_ROOM_MAX)], rid[TEXT_SAFE_MAX(sizeof(q->rid))];
	char status[48] = "?";

	text_safe(room, sizeof(room), q->room);
	text_safe(rid, sizeof(rid), q->rid);
	if (st)
		snprintf(status, sizeof(status), "%" PRId64 "%s", st->code,
			 state_name(py, st->code));
	else if (s->has_status)
		snprintf(status, sizeof(status), "none");
	fprintf(f, "%-10s %-20s %-16s %-24s", py->queue[q->queue].name, room, status, rid);
	if (q->total >= 0)
		fprintf(f, "  sent %" PRId64 " of %" PRId64, q->sent, q->total);
	say_thread(f, s, q->room);
	if (!st && s->has_status && strstr(py->queue[q->queue].name, "inflight") &&
	    !other_table[q->queue])
		fprintf(f, "  <- nothing will end it, if it is still so at the next look");
	fprintf(f, "\n");
}

static void say_stacks(FILE *f, const struct py_report *r)
{
	for (size_t i = 0; i < r->nstacks; i++) {
		const struct py_stack *t = &r->stacks[i];
		char text[TEXT_SAFE_MAX(512)];

		text_safe(text, sizeof(text), t->name);
		fprintf(f, "\nthread %u %s\n", t->tid, text);
		for (int k = 0; k < t->nlines; k++) {
			text_safe(text, sizeof(text), t->line[k]);
			fprintf(f, "    %s\n", text);
		}
	}
}

static size_t in_queue(const struct py_snapshot *s, int queue)
{
	size_t n = 0;

	for (size_t i = 0; i < s->nrequest; i++)
		n += s->request[i].queue == queue;
	return n;
}

static void say_notes(FILE *f, const struct py_report *r)
{
	const struct py_snapshot *s = r->snapshot;
	struct py_note note[PY_NOTES_MAX];
	int n = py_notes(r->profile->python, s, note);

	for (size_t i = 0; i < s->nworker; i++)
		if (s->worker[i].unknown)
			fprintf(f, "thread %u: at which room it is cannot be read\n",
				s->worker[i].tid);
	for (int i = 0; i < n; i++) {
		char text[TEXT_SAFE_MAX(sizeof(note[i].text))];

		text_safe(text, sizeof(text), note[i].text);
		fprintf(f, "note: %s\n", text);
	}
}

static void say_head(FILE *f, const struct py_report *r)
{
	const struct profile_python *py = r->profile->python;
	const struct py_snapshot *s = r->snapshot;

	fprintf(f, "pid %d, CPython %s, profile %s, read in %.2f ms%s\n", r->pid, r->python,
		r->profile->name, (double)s->took_ns / 1e6,
		s->stable ? "" : "; it changed while it was read: look again");
	if (!s->complete)
		fprintf(f, "%s is not in this server: what follows is not all\n", s->missing);
	for (int i = 0; i < py->nqueues; i++)
		if (s->queue_found[i])
			fprintf(f, "%s%s %zu", i ? ", " : "", py->queue[i].name, in_queue(s, i));
		else
			fprintf(f, "%s%s %s", i ? ", " : "", py->queue[i].name,
				s->queue_absent[i] ? "not in this server" : "unknown");
	if (s->has_status)
		fprintf(f, "; %zu entries in the status table", s->nstatus);
	if (s->bootstrap_declared && !s->bootstrap_alive)
		fprintf(f, "\nno thread receives announcements: no room will leave bootstrap");
	fprintf(f, "\n");
}

char *py_text(const struct py_report *r)
{
	const struct py_snapshot *s = r->snapshot;
	bool other_table[PY_MAX_QUEUES] = {false};
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	for (int i = 0; i < r->profile->python->nqueues; i++)
		other_table[i] = py_other_table(r->profile->python, s, i);
	say_head(f, r);
	say_notes(f, r);
	if (s->nrequest)
		fprintf(f, "%-10s %-20s %-16s %-24s\n", "QUEUE", "ROOM", "STATUS", "RID");
	for (size_t i = 0; i < s->nrequest; i++)
		say_request(f, r, &s->request[i], other_table);
	say_stacks(f, r);
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}
