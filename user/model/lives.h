/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the model: its tables and who does what with them. Only files of this folder include it.
 *
 *   proc    one watched process: its open lives in order of opening, its threads
 *   room    (pid, room id): its open lives, how many it has had, an abort that came too early
 *   life    one use of a room: stage, counters, peers, operations
 *   op      one operation of the transport, by (pid, handle); may outlive its life
 *   agent   one peer of one process, by its name
 *   worker  one thread that announces or posts; what it is busy with
 *   flow    how far a queue has got: "when was something ahead of number N last completed?"
 *   seen    what the server's own view says of a life (seen.h)
 *   calls   of a life, of a process (calls.h); loose: operations of no known room (loose.h)
 */
#ifndef SP_MODEL_LIVES_H
#define SP_MODEL_LIVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A failed insertion is reported, never an exit() from inside the macro. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "model/bounds.h"
#include "model/choice.h"
#include "model/flow.h"
#include "model/model.h"

struct life;
struct op;
struct agent;
struct seen;
struct calls;
struct proc_calls;
struct inside;
struct loose;

/* ---- threads and processes ---------------------------------------------------------------- */

struct worker_key {
	uint32_t pid, tid;
};
struct worker {
	UT_hash_handle hh;
	struct worker_key key;
	struct worker *prev, *next; /* of the process */
	struct proc *proc;
	struct op *busy;  /* operations in progress that it posted, in order of posting */
	struct flow flow; /* by life: posts and completions of this thread */
	uint64_t act_ns;  /* last create, post or completion of one of its operations */
	uint64_t exited_ns;
	struct op *unbound; /* created, handle not known yet */
	/* the server's view: the room it works on, NULL: idle, or not known; referenced */
	struct room *at;
	uint64_t at_ns; /* since then, 0: the view has said nothing */
	uint32_t at_life;
	uint32_t nbusy, refs;
	bool announces, posts, hashed;
};

/* A rule by which the server may choose a room's thread. */
struct rule {
	uint32_t held; /* rooms for which it was right */
	bool broken;
};
struct modulo {
	struct rule rule;
	struct worker *worker[LEARN_MODULI]; /* by room modulo n; referenced */
};

struct proc {
	UT_hash_handle hh;
	uint32_t pid;
	struct life *lives; /* open ones, oldest first */
	struct worker *workers;
	struct flow flow;          /* by life: posts, completions and ends */
	uint64_t gap_ns;           /* what it did before that was not seen, 0: nothing */
	uint64_t attached_ns;      /* it is watched since, 0: not that it was told */
	uint64_t boot_dead_ns;     /* its bootstrap thread ended then, 0: no */
	uint64_t control_heard_ns; /* last control message without a room */
	struct seen *waits;        /* lives that wait for the next look, in order of asking */
	struct flow waitq;         /* the server's waiting queue: who has left it */
	uint64_t ok_ns;            /* the last round that was good and was told */
	uint64_t loop_ns;          /* the server was last seen to move a request then */
	uint64_t lag_ns;           /* how late its moves are seen */
	uint64_t forward_ns;       /* the latest of its forward passes began then */
	uint64_t reply_ns;         /* a client of it was last answered then */
	uint64_t looked_ns;        /* both looks of that round began at or after this */
	struct proc_calls *calls;
	struct loose *loose;      /* operations of no known room, NULL: there were none */
	uint64_t dim_ns;          /* a stream of a peer was (or became) readable only in part */
	uint32_t nopen, nforward; /* open lives; of these, in their forward pass by the view */
	uint32_t waitq_seq;       /* how many have entered the waiting queue */
	uint8_t view;             /* enum view_state */
	bool halted;              /* it is stopped: nothing in it can move */
	bool blind, deaf;         /* no probe in it shows operations, announcements */
	bool dim_more;            /* more are than are known by name: for good */
	uint8_t ndim;             /* those that still are */
	char dim_peer[MAX_DIM][64];
	char dim_last[64]; /* whose was the latest */
	bool proved;       /* the view has shown a life that native events had opened */
	bool native;       /* there are native events of rooms */
	bool boot_missing; /* the view says that the bootstrap thread is not there */
	bool boot_known;   /* it has been there before */
	bool unsure;       /* the view says that not all its workers are known... */
	char unsure_why[64];
	bool misfit;  /* and that the table may not be that of the inflight requests */
	bool rejudge; /* a doubt has gone: the next round judges again what is stuck */
	uint32_t boot_tid, nposters;
	uint32_t served; /* rooms whose thread was seen */
	struct rule by_peer;
	struct modulo *modulo; /* LEARN_MODULI of them, of room modulo 1, 2, ...; NULL: none yet */
};

