// SPDX-License-Identifier: Apache-2.0
/* collect: calls that are under way, and work that is posted and not completed. */
#include "collect_rig.h"

/* ---- calls under way ------------------------------------------------------------------------- */

static struct attach_inside row(int probe, uint32_t tid, uint64_t in, uint64_t enter, uint64_t arg1)
{
	return (struct attach_inside){.pid = PID,
				      .tid = tid,
				      .probe = probe,
				      .enter_ns = enter,
				      .scope_ns = in,
				      .arg = {arg1},
				      .nargs = 3};
}

static const struct sp_event *inside(const struct rig *r, int probe)
{
	for (int i = 0; i < r->n; i++)
		if (!strcmp(r->ev[i].kind, "inside") && r->ev[i].probe == probe)
			return &r->ev[i];
	return NULL;
}

static int kinds(const struct rig *r, const char *kind)
{
	int n = 0;

	while (of_kind(r, kind, n))
		n++;
	return n;
}

static void test_told_once(void **state)
{
	struct rig *r = *state;
	struct attach_inside in[] = {row(P_SYNC, 1, 0, SEC, 0xabc), row(P_RECV, 2, 0, SEC, 1)};

	collect_inside(r->c, in, 2, SEC + SEC / 2);
	release(r, SEC + SEC / 2);
	assert_int_equal(r->n, 0); /* not yet a second */
	collect_inside(r->c, in, 2, 2 * SEC);
	collect_inside(r->c, in, 2, 3 * SEC);
	release(r, 4 * SEC);
	assert_int_equal(r->n, 1); /* and the other one waits by its nature */
	assert_string_equal(r->ev[0].kind, "inside");
	assert_int_equal(r->ev[0].role, ROLE_CALL);
	assert_int_equal(r->ev[0].tid, 1);
	assert_int_equal(r->ev[0].code, SEC);
	assert_string_equal(r->ev[0].object, "stream 0xabc");
	assert_string_equal(r->ev[0].note, "");
	assert_string_equal(r->ev[0].room, "");
	give(r, P_SYNC, 1, 0, SEC, 5 * SEC, 0xabc);
	collect_inside(r->c, NULL, 0, 6 * SEC);
	release(r, 7 * SEC);
	assert_int_equal(kinds(r, "left"), 1);
	assert_int_equal(of_kind(r, "left", 0)->ns, 5 * SEC);
	assert_int_equal(of_kind(r, "left", 0)->took_ns, 4 * SEC);
}

static void test_left_without_a_record(void **state)
{
	struct rig *r = *state;
	struct attach_inside in = row(P_SYNC, 1, 0, SEC, 1);
	struct attach_inside next = row(P_SYNC, 1, 0, 4 * SEC, 1);

	collect_inside(r->c, &in, 1, 3 * SEC);
	collect_inside(r->c, &next, 1, 6 * SEC); /* the same function, another call */
	give_exit(r, 1, 7 * SEC, false);
	release(r, 8 * SEC);
	assert_int_equal(kinds(r, "inside"), 2);
	assert_int_equal(kinds(r, "left"), 2);
	assert_int_equal(of_kind(r, "left", 0)->code, SEC);
	assert_int_equal(of_kind(r, "left", 1)->ns, 7 * SEC);
}

static void test_not_verified(void **state)
{
	struct rig *r = *state;
	struct attach_inside in = row(P_SYNC, 1, 0, SEC, 1);

	in.unsure = true;
	collect_inside(r->c, &in, 1, 3 * SEC);
	collect_inside(r->c, &in, 1, 4 * SEC);
	in.unsure = false;
	collect_inside(r->c, &in, 1, 5 * SEC);
	release(r, 8 * SEC);
	assert_int_equal(kinds(r, "inside"), 2);
	assert_string_equal(of_kind(r, "inside", 0)->note, "not verified");
	assert_string_equal(of_kind(r, "inside", 1)->note, "");
}

/* The enclosing call never returns: its operation, in a register, tells the room; and what ran
 * inside before. */
