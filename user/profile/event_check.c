// SPDX-License-Identifier: Apache-2.0
/* Whether an effective event can be had from its probe, and makes sense. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile_priv.h"
#include "util/cleanup.h"

/* What may stand as a field's value, beside a template and the name of an argument or capture. */
enum value_kind {
	V_WORD,   /* any text: kind, note */
	V_NUMBER, /* a number */
	V_NAME,   /* nothing else */
	V_ARRAY,  /* a frame that is an array */
};
static const struct {
	const char *name;
	enum value_kind kind;
} fields[] = {
	{"kind", V_WORD},    {"op", V_NAME},      {"chunk", V_NUMBER}, {"last", V_NUMBER},
	{"rank", V_NUMBER},  {"part", V_NUMBER},  {"parts", V_NUMBER}, {"need", V_NUMBER},
	{"peer", V_NAME},    {"agent", V_NAME},   {"rid", V_NAME},     {"room", V_NAME},
	{"status", V_NAME},  {"error", V_NAME},   {"note", V_WORD},    {"bytes", V_NUMBER},
	{"object", V_WORD},  {"count", V_NUMBER}, {"work", V_WORD},    {"address", V_NAME},
	{"segment", V_NAME}, {"pages", V_ARRAY},  {"bases", V_ARRAY},  {"item", V_NUMBER},
};

static const struct pat_part *capture_in(const struct pattern *p, const char *name, size_t len)
{
	for (int i = 0; i < p->nparts; i++)
		if (p->part[i].is_capture && strlen(p->part[i].name) == len &&
		    !memcmp(p->part[i].name, name, len))
			return &p->part[i];
	return NULL;
}

static const struct pat_part *capture_of(const struct evt_match *m, const char *name, size_t len)
{
	const struct pat_part *part = NULL;

	for (int i = 0; m && !part && i < m->non; i++)
		part = capture_in(&m->on[i].pat, name, len);
	for (int i = 0; m && !part && i < m->nframes; i++)
		part = capture_in(&m->frames[i], name, len);
	return part;
}

bool event_known(const struct profile_probe *p, const struct evt_match *m, const char *name,
		 size_t len)
{
	char buf[PAT_NAME_MAX];

	if (!len || len >= sizeof(buf))
		return false;
	if (capture_of(m, name, len))
		return true;
	memcpy(buf, name, len);
	buf[len] = '\0';
	return arg_by_name(p, buf) >= 0;
}

static int no_array(const struct reader *r, const struct evt_field *f, const char *name)
{
	return bad_at(r, f->mark,
		      "%s: \"%.32s\" is an array: only pages and bases take one: capture it with "
		      "another shape",
		      f->name, name);
}

/* The field's value: whole frames of messages, nothing else has so many numbers. */
static int check_array(const struct reader *r, const struct profile_probe *p,
		       const struct evt_match *m, const struct evt_field *f)
{
	const struct pat_part *part = capture_of(m, f->value, strlen(f->value));

	if (part && pattern_is_array(part))
		return 0;
	return bad_at(r, f->mark,
		      "%s: \"%.32s\" is no array captured here: write the frame as "
		      "\"{%s:%s}\" (or the other of u64s and s32s)",
		      f->name, f->value, name_ok(f->value, strlen(f->value)) ? f->value : f->name,
		      !strcmp(f->name, "pages") ? "s32s" : "u64s");
}

static int check_template(const struct reader *r, const struct profile_probe *p,
			  const struct evt_match *m, const struct evt_field *f)
{
	for (const char *s = f->value; *s; s++) {
		const struct pat_part *part;
		size_t len;

		if (*s == '}')
			return bad_at(r, f->mark, "%s: \"}\" without \"{\" in \"%.64s\"", f->name,
				      f->value);
		if (*s != '{')
			continue;
		len = strcspn(++s, "{}");
		if (s[len] != '}')
			return bad_at(r, f->mark, "%s: \"{\" without \"}\" in \"%.64s\"", f->name,
				      f->value);
		part = capture_of(m, s, len);
		if (part && pattern_is_array(part))
			return no_array(r, f, part->name);
		if (!event_known(p, m, s, len))
			return bad_at(r, f->mark,
				      "%s: \"%.*s\" is neither an argument nor a capture here: "
				      "declare or capture it",
				      f->name, (int)(len < 32 ? len : 32), s);
		s += len;
	}
	return 0;
}

