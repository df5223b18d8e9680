// SPDX-License-Identifier: Apache-2.0
/* The `python:` section: what it may say, what the shipped one says, every error with its place. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "profile/profile.h"
#include "util/cleanup.h"

#define HEAD                                                                                       \
	"version: 1\n"                                                                             \
	"profiles:\n"                                                                              \
	"  - name: t\n"                                                                            \
	"    room: {type: u64}\n"                                                                  \
	"    libraries: {l: {file: \"lib.so\"}}\n"                                                 \
	"    probes: [{name: p, library: l, symbol: f, event: {role: call}}]\n"

static int parse(const char *section, struct profile_file **pf, struct sp_err *err)
{
	char text[8192];

	snprintf(text, sizeof(text), "%s%s", HEAD, section);
	return profile_parse("t.yaml", text, strlen(text), pf, err);
}

static struct profile_python *must(const char *section, struct profile_file **pf)
{
	struct sp_err err = {0};

	if (parse(section, pf, &err))
		fail_msg("%s", err.text);
	assert_non_null((*pf)->profiles[0].python);
	return (*pf)->profiles[0].python;
}

static void query_is(const struct py_query *q, const char *want)
{
	char text[600];

	py_query_print(q, text, sizeof(text));
	assert_string_equal(text, want);
}

static void path_is(const struct py_path *p, const char *want)
{
	char text[300];

	py_path_print(p, text, sizeof(text));
	assert_string_equal(text, want);
}

/* ---- what it may say ---------------------------------------------------------------------------
 */

/* Some versions do not have it. */
static void optional_queue(void **state)
{
	struct profile_file *pf;
	struct profile_python *py = must("    python:\n"
					 "      root: {frame: loop}\n"
					 "      queues:\n"
					 "        waiting-skipped?: \"self.s[*].r\"\n"
					 "        inflight: \"self.q[*].r\"\n",
					 &pf);

	assert_int_equal(py->nqueues, 2);
	assert_string_equal(py->queue[0].name, "waiting-skipped");
	assert_true(py->queue[0].optional);
	assert_false(py->queue[1].optional);
	profile_free(pf);
}

static void smallest(void **state)
{
	struct profile_file *pf;
	struct profile_python *py = must("    python:\n"
					 "      root: {frame: loop}\n"
					 "      queues: {inflight: \"self.q[*] -> {room: r}\"}\n",
					 &pf);
	const struct py_query *q = &py->queue[0].alts.query[0];

	assert_int_equal(py->nroots, 1);
	assert_string_equal(py->root[0].frame, "loop");
	assert_string_equal(py->root[0].type, "");
	assert_string_equal(py->root[0].local, "self");
	assert_int_equal(py->nqueues, 1);
	assert_string_equal(py->queue[0].name, "inflight");
	assert_int_equal(py->queue[0].alts.n, 1);
	assert_string_equal(q->path.head, "self");
	assert_int_equal(q->path.nsteps, 2);
	assert_int_equal(q->path.step[0].kind, PY_ATTR);
	assert_string_equal(q->path.step[0].name, "q");
	assert_int_equal(q->path.step[1].kind, PY_EACH);
	assert_int_equal(q->nfields, 1);
	assert_int_equal(q->field[0].what, PY_ROOM);
	assert_string_equal(q->field[0].path.head, "");
	assert_int_equal(q->field[0].path.nsteps, 1);
	assert_false(q->field[0].optional);
	assert_int_equal(q->line, 9);
	assert_int_equal(py->status.n + py->announced.n + py->backlog.n + py->nthreads, 0);
	assert_true(py->states.done == PY_STATE_UNSET);
	assert_false(py_state_is(py->states.done, PY_STATE_UNSET));
	profile_free(pf);
}

