// SPDX-License-Identifier: Apache-2.0
/* Alert lines as JSON. The form is a contract: docs/alerts.md. */
#include "output/json.h"
#include "output/output.h"
#include "store/store.h"

#define ALERT_VERSION 1

/* What every line begins with. */
static json_t *head(const struct model_alert *a, const struct alert_env *env, uint32_t pid)
{
	char time[32];

	time_utc(a->ns, env->utc_offset_ns, time);
	return json_pack("{s:i, s:s, s:s, s:o, s:o}", "v", ALERT_VERSION, "type",
			 alert_type_name(a->type), "time", time, "pid", out_json_count(pid),
			 "profile", out_json_text(env->profile));
}

static int add_life(json_t *j, const struct model_alert *a)
{
	const struct model_life *l = a->life;
	const struct model_verdict *v = l->verdict;
	json_t *more = json_pack(
		"{s:o, s:I, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b}",
		"room", out_json_string(l->room), "life", (json_int_t)l->life, "stage",
		sp_stage_name(l->stage), "age_s", out_json_seconds(a->age_ns), "idle_s",
		out_json_seconds(a->idle_ns), "cause", out_json_cause(v), "confidence",
		out_json_confidence(v), "pin", v->cause ? out_json_pin(v->pin) : json_null(), "rid",
		out_json_text(l->rid), "peer", out_json_text(l->peer), "last",
		out_json_text(v->last), "expected", out_json_text(v->expected), "culprit",
		out_json_culprit(&v->culprit), "evidence", out_json_evidence(v), "uncertain",
		(int)l->uncertain);

	return more ? json_object_update_new(j, more) : -1;
}

static int add_outcome(json_t *j, const struct model_alert *a)
{
	if (a->type == ALERT_RECOVERED &&
	    json_object_set_new(j, "stalled_s", out_json_seconds(a->stalled_ns)))
		return -1;
	if (a->type == ALERT_STUCK)
		return 0;
	return json_object_set_new(
		j, "outcome", a->outcome ? json_string(sp_outcome_name(a->outcome)) : json_null());
}

static int add_loss(json_t *j, const struct model_alert *a)
{
	json_t *rooms = json_array();

	for (size_t i = 0; i < a->nrooms; i++)
		json_array_append_new(rooms, out_json_string(a->rooms[i]));
	return json_object_set_new(j, "lost", json_integer((json_int_t)a->lost)) ||
	       json_object_set_new(j, "why", out_json_text(a->why)) ||
	       json_object_set_new(j, "rooms", rooms) ||
	       json_object_set_new(j, "rooms_total", json_integer((json_int_t)a->total_rooms));
}

static int add_what(json_t *j, const struct model_alert *a)
{
	if (json_object_set_new(j, "tid", out_json_count(a->tid)) ||
	    json_object_set_new(j, "what", out_json_text(a->what)))
		return -1;
	if (a->type == ALERT_PEER && (json_object_set_new(j, "peer", out_json_text(a->peer)) ||
				      json_object_set_new(j, "agent", out_json_text(a->agent))))
		return -1;
	return json_object_set_new(j, "note", out_json_text(a->note));
}

char *alert_json(const struct model_alert *a, const struct alert_env *env)
{
	json_t *j = head(a, env, a->life ? a->life->pid : a->pid);
	int rc;

	if (!j)
		return NULL;
	switch (a->type) {
	case ALERT_LOSS:
		rc = add_loss(j, a);
		break;
	case ALERT_TARGET:
	case ALERT_PEER:
		rc = add_what(j, a);
		break;
	default:
		rc = !a->life || add_life(j, a) || add_outcome(j, a);
	}
	if (rc) {
		json_decref(j);
		return NULL;
	}
	return out_json_line(j);
}
