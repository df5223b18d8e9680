// SPDX-License-Identifier: Apache-2.0
/* The recording and space: full disks, limits, bounded memory, --keep-mb. */
#include "store_rig.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

/* ---- no space ------------------------------------------------------------------------------ */

static void limit_files(uint64_t bytes)
{
	struct rlimit rl;

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &rl);
	rl.rlim_cur = bytes ? bytes : rl.rlim_max;
	setrlimit(RLIMIT_FSIZE, &rl);
}

static int readable(const struct rig *r)
{
	struct recording *rec;
	struct sp_err err;

	if (rec_open(r->path, &rec, &err))
		return 1;
	rec_close(rec);
	return 0;
}

static void feed(struct store *s, struct rig_life *x, int *i, int n, const char *note)
{
	while (n--) {
		struct sp_event ev = make_event(ROLE_POST, x->room, START + (uint64_t)*i);

		snprintf(ev.note, sizeof(ev.note), "%s", note);
		ev.chunk = (*i)++;
		x->l.last_ns = ev.ns;
		store_event(s, &ev, &x->l);
	}
}

/* Write until it fails, see that the file is good, take the obstacle away, see that it goes on. */
static int write_through_a_full_disk(const struct rig *r, void (*fill)(const struct rig *r),
				     void (*clear)(const struct rig *r))
{
	struct store_cfg cfg = rig_cfg(r, true);
	struct store_stats st;
	struct sp_err err = {0};
	struct rig_life x;
	struct store *s;
	int i = 0, tries;
	pid_t pid;
	int status;

	sp_verbosity = -1;
	if (store_open(&cfg, &s, &err))
		return 20;
	life_init(&x, "77", 1, START);
	feed(s, &x, &i, 100, "");
	store_flush(s, START + (uint64_t)i);
	if (store_wait(s, 5000))
		return 21;
	fill(r);
	for (tries = 0; tries < 100; tries++) {
		feed(s, &x, &i, 1000, "");
		store_flush(s, START + (uint64_t)i);
		if (store_wait(s, 5000))
			break;
	}
	store_stats(s, &st);
	if (tries == 100 || !st.failed_flushes || !st.last_error[0] || st.lost_events)
		return 22;
	pid = start(readable, r);
	if (waitpid(pid, &status, 0) != pid || status)
		return 23;
	clear(r);
	feed(s, &x, &i, 1000, "");
	for (tries = 0; tries < 100; tries++) { /* it waits a second before it tries again */
		store_flush(s, START + (uint64_t)i);
		if (!store_wait(s, 5000))
			break;
		usleep(50000);
	}
	store_close(s, START + SEC);
	return tries < 100 ? 0 : 24;
}

static void small_files(const struct rig *r)
{
	limit_files(300 << 10);
}

static void large_files(const struct rig *r)
{
	limit_files(0);
}

static int through_rlimit(const struct rig *r)
{
	return write_through_a_full_disk(r, small_files, large_files);
}

static void test_file_size_limit(void **state)
{
	struct rig *r = *state;
	struct read_back b;

	assert_int_equal(in_child(through_rlimit, r), 0);
	b = rig_read(r);
	assert_true(b.nev > 2000 && b.s.complete && b.s.lost_events == 0);
	assert_prefix(&b);
	back_free(&b);
	assert_string_equal(rig_sql(r, "PRAGMA integrity_check"), "ok");
}

static void fill_disk(const struct rig *r)
{
	char path[128], zeros[4096] = {0};
	int fd;

	snprintf(path, sizeof(path), "%s/other", r->dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	while (write(fd, zeros, sizeof(zeros)) > 0)
		;
	close(fd);
}

static void clear_disk(const struct rig *r)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/other", r->dir);
	unlink(path);
}

