// SPDX-License-Identifier: Apache-2.0
/* `silentpin watch`: attach -> collect -> model -> store and output, in one loop. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/watch.h"
#include "util/caps.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"

#define POLL_MS       10 /* facts: 10 ms of batching costs the target nothing and us 1 % */
#define TICK_NS       (250 * NS_PER_MS)
#define TICK_FRESH_NS (20 * NS_PER_MS) /* a command's libraries appear in its first seconds */
#define FRESH_NS      (10 * NS_PER_SEC)
#define FLUSH_NS      (400 * NS_PER_MS) /* events of open lives are in the file within 1 s */
#define STALL_NS      (1 * NS_PER_SEC)  /* a turn of the loop that took longer is told */
#define STATS_NS      (10 * NS_PER_SEC)

static volatile sig_atomic_t stopped;

static void on_signal(int sig)
{
	stopped = 1;
}

static void on_event(void *ctx, const struct sp_event *ev)
{
	struct watch *w = ctx;

	w->saw_target |= ev->role == ROLE_TARGET && !strcmp(ev->kind, "attached");
	if (ev->role == ROLE_PEER)
		watch_unreadable(w, ev);
	watch_calls_event(w, ev);
	exits_feed(&w->exits, w->model, ev, w->o.min_confidence);
}

static void on_process(void *ctx, const struct sp_rec_hit *rec)
{
	struct watch *w = ctx;

	attach_record(w->attach, rec);
}

static int on_owners(void *ctx, uint32_t pid, uint32_t *owners, int max)
{
	const struct watch *w = ctx;

	return attach_owners(w->attach, pid, owners, max);
}

static bool on_has_probe(void *ctx, uint32_t pid, int probe)
{
	const struct watch *w = ctx;

	return attach_has(w->attach, pid, probe);
}

static void on_alert(void *ctx, const struct model_alert *a)
{
	struct watch *w = ctx;
	char *line;

	if (w->store)
		store_alert(w->store, a);
	watch_python_alert(w->python, a);
	if (!filter_wants(w->filter, a))
		return;
	line = w->o.json ? alert_json(a, &w->env) : alert_text(a, &w->env);
	if (line)
		sink_write(w->out, line);
	free(line);
}

static void on_life_changed(void *ctx, const struct model_life *l)
{
	struct watch *w = ctx;

	if (w->store)
		store_life_changed(w->store, l);
}

static void on_life_ended(void *ctx, const struct model_life *l)
{
	struct watch *w = ctx;

	if (l->outcome == OUTCOME_DONE)
		w->ended_done++;
	else if (l->outcome == OUTCOME_FAILED)
		w->ended_failed++;
	if (w->store)
		store_life_ended(w->store, l);
}

static void on_event_taken(void *ctx, const struct sp_event *ev, const struct model_life *l)
{
	struct watch *w = ctx;

	if (w->store)
		store_event(w->store, ev, l);
}

static bool on_last_poll(void *ctx, uint32_t pid, uint64_t op, uint64_t *ns, uint32_t *tid)
{
	struct watch *w = ctx;
	struct sp_poll p;

	if (!attach_last_poll(w->attach, pid, op, &p))
		return false;
	*ns = p.ns;
	*tid = p.tid;
	return true;
}

static int open_model(struct watch *w, struct sp_err *err)
{
	static const struct model_ops ops = {
		.alert = on_alert,
		.life_changed = on_life_changed,
		.life_ended = on_life_ended,
		.event_taken = on_event_taken,
		.last_poll = on_last_poll,
	};
	struct model_cfg cfg = {
		.profile = w->profile,
		.sees_arrive = !w->o.no_sockets,
		.no_posts = w->o.no_uprobes && !w->o.no_sockets,
	};

	for (int i = 0; i < SP_STAGE_MAX; i++) {
		if (!w->o.stage_ns[i])
			w->o.stage_ns[i] = w->profile->stage_ns[i];
		cfg.stage_ns[i] = w->o.stage_ns[i];
	}
	w->model = model_new(&cfg, &ops, w);
	w->filter = filter_new(w->o.min_confidence, w->o.verbose);
	if (!w->model || !w->filter)
		return sp_err_set(err, SP_EXIT_FAIL, -ENOMEM, "out of memory");
	return 0;
}

