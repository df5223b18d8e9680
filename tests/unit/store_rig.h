/* SPDX-License-Identifier: Apache-2.0 */
/* A recording on a table: a folder of its own, lives built by hand, what was read back in lists. */
#ifndef STORE_RIG_H
#define STORE_RIG_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <sqlite3.h>

#include "store/store.h"
#include "util/log.h"

#define START 5000000000000ull /* 5000 s after boot */
#define MS    1000000ull
#define SEC   1000000000ull

static struct profile_probe rig_probes[2] = {{.name = (char *)"xfer_create"},
					     {.name = (char *)"zmq_recv"}};
static struct profile rig_profile = {
	.name = (char *)"rig", .room_u64 = true, .probes = rig_probes, .nprobes = 2};
static struct profile_file rig_file = {.path = (char *)"probes.yaml",
				       .text = (char *)"version: 1\n# \"quoted\" 'text'\n",
				       .profiles = &rig_profile,
				       .nprofiles = 1};

struct rig {
	char dir[64], path[96];
};

static int rig_setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	snprintf(r->dir, sizeof(r->dir), "/tmp/sp-store-XXXXXX");
	if (!mkdtemp(r->dir))
		return -1;
	snprintf(r->path, sizeof(r->path), "%s/r.db", r->dir);
	*state = r;
	return 0;
}

static int rig_teardown(void **state)
{
	struct rig *r = *state;
	static const char *const names[] = {"r.db",  "r.db-wal", "r.db-shm", "r.db-journal",
					    "other", "fifo",     "copy.db",  "copy.db-wal"};
	char path[128];

	chmod(r->dir, 0700);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", r->dir, names[i]);
		unlink(path);
	}
	rmdir(r->dir);
	free(r);
	return 0;
}

static struct store_cfg rig_cfg(const struct rig *r, bool all)
{
	return (struct store_cfg){
		.path = r->path,
		.record_all = all,
		.probes = &rig_file,
		.profile = &rig_profile,
		.options = "watch -p 1",
		.stage_ns = {0, 330 * SEC, 300 * SEC, 30 * SEC, 10 * SEC},
		.min_confidence = CONF_LIKELY,
		.utc_offset_ns = 1700000000000000000,
		.start_ns = START,
	};
}

static inline struct store *rig_store(const struct rig *r, bool all)
{
	struct store_cfg cfg = rig_cfg(r, all);
	struct sp_err err = {0};
	struct store *s = NULL;

	if (store_open(&cfg, &s, &err))
		fail_msg("%s", err.text);
	return s;
}

static inline void rig_flush(struct store *s, uint64_t now_ns)
{
	store_flush(s, now_ns);
	assert_int_equal(store_wait(s, 10000), 0);
}

/* A life with everything that the snapshot points to. */
struct rig_life {
	struct model_life l;
	struct model_verdict v;
	char room[SP_ROOM_MAX];
	void *user;
};

static void life_init(struct rig_life *x, const char *room, uint32_t number, uint64_t ns)
{
	memset(x, 0, sizeof(*x));
	snprintf(x->room, sizeof(x->room), "%s", room);
	x->v.pin = -1;
	x->l = (struct model_life){
		.pid = 4242,
		.life = number,
		.room = x->room,
		.stage = STAGE_BOOTSTRAP,
		.opened_ns = ns,
		.progress_ns = ns,
		.last_ns = ns,
		.rid = "",
		.peer = "",
		.verdict = &x->v,
		.user = &x->user,
	};
}

static struct sp_event make_event(enum sp_role role, const char *room, uint64_t ns)
{
	struct sp_event ev;

	sp_event_init(&ev);
	ev.ns = ns;
	ev.pid = 4242;
	ev.tid = 4250;
	ev.role = role;
	ev.probe = 0;
	snprintf(ev.room, sizeof(ev.room), "%s", room);
	return ev;
}

static inline void life_event(struct store *s, struct rig_life *x, enum sp_role role, uint64_t ns)
{
	struct sp_event ev = make_event(role, x->room, ns);

	x->l.last_ns = x->l.progress_ns = ns;
	store_event(s, &ev, &x->l);
	store_life_changed(s, &x->l);
}

static inline void life_over(struct store *s, struct rig_life *x, enum sp_outcome outcome,
			     uint64_t ns)
{
	x->l.ended_ns = x->l.last_ns = ns;
	x->l.outcome = outcome;
	x->l.stage = STAGE_ENDED;
	store_life_ended(s, &x->l);
	assert_null(x->user);
}

