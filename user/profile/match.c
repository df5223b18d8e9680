// SPDX-License-Identifier: Apache-2.0
/* `match:` (patterns over arguments) and `messages:` (patterns over frames) of a probe. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile_priv.h"

#define FRAMES_MAX 64 /* bits of sp_head.copy */

static int compile(const struct reader *r, const struct ynode *n, struct pattern *p)
{
	char why[160];
	int rc = pattern_compile(p, n->text, r->profile->room_u64, why, sizeof(why));

	if (rc == -ENOMEM)
		return no_memory(r);
	if (rc)
		return bad_at(r, n->mark, "\"%.80s\" is no pattern: %s", n->text, why);
	return 0;
}

/* The names that an alternative gives are distinct, and distinct from the arguments'. */
struct names {
	const char *name[CAP_MAX];
	int n;
};

static int add_names(const struct reader *r, const struct ynode *at, const struct profile_probe *p,
		     const struct pattern *pat, struct names *names)
{
	for (int i = 0; i < pat->nparts; i++) {
		const struct pat_part *part = &pat->part[i];

		if (!part->is_capture || !part->name[0])
			continue;
		if (arg_by_name(p, part->name) >= 0)
			return bad_at(r, at->mark,
				      "capture {%s} has the name of an argument: rename one",
				      part->name);
		for (int k = 0; k < names->n; k++)
			if (!strcmp(names->name[k], part->name))
				return bad_at(
					r, at->mark,
					"capture {%s} a second time in one alternative: write "
					"{} for a value that is not wanted",
					part->name);
		if (names->n + p->nargs >= CAP_MAX)
			return bad_at(r, at->mark,
				      "more than %d names in one alternative: write "
				      "{} for values that are not wanted",
				      CAP_MAX);
		names->name[names->n++] = part->name;
	}
	return 0;
}

/* The alternative's effective event: the probe's, overridden by its own. */
static int read_own_event(const struct reader *r, const struct ynode *map, struct profile_probe *p,
			  struct evt_match *m)
{
	const struct ynode *ev = ynode_get(map, "event");
	int rc = 0;

	if (event_copy(&m->event, &p->event))
		return no_memory(r);
	if (!m->event.mark.line)
		m->event.mark = map->mark;
	if (ev)
		rc = read_event(r, ev, &m->event);
	if (!rc)
		rc = check_event(r, p, m, &m->event);
	return rc;
}

static int alloc_matches(const struct reader *r, struct profile_probe *p, size_t n)
{
	p->match = calloc(n, sizeof(*p->match));
	if (!p->match)
		return no_memory(r);
	return 0;
}

/* ---- match: ---------------------------------------------------------------------------------- */

static int read_on(const struct reader *r, const struct ynode *map, struct profile_probe *p,
		   struct evt_match *m, struct names *names)
{
	const char *allowed[SP_MAX_ARGS + 2];
	int rc, n = 0;

	for (int i = 0; i < p->nargs; i++)
		allowed[n++] = p->args[i].name;
	allowed[n++] = "event";
	allowed[n] = NULL;
	rc = read_keys(r, map, "match (keys are arguments)", allowed);
	for (size_t i = 0; !rc && i < map->n; i++) {
		const struct ynode *key = ynode_key(map, i), *v = ynode_value(map, i);
		struct pattern *pat = &m->on[m->non].pat;
		const char *text;

		if (!strcmp(key->text, "event"))
			continue;
		rc = read_text(r, v, "a pattern", &text);
		if (!rc)
			rc = compile(r, v, pat);
		if (rc)
			break;
		m->on[m->non++].arg = arg_by_name(p, key->text);
		if (pattern_is_whole(pat))
			return bad_at(r, v->mark,
				      "{%s:%s} is for frames of messages: match the text itself",
				      pat->part[0].name, pattern_shape_name(pat->part[0].shape));
		rc = add_names(r, v, p, pat, names);
	}
	return rc;
}