/* The command line as it was, for the session table. */
static void join_words(char **argv, int argc, char *buf, size_t len)
{
	size_t n = 0;

	buf[0] = '\0';
	for (int i = 0; i < argc && n < len; i++)
		n += snprintf(buf + n, len - n, "%s%s", i ? " " : "", argv[i]);
}

static int open_store(struct watch *w, const char *options, struct sp_err *err)
{
	struct store_cfg cfg = {
		.path = w->o.output ? w->o.output : "silentpin.db",
		.record_all = w->o.record_all,
		.keep_bytes = w->o.keep_mb << 20,
		.probes = w->probes,
		.profile = w->profile,
		.options = options,
		.min_confidence = w->o.min_confidence,
		.utc_offset_ns = w->env.utc_offset_ns,
		.start_ns = w->start_ns,
		.sees_arrive = !w->o.no_sockets,
		.no_posts = w->o.no_uprobes && !w->o.no_sockets,
	};
	int rc;

	memcpy(cfg.stage_ns, w->o.stage_ns, sizeof(cfg.stage_ns));
	rc = store_open(&cfg, &w->store, err);
	if (!rc) {
		pr_info("recording to %s", cfg.path);
		return 0;
	}
	if (w->o.output || access(".", W_OK) == 0)
		return rc;
	pr_warn("%s: not recording (say -o FILE.db)", err->text);
	memset(err, 0, sizeof(*err));
	return 0;
}

static bool foreign_folder(const char *path)
{
	char folder[4096];
	struct stat st;
	char *slash;

	snprintf(folder, sizeof(folder), "%s", path ? path : "");
	slash = strrchr(folder, '/');
	if (!slash)
		snprintf(folder, sizeof(folder), ".");
	else if (slash == folder)
		folder[1] = '\0';
	else
		*slash = '\0';
	return !stat(folder, &st) && st.st_uid != geteuid();
}

/* A watch that ends before anything could be overdue. */
static void warn_short(const struct watch *w)
{
	uint64_t bootstrap = w->o.stage_ns[STAGE_BOOTSTRAP], sent = w->o.stage_ns[STAGE_INFLIGHT];
	uint64_t ready = w->o.stage_ns[STAGE_READY], shortest;

	/* where operations are not seen, both are one wait (docs/model.md) */
	if (w->o.no_uprobes && w->o.no_python)
		sent = ready = ready ? ready + sent : 0;
	shortest = bootstrap ? bootstrap : UINT64_MAX;
	if (ready && ready < shortest)
		shortest = ready;
	if (sent && sent < shortest)
		shortest = sent;
	if (w->o.for_ns && shortest != UINT64_MAX && w->o.for_ns <= shortest)
		pr_warn("--for %.1f s: no room is told before it has stood still for %.1f s: watch "
			"longer, or say --stuck-after",
			(double)w->o.for_ns / 1e9, (double)shortest / 1e9);
}

static int start(struct watch *w, const char *options, struct sp_err *err)
{
	static const struct collect_ops cops = {
		.event = on_event,
		.process = on_process,
		.owners = on_owners,
		.has_probe = on_has_probe,
	};
	int rc;

	rc = profile_load(w->o.probes, &w->probes, err);
	if (!rc)
		rc = watch_choose_profile(w, err);
	if (!rc)
		rc = watch_choose_sources(w, err);
	if (!rc)
		rc = open_model(w, err);
	if (!rc)
		rc = watch_sources(w, err);
	if (!rc)
		rc = collect_open(w->profile, attach_has_seq(w->attach), &cops, w, &w->collect,
				  err);
	if (rc)
		return rc;
	w->env = (struct alert_env){.profile = w->profile->name,
				    .utc_offset_ns = utc_offset_ns(),
				    .color = !w->o.json && isatty(STDOUT_FILENO) &&
					     !getenv("NO_COLOR")};
	w->start_ns = mono_ns();
	w->out = sink_open(STDOUT_FILENO);
	if (!w->out)
		return sp_err_set(err, SP_EXIT_FAIL, -ENOMEM, "out of memory");
	/* A target that cannot be attached must leave no empty session in the recording; only a
	 * command that the kernel cannot run, although its file is there, does. */
	rc = watch_attach(w, err);
	if (!rc)
		rc = collect_listen(w->collect, attach_ring_fd(w->attach), err);
	if (!rc)
		rc = open_store(w, options, err);
	/* nor may a server run that nobody watches */
	if (!rc && !stopped)
		rc = watch_go(w, err);
	if (rc)
		return rc;
	watch_python_started(w->python);
	if (w->native_err.text[0])
		pr_warn("%s: no probes%s", w->native_err.text,
			watch_python_readers(w->python) ? ": only the server's own view is watched"
							: "");
	warn_short(w);
	rc = caps_keep_needed(attach_backend_used(w->attach) == BACKEND_PERF,
			      foreign_folder(w->o.output));
	if (rc)
		pr_debug("capabilities kept: %s", strerror(-rc));
	return 0;
}

