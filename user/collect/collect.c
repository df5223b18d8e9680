// SPDX-License-Identifier: Apache-2.0
#include <bpf/libbpf.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/collect.h"
#include "collect/inside.h"
#include "collect/places.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"

/* In the heap only: the room of this event is known by what a loss makes void. */
#define EV_DOUBTFUL (1 << 15)
/* A record's time is taken a little before its place in the ring. */
#define FORGET_NS 1000000

struct collect {
	const struct profile *p;
	struct ring_buffer *ring;
	struct decoder *decoder;
	struct sockets *sockets; /* NULL: the profile has none */
	struct reorder *reorder;
	struct calls *calls;
	struct tallies *tallies;
	struct scope *scope;
	struct inside *inside;
	struct places *places;
	uint64_t seen_ns, count_ns; /* newest record; when calls are counted up next */
	struct collect_ops ops;
	void *ctx;
	struct seq seq;
	uint64_t explained; /* missing numbers told as such */
	bool has_seq;
	bool have_counters;
	uint64_t counters[SP_C_MAX];
	uint64_t counted_ns; /* when the counters were last read: losses are younger */
	uint64_t released;   /* no event at or before this may be handed on any more */
	struct collect_stats stats;
};

static int push(struct collect *c, const struct sp_event *ev)
{
	int rc = reorder_push(c->reorder, ev);

	if (rc)
		pr_warn("out of memory: an event is lost");
	return rc;
}

/* An event whose room is decided, perhaps long after its time. */
static void on_decided(void *ctx, const struct sp_event *given, bool doubtful)
{
	struct sp_event ev = *given;

	if (doubtful && ev.room[0])
		ev.flags |= EV_DOUBTFUL;
	push(ctx, &ev);
}

struct doubt {
	uint64_t since_ns;
	uint32_t pid;
};

static void take_room(void *ctx, struct sp_event *ev)
{
	const struct doubt *d = ctx;

	if (!(ev->flags & EV_DOUBTFUL) || ev->ns < d->since_ns || (d->pid && ev->pid != d->pid))
		return;
	ev->flags &= (uint16_t)~EV_DOUBTFUL;
	ev->room[0] = '\0';
}

/* What went missing since then may have been the end of anything. pid 0: of any process. */
static void forget(struct collect *c, uint64_t since_ns, uint32_t pid)
{
	struct doubt d = {.since_ns = since_ns, .pid = pid};

	scope_loss(c->scope, pid);
	places_loss(c->places, pid);
	reorder_each(c->reorder, take_room, &d);
}

/* Between ns and until_ns (0: at ns). */
static int push_loss(struct collect *c, uint64_t ns, uint64_t until_ns, uint64_t count,
		     const char *cause)
{
	struct sp_event ev;

	sp_event_init(&ev);
	ev.ns = ns;
	ev.role = ROLE_LOSS;
	ev.op = until_ns;
	ev.code = (int64_t)count;
	snprintf(ev.kind, sizeof(ev.kind), "%s", cause);
	return collect_inject(c, &ev);
}

static void on_socket_event(void *ctx, const struct sp_event *ev)
{
	collect_inject(ctx, ev);
}

/* A process that ends, or becomes another program, has no requests and no peers any more. Before
 * the caller hears of it: it forgets whose front the process was. */
static void process_record(struct collect *c, const struct sp_rec_hit *rec)
{
	bool gone = rec->h.type == SP_REC_EXEC || (rec->h.type == SP_REC_EXIT && rec->val[0] == 1);

	if (rec->h.type != SP_REC_EXEC && rec->h.type != SP_REC_EXIT)
		return;
	inside_gone(c->inside, rec->h.pid, gone ? 0 : rec->h.tid, rec->h.ns);
	scope_gone(c->scope, rec->h.pid, gone ? 0 : rec->h.tid);
	if (!gone)
		return;
	places_gone(c->places, rec->h.pid);
	if (c->sockets)
		sockets_process_gone(c->sockets, rec->h.pid, rec->h.ns);
}

/* An event, or none (NULL), of a hit. */
static void route(struct collect *c, const struct sp_rec_hit *rec, struct sp_event *ev)
{
	const struct profile_probe *pr = &c->p->probes[rec->h.probe];
	const struct event_more *more = decoder_more(c->decoder);

	if (ev) {
		places_learn(c->places, ev, more);
		places_tie(c->places, ev, more);
	}
	if (pr->socket >= 0) {
		if (ev)
			sockets_message(c->sockets, ev, rec->val[pr->prog.sock_arg],
					rec->h.flags & SP_RF_OUT);
		return;
	}
	inside_returned(c->inside, &rec->h);
	if (ev && c->sockets && !sockets_native(c->sockets, ev))
		ev = NULL;
	scope_record(c->scope, rec, ev, more);
}