struct agent_key {
	uint32_t pid;
	char id[64];
};
struct agent {
	UT_hash_handle hh;
	struct agent_key key;
	char peer[64];         /* its address, "" unknown */
	uint64_t num;          /* order of first sight */
	uint64_t gone_ns;      /* its connection has ended then, 0: not that anybody knew */
	struct flow flow;      /* by order of posting: completions of operations to it */
	uint64_t posted, over; /* operations ever posted to it; of these, no longer in progress */
	struct worker *worker; /* who served its latest room; referenced */
	struct agent *iprev, *inext;
	uint32_t refs;
	bool idle;
	bool goes; /* its connections end while its rooms go on: that tells nothing */
	bool dim;  /* its stream could not be read to the end */
};

/* ---- rooms and lives ---------------------------------------------------------------------- */

struct room {
	UT_hash_handle hh;
	struct life *first;         /* open lives, oldest first */
	struct room *iprev, *inext; /* idle rooms, longest idle first */
	uint64_t abort_ns;          /* an abort without a life, 0: none */
	uint64_t done_ns;           /* its latest life to end well did so then */
	uint64_t ended_ns;          /* its latest life to end, well or not */
	uint32_t nlives;            /* lives so far */
	uint32_t refs;              /* lives, operations and threads that name it */
	uint32_t nopen;
	uint8_t len;     /* of name */
	uint8_t entry;   /* enum entry: has the server's status table one for it? */
	uint8_t nparked; /* lives that may come back, see park.c */
	bool idle;
	/* the key: pid and name, without a gap between them */
	uint32_t pid;
	char name[];
};

#define PEER_NODATA 1u
struct peer {
	struct agent *agent;
	uint32_t flags;
};

/* All operations of one kind and chunk, whatever their rank and part. */
struct group {
	int32_t chunk;
	uint16_t created, done;
	uint16_t parts;
	uint8_t kind;
	int8_t last;
};

/* What few lives have. */
struct rare {
	uint64_t abort_early_ns; /* an abort before the life opened */
	uint64_t control_out_ns, control_in_ns;
	uint64_t create_failed_ns, abandoned_ns;
	uint64_t untracked_ns; /* its answer may go by unseen, and may have */
	uint64_t overlap_ns;   /* a second opening of the room while this life was open */
	uint64_t reused_ns;    /* another life of the room ended done after that */
	int64_t error_code, create_code;
	char error_note[48];
	uint32_t told, other_life;
	bool reuse_doubt; /* the other life was aborted or overdue: perhaps gone already */
	bool one_pass;    /* what ended well at reused_ns was sent in one chunk */
	bool both_seen;   /* the server's queues held both at once */
	/* what sockets show of it */
	uint64_t first_ns, reply_ns; /* the answer to its client began, ended */
	uint64_t client_gone_ns;     /* the client closed before it was answered */
	bool gone_early;             /* and before all was sent */
	uint64_t unread_ns;          /* a message of unread_peer waits on the wire since then */
	char unread_peer[48];
	int32_t reply_code;
	bool reply_failed;
	bool answering;   /* the answer began when all was sent */
	bool told_failed; /* error_ns is when a peer was told so */
};

/* The last progress, enough to say it in words. */
struct did {
	union {
		struct agent *agent; /* announce; referenced through the life's peers */
		uint64_t op;         /* post, status */
		int64_t code;        /* held, reply */
	};
	int32_t chunk, need;
	int16_t rank;
	uint8_t role, status, kind, flags;
	int8_t last;
};

/* While a life is stuck. */
struct stuck {
	struct life *life;
	struct stuck *prev, *next; /* the doubtful ones, oldest first */
	uint64_t since_ns, again_ns;
	uint8_t cause, conf;
	int8_t pin;
	uint8_t best_cause, best_conf; /* the strongest alert of this stall */
	int8_t best_pin;
	bool listed;
	bool by_view;            /* the verdict rests on the server's view */
	uint8_t told[CAUSE_MAX]; /* confidence already alerted, per cause */
};

