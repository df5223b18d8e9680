// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/fields.h"
#include "event/id.h"

#define TEXT_MAX                                                                                   \
	((size_t)2 * SP_SLOT_MAX) /* of a value, with its NUL: an id is longer than its name */

int fields_arg(const struct profile_probe *pr, const struct sp_rec_hit *rec, size_t len, int arg,
	       struct arg_value *v)
{
	int16_t got = rec->len[arg];
	size_t at;

	*v = (struct arg_value){.text = ""};
	if (got == SP_LEN_UNSET)
		return -ENODATA;
	if (got < 0 && got != SP_LEN_EMPTY)
		return got;
	if (!pr->args[arg].is_composite) {
		v->is_num = true;
		v->num = rec->val[arg];
		return 0;
	}
	v->full_len = rec->val[arg];
	if (got == SP_LEN_EMPTY || got == 0)
		return 0;
	if (rec->alt[arg] >= SP_MAX_FETCH)
		return -EBADMSG;
	at = pr->prog.fetch[rec->alt[arg]].data_at;
	if (sizeof(*rec) + at + got > len)
		return -EBADMSG;
	v->text = rec->data + at;
	v->text_len = got;
	return 0;
}

void fields_arg_text(const struct profile_probe *pr, int arg, bool hex, struct arg_value *v)
{
	if (!v->is_num)
		return;
	if (hex && pr->args[arg].is_hex)
		v->text_len = snprintf(v->own, sizeof(v->own), "0x%" PRIx64, v->num);
	else if (pr->args[arg].is_signed)
		v->text_len = snprintf(v->own, sizeof(v->own), "%" PRId64, (int64_t)v->num);
	else
		v->text_len = snprintf(v->own, sizeof(v->own), "%" PRIu64, v->num);
	v->full_len = v->text_len;
	v->text = v->own;
}

struct value {
	bool set, is_num;
	bool cut; /* there is more of it, which is not in text */
	uint64_t num;
	struct array_ref array;
	char text[TEXT_MAX];
};

/* Whole, as far as it was copied. */
static const char *capture_text(const struct capture *c, int *len)
{
	bool is_long = c->raw && !c->is_num;

	*len = is_long ? (int)c->raw_len : (int)strlen(c->text);
	return is_long ? c->raw : c->text;
}

/* Append one named value to a template's result. */
static int append_named(const struct profile_probe *pr, const struct sp_rec_hit *rec, size_t len,
			const struct captures *caps, const char *name, struct value *out)
{
	const struct capture *c = captures_find(caps, name);
	size_t at = strlen(out->text);
	struct arg_value v;
	int i, rc, n;

	if (c) {
		const char *text = capture_text(c, &n);

		rc = snprintf(out->text + at, TEXT_MAX - at, "%.*s", n, text);
		out->cut |= c->cut || (size_t)rc >= TEXT_MAX - at;
		return 0;
	}
	i = fields_arg_named(pr, name);
	if (i < 0)
		return 0;
	rc = fields_arg(pr, rec, len, i, &v);
	if (rc)
		return rc;
	fields_arg_text(pr, i, true, &v);
	rc = snprintf(out->text + at, TEXT_MAX - at, "%.*s", (int)v.text_len, v.text);
	out->cut |= v.full_len > v.text_len || (size_t)rc >= TEXT_MAX - at;
	return 0;
}

static int expand(const struct profile_probe *pr, const struct sp_rec_hit *rec, size_t len,
		  const struct captures *caps, const char *template, struct value *out)
{
	size_t n = 0;

	out->text[0] = '\0';
	while (*template && n + 1 < TEXT_MAX) {
		const char *end = *template == '{' ? strchr(template, '}') : NULL;
		char name[PAT_NAME_MAX];
		int rc;

		if (!end) {
			out->text[n++] = *template ++;
			out->text[n] = '\0';
			continue;
		}
		snprintf(name, sizeof(name), "%.*s", (int)(end - template - 1), template + 1);
		rc = append_named(pr, rec, len, caps, name, out);
		if (rc)
			return rc;
		n += strlen(out->text + n);
		template = end + 1;
	}
	out->cut |= *template != '\0';
	return 0;
}

static bool is_text(enum field id)
{
	switch (id) {
	case F_ROOM:
	case F_KIND:
	case F_PEER:
	case F_AGENT:
	case F_RID:
	case F_NOTE:
	case F_OBJECT:
	case F_LAST:
	case F_WORK:
		return true;
	default:
		return false;
	}
}