static int check_field(const struct reader *r, const struct profile_probe *p,
		       const struct evt_match *m, const struct evt_field *f)
{
	enum value_kind kind = V_WORD;
	const struct pat_part *part;
	int64_t v;

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (!strcmp(fields[i].name, f->name))
			kind = fields[i].kind;
	if (kind == V_ARRAY)
		return check_array(r, p, m, f);
	if (strchr(f->value, '{') || strchr(f->value, '}'))
		return check_template(r, p, m, f);
	part = capture_of(m, f->value, strlen(f->value));
	if (part && pattern_is_array(part))
		return no_array(r, f, f->value);
	if (kind == V_WORD) {
		if (!strcmp(f->name, "kind") && !event_known(p, m, f->value, strlen(f->value)) &&
		    strlen(f->value) >= sizeof(((struct sp_event *)0)->kind))
			return bad_at(r, f->mark, "kind \"%.32s\" is too long: at most %zu bytes",
				      f->value, sizeof(((struct sp_event *)0)->kind) - 1);
		return 0;
	}
	if (event_known(p, m, f->value, strlen(f->value)) ||
	    (kind == V_NUMBER && number_parse(f->value, &v) && v >= 0 && v <= INT32_MAX))
		return 0;
	return bad_at(r, f->mark,
		      "%s: \"%.32s\" is neither an argument nor a capture here%s: declare or "
		      "capture it",
		      f->name, f->value, kind == V_NUMBER ? ", nor a number" : "");
}

/* A field has a value: said in the event, or an argument or capture of that name. */
static bool has(const struct profile_probe *p, const struct evt_match *m, const struct evt_spec *ev,
		const char *name)
{
	return event_field(ev, name) || event_known(p, m, name, strlen(name));
}

bool event_gives(const struct profile_probe *p, const struct evt_match *m,
		 const struct evt_spec *ev)
{
	return has(p, m, ev, "room") || has(p, m, ev, "op");
}

static int check_role(const struct reader *r, const struct profile_probe *p,
		      const struct evt_match *m, const struct evt_spec *ev)
{
	bool room = has(p, m, ev, "room"), op = has(p, m, ev, "op");

	switch (ev->role) {
	case ROLE_NONE:
		return bad_at(r, ev->mark, "the event has no role: add role: post (or another)");
	case ROLE_ARRIVE:
	case ROLE_HELD:
	case ROLE_ANNOUNCE:
	case ROLE_ABORT:
	case ROLE_TOLD:
	case ROLE_REPLY:
	case ROLE_RELEASE:
		if (room)
			return 0;
		return bad_at(r, ev->mark,
			      "role %s needs a room: capture {room} or name an argument room",
			      sp_role_name(ev->role));
	case ROLE_POST:
	case ROLE_CLOSE:
	case ROLE_STATUS:
		if (!room && !op)
			return bad_at(r, ev->mark,
				      "role %s needs a room or an op: capture {room} or name an "
				      "argument op",
				      sp_role_name(ev->role));
		if (ev->role != ROLE_STATUS || event_field(ev, "status") ||
		    event_field(ev, "error"))
			return 0;
		return bad_at(r, ev->mark,
			      "role status needs status: ARGUMENT, whose value is the status");
	default:
		return 0;
	}
}