struct life {
	struct room *room;
	struct life *rnext;       /* next life of the room */
	struct life *prev, *next; /* open lives of the process */
	struct proc *proc;
	struct worker *worker; /* the thread that posts for it */
	struct op *ops;
	struct peer *peers;
	struct group *groups;
	struct rare *rare;
	struct seen *seen;   /* what the server's view says of it, NULL: nothing */
	struct calls *calls; /* NULL: none was seen */
	struct stuck *stuck;
	void *user;
	char *rid;
	uint64_t id, opened_ns, progress_ns, last_ns;
	uint64_t progress_id; /* lives with a lower id were open, or over, at the last progress */
	uint64_t ahead_ns;    /* what was ahead of it in its queue moved then */
	uint64_t abort_ns, error_ns;
	uint64_t asked_ns; /* its client's request arrived, 0: not seen */
	uint64_t asked;    /* the number of that request, 0: none */
	struct did did;
	uint64_t ranks; /* ranks seen in its operations, modulo 64 */
	uint32_t timer; /* place in the heap, + 1 */
	uint32_t number;
	uint32_t nops, ndone, nbusy; /* nbusy: created or in progress */
	uint16_t npeers, ndata; /* npeers and ngroups: their arrays hold the next power of two */
	uint16_t ngroups, nsplit;
	int32_t quorum; /* peers it waits for, -1 unknown */
	uint8_t stage;
	bool late : 1, uncertain : 1, fake : 1, arrived : 1, waits : 1, deferred : 1;
	bool ever_stuck : 1, blurred : 1, straggles : 1;
	bool tracked : 1;   /* the answer to its client will be seen: that is its release */
	bool shared : 1;    /* it may be another process's: only its arrival was seen here */
	bool elsewhere : 1; /* and it is: the room has shown itself there */
	struct need_count {
		uint16_t seen, done;
	} need[]; /* one for each need of the profile */
};

struct op {
	struct op *hnext; /* of the table's bucket */
	uint64_t handle;
	uint32_t pid;
	int32_t chunk;
	struct op *lnext;         /* of the life; loose: of the process */
	struct op *wprev, *wnext; /* of the worker, while in progress */
	union {
		struct life *life;
		struct room *room; /* orphan: its life has ended. Loose: where the view has its
				      thread, NULL so far; referenced */
	};
	struct worker *worker;
	struct agent *agent; /* whose queue it is in, NULL: unknown */
	uint64_t life_id;
	uint64_t since_ns; /* created, then posted, then final */
	uint64_t seq;      /* its number in the agent's queue */
	uint32_t life_number;
	uint32_t over_at_post; /* the agent's count, modulo 2^32 */
	int16_t rank, part, parts;
	uint8_t kind, needs;
	int8_t last;
	uint8_t state; /* enum op_state */
	bool orphan;
	bool loose;  /* whose it is, is not known... */
	bool lone;   /* and the view will not tell */
	bool holds;  /* is in its worker's list */
	bool hashed; /* its handle is known */
};
/* The life an operation belongs to; NULL: it has ended. */
static inline struct life *op_life(const struct op *o)
{
	return o->orphan || o->loose ? NULL : o->life;
}
static inline const char *op_room(const struct op *o)
{
	if (o->loose)
		return "";
	return o->orphan ? o->room->name : o->life->room->name;
}
enum op_state { OP_CREATED, OP_BUSY, OP_DONE, OP_ERROR };

/* ---- the model ---------------------------------------------------------------------------- */

struct timer {
	uint64_t ns;
	struct life *life;
};

struct model {
	struct model_cfg cfg;
	struct model_ops ops;
	void *ctx;
	uint64_t now;
	uint64_t lossy_ns;        /* events may have gone missing until then */
	uint64_t blind_ns;        /* the watch did not run until then */
	bool pulls;               /* no probe shows operations: the peers read for themselves */
	bool told_ends;           /* peers are told how a room ended */
	uint64_t quantum, window; /* of every flow */
	uint64_t longest;         /* deadline of a stage */
	struct proc *procs;
	struct room *rooms;
	struct op **optab; /* buckets; a power of two, or none */
	uint32_t optab_size, nops;
	struct agent *agents;
	struct worker *workers;
	struct room *idle_first, *idle_last;
	struct agent *guest_first, *guest_last; /* agents that no life knows, longest first */
	struct stuck *doubt_first, *doubt_last;
	struct timer *heap;
	uint32_t nheap, heap_cap;
	struct seen *parked_first, *parked_last; /* lives that may come back, longest ended first */
	uint32_t nidle, ndoubt, norphans, npeers, nparked, nasks;
	uint64_t next_life, next_agent;
	struct model_stats st;
	char kinds[MAX_KINDS][16];
	int nkinds;
	struct life *at_hand; /* whose event is being applied, NULL once it has ended */
	/* a stuck life that the event at hand has set moving; told at the event's end */
	struct life *recovered;
	uint64_t recovered_idle_ns;
	const struct life *prepared; /* whose withdrawn verdict is already in words */
	struct model_verdict withdrawn, verdict;
};

