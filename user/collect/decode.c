// SPDX-License-Identifier: Apache-2.0
/* One record of a probe -> the event that the profile says it is. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/collect.h"
#include "collect/fields.h"

struct decoder {
	const struct profile *p;
	struct frames *frames;
	struct field_plan *plans; /* one per alternative of each probe, or one for the probe */
	int first_plan[SP_MAX_PROBES];
	struct collect_stats stats;
	struct event_more more; /* of the last record */
};

static int count_plans(const struct profile_probe *pr)
{
	return pr->nmatch ? pr->nmatch : 1;
}

struct decoder *decoder_new(const struct profile *p)
{
	struct decoder *d = calloc(1, sizeof(*d));
	int n = 0;

	if (!d)
		return NULL;
	d->p = p;
	d->frames = frames_new();
	for (int i = 0; i < p->nprobes; i++) {
		d->first_plan[i] = n;
		n += count_plans(&p->probes[i]);
	}
	d->plans = calloc(n + 1, sizeof(*d->plans));
	if (!d->frames || !d->plans) {
		decoder_free(d);
		return NULL;
	}
	for (int i = 0; i < p->nprobes; i++)
		for (int k = 0; k < count_plans(&p->probes[i]); k++)
			fields_plan(p, &p->probes[i],
				    p->probes[i].nmatch ? &p->probes[i].match[k] : NULL,
				    &d->plans[d->first_plan[i] + k]);
	return d;
}

void decoder_free(struct decoder *d)
{
	if (!d)
		return;
	frames_free(d->frames);
	free(d->plans);
	free(d);
}

void decoder_stats(const struct decoder *d, struct collect_stats *s)
{
	s->unmatched = d->stats.unmatched;
	s->unreadable = d->stats.unreadable;
	s->broken = d->stats.broken;
}

const struct event_more *decoder_more(const struct decoder *d)
{
	return &d->more;
}

const struct field_plan *decoder_plan(const struct decoder *d, int probe)
{
	return &d->plans[d->first_plan[probe]];
}

/* No -errno: none fits; none does, and one might if more of a text had been copied. */
#define MATCH_NONE (-1000)
#define MATCH_CUT  (-1001)

/* Does each pattern of the alternative fit its argument? 1 yes, 0 no, MATCH_CUT, -errno unreadable.
 */
static int match_args(const struct evt_match *m, const struct profile_probe *pr,
		      const struct sp_rec_hit *rec, size_t len, struct captures *caps)
{
	struct captures found = {.n = 0};
	bool cut = false;

	for (int i = 0; i < m->non; i++) {
		struct arg_value v;
		int rc = fields_arg(pr, rec, len, m->on[i].arg, &v);

		if (rc == -ENODATA)
			return 0;
		if (rc)
			return rc;
		fields_arg_text(pr, m->on[i].arg, false, &v);
		if (pattern_match(&m->on[i].pat, v.text, v.text_len, v.full_len, &found))
			continue;
		if (v.full_len <= v.text_len ||
		    !pattern_may_match(&m->on[i].pat, v.text, v.text_len))
			return 0;
		cut = true;
	}
	if (cut)
		return MATCH_CUT;
	*caps = found;
	return 1;
}

/* Which alternative; MATCH_NONE, MATCH_CUT, -errno. */
static int choose(const struct profile_probe *pr, const struct sp_rec_hit *rec, size_t len,
		  struct captures *caps)
{
	int none = MATCH_NONE;

	for (int i = 0; i < pr->nmatch; i++) {
		int rc = match_args(&pr->match[i], pr, rec, len, caps);

		if (rc == MATCH_CUT)
			none = rc;
		else if (rc)
			return rc < 0 ? rc : i;
	}
	return none;
}

static void begin(const struct sp_rec_hit *rec, struct sp_event *ev)
{
	sp_event_init(ev);
	ev->ns = rec->h.ns;
	ev->pid = rec->h.pid;
	ev->tid = rec->h.tid;
	ev->probe = rec->h.probe;
}

static int decode_frame(struct decoder *d, const struct profile_probe *pr,
			const struct sp_rec_hit *rec, size_t len, struct sp_event *ev)
{
	const struct message *msg;
	struct captures caps = {.n = 0};
	struct arg_value v;
	int rc = fields_arg(pr, rec, len, pr->prog.frame_arg, &v);
	uint64_t sock = rec->val[pr->prog.sock_arg];
	int which;

	if (rc && rc != -ENODATA) {
		frames_lost(d->frames, rec, rec->len[pr->prog.sock_arg] < 0 ? NULL : &sock);
		d->stats.unreadable++;
		return rc;
	}
	rc = frames_add(d->frames, rec, sock, (uint32_t)rec->val[pr->prog.frame_arg], v.text,
			v.text_len, &msg);
	if (rc == -EBADMSG)
		d->stats.broken++;
	if (rc <= 0)
		return 0;
	which = frames_match(pr, msg, &caps);
	if (which < 0) {
		d->stats.unmatched++;
		return 0;
	}
	begin(rec, ev);
	if (msg->cut)
		ev->flags |= EV_CUT;
	rc = fields_fill(d->p, pr, &d->plans[d->first_plan[rec->h.probe] + which], rec, len, &caps,
			 ev, &d->more);
	if (rc < 0)
		d->stats.unreadable++;
	return rc;
}

static int decode_hit(struct decoder *d, const struct profile_probe *pr,
		      const struct sp_rec_hit *rec, size_t len, struct sp_event *ev)
{
	struct captures caps = {.n = 0};
	int which = 0;

	if (pr->nmatch) {
		which = choose(pr, rec, len, &caps);
		if (which == MATCH_NONE) {
			d->stats.unmatched++;
			return 0;
		}
		if (which < 0)
			return which;
	}
	begin(rec, ev);
	return fields_fill(d->p, pr, &d->plans[d->first_plan[rec->h.probe] + which], rec, len,
			   &caps, ev, &d->more);
}

static int process_event(const struct sp_rec_hit *rec, struct sp_event *ev)
{
	sp_event_init(ev);
	ev->ns = rec->h.ns;
	ev->pid = rec->h.pid;
	ev->tid = rec->h.tid;
	switch (rec->h.type) {
	case SP_REC_EXIT:
		ev->role = ROLE_THREAD;
		snprintf(ev->kind, sizeof(ev->kind), "exit");
		ev->code = (int64_t)rec->val[0];
		return 1;
	case SP_REC_EXEC:
		ev->role = ROLE_TARGET;
		snprintf(ev->kind, sizeof(ev->kind), "exec");
		return 1;
	default:
		return 0; /* a fork is an event only once the child is attached */
	}
}

int decoder_record(struct decoder *d, const struct sp_rec_hit *rec, size_t len, struct sp_event *ev)
{
	const struct profile_probe *pr;
	int rc;

	d->more = (struct event_more){.work = WORK_NONE};
	if (len < sizeof(*rec))
		return 0;
	if (rec->h.type != SP_REC_HIT)
		return process_event(rec, ev);
	if (rec->h.probe >= d->p->nprobes)
		return 0;
	pr = &d->p->probes[rec->h.probe];
	if (pr->is_frames)
		return decode_frame(d, pr, rec, len, ev);
	rc = decode_hit(d, pr, rec, len, ev);
	if (rc < 0)
		d->stats.unreadable++;
	return rc;
}
