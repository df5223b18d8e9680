// SPDX-License-Identifier: Apache-2.0
/* Where each field of an event comes from. */
#include <stdio.h>
#include <string.h>

#include "collect/fields.h"

static const char *const field_names[F_MAX] = {
	[F_ROOM] = "room",       [F_OP] = "op",       [F_KIND] = "kind",
	[F_CHUNK] = "chunk",     [F_LAST] = "last",   [F_RANK] = "rank",
	[F_PART] = "part",       [F_PARTS] = "parts", [F_PEER] = "peer",
	[F_AGENT] = "agent",     [F_NEED] = "need",   [F_RID] = "rid",
	[F_STATUS] = "status",   [F_ERROR] = "error", [F_NOTE] = "note",
	[F_CREATED] = "created", [F_BYTES] = "bytes", [F_OBJECT] = "object",
	[F_COUNT] = "count",     [F_WORK] = "work",   [F_ADDRESS] = "address",
	[F_SEGMENT] = "segment", [F_PAGES] = "pages", [F_BASES] = "bases",
	[F_ITEM] = "item",
};

int fields_arg_named(const struct profile_probe *pr, const char *name)
{
	for (int i = 0; i < pr->nargs; i++)
		if (!strcmp(pr->args[i].name, name))
			return i;
	return -1;
}

static const struct pat_part *pattern_captures(const struct pattern *pat, const char *name)
{
	for (int i = 0; i < pat->nparts; i++)
		if (pat->part[i].is_capture && !strcmp(pat->part[i].name, name))
			return &pat->part[i];
	return NULL;
}

static const struct pat_part *match_captures(const struct evt_match *m, const char *name)
{
	const struct pat_part *part = NULL;

	for (int i = 0; m && !part && i < m->non; i++)
		part = pattern_captures(&m->on[i].pat, name);
	for (int i = 0; m && !part && i < m->nframes; i++)
		part = pattern_captures(&m->frames[i], name);
	return part;
}

static uint8_t element_size(const struct pat_part *part)
{
	return part->shape == PAT_U64S ? 8 : part->shape == PAT_S32S ? 4 : 0;
}

static const char *spec_value(const struct evt_spec *spec, const char *name)
{
	for (int i = 0; i < spec->nfields; i++)
		if (!strcmp(spec->field[i].name, name))
			return spec->field[i].value;
	return NULL;
}

static void plan_field(const struct profile_probe *pr, const struct evt_match *m,
		       struct field_plan *plan, enum field id)
{
	const char *given = spec_value(plan->spec, field_names[id]);
	const char *word = given ? given : field_names[id];
	const struct pat_part *part;

	part = strchr(word, '{') ? NULL : match_captures(m, word);
	plan->f[id].text = word;
	if (strchr(word, '{')) {
		plan->f[id].from = FROM_TEMPLATE;
	} else if (part) {
		plan->f[id].from = FROM_CAPTURE;
		plan->f[id].element = element_size(part);
	} else if (fields_arg_named(pr, word) >= 0) {
		plan->f[id].from = FROM_ARG;
		plan->f[id].arg = fields_arg_named(pr, word);
	} else if (given) {
		plan->f[id].from = FROM_CONST;
	}
}

void fields_plan(const struct profile *p, const struct profile_probe *pr, const struct evt_match *m,
		 struct field_plan *plan)
{
	memset(plan, 0, sizeof(*plan));
	plan->spec = m ? &m->event : &pr->event;
	for (int id = 0; id < F_MAX; id++) {
		plan_field(pr, m, plan, id);
		if (plan->f[id].from != FROM_NOWHERE)
			plan->used[plan->nused++] = (uint8_t)id;
	}
	for (int i = 0; i < plan->spec->ncovers; i++)
		for (int k = 0; k < p->nneeds; k++) {
			char need[32];

			snprintf(need, sizeof(need), "%s%s", p->needs[k].kind,
				 p->needs[k].last ? ".last" : "");
			if (!strcmp(need, plan->spec->covers[i]))
				plan->covers |= 1u << k;
		}
}
