/* SPDX-License-Identifier: Apache-2.0 */
/* What the store holds in memory between two writes. Caller's thread only, until handed over. */
#ifndef SP_STORE_BUFFER_H
#define SP_STORE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/model.h"

/* Ascending numbers, one to two bytes each: the events of an open life, so that they can be dropped
 * when it ends healthy. */
struct seqs {
	uint8_t *buf;
	uint32_t len, cap;
	uint64_t first, last; /* 0: empty */
};
bool seqs_add(struct seqs *s, uint64_t seq); /* false: out of memory */
/* Walk: *at and *seq start at 0. */
bool seqs_next(const struct seqs *s, uint32_t *at, uint64_t *seq);
void seqs_free(struct seqs *s);

enum { PT_ROOM, PT_KIND, PT_PEER, PT_AGENT, PT_RID, PT_NOTE, PT_OBJECT, PT_MAX };

/* An event waiting to be written. */
struct pending_event {
	uint64_t ns, op, life; /* life: the life's row, 0 none */
	uint64_t at_ns;        /* when it was, if that is before it was taken (ns); else 0 */
	uint64_t bytes, took_ns;
	int64_t code;
	uint32_t pid, tid, covers, count;
	int32_t chunk, part, parts, need;
	int16_t probe, rank;
	uint16_t flags;
	uint8_t role, status;
	int8_t last;
	uint8_t len[PT_MAX]; /* lengths of the texts, without their NULs */
	char text[];         /* all of them, NUL-terminated, in order */
};

/* A life as it was last seen, waiting to be written. */
struct life_ref;
struct life_row {
	struct life_row *next;
	struct life_ref *ref; /* while the life is open and the row in the front batch */
	uint64_t row, opened_ns, progress_ns, last_ns, ended_ns, first_seq, last_seq;
	uint64_t stage_at[SP_STAGE_MAX]; /* begun since the last row, 0: not */
	char *verdict;                   /* JSON; NULL: as before */
	uint32_t pid, life, events;
	uint8_t stage, outcome, cause, confidence;
	bool stuck, uncertain, late, fake, ever_stuck, kept;
	char room[SP_ROOM_MAX], rid[64], peer[64];
};

struct alert_row {
	struct alert_row *next;
	uint64_t id, ns, age_ns, idle_ns, stalled_ns, lost;
	uint32_t pid, tid, life;
	uint8_t type, stage, cause, confidence, outcome;
	int8_t pin;
	char room[SP_ROOM_MAX], what[64], note[64];
};

/* The stack of one thread. */
struct stack_row {
	struct stack_row *next;
	uint64_t life, ns; /* life: its row */
	uint32_t pid, tid, n;
	char name[64];
	char frames[]; /* JSON */
};

/* Hangs on model_life.user. */
struct life_ref {
	struct life_ref *prev, *next;
	uint64_t row;
	struct seqs seqs;
	uint64_t stacks_ns; /* moment of the stacks given last, 0: none */
	uint32_t events, verdict_sum, nstacks;
	uint8_t stage, cause, confidence; /* cause, confidence: of the last verdict it had */
	bool again;                       /* had ended before: seqs knows its first and last only */
	struct life_row *pending;         /* in the front batch */
};

struct batch {
	struct pending_event **ev; /* [head, n); NULL: dropped; ev[i] has number base + i */
	size_t head, n, cap;
	uint64_t base;
	struct life_row *lives, **lives_tail;
	struct alert_row *alerts, **alerts_tail;
	struct stack_row *stacks, **stacks_tail;
	uint64_t *del; /* numbers of written events that are to go */
	size_t ndel, cap_del;
	size_t bytes;
	uint64_t model_ns, lost; /* lost: of the session, up to now */
	bool end;
};
struct batch *batch_new(uint64_t base);
void batch_free(struct batch *b);
bool batch_empty(const struct batch *b);
/* ns and room: those of the row, not of ev. */
bool batch_event(struct batch *b, const struct sp_event *ev, uint64_t ns, uint64_t life_row,
		 const char *room);
struct life_row *batch_life(struct batch *b);   /* a new row at the end; NULL: out of memory */
struct alert_row *batch_alert(struct batch *b); /* same */
struct stack_row *batch_stack(struct batch *b, const char *frames); /* same; frames is copied */
/* The event with this number is not wanted any more: from memory, or from the file. */
void batch_unwant(struct batch *b, uint64_t seq);
/* Give up the oldest until at most bytes are held; returns how many events and rows went. */
uint64_t batch_trim(struct batch *b, size_t bytes);
/* Put older's rows (not its events) before those of b and free older. */
void batch_take_rows(struct batch *b, struct batch *older);
void batch_free_rows(struct batch *b); /* lives, alerts, stacks, del: they are written */
void batch_free_events(struct batch *b, size_t upto); /* ev[head..upto) are written */

/* rows.c: a row as of now */
void life_row_fill(struct life_row *row, struct life_ref *ref, const struct model_life *l);
void alert_row_fill(struct alert_row *row, const struct model_alert *a);
/* Lines of a stack as a JSON array, malloc'ed. */
char *stack_frames(char *const *line, int nlines);

/* ended.c: rows of lives that ended lately, should one come again. */
struct ended_lives;
void ended_add(struct ended_lives **t, const struct life_ref *ref, const struct model_life *l,
	       uint64_t now_ns, bool kept);
/* Fills ref and forgets; false: not known. */
bool ended_take(struct ended_lives **t, struct life_ref *ref, const struct model_life *l);
void ended_free(struct ended_lives **t);

/* loose.c: events of no life, when not everything is recorded. */
struct loose {
	struct loose_thread *threads;
	uint64_t every_ns; /* how often a thread's place is kept */
	struct loose_op *ops, *closed;
	uint32_t nops;
	uint64_t verdict_ns; /* when a life was last found stuck */
};
void loose_init(struct loose *s, const uint64_t stage_ns[SP_STAGE_MAX]);
bool loose_wanted(const struct sp_event *ev);
/* It tells which room a thread is at, and is kept for the sake of others than that room's life l.
 */
bool loose_place(const struct sp_event *ev, const struct model_life *l);
/* An event was taken, as number seq if it may be given up later (else 0). Returns the number of one
 * that may be given up now, 0: none. */
uint64_t loose_note(struct loose *s, const struct sp_event *ev, uint64_t now_ns, uint64_t seq);
void loose_free(struct loose *s);

/* verdict.c */
char *verdict_json(const struct model_verdict *v); /* malloc'ed */
int verdict_parse(const char *json, struct model_verdict *v);
uint32_t verdict_sum(const struct model_verdict *v); /* never 0; equal for equal verdicts */

/* loose_ops.c: operations posted without a room. */
bool loose_op_wanted(const struct loose *s, const struct sp_event *ev);
void loose_op_note(struct loose *s, const struct sp_event *ev, uint64_t now_ns, uint64_t seq,
		   bool of_life);
void loose_op_verdict(struct loose *s, uint64_t now_ns);
void loose_ops_expire(struct loose *s, uint64_t now_ns, struct batch *b);
void loose_ops_free(struct loose *s);

#endif