static void everything(void **state)
{
	struct profile_file *pf;
	struct profile_python *py = must(
		"    python:\n"
		"      root:\n"
		"        - {frame: \"*.loop_*\", type: Scheduler}\n"
		"        - {frame: old_loop, local: me}\n"
		"      queues:\n"
		"        pre-bootstrap:\n"
		"          - \"self.a.queue[*]->{room:room}\"\n"
		"          - \" me.b[*].c\"\n"
		"        waiting: \"me.q{} -> {room: key, rid: value.rid, sent: value#, total?: "
		"value.x{0}.y}\"\n"
		"      status: [\"self.m.table{} -> {room: key, status: value}\",\n"
		"               \"self.m.table{} -> {room: key, status: value._value_}\"]\n"
		"      announced: \"self.t{} -> {room: key, seen: value#, need: value{0}.n}\"\n"
		"      backlog: \"self.qs[*]._buf[*].item.room\"\n"
		"      states: {failed: 0, done: 0x10}\n"
		"      threads:\n"
		"        worker:\n"
		"          - {frame: \"*.work\", idle: get*, busy: [room, chunk.room], serves: "
		"q.inner,\n"
		"             behind: [\"q._buf[*].room\", \"q[*] -> {room: room}\"]}\n"
		"          - {frame: work2, serves: [a, \"b.c{0}\"]}\n"
		"        bootstrap: {frame: \"*.boot\"}\n",
		&pf);

	assert_int_equal(py->nroots, 2);
	assert_string_equal(py->root[0].type, "Scheduler");
	assert_string_equal(py->root[1].local, "me");
	assert_int_equal(py->nqueues, 2);
	assert_string_equal(py->queue[0].name, "pre-bootstrap");
	assert_int_equal(py->queue[0].alts.n, 2);
	query_is(&py->queue[0].alts.query[0], "self.a.queue[*] -> {room: room}");
	query_is(&py->queue[0].alts.query[1], "me.b[*] -> {room: c}");
	query_is(&py->queue[1].alts.query[0],
		 "me.q{} -> {room: key, rid: value.rid, sent: value#, total?: value.x{0}.y}");
	assert_true(py->queue[1].alts.query[0].field[3].optional);
	assert_int_equal(py->queue[1].alts.query[0].field[3].path.step[1].kind, PY_FIRST);
	assert_int_equal(py->queue[1].alts.query[0].field[2].path.step[0].kind, PY_LEN);
	assert_int_equal(py->status.n, 2);
	query_is(&py->status.query[1], "self.m.table{} -> {room: key, status: value._value_}");
	query_is(&py->announced.query[0],
		 "self.t{} -> {room: key, seen: value#, need: value{0}.n}");
	query_is(&py->backlog.query[0], "self.qs[*]._buf[*].item -> {room: room}");
	assert_true(py_state_is(py->states.failed, 0));
	assert_true(py_state_is(py->states.done, 16));
	assert_true(py->states.ready == PY_STATE_UNSET);
	assert_int_equal(py->nthreads, 3);
	assert_int_equal(py->thread[0].role, PY_THREAD_WORKER);
	assert_string_equal(py->thread[0].idle, "get*");
	assert_int_equal(py->thread[0].nbusy, 2);
	path_is(&py->thread[0].busy[0], "room");
	path_is(&py->thread[0].busy[1], "chunk.room");
	assert_int_equal(py->thread[0].nserves, 1);
	path_is(&py->thread[0].serves[0], "q.inner");
	assert_int_equal(py->thread[0].behind.n, 2);
	query_is(&py->thread[0].behind.query[0], "q._buf[*] -> {room: room}");
	path_is(&py->thread[1].serves[1], "b.c{0}");
	assert_int_equal(py->thread[2].role, PY_THREAD_BOOTSTRAP);
	assert_string_equal(py->thread[2].frame, "*.boot");
	profile_free(pf);
}

