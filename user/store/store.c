// SPDX-License-Identifier: Apache-2.0
/*
 * The store as its callers see it: events and lives are collected in a batch (front) by the
 * caller's thread; a flush hands the batch (then: back) to the writer thread, which alone does I/O.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "store/buffer.h"
#include "store/store.h"
#include "store/writer.h"
#include "util/clock.h"
#include "util/log.h"

/* Each of the two batches: a second of 500,000 events, or minutes of a usual load. */
#define BATCH_BYTES (48u << 20)
#define RETRY_NS    (1 * NS_PER_SEC) /* after a failure */
#define PROGRESS_NS                                                                                \
	(1 * NS_PER_SEC) /* how often to write the model's time when nothing happens               \
			  */
#define CLOSE_WAIT_S 10

struct store {
	bool record_all;
	struct batch *front;
	struct life_ref *open; /* of all open lives */
	struct ended_lives *ended;
	struct loose loose;
	uint64_t clock_ns; /* how far the model has come, as far as is known here */
	uint64_t next_seq, next_life, next_alert;
	uint64_t events, lost, handed_ns /* model time of the last batch */;

	/* shared with the writer thread, under lock */
	pthread_mutex_t lock;
	pthread_cond_t cond;
	struct batch *back; /* NULL: all is written */
	bool busy;          /* the writer is at work on back */
	bool stop;
	int last_rc;
	uint64_t retry_ns, failed, bytes;
	char last_error[160];

	pthread_t thread;
	bool started;
	struct writer w; /* the writer thread's */
};

int store_open(const struct store_cfg *cfg, struct store **out, struct sp_err *err)
{
	struct store *s = calloc(1, sizeof(*s));
	pthread_condattr_t attr;
	int rc;

	*out = NULL;
	if (!s)
		return sp_err_set(err, SP_EXIT_FAIL, -ENOMEM, "out of memory");
	rc = writer_open(cfg, &s->w, err);
	if (rc) {
		free(s);
		return rc;
	}
	s->record_all = cfg->record_all;
	loose_init(&s->loose, cfg->stage_ns);
	s->next_seq = s->w.first_seq;
	s->next_life = s->w.first_life;
	s->next_alert = s->w.first_alert;
	s->handed_ns = cfg->start_ns;
	s->front = batch_new(s->next_seq);
	if (!s->front) {
		writer_close(&s->w);
		free(s);
		return sp_err_set(err, SP_EXIT_FAIL, -ENOMEM, "out of memory");
	}
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->cond, &attr);
	pthread_condattr_destroy(&attr);
	*out = s;
	return 0;
}

/* ---- the writer thread -------------------------------------------------------------------- */

/* Write back. Called with the lock held, which is dropped meanwhile. */
static void write_back(struct store *s)
{
	int rc;

	s->busy = true;
	pthread_mutex_unlock(&s->lock);
	rc = writer_apply(&s->w, s->back);
	if (!rc) {
		int later = writer_maintain(&s->w);

		batch_free(s->back);
		pthread_mutex_lock(&s->lock);
		s->back = NULL;
		rc = later;
	} else {
		pthread_mutex_lock(&s->lock);
	}
	s->busy = false;
	s->last_rc = rc;
	s->bytes = s->w.bytes;
	if (rc) {
		s->failed++;
		s->retry_ns = mono_ns() + RETRY_NS;
		memcpy(s->last_error, s->w.error, sizeof(s->last_error));
	}
	pthread_cond_broadcast(&s->cond);
}

static void *writer_main(void *arg)
{
	struct store *s = arg;

	pthread_mutex_lock(&s->lock);
	for (;;) {
		while (!s->stop && !s->busy)
			pthread_cond_wait(&s->cond, &s->lock);
		if (s->busy)
			write_back(s);
		else
			break;
	}
	pthread_mutex_unlock(&s->lock);
	writer_close(&s->w);
	return NULL;
}

