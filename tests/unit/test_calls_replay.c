// SPDX-License-Identifier: Apache-2.0
/* Calls in a recording: what was taken, given to a model anew, has it say the same in every word.
 */
#include <inttypes.h>

#include "calls_rig.h"
#include "store/buffer.h"

#define KEPT_MAX 256

struct run {
	struct rig *r;
	bool all; /* of calls of no life too */
	struct sp_event ev[KEPT_MAX];
	size_t n, ncalls;
	char *said;
	size_t len;
	FILE *out;
};

static void keep(void *ctx, const struct sp_event *ev, const struct model_life *l)
{
	struct run *k = ctx;

	k->r->taken++;
	if (!l && !k->all && !loose_wanted(ev))
		return;
	assert_in_range(k->n, 0, KEPT_MAX - 1);
	k->ev[k->n++] = *ev;
	k->ncalls += ev->role == ROLE_CALL;
}

static void say_alert(void *ctx, const struct model_alert *a)
{
	struct run *k = ctx;
	const struct model_verdict *v = a->life ? a->life->verdict : NULL;

	fprintf(k->out, "%d %" PRIu64 " %s\n", a->type, a->ns, a->life ? a->life->room : "");
	if (!v)
		return;
	fprintf(k->out, "%d %d %d %s, %s\n", v->cause, v->confidence, v->pin, v->last, v->expected);
	for (int i = 0; i < v->nevidence; i++)
		fprintf(k->out, "%d %s\n", v->evidence[i].against, v->evidence[i].text);
}

static struct run *run_new(bool all)
{
	static const struct model_ops ops = {.event_taken = keep, .alert = say_alert};
	struct run *k = calloc(1, sizeof(*k));
	struct model_cfg cfg;

	assert_non_null(k);
	k->all = all;
	k->r = calls_rig();
	k->out = open_memstream(&k->said, &k->len);
	assert_non_null(k->out);
	cfg = (struct model_cfg){.profile = &k->r->profile};
	memcpy(cfg.stage_ns, k->r->profile.stage_ns, sizeof(cfg.stage_ns));
	model_free(k->r->m);
	k->r->m = model_new(&cfg, &ops, k);
	assert_non_null(k->r->m);
	return k;
}

static void run_free(struct run *k)
{
	fclose(k->out);
	free(k->said);
	rig_free(k->r);
	free(k);
}

static void counted(struct rig *r, double t, const char *room, uint32_t n, int failed)
{
	struct sp_event ev = call_event(r, t, 0, COPY, "count", room);

	ev.count = n;
	ev.code = failed;
	feed(r, &ev);
}

static void live(struct rig *r)
{
	announce(r, 0, "7001", "A", 1);
	announce(r, 0, "7002", "B", 1);
	kv(r, 1, W1, 0xa0, "7001", 0, 1);
	kv(r, 1, W2, 0xb0, "7002", 0, 1);
	copied(r, 2, W1, "7001", 4096, 0);
	copied(r, 3, W1, "", 4096, 0);
	copied(r, 3.5, W2, "", 4096, 700);
	counted(r, 4, "7001", 1000, 2);
	counted(r, 4, "", 77, 0);
	inside(r, 5, W1, SYNC, 4.5, "7001");
	inside(r, 5, W2, SYNC, 4.5, "7002");
	inside(r, 5, BOOT, GLOB, 4.5, "");
	tally(r, 6, "queue pair 7", 3, 5);
	left(r, 7, W2, SYNC);
	to(r, 40);
	left(r, 41, W1, SYNC);
	tally(r, 41, "queue pair 7", 0, 41);
	left(r, 41, BOOT, GLOB);
	counted(r, 42, "7002", 5, 1);
	inside(r, 43, W2, COPY, 42.5, "7002");
	to(r, 100);
	status(r, 101, W1, 0xa0, OPS_DONE);
	status(r, 101, W2, 0xb0, OPS_DONE);
	to(r, 400);
}

static void same_again(bool all, size_t ncalls)
{
	struct run *k = run_new(all), *again = run_new(all);

	live(k->r);
	assert_int_equal(k->ncalls, ncalls);
	for (size_t i = 0; i < k->n; i++)
		assert_int_equal(model_event(again->r->m, &k->ev[i]), 0);
	to(again->r, 400);
	fflush(k->out);
	fflush(again->out);
	/* each kind of call has had its say */
	assert_non_null(
		strstr(k->said, "blocked in cuStreamSynchronize (stream 0x7f00) for 26.5 s"));
	assert_non_null(strstr(k->said, "queue pair 7: 3 posted and not completed"));
	assert_non_null(strstr(k->said, "calls: 1001, 4096 bytes, 2 failed"));
	assert_non_null(strstr(k->said, "in this process failed: copy: 700 illegal address"));
	assert_non_null(strstr(k->said, "in this process thread"));
	assert_string_equal(again->said, k->said);
	run_free(k);
	run_free(again);
}

static void test_all(void **state)
{
	(void)state;
	same_again(true, 15);
}

/* Calls of no room that went well, and their number, nothing hangs on. */
static void test_ordinary(void **state)
{
	(void)state;
	same_again(false, 13);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_ordinary),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
