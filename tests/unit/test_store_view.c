// SPDX-License-Identifier: Apache-2.0
/* The recording of what the server's own view adds: its events, stacks, lives that come again; and
 * files of the version that knew nothing of it. */
#include "store_rig.h"

#include <jansson.h>

/* ---- events -------------------------------------------------------------------------------- */

static struct sp_event held_event(const char *room, const char *queue, int64_t code, uint64_t ns)
{
	struct sp_event ev = make_event(ROLE_HELD, room, ns);

	ev.probe = -1;
	ev.op = 0x7f0000001000;
	ev.code = code;
	snprintf(ev.kind, sizeof(ev.kind), "%s", queue);
	snprintf(ev.rid, sizeof(ev.rid), "req-1");
	return ev;
}

static void give(struct store *s, struct rig_life *x, const struct sp_event *ev)
{
	x->l.last_ns = ev->ns;
	store_event(s, ev, &x->l);
	store_life_changed(s, &x->l);
}

static void assert_detail(const struct rig *r, const char *where, const char *expected)
{
	char sql[200];
	json_t *have, *want = json_loads(expected, 0, NULL);

	snprintf(sql, sizeof(sql), "SELECT detail FROM events WHERE %s", where);
	have = json_loads(rig_sql(r, sql), 0, NULL);
	if (!json_equal(have, want))
		fail_msg("%s: %s", rig_sql(r, sql), expected);
	json_decref(have);
	json_decref(want);
}

static void test_detail(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, true);
	struct sp_event ev = held_event("7", "inflight", 0, START + 1);
	struct read_back b;
	struct rig_life x;

	life_init(&x, "7", 1, START);
	ev.flags = EV_AT | EV_CUT;
	ev.chunk = 1;
	ev.need = 2;
	ev.part = 3;
	ev.parts = 4;
	give(s, &x, &ev);
	ev = held_event("7", "", HELD_UNKNOWN, START + 2);
	ev.flags = EV_ORPHAN;
	give(s, &x, &ev);
	ev = held_event("7", "inflight", HELD_NO_ENTRY, START + 3);
	give(s, &x, &ev);
	ev = held_event("7", "", 0, START + 4);
	ev.role = ROLE_RELEASE;
	ev.flags = EV_INFERRED;
	give(s, &x, &ev);
	ev = make_event(ROLE_VIEW, "", START + 5);
	ev.code = 5000000000000;
	snprintf(ev.kind, sizeof(ev.kind), "ok");
	store_event(s, &ev, NULL);
	store_close(s, START + SEC);
	assert_detail(
		r, "time_ns % 10 = 1",
		"{\"op\":\"0x7f0000001000\",\"kind\":\"inflight\",\"rid\":\"req-1\",\"code\":0,"
		"\"announced\":1,\"need\":2,\"sent\":3,\"total\":4,\"at\":1,\"cut\":1}");
	assert_detail(r, "time_ns % 10 = 2",
		      "{\"op\":\"0x7f0000001000\",\"rid\":\"req-1\",\"orphan\":1}");
	assert_detail(
		r, "time_ns % 10 = 3",
		"{\"op\":\"0x7f0000001000\",\"kind\":\"inflight\",\"rid\":\"req-1\",\"code\":-1}");
	assert_detail(r, "time_ns % 10 = 4",
		      "{\"op\":\"0x7f0000001000\",\"rid\":\"req-1\",\"inferred\":1}");
	assert_detail(r, "role = 'view'", "{\"kind\":\"ok\",\"code\":5000000000000}");
	b = rig_read(r);
	assert_int_equal(b.nev, 5);
	assert_true(b.ev[1].code == HELD_UNKNOWN && b.ev[2].code == HELD_NO_ENTRY);
	assert_int_equal(b.ev[0].flags, EV_AT | EV_CUT);
	assert_int_equal(b.ev[3].flags, EV_INFERRED);
	back_free(&b);
}

