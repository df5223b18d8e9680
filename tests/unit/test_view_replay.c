// SPDX-License-Identifier: Apache-2.0
/* What a recording must hold so that a replay finds the same, and what other deadlines find. */
#include "view_rig.h"

#define KEPT_MAX 256

/* A live run: what the model says was taken is all that its recording has. */
struct live {
	struct rig *r;
	struct sp_event ev[KEPT_MAX];
	size_t n;
};

static void keep(void *ctx, const struct sp_event *ev, const struct model_life *l)
{
	struct live *k = ctx;

	(void)l;
	assert_in_range(k->n, 0, KEPT_MAX - 1);
	k->ev[k->n++] = *ev;
	k->r->taken++;
}

static struct model *with_deadline(struct rig *r, double inflight)
{
	model_free(r->m);
	r->profile.stage_ns[STAGE_INFLIGHT] = S(inflight);
	return rig_model(r, false);
}

static void begin(struct live *k, double inflight)
{
	static const struct model_ops ops = {.event_taken = keep};
	struct model_cfg cfg;

	memset(k, 0, sizeof(*k));
	k->r = view_rig();
	cfg = (struct model_cfg){.profile = &k->r->profile};
	memcpy(cfg.stage_ns, k->r->profile.stage_ns, sizeof(cfg.stage_ns));
	cfg.stage_ns[STAGE_INFLIGHT] = S(inflight);
	model_free(k->r->m);
	k->r->m = model_new(&cfg, &ops, k);
	assert_non_null(k->r->m);
}

/* What was kept, with another deadline, up to t. */
static struct rig *again(const struct live *k, double inflight, double t)
{
	struct rig *r = view_rig();

	r->m = with_deadline(r, inflight);
	for (size_t i = 0; i < k->n; i++)
		assert_int_equal(model_event(r->m, &k->ev[i]), 0);
	to(r, t);
	model_answer(r->m, 0);
	return r;
}

static void end(struct live *k)
{
	model_free(k->r->m);
	free(k->r->said);
	free(k->r);
}

static size_t oks(const struct live *k)
{
	size_t n = 0;

	for (size_t i = 0; i < k->n; i++)
		n += k->ev[i].role == ROLE_VIEW;
	return n;
}

/* ---- which rounds are told ------------------------------------------------------------------ */

static void test_rounds_told(void **state)
{
	struct live k;

	(void)state;
	begin(&k, 30);
	rounds(k.r, 1, 9);
	assert_int_equal(oks(&k), 1); /* the view is there; nobody is */
	listed(k.r, 9.1, "7007", "inflight", DONE);
	rounds(k.r, 9.5, 20);
	assert_int_equal(oks(&k), 7); /* at 9.5, 11.5, ... 19.5 */
	let_go(k.r, 20.1, "7007");
	rounds(k.r, 20.5, 30);
	assert_int_equal(oks(&k), 7);
	end(&k);
}

/* ---- other deadlines ------------------------------------------------------------------------- */

static void pin_of_nine_seconds(struct live *k)
{
	begin(k, 3);
	listed(k->r, 1, "7007", "inflight", DONE);
	rounds(k->r, 1, 10);
}

static void test_other_deadlines(void **state)
{
	static const double found[] = {1, 2, 3, 5, 7};
	struct live k;
	struct rig *r;

	(void)state;
	pin_of_nine_seconds(&k);
	for (size_t i = 0; i < sizeof(found) / sizeof(found[0]); i++) {
		r = again(&k, found[i], 10);
		expect_stuck(r, "7007", 1 + found[i], CAUSE_DONE_NOT_RELEASED, CONF_CERTAIN, 1);
		assert_int_equal(stuck_lines(r), 1);
		rig_free(r);
	}
	r = again(&k, 12, 10);
	assert_int_equal(stuck_lines(r), 0);
	rig_free(r);
	end(&k);
}

/* Overdue when the recording ends, and no look since. */
static void test_last_moment(void **state)
{
	struct live k;
	struct rig *r;

	(void)state;
	pin_of_nine_seconds(&k);
	r = again(&k, 8.75, 10);
	expect_stuck(r, "7007", 9.75, CAUSE_DONE_NOT_RELEASED, CONF_LIKELY, 1);
	assert_int_equal(model_stuck(r->m, CONF_LIKELY), 1);
	rig_free(r);
	end(&k);
}