/* memory that model_stats counts; zeroed */
void *mem_new(struct model *m, size_t size);
/* items of size in an array that grows; *cap is in items */
int mem_grow(struct model *m, void **array, size_t size, uint32_t *cap, uint32_t want);
/* The same for an array whose capacity is the power of two at or above its length n: room for one
 * more. */
int mem_append(struct model *m, void **array, size_t size, uint32_t n);
size_t mem_appended(size_t size, uint32_t n); /* bytes held for n items */
void mem_free(struct model *m, void *p, size_t size);
uint8_t kind_index(struct model *m, const char *kind);

/* room.c */
struct room *room_find(struct model *m, uint32_t pid, const char *name);
struct room *room_get(struct model *m, uint32_t pid, const char *name);
void room_ref(struct model *m, struct room *r);
void room_unref(struct model *m, struct room *r);
void room_keep_abort(struct model *m, struct room *r);
size_t room_bytes(const struct room *r);

/* life.c */
struct life *life_open(struct model *m, struct room *r, struct proc *p, bool late);
void life_end(struct model *m, struct life *l, enum sp_outcome outcome);
/* Its end, without giving up its memory; and back again. For park.c. */
void life_close(struct model *m, struct life *l, enum sp_outcome outcome);
void life_unsee(struct model *m, struct life *l); /* it is in no queue, at no worker */
void life_reopen(struct model *m, struct life *l, enum sp_stage stage);
void life_free(struct model *m, struct life *l);
void life_releasing(struct model *m, struct life *l); /* terminal: wait for its release */
/* Two requests of one room at once: a fact for both. */
void life_overlap(struct model *m, struct life *old, struct life *young);
void life_progress(struct model *m, struct life *l, const struct did *did);
void life_stage(struct model *m, struct life *l, enum sp_stage stage);
bool life_complete(const struct model *m, const struct life *l);
void life_settle(struct model *m, struct life *l); /* terminal? then on to its end */
struct rare *life_rare(struct model *m, struct life *l);
uint32_t life_takers(const struct life *l);
bool life_doomed(const struct life *l);
bool need_met(const struct model *m, const struct life *l, int i);
void life_forget(struct model *m, struct life *l);

/* peer.c */
struct agent *agent_get(struct model *m, uint32_t pid, const struct sp_event *ev);
void agent_words(const struct agent *a, char *buf, size_t len); /* address first */
void agent_ref(struct model *m, struct agent *a);
void agent_unref(struct model *m, struct agent *a);
void agent_drop_pid(struct model *m, uint32_t pid);
struct agent *life_agent(const struct life *l);
int life_announce(struct model *m, struct life *l, struct agent *a, const struct sp_event *ev);
bool life_accepts(const struct life *l, const struct agent *a);
bool life_quorum(const struct life *l);
void peer_event(struct model *m, const struct sp_event *ev);
/* Connections are not followed for want of room: nobody knows whose. */
void peer_unfollowed(struct model *m);
/* Was, or is, a stream of a peer not readable since then? */
bool proc_dim(const struct proc *p, uint64_t since_ns);

/* optab.c: operations by (pid, handle). A hash handle of uthash is 56 bytes, a third of an
 * operation, and rooms have several: hence a table of its own. */
struct op *op_find(const struct model *m, uint32_t pid, uint64_t handle);
int optab_add(struct model *m, struct op *o);
void optab_remove(struct model *m, struct op *o);
void optab_free(struct model *m);