static void loose(struct store *s, enum sp_role role, const char *kind, const char *room,
		  uint64_t ns)
{
	struct sp_event ev = make_event(role, room, ns);

	snprintf(ev.kind, sizeof(ev.kind), "%s", kind);
	store_event(s, &ev, NULL);
}

static void some_loose(struct store *s)
{
	struct rig_life x;

	life_init(&x, "7", 1, START);
	life_event(s, &x, ROLE_ANNOUNCE, START + 1);
	loose(s, ROLE_THREAD, "at", "7", START + 2);
	loose(s, ROLE_THREAD, "at", "8", START + 3);
	loose(s, ROLE_THREAD, "at", "", START + 4);
	loose(s, ROLE_THREAD, "missing", "", START + 5);
	loose(s, ROLE_THREAD, "", "", START + 6);
	loose(s, ROLE_VIEW, "ok", "", START + 7);
	loose(s, ROLE_VIEW, "unstable", "", START + 8);
	loose(s, ROLE_VIEW, "lost", "", START + 9);
	life_over(s, &x, OUTCOME_FAILED, START + 10);
	store_close(s, START + SEC);
}

/* Of the threads only what concerns this room, of the looks only what went wrong. */
static void test_timeline_of_a_life(void **state)
{
	static const uint64_t want[] = {1, 2, 5, 6, 8, 9};
	struct rig *r = *state;
	struct read_back b = {0};
	struct recording *rec;
	struct sp_err err = {0};

	some_loose(rig_store(r, true));
	rec = rig_open(r);
	assert_int_equal(rec_lives(rec, "7", 0, 0, back_life, &b, &err), 0);
	assert_int_equal(rec_events(rec, &b.life[0], back_event, &b, &err), 0);
	assert_int_equal(b.nev, 6);
	for (int i = 0; i < 6; i++)
		assert_int_equal(b.ev[i].ns - START, want[i]);
	rec_close(rec);
	back_free(&b);
}

/* Where only unhealthy lives are kept, what a worker is at is not: it comes all the time. */
static void test_loose_kept(void **state)
{
	static const uint64_t want[] = {1, 5, 6, 7, 8, 9};
	struct rig *r = *state;
	struct read_back b;

	some_loose(rig_store(r, false));
	b = rig_read(r);
	assert_int_equal(b.nev, 6);
	for (int i = 0; i < 6; i++)
		assert_int_equal(b.ev[i].ns - START, want[i]);
	back_free(&b);
}

/* ---- stacks -------------------------------------------------------------------------------- */

struct stacks {
	char text[4096];
	int n, lines;
};

static bool on_stack(void *ctx, const struct rec_stack *st)
{
	struct stacks *x = ctx;
	size_t at = strlen(x->text);

	at += (size_t)snprintf(x->text + at, sizeof(x->text) - at,
			       "%llu %u %u %s:", (unsigned long long)(st->ns - START), st->pid,
			       st->tid, st->name);
	for (int i = 0; i < st->nlines && i < 3; i++)
		at += (size_t)snprintf(x->text + at, sizeof(x->text) - at, " %s", st->line[i]);
	snprintf(x->text + at, sizeof(x->text) - at, "; ");
	x->n++;
	x->lines = st->nlines;
	return true;
}

static struct stacks read_stacks(const struct rig *r, const char *room)
{
	struct stacks x = {0};
	struct read_back b = {0};
	struct recording *rec = rig_open(r);
	struct sp_err err = {0};

	assert_int_equal(rec_lives(rec, room, 0, 0, back_life, &b, &err), 0);
	assert_int_equal(b.nlives, 1);
	assert_int_equal(rec_stacks(rec, &b.life[0], on_stack, &x, &err), 0);
	rec_close(rec);
	back_free(&b);
	return x;
}