/* Perf uprobes take the kernel so long each to remove (facts of docs/performance.md). */
#define PERF_REMOVAL_S    0.1
#define PERF_WORTH_SAYING 20

static void stop(struct watch *w)
{
	int n = w->attach ? attach_probes(w->attach) : 0;

	if (n > PERF_WORTH_SAYING && attach_backend_used(w->attach) == BACKEND_PERF)
		pr_info("removing %d probes: this kernel takes about %.0f s", n,
			n * PERF_REMOVAL_S);
	attach_close(w->attach);
	collect_close(w->collect);
	watch_python_free(w->python);
	model_free(w->model);
	filter_free(w->filter);
	exits_free(&w->exits);
	sink_close(w->out);
	profile_free(w->probes);
}

/* What went wrong in the store or on stdout since the last time, once. */
static void tell_troubles(struct watch *w, uint64_t now_ns)
{
	struct store_stats st;
	struct sp_event ev;

	if (w->store) {
		store_stats(w->store, &st);
		if (st.failed_flushes > w->store_failures && !w->store_failures)
			pr_warn("recording: %s: watching goes on, the recording may have gaps",
				st.last_error);
		w->store_failures = st.failed_flushes;
		if (st.lost_events > w->store_lost) {
			sp_event_init(&ev);
			ev.ns = now_ns;
			ev.role = ROLE_LOSS;
			ev.code = (int64_t)(st.lost_events - w->store_lost);
			snprintf(ev.kind, sizeof(ev.kind), "store");
			collect_inject(w->collect, &ev);
			w->store_lost = st.lost_events;
		}
	}
	if (sink_dropped(w->out) > w->sink_dropped) {
		if (!w->sink_dropped)
			pr_warn("stdout is blocked or closed: alert lines are dropped, not from "
				"the recording");
		w->sink_dropped = sink_dropped(w->out);
	}
}

static void tell_stall(struct watch *w, uint64_t now_ns)
{
	struct sp_event ev;

	if (w->last_turn_ns && now_ns - w->last_turn_ns > STALL_NS) {
		sp_event_init(&ev);
		ev.ns = w->last_turn_ns;
		ev.role = ROLE_STALL;
		ev.code = (int64_t)(now_ns - w->last_turn_ns);
		snprintf(ev.note, sizeof(ev.note), "the watcher did not run");
		collect_inject(w->collect, &ev);
		pr_warn("the tracer itself did not run for %.1f s", (double)ev.code / 1e9);
	}
	w->last_turn_ns = now_ns;
}

static void tick(struct watch *w, uint64_t now_ns, uint64_t horizon_ns)
{
	bool fresh = w->o.command && now_ns - w->start_ns < FRESH_NS;

	if (now_ns >= w->next_tick_ns) {
		watch_targets(w, now_ns);
		tell_troubles(w, now_ns);
		w->next_tick_ns = now_ns + (fresh ? TICK_FRESH_NS : TICK_NS);
	}
	if (w->store && now_ns >= w->next_flush_ns) {
		store_flush(w->store, horizon_ns);
		w->next_flush_ns = now_ns + FLUSH_NS;
	}
}

static void tell_stats(const struct watch *w)
{
	struct collect_stats cs;
	struct model_stats ms;

	collect_stats(w->collect, &cs);
	model_stats(w->model, &ms);
	pr_debug("%lu records, %lu events, %zu open rooms (%zu KiB), %lu ended; lost %lu, "
		 "unreadable "
		 "%lu, unmatched %lu, broken %lu, late %lu",
		 cs.records, cs.events, ms.open_lives, ms.bytes >> 10, ms.ended, cs.lost,
		 cs.unreadable, cs.unmatched, cs.broken, cs.late);
	watch_python_tell(w->python);
}

