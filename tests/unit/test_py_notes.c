// SPDX-License-Identifier: Apache-2.0
/* What a snapshot shows of slips in the profile, and what a view says of the doubt they make. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "python/notes.h"
#include "python/view.h"

#define MS 1000000ull

/* A snapshot in which all is well: a worker at room 7, 8 behind it, 9 waits. */
struct scene {
	struct profile_python py;
	struct py_snapshot s;
	struct pyview_request request[3];
	struct pyview_status status[4];
	struct pyview_waiting waiting[1];
	struct pyview_worker worker[1];
	uint64_t backlog[1];
	struct py_note note[PY_NOTES_MAX];
	/* as a view says it */
	struct pyview *v;
	uint64_t ns;
	char said[512];
};

static void status_of(struct scene *c, const char *room, int64_t code)
{
	struct pyview_status *st = &c->status[c->s.nstatus++];

	strcpy(st->room, room);
	st->code = code;
}

static void paths(struct scene *c)
{
	struct py_thread_spec *w = &c->py.thread[0];
	struct py_path *p = &c->py.backlog.query[0].path;

	strcpy(w->frame, "*.work");
	strcpy(w->idle, "get");
	strcpy(w->busy[0].head, "job");
	strcpy(w->serves[0].head, "q");
	w->nbusy = w->nserves = 1;
	c->py.backlog.n = 1;
	strcpy(p->head, "self");
	p->nsteps = 2;
	strcpy(p->step[0].name, "jobs");
	p->step[1].kind = PY_EACH;
}

static void begin(struct scene *c)
{
	memset(c, 0, sizeof(*c));
	c->py.nqueues = 2;
	strcpy(c->py.queue[0].name, "waiting");
	strcpy(c->py.queue[1].name, "inflight");
	c->py.states.failed = c->py.states.bootstrap = c->py.states.ready = PY_STATE_UNSET;
	c->py.states.moving = PY_STATE_UNSET;
	c->py.states.done = 4;
	c->py.nthreads = 1;
	c->py.status.n = 1;
	paths(c);
	c->s = (struct py_snapshot){
		.stable = true,
		.complete = true,
		.request = c->request,
		.status = c->status,
		.waiting = c->waiting,
		.worker = c->worker,
		.backlog = c->backlog,
		.nrequest = 3,
		.nwaiting = 1,
		.nworker = 1,
		.nbacklog = 1,
		.has_status = true,
		.has_backlog = true,
		.serving_proved = true,
	};
	for (int i = 0; i < 3; i++) {
		c->request[i] = (struct pyview_request){.addr = 0x10 + (uint64_t)i, .queue = i > 0};
		snprintf(c->request[i].room, sizeof(c->request[i].room), "%d", 7 + (i + 2) % 3);
		c->request[i].sent = c->request[i].total = -1;
	}
	status_of(c, "7", 3);
	status_of(c, "8", 2);
	status_of(c, "9", 1);
	c->backlog[0] = c->waiting[0].queue = c->worker[0].serves = 0x99;
	strcpy(c->waiting[0].room, "8");
	c->waiting[0].served = true;
	c->waiting[0].tid = c->worker[0].tid = 5;
	strcpy(c->worker[0].room, "7");
	c->s.thread[0] = (struct pyview_declared){.ever = true, .found = 1};
}

static void says(struct scene *c, bool slip, const char *words)
{
	assert_int_equal(py_notes(&c->py, &c->s, c->note), 1);
	if (!strstr(c->note[0].text, words))
		fail_msg("%s: not in: %s", words, c->note[0].text);
	assert_int_equal(c->note[0].slip, slip);
}