static void give_stack(struct store *s, struct rig_life *x, uint64_t ns, uint32_t tid,
		       const char *first)
{
	char a[64], b[] = "loop.py:40 event\xff_loop";
	char *const line[] = {a, b};

	snprintf(a, sizeof(a), "%s", first);
	store_stack(s, &x->l, ns, 4242, tid, "worker", line, 2);
}

static void test_stacks(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, false);
	struct rig_life x, y;

	life_init(&x, "7", 1, START);
	life_init(&y, "8", 1, START);
	life_event(s, &x, ROLE_ANNOUNCE, START + 1);
	give_stack(s, &x, START + 10, 5, "a.py:1 get");
	give_stack(s, &x, START + 10, 6, "b.py:2 \"put\"");
	give_stack(s, &y, START + 10, 5, "a.py:1 get"); /* the life's first sign */
	rig_flush(s, START + 20);
	assert_string_equal(read_stacks(r, "7").text,
			    "10 4242 5 worker: a.py:1 get loop.py:40 event\xff_loop; "
			    "10 4242 6 worker: b.py:2 \"put\" loop.py:40 event\xff_loop; ");
	/* another alert of that moment, of one thread more */
	give_stack(s, &x, START + 10, 6, "b.py:2 \"put\"");
	give_stack(s, &x, START + 10, 9, "f.py:9 run");
	rig_flush(s, START + 25);
	assert_string_equal(read_stacks(r, "7").text,
			    "10 4242 5 worker: a.py:1 get loop.py:40 event\xff_loop; "
			    "10 4242 6 worker: b.py:2 \"put\" loop.py:40 event\xff_loop; "
			    "10 4242 9 worker: f.py:9 run loop.py:40 event\xff_loop; ");
	/* the newest alert's, and nothing of the one before */
	give_stack(s, &x, START + 30, 7, "c.py:3 f");
	give_stack(s, &x, START + 25, 8, "d.py:4 late");
	x.l.ever_stuck = true;
	rig_flush(s, START + 40);
	assert_string_equal(read_stacks(r, "7").text,
			    "30 4242 7 worker: c.py:3 f loop.py:40 event\xff_loop; ");
	assert_int_equal(read_stacks(r, "8").n, 1);
	life_over(s, &x, OUTCOME_DONE, START + 50);
	give_stack(s, &x, START + 60, 7, "e.py:5 after its end");
	store_close(s, START + SEC);
	assert_string_equal(read_stacks(r, "7").text,
			    "30 4242 7 worker: c.py:3 f loop.py:40 event\xff_loop; ");
	assert_string_equal(rig_sql(r, "SELECT count(*) FROM life"), "2");
}

/* Two moments in one batch, and more threads and lines than are kept. */
static void test_stacks_bounded(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, false);
	char text[] = "deep.py:1 f";
	char *line[200];
	struct rig_life x;
	struct stacks st;

	life_init(&x, "7", 1, START);
	life_event(s, &x, ROLE_ANNOUNCE, START + 1);
	for (int i = 0; i < 200; i++)
		line[i] = text;
	for (uint32_t i = 0; i < 40; i++)
		store_stack(s, &x.l, START + 10, 4242, i, "", line, 200);
	for (uint32_t i = 100; i < 140; i++)
		store_stack(s, &x.l, START + 11, 4242, i, "", line, 200);
	store_close(s, START + SEC);
	st = read_stacks(r, "7");
	assert_int_equal(st.n, STACKS_MAX);
	assert_int_equal(st.lines, STACK_LINES_MAX);
	assert_int_equal(strncmp(st.text, "11 4242 100 :", 13), 0);
	assert_string_equal(rig_sql(r, "SELECT count(*) FROM stack"), "16");
}

