// SPDX-License-Identifier: Apache-2.0
/* The recording under bad luck: killed writers, second writers, readers, damaged and foreign
 * files. */
#include "store_rig.h"

/* ---- a writer in a process of its own ------------------------------------------------------ */

/* Write for ever: numbered events of one life that never ends, a flush every few. */
static int write_for_ever(const struct rig *r)
{
	struct store_cfg cfg = rig_cfg(r, true);
	struct sp_err err = {0};
	struct rig_life x;
	struct store *s;

	if (store_open(&cfg, &s, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 9;
	}
	life_init(&x, "77", 1, START);
	for (int i = 0;; i++) {
		struct sp_event ev = make_event(ROLE_POST, "77", START + (uint64_t)i);

		ev.chunk = i;
		x.l.last_ns = ev.ns;
		store_event(s, &ev, &x.l);
		if (i % 50 == 49) {
			store_flush(s, ev.ns);
			usleep(200); /* a load, not a flood */
		}
	}
}

static void stop(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status)); /* it was still writing */
}

/* Until the newest session of the file has events and its writer runs. */
static void await_events(const struct rig *r)
{
	for (int i = 0; i < 30000; i++) {
		struct recording *rec;
		struct sp_err err;
		struct read_back b = {0};
		bool running = false;

		if (!rec_open(r->path, &rec, &err)) {
			running = rec_session(rec)->running;
			assert_int_equal(rec_events(rec, NULL, back_event, &b, &err), 0);
			rec_close(rec);
		}
		back_free(&b);
		if (running && b.nev)
			return;
		usleep(1000);
	}
	fail_msg("no events");
}

static void test_killed_writer(void **state)
{
	struct rig *r = *state;
	size_t found = 0;

	/* later and later, until enough were killed with something in the file */
	for (unsigned int i = 0; i < 60 && (i < 15 || found < 4); i++) {
		pid_t pid = start(write_for_ever, r);
		struct recording *rec;
		struct sp_err err = {0};
		struct read_back b = {0};

		usleep(500 + i * i * 300); /* also while it creates the file */
		stop(pid);
		if (rec_open(r->path, &rec, &err)) {
			/* killed before it had anything to say */
			assert_int_equal(err.exit_code, SP_EXIT_USAGE);
			assert_int_equal(found, 0);
			continue;
		}
		assert_false(rec_session(rec)->running || rec_session(rec)->ended);
		assert_int_equal(rec_events(rec, NULL, back_event, &b, &err), 0);
		assert_prefix(&b);
		found += b.nev > 0;
		rec_close(rec);
		back_free(&b);
		assert_string_equal(rig_sql(r, "PRAGMA integrity_check"), "ok");
	}
	assert_true(found > 3);
	store_close(rig_store(r, true), START + SEC); /* and the next writer takes over */
}

static void test_second_writer(void **state)
{
	struct rig *r = *state;
	pid_t pid = start(write_for_ever, r);
	struct store_cfg cfg = rig_cfg(r, false);
	struct read_back one, two;
	struct sp_err err = {0};
	struct store *s;
	char who[32];

	await_events(r);
	assert_int_equal(store_open(&cfg, &s, &err), -EBUSY);
	assert_null(s);
	assert_int_equal(err.exit_code, SP_EXIT_USAGE);
	snprintf(who, sizeof(who), ": being written by pid %d: ", pid);
	assert_non_null(strstr(err.text, who));
	/* reading goes on meanwhile, and sees it grow */
	one = rig_read(r);
	assert_true(one.s.running && one.nev > 0);
	assert_prefix(&one);
	do {
		two = rig_read(r);
		back_free(&two);
	} while (two.nev == one.nev);
	back_free(&one);
	stop(pid);
	one = rig_read(r);
	assert_false(one.s.running);
	assert_true(one.nev >= two.nev);
	back_free(&one);
	store_close(rig_store(r, false), START + SEC);
}

enum { STARTERS = 8, WON = 0, BUSY = 1, OTHER = 2 };
static int tried[2], all_tried[2];

/* Open the recording; who has it keeps it until all have tried. */
static int open_at_once(const struct rig *r)
{
	struct store_cfg cfg = rig_cfg(r, false);
	struct sp_err err = {0};
	struct store *s;
	int rc = store_open(&cfg, &s, &err);
	char c;

	close(all_tried[1]);
	if (write(tried[1], "t", 1) != 1 || read(all_tried[0], &c, 1) != 0)
		return OTHER;
	if (!rc)
		store_close(s, START + SEC);
	return !rc ? WON : rc == -EBUSY ? BUSY : OTHER;
}

/* Of watches that begin the same file at the same moment one has it, and the others leave it alone.
 */