static void test_blocked_enclosing_call(void **state)
{
	struct rig *r = *state;
	struct attach_inside in[] = {row(P_SYNC, 1, 2 * SEC, 2 * SEC + 50, 0xabc),
				     row(P_POST, 1, 0, 2 * SEC, 0x100)};

	give(r, P_CREATE, 1, 0, SEC, SEC + 5, 0x100, 7);
	give(r, P_COPY, 1, 2 * SEC, 2 * SEC + 10, 2 * SEC + 20, 4096);
	release(r, 3 * SEC);
	assert_null(nth(r, P_COPY, 0));
	collect_inside(r->c, in, 2, 4 * SEC);
	release(r, 5 * SEC);
	assert_room(r, P_COPY, 0, "7");
	assert_string_equal(inside(r, P_SYNC)->room, "7");
	assert_string_equal(inside(r, P_POST)->room, "7");
	/* a register that is not known tells nothing */
	in[0].enter_ns = 5 * SEC + 1;
	in[0].scope_ns = in[1].enter_ns = 5 * SEC;
	in[1].bad = 1;
	r->n = 0;
	collect_inside(r->c, in, 2, 8 * SEC);
	release(r, 9 * SEC);
	assert_string_equal(inside(r, P_SYNC)->room, "");
}

static void test_room_around_or_of_the_thread(void **state)
{
	struct rig *r = *state;
	struct attach_inside in[] = {
		row(P_SYNC, 1, 2 * SEC + 1, 2 * SEC + 2, 1), /* in MUTE in ROOM 7 */
		row(P_MUTE, 1, 2 * SEC, 2 * SEC + 1, 1),
		row(P_ROOM, 1, 0, 2 * SEC, 7),
		row(P_SYNC, 2, 0, 2 * SEC, 1),
		row(P_SYNC, 3, SEC, 2 * SEC, 1), /* what is around it is not known */
		row(P_COPY, 4, 0, 2 * SEC, 1),   /* scope: call */
	};

	for (uint32_t tid = 2; tid <= 4; tid++)
		give(r, P_WORK, tid, 0, SEC, SEC, 9);
	collect_inside(r->c, in, 6, 4 * SEC);
	release(r, 5 * SEC);
	for (int i = 0; i < r->n; i++) {
		static const char *const room[] = {"", "7", "9", "", ""};

		if (!strcmp(r->ev[i].kind, "inside"))
			assert_string_equal(r->ev[i].room, room[r->ev[i].tid]);
	}
	assert_int_equal(kinds(r, "inside"), 6);
}

/* It is neither under way any more nor has it told anything. */
static void test_gone_without_a_word(void **state)
{
	struct rig *r = *state;

	give(r, P_COPY, 1, SEC, SEC + 10, SEC + 20, 1, 0, (uint64_t)-1);
	collect_inside(r->c, NULL, 0, 3 * SEC);
	collect_inside(r->c, NULL, 0, 4 * SEC);
	release(r, 5 * SEC);
	assert_room(r, P_COPY, 0, "");
}

/* ---- work that is open ------------------------------------------------------------------- */

static void look_at(struct rig *r, uint64_t now, struct sp_tally n)
{
	struct attach_tally t = {.pid = PID, .key = 17, .n = n};

	t.n.tid = 3;
	collect_tallies(r->c, &t, 1, now);
	release(r, now);
}

static void look(struct rig *r, uint64_t now, uint64_t posted, uint64_t asked, uint64_t completed,
		 uint64_t post_ns, uint64_t done_ns)
{
	look_at(r, now,
		(struct sp_tally){.posted = posted,
				  .asked = asked,
				  .completed = completed,
				  .post_ns = post_ns,
				  .done_ns = done_ns});
}

/* Completions were ahead of posts: the last at ns. */
static void look_early(struct rig *r, uint64_t now, uint64_t posted, uint64_t asked,
		       uint64_t completed, uint64_t early, uint64_t early_asked, uint64_t ns)
{
	look_at(r, now,
		(struct sp_tally){.posted = posted,
				  .asked = asked,
				  .completed = completed,
				  .early = early,
				  .early_asked = early_asked,
				  .post_ns = ns,
				  .done_ns = ns});
}

static const struct sp_event *last_tally(const struct rig *r)
{
	return of_kind(r, "tally", kinds(r, "tally") - 1);
}