static inline void stuck_verdict(struct model_verdict *v)
{
	*v = (struct model_verdict){
		.cause = CAUSE_QUEUED_BEHIND,
		.confidence = CONF_LIKELY,
		.pin = 1,
		.decisive_ns = START + 7,
		.culprit = {.set = true, .pid = 9, .tid = 10, .life = 2},
		.nevidence = 2,
	};
	snprintf(v->last, sizeof(v->last), "post kv chunk 2 last");
	snprintf(v->expected, sizeof(v->expected), "status \xff");
	snprintf(v->culprit.room, sizeof(v->culprit.room), "9223372036854775806");
	snprintf(v->culprit.state, sizeof(v->culprit.state), "op 0x7f00 in progress for 31.2 s");
	snprintf(v->evidence[0].text, VERDICT_TEXT_MAX, "for \"it\"");
	v->evidence[1].against = true;
	memset(v->evidence[1].text, 'x', VERDICT_TEXT_MAX - 1);
}

/* A whole life of n events. */
static inline void one_life(struct store *s, const char *room, int n, enum sp_outcome outcome,
			    uint64_t ns)
{
	struct rig_life x;

	life_init(&x, room, 1, ns);
	for (int i = 0; i < n; i++)
		life_event(s, &x, i ? ROLE_POST : ROLE_ANNOUNCE, ns + (uint64_t)i);
	life_over(s, &x, outcome, ns + (uint64_t)n);
}

/* ---- reading back -------------------------------------------------------------------------- */

struct read_back {
	struct sp_event *ev;
	uint32_t *life_no;
	size_t nev;
	struct rec_life *life;
	size_t nlives;
	struct rec_alert *alert;
	size_t nalerts;
	struct rec_session s;
};

/* Room for one more after n. */
static inline void *grown(void *p, size_t n, size_t size)
{
	return n & (n - 1) ? p : realloc(p, (n ? n * 2 : 1) * size);
}

static inline bool back_event(void *ctx, const struct sp_event *ev, uint32_t life_no)
{
	struct read_back *b = ctx;

	b->ev = grown(b->ev, b->nev, sizeof(*b->ev));
	b->life_no = grown(b->life_no, b->nev, sizeof(*b->life_no));
	b->ev[b->nev] = *ev;
	b->life_no[b->nev++] = life_no;
	return true;
}

static inline bool back_life(void *ctx, const struct rec_life *l)
{
	struct read_back *b = ctx;

	b->life = grown(b->life, b->nlives, sizeof(*b->life));
	b->life[b->nlives++] = *l;
	return true;
}

static inline bool back_alert(void *ctx, const struct rec_alert *a)
{
	struct read_back *b = ctx;

	b->alert = grown(b->alert, b->nalerts, sizeof(*b->alert));
	b->alert[b->nalerts++] = *a;
	return true;
}

static inline struct recording *rig_open(const struct rig *r)
{
	struct recording *rec = NULL;
	struct sp_err err = {0};

	if (rec_open(r->path, &rec, &err))
		fail_msg("%s", err.text);
	return rec;
}

static inline struct read_back rig_read(const struct rig *r)
{
	struct recording *rec = rig_open(r);
	struct read_back b = {0};
	struct sp_err err = {0};

	if (rec_events(rec, NULL, back_event, &b, &err) ||
	    rec_lives(rec, NULL, 0, 0, back_life, &b, &err) ||
	    rec_alerts(rec, NULL, back_alert, &b, &err))
		fail_msg("%s", err.text);
	b.s = *rec_session(rec);
	b.s.probes_text = b.s.probes_path = b.s.options = NULL;
	rec_close(rec);
	return b;
}

static inline void back_free(struct read_back *b)
{
	free(b->ev);
	free(b->life_no);
	free(b->life);
	free(b->alert);
}

/* The first column of the first row, as text; "" when there is none. */
static inline const char *rig_sql(const struct rig *r, const char *sql)
{
	static char text[4096];
	sqlite3_stmt *st;
	sqlite3 *db;

	text[0] = '\0';
	assert_int_equal(sqlite3_open_v2(r->path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	if (sqlite3_prepare_v2(db, sql, -1, &st, NULL))
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	if (sqlite3_step(st) == SQLITE_ROW && sqlite3_column_text(st, 0))
		snprintf(text, sizeof(text), "%s", (const char *)sqlite3_column_text(st, 0));
	sqlite3_finalize(st);
	sqlite3_close(db);
	return text;
}

/* Run fn in a child process; its exit code, or -signal. fn must not use cmocka's asserts. */
static inline int in_child(int (*fn)(const struct rig *r), const struct rig *r)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(fn(r));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static inline pid_t start(int (*fn)(const struct rig *r), const struct rig *r)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(fn(r));
	return pid;
}

/* A recording ends between two transactions: its events are the first n, none is missing. */
static inline void assert_prefix(const struct read_back *b)
{
	for (size_t i = 0; i < b->nev; i++)
		assert_int_equal(b->ev[i].chunk, i);
}

static inline int entries(const char *dir)
{
	DIR *d = opendir(dir);
	int n = 0;

	if (!d)
		return -1;
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2; /* . and .. */
}

#endif