/* --keep-mb takes them with the timeline that they belong to. */
static void test_stacks_go_with_the_timeline(void **state)
{
	struct rig *r = *state;
	struct store_cfg cfg = rig_cfg(r, false);
	struct sp_err err = {0};
	struct store *s;
	char text[] = "a/long/name/of/a/file/that/takes/some/space.py:12345 function";
	char *line[STACK_LINES_MAX];

	for (int i = 0; i < STACK_LINES_MAX; i++)
		line[i] = text;
	cfg.keep_bytes = 1 << 20;
	assert_int_equal(store_open(&cfg, &s, &err), 0);
	for (uint32_t i = 0; i < 2000; i++) {
		uint64_t ns = START + i * MS;
		struct rig_life x;
		char room[16];

		snprintf(room, sizeof(room), "%u", i);
		life_init(&x, room, 1, ns);
		life_event(s, &x, ROLE_ANNOUNCE, ns);
		x.l.ever_stuck = true;
		store_stack(s, &x.l, ns, 4242, 1, "t", line, STACK_LINES_MAX);
		life_over(s, &x, OUTCOME_FAILED, ns);
		if (i % 100 == 99)
			rig_flush(s, ns);
	}
	store_close(s, START + 10 * SEC);
	assert_string_equal(rig_sql(r,
				    "SELECT count(*) FROM stack s WHERE NOT EXISTS (SELECT 1 FROM"
				    " life l WHERE l.id = s.life AND l.kept)"),
			    "0");
	assert_true(atoi(rig_sql(r, "SELECT count(*) FROM stack")) > 10);
	assert_true(atoi(rig_sql(r, "SELECT count(*) FROM stack")) < 300);
}

/* ---- lives that come again ------------------------------------------------------------------ */

static void reopen(struct rig_life *x, uint64_t ns)
{
	x->l.ended_ns = 0;
	x->l.outcome = OUTCOME_NONE;
	x->l.stage = STAGE_INFLIGHT;
	x->l.last_ns = ns;
}

/* flush: the end has been written when it comes again; else it is still in memory. */
static void comes_again(struct rig *r, bool flush)
{
	struct store *s = rig_store(r, false);
	struct read_back b;
	struct rig_life x;

	life_init(&x, "7", 2, START);
	x.l.id = 77;
	life_event(s, &x, ROLE_ANNOUNCE, START + 1);
	x.l.stage = STAGE_INFLIGHT;
	life_event(s, &x, ROLE_POST, START + 2);
	one_life(s, "other", 3, OUTCOME_FAILED, START + 3);
	life_over(s, &x, OUTCOME_FAILED, START + 10);
	if (flush) {
		rig_flush(s, START + 20);
		assert_string_equal(rig_sql(r, "SELECT outcome FROM rooms WHERE room = '7'"),
				    "failed");
	}
	one_life(s, "third", 3, OUTCOME_FAILED, START + 21);
	reopen(&x, START + 30);
	store_life_changed(s, &x.l);
	rig_flush(s, START + 31);
	assert_string_equal(rig_sql(r, "SELECT count(*) || stage || typeof(ended_ns) || "
				       "typeof(outcome) FROM rooms WHERE room = '7'"),
			    "1inflightnullnull");
	life_event(s, &x, ROLE_HELD, START + 40);
	life_over(s, &x, OUTCOME_DONE, START + 50);
	store_close(s, START + SEC);
	b = rig_read(r);
	assert_int_equal(b.nlives, 3);
	assert_string_equal(b.life[0].room, "7");
	assert_true(b.life[0].opened_ns == START && b.life[0].ended_ns == START + 50);
	assert_int_equal(b.life[0].outcome, OUTCOME_DONE);
	assert_true(b.life[0].stage_at[STAGE_BOOTSTRAP] == START &&
		    b.life[0].stage_at[STAGE_INFLIGHT] == START + 2);
	/* its events before and after are its own, and stay: that it came back is no usual life */
	assert_true(b.life[0].full);
	assert_int_equal(b.nev, 3 + 6);
	assert_true(b.life_no[0] == 2 && b.life_no[1] == 2 && b.life_no[8] == 2);
	assert_int_equal(b.ev[8].role, ROLE_HELD);
	assert_string_equal(b.ev[8].room, "7");
	back_free(&b);
}