#define NO_MOUNT 77
static int through_tmpfs(const struct rig *r)
{
	struct read_back b;
	int rc;

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", r->dir, "tmpfs", 0, "size=1m"))
		return NO_MOUNT;
	rc = write_through_a_full_disk(r, fill_disk, clear_disk);
	if (rc)
		return rc;
	b = rig_read(r);
	rc = b.nev > 1100 && b.s.complete ? 0 : 30;
	for (size_t i = 0; i < b.nev; i++)
		if (b.ev[i].chunk != (int)i)
			rc = 31;
	back_free(&b);
	return strcmp(rig_sql(r, "PRAGMA integrity_check"), "ok") ? 32 : rc;
}

/* Where we may not mount, the limit on the size of files above is the same failure. */
static void test_full_tmpfs(void **state)
{
	int rc = in_child(through_tmpfs, *state);

	if (rc == NO_MOUNT)
		skip();
	assert_int_equal(rc, 0);
}

static int start_on_full_disk(const struct rig *r)
{
	struct store_cfg cfg = rig_cfg(r, true);
	struct sp_err err = {0};
	struct store *s;

	limit_files(4096);
	if (!store_open(&cfg, &s, &err))
		return 1;
	return err.exit_code == SP_EXIT_USAGE && !access(r->path, F_OK) ? 2 : err.exit_code;
}

/* What cannot be begun leaves nothing behind. */
static void test_no_space_to_begin(void **state)
{
	struct rig *r = *state;

	assert_int_equal(in_child(start_on_full_disk, r), SP_EXIT_USAGE);
	assert_int_equal(entries(r->dir), 0);
}

/* Far more than the memory it may use, while nothing can be written: the newest is kept. */
static int overflow(const struct rig *r)
{
	char note[64];
	struct store_cfg cfg = rig_cfg(r, true);
	struct store_stats st;
	struct sp_err err = {0};
	struct rig_life x;
	struct store *s;
	int i = 0;

	sp_verbosity = -1;
	memset(note, 'n', sizeof(note) - 1);
	note[sizeof(note) - 1] = '\0';
	if (store_open(&cfg, &s, &err))
		return 20;
	life_init(&x, "77", 1, START);
	limit_files(100 << 10);
	for (int k = 0; k < 100; k++) {
		feed(s, &x, &i, 8000, note);
		if (k % 10 == 0)
			store_flush(s, START + (uint64_t)i);
	}
	store_stats(s, &st);
	if (st.events != 800000 || !st.lost_events || !st.failed_flushes)
		return 21;
	limit_files(0);
	store_close(s, START + SEC);
	return 0;
}

static void test_bounded_memory(void **state)
{
	struct rig *r = *state;
	struct read_back b;

	assert_int_equal(in_child(overflow, r), 0);
	b = rig_read(r);
	assert_true(b.s.lost_events > 1000 && b.s.lost_events < 790000);
	assert_false(b.s.complete);
	assert_true(b.nev >= 100000); /* of what fits into memory, and not less */
	assert_int_equal(b.ev[b.nev - 1].chunk, 799999);
	assert_int_equal(b.nev + b.s.lost_events, 800000);
	back_free(&b);
}

/* ---- --keep-mb ----------------------------------------------------------------------------- */

static uint64_t size_on_disk(const struct rig *r)
{
	char wal[128];
	struct stat a, b;

	snprintf(wal, sizeof(wal), "%s-wal", r->path);
	return (stat(r->path, &a) ? 0 : (uint64_t)a.st_size) +
	       (stat(wal, &b) ? 0 : (uint64_t)b.st_size);
}