static void test_several_begin_it(void **state)
{
	struct rig *r = *state;

	for (int round = 0; round < 25; round++) {
		pid_t pid[STARTERS];
		int got[3] = {0}, status;
		char c;

		unlink(r->path);
		assert_int_equal(pipe(tried) | pipe(all_tried), 0);
		for (int i = 0; i < STARTERS; i++)
			pid[i] = start(open_at_once, r);
		close(tried[1]);
		for (int i = 0; i < STARTERS; i++)
			assert_int_equal(read(tried[0], &c, 1), 1);
		close(all_tried[1]);
		for (int i = 0; i < STARTERS; i++) {
			assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
			assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= OTHER);
			got[WEXITSTATUS(status)]++;
		}
		close(all_tried[0]);
		close(tried[0]);
		assert_int_equal(got[WON], 1);
		assert_int_equal(got[BUSY], STARTERS - 1);
		assert_string_equal(rig_sql(r, "SELECT count(*) FROM session"), "1");
	}
}

/* ---- a reader while nobody writes ---------------------------------------------------------- */

static int read_as_nobody(const struct rig *r)
{
	struct recording *rec;
	struct sp_err err = {0};
	struct read_back b = {0};

	if (geteuid() == 0 && (setgid(65534) || setuid(65534)))
		return 10;
	if (rec_open(r->path, &rec, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 11;
	}
	if (rec_events(rec, NULL, back_event, &b, &err))
		return 12;
	rec_close(rec);
	free(b.ev);
	free(b.life_no);
	return b.nev == 3 ? 0 : 13;
}

static void test_read_only_folder(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, true);

	one_life(s, "1", 3, OUTCOME_DONE, START);
	store_close(s, START + SEC);
	assert_int_equal(entries(r->dir), 1);
	chmod(r->path, 0444);
	chmod(r->dir, 0555);
	assert_int_equal(in_child(read_as_nobody, r), 0);
	assert_int_equal(entries(r->dir), 1);
}

/* Killed between checkpoints, copied with its WAL into a folder that cannot be written. */
static void test_read_only_folder_with_wal(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, true);
	pid_t pid;

	one_life(s, "1", 3, OUTCOME_DONE, START);
	store_close(s, START + SEC);
	pid = start(write_for_ever, r);
	await_events(r);
	stop(pid);
	chmod(r->path, 0444);
	chmod(r->dir, 0555);
	/* with or without what the WAL holds, but never an error or a new file */
	assert_int_not_equal(in_child(read_as_nobody, r), 11);
	assert_int_not_equal(in_child(read_as_nobody, r), 12);
	assert_int_equal(entries(r->dir), 3);
}

static int write_much(const struct rig *r)
{
	struct store_cfg cfg = rig_cfg(r, true);
	struct sp_err err = {0};
	struct store *s;

	cfg.keep_bytes = 1 << 20;
	if (store_open(&cfg, &s, &err))
		return 9;
	for (int i = 0; i < 3000; i++) {
		char room[16];

		snprintf(room, sizeof(room), "%d", i);
		one_life(s, room, 10, OUTCOME_DONE, START + (uint64_t)i * 100);
		if (i % 100 == 0) {
			store_flush(s, START + (uint64_t)i * 100);
			store_wait(s, 5000);
		}
	}
	store_close(s, START + SEC);
	return 0;
}

/* A reader that came when nobody wrote reads the main file as it is: a writer leaves it alone. */
static void test_reader_before_writer(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, true);
	struct read_back b = {0};
	struct recording *rec;
	struct sp_err err = {0};
	struct stat was, is;

	for (int i = 0; i < 500; i++)
		one_life(s, "1", 10, OUTCOME_DONE, START + (uint64_t)i * 100);
	store_close(s, START + SEC);
	assert_int_equal(stat(r->path, &was), 0);
	rec = rig_open(r);
	assert_int_equal(in_child(write_much, r), 0);
	assert_int_equal(stat(r->path, &is), 0);
	assert_true(is.st_size == was.st_size && is.st_mtim.tv_nsec == was.st_mtim.tv_nsec);
	assert_int_equal(rec_events(rec, NULL, back_event, &b, &err), 0);
	assert_int_equal(b.nev, 5000);
	rec_close(rec);
	back_free(&b);
	b = rig_read(r); /* what was written meanwhile is there */
	assert_int_equal(b.s.id, 2);
	assert_true(b.nev > 100);
	back_free(&b);
	assert_string_equal(rig_sql(r, "PRAGMA integrity_check"), "ok");
}

/* ---- files that are none ------------------------------------------------------------------- */

static void refused(const struct rig *r, const char *path, const char *why)
{
	struct store_cfg cfg = rig_cfg(r, false);
	struct sp_err err = {0};
	struct recording *rec;
	struct store *s;

	cfg.path = path;
	assert_true(store_open(&cfg, &s, &err) < 0);
	assert_null(s);
	assert_int_equal(err.exit_code, SP_EXIT_USAGE);
	assert_non_null(strstr(err.text, why));
	assert_int_equal(strncmp(err.text, path, strlen(path)), 0);
	assert_null(strchr(err.text, '\n'));
	memset(&err, 0, sizeof(err));
	assert_true(rec_open(path, &rec, &err) < 0);
	assert_null(rec);
	assert_int_equal(err.exit_code, SP_EXIT_USAGE);
	assert_int_equal(strncmp(err.text, path, strlen(path)), 0);
}

