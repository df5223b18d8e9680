// SPDX-License-Identifier: Apache-2.0
/*
 * Snapshots of memory recorded from CPython 3.10 to 3.13 (tests/unit/data/record.py): they
 * say what the recorded server said of itself; what a profile declares and the server has not is
 * told; what changes while it is read is not believed.
 *
 * With --record PID FILE this program writes such an image.
 */
#include "py_server.h"

/* ---- values ------------------------------------------------------------------------------------
 */

static void every_form(void **state)
{
	struct profile_file *pf = server_profile(server_yaml);
	const struct profile *p = &pf->profiles[0];

	for (size_t i = 0; i < ARRAY_SIZE(minors); i++) {
		struct py_runtime rt;
		struct pymem *m = server_load(minors[i], &rt);
		__free char *want = expected(minors[i]);
		struct pyreader *r;
		struct pyreader_stats stats;

		assert_int_equal(pyreader_at(m, minors[i], rt.addr, p, &r), 0);
		for (int k = 0; k < 3; k++) { /* with nothing known, then with positions known */
			__free char *got = NULL;
			struct py_snapshot s;

			assert_int_equal(pyreader_snapshot(r, &s), 0);
			assert_true(s.stable);
			assert_true(s.complete);
			assert_string_equal(s.missing, "");
			assert_int_equal(s.unstable, 0);
			assert_true(s.has_status && s.has_announced && s.has_backlog);
			got = text_of(&s, p->python);
			assert_string_equal(got, want);
			py_snapshot_free(&s);
		}
		pyreader_stats(r, &stats);
		assert_int_equal(stats.snapshots, 3);
		assert_int_equal(stats.unstable + stats.failed, 0);
		assert_true(stats.bytes > 0 && stats.ns >= stats.max_ns);
		pyreader_close(r);
		pymem_close(m);
	}
	profile_free(pf);
}

/* ---- what the server has not --------------------------------------------------------------------
 */

/* The profile with one of its lines replaced. */
static struct profile_file *variant(const char *line, const char *by)
{
	char yaml[sizeof(server_yaml) + 512];
	const char *at = strstr(server_yaml, line);

	assert_non_null(at);
	snprintf(yaml, sizeof(yaml), "%.*s%s%s", (int)(at - server_yaml), server_yaml, by,
		 at + strlen(line));
	return server_profile(yaml);
}

static const struct {
	const char *line, *by, *missing;
} absent[] = {
	{"self.bootstrap.queue[*]", "self.bootstrap.quieu[*]",
	 "self.absent.queue[*] -> "
	 "{room: bootstrap_room}"},
	{"self.inflight[*]", "self.bootstrap[*]", "self.no_queue[*] -> {room: bootstrap_room}"},
	{"self.waiting_queue[*] -> {room: bootstrap_room, rid: rid}",
	 "self.waiting_queue[*] -> {room: bootstrap_room, rid: request_id}",
	 "self.waiting_queue[*] -> {room: room, rid: rid}"},
	{"request_status{} -> {room: key, status: value}",
	 "transfer_infos{} -> {room: key, status: value}",
	 "self.bootstrap.kv_manager.request_status{} -> {room: key, status: value.value}"},
};

static const struct {
	const char *line, *by;
} rootless[] = {
	{"type: Scheduler", "type: BootstrapQueue"},
	{"{frame: \"*.event_loop\", type: Scheduler}", "{frame: event_lop, type: Scheduler}"},
	{"type: Scheduler", "local: nothing"},
};

static void missing(void **state)
{
	for (size_t c = 0; c < ARRAY_SIZE(absent); c++) {
		struct profile_file *pf = variant(absent[c].line, absent[c].by);

		for (size_t i = 0; i < ARRAY_SIZE(minors); i++) {
			struct py_runtime rt;
			struct pymem *m = server_load(minors[i], &rt);
			struct pyreader *r;
			struct py_snapshot s;

			assert_int_equal(pyreader_at(m, minors[i], rt.addr, &pf->profiles[0], &r),
					 0);
			assert_int_equal(pyreader_snapshot(r, &s), 0);
			assert_false(s.complete);
			assert_string_equal(s.missing, absent[c].missing);
			py_snapshot_free(&s);
			pyreader_close(r);
			pymem_close(m);
		}
		profile_free(pf);
	}
}

#define QUEUES "      queues:\n"
#define SECOND QUEUES "        waiting-2?: "

/* A queue that is not in every version: with nothing in it, and that is all. What is there and
 * cannot be read, or was there, is missing. */
static void optional(void **state)
{
	static const struct {
		const char *by;
		bool complete;
	} rows[] = {
		{SECOND "\"self.absent.queue[*] -> {room: bootstrap_room}\"\n", true},
		{SECOND "\"self.waiting_queue[*] -> {room: room, rid: rid}\"\n", false},
	};

	for (size_t c = 0; c < ARRAY_SIZE(rows); c++) {
		struct profile_file *pf = variant(QUEUES, rows[c].by);
		struct py_runtime rt;
		struct pymem *m = server_load(12, &rt);
		struct pyreader *r;
		struct py_snapshot s;

		assert_int_equal(pyreader_at(m, 12, rt.addr, &pf->profiles[0], &r), 0);
		assert_int_equal(pyreader_snapshot(r, &s), 0);
		assert_true(s.stable);
		assert_int_equal(s.complete, rows[c].complete);
		assert_int_equal(s.missing[0] == '\0', rows[c].complete);
		assert_int_equal(s.queue_absent[0], rows[c].complete);
		assert_int_equal(s.queue_found[0], 0);
		assert_int_equal(s.queue_found[1], 1);
		assert_true(s.nrequest > 10);
		py_snapshot_free(&s);

		r->queue_ever[0] = true;
		assert_int_equal(pyreader_snapshot(r, &s), 0);
		assert_false(s.complete);
		assert_false(s.queue_absent[0]);
		py_snapshot_free(&s);
		pyreader_close(r);
		pymem_close(m);
		profile_free(pf);
	}
}