static void test_again_after_a_write(void **state)
{
	comes_again(*state, true);
}

static void test_again_in_memory(void **state)
{
	comes_again(*state, false);
}

/* It had ended well, and its events are gone: the row goes on, with what comes from then on. */
static void healthy_again(struct rig *r, bool flush)
{
	struct store *s = rig_store(r, false);
	struct read_back b = {0};
	struct recording *rec;
	struct sp_err err = {0};
	struct rig_life x;

	life_init(&x, "7", 1, START);
	x.l.id = 5;
	for (int i = 0; i < 5; i++)
		life_event(s, &x, ROLE_POST, START + 1);
	if (flush)
		rig_flush(s, START + 2);
	life_over(s, &x, OUTCOME_DONE, START + 10);
	if (flush)
		rig_flush(s, START + 11);
	reopen(&x, START + 30);
	store_life_changed(s, &x.l);
	life_event(s, &x, ROLE_HELD, START + 40);
	life_event(s, &x, ROLE_HELD, START + 41);
	store_close(s, START + SEC);
	rec = rig_open(r);
	assert_int_equal(rec_lives(rec, NULL, 0, 0, back_life, &b, &err), 0);
	assert_int_equal(b.nlives, 1);
	assert_true(b.life[0].full && !b.life[0].ended_ns);
	assert_int_equal(rec_events(rec, &b.life[0], back_event, &b, &err), 0);
	assert_int_equal(b.nev, 2);
	assert_int_equal(b.life_no[0], 1);
	rec_close(rec);
	back_free(&b);
	assert_string_equal(rig_sql(r, "SELECT events || ' ' || (SELECT count(*) FROM event) FROM"
				       " life"),
			    "2 2");
}

static void test_healthy_again_after_a_write(void **state)
{
	healthy_again(*state, true);
}

static void test_healthy_again_in_memory(void **state)
{
	healthy_again(*state, false);
}

/* Another life that only looks like it has a row of its own; and so has one that comes too late. */
static void test_not_the_same(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, false);
	struct rig_life x;

	life_init(&x, "7", 1, START);
	x.l.id = 1;
	life_event(s, &x, ROLE_POST, START + 1);
	life_over(s, &x, OUTCOME_FAILED, START + 2);
	reopen(&x, START + 3);
	x.l.id = 2;
	x.l.opened_ns = START + 3;
	life_event(s, &x, ROLE_POST, START + 3);
	life_over(s, &x, OUTCOME_FAILED, START + 4);
	one_life(s, "8", 1, OUTCOME_FAILED, START + 700 * SEC); /* the clock goes on */
	reopen(&x, START + 700 * SEC);
	store_life_changed(s, &x.l);
	store_close(s, START + 701 * SEC);
	assert_string_equal(rig_sql(r, "SELECT count(*) FROM life WHERE room = '7'"), "3");
}

/* ---- files of version 1 ---------------------------------------------------------------------- */

