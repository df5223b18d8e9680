// SPDX-License-Identifier: Apache-2.0
/*
 * A random mix of healthy rooms as sockets, probes and the server's own view show it, in every
 * combination of these sources: no alert.
 */
#include "random_rig.h"
#include "sock_rig.h"

#define ROOMS    400
#define SPAN_MS  1500000u
#define MAX_LINE (ROOMS * 90 + 20000)

enum { ALONE, TENSOR, DATA }; /* one process; all ranks have the room; one of them has it */

struct mix {
	bool no_posts, view, untracked;
	int front;
};

struct line {
	struct sp_event *ev;
	size_t n;
};

static struct sp_event *add(struct line *q, uint32_t pid, uint64_t ms, enum sp_role role,
			    const char *room)
{
	struct sp_event *ev = &q->ev[q->n++];

	assert_true(q->n < MAX_LINE);
	sp_event_init(ev);
	ev->ns = S(1000) + ms * 1000000ull;
	ev->pid = pid;
	ev->role = (uint8_t)role;
	snprintf(ev->room, sizeof(ev->room), "%s", room);
	return ev;
}

static int by_time(const void *a, const void *b)
{
	const struct sp_event *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	return a < b ? -1 : 1;
}

/* What one room is: times in ms. */
struct plan {
	char room[16], rid[16];
	uint64_t arrive, quorum, sent, reply;
	bool tracked, fake, gone;
	int need, chunks, rank;
	uint64_t op;
};

/* The front's events go to every process it serves. */
static void at_front(const struct mix *x, struct line *q, const struct plan *p, uint64_t ms,
		     enum sp_role role, const char *kind, unsigned int flags, int64_t code)
{
	for (int i = 0; i < (x->front == ALONE ? 1 : 2); i++) {
		struct sp_event *ev = add(q, PID + 1000 * i, ms, role, p->room);

		strcpy(ev->kind, kind);
		strcpy(ev->rid, p->rid);
		ev->code = code;
		ev->flags = (uint16_t)(flags | (x->front == ALONE ? 0 : EV_SHARED));
	}
}

static void client_of(const struct mix *x, struct line *q, const struct plan *p)
{
	unsigned int flags = (p->tracked ? EV_TRACKED : 0) | (p->fake ? EV_FAKE : 0);

	at_front(x, q, p, p->arrive, ROLE_ARRIVE, "", flags, 0);
	if (!p->tracked)
		return;
	if (p->gone) {
		at_front(x, q, p, p->arrive + rnd((uint32_t)(p->sent - p->arrive)), ROLE_ABORT,
			 "client-gone", 0, 0);
		return;
	}
	at_front(x, q, p, rnd(2) ? p->arrive + 5 : p->reply - 1, ROLE_REPLY, "first", 0, 200);
	at_front(x, q, p, p->reply, ROLE_REPLY, "end", 0, 200);
}

static void peers_of(const struct mix *x, struct line *q, const struct plan *p, uint32_t pid)
{
	for (int i = 0; i < p->need; i++) {
		uint64_t ms = i ? p->quorum : p->arrive - 300 + rnd(400);
		struct sp_event *ev = add(q, pid, ms, ROLE_ANNOUNCE, p->room);

		snprintf(ev->agent, sizeof(ev->agent), "%c%d", "ABC"[p->op / 64 % 3], i);
		ev->need = p->need;
		ev->tid = x->no_posts ? 0 : BOOT;
		/* C closes its connection each time */
		if (ev->agent[0] == 'C') {
			struct sp_event *c = add(q, pid, ms + 20, ROLE_PEER, "");

			strcpy(c->kind, "closed");
			strcpy(c->agent, ev->agent);
		}
	}
}

static void op(struct line *q, uint32_t pid, uint64_t ms, const struct plan *p, const char *kind,
	       int chunk, uint64_t handle)
{
	struct sp_event *ev = add(q, pid, ms, ROLE_POST, p->room);

	ev->op = handle;
	ev->tid = W1 + (uint32_t)(handle % 3);
	strcpy(ev->kind, kind);
	ev->chunk = chunk;
	ev->rank = chunk < 0 ? -1 : 0;
	ev->last = chunk < 0 ? -1 : chunk == p->chunks - 1;
	ev->flags = EV_CREATED;
	ev = add(q, pid, ms + 1, ROLE_POST, "");
	ev->op = handle;
	ev->tid = W1 + (uint32_t)(handle % 3);
	ev->status = OPS_BUSY;
	ev = add(q, pid, ms + 2 + rnd(500), ROLE_STATUS, "");
	ev->op = handle;
	ev->tid = W1 + (uint32_t)(handle % 3);
	ev->status = OPS_DONE;
}

