// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "event/event.h"

static const char *const role_names[ROLE_MAX] = {
	[ROLE_NONE] = "none",         [ROLE_ARRIVE] = "arrive",     [ROLE_HELD] = "held",
	[ROLE_ANNOUNCE] = "announce", [ROLE_REGISTER] = "register", [ROLE_POST] = "post",
	[ROLE_STATUS] = "status",     [ROLE_CLOSE] = "close",       [ROLE_ABORT] = "abort",
	[ROLE_TOLD] = "told",         [ROLE_REPLY] = "reply",       [ROLE_RELEASE] = "release",
	[ROLE_CONTROL] = "control",   [ROLE_CALL] = "call",         [ROLE_PEER] = "peer",
	[ROLE_THREAD] = "thread",     [ROLE_TARGET] = "target",     [ROLE_LOSS] = "loss",
	[ROLE_STALL] = "stall",       [ROLE_VIEW] = "view",
};

static const char *const stage_names[SP_STAGE_MAX] = {
	[STAGE_NONE] = "none",         [STAGE_BOOTSTRAP] = "bootstrap", [STAGE_READY] = "ready",
	[STAGE_INFLIGHT] = "inflight", [STAGE_RELEASING] = "releasing", [STAGE_ENDED] = "ended",
};

void sp_event_init(struct sp_event *ev)
{
	*ev = (struct sp_event){
		.last = -1,
		.probe = -1,
		.rank = -1,
		.chunk = -1,
		.part = -1,
		.parts = -1,
		.need = -1,
	};
}

const char *sp_role_name(enum sp_role role)
{
	return (unsigned int)role < ROLE_MAX ? role_names[role] : "none";
}

enum sp_role sp_role_parse(const char *name)
{
	for (int i = ROLE_NONE + 1; i < ROLE_MAX; i++)
		if (!strcmp(name, role_names[i]))
			return i;
	return ROLE_NONE;
}

const char *sp_stage_name(enum sp_stage stage)
{
	return (unsigned int)stage < SP_STAGE_MAX ? stage_names[stage] : "none";
}

enum sp_stage sp_stage_parse(const char *name)
{
	for (int i = STAGE_NONE + 1; i < SP_STAGE_MAX; i++)
		if (!strcmp(name, stage_names[i]))
			return i;
	return STAGE_NONE;
}

/* A line under construction: words are separated by one space, what does not fit is cut. */
struct words {
	char *buf;
	size_t len, at;
};

