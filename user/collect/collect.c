// SPDX-License-Identifier: Apache-2.0
#include <bpf/libbpf.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/collect.h"
#include "util/cleanup.h"
#include "util/log.h"

struct collect {
	const struct profile *p;
	struct ring_buffer *ring;
	struct decoder *decoder;
	struct sockets *sockets; /* NULL: the profile has none */
	struct reorder *reorder;
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
static void socket_process(struct collect *c, const struct sp_rec_hit *rec)
{
	if (!c->sockets)
		return;
	if (rec->h.type == SP_REC_EXEC || (rec->h.type == SP_REC_EXIT && rec->val[0] == 1))
		sockets_process_gone(c->sockets, rec->h.pid, rec->h.ns);
}

static int route(struct collect *c, const struct sp_rec_hit *rec, const struct sp_event *ev)
{
	const struct profile_probe *pr;

	if (!c->sockets || rec->h.type != SP_REC_HIT)
		return collect_inject(c, ev);
	pr = &c->p->probes[rec->h.probe];
	if (pr->socket >= 0) {
		sockets_message(c->sockets, ev, rec->val[pr->prog.sock_arg],
				rec->h.flags & SP_RF_OUT);
		return 0;
	}
	return sockets_native(c->sockets, ev) ? collect_inject(c, ev) : 0;
}

static int on_hit(struct collect *c, const struct sp_rec_hit *rec, size_t len)
{
	struct sp_event ev;
	int rc;

	/* probes beyond the profile's are attach's own */
	if (rec->h.type != SP_REC_HIT || rec->h.probe >= c->p->nprobes) {
		socket_process(c, rec);
		if (c->ops.process)
			c->ops.process(c->ctx, rec);
	}
	rc = decoder_record(c->decoder, rec, len, &ev);
	if (rc == 1)
		return route(c, rec, &ev);
	if (rc < 0)
		push_loss(c, rec->h.ns, 0, 1, "read-fault");
	return 0;
}

int collect_record(struct collect *c, const void *rec, size_t len)
{
	const struct sp_rec *h = rec;

	if (len < sizeof(*h))
		return 0;
	c->stats.records++;
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

int collect_open(const struct profile *p, int ring_fd, bool has_seq, const struct collect_ops *ops,
		 void *ctx, struct collect **out, struct sp_err *err)
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
	if (p->sockets && p->sockets->nentries) {
		c->sockets = sockets_new(p, ops, ctx, on_socket_event, c);
		no_memory = !c->sockets;
	}
	if (ring_fd >= 0)
		c->ring = ring_buffer__new(ring_fd, on_record, c, NULL);
	if (!c->decoder || !c->reorder || no_memory || (ring_fd >= 0 && !c->ring)) {
		collect_close(c);
		return sp_err_set(err, SP_EXIT_FAIL, -ENOMEM, "ring buffer: cannot be mapped: %s",
				  strerror(errno));
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
	int rc;

	if (ev->ns <= c->released)
		c->stats.late++;
	rc = reorder_push(c->reorder, ev);
	if (rc)
		pr_warn("out of memory: an event is lost");
	return rc;
}

void collect_counters(struct collect *c, const uint64_t now[SP_C_MAX], uint64_t now_ns)
{
	static const struct {
		enum sp_counter counter;
		const char *cause;
	} causes[] = {
		{SP_C_RING_FULL, "ring-full"},         {SP_C_SAVE_FULL, "entry-map-full"},
		{SP_C_POLL_FULL, "poll-map-full"},     {SP_C_FRAME_FULL, "frame-map-full"},
		{SP_C_CONN_FULL, SP_LOSS_CONNECTIONS},
	};

	uint64_t since_ns = c->counted_ns ? c->counted_ns : now_ns;

	c->counted_ns = now_ns;
	for (size_t i = 0; i < ARRAY_SIZE(causes); i++) {
		uint64_t n = now[causes[i].counter] - c->counters[causes[i].counter];

		if (!n)
			continue;
		push_loss(c, since_ns, now_ns, n, causes[i].cause);
		c->stats.lost += n;
	}
	memcpy(c->counters, now, sizeof(c->counters));
	if (!c->has_seq)
		return;
	/* each failed reservation leaves a hole, told above by its counter; a hole beyond them is
	 * not */
	seq_expire(&c->seq, now_ns);
	if (c->seq.lost > c->explained + now[SP_C_RING_FULL]) {
		uint64_t n = c->seq.lost - c->explained - now[SP_C_RING_FULL];

		push_loss(c, since_ns, now_ns, n, "missing");
		c->stats.lost += n;
		c->explained += n;
	}
}

void collect_release(struct collect *c, uint64_t horizon_ns)
{
	struct sp_event ev;

	if (c->sockets) /* all that is older than the horizon has come in */
		sockets_tick(c->sockets, horizon_ns);
	while (reorder_pop(c->reorder, horizon_ns, &ev)) {
		c->stats.events++;
		c->ops.event(c->ctx, &ev);
	}
	if (horizon_ns > c->released)
		c->released = horizon_ns;
}

void collect_stats(const struct collect *c, struct collect_stats *s)
{
	*s = c->stats;
	decoder_stats(c->decoder, s);
	if (c->sockets)
		sockets_stats(c->sockets, s);
}
