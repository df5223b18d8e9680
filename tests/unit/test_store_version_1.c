// SPDX-License-Identifier: Apache-2.0
/* Files of version 1, which knew nothing of the server's own view, and of version 2, which did not
 * keep whether operations were seen: read as they are, and upgraded when written. */
#include "store_view_rig.h"

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

/* What version 2 had besides. */
static const char more_2[] =
	"CREATE TABLE stack(life INTEGER NOT NULL, n INTEGER NOT NULL, ns INTEGER NOT NULL,"
	" pid INTEGER NOT NULL, tid INTEGER NOT NULL, name TEXT, frames TEXT NOT NULL,"
	" PRIMARY KEY(life, n)) WITHOUT ROWID;"
	"INSERT INTO role VALUES(19,'view'); PRAGMA user_version = 2";

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

static void make_version_2(const struct rig *r)
{
	sqlite3 *db;

	make_version_1(r);
	assert_int_equal(sqlite3_open(r->path, &db), SQLITE_OK);
	exec(db, more_2);
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
	assert_string_equal(rig_sql(r, "PRAGMA user_version"), "4");
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

static void test_version_2(void **state)
{
	struct rig *r = *state;
	struct store_cfg cfg = rig_cfg(r, true);
	struct recording *rec;
	struct sp_err err = {0};
	struct store *s;

	make_version_2(r);
	assert_old_rows(r);
	rec = rig_open(r);
	assert_false(rec_session(rec)->no_posts);
	rec_close(rec);
	assert_string_equal(rig_sql(r, "PRAGMA user_version"), "2");
	cfg.no_posts = cfg.sees_arrive = true;
	assert_int_equal(store_open(&cfg, &s, &err), 0);
	assert_string_equal(rig_sql(r, "PRAGMA user_version"), "4");
	store_close(s, START + SEC);
	rec = rig_open(r);
	assert_true(rec_session(rec)->no_posts);
	assert_true(rec_session(rec)->sees_arrive);
	assert_false(rec_session(rec)->sees_release);
	rec_close(rec);
	assert_string_equal(rig_sql(r, "SELECT group_concat(no_posts) FROM session"), "0,1");
	assert_string_equal(rig_sql(r, "PRAGMA integrity_check"), "ok");
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
	assert_string_equal(rig_sql(r, "PRAGMA user_version"), "4");
}

int main(void)
{
#define WITH_RIG(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		WITH_RIG(test_read_version_1),
		WITH_RIG(test_write_version_1),
		WITH_RIG(test_version_2),
		WITH_RIG(test_upgrade_under_a_reader),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
