// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/fields.h"

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

/* Append one named value to a template's result. */
static int append_named(const struct profile_probe *pr, const struct sp_rec_hit *rec, size_t len,
			const struct captures *caps, const char *name, char *out, size_t out_len)
{
	const struct capture *c = captures_find(caps, name);
	struct arg_value v;
	int i, rc;

	if (c) {
		snprintf(out, out_len, "%s", c->text);
		return 0;
	}
	i = fields_arg_named(pr, name);
	if (i < 0)
		return 0;
	rc = fields_arg(pr, rec, len, i, &v);
	if (rc)
		return rc;
	fields_arg_text(pr, i, true, &v);
	snprintf(out, out_len, "%.*s", (int)v.text_len, v.text);
	return 0;
}

static int expand(const struct profile_probe *pr, const struct sp_rec_hit *rec, size_t len,
		  const struct captures *caps, const char *template, char *out, size_t out_len)
{
	size_t n = 0;

	out[0] = '\0';
	while (*template && n + 1 < out_len) {
		const char *end = *template == '{' ? strchr(template, '}') : NULL;
		char name[PAT_NAME_MAX];
		int rc;

		if (!end) {
			out[n++] = *template ++;
			out[n] = '\0';
			continue;
		}
		snprintf(name, sizeof(name), "%.*s", (int)(end - template - 1), template + 1);
		rc = append_named(pr, rec, len, caps, name, out + n, out_len - n);
		if (rc)
			return rc;
		n += strlen(out + n);
		template = end + 1;
	}
	return 0;
}

struct value {
	bool set, is_num;
	uint64_t num;
	struct array_ref array;
	char text[CAP_VALUE_MAX];
};

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

static void text_value(struct value *v, const char *text, size_t len)
{
	char *end;
	int base;

	snprintf(v->text, sizeof(v->text), "%.*s", (int)len, text);
	v->set = true;
	base = !strncmp(v->text, "0x", 2) ? 16 : 10;
	errno = 0;
	if (v->text[0] == '-')
		v->num = (uint64_t)strtoll(v->text, &end, base);
	else
		v->num = strtoull(v->text, &end, base);
	v->is_num = v->text[0] && !*end && !errno;
}

static int evaluate(const struct profile_probe *pr, const struct field_plan *plan, enum field id,
		    const struct sp_rec_hit *rec, size_t len, const struct captures *caps,
		    struct value *v)
{
	const struct capture *c;
	struct arg_value a;
	char text[CAP_VALUE_MAX];
	int rc;

	v->set = v->is_num = false;
	v->array = (struct array_ref){.raw = NULL};
	switch (plan->f[id].from) {
	case FROM_NOWHERE:
		return 0;
	case FROM_CONST:
		text_value(v, plan->f[id].text, strlen(plan->f[id].text));
		return 0;
	case FROM_CAPTURE:
		c = captures_find(caps, plan->f[id].text);
		if (!c)
			return 0;
		v->set = true;
		v->is_num = c->is_num;
		v->num = c->num;
		memcpy(v->text, c->text, sizeof(v->text));
		if (plan->f[id].element) {
			v->array = (struct array_ref){
				.raw = c->raw,
				.n = c->raw ? c->raw_len / plan->f[id].element : 0,
				.size = plan->f[id].element,
				.cut = c->raw_len < c->num,
			};
		}
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
		} else {
			text_value(v, a.text, a.text_len);
		}
		return 0;
	case FROM_TEMPLATE:
		rc = expand(pr, rec, len, caps, plan->f[id].text, text, sizeof(text));
		if (rc)
			return rc == -ENODATA ? 0 : rc;
		text_value(v, text, strlen(text));
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
		COPY_TEXT(ev->room, v);
		return true;
	case F_KIND:
		COPY_TEXT(ev->kind, v);
		return true;
	case F_PEER:
		COPY_TEXT(ev->peer, v);
		return true;
	case F_AGENT:
		COPY_TEXT(ev->agent, v);
		return true;
	case F_RID:
		COPY_TEXT(ev->rid, v);
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

		if (rc)
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