static int read_alternative(const struct reader *r, const struct ynode *map,
			    struct profile_probe *p)
{
	struct evt_match *m = &p->match[p->nmatch++];
	struct names names = {.n = 0};
	int rc = need_map(r, map, "an alternative of match");

	m->mark = map->mark;
	if (!rc)
		rc = read_on(r, map, p, m, &names);
	if (!rc)
		rc = read_own_event(r, map, p, m);
	return rc;
}

int read_match(const struct reader *r, const struct ynode *n, struct profile_probe *p)
{
	int rc;

	if (n->kind == YNODE_MAP) {
		rc = alloc_matches(r, p, 1);
		return rc ? rc : read_alternative(r, n, p);
	}
	rc = need_list(r, n, "match", 32);
	if (!rc)
		rc = alloc_matches(r, p, n->n);
	for (size_t i = 0; !rc && i < n->n; i++) {
		rc = read_alternative(r, n->item[i], p);
		if (!rc && !p->match[i].non && i + 1 < n->n)
			rc = bad_at(r, n->item[i]->mark,
				    "an alternative without a pattern takes all: put it last");
	}
	return rc;
}

/* ---- messages: ------------------------------------------------------------------------------- */

/* Whether the kernel must copy the frame's bytes to decide or to capture. */
static bool needs_bytes(const struct pattern *p)
{
	return p->nparts && !(p->part[0].is_capture && p->part[0].shape == PAT_LEN);
}

/* The first frame as the kernel compares it. */
static int read_head(const struct reader *r, const struct ynode *n, const struct pattern *p,
		     struct sp_head *h)
{
	const struct pat_part *part = &p->part[0];

	memset(h, 0, sizeof(*h));
	if (p->nparts == 1 && part->is_capture && part->shape == PAT_U64) {
		h->kind = SP_HEAD_DIGITS;
		return 0;
	}
	if (p->nparts != 1 || part->is_capture)
		return bad_at(r, n->mark,
			      "the first frame must be a fixed text or a number ({room}, {x:u64}): "
			      "the kernel chooses messages by it");
	if (part->literal_len > SP_HEAD_LEN)
		return bad_at(r, n->mark, "the first frame is too long: at most %d bytes",
			      SP_HEAD_LEN);
	h->kind = SP_HEAD_LITERAL;
	h->len = (uint8_t)part->literal_len;
	memcpy(h->lit, part->literal, part->literal_len);
	return 0;
}

static int add_head(const struct reader *r, const struct ynode *n, struct profile_probe *p,
		    const struct sp_head *h)
{
	struct sp_probe *prog = &p->prog;

	for (int i = 0; i < prog->nheads; i++) {
		struct sp_head *old = &prog->head[i];

		if (old->kind == h->kind && old->len == h->len &&
		    !memcmp(old->lit, h->lit, sizeof(h->lit))) {
			old->copy |= h->copy;
			return 0;
		}
	}
	if (prog->nheads == SP_MAX_HEADS)
		return bad_at(r, n->mark, "more than %d different first frames in one probe",
			      SP_MAX_HEADS);
	prog->head[prog->nheads++] = *h;
	return 0;
}

static int check_frame(const struct reader *r, const struct ynode *n, const struct pattern *pat,
		       const struct profile_probe *p)
{
	unsigned int max = 0;

	for (int i = 0; i < p->prog.nfetch; i++)
		if (p->prog.fetch[i].arg == p->prog.frame_arg && p->prog.fetch[i].max > max)
			max = p->prog.fetch[i].max;
	for (int i = 0; i < pat->nparts; i++)
		if (!pat->part[i].is_capture && pat->part[i].literal_len > max)
			return bad_at(r, n->mark,
				      "\"%.32s\" is longer than the %u bytes copied of a frame: "
				      "raise max of argument %s",
				      n->text, max, p->args[p->prog.frame_arg].name);
	return 0;
}

static int read_frames(const struct reader *r, const struct ynode *list, struct profile_probe *p,
		       struct evt_match *m)
{
	struct names names = {.n = 0};
	struct sp_head head = {0};
	int rc = need_list(r, list, "frames", FRAMES_MAX);