/* Before anything is judged by what has come in: what has not? */
static void count_losses(struct watch *w, uint64_t now_ns)
{
	uint64_t counters[SP_C_MAX];

	if (!attach_counters(w->attach, counters))
		collect_counters(w->collect, counters, now_ns);
}

static int loop(struct watch *w)
{
	uint64_t end_ns = w->o.for_ns ? w->start_ns + w->o.for_ns : UINT64_MAX;
	uint64_t next_stats_ns = w->start_ns + STATS_NS;

	while (!stopped) {
		/* whatever is older than this has been handed in once the ring is empty */
		uint64_t now_ns = mono_ns();
		uint64_t horizon_ns = now_ns - COLLECT_SLACK_NS;
		int rc;

		if (now_ns >= end_ns || !watch_has_targets(w))
			break;
		tell_stall(w, now_ns);
		rc = collect_poll(w->collect, POLL_MS);
		if (rc < 0 && rc != -EINTR)
			return rc;
		count_losses(w, mono_ns());
		collect_release(w->collect, horizon_ns);
		model_advance(w->model, horizon_ns);
		watch_python_turn(w->python, mono_ns());
		watch_calls_turn(w, mono_ns());
		tick(w, mono_ns(), horizon_ns);
		if (w->o.verbose && now_ns >= next_stats_ns) {
			tell_stats(w);
			next_stats_ns = now_ns + STATS_NS;
		}
	}
	return 0;
}

/* Everything up to now, then the final state of the rooms. */
static int finish(struct watch *w)
{
	struct model_stats ms;
	char doubt[80] = "";
	uint64_t end_ns;
	size_t stuck, possible;

	watch_python_last(w->python);
	end_ns = mono_ns();

	while (mono_ns() - end_ns < COLLECT_SLACK_NS)
		collect_poll(w->collect, POLL_MS);
	count_losses(w, end_ns);
	collect_finish(w->collect, end_ns);
	collect_release(w->collect, end_ns);
	model_advance(w->model, end_ns);
	model_answer(w->model, 0); /* what no look has answered any more */
	stuck = exits_stuck(&w->exits, w->model, w->o.min_confidence);
	possible =
		model_stuck(w->model, CONF_POSSIBLE) - model_stuck(w->model, w->o.min_confidence);
	if (possible)
		snprintf(doubt, sizeof(doubt), ", %zu more %s (silentpin rooms --stuck)", possible,
			 w->o.min_confidence == CONF_CERTAIN ? "not certain" : "possible");
	tell_troubles(w, end_ns);
	if (w->o.verbose)
		tell_stats(w);
	if (w->store) {
		store_close(w->store, end_ns);
		w->store = NULL;
	}
	model_stats(w->model, &ms);
	watch_calls_tell(w);
	watch_enabled_end(w);
	pr_info("watched %.1f s: %srooms ended: %lu done, %lu failed; %zu open; %zu stuck%s",
		(double)(end_ns - w->start_ns) / 1e9,
		w->saw_target ? "" : "no probe was ever in place; ", w->ended_done, w->ended_failed,
		ms.open_lives, stuck, doubt);
	if (stuck)
		return SP_EXIT_STUCK;
	/* servers were found, and none of them could be watched */
	if (!w->saw_target && (w->refused || (w->native_err.text[0] && w->o.npids)))
		return SP_EXIT_NOATTACH;
	return SP_EXIT_OK;
}

int cmd_watch(int argc, char **argv)
{
	struct sigaction sa = {.sa_handler = on_signal}, was;
	struct watch w = {0};
	struct sp_err err = {0};
	char words[2048];
	int rc;

	join_words(argv, argc, words, sizeof(words));
	rc = watch_options(argc, argv, &w.o);
	if (rc >= 0)
		return rc;
	if (w.o.verbose)
		sp_verbosity = SP_DEBUG;
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	if (!sigaction(SIGHUP, NULL, &was) && was.sa_handler != SIG_IGN) /* nohup goes on */
		sigaction(SIGHUP, &sa, NULL);
	rc = start(&w, words, &err);
	if (rc) {
		rc = cli_fail(&err);
	} else {
		rc = loop(&w);
		if (rc)
			pr_warn("ring buffer: %s", strerror(-rc));
		rc = rc ? SP_EXIT_FAIL : finish(&w);
	}
	if (w.store)
		store_close(w.store, mono_ns());
	stop(&w);
	return rc;
}