/* The schema as version 1 wrote it. */
static const char version_1[] =
	"CREATE TABLE session(id INTEGER PRIMARY KEY, writer_pid INTEGER NOT NULL, boot_id "
	"TEXT NOT NULL, utc_offset_ns INTEGER NOT NULL, start_ns INTEGER NOT NULL, options "
	"TEXT NOT NULL, record_all INTEGER NOT NULL, profile TEXT NOT NULL, probes_path TEXT "
	"NOT NULL, probes_text TEXT NOT NULL, min_confidence TEXT NOT NULL, bootstrap_ns "
	"INTEGER NOT NULL, ready_ns INTEGER NOT NULL, inflight_ns INTEGER NOT NULL, "
	"releasing_ns INTEGER NOT NULL, sees_release INTEGER NOT NULL, sees_arrive INTEGER NOT "
	"NULL, first_seq INTEGER NOT NULL, first_life INTEGER NOT NULL, first_alert INTEGER "
	"NOT NULL);"
	"CREATE TABLE progress(session INTEGER PRIMARY KEY, model_ns INTEGER NOT NULL, end_ns "
	"INTEGER, complete INTEGER NOT NULL, lost_events INTEGER NOT NULL);"
	"CREATE TABLE role(id INTEGER PRIMARY KEY, name TEXT NOT NULL);"
	"CREATE TABLE probe(session INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT NOT NULL, "
	"PRIMARY KEY(session, id)) WITHOUT ROWID;"
	"CREATE TABLE life(id INTEGER PRIMARY KEY, pid INTEGER NOT NULL, room TEXT NOT NULL, "
	"life INTEGER NOT NULL, stage TEXT NOT NULL, opened_ns INTEGER NOT NULL, progress_ns "
	"INTEGER NOT NULL, last_ns INTEGER NOT NULL, ended_ns INTEGER, outcome TEXT, stuck "
	"INTEGER NOT NULL, cause TEXT, confidence TEXT, verdict TEXT, uncertain INTEGER NOT "
	"NULL, late INTEGER NOT NULL, fake INTEGER NOT NULL, ever_stuck INTEGER NOT NULL, kept "
	"INTEGER NOT NULL, rid TEXT, peer TEXT, bootstrap_ns INTEGER, ready_ns INTEGER, "
	"inflight_ns INTEGER, releasing_ns INTEGER, first_seq INTEGER, last_seq INTEGER, "
	"events INTEGER NOT NULL);"
	"CREATE INDEX life_kept ON life(id) WHERE kept;"
	"CREATE TABLE event(seq INTEGER PRIMARY KEY, ns INTEGER NOT NULL, pid INTEGER NOT "
	"NULL, tid INTEGER NOT NULL, life INTEGER, role INTEGER NOT NULL, status INTEGER NOT "
	"NULL, flags INTEGER NOT NULL, last INTEGER NOT NULL, probe INTEGER NOT NULL, rank "
	"INTEGER NOT NULL, chunk INTEGER NOT NULL, part INTEGER NOT NULL, parts INTEGER NOT "
	"NULL, need INTEGER NOT NULL, covers INTEGER NOT NULL, code INTEGER NOT NULL, op "
	"INTEGER NOT NULL, room TEXT, kind TEXT, peer TEXT, agent TEXT, rid TEXT, note TEXT);"
	"CREATE TABLE alert(id INTEGER PRIMARY KEY, ns INTEGER NOT NULL, type TEXT NOT NULL, "
	"pid INTEGER NOT NULL, tid INTEGER NOT NULL, room TEXT, life INTEGER, stage TEXT, "
	"cause TEXT, confidence TEXT, pin INTEGER, age_ns INTEGER, idle_ns INTEGER, stalled_ns "
	"INTEGER, outcome TEXT, lost INTEGER, what TEXT, note TEXT);"
	"CREATE VIEW rooms AS SELECT pid, room, life, stage, opened_ns, last_ns, ended_ns, "
	"outcome, CASE WHEN stuck OR ended_ns IS NOT NULL THEN cause END AS cause, CASE WHEN "
	"stuck OR ended_ns IS NOT NULL THEN confidence END AS confidence, uncertain FROM life "
	"WHERE id >= (SELECT first_life FROM session WHERE id = (SELECT max(id) FROM session));"
	"CREATE VIEW events AS SELECT e.ns AS time_ns, e.pid AS pid, e.tid AS tid, "
	"coalesce(e.room, l.room) AS room, l.life AS life, (SELECT name FROM role WHERE id = "
	"e.role) AS role, (SELECT name FROM probe p WHERE p.session = (SELECT max(id) FROM "
	"session) AND p.id = e.probe) AS probe, json_patch('{}', json_object('op', CASE WHEN "
	"e.op <> 0 THEN printf('0x%x', e.op) END,'kind', e.kind, 'chunk', nullif(e.chunk, -1), "
	"'last', nullif(e.last, -1),'part', nullif(e.part, -1), 'parts', nullif(e.parts, "
	"-1),'rank', nullif(e.rank, -1), 'need', nullif(e.need, -1),'status', CASE e.status "
	"WHEN 1 THEN 'busy' WHEN 2 THEN 'done' WHEN 3 THEN 'error' END,'code', CASE WHEN "
	"e.status <> 0 OR e.code <> 0 THEN e.code END,'covers', nullif(e.covers, 0), 'peer', "
	"e.peer, 'agent', e.agent, 'rid', e.rid,'note', e.note, 'cut', nullif(e.flags & 1, 0), "
	"'nodata', nullif(e.flags >> 1 & 1, 0),'created', nullif(e.flags >> 2 & 1, 0), 'gap', "
	"nullif(e.flags >> 3 & 1, 0))) AS detail FROM event e LEFT JOIN life l ON l.id = "
	"e.life WHERE e.seq >= (SELECT first_seq FROM session WHERE id = (SELECT max(id) FROM "
	"session));";