/* Fields that mean something only with some roles. */
static int check_fields_role(const struct reader *r, const struct evt_spec *ev)
{
	static const struct {
		const char *name;
		uint32_t roles; /* bits 1 << enum sp_role */
		const char *words;
	} only[] = {
		{"created", 1u << ROLE_POST, "post"},
		{"bytes", 1u << ROLE_CALL | 1u << ROLE_POST, "call and post"},
		{"count", 1u << ROLE_CALL | 1u << ROLE_POST, "call and post"},
		{"object", 1u << ROLE_CALL, "call"},
		{"address", 1u << ROLE_POST, "post"},
		{"segment", 1u << ROLE_POST | 1u << ROLE_REGISTER, "post and register"},
		{"need", 1u << ROLE_ANNOUNCE, "announce"},
		{"pages", 1u << ROLE_ANNOUNCE, "announce"},
		{"bases", 1u << ROLE_REGISTER, "register"},
		{"item", 1u << ROLE_REGISTER, "register"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(only); i++) {
		const struct evt_field *f = event_field(ev, only[i].name);

		if (f && !(only[i].roles >> ev->role & 1))
			return bad_at(r, f->mark, "%s is for role %s: remove it", f->name,
				      only[i].words);
	}
	return 0;
}

/* Named like the field, and so its value, without a word in the event. */
static int check_own_arrays(const struct reader *r, const struct evt_match *m,
			    const struct evt_spec *ev)
{
	static const struct {
		const char *name;
		enum sp_role role;
	} arrays[] = {{"pages", ROLE_ANNOUNCE}, {"bases", ROLE_REGISTER}};

	for (size_t i = 0; i < ARRAY_SIZE(arrays); i++) {
		const struct pat_part *part = capture_of(m, arrays[i].name, strlen(arrays[i].name));

		if (ev->role == arrays[i].role && !event_field(ev, arrays[i].name) && part &&
		    !pattern_is_array(part))
			return bad_at(r, ev->mark,
				      "{%s} is no array: write \"{%s:%s}\", or give the capture "
				      "another name",
				      part->name, part->name,
				      ev->role == ROLE_ANNOUNCE ? "s32s" : "u64s");
	}
	return 0;
}

/* Whose memory it is, and what a page of it is. */
static int check_memory(const struct reader *r, const struct profile_probe *p,
			const struct evt_match *m, const struct evt_spec *ev)
{
	const struct evt_field *segment = event_field(ev, "segment");
	const struct evt_field *work = event_field(ev, "work");
	bool registers = ev->role == ROLE_REGISTER;

	if (registers && has(p, m, ev, "bases") != has(p, m, ev, "item"))
		return bad_at(r, ev->mark,
			      "bases and item belong together: where the peer's memory begins, and "
			      "how many bytes a page has there");
	if (registers && segment && !has(p, m, ev, "agent") && !has(p, m, ev, "peer"))
		return bad_at(r, segment->mark,
			      "segment names the memory of a peer: say whose with agent or peer");
	if (work && !strcmp(work->value, "begin") && !has(p, m, ev, "room"))
		return bad_at(r, work->mark,
			      "work: begin needs a room: capture {room} or name an argument room");
	return check_own_arrays(r, m, ev);
}

static int check_extras(const struct reader *r, const struct evt_match *m,
			const struct evt_spec *ev)
{
	const struct pat_part *part;

	if (event_field(ev, "status") && event_field(ev, "error"))
		return bad_at(r, event_field(ev, "error")->mark,
			      "status and error in one event: error is a status of which only "
			      "errors count: keep one");
	if (ev->ncovers && ev->role != ROLE_POST)
		return bad_at(r, ev->mark, "covers is for role post: remove it");
	if (ev->ndummy && ev->role != ROLE_ANNOUNCE)
		return bad_at(r, ev->mark, "dummy_if_empty is for role announce: remove it");
	for (int i = 0; i < ev->ndummy; i++) {
		part = capture_of(m, ev->dummy[i], strlen(ev->dummy[i]));
		if (!part || (part->shape != PAT_LEN && !pattern_is_array(part)))
			return bad_at(
				r, ev->mark,
				"dummy_if_empty: \"%s\" is no length captured here: write the "
				"frame as \"{%s:len}\"",
				ev->dummy[i], ev->dummy[i]);
	}
	return 0;
}

int check_event(const struct reader *r, const struct profile_probe *p, const struct evt_match *m,
		const struct evt_spec *ev)
{
	int rc = check_role(r, p, m, ev);

	if (!rc)
		rc = check_fields_role(r, ev);
	if (!rc)
		rc = check_extras(r, m, ev);
	if (!rc)
		rc = check_memory(r, p, m, ev);
	for (int i = 0; !rc && i < ev->nfields; i++)
		if (strcmp(ev->field[i].name, "created") != 0)
			rc = check_field(r, p, m, &ev->field[i]);
	return rc;
}