static void the_shipped_one(void **state)
{
	struct profile_file *pf;
	struct sp_err err = {0};
	const struct profile_python *py;

	if (profile_load("probes.yaml", &pf, &err))
		fail_msg("%s", err.text);
	py = profile_by_name(pf, "sglang-nixl-prefill")->python;
	assert_non_null(py);
	assert_string_equal(py->root[0].type, "Scheduler");
	assert_int_equal(py->nqueues, 3);
	assert_string_equal(py->queue[0].name, "bootstrap");
	assert_string_equal(py->queue[1].name, "waiting");
	assert_string_equal(py->queue[2].name, "inflight");
	query_is(&py->queue[2].alts.query[0],
		 "self.disagg_prefill_inflight_queue[*] -> {room: bootstrap_room, rid: rid, sent?: "
		 "disagg_kv_sender.curr_idx, total?: disagg_kv_sender.num_kv_indices}");
	query_is(&py->status.query[0],
		 "self.disagg_prefill_bootstrap_queue.kv_manager.request_status{} -> {room: key, "
		 "status: value}");
	query_is(&py->announced.query[0],
		 "self.disagg_prefill_bootstrap_queue.kv_manager.transfer_infos{} -> {room: key, "
		 "seen: value#, need?: value{0}.required_dst_info_num}");
	query_is(&py->backlog.query[0],
		 "self.disagg_prefill_bootstrap_queue.kv_manager.transfer_queues[*]._buf[*] -> "
		 "{room: room}");
	assert_int_equal(py->states.failed, 0);
	assert_int_equal(py->states.bootstrap, 1);
	assert_int_equal(py->states.ready, 2);
	assert_int_equal(py->states.moving, 3);
	assert_int_equal(py->states.done, 4);
	assert_int_equal(py->nthreads, 2);
	profile_free(pf);
}

/* ---- errors ------------------------------------------------------------------------------------
 */

#define PY   "    python:\n"                   /* line 7 */
#define ROOT PY "      root: {frame: f}\n"     /* line 8 */
#define Q    ROOT "      queues: {inflight: "  /* line 9, the value at column 26 */
#define OK   Q "\"self.q[*] -> {room: r}\"}\n" /* line 10 follows */
#define W    OK "      threads: {worker: "     /* line 10, the value at column 25 */
#define LONG "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmn" /* 66 */