/* Once for each peer that takes data. */
static void sends(struct line *q, const struct plan *p, uint32_t pid)
{
	uint64_t ms = p->quorum + 1 + rnd((uint32_t)(p->sent - p->quorum - 2000));

	for (int i = 0; i < p->chunks; i++)
		for (int k = 0; k < p->need; k++)
			op(q, pid,
			   ms + (p->sent - 1000 - ms) * (uint64_t)(i + 1) / (uint64_t)p->chunks, p,
			   "kv", i, p->op + (uint64_t)(8 * i + k));
	for (int k = 0; k < p->need; k++)
		op(q, pid, p->sent - 990, p, "aux", -1, p->op + 60 + (uint64_t)k);
}

static void is_held(struct line *q, const struct plan *p, uint32_t pid, uint64_t ms,
		    const char *queue, int64_t code)
{
	struct sp_event *ev = add(q, pid, ms, ROLE_HELD, p->room);

	strcpy(ev->kind, queue);
	strcpy(ev->rid, p->rid);
	ev->op = 0x100000 + p->op;
	ev->code = code;
}

static void is_seen(struct line *q, const struct plan *p, uint32_t pid)
{
	struct sp_event *ev;

	is_held(q, p, pid, p->arrive + 700, "bootstrap", BOOTSTRAP);
	is_held(q, p, pid, p->quorum + 900, "waiting", READY);
	is_held(q, p, pid, p->sent - 1500, "inflight", MOVING);
	ev = add(q, pid, p->reply + 400 + rnd(600), ROLE_RELEASE, p->room);
	strcpy(ev->rid, p->rid);
	ev->op = 0x100000 + p->op;
	ev->flags = EV_INFERRED;
}

static void one_room(const struct mix *x, struct line *q, uint64_t i)
{
	struct plan p = {
		.arrive = 1000 + rnd(SPAN_MS),
		.tracked = !x->untracked,
		.fake = !rnd(20),
		.gone = !rnd(15) && !x->untracked,
		.need = 1 + (int)rnd(2),
		.chunks = 1 + (int)rnd(3),
		.rank = (int)rnd(2),
		.op = 64 * (i + 1),
	};

	snprintf(p.room, sizeof(p.room), "%u", (unsigned int)(7000 + i));
	if (rnd(2))
		snprintf(p.rid, sizeof(p.rid), "r%u", (unsigned int)i);
	p.quorum = p.arrive + 3000 + rnd(20000);
	p.sent = p.quorum + 5000 + rnd(40000);
	p.reply = p.sent + 10 + rnd(3000);
	client_of(x, q, &p);
	if (p.fake)
		return;
	for (int k = 0; k < (x->front == ALONE ? 1 : 2); k++) {
		uint32_t pid = PID + 1000 * (uint32_t)k;

		if (x->front == DATA && k != p.rank)
			continue;
		/* one that is aborted leaves at once */
		if (p.gone)
			continue;
		peers_of(x, q, &p, pid);
		if (!x->no_posts)
			sends(q, &p, pid);
		if (x->view)
			is_seen(q, &p, pid);
	}
}

static void looks(struct line *q, uint32_t pid)
{
	for (uint64_t ms = 0; ms < SPAN_MS + 1000000; ms += 500) {
		struct sp_event *ev = add(q, pid, ms, ROLE_VIEW, "");

		strcpy(ev->kind, "ok");
		ev->code = (int64_t)(ev->ns - S(0.4));
	}
}

static void run_mix(const struct mix *x, uint64_t seed)
{
	struct rig *r = view_rig();
	struct model_cfg cfg = {.profile = &r->profile, .sees_arrive = true};
	struct line q = {.ev = calloc(MAX_LINE, sizeof(*q.ev))};

	assert_non_null(q.ev);
	cfg.no_posts = x->no_posts;
	memcpy(cfg.stage_ns, r->profile.stage_ns, sizeof(cfg.stage_ns));
	rig_with(r, &cfg);
	rnd_state = seed;
	for (uint64_t i = 0; i < ROOMS; i++)
		one_room(x, &q, i);
	for (int k = 0; x->view && k < 2; k++)
		looks(&q, PID + 1000 * (uint32_t)k);
	qsort(q.ev, q.n, sizeof(*q.ev), by_time);
	for (size_t i = 0; i < q.n; i++)
		assert_int_equal(model_event(r->m, &q.ev[i]), 0);
	to(r, 10000);
	if (alerts(r))
		show(r);
	assert_int_equal(alerts(r), 0);
	assert_true(r->ended > ROOMS / 2);
	free(q.ev);
	rig_free(r);
}

static void test_healthy(void **state)
{
	(void)state;
	for (int i = 0; i < 16; i++) {
		struct mix x = {.no_posts = i & 1, .view = i & 2, .untracked = i & 4};

		for (x.front = ALONE; x.front <= DATA; x.front++)
			run_mix(&x, (uint64_t)(100 + i));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_healthy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