/* text: set. */
static void text_value(struct value *v)
{
	char *end;
	int base;

	v->set = true;
	base = !strncmp(v->text, "0x", 2) ? 16 : 10;
	errno = 0;
	if (v->text[0] == '-')
		v->num = (uint64_t)strtoll(v->text, &end, base);
	else
		v->num = strtoull(v->text, &end, base);
	v->is_num = v->text[0] && !*end && !errno;
}

/* element: bytes of an array's element; 0: it is none. */
static void capture_value(const struct capture *c, uint8_t element, struct value *v)
{
	const char *text;
	int len;

	if (!c)
		return;
	text = capture_text(c, &len);
	v->set = true;
	v->is_num = c->is_num;
	v->num = c->num;
	v->cut = c->cut;
	snprintf(v->text, TEXT_MAX, "%.*s", len, text);
	if (!element)
		return;
	v->array = (struct array_ref){
		.raw = c->raw,
		.n = c->raw ? c->raw_len / element : 0,
		.size = element,
		.cut = c->raw_len < c->num,
	};
}

static int evaluate(const struct profile_probe *pr, const struct field_plan *plan, enum field id,
		    const struct sp_rec_hit *rec, size_t len, const struct captures *caps,
		    struct value *v)
{
	struct arg_value a;
	int rc;

	v->set = v->is_num = v->cut = false;
	v->array = (struct array_ref){.raw = NULL};
	switch (plan->f[id].from) {
	case FROM_NOWHERE:
		return 0;
	case FROM_CONST:
		snprintf(v->text, TEXT_MAX, "%s", plan->f[id].text);
		text_value(v);
		return 0;
	case FROM_CAPTURE:
		capture_value(captures_find(caps, plan->f[id].text), plan->f[id].element, v);
		return 0;
	case FROM_ARG:
		rc = fields_arg(pr, rec, len, plan->f[id].arg, &a);
		if (rc)
			return rc == -ENODATA ? 0 : rc;
		if (a.is_num) {
			v->set = v->is_num = true;
			v->num = a.num;
			if (!is_text(id))
				return 0;
			fields_arg_text(pr, plan->f[id].arg, id == F_OBJECT || id == F_NOTE, &a);
			memcpy(v->text, a.own, sizeof(a.own));
			return 0;
		}
		snprintf(v->text, TEXT_MAX, "%.*s", (int)a.text_len, a.text);
		v->cut = a.full_len > a.text_len;
		text_value(v);
		return 0;
	case FROM_TEMPLATE:
		rc = expand(pr, rec, len, caps, plan->f[id].text, v);
		if (rc)
			return rc == -ENODATA ? 0 : rc;
		text_value(v);
		return 0;
	}
	return 0;
}

static enum sp_opstate classify(const struct status_spec *s, int64_t code)
{
	if (code >= s->done.lo && code <= s->done.hi)
		return OPS_DONE;
	if (code >= s->busy.lo && code <= s->busy.hi)
		return OPS_BUSY;
	if (code >= s->error.lo && code <= s->error.hi)
		return OPS_ERROR;
	return OPS_UNKNOWN;
}

static void set_code(const struct status_spec *s, const struct value *v, bool errors_only,
		     struct sp_event *ev)
{
	enum sp_opstate st = classify(s, (int64_t)v->num);

	if (errors_only && st != OPS_ERROR)
		return;
	ev->code = (int64_t)v->num;
	ev->status = st;
	if (st != OPS_ERROR)
		return;
	for (int i = 0; i < s->nnames; i++)
		if (s->names[i].code == ev->code)
			snprintf(ev->note, sizeof(ev->note), "%s", s->names[i].text);
}

static int32_t as_i32(const struct value *v)
{
	return v->is_num && v->num <= INT32_MAX ? (int32_t)v->num : -1;
}

static int8_t as_flag(const struct value *v)
{
	if (v->is_num && v->num <= 1)
		return (int8_t)v->num;
	if (!strcmp(v->text, "True") || !strcmp(v->text, "true"))
		return 1;
	if (!strcmp(v->text, "False") || !strcmp(v->text, "false"))
		return 0;
	return -1;
}

#define COPY_TEXT(dst, v) snprintf(dst, sizeof(dst), "%.*s", (int)sizeof(dst) - 1, (v)->text)