static const struct {
	const char *text, *at, *words;
} errors[] = {
	/* the section */
	{"    python: x\n", "7:13", "python must be a map"},
	{PY "      roots: {}\n", "8:7", "did you mean \"root\"?"},
	{PY "      queues: {}\n", "8:7", "python has no \"root\": it is required"},
	{ROOT, "8:7", "python has no \"queues\""},
	{PY "      root: f\n", "8:13", "root must be a map"},
	{PY "      root: []\n", "8:13", "an empty list"},
	{PY "      root: {}\n", "8:13", "root has no \"frame\""},
	{PY "      root: [{frame: a}, {frame: b}, {frame: c}, {frame: d}, {frame: e}]\n", "8:62",
	 "more than 4"},
	{PY "      root: {frame: \"[x\"}\n", "8:21", "\"[\" without \"]\""},
	{PY "      root: {frame: " LONG "}\n", "8:21", "more than 63 bytes"},
	{PY "      root: {frame: f, type: " LONG "}\n", "8:30", "more than 63 bytes"},
	{PY "      root: {frame: f, local: self.x}\n", "8:31", "drop what follows \"self\""},
	{PY "      root: {frame: f, local: 1x}\n", "8:31", "a local variable expected here"},
	{PY "      root: {frame: f, name: x}\n", "8:24", "unknown key \"name\" in root"},
	/* queues */
	{ROOT "      queues: {}\n", "9:15", "name at least one"},
	{ROOT "      queues: [x]\n", "9:15", "queues must be a map"},
	{ROOT "      queues: {ready: \"self.q[*] -> {room: r}\"}\n", "9:16",
	 "it holds bootstrap, waiting or inflight"},
	{ROOT "      queues: {inflight-of-rank0: \"self.q[*] -> {room: r}\"}\n", "9:16",
	 "more than 15 bytes"},
	{ROOT "      queues: {inflight: \"self.q[*].r\", inflight: \"self.q[*].r\"}\n", "9:41",
	 "a second time"},
	{ROOT "      queues: {inflight?: \"self.q[*].r\"}\n", "9:15", "each has a ?"},
	{ROOT "      queues: {inflight: \"self.q[*].r\", waiting??: \"self.q[*].r\"}\n", "9:41",
	 "one ? at its end says"},
	{ROOT "      queues: {inflight: \"self.q[*].r\", w?aiting: \"self.q[*].r\"}\n", "9:41",
	 "it holds bootstrap, waiting or inflight"},
	{ROOT "      queues: {inflight: \"self.q[*].r\", inflight?: \"self.q[*].r\"}\n", "9:41",
	 "\"inflight\" a second time"},
	{ROOT "      queues: {inflight: \"self.q[*].r\", inflight-of-rank?: \"self.q[*].r\"}\n",
	 "9:41", "more than 15 bytes"},
	{ROOT "      status?: \"self.s{} -> {room: key, status: value}\"\n", "9:7", "status"},
	{Q "\"me.q[*] -> {room: r}\"}\n", "9:26",
	 "\"me\" is not the root: the path begins with "
	 "\"self\""},
	{Q "[\"self.q[*].r\", \"me.q[*].r\"]}\n", "9:42", "\"me\" is not the root"},
	{Q "[a[*].r, b[*].r, c[*].r, d[*].r, e[*].r]}\n", "9:30", "not YAML"},
	{Q "[\"a[*].r\", \"b[*].r\", \"c[*].r\", \"d[*].r\", \"e[*].r\"]}\n", "9:67",
	 "more than 4"},
	{Q "{a: b}}\n", "9:26", "must be a text, not a map"},
	/* paths: the column is that of the place within the text */
	{Q "\"\"}\n", "9:27", "queue inflight: a local variable expected here"},
	{Q "\"self\"}\n", "9:31", "it has no elements: end the path with [*]"},
	{Q "\"self.q\"}\n", "9:33", "it has no elements"},
	{Q "\"self.[*]\"}\n", "9:32", "an attribute expected here"},
	{Q "\"self.q[0]\"}\n", "9:33", "only [*], every element"},
	{Q "\"self.q{1}\"}\n", "9:33", "only {}, every entry"},
	{Q "\"self.q[*]x\"}\n", "9:36", "\"x\" is not understood here"},
	{Q "\"self.q[*] - > {room: r}\"}\n", "9:37", "\"- > {room: r}\" is not understood"},
	{Q "\"self.q{}.x[*] -> {room: r}\"}\n", "9:40", "{} ends a query's path"},
	{Q "\"self.q#\"}\n", "9:34", "\"#\" is for fields"},
	{Q "\"self.q#.x\"}\n", "9:34", "ends a path"},
	{Q "\"self.q#x\"}\n", "9:33", "ends a path"},
	{Q "\"self." LONG "[*]\"}\n", "9:32", "a name of more than 63 bytes"},
	{Q "\"self.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a[*]\"}\n", "9:65", "more than 16 steps"},
	{Q "'self.q[0]'}\n", "9:33", "only [*]"},
	/* fields */
	{Q "\"self.q[*]\"}\n", "9:36", "\"-> {room: ...}\" expected here"},
	{Q "\"self.q{}\"}\n", "9:35", "\"-> {room: ...}\" expected here"},
	{Q "\"self.q[*] -> room\"}\n", "9:40", "\"{\" expected here"},
	{Q "\"self.q[*] -> {}\"}\n", "9:41", "no field \"room\": it is required"},
	{Q "\"self.q[*] -> {rid: r}\"}\n", "9:47", "no field \"room\""},
	{Q "\"self.q[*] -> {rom: r}\"}\n", "9:41", "did you mean \"room\"?"},
	{Q "\"self.q[*] -> {room: r, status: s}\"}\n", "9:50", "use room, rid, sent or total"},
	{Q "\"self.q[*] -> {room?: r}\"}\n", "9:45", "\"room\" cannot be optional"},
	{Q "\"self.q[*] -> {room r}\"}\n", "9:46", "\":\" expected here: write room: ATTRIBUTE"},
	{Q "\"self.q[*] -> {room: r rid: x}\"}\n", "9:49", "\",\" or \"}\" expected here"},
	{Q "\"self.q[*] -> {room: r, room: x}\"}\n", "9:50", "\"room\" a second time"},
	{Q "\"self.q[*] -> {room: r\"}\n", "9:48", "\",\" or \"}\" expected here"},
	{Q "\"self.q[*] -> {room: 1}\"}\n", "9:47", "an attribute expected here"},
	{Q "\"self.q[*] -> {room: r[*]}\"}\n", "9:47", "a field is one value"},
	{Q "\"self.q[*] -> {room: r} x\"}\n", "9:50", "nothing may follow"},
	{Q "\"self.q{} -> {room: room}\"}\n", "9:46", "begin with key or value"},
	/* the tables */
	{OK "      status: \"self.s{} -> {room: key}\"\n", "10:38", "no field \"status\""},
	{OK "      status: \"self.s{} -> {room: key, status?: value}\"\n", "10:46",
	 "\"status\" cannot be optional"},
	{OK "      status: \"self.s{}.x\"\n", "10:26", "{} ends a query's path"},
	{OK "      announced: \"self.s{} -> {room: key}\"\n", "10:41", "no field \"seen\""},
	{OK "      backlog: \"self.s[*] -> {room: r, rid: s}\"\n", "10:40",
	 "unknown field \"rid\": use room"},
	{OK "      states: {done: 4}\n", "10:15", "states without status"},
	{OK "      status: \"self.s{} -> {room: key, status: value}\"\n      states: {done: x}\n",
	 "11:22", "whole number"},
	{OK "      status: \"self.s{} -> {room: key, status: value}\"\n      states: {done: -1}\n",
	 "11:22", "a state's value is 0 or more"},
	{OK "      status: \"self.s{} -> {room: key, status: value}\"\n"
	    "      states: {done: 4, failed: 4}\n",
	 "11:22", "failed and done are both 4"},
	{OK "      status: \"self.s{} -> {room: key, status: value}\"\n      states: {dne: 4}\n",
	 "11:16", "did you mean \"done\"?"},
	/* threads */
	{OK "      threads: {loop: {frame: f}}\n", "10:17", "use worker or bootstrap"},
	{W "x}\n", "10:25", "worker must be a map"},
	{W "{busy: room}}\n", "10:25", "worker has no \"frame\""},
	{W "{frame: f}}\n", "10:25", "nothing to look at"},
	{W "{frame: f, idle: get, serves: q}}\n", "10:42", "idle without busy"},
	{W "{frame: f, busy: \"q[*].room\"}}\n", "10:43", "it leads to one object"},
	{W "{frame: f, busy: \"room x\"}}\n", "10:48", "\"x\" is not understood here"},
	{W "{frame: f, serves: \"q#\"}}\n", "10:45", "it leads to one object"},
	{W "{frame: f, behind: \"q\"}}\n", "10:46", "it has no elements"},
	{W "{frame: f, queue: q}}\n", "10:36", "unknown key \"queue\" in worker"},
	{OK "      threads: {bootstrap: {frame: f, busy: room}}\n", "10:39",
	 "unknown key \"busy\" in bootstrap"},
	{OK "      threads: {bootstrap: [{frame: a}, {frame: b}, {frame: c}, {frame: d}], "
	    "worker: {frame: e, busy: r}}\n",
	 "10:86", "more than 4"},
};