/* op.c */
int op_bind(struct model *m, struct op *o, uint64_t handle);
int op_create(struct model *m, struct life *l, const struct sp_event *ev);
struct op *op_new(struct model *m, struct worker *w, const struct sp_event *ev);
void op_join(struct model *m, struct op *o, struct life *l); /* from now on it is l's */
struct did did_op(const struct op *o, uint8_t role, uint8_t status);
void op_post(struct model *m, struct op *o, const struct sp_event *ev);
void op_status(struct model *m, struct op *o, const struct sp_event *ev);
void op_close(struct model *m, struct op *o);
void op_free(struct model *m, struct op *o);
void op_orphan(struct model *m, struct op *o);
void op_adopt(struct model *m, struct op *o, struct life *l); /* the orphan's life is back */
bool op_seen(const struct life *l, uint8_t kind, const struct sp_event *ev);
bool op_same(struct model *m, const struct op *o, const struct sp_event *ev);
struct group *group_find(const struct life *l, uint8_t kind, int32_t chunk);

/* worker.c */
struct proc *proc_get(struct model *m, uint32_t pid);
void proc_drop(struct model *m, struct proc *p);
struct worker *worker_get(struct model *m, struct proc *p, uint32_t tid);
void worker_ref(struct worker *w);
void worker_unref(struct model *m, struct worker *w);
void worker_hold(struct model *m, struct worker *w, struct op *o);
void worker_let_go(struct op *o);
void worker_serves(struct model *m, struct worker *w, struct life *l);
struct worker *worker_find(const struct model *m, uint32_t pid, uint32_t tid);
struct life *worker_life(const struct worker *w); /* that it is at, by the view */
void worker_set_at(struct model *m, struct worker *w, struct room *at, uint32_t life);
/* The exit of a thread, and what the view says of threads. */
int thread_event(struct model *m, const struct sp_event *ev);
/* The operation of another life that keeps w from everything else, idle for at least span. */
const struct op *worker_blocked(const struct worker *w, const struct life *l, uint64_t now,
				uint64_t span);

/* learn.c */
void learn_served(struct model *m, struct worker *w, const struct life *l);
/* The thread that will post for l, by a rule that has always held; NULL: not known. */
struct worker *worker_inferred(const struct life *l);
void learn_free(struct model *m, struct proc *p);

/* timer.c */
int timer_arm(struct model *m, struct life *l); /* at the life's due time, if earlier than armed */
void timer_drop(struct model *m, struct life *l);
void timer_run(struct model *m, uint64_t now);
uint64_t life_due(const struct model *m, const struct life *l);

/* stall.c: what happens at a deadline */
int life_overdue(struct model *m, struct life *l, uint64_t ns);
/* Its deadline passed at ns, and nothing more is to be waited for. */
int life_judge(struct model *m, struct life *l, uint64_t ns);
void stall_again(struct model *m, struct life *l, uint64_t ns);
/* Before an event is applied to a stuck life: put what it may withdraw into words. */
void stall_prepare(struct model *m, const struct life *l);
/* Overdue lives that are no known pin: forget the oldest beyond the bound. May end any life. */
void doubt_trim(struct model *m);
void stall_clear(struct model *m, struct life *l);
uint64_t life_ahead(const struct model *m, const struct life *l);
uint64_t op_ahead(const struct op *o);
uint64_t stage_span(const struct model *m, const struct life *l);
/* Are announcements seen on sockets only? */
static inline bool proc_deaf(const struct model *m, const struct proc *p)
{
	return m->cfg.no_posts || p->deaf;
}
/* Are the operations of the process out of sight? */
static inline bool proc_blind(const struct model *m, const struct proc *p)
{
	return m->cfg.no_posts || m->pulls || p->blind;
}

/* verdict.c, evidence.c */
/* The cause that fits l best at now. Facts younger than the stall do not count. */
void verdict_choose(const struct model *m, const struct life *l, uint64_t now, struct choice *c);
void verdict_words(struct model *m, const struct life *l, const struct choice *c, uint64_t now,
		   struct model_verdict *v);

/* route.c: events that carry a room or an operation */
int route_room(struct model *m, const struct sp_event *ev);
int route_op(struct model *m, const struct sp_event *ev);
/* Hand the event to l: from here on it counts as l's. Then, after it: what it changed, told once.
 */
void route_give(struct model *m, const struct sp_event *ev, struct life *l);
void route_settle(struct model *m);
#include "model/tell.h" /* alert.c */

#endif