static void test_without_a_view(void **state)
{
	struct live k;
	struct rig *r;

	(void)state;
	begin(&k, 3);
	announce(k.r, 1, "7007", "a", 1);
	kv(k.r, 1, W1, 0x100, "7007", 0, 1);
	to(k.r, 10);
	for (int d = 1; d <= 7; d += 2) {
		r = again(&k, d, 10);
		expect_stuck(r, "7007", 1 + d, CAUSE_TRANSFER_STALLED, CONF_LIKELY, 1);
		rig_free(r);
	}
	r = again(&k, 12, 10);
	assert_int_equal(stuck_lines(r), 0);
	rig_free(r);
	end(&k);
}

/* ---- who is judged without a look ------------------------------------------------------------ */

/* The one look that there was did not show it: it was most likely let go. */
static void test_seen_gone_once(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	listed(r, 1, "7007", "inflight", MOVING);
	let_go(r, 2, "7007"); /* the view is able to show rooms that native events opened */
	announce(r, 3, "7008", "a", 1);
	kv_done(r, 3, W1, 0x100, "7008", 0, 0);
	listed(r, 3.5, "7008", "inflight", MOVING);
	let_go(r, 4, "7008");
	announce(r, 5, "7009", "a", 1);
	kv_done(r, 5, W1, 0x200, "7009", 0, 0);
	rounds(r, 5.5, 35);
	to(r, 35.2);
	assert_int_equal(model_asks(r->m), 1);
	view(r, 35.6, "ok", 0.1);
	assert_int_equal(model_asks(r->m), 0);
	model_answer(r->m, 0);
	assert_int_equal(stuck_lines(r), 0);
	rig_free(r);
}

/* Judged with certainty before: that another look was due takes nothing away. */
static void test_certain_stays(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	listed(r, 1, "7007", "inflight", DONE);
	rounds(r, 1, 32);
	expect_stuck(r, "7007", 31, CAUSE_DONE_NOT_RELEASED, CONF_CERTAIN, 1);
	to(r, 61.5);
	assert_int_equal(model_asks(r->m), 1);
	model_answer(r->m, 0);
	assert_int_equal(model_stuck(r->m, CONF_CERTAIN), 1);
	assert_int_equal(stuck_lines(r), 1);
	rig_free(r);
}

static void test_of_one_process(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	listed(r, 1, "7007", "inflight", DONE);
	ok(r, 1.5);
	r->pid = PID + 1;
	listed(r, 1.6, "7007", "inflight", DONE);
	ok(r, 2);
	to(r, 32);
	assert_int_equal(model_asks(r->m), 2);
	model_answer(r->m, PID + 2);
	assert_int_equal(model_asks(r->m), 2);
	model_answer(r->m, PID);
	assert_int_equal(model_asks(r->m), 1);
	assert_int_equal(stuck_lines(r), 1);
	assert_int_equal(nth(r, ALERT_STUCK, "7007", 0)->pid, PID);
	model_answer(r->m, 0);
	assert_int_equal(stuck_lines(r), 2);
	rig_free(r);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static void test_numbers(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	assert_int_equal(model_number(r->m, PID, "7007", 3), 0);
	announce(r, 1, "7007", "a", 1);
	assert_true(look(r, "7007", 3).found);
	/* it is there: nothing to make up for */
	assert_int_equal(model_number(r->m, PID, "7007", 3), 0);
	assert_int_equal(model_number(r->m, PID, "7007", 2), 0);
	announce(r, 2, "7007", "a", 1);
	assert_true(look(r, "7007", 4).found);
	/* nothing is told of the first life, and of an event without one */
	assert_int_equal(model_number(r->m, PID, "7008", 1), 0);
	assert_int_equal(model_number(r->m, PID, "7008", 0), 0);
	announce(r, 3, "7008", "a", 1);
	assert_true(look(r, "7008", 1).found);
	rig_free(r);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rounds_told),    cmocka_unit_test(test_other_deadlines),
		cmocka_unit_test(test_last_moment),    cmocka_unit_test(test_without_a_view),
		cmocka_unit_test(test_seen_gone_once), cmocka_unit_test(test_certain_stays),
		cmocka_unit_test(test_of_one_process), cmocka_unit_test(test_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