static void no_root(void **state)
{
	for (size_t c = 0; c < ARRAY_SIZE(rootless); c++) {
		struct profile_file *pf = variant(rootless[c].line, rootless[c].by);
		struct py_runtime rt;
		struct pymem *m = server_load(12, &rt);
		struct pyreader *r;

		assert_int_equal(pyreader_at(m, 12, rt.addr, &pf->profiles[0], &r), -ENOENT);
		assert_null(r);
		pymem_close(m);
		profile_free(pf);
	}
}

/* ---- recording ---------------------------------------------------------------------------------
 */

struct piece {
	uint64_t addr, end;
};
struct recorder {
	struct pymem mem;
	struct pymem *live;
	struct piece *piece;
	size_t n;
};

/* Whole pages are not recorded: the reader then takes what it needs one by one. */
static int record_readv(void *ctx, struct pymem_span *span, size_t n)
{
	struct recorder *r = ctx;
	int err = pymem_readv(r->live, span, n);

	r->piece = realloc(r->piece, (r->n + n) * sizeof(*r->piece));
	if (!r->piece)
		abort();
	for (size_t i = 0; i < n && !err; i++) {
		if (!span[i].rc && span[i].len >= 4096 && !(span[i].addr & 4095))
			span[i].rc = -EFAULT;
		if (!span[i].rc && span[i].len)
			r->piece[r->n++] = (struct piece){span[i].addr, span[i].addr + span[i].len};
	}
	return err;
}

static int by_addr(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Neighbours joined, and read anew: the server stands still. */
static int write_image(struct recorder *r, const struct py_runtime *rt, const char *path)
{
	__fclose FILE *f = fopen(path, "we");
	struct piece_head h = {rt->addr, rt->lay.minor};

	if (!f || fwrite(&h, sizeof(h), 1, f) != 1)
		return 1;
	qsort(r->piece, r->n, sizeof(*r->piece), by_addr);
	for (size_t i = 0, next; i < r->n; i = next) {
		uint64_t end = r->piece[i].end;
		uint8_t bytes[UINT16_MAX];

		for (next = i + 1; next < r->n && r->piece[next].addr <= end; next++)
			end = r->piece[next].end > end ? r->piece[next].end : end;
		if (end - r->piece[i].addr > sizeof(bytes))
			return 1;
		h = (struct piece_head){r->piece[i].addr, end - r->piece[i].addr};
		if (pymem_read(r->live, h.addr, bytes, h.len) || fwrite(&h, sizeof(h), 1, f) != 1 ||
		    fwrite(bytes, 1, h.len, f) != h.len)
			return 1;
	}
	return 0;
}

/* What a reader with this profile reads, from nothing known on, and with positions known. */
static int record_one(struct recorder *rec, const struct py_runtime *rt, struct profile_file *pf)
{
	struct py_snapshot s;
	struct pyreader *r;
	int rc = pyreader_at(&rec->mem, rt->lay.minor, rt->addr, &pf->profiles[0], &r);

	for (int i = 0; i < 4 && !rc; i++) { /* as often as it finds shorter ways */
		rc = pyreader_snapshot(r, &s);
		py_snapshot_free(&s);
	}
	if (!rc) {
		uint64_t list, first = word_at(r, inflight(r, &list));
		enum py_type type;
		char name[PY_NAME_MAX];

		rc = py_type_of(&r->rt, first, &type, name, sizeof(name));
		pyreader_close(r);
	}
	profile_free(pf);
	return rc;
}

static int record(pid_t pid, const char *path)
{
	struct recorder rec = {.mem = {.readv = record_readv}};
	struct py_runtime rt;
	struct sp_err err = {0};
	int rc = pymem_open(pid, &rec.live, &err);

	rec.mem.ctx = &rec;
	if (!rc) {
		pymem_budget(rec.live, UINT64_MAX, UINT64_MAX);
		rc = py_locate(pid, rec.live, &rt, &err);
	}
	if (rc) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	pymem_budget(rec.live, UINT64_MAX, UINT64_MAX);
	rc = record_one(&rec, &rt, server_profile(server_yaml));
	for (size_t i = 0; i < ARRAY_SIZE(absent) && !rc; i++)
		rc = record_one(&rec, &rt, variant(absent[i].line, absent[i].by));
	for (size_t i = 0; i < ARRAY_SIZE(rootless) && !rc; i++) {
		rc = record_one(&rec, &rt, variant(rootless[i].line, rootless[i].by));
		rc = rc == -ENOENT ? 0 : -EEXIST;
	}
	if (!rc)
		rc = write_image(&rec, &rt, path);
	pymem_close(rec.live);
	free(rec.piece);
	if (rc)
		fprintf(stderr, "%s: %d\n", path, rc);
	return rc ? 1 : 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form),
		cmocka_unit_test(missing),
		cmocka_unit_test(optional),
		cmocka_unit_test(no_root),
	};

	if (argc == 4 && !strcmp(argv[1], "--record"))
		return record((pid_t)strtol(argv[2], NULL, 10), argv[3]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