static void test_tally(void **state)
{
	struct rig *r = *state;

	look(r, 2 * SEC, 5, 5, 3, SEC + SEC / 2, SEC);
	assert_int_equal(r->n, 0); /* half a second ago */
	look(r, 3 * SEC, 5, 5, 3, SEC + SEC / 2, SEC);
	look(r, 4 * SEC, 5, 5, 3, SEC + SEC / 2, SEC);
	assert_int_equal(kinds(r, "tally"), 1);
	assert_int_equal(last_tally(r)->code, 2);
	assert_int_equal(last_tally(r)->op, SEC + SEC / 2);
	assert_int_equal(last_tally(r)->tid, 3);
	assert_string_equal(last_tally(r)->object, "queue pair 17");
	look(r, 5 * SEC, 6, 6, 3, 4 * SEC + 1, SEC); /* one more: told when it is quiet */
	assert_int_equal(kinds(r, "tally"), 1);
	look(r, 6 * SEC, 6, 6, 3, 4 * SEC + 1, SEC);
	assert_int_equal(last_tally(r)->code, 3);
	look(r, 7 * SEC, 6, 6, 4, 4 * SEC + 1, 6 * SEC + SEC / 2); /* it goes on */
	assert_int_equal(last_tally(r)->code, 2);
	assert_int_equal(last_tally(r)->op, 6 * SEC + SEC / 2);
	look(r, 8 * SEC, 6, 6, 6, 4 * SEC + 1, 7 * SEC + SEC / 2);
	assert_int_equal(last_tally(r)->code, 0);
	look(r, 20 * SEC, 6, 6, 6, 4 * SEC + 1, 7 * SEC);
	assert_int_equal(kinds(r, "tally"), 4);
}

/* Completions of what was posted before the attach: neither below zero nor out of the air. */
static void test_posted_before(void **state)
{
	struct rig *r = *state;

	look_early(r, 3 * SEC, 2, 2, 7, 5, 5, SEC);
	look_early(r, 6 * SEC, 10, 10, 15, 5, 5, 5 * SEC);
	assert_int_equal(r->n, 0);
	look_early(r, 9 * SEC, 14, 14, 17, 5, 5, 7 * SEC); /* 5 were from before, so 2 are open */
	assert_int_equal(last_tally(r)->code, 2);
}

/* They complete and more is posted at once, all between two looks. */
static void test_posted_before_and_at_once(void **state)
{
	struct rig *r = *state;

	look_early(r, 3 * SEC, 96, 96, 3, 3, 3, SEC);
	assert_int_equal(last_tally(r)->code, 96);
}

/* Of ten posts one asks; a completion of one from before must not make the others open. */
static void test_unsignalled(void **state)
{
	struct rig *r = *state;

	for (uint64_t i = 1; i <= 4; i++)
		look_early(r, 3 * i * SEC, 10 * i, i, i + 1, 0, 1, (3 * i - 1) * SEC - 1);
	assert_int_equal(r->n, 0);
}

/* A queue where all of them complete, asked or not. */
static void test_all_complete(void **state)
{
	struct rig *r = *state;

	look_early(r, 3 * SEC, 5, 0, 3, 0, 3, SEC);
	assert_int_equal(last_tally(r)->code, 2);
	look_early(r, 6 * SEC, 5, 0, 5, 0, 5, 5 * SEC);
	assert_int_equal(last_tally(r)->code, 0);
}

static void test_all_complete_some_asked(void **state)
{
	struct rig *r = *state;

	for (uint64_t i = 1; i <= 3; i++)
		look_early(r, (3 * i + 1) * SEC, 10 * i, i, 10 * i, 0, 9 * i, 3 * i * SEC);
	assert_int_equal(r->n, 0);
	look_early(r, 20 * SEC, 50, 5, 40, 0, 36, 15 * SEC);
	assert_int_equal(last_tally(r)->code, 10);
}

static void post(struct rig *r, uint32_t tid, uint64_t in, uint64_t at, uint32_t n)
{
	give_call(r, P_SEND, tid, in, at, at + 5, (const uint64_t[3]){17}, n);
}

static void test_room_of_a_tally(void **state)
{
	struct rig *r = *state;

	post(r, 1, SEC, SEC + 10, 3);
	give(r, P_ROOM, 1, 0, SEC, SEC + 100, 7);
	look(r, 4 * SEC, 3, 3, 0, SEC + 10, 0);
	assert_string_equal(last_tally(r)->room, "7");
	assert_int_equal(last_tally(r)->code, 3);
	assert_int_equal(last_tally(r)->probe, P_SEND);
	/* of two rooms: whose is open is not known; of the later one's alone it is */
	post(r, 1, 5 * SEC, 5 * SEC + 10, 2);
	give(r, P_ROOM, 1, 0, 5 * SEC, 5 * SEC + 100, 8);
	look(r, 7 * SEC, 5, 5, 0, 5 * SEC + 10, 0);
	assert_string_equal(last_tally(r)->room, "");
	look(r, 9 * SEC, 5, 5, 3, 5 * SEC + 10, 7 * SEC + 1);
	assert_string_equal(last_tally(r)->room, "8");
	/* a post that was not seen came after */
	look(r, 12 * SEC, 6, 6, 3, 10 * SEC, 7 * SEC + 1);
	assert_string_equal(last_tally(r)->room, "");
}

