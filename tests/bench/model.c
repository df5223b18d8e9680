// SPDX-License-Identifier: Apache-2.0
/*
 * usage: model fill PROBES FILE.db EVENTS     record so many events of healthy rooms, everything
 * kept model memory PROBES ROOMS            hold so many rooms open; say what they take The events
 * are those of target.c, in the model's own form: the same rooms, the same order.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/model.h"
#include "store/store.h"
#include "util/cleanup.h"

#define PROFILE     "rooms"
#define FIRST_ROOM  4611686018427387904u /* large, as the real ones, which are random */
#define START_NS    1000000000000u
#define STEP_NS     10000u /* 100,000 events a second */
#define CONCURRENT  64     /* rooms under way at a time */
#define FLUSH_EVERY 100000
#define WORKERS     8
#define PID         4242

struct bench {
	struct profile_file *probes;
	const struct profile *profile;
	struct model *model;
	struct store *store; /* NULL: memory only */
	uint64_t ns, made;
	int rc;
};

static void on_alert(void *ctx, const struct model_alert *a)
{
	struct bench *b = ctx;

	if (b->store)
		store_alert(b->store, a);
}

static void on_changed(void *ctx, const struct model_life *l)
{
	struct bench *b = ctx;

	if (b->store)
		store_life_changed(b->store, l);
}

static void on_ended(void *ctx, const struct model_life *l)
{
	struct bench *b = ctx;

	if (b->store)
		store_life_ended(b->store, l);
}

static void on_taken(void *ctx, const struct sp_event *ev, const struct model_life *l)
{
	struct bench *b = ctx;

	if (b->store)
		store_event(b->store, ev, l);
}

static void fail(const struct sp_err *err)
{
	fprintf(stderr, "model: %s\n", err->text);
	exit(1);
}

static void open_bench(struct bench *b, const char *probes)
{
	static const struct model_ops ops = {.alert = on_alert,
					     .life_changed = on_changed,
					     .life_ended = on_ended,
					     .event_taken = on_taken};
	struct model_cfg cfg = {0};
	struct sp_err err = {0};

	if (profile_load(probes, &b->probes, &err))
		fail(&err);
	b->profile = profile_by_name(b->probes, PROFILE);
	if (!b->profile) {
		fprintf(stderr, "model: %s has no profile %s\n", probes, PROFILE);
		exit(1);
	}
	cfg.profile = b->profile;
	memcpy(cfg.stage_ns, b->profile->stage_ns, sizeof(cfg.stage_ns));
	b->ns = START_NS;
	b->model = model_new(&cfg, &ops, b);
	if (!b->model)
		exit(1);
}

/* Event number `step` of a room: announced, KV posted, aux posted, both complete. */
enum { ANNOUNCE, POST_KV, POST_AUX, DONE_KV, DONE_AUX, STEPS };
static void event(struct bench *b, uint64_t room, int step)
{
	struct sp_event ev;

	sp_event_init(&ev);
	ev.ns = b->ns += STEP_NS;
	ev.pid = PID;
	ev.tid = PID + 1 + (step == ANNOUNCE ? 0 : (uint32_t)(1 + room % WORKERS));
	ev.probe = (int16_t)(step == ANNOUNCE ? 0 : step <= POST_AUX ? 1 : 2);
	if (step <= POST_AUX)
		snprintf(ev.room, sizeof(ev.room), "%" PRIu64, room);
	switch (step) {
	case ANNOUNCE:
		ev.role = ROLE_ANNOUNCE;
		ev.need = 1;
		snprintf(ev.peer, sizeof(ev.peer), "10.0.0.7:41231");
		break;
	case POST_KV:
	case POST_AUX:
		ev.role = ROLE_POST;
		snprintf(ev.kind, sizeof(ev.kind), step == POST_KV ? "kv" : "aux");
		ev.op = room * 256 + (step == POST_KV ? 0 : 64);
		if (step == POST_KV)
			ev.chunk = 0, ev.last = 1, ev.rank = 0;
		break;
	default:
		ev.role = ROLE_STATUS;
		ev.op = room * 256 + (step == DONE_KV ? 0 : 64);
		ev.code = 0;
		ev.status = OPS_DONE;
	}
	b->rc = model_event(b->model, &ev);
	b->made++;
}

static int fill(struct bench *b, const char *path, uint64_t events)
{
	struct store_cfg cfg = {.path = path,
				.record_all = true,
				.probes = b->probes,
				.profile = b->profile,
				.options = "bench",
				.min_confidence = CONF_LIKELY,
				.start_ns = START_NS};
	struct store_stats st;
	struct sp_err err = {0};

	memcpy(cfg.stage_ns, b->profile->stage_ns, sizeof(cfg.stage_ns));
	if (store_open(&cfg, &b->store, &err))
		fail(&err);
	/* rooms overlap: each group goes through its steps together */
	for (uint64_t first = FIRST_ROOM; b->made < events && !b->rc; first += CONCURRENT) {
		for (int step = 0; step < STEPS; step++)
			for (uint64_t r = 0; r < CONCURRENT; r++)
				event(b, first + r, step);
		if (b->made % FLUSH_EVERY < CONCURRENT * STEPS) {
			store_flush(b->store, b->ns);
			b->rc = store_wait(b->store, 60000);
		}
	}
	model_advance(b->model, b->ns);
	store_stats(b->store, &st);
	store_close(b->store, b->ns);
	b->store = NULL;
	printf("%" PRIu64 "\n", b->made);
	return b->rc || st.lost_events ? -1 : 0;
}

static long rss_bytes(void)
{
	__fclose FILE *f = fopen("/proc/self/statm", "re");
	long size, rss;

	if (!f || fscanf(f, "%ld %ld", &size, &rss) != 2)
		return -1;
	return rss * sysconf(_SC_PAGESIZE);
}

static int memory(struct bench *b, uint64_t rooms)
{
	struct model_stats st;
	long before = rss_bytes();

	for (uint64_t r = 0; r < rooms && !b->rc; r++)
		for (int step = ANNOUNCE; step <= POST_KV; step++)
			event(b, FIRST_ROOM + r, step);
	model_stats(b->model, &st);
	printf("%zu %zu %ld\n", st.open_lives, st.bytes, rss_bytes() - before);
	return b->rc || st.open_lives != rooms ? -1 : 0;
}

int main(int argc, char **argv)
{
	struct bench b = {0};
	int rc;

	if (argc < 4 || (strcmp(argv[1], "fill") && strcmp(argv[1], "memory"))) {
		fprintf(stderr, "usage: model fill PROBES FILE.db EVENTS | memory PROBES ROOMS\n");
		return 2;
	}
	open_bench(&b, argv[2]);
	if (!strcmp(argv[1], "fill"))
		rc = fill(&b, argv[3], strtoull(argc > 4 ? argv[4] : "1000000", NULL, 10));
	else
		rc = memory(&b, strtoull(argv[3], NULL, 10));
	model_free(b.model);
	profile_free(b.probes);
	return rc ? 1 : 0;
}
