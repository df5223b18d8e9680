// SPDX-License-Identifier: Apache-2.0
/* Threads that call each other's functions at random, with records missing, ends and losses in
 * between: no call is lost of the count, none is told twice, none gets a room that it never had. */
#include "collect_rig.h"

#define THREADS 6
#define DEPTH   4

struct stack {
	int n, probe[DEPTH];
	uint64_t enter[DEPTH], room[DEPTH];
};

static unsigned int seed;
static struct stack stacks[THREADS];
static uint64_t ns, given, with_room, told_room, told_none;

static unsigned int any(unsigned int n)
{
	return (unsigned int)rand_r(&seed) % n;
}

/* The room of a call is written in its bytes: 0 none, else 1000 + the room. */
static void on_event(void *ctx, const struct sp_event *ev)
{
	struct rig *r = ctx;

	if (ev->probe != P_COPY)
		return;
	if (!strcmp(ev->kind, "count")) {
		r->counted += ev->count;
		return;
	}
	r->counted++;
	if (!ev->room[0]) {
		told_none++;
		return;
	}
	told_room++;
	/* the rooms that enclosed it are the bits of its bytes */
	assert_true(ev->bytes >> strtoul(ev->room, NULL, 10) & 1);
}

static uint64_t rooms_of(const struct stack *s)
{
	uint64_t bits = 0;

	for (int i = 0; i < s->n; i++)
		if (s->probe[i] == P_ROOM)
			bits |= 1ull << s->room[i];
	return bits;
}

static void call(struct rig *r, uint32_t tid)
{
	struct stack *s = &stacks[tid - 1];
	uint64_t in = s->n ? s->enter[s->n - 1] : 0;
	uint64_t rooms = rooms_of(s);

	given++;
	with_room += rooms != 0;
	give(r, P_COPY, tid, in, ns, ns + 1, rooms, 0, any(4) ? 0 : (uint64_t)-1);
}

static void leave(struct rig *r, uint32_t tid)
{
	struct stack *s = &stacks[tid - 1];
	int at = s->n - 1;
	uint64_t in = at ? s->enter[at - 1] : 0;

	/* a mute call's record says nothing, or does not come at all */
	if (s->probe[at] == P_ROOM || any(2))
		give(r, s->probe[at], tid, in, s->enter[at], ns, s->room[at]);
	s->n--;
}

static void step(struct rig *r)
{
	uint32_t tid = 1 + any(THREADS);
	struct stack *s = &stacks[tid - 1];

	ns += 10 + any(1000000);
	switch (any(8)) {
	case 0:
	case 1:
		if (s->n < DEPTH) {
			s->probe[s->n] = any(3) ? P_ROOM : P_MUTE;
			s->room[s->n] = 1 + any(60);
			s->enter[s->n++] = ns;
		}
		break;
	case 2:
	case 3:
		if (s->n)
			leave(r, tid);
		break;
	case 4:
		if (!any(50)) {
			give_exit(r, tid, ns, false);
			s->n = 0;
		} else if (!any(50)) {
			lose_records(r, ns);
		} else if (!any(20)) {
			ns += any(20) * SEC; /* some wait too long */
		} else if (!any(20)) {
			collect_inside(r->c, NULL, 0, ns);
		}
		break;
	default:
		call(r, tid);
	}
	if (!any(10))
		release(r, ns);
}

static void test_random(void **state)
{
	static const struct collect_ops ops = {.event = on_event};
	struct rig *r = *state;
	struct sp_err err = {0};

	for (seed = 1; seed < 40; seed++) {
		unsigned int from = seed;

		collect_close(r->c);
		assert_int_equal(collect_open(r->p, true, &ops, r, &r->c, &err), 0);
		memset(stacks, 0, sizeof(stacks));
		memset(r->counters, 0, sizeof(r->counters));
		r->seq = r->counted = given = 0;
		ns = SEC;
		for (int i = 0; i < 3000; i++)
			step(r);
		collect_finish(r->c, ns);
		release(r, UINT64_MAX);
		assert_int_equal(r->counted, given);
		seed = from;
	}
	/* and it is not that all have been given up */
	assert_true(with_room > 10000 && told_room > with_room / 4 && told_none > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_random, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