static char *slurp(const char *path, size_t *len)
{
	FILE *f = fopen(path, "re");
	struct stat st;
	char *buf;

	assert_non_null(f);
	assert_int_equal(fstat(fileno(f), &st), 0);
	buf = malloc((size_t)st.st_size + 1);
	*len = fread(buf, 1, (size_t)st.st_size, f);
	fclose(f);
	return buf;
}

static void spit(const char *path, const char *buf, size_t len)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_int_equal(fwrite(buf, 1, len, f), len);
	fclose(f);
}

static void test_foreign_files(void **state)
{
	struct rig *r = *state;
	char other[128], nowhere[128], fifo[128];
	struct sp_err err = {0};
	struct recording *rec;
	size_t len, len2;
	char *was, *is;
	sqlite3 *db;

	snprintf(other, sizeof(other), "%s/other", r->dir);
	snprintf(nowhere, sizeof(nowhere), "%s/no/where.db", r->dir);
	snprintf(fifo, sizeof(fifo), "%s/fifo", r->dir);
	refused(r, r->dir, "is a directory");
	refused(r, nowhere, "create its folder");
	refused(r, "/dev/null", "special file");
	assert_int_equal(mkfifo(fifo, 0600), 0);
	refused(r, fifo, "special file");
	spit(other, "hello\n", 6);
	refused(r, other, "not a silentpin recording");
	/* somebody's own database is left as it is */
	unlink(other);
	assert_int_equal(sqlite3_open(other, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "CREATE TABLE rooms(a); PRAGMA user_version = 1", NULL,
				      NULL, NULL),
			 SQLITE_OK);
	sqlite3_close(db);
	was = slurp(other, &len);
	refused(r, other, "not a silentpin recording");
	is = slurp(other, &len2);
	assert_int_equal(len, len2);
	assert_memory_equal(was, is, len);
	free(was);
	free(is);
	assert_int_equal(entries(r->dir), 2);
	/* an empty file may become a recording, but is none yet */
	spit(other, "", 0);
	assert_true(rec_open(other, &rec, &err) < 0);
	assert_non_null(strstr(err.text, "is empty"));
	assert_true(rec_open(nowhere, &rec, &err) < 0);
	assert_non_null(strstr(err.text, "no such file"));
}

static void test_other_version(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, true);
	size_t len, len2;
	char *was, *is;
	sqlite3 *db;

	one_life(s, "1", 3, OUTCOME_DONE, START);
	store_close(s, START + SEC);
	assert_int_equal(sqlite3_open(r->path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "PRAGMA user_version = 5", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	was = slurp(r->path, &len);
	refused(r, r->path, "schema version 5");
	is = slurp(r->path, &len2);
	assert_int_equal(len, len2);
	assert_memory_equal(was, is, len);
	free(was);
	free(is);
}

/* Whatever a file holds, reading it ends, with an answer or with one line. */
static void test_damaged(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, true);
	unsigned int seed = 20261129, failed = 0;
	size_t len;
	char *good;

	for (int i = 0; i < 100; i++)
		one_life(s, "1", 10, OUTCOME_FAILED, START + (uint64_t)i * 100);
	store_close(s, START + SEC);
	good = slurp(r->path, &len);
	for (int round = 0; round < 150; round++) {
		char *bad = malloc(len);
		size_t size = round % 5 ? len : 100 + (size_t)rand_r(&seed) % (len - 100);
		struct recording *rec = NULL;
		struct sp_err err = {0};
		struct read_back b = {0};

		memcpy(bad, good, len);
		for (int i = 0; i < 1 << (round % 9); i++)
			bad[100 + (size_t)rand_r(&seed) % (len - 100)] = (char)rand_r(&seed);
		spit(r->path, bad, size);
		free(bad);
		if (rec_open(r->path, &rec, &err) || rec_events(rec, NULL, back_event, &b, &err) ||
		    rec_lives(rec, NULL, 0, 0, back_life, &b, &err)) {
			failed++;
			assert_true(err.text[0] && !strchr(err.text, '\n'));
		}
		rec_close(rec);
		back_free(&b);
	}
	free(good);
	assert_true(failed > 20);
}
int main(void)
{
#define WITH_RIG(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		WITH_RIG(test_killed_writer),        WITH_RIG(test_second_writer),
		WITH_RIG(test_read_only_folder),     WITH_RIG(test_read_only_folder_with_wal),
		WITH_RIG(test_reader_before_writer), WITH_RIG(test_foreign_files),
		WITH_RIG(test_other_version),        WITH_RIG(test_damaged),
		WITH_RIG(test_several_begin_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