/* Not before the first batch: a thread keeps the capabilities that its creator gives up later. */
static void start_thread(struct store *s)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	s->started = !pthread_create(&s->thread, NULL, writer_main, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* Let back be written: by the thread, or here where none can be had. Lock held. */
static void kick(struct store *s)
{
	if (!s->started)
		start_thread(s);
	if (!s->started) {
		write_back(s);
		return;
	}
	s->busy = true;
	pthread_cond_broadcast(&s->cond);
}

/* front becomes back. Lock held, no back. */
static bool hand_over(struct store *s)
{
	struct batch *fresh = batch_new(s->next_seq);

	if (!fresh)
		return false;
	for (struct life_row *l = s->front->lives; l; l = l->next) {
		if (l->ref)
			l->ref->pending = NULL;
		l->ref = NULL;
	}
	s->front->lost = s->lost;
	s->front->model_ns = s->clock_ns;
	s->handed_ns = s->clock_ns;
	s->back = s->front;
	s->front = fresh;
	return true;
}

/* ---- the caller's thread ------------------------------------------------------------------ */

/* front is full: hand it over early; or give up the oldest of what cannot be written. */
static void relieve(struct store *s)
{
	pthread_mutex_lock(&s->lock);
	if (s->back && !s->busy) {
		/* it has failed, and waits: its events are the oldest */
		for (size_t i = s->back->head; i < s->back->n; i++)
			s->lost += s->back->ev[i] != NULL;
		batch_take_rows(s->front, s->back);
		s->back = NULL;
	}
	if (!s->back && mono_ns() >= s->retry_ns && hand_over(s))
		kick(s);
	pthread_mutex_unlock(&s->lock);
	if (s->front->bytes > BATCH_BYTES)
		s->lost += batch_trim(s->front, BATCH_BYTES - BATCH_BYTES / 8);
}

static struct life_ref *ref_of(struct store *s, const struct model_life *l)
{
	struct life_ref *ref = *l->user;

	if (ref)
		return ref;
	ref = calloc(1, sizeof(*ref));
	if (!ref)
		return NULL;
	if (!ended_take(&s->ended, ref, l))
		ref->row = s->next_life++;
	DL_APPEND(s->open, ref);
	*l->user = ref;
	return ref;
}

static void forget(struct store *s, struct life_ref *ref)
{
	DL_DELETE(s->open, ref);
	seqs_free(&ref->seqs);
	free(ref);
}

/* The life's row in the front batch, as of now. NULL: out of memory. */
static struct life_row *snapshot(struct store *s, struct life_ref *ref, const struct model_life *l)
{
	struct life_row *row = ref->pending;

	if (!row) {
		row = batch_life(s->front);
		if (!row)
			return NULL;
		ref->pending = row;
		row->ref = ref;
		row->row = ref->row;
		row->kept = true;
	}
	life_row_fill(row, ref, l);
	return row;
}

void store_event(struct store *s, const struct sp_event *ev, const struct model_life *given)
{
	bool place = !s->record_all && loose_place(ev, given);
	const struct model_life *l = place ? NULL : given;
	struct life_ref *ref = l ? ref_of(s, l) : NULL;
	const char *room = ev->room;
	uint64_t seq, spare;

	s->events++;
	/* an event that comes late is taken at the model's time: so must a replay */
	if (ev->ns > s->clock_ns)
		s->clock_ns = ev->ns;
	if (given && given->last_ns > s->clock_ns)
		s->clock_ns = given->last_ns;
	if (!l && !s->record_all && !loose_wanted(ev) && !loose_op_wanted(&s->loose, ev))
		return;
	if (s->front->bytes > BATCH_BYTES)
		relieve(s);
	if ((l && !ref) || !batch_event(s->front, ev, s->clock_ns, ref ? ref->row : 0,
					l && !strcmp(room, l->room) ? "" : room)) {
		s->lost++;
		return;
	}
	seq = s->next_seq++;
	spare = s->record_all ? 0 : loose_note(&s->loose, ev, s->clock_ns, place ? seq : 0);
	if (spare)
		batch_unwant(s->front, spare);
	if (!s->record_all)
		loose_op_note(&s->loose, ev, s->clock_ns, seq, l != NULL);
	if (!ref)
		return;
	if (!ref->again)
		seqs_add(&ref->seqs, seq);
	else if (!ref->seqs.first)
		ref->seqs.first = seq;
	ref->seqs.last = seq;
	ref->events++;
	snapshot(s, ref, l);
}

void store_life_changed(struct store *s, const struct model_life *l)
{
	struct life_ref *ref = ref_of(s, l);

	if (!ref || !snapshot(s, ref, l))
		s->lost++;
}

void store_life_ended(struct store *s, const struct model_life *l)
{
	struct life_ref *ref = ref_of(s, l);
	struct life_row *row = ref ? snapshot(s, ref, l) : NULL;
	/* without an outcome: another process's, as far as is known */
	bool well = l->outcome == OUTCOME_DONE || l->outcome == OUTCOME_NONE;
	bool healthy = well && !l->ever_stuck && !l->uncertain;
	bool drop = ref && healthy && !s->record_all && !ref->again;
	uint32_t at = 0;
	uint64_t seq = 0;

	if (!ref)
		return;
	if (drop) {
		while (seqs_next(&ref->seqs, &at, &seq))
			batch_unwant(s->front, seq);
		if (row) {
			row->kept = false;
			row->first_seq = row->last_seq = 0;
		}
	}
	if (row)
		row->ref = NULL;
	else
		s->lost++;
	ended_add(&s->ended, ref, l, s->clock_ns, !drop);
	forget(s, ref);
	*l->user = NULL;
}

void store_alert(struct store *s, const struct model_alert *a)
{
	struct alert_row *row;

	if (a->type == ALERT_ENDED)
		return; /* the life's row says it */
	if (a->type == ALERT_STUCK)
		loose_op_verdict(&s->loose, s->clock_ns);
	row = batch_alert(s->front);
	if (!row) {
		s->lost++;
		return;
	}
	row->id = s->next_alert++;
	alert_row_fill(row, a);
}

void store_stack(struct store *s, const struct model_life *l, uint64_t ns, uint32_t pid,
		 uint32_t tid, const char *name, char *const *line, int nlines)
{
	/* an ended life has no place for it */
	struct life_ref *ref = *l->user || !l->ended_ns ? ref_of(s, l) : NULL;
	struct stack_row *row;
	char *frames;

	if (!ref || ns < ref->stacks_ns)
		return;
	if (ns > ref->stacks_ns)
		ref->nstacks = 0;
	if (ref->nstacks >= STACKS_MAX)
		return;
	frames = stack_frames(line, nlines);
	row = frames ? batch_stack(s->front, frames) : NULL;
	free(frames);
	if (!row) {
		s->lost++;
		return;
	}
	ref->stacks_ns = ns;
	row->life = ref->row;
	row->ns = ns;
	row->pid = pid;
	row->tid = tid;
	row->n = ref->nstacks++;
	snprintf(row->name, sizeof(row->name), "%s", name);
	snapshot(s, ref, l);
}

int store_flush(struct store *s, uint64_t now_ns)
{
	int rc;

	if (now_ns > s->clock_ns)
		s->clock_ns = now_ns;
	loose_ops_expire(&s->loose, s->clock_ns, s->front);
	pthread_mutex_lock(&s->lock);
	if (!s->back && (!batch_empty(s->front) || s->clock_ns >= s->handed_ns + PROGRESS_NS))
		hand_over(s);
	if (s->back && !s->busy && mono_ns() >= s->retry_ns)
		kick(s);
	rc = s->last_rc;
	pthread_mutex_unlock(&s->lock);
	return rc;
}

/* Until the writer is idle. Lock held. */
static int wait_idle(struct store *s, const struct timespec *until)
{
	while (s->busy)
		if (pthread_cond_timedwait(&s->cond, &s->lock, until) == ETIMEDOUT && s->busy)
			return -ETIMEDOUT;
	return s->last_rc;
}

static struct timespec after_ms(unsigned int ms)
{
	uint64_t ns = mono_ns() + ms * NS_PER_MS;

	return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_SEC),
				 .tv_nsec = (long)(ns % NS_PER_SEC)};
}