static void test_threads(void **state)
{
	struct scene c;

	(void)state;
	begin(&c);
	assert_int_equal(py_notes(&c.py, &c.s, c.note), 0);
	c.s.thread[0] = (struct pyview_declared){0};
	c.s.nworker = 0;
	says(&c, true, "threads.worker: no thread is in *.work");
	c.s.stable = false; /* what is torn shows nothing */
	assert_int_equal(py_notes(&c.py, &c.s, c.note), 0);
	begin(&c);
	c.s.thread[0].unknown = 1;
	says(&c, true, "busy: job cannot be read in 1 of 1 threads in *.work");
	begin(&c);
	c.s.thread[0].cannot_serve = 1;
	c.s.serving_proved = false;
	says(&c, true, "serves: no local q in 1 of 1");
	begin(&c);
	c.py.thread[0].role = PY_THREAD_BOOTSTRAP;
	c.s.thread[0] = (struct pyview_declared){0};
	c.s.nworker = 0;
	says(&c, false, "threads.bootstrap: no thread is in *.work");
}

static void test_serving(void **state)
{
	struct scene c;

	(void)state;
	begin(&c);
	c.s.serving_proved = false;
	says(&c, true, "no worker serves what it names: what waits is in self.jobs,");
	/* of several queues: each element is one */
	c.py.backlog.query[0].path.nsteps = 4;
	c.py.backlog.query[0].path.step[3].kind = PY_EACH;
	strcpy(c.py.backlog.query[0].path.step[2].name, "_buf");
	says(&c, true, "what waits is in self.jobs[*],");
	/* there are no queues yet: nothing is known */
	c.s.nbacklog = 0;
	assert_int_equal(py_notes(&c.py, &c.s, c.note), 0);
	c.s.nbacklog = 1;
	c.py.thread[0].nserves = 0;
	assert_int_equal(py_notes(&c.py, &c.s, c.note), 0);
}

static void test_rooms(void **state)
{
	struct scene c;

	(void)state;
	begin(&c);
	strcpy(c.request[1].room, "a");
	assert_int_equal(py_notes(&c.py, &c.s, c.note), 0); /* one of them is in the table */
	strcpy(c.request[2].room, "b");
	says(&c, false,
	     "queues.inflight: none of its 2 rooms is in the status table, which has 2 that");
	assert_true(py_other_table(&c.py, &c.s, 1));
	assert_false(py_other_table(&c.py, &c.s, 0));
	/* a table without others' entries: the classic pin */
	c.worker[0].room[0] = '\0';
	strcpy(c.status[0].room, "9");
	c.s.nstatus = 1;
	assert_int_equal(py_notes(&c.py, &c.s, c.note), 0);
	c.s.nstatus = 0;
	assert_int_equal(py_notes(&c.py, &c.s, c.note), 0);
	/* at a room that is over, and never seen to wait */
	begin(&c);
	strcpy(c.worker[0].room, "6");
	says(&c, false, "idle: no thread is in get, and thread 5 is at room 6");
	c.s.thread[0].idle_ever = true;
	assert_int_equal(py_notes(&c.py, &c.s, c.note), 0);
	c.s.thread[0].idle_ever = false;
	strcpy(c.worker[0].room, "91"); /* in its forward pass: an entry, no queue */
	status_of(&c, "91", 3);
	assert_int_equal(py_notes(&c.py, &c.s, c.note), 0);
	c.status[3].code = 4;
	says(&c, false, "is at room 91");
}

/* ---- a view ---------------------------------------------------------------------------------- */

static void on_event(void *ctx, const struct sp_event *ev)
{
	struct scene *c = ctx;
	size_t at = strlen(c->said);

	if (ev->role == ROLE_VIEW || (ev->role == ROLE_THREAD && strcmp(ev->kind, "at") != 0))
		snprintf(c->said + at, sizeof(c->said) - at, "%s %s;", ev->kind, ev->note);
	if (ev->role == ROLE_HELD && ev->flags & (EV_WAITS | EV_ORPHAN))
		snprintf(c->said + at, sizeof(c->said) - at, "%s %s;", ev->room,
			 ev->flags & EV_WAITS ? "waits" : "orphan");
}