static const char roles_1[] =
	"INSERT INTO role VALUES(0,'none'),(1,'arrive'),(2,'held'),(3,'announce'),(4,'register'),"
	"(5,'post'),(6,'status'),(7,'close'),(8,'abort'),(9,'told'),(10,'reply'),(11,'release'),"
	"(12,'control'),(13,'call'),(14,'peer'),(15,'thread'),(16,'target'),(17,'loss'),"
	"(18,'stall');";

static const char rows_1[] =
	"INSERT INTO session VALUES(1,99,'boot',1700000000000000000,5000000000000,'watch -p 1',1,"
	"'rig','probes.yaml','version: 1','likely',1,2,3,4,0,0,1,1,1);"
	"INSERT INTO progress VALUES(1,5001000000000,5001000000000,1,0);"
	"INSERT INTO probe VALUES(1,0,'xfer_create');"
	"INSERT INTO life VALUES(1,4242,'7',1,'inflight',5000000000000,5000000000000,5000000000002,"
	"NULL,NULL,0,NULL,NULL,NULL,0,0,0,0,1,'req',NULL,5000000000000,NULL,NULL,NULL,1,2,2);"
	"INSERT INTO event VALUES(1,5000000000001,4242,4250,1,3,0,0,-1,0,-1,-1,-1,-1,2,0,0,0,NULL,"
	"NULL,NULL,NULL,NULL,NULL);"
	"INSERT INTO event VALUES(2,5000000000002,4242,4250,1,5,1,0,-1,0,-1,3,-1,-1,-1,0,0,4096,"
	"NULL,'kv',NULL,NULL,NULL,NULL);";

static void exec(sqlite3 *db, const char *sql)
{
	char *why = NULL;

	if (sqlite3_exec(db, sql, NULL, NULL, &why))
		fail_msg("%s", why);
}

static void make_version_1(const struct rig *r)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(r->path, &db), SQLITE_OK);
	exec(db, "PRAGMA auto_vacuum = INCREMENTAL; BEGIN; PRAGMA application_id = 1397778798;"
		 "PRAGMA user_version = 1");
	exec(db, version_1);
	exec(db, roles_1);
	exec(db, rows_1);
	exec(db, "COMMIT; PRAGMA journal_mode = WAL");
	sqlite3_close(db);
}

static void assert_old_rows(const struct rig *r)
{
	struct read_back b = rig_read(r);

	assert_int_equal(b.nev, 2);
	assert_int_equal(b.ev[0].role, ROLE_ANNOUNCE);
	assert_int_equal(b.ev[1].chunk, 3);
	assert_int_equal(b.life_no[1], 1);
	assert_int_equal(b.nlives, 1);
	assert_string_equal(b.life[0].rid, "req");
	back_free(&b);
	assert_int_equal(read_stacks(r, "7").n, 0);
}