int store_wait(struct store *s, unsigned int timeout_ms)
{
	struct timespec until = after_ms(timeout_ms);
	int rc;

	pthread_mutex_lock(&s->lock);
	rc = wait_idle(s, &until);
	pthread_mutex_unlock(&s->lock);
	return rc;
}

void store_stats(const struct store *s, struct store_stats *st)
{
	struct store *m = (struct store *)s; /* the lock only */

	pthread_mutex_lock(&m->lock);
	st->events = s->events;
	st->lost_events = s->lost;
	st->bytes = s->bytes;
	st->failed_flushes = s->failed;
	memcpy(st->last_error, s->last_error, sizeof(st->last_error));
	pthread_mutex_unlock(&m->lock);
}

/* Write all there is, trying again once what has failed. Lock held. */
static int write_all(struct store *s, const struct timespec *until)
{
	(void)wait_idle(s, until);
	if (s->busy)
		return -ETIMEDOUT;
	if (s->back) {
		int rc;

		kick(s);
		rc = wait_idle(s, until);
		if (s->busy || s->back)
			return rc;
	}
	if (!hand_over(s))
		return -ENOMEM;
	kick(s);
	return wait_idle(s, until);
}

void store_close(struct store *s, uint64_t now_ns)
{
	struct timespec until = after_ms(CLOSE_WAIT_S * 1000);
	struct timespec real;
	int rc;

	for (struct life_row *l = s->front->lives; l; l = l->next)
		l->ref = NULL;
	while (s->open)
		forget(s, s->open);
	ended_free(&s->ended);
	loose_free(&s->loose);
	if (now_ns > s->clock_ns)
		s->clock_ns = now_ns;
	s->front->end = true;
	pthread_mutex_lock(&s->lock);
	rc = write_all(s, &until);
	if (rc)
		pr_warn("recording: %s: its last moments are not in it",
			rc == -ETIMEDOUT   ? "the disk does not answer"
			: s->last_error[0] ? s->last_error
					   : strerror(-rc));
	s->stop = true;
	pthread_cond_broadcast(&s->cond);
	pthread_mutex_unlock(&s->lock);
	if (s->started) {
		clock_gettime(CLOCK_REALTIME, &real); /* all that pthread_timedjoin_np knows */
		real.tv_sec += rc == -ETIMEDOUT ? 0 : CLOSE_WAIT_S;
		if (pthread_timedjoin_np(s->thread, NULL, &real)) {
			pthread_detach(s->thread); /* it sits in the kernel, and in s */
			return;
		}
	} else {
		writer_close(&s->w);
	}
	batch_free(s->front);
	batch_free(s->back);
	pthread_cond_destroy(&s->cond);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