__attribute__((format(printf, 2, 3))) static void say(struct words *w, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (w->at + 2 > w->len)
		return;
	if (w->at)
		w->buf[w->at++] = ' ';
	va_start(ap, fmt);
	n = vsnprintf(w->buf + w->at, w->len - w->at, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	w->at += (size_t)n;
	if (w->at >= w->len)
		w->at = w->len - 1;
}

static void say_took(struct words *w, const char *before, uint64_t ns)
{
	if (ns < 1000000)
		say(w, "%s%.1f us", before, (double)ns / 1e3);
	else if (ns < 1000000000)
		say(w, "%s%.1f ms", before, (double)ns / 1e6);
	else
		say(w, "%s%.1f s", before, (double)ns / 1e9);
}

static void say_bytes(struct words *w, const char *before, uint64_t bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double n = (double)bytes / 1024;
	int i = 0;

	if (!bytes)
		return;
	if (bytes < 1024) {
		say(w, "%s%" PRIu64 " bytes", before, bytes);
		return;
	}
	for (; n >= 1024 && i < 5; i++)
		n /= 1024;
	say(w, "%s%.1f %s", before, n, units[i]);
}

static void say_what(struct words *w, const struct sp_event *ev)
{
	if (ev->kind[0])
		say(w, "%s", ev->kind);
	if (ev->chunk >= 0)
		say(w, "chunk %d", ev->chunk);
	if (ev->last == 1)
		say(w, "last");
	if (ev->part >= 0 && ev->parts > 0)
		say(w, "part %d of %d", ev->part, ev->parts);
	else if (ev->part >= 0)
		say(w, "part %d", ev->part);
	if (ev->rank >= 0)
		say(w, "rank %d", ev->rank);
}

static void say_op(struct words *w, const struct sp_event *ev)
{
	if (ev->op)
		say(w, "of op 0x%" PRIx64, ev->op);
}

static void say_state(struct words *w, const struct sp_event *ev)
{
	static const char *const names[] = {
		[OPS_UNKNOWN] = "unknown",
		[OPS_BUSY] = "in progress",
		[OPS_DONE] = "done",
		[OPS_ERROR] = "error",
	};

	say(w, "%s", ev->status <= OPS_ERROR ? names[ev->status] : names[OPS_UNKNOWN]);
	if (ev->status == OPS_ERROR || ev->status == OPS_UNKNOWN)
		say(w, "%" PRId64, ev->code);
}

static void say_peer(struct words *w, const char *preposition, const struct sp_event *ev)
{
	if (ev->peer[0])
		say(w, "%s %s", preposition, ev->peer);
	else if (ev->agent[0])
		say(w, "%s %s", preposition, ev->agent);
}

static void say_post(struct words *w, const struct sp_event *ev)
{
	bool created = ev->flags & EV_CREATED;

	say(w, "%s", created ? "create" : "post");
	say_what(w, ev);
	say_bytes(w, "of ", ev->bytes);
	/* a post that carries no text of its own is known by its handle only */
	if (!ev->kind[0])
		say_op(w, ev);
	if (ev->status == OPS_ERROR) {
		say(w, "failed:");
		say_state(w, ev);
	}
}

static void say_announce(struct words *w, const struct sp_event *ev)
{
	say(w, "announce");
	say_peer(w, "from", ev);
	if (ev->need >= 0)
		say(w, "(need %d)", ev->need);
	if (ev->flags & EV_NODATA)
		say(w, "(takes no data)");
}

static void say_thread(struct words *w, const struct sp_event *ev)
{
	if (!ev->kind[0])
		say(w, "%u exited", ev->tid);
	else if (strcmp(ev->kind, "at") != 0)
		say(w, "%s", ev->kind);
	else if (ev->room[0])
		say(w, "%u works on room %s", ev->tid, ev->room);
	else
		say(w, "%u waits for work", ev->tid);
}

static void say_held(struct words *w, const struct sp_event *ev)
{
	if (ev->kind[0])
		say(w, "in queue %s", ev->kind);
	else
		say(w, "in no queue");
	if (ev->code == HELD_NO_ENTRY)
		say(w, "without a status entry");
	else if (ev->code != HELD_UNKNOWN)
		say(w, "status %" PRId64, ev->code);
	if (ev->chunk >= 0 && ev->need > 0)
		say(w, "announced by %d of %d", ev->chunk, ev->need);
	if (ev->part >= 0 && ev->parts > 0)
		say(w, "sent %d of %d", ev->part, ev->parts);
	if (ev->flags & EV_AT)
		say(w, "thread %u at work on it", ev->tid);
	else if (ev->flags & EV_ORPHAN)
		say(w, "waits for a thread that does not exist");
	else if (ev->flags & EV_WAITS)
		say(w, "waits for a thread");
	else if (ev->tid)
		say(w, "waits for thread %u", ev->tid);
}

/* The note of an event is said at the end of its line, once. */
static void say_connection(struct words *w, const struct sp_event *ev)
{
	if (!strcmp(ev->kind, "untracked")) {
		say(w, "reply will not be seen");
		return;
	}
	if (!strcmp(ev->kind, "unread")) {
		say(w, "%s", ev->note[0] ? ev->note : "message");
		say_peer(w, "from", ev);
		say(w, "has come and the server has not taken it");
		return;
	}
	say(w, "peer");
	if (ev->agent[0] && strcmp(ev->agent, ev->peer) != 0)
		say(w, "%s", ev->agent);
	if (ev->peer[0])
		say(w, "%s", ev->peer);
	if (!strcmp(ev->kind, "trusted"))
		say(w, "followed from here on");
	else if (!strcmp(ev->kind, "lost"))
		say(w, "no longer followed");
	else
		say(w, "%s", ev->kind);
}

static bool says_note(const struct sp_event *ev)
{
	return ev->note[0] && (ev->role != ROLE_PEER || strcmp(ev->kind, "unread") != 0);
}

static void say_reply(struct words *w, const struct sp_event *ev)
{
	say(w, "reply");
	if (ev->code > 0)
		say(w, "%" PRId64, ev->code);
	if (!strcmp(ev->kind, "first"))
		say(w, "begins");
	else if (ev->kind[0] && strcmp(ev->kind, "end") != 0)
		say(w, "%s", ev->kind);
	say_peer(w, "to", ev);
}

static void say_arrive(struct words *w, const struct sp_event *ev)
{
	say(w, "arrive");
	if (ev->kind[0])
		say(w, "%s", ev->kind);
	if (ev->peer[0])
		say(w, "host %s", ev->peer);
	if (ev->flags & EV_FAKE)
		say(w, "(a health check)");
}

static void say_abort(struct words *w, const struct sp_event *ev)
{
	if (!strcmp(ev->kind, "client-gone")) {
		say(w, "abort: the client has gone");
		return;
	}
	say(w, "abort");
	say_what(w, ev);
	say_peer(w, "from", ev);
}

/* What the watch says of calls itself. */
static bool say_of_calls(struct words *w, const struct sp_event *ev)
{
	uint64_t since = ev->code > 0 ? (uint64_t)ev->code : 0;
	const char *after = ev->object[0] ? ": " : "";

	if (!strcmp(ev->kind, "inside") || !strcmp(ev->kind, "left")) {
		bool in = ev->kind[0] == 'i';

		if (ev->object[0])
			say(w, "%s:", ev->object);
		if (ev->took_ns || (since && ev->ns > since))
			say_took(w, in ? "in this call for " : "left this call after ",
				 ev->took_ns ? ev->took_ns : ev->ns - since);
		else
			say(w, "%s", in ? "in this call" : "left this call");
		return true;
	}
	if (!strcmp(ev->kind, "count")) {
		say(w, "%u calls", ev->count);
		say_bytes(w, "of ", ev->bytes);
		if (ev->code > 0)
			say(w, "(%" PRId64 " failed)", ev->code);
		return true;
	}
	if (!strcmp(ev->kind, "dropped")) {
		say(w, "%s%s%" PRId64 " posted will never complete", ev->object, after, ev->code);
		return true;
	}
	if (strcmp(ev->kind, "tally") != 0)
		return false;
	if (ev->code > 0)
		say(w, "%s%s%" PRId64 " posted and not completed", ev->object, after, ev->code);
	else
		say(w, "%s%sall is complete again", ev->object, after);
	return true;
}

/* "copy of 4.0 MiB, stream 0x7f.., took 1.2 ms" */
static void say_call(struct words *w, const struct sp_event *ev)
{
	const char *comma;

	if (say_of_calls(w, ev))
		return;
	comma = ev->object[0] || ev->took_ns ? "," : "";
	if (ev->bytes) {
		say(w, "%s", ev->kind[0] ? ev->kind : "call");
		say_bytes(w, "of ", ev->bytes);
	} else {
		say(w, "%s%s", ev->kind[0] ? ev->kind : "call", comma);
	}
	if (ev->bytes && comma[0] && w->at + 1 < w->len) {
		w->buf[w->at++] = ',';
		w->buf[w->at] = '\0';
	}
	if (ev->count > 1)
		say(w, "%u pieces%s", ev->count, comma);
	if (ev->object[0])
		say(w, "%s%s", ev->object, ev->took_ns ? "," : "");
	if (ev->took_ns)
		say_took(w, "took ", ev->took_ns);
	if (ev->status == OPS_ERROR)
		say(w, "failed: error %" PRId64, ev->code);
}

static void say_other(struct words *w, const struct sp_event *ev)
{
	say(w, "%s", sp_role_name(ev->role));
	switch (ev->role) {
	case ROLE_LOSS:
		say(w, "of %" PRId64 " events", ev->code);
		if (ev->kind[0])
			say(w, "(%s)", ev->kind);
		return;
	case ROLE_STALL:
		say(w, "of the watcher for %.1f s", (double)ev->code / 1e9);
		return;
	case ROLE_CLOSE:
		say_op(w, ev);
		return;
	case ROLE_THREAD:
		say_thread(w, ev);
		return;
	case ROLE_HELD:
		say_held(w, ev);
		return;
	case ROLE_RELEASE:
		if (ev->flags & EV_INFERRED)
			say(w, "(in no queue any more)");
		return;
	default:
		say_what(w, ev);
		say_peer(w, ev->role == ROLE_TOLD ? "to" : "from", ev);
		if (ev->flags & EV_GAP)
			say(w, "(what ran before was not seen)");
	}
}

void sp_event_describe(const struct sp_event *ev, char *buf, unsigned long len)
{
	struct words w = {.buf = buf, .len = len};

	if (!len)
		return;
	buf[0] = '\0';
	switch (ev->role) {
	case ROLE_POST:
		say_post(&w, ev);
		break;
	case ROLE_ANNOUNCE:
		say_announce(&w, ev);
		break;
	case ROLE_ARRIVE:
		say_arrive(&w, ev);
		break;
	case ROLE_REPLY:
		say_reply(&w, ev);
		break;
	case ROLE_ABORT:
		say_abort(&w, ev);
		break;
	case ROLE_PEER:
		say_connection(&w, ev);
		break;
	case ROLE_CALL:
		say_call(&w, ev);
		break;
	case ROLE_STATUS:
		say(&w, "status");
		say_state(&w, ev);
		say_op(&w, ev);
		break;
	default:
		say_other(&w, ev);
	}
	if (says_note(ev))
		say(&w, "(%s)", ev->note);
	if (ev->flags & EV_SHARED)
		say(&w, "(perhaps of another process)");
	if (ev->flags & EV_CUT)
		say(&w, "(began before the attach)");
}