/* What a queue refuses is not open there, and says nothing of whose the rest is. */
static void test_room_of_what_was_refused(void **state)
{
	struct rig *r = *state;

	post(r, 1, SEC, SEC + 10, 2);
	give(r, P_ROOM, 1, 0, SEC, SEC + 100, 7);
	r->refused = 4;
	post(r, 1, 2 * SEC, 2 * SEC + 10, 5);
	give(r, P_ROOM, 1, 0, 2 * SEC, 2 * SEC + 100, 8);
	look(r, 5 * SEC, 3, 3, 0, 2 * SEC + 10, 0);
	assert_int_equal(last_tally(r)->code, 3);
	assert_string_equal(last_tally(r)->room, "");
	look(r, 7 * SEC, 3, 3, 2, 2 * SEC + 10, 5 * SEC + 1);
	look(r, 9 * SEC, 3, 3, 2, 2 * SEC + 10, 5 * SEC + 1);
	assert_int_equal(last_tally(r)->code, 1);
	assert_string_equal(last_tally(r)->room, "8");
}

/* A queue that is destroyed takes what is open with it. */
static void test_key_is_over(void **state)
{
	struct rig *r = *state;

	look(r, 3 * SEC, 5, 5, 3, SEC, SEC);
	assert_int_equal(last_tally(r)->code, 2);
	give(r, P_END, 1, 0, 4 * SEC, 4 * SEC, 17);
	collect_tallies(r->c, NULL, 0, 5 * SEC);
	release(r, 5 * SEC);
	assert_int_equal(kinds(r, "tally"), 1);
	assert_int_equal(kinds(r, "dropped"), 1);
	assert_int_equal(of_kind(r, "dropped", 0)->code, 2);
	assert_string_equal(of_kind(r, "dropped", 0)->object, "queue pair 17");
	assert_int_equal(of_kind(r, "dropped", 0)->probe, P_END);
	look(r, 9 * SEC, 8, 8, 5, 7 * SEC, 7 * SEC);
	assert_int_equal(last_tally(r)->code, 3);
}

/* A call that may end a queue and does not (the state is not set): all is open there as before. */
static void test_key_goes_on(void **state)
{
	struct rig *r = *state;

	look(r, 3 * SEC, 5, 5, 3, SEC, SEC);
	give(r, P_END, 1, 0, 4 * SEC, 4 * SEC, 17, 0, 1);
	look(r, 5 * SEC, 5, 5, 3, SEC, SEC);
	collect_finish(r->c, 6 * SEC);
	release(r, 6 * SEC);
	assert_int_equal(kinds(r, "dropped"), 0);
	assert_int_equal(kinds(r, "tally"), 1);
	assert_int_equal(last_tally(r)->code, 2);
	/* nor is it a call that has ended one */
	assert_null(nth(r, P_END, 0));
	assert_int_equal(kinds(r, "count"), 0);
	give(r, P_END, 1, 0, 7 * SEC, 7 * SEC, 17, 0, 2);
	release(r, 8 * SEC);
	assert_int_equal(kinds(r, "dropped"), 1);
}

/* Its number comes again before anybody has looked: posts of now are not those of then. */
static void test_key_comes_again(void **state)
{
	struct rig *r = *state;

	post(r, 1, SEC, SEC + 10, 3);
	give(r, P_ROOM, 1, 0, SEC, SEC + 100, 7);
	look_early(r, 3 * SEC, 3, 3, 0, 0, 0, SEC + 10);
	assert_string_equal(last_tally(r)->room, "7");
	give(r, P_END, 1, 0, 4 * SEC, 4 * SEC, 17);
	post(r, 1, 4 * SEC + 5, 4 * SEC + 10, 2);
	give(r, P_ROOM, 1, 0, 4 * SEC + 5, 4 * SEC + 100, 7);
	post(r, 1, 5 * SEC, 5 * SEC + 10, 2);
	give(r, P_ROOM, 1, 0, 5 * SEC, 5 * SEC + 100, 8);
	look(r, 7 * SEC, 4, 4, 2, 5 * SEC + 10, 5 * SEC + 20);
	assert_int_equal(last_tally(r)->code, 2);
	assert_string_equal(last_tally(r)->room, "8");
}