static bool first_json(void *ctx, const char *json)
{
	snprintf(ctx, 512, "%s", json);
	return false;
}

/* It is read as it is, and not touched. */
static void test_read_version_1(void **state)
{
	struct rig *r = *state;
	struct recording *rec;
	struct sp_err err = {0};
	char json[512] = "";

	make_version_1(r);
	assert_old_rows(r);
	rec = rig_open(r);
	assert_int_equal(rec_events_json(rec, NULL, first_json, json, &err), 0);
	assert_non_null(strstr(json, "\"role\":\"announce\""));
	assert_non_null(strstr(json, "\"need\":2"));
	rec_close(rec);
	assert_string_equal(rig_sql(r, "PRAGMA user_version"), "1");
}

static void test_write_version_1(void **state)
{
	struct rig *r = *state;
	struct store *s;
	struct sp_event ev = held_event("8", "inflight", 3, START + 2);
	struct rig_life x;

	make_version_1(r);
	s = rig_store(r, true);
	assert_string_equal(rig_sql(r, "PRAGMA user_version"), "2");
	life_init(&x, "8", 1, START + 1);
	ev.part = 1;
	give(s, &x, &ev);
	loose(s, ROLE_VIEW, "lost", "", START + 3);
	give_stack(s, &x, START + 4, 5, "a.py:1 get");
	store_close(s, START + SEC);
	assert_int_equal(read_stacks(r, "8").n, 1);
	assert_string_equal(rig_sql(r, "SELECT group_concat(role) FROM events"), "held,view");
	assert_string_equal(rig_sql(r, "SELECT json_extract(detail, '$.sent') FROM events"), "1");
	assert_string_equal(rig_sql(r, "SELECT count(*) FROM role"), "20");
	/* what was there is still there */
	assert_string_equal(rig_sql(r, "SELECT count(*) FROM event"), "4");
	assert_string_equal(rig_sql(r, "SELECT count(*) FROM session"), "2");
	assert_string_equal(rig_sql(r, "PRAGMA integrity_check"), "ok");
	/* once more: nothing left to do */
	s = rig_store(r, true);
	store_close(s, START + 2 * SEC);
	assert_string_equal(rig_sql(r, "SELECT count(*) FROM role"), "20");
}

/* One that reads it meanwhile goes on with what it has opened. */
static void test_upgrade_under_a_reader(void **state)
{
	struct rig *r = *state;
	struct recording *rec;
	struct read_back b = {0};
	struct sp_err err = {0};

	make_version_1(r);
	rec = rig_open(r);
	store_close(rig_store(r, true), START + SEC);
	assert_int_equal(rec_events(rec, NULL, back_event, &b, &err), 0);
	assert_int_equal(b.nev, 2);
	rec_close(rec);
	back_free(&b);
	assert_string_equal(rig_sql(r, "PRAGMA user_version"), "2");
}

int main(void)
{
#define WITH_RIG(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		WITH_RIG(test_detail),
		WITH_RIG(test_timeline_of_a_life),
		WITH_RIG(test_loose_kept),
		WITH_RIG(test_stacks),
		WITH_RIG(test_stacks_bounded),
		WITH_RIG(test_stacks_go_with_the_timeline),
		WITH_RIG(test_again_after_a_write),
		WITH_RIG(test_again_in_memory),
		WITH_RIG(test_healthy_again_after_a_write),
		WITH_RIG(test_healthy_again_in_memory),
		WITH_RIG(test_not_the_same),
		WITH_RIG(test_read_version_1),
		WITH_RIG(test_write_version_1),
		WITH_RIG(test_upgrade_under_a_reader),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