static const char *look(struct scene *c)
{
	static struct profile p;
	uint64_t since;

	p.python = &c->py;
	if (!c->v)
		c->v = pyview_new(&p, 42);
	c->said[0] = '\0';
	c->s.start_ns = c->ns += 500 * MS;
	assert_true(pyview_take(c->v, &c->s, on_event, c, &since) >= 0);
	return c->said;
}

static void test_doubt(void **state)
{
	struct scene c;

	(void)state;
	begin(&c);
	for (int i = 0; i < 3; i++)
		assert_string_equal(look(&c), "");
	c.s.thread[0].unknown = 1;
	assert_string_equal(look(&c), "unsure busy of *.work is unreadable;");
	assert_string_equal(look(&c), "");
	c.s.thread[0].unknown = 0;
	assert_string_equal(look(&c), "");
	assert_string_equal(look(&c), "sure ;");
	assert_string_equal(look(&c), "");
	c.s.thread[0] = (struct pyview_declared){0};
	assert_string_equal(look(&c), "unsure no thread is in *.work;");
	/* whether the model still knows of it is not known: so it is said again */
	pyview_reset(c.v);
	assert_string_equal(look(&c), "unsure no thread is in *.work;");
	pyview_reset(c.v);
	c.s.thread[0].ever = true; /* it had been there: that it is not is a fact */
	assert_string_equal(look(&c), "");
	assert_string_equal(look(&c), "sure ;");
	pyview_reset(c.v);
	assert_string_equal(look(&c), "");
	assert_string_equal(look(&c), "");
	pyview_free(c.v);
}

static void test_unserved(void **state)
{
	struct scene c;

	(void)state;
	begin(&c);
	c.waiting[0].tid = 0;
	c.s.serving_proved = false;
	look(&c);
	assert_string_equal(look(&c), "8 waits;");
	/* the last worker has gone, and it is known whose queue that was */
	c.waiting[0].served = false;
	c.s.serving_proved = true;
	c.s.nworker = 0;
	look(&c);
	assert_string_equal(look(&c), "8 orphan;");
	pyview_free(c.v);
}

static void test_fits(void **state)
{
	struct scene c;

	(void)state;
	begin(&c); /* the table's entries: 7, 8, 9; in the inflight queue: */
	strcpy(c.request[1].room, "loaf");
	c.s.nrequest = 2;
	assert_string_equal(look(&c), "misfit inflight;");
	assert_string_equal(look(&c), "");
	pyview_reset(c.v); /* whether the model still knows of it is not known */
	assert_string_equal(look(&c), "misfit inflight;");
	c.s.nrequest = 3; /* 8, seen once */
	assert_string_equal(look(&c), "fits inflight;");
	c.s.nrequest = 2;
	assert_string_equal(look(&c), "");
	pyview_free(c.v);
	/* its own entry was there when it was in an earlier queue */
	begin(&c);
	c.s.nrequest = 1;
	assert_string_equal(look(&c), "");
	c.request[0].queue = 1;
	strcpy(c.status[2].room, "91");
	for (int i = 0; i < 3; i++)
		assert_string_equal(look(&c), "");
	pyview_free(c.v);
	/* a table without entries of others is that of the rooms that it lacks */
	begin(&c);
	strcpy(c.request[1].room, "loaf");
	c.s.nrequest = 2;
	assert_string_equal(look(&c), "misfit inflight;");
	strcpy(c.status[0].room, "9");
	c.s.nstatus = 1;
	assert_string_equal(look(&c), "");
	assert_string_equal(look(&c), "fits inflight;");
	c.s.nstatus = 0;
	assert_string_equal(look(&c), "");
	pyview_free(c.v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads),  cmocka_unit_test(test_serving),
		cmocka_unit_test(test_rooms),    cmocka_unit_test(test_doubt),
		cmocka_unit_test(test_unserved), cmocka_unit_test(test_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