/* An operation may have the number of a queue. */
static void test_operation_with_the_number(void **state)
{
	struct rig *r = *state;

	look(r, 3 * SEC, 5, 5, 3, SEC, SEC);
	give(r, P_CLOSE, 1, 0, 4 * SEC, 4 * SEC, 17);
	look(r, 5 * SEC, 5, 5, 3, SEC, SEC);
	assert_int_equal(kinds(r, "tally"), 1);
}

/* Two devices may give one number. */
static void test_number_of_two(void **state)
{
	static const struct sp_tally moves = {
		.posted = 9, .asked = 9, .completed = 8, .post_ns = 6 * SEC, .done_ns = 6 * SEC};
	static const struct sp_tally stands = {.posted = 2, .asked = 2, .post_ns = SEC};
	struct attach_tally t[] = {{.pid = PID, .key = 17, .within = 1, .n = stands},
				   {.pid = PID, .key = 17, .within = 2, .n = moves}};
	struct rig *r = *state;

	give_call(r, P_SEND, 1, 0, SEC, SEC + 5, (const uint64_t[3]){17, 1}, 2);
	give_call(r, P_SEND, 1, 0, 6 * SEC, 6 * SEC + 5, (const uint64_t[3]){17, 2}, 1);
	collect_tallies(r->c, t, 2, 6 * SEC + 10);
	release(r, 6 * SEC + 10);
	assert_int_equal(kinds(r, "tally"), 1);
	assert_int_equal(last_tally(r)->code, 2);
	assert_int_equal(last_tally(r)->op, SEC);
	give_call(r, P_END, 1, 0, 7 * SEC, 7 * SEC, (const uint64_t[3]){17, 2}, 1);
	collect_tallies(r->c, t, 1, 8 * SEC);
	release(r, 8 * SEC);
	assert_int_equal(kinds(r, "tally"), 1);
}

/* As many keys as the kernel side counts, the map's limit: what is known of one is not given up for
 * another, and that each is complete is told. */
static void test_many_keys(void **state)
{
	static struct attach_tally row[SP_MAX_TALLIES];
	struct rig *r = *state;
	int open = 0, over = 0;

	for (int i = 0; i < SP_MAX_TALLIES; i++)
		row[i] = (struct attach_tally){
			.pid = PID,
			.key = (uint64_t)i,
			.n = {.posted = 1, .asked = 1, .post_ns = SEC},
		};
	for (uint64_t now = 3 * SEC; now < 5 * SEC; now += SEC) {
		collect_tallies(r->c, row, SP_MAX_TALLIES, now);
		release(r, now);
	}
	for (int i = 0; i < r->n; i++)
		open += r->ev[i].code == 1;
	assert_int_equal(open, SP_MAX_TALLIES); /* once each */
	r->n = 0;
	for (int i = 0; i < SP_MAX_TALLIES; i++)
		row[i].n.completed = 1;
	collect_tallies(r->c, row, SP_MAX_TALLIES, 5 * SEC);
	release(r, 5 * SEC);
	for (int i = 0; i < r->n; i++)
		over += r->ev[i].code == 0;
	assert_int_equal(over, SP_MAX_TALLIES);
}

int main(void)
{
#define RIG(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		RIG(test_told_once),
		RIG(test_left_without_a_record),
		RIG(test_not_verified),
		RIG(test_blocked_enclosing_call),
		RIG(test_room_around_or_of_the_thread),
		RIG(test_gone_without_a_word),
		RIG(test_tally),
		RIG(test_posted_before),
		RIG(test_posted_before_and_at_once),
		RIG(test_unsignalled),
		RIG(test_all_complete),
		RIG(test_all_complete_some_asked),
		RIG(test_room_of_a_tally),
		RIG(test_room_of_what_was_refused),
		RIG(test_key_is_over),
		RIG(test_key_goes_on),
		RIG(test_key_comes_again),
		RIG(test_operation_with_the_number),
		RIG(test_number_of_two),
		RIG(test_many_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