static void test_keep_bytes(void **state)
{
	struct rig *r = *state;
	struct store_cfg cfg = rig_cfg(r, true);
	struct rig_life open_life;
	struct read_back b;
	struct sp_err err = {0};
	struct store *s;
	size_t healthy = 0, failed = 0;

	cfg.keep_bytes = 2 << 20;
	assert_int_equal(store_open(&cfg, &s, &err), 0);
	life_init(&open_life, "1", 1, START);
	life_event(s, &open_life, ROLE_ANNOUNCE, START);
	for (int i = 0; i < 8000; i++) {
		char room[16];

		snprintf(room, sizeof(room), "%d", 10 + i);
		one_life(s, room, 10, i % 100 ? OUTCOME_DONE : OUTCOME_FAILED,
			 START + (uint64_t)i * 100);
		if (i % 200 == 199) {
			rig_flush(s, START + (uint64_t)i * 100);
			assert_true(size_on_disk(r) <= cfg.keep_bytes);
		}
	}
	store_close(s, START + SEC);
	assert_true(size_on_disk(r) <= cfg.keep_bytes);
	b = rig_read(r);
	assert_false(b.s.complete);
	for (size_t i = 0; i < b.nlives; i++) {
		healthy += b.life[i].outcome == OUTCOME_DONE;
		failed += b.life[i].outcome == OUTCOME_FAILED && b.life[i].full;
	}
	assert_int_equal(failed, 80); /* every one with its timeline */
	assert_true(healthy > 500 && healthy < 4000);
	assert_string_equal(b.life[0].room, "1");
	assert_string_equal(b.life[b.nlives - 1].room, "8009"); /* the newest are there */
	assert_true(b.nev == 1 + (healthy + failed) * 10);
	back_free(&b);
	assert_string_equal(rig_sql(r, "PRAGMA integrity_check"), "ok");
}

/* Only unhealthy rooms: the oldest lose their timelines, and stay in the list. */
static void test_keep_bytes_unhealthy(void **state)
{
	struct rig *r = *state;
	struct store_cfg cfg = rig_cfg(r, false);
	struct read_back b;
	struct sp_err err = {0};
	struct store *s;

	cfg.keep_bytes = 1 << 20;
	assert_int_equal(store_open(&cfg, &s, &err), 0);
	for (int i = 0; i < 2000; i++) {
		char room[16];

		snprintf(room, sizeof(room), "%d", 10 + i);
		one_life(s, room, 20, OUTCOME_FAILED, START + (uint64_t)i * 100);
		if (i % 100 == 99)
			rig_flush(s, START + (uint64_t)i * 100);
	}
	store_close(s, START + SEC);
	assert_true(size_on_disk(r) <= cfg.keep_bytes);
	b = rig_read(r);
	assert_int_equal(b.nlives, 2000);
	assert_false(b.life[0].full);
	assert_true(b.life[1999].full);
	back_free(&b);
}

/* An earlier session makes room for the next one. */
static void test_keep_bytes_over_sessions(void **state)
{
	struct rig *r = *state;

	for (int session = 0; session < 4; session++) {
		struct store_cfg cfg = rig_cfg(r, true);
		struct sp_err err = {0};
		struct rig_life x;
		struct store *s;
		int i = 0;

		cfg.keep_bytes = 1 << 20;
		assert_int_equal(store_open(&cfg, &s, &err), 0);
		life_init(&x, "77", 1, START); /* left open, as by a kill */
		for (int k = 0; k < 8; k++) {
			feed(s, &x, &i, 1000, "");
			rig_flush(s, START + (uint64_t)i);
		}
		store_close(s, START + SEC);
		assert_true(size_on_disk(r) <= cfg.keep_bytes);
		assert_string_equal(rig_sql(r, "SELECT count(*) FROM events"), "8000");
	}
	assert_string_equal(rig_sql(r, "SELECT count(*) < 32000 FROM event"), "1");
}
int main(void)
{
#define WITH_RIG(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		WITH_RIG(test_file_size_limit),
		WITH_RIG(test_full_tmpfs),
		WITH_RIG(test_no_space_to_begin),
		WITH_RIG(test_bounded_memory),
		WITH_RIG(test_keep_bytes),
		WITH_RIG(test_keep_bytes_unhealthy),
		WITH_RIG(test_keep_bytes_over_sessions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