	if (rc)
		return rc;
	m->frames = calloc(list->n, sizeof(*m->frames));
	if (!m->frames)
		return no_memory(r);
	for (size_t i = 0; !rc && i < list->n; i++) {
		const struct ynode *n = list->item[i];
		struct pattern *pat = &m->frames[m->nframes];
		const char *text;

		rc = read_text(r, n, "a frame", &text);
		if (rc)
			break;
		if (!strcmp(text, "...")) {
			if (i + 1 < list->n || !i)
				return bad_at(r, n->mark,
					      "\"...\" (any more frames) can only be "
					      "the last of several frames");
			m->frames_open = true;
			break;
		}
		rc = compile(r, n, pat);
		if (rc)
			break;
		m->nframes++;
		rc = i ? 0 : read_head(r, n, pat, &head);
		if (!rc)
			rc = check_frame(r, n, pat, p);
		if (!rc)
			rc = add_names(r, n, p, pat, &names);
		if (needs_bytes(pat))
			head.copy |= 1ULL << i;
	}
	return rc ? rc : add_head(r, list->item[0], p, &head);
}

static int read_message(const struct reader *r, const struct ynode *map, struct profile_probe *p)
{
	static const char *const keys[] = {"name", "frames", "event", NULL};
	struct evt_match *m = &p->match[p->nmatch++];
	struct ynode *name, *frames;
	const char *text;
	int rc = need_map(r, map, "a message");

	m->mark = map->mark;
	if (!rc)
		rc = read_keys(r, map, "a message", keys);
	if (!rc)
		rc = need_key(r, map, "the message", "frames", &frames);
	if (rc)
		return rc;
	name = ynode_get(map, "name");
	if (name) {
		rc = read_name(r, name, "a message's name", &text);
		m->name = rc ? NULL : strdup(text);
		if (!rc && !m->name)
			rc = no_memory(r);
	}
	if (!rc)
		rc = read_frames(r, frames, p, m);
	if (!rc)
		rc = read_own_event(r, map, p, m);
	return rc;
}

int read_messages(const struct reader *r, const struct ynode *n, struct profile_probe *p)
{
	int rc = need_list(r, n, "messages", 32);

	if (!rc)
		rc = alloc_matches(r, p, n->n);
	for (size_t i = 0; !rc && i < n->n; i++)
		rc = read_message(r, n->item[i], p);
	return rc;
}

/* ---- both ------------------------------------------------------------------------------------ */

static int pattern_copy(struct pattern *to, const struct pattern *from)
{
	*to = *from;
	for (int i = 0; i < PAT_MAX_PARTS; i++)
		to->part[i].literal = NULL;
	for (int i = 0; i < from->nparts; i++) {
		const struct pat_part *part = &from->part[i];

		if (!part->literal)
			continue;
		to->part[i].literal = strndup(part->literal, part->literal_len);
		if (!to->part[i].literal)
			return -ENOMEM;
	}
	return 0;
}

int message_copy(struct evt_match *to, const struct evt_match *from)
{
	int rc = event_copy(&to->event, &from->event);

	to->mark = from->mark;
	to->frames_open = from->frames_open;
	if (!rc && from->name) {
		to->name = strdup(from->name);
		rc = to->name ? 0 : -ENOMEM;
	}
	to->frames = calloc((size_t)from->nframes + 1, sizeof(*to->frames));
	if (!to->frames)
		return -ENOMEM;
	for (int i = 0; !rc && i < from->nframes; i++) {
		rc = pattern_copy(&to->frames[i], &from->frames[i]);
		to->nframes++;
	}
	return rc;
}

void match_clear(struct evt_match *m)
{
	for (int k = 0; k < m->non; k++)
		pattern_free(&m->on[k].pat);
	for (int k = 0; k < m->nframes; k++)
		pattern_free(&m->frames[k]);
	free(m->frames);
	free(m->name);
	event_free(&m->event);
}