/* False: it is no text. */
static bool set_text(enum field id, const struct value *v, struct sp_event *ev)
{
	switch (id) {
	case F_ROOM:
		sp_id_name(ev->room, v->text, strlen(v->text));
		return true;
	case F_KIND:
		COPY_TEXT(ev->kind, v);
		return true;
	case F_PEER:
		sp_id_name(ev->peer, v->text, strlen(v->text));
		return true;
	case F_AGENT:
		sp_id_name(ev->agent, v->text, strlen(v->text));
		return true;
	case F_RID:
		if (!v->cut) /* else it may be anybody's */
			sp_id_name(ev->rid, v->text, strlen(v->text));
		return true;
	case F_OBJECT:
		COPY_TEXT(ev->object, v);
		return true;
	case F_NOTE:
		if (!ev->note[0])
			COPY_TEXT(ev->note, v);
		return true;
	default:
		return false;
	}
}

static void set_field(const struct status_spec *s, enum field id, const struct value *v,
		      struct sp_event *ev)
{
	if (set_text(id, v, ev))
		return;
	switch (id) {
	case F_OP:
		ev->op = v->num;
		break;
	case F_CHUNK:
		ev->chunk = as_i32(v);
		break;
	case F_LAST:
		ev->last = as_flag(v);
		break;
	case F_RANK:
		ev->rank = (int16_t)(as_i32(v) > INT16_MAX ? -1 : as_i32(v));
		break;
	case F_PART:
		ev->part = as_i32(v);
		break;
	case F_PARTS:
		ev->parts = as_i32(v);
		break;
	case F_NEED:
		ev->need = as_i32(v);
		break;
	case F_STATUS:
	case F_ERROR:
		set_code(s, v, id == F_ERROR, ev);
		break;
	case F_CREATED:
		if (as_flag(v) == 1)
			ev->flags |= EV_CREATED;
		break;
	case F_BYTES:
		ev->bytes = v->is_num ? v->num : 0;
		break;
	case F_COUNT:
		ev->count = v->is_num ? (uint32_t)(v->num < UINT32_MAX ? v->num : UINT32_MAX) : 0;
		break;
	default:
		break;
	}
}

/* What ties an event to a room: no fields of the event's. */
static void set_more(enum field id, const struct value *v, struct event_more *more)
{
	switch (id) {
	case F_WORK:
		more->work = !strcmp(v->text, "begin") ? WORK_BEGIN
			     : !strcmp(v->text, "end") ? WORK_END
						       : WORK_NONE;
		break;
	case F_ADDRESS:
		more->has_address = v->is_num;
		more->address = v->num;
		break;
	case F_SEGMENT:
		more->has_segment = v->is_num;
		more->segment = v->num;
		break;
	case F_ITEM:
		more->has_item = v->is_num && v->num;
		more->item = v->num;
		break;
	case F_PAGES:
		more->pages = v->array;
		break;
	case F_BASES:
		more->bases = v->array;
		break;
	default:
		break;
	}
}

/* A peer whose every data list is empty takes part in the quorum and takes no data. */
static bool is_dummy(const struct evt_spec *spec, const struct captures *caps)
{
	if (!spec->ndummy)
		return false;
	for (int i = 0; i < spec->ndummy; i++) {
		const struct capture *c = captures_find(caps, spec->dummy[i]);

		if (!c || c->num)
			return false;
	}
	return true;
}

/* Without its room such an event says nothing (a message cut behind its room frame). */
static bool needs_room(int role)
{
	switch (role) {
	case ROLE_ARRIVE:
	case ROLE_HELD:
	case ROLE_ANNOUNCE:
	case ROLE_ABORT:
	case ROLE_TOLD:
	case ROLE_REPLY:
	case ROLE_RELEASE:
		return true;
	default:
		return false;
	}
}

int fields_fill(const struct profile *p, const struct profile_probe *pr,
		const struct field_plan *plan, const struct sp_rec_hit *rec, size_t len,
		const struct captures *caps, struct sp_event *ev, struct event_more *more)
{
	struct value v;

	ev->role = plan->spec->role;
	ev->covers = plan->covers;
	if (rec->h.count > 1)
		ev->count = rec->h.count;
	if (rec->h.enter_ns && rec->h.ns > rec->h.enter_ns)
		ev->took_ns = rec->h.ns - rec->h.enter_ns;
	for (int i = 0; i < plan->nused; i++) {
		enum field id = plan->used[i];
		int rc = evaluate(pr, plan, id, rec, len, caps, &v);

		if (rc || (id == F_ROOM && v.cut))
			return -EFAULT;
		if (v.set && id < F_WORK)
			set_field(&p->statuses[pr->status], id, &v, ev);
		else if (v.set)
			set_more(id, &v, more);
	}
	if (is_dummy(plan->spec, caps))
		ev->flags |= EV_NODATA;
	return ev->room[0] || !needs_room(ev->role);
}