static void errors_with_their_place(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		struct profile_file *pf = NULL;
		struct sp_err err = {0};
		char place[64];
		int rc = parse(errors[i].text, &pf, &err);

		if (!rc)
			profile_free(pf);
		snprintf(place, sizeof(place), "t.yaml:%s: ", errors[i].at);
		if (rc != -EINVAL || err.exit_code != SP_EXIT_USAGE ||
		    strncmp(err.text, place, strlen(place)) != 0 ||
		    !strstr(err.text, errors[i].words) || strchr(err.text, '\n'))
			fail_msg("%s\nwant %s...%s\ngot  %s", errors[i].text, place,
				 errors[i].words, rc ? err.text : "no error");
	}
}

/* A printed query parses to itself, cut text ends whole. */
static void printing(void **state)
{
	struct profile_file *pf;
	struct profile_python *py = must(
		OK
		"      announced: \"self.t{} -> {room: key, seen: value#, need?: value{0}.n.m}\"\n",
		&pf);
	const struct py_query *q = &py->announced.query[0];
	char text[200], cut[10];

	py_query_print(q, text, sizeof(text));
	assert_string_equal(text, "self.t{} -> {room: key, seen: value#, need?: value{0}.n.m}");
	memset(cut, 'x', sizeof(cut));
	py_query_print(q, cut, sizeof(cut));
	assert_string_equal(cut, "self.t{} ");
	py_path_print(&q->path, cut, 1);
	assert_string_equal(cut, "");
	assert_string_equal(py_what_name(PY_NEED), "need");
	assert_string_equal(py_what_name(99), "?");
	profile_free(pf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(optional_queue),
		cmocka_unit_test(smallest),
		cmocka_unit_test(everything),
		cmocka_unit_test(the_shipped_one),
		cmocka_unit_test(errors_with_their_place),
		cmocka_unit_test(printing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