/* Only calls move nothing: whatever else cannot be read may have changed whose work is whose. */
static void unreadable(struct collect *c, const struct sp_rec_hit *rec)
{
	const struct profile_probe *pr = &c->p->probes[rec->h.probe];

	scope_record(c->scope, rec, NULL, decoder_more(c->decoder));
	if (pr->event.role == ROLE_CALL && !pr->nmatch)
		return;
	push_loss(c, rec->h.ns, 0, 1, "read-fault");
	forget(c, rec->h.ns, rec->h.pid);
}

static int on_hit(struct collect *c, const struct sp_rec_hit *rec, size_t len)
{
	struct sp_event ev;
	int rc;

	if (rec->h.type != SP_REC_HIT) {
		process_record(c, rec);
		if (c->ops.process)
			c->ops.process(c->ctx, rec);
		if (decoder_record(c->decoder, rec, len, &ev) == 1)
			collect_inject(c, &ev);
		return 0;
	}
	if (rec->h.probe >= c->p->nprobes) { /* of a probe of attach's own */
		if (c->ops.process)
			c->ops.process(c->ctx, rec);
		return 0;
	}
	rc = decoder_record(c->decoder, rec, len, &ev);
	if (rc < 0)
		unreadable(c, rec);
	else
		route(c, rec, rc == 1 ? &ev : NULL);
	return 0;
}

int collect_record(struct collect *c, const void *rec, size_t len)
{
	const struct sp_rec *h = rec;

	if (len < sizeof(*h))
		return 0;
	c->stats.records++;
	if (h->ns > c->seen_ns)
		c->seen_ns = h->ns;
	if (c->has_seq && h->seq)
		seq_seen(&c->seq, h->seq, h->ns);
	if (h->type == SP_REC_CONN || h->type == SP_REC_HTTP) {
		if (c->sockets)
			sockets_record(c->sockets, rec, len);
		return 0;
	}
	return len < sizeof(struct sp_rec_hit) ? 0 : on_hit(c, rec, len);
}

static int on_record(void *ctx, void *data, size_t len)
{
	return collect_record(ctx, data, len);
}

int collect_listen(struct collect *c, int ring_fd, struct sp_err *err)
{
	int rc;

	if (ring_fd < 0)
		return 0;
	c->ring = ring_buffer__new(ring_fd, on_record, c, NULL);
	if (c->ring)
		return 0;
	rc = -errno;
	return sp_err_set(err, SP_EXIT_FAIL, rc, "ring buffer: cannot be mapped: %s",
			  strerror(-rc));
}

int collect_open(const struct profile *p, bool has_seq, const struct collect_ops *ops, void *ctx,
		 struct collect **out, struct sp_err *err)
{
	struct collect *c = calloc(1, sizeof(*c));
	bool no_memory = false;

	if (!c)
		return sp_err_set(err, SP_EXIT_FAIL, -ENOMEM, "out of memory");
	c->p = p;
	c->ops = *ops;
	c->ctx = ctx;
	c->has_seq = has_seq;
	c->seq.base = c->seq.top = 1; /* the kernel's first number; 0 means none */
	c->decoder = decoder_new(p);
	c->reorder = reorder_new();
	c->places = places_new();
	c->calls = calls_new(on_decided, c);
	c->tallies = tallies_new(p, on_decided, c);
	c->scope = scope_new(p, c->calls, c->tallies, on_decided, c);
	c->inside = inside_new(p, c->decoder, c->scope, on_decided, c);
	if (p->sockets && p->sockets->nentries) {
		c->sockets = sockets_new(p, ops, ctx, on_socket_event, c);
		no_memory = !c->sockets;
	}
	no_memory |= !c->places || !c->calls || !c->tallies || !c->scope || !c->inside;
	if (!c->decoder || !c->reorder || no_memory) {
		collect_close(c);
		return sp_err_set(err, SP_EXIT_FAIL, -ENOMEM, "out of memory");
	}
	*out = c;
	return 0;
}

void collect_close(struct collect *c)
{
	if (!c)
		return;
	ring_buffer__free(c->ring);
	decoder_free(c->decoder);
	sockets_free(c->sockets);
	inside_free(c->inside);
	scope_free(c->scope);
	tallies_free(c->tallies);
	calls_free(c->calls);
	places_free(c->places);
	reorder_free(c->reorder);
	free(c);
}

int collect_poll(struct collect *c, int timeout_ms)
{
	int rc;

	if (!c->ring) /* no kernel side: the wait is all there is */
		return poll(NULL, 0, timeout_ms) < 0 ? -errno : 0;
	rc = ring_buffer__poll(c->ring, timeout_ms);
	if (rc < 0)
		return rc;
	/* epoll reports only what a wakeup announced; below the threshold nobody announces */
	return ring_buffer__consume(c->ring);
}

int collect_inject(struct collect *c, const struct sp_event *ev)
{
	if (ev->ns <= c->released)
		c->stats.late++;
	places_learn(c->places, ev, NULL);
	if (ev->role == ROLE_TARGET && (!strcmp(ev->kind, "exited") || !strcmp(ev->kind, "exec"))) {
		inside_gone(c->inside, ev->pid, 0, ev->ns);
		scope_gone(c->scope, ev->pid, 0);
		places_gone(c->places, ev->pid);
	}
	return push(c, ev);
}

/* Holes in the sequence numbers that no counter explains: are there new ones? */
static bool expire(struct collect *c, const uint64_t now[SP_C_MAX], uint64_t since_ns,
		   uint64_t now_ns)
{
	uint64_t n;

	if (!c->has_seq)
		return false;
	/* each failed reservation leaves a hole, told by its counter; a hole beyond them is
	 * not */
	seq_expire(&c->seq, now_ns);
	if (c->seq.lost <= c->explained + now[SP_C_RING_FULL])
		return false;
	n = c->seq.lost - c->explained - now[SP_C_RING_FULL];
	push_loss(c, since_ns, now_ns, n, "missing");
	c->stats.lost += n;
	c->explained += n;
	return true;
}

void collect_counters(struct collect *c, const uint64_t now[SP_C_MAX], uint64_t now_ns)
{
	static const struct {
		enum sp_counter counter;
		const char *cause;
	} causes[] = {
		{SP_C_RING_FULL, "ring-full"},         {SP_C_SAVE_FULL, "entry-map-full"},
		{SP_C_POLL_FULL, "poll-map-full"},     {SP_C_FRAME_FULL, "frame-map-full"},
		{SP_C_CONN_FULL, SP_LOSS_CONNECTIONS}, {SP_C_EACH_CUT, "elements-cut"},
		{SP_C_SCOPE_FULL, "scope-map-full"},   {SP_C_TALLY_FULL, SP_LOSS_TALLIES},
	};

	uint64_t since_ns = c->counted_ns ? c->counted_ns : now_ns;
	bool lost = false;

	c->counted_ns = now_ns;
	for (size_t i = 0; i < ARRAY_SIZE(causes); i++) {
		uint64_t n = now[causes[i].counter] - c->counters[causes[i].counter];
		bool counts = causes[i].counter != SP_C_TALLY_FULL;

		/* of tallies once: they move nothing, and it may go on for ever */
		if (!n || (!counts && c->counters[SP_C_TALLY_FULL]))
			continue;
		push_loss(c, since_ns, now_ns, n, causes[i].cause);
		c->stats.lost += n;
		lost |= counts;
	}
	memcpy(c->counters, now, sizeof(c->counters));
	lost |= expire(c, now, since_ns, now_ns);
	if (lost)
		forget(c, since_ns > FORGET_NS ? since_ns - FORGET_NS : 0, 0);
}

void collect_inside(struct collect *c, const struct attach_inside *in, int n, uint64_t now_ns)
{
	inside_look(c->inside, in, n, now_ns);
}

void collect_tallies(struct collect *c, const struct attach_tally *t, int n, uint64_t now_ns)
{
	tallies_look(c->tallies, t, n, now_ns);
}

void collect_finish(struct collect *c, uint64_t now_ns)
{
	scope_finish(c->scope);
	calls_flush(c->calls, now_ns);
}

/* Once a second of the events' time. */
static void turn(struct collect *c, uint64_t horizon_ns)
{
	uint64_t now_ns = horizon_ns == UINT64_MAX ? c->seen_ns : horizon_ns;

	scope_tick(c->scope, now_ns);
	if (!c->count_ns)
		c->count_ns = now_ns + NS_PER_SEC;
	if (now_ns < c->count_ns)
		return;
	calls_flush(c->calls, now_ns);
	c->count_ns = now_ns + NS_PER_SEC;
}

void collect_release(struct collect *c, uint64_t horizon_ns)
{
	struct sp_event ev;

	if (c->sockets) /* all that is older than the horizon has come in */
		sockets_tick(c->sockets, horizon_ns);
	turn(c, horizon_ns);
	while (reorder_pop(c->reorder, horizon_ns, &ev)) {
		c->stats.events++;
		ev.flags &= (uint16_t)~EV_DOUBTFUL;
		c->ops.event(c->ctx, &ev);
	}
	if (horizon_ns > c->released)
		c->released = horizon_ns;
}

void collect_stats(const struct collect *c, struct collect_stats *s)
{
	struct scope_stats scope;

	*s = c->stats;
	scope_stats(c->scope, &scope);
	s->given_up = scope.given_up;
	decoder_stats(c->decoder, s);
	if (c->sockets)
		sockets_stats(c->sockets, s);
}
