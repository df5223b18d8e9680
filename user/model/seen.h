/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's own view of lives: what `held`, `release`, `thread` and `view` events say (their
 * contract: event/event.h). Rounds of snapshots confirm facts; between an overdue deadline and the
 * verdict the model waits for one round, so that it judges by facts of that moment.
 */
#ifndef SP_MODEL_SEEN_H
#define SP_MODEL_SEEN_H

#include "model/lives.h"

/* A deadline that no look has answered for so long is judged without one. Snapshots come twice a
 * second. */
#define ASK_MAX_NS (10 * NS_S)
/* Of rounds without an effect one is told so often: what a replay with other deadlines rests on. */
#define OK_MAX_NS (2 * NS_S)
/* Rounds that must not list a life, one after the other, before it is taken for released. */
#define GONE_ROUNDS 2
/* Ends concluded from the view can be taken back for so long. */
#define PARKED_NS (600 * NS_S)
/* What a confirmed fact may lag behind the server: two snapshots at the default period, and some.
 */
#define LAG_NS (3 * NS_S / 2)

enum view_state { VIEW_NONE = 0, VIEW_OK, VIEW_UNSTABLE, VIEW_LOST };
enum entry { ENTRY_UNKNOWN = 0, ENTRY_YES, ENTRY_NO };
enum queue { Q_NONE = 0, Q_BOOTSTRAP, Q_WAITING, Q_INFLIGHT, Q_OTHER };

/*
 * What the view has said of one life. Kept after the view is lost, for comparison: then `listed` is
 * false. `queue`, `kind` name the last queue; `op`, `tid`, flags are of the last `held` event.
 */
struct seen {
	struct life *life;
	struct seen *prev, *next; /* of the process's `waits`, or of the model's parked lives */
	uint64_t op;              /* address of the request, 0: unknown */
	uint64_t queue_ns;        /* in that queue, or in none, since */
	uint64_t code_ns;         /* with that status since */
	uint64_t tid_ns;          /* with that thread and these flags since */
	uint64_t ask_ns;          /* overdue since then, and waiting for the next look; 0: no */
	uint64_t gone_ns;         /* rounds begun after this that do not list it tell its end; 0: it
				     does not wait for such. Parked: when it ended */
	int64_t code;             /* HELD_UNKNOWN: no status known */
	int32_t announced, need, sent, total; /* -1: unknown */
	uint32_t tid;
	uint32_t waitq; /* its number in the waiting queue */
	uint8_t kind, queue;
	uint8_t rounds; /* not listed, since gone_ns */
	uint8_t stage;  /* parked: the stage it was in */
	bool listed;    /* in a queue now */
	bool ever;      /* it has been in one */
	bool sent_once; /* it has been in the inflight queue */
	bool forward;   /* in no queue, with an entry: most likely in its forward pass */
	bool at;        /* thread tid is at work on it */
	bool orphan;    /* waits in a backlog that no thread serves */
	bool queued;    /* waits in one of which that is not known */
	bool cut_off;   /* the thread that was at it has exited */
	bool asks;      /* counted in model_asks */
	bool waits;     /* in the process's list */
	bool lost;      /* the view was lost since; the next event only says again what is known */
	bool hole : 1;  /* parked: an operation in progress is no longer followed */
	bool assumed : 1; /* nothing but native events knew the life: it may be another's request */
};

/* ---- seen.c: the facts, and questions about them ------------------------------------------- */

struct seen *seen_get(struct model *m, struct life *l);
void seen_free(struct model *m, struct life *l);
enum queue queue_of(const char *kind);
static inline bool view_active(const struct proc *p)
{
	return p->view == VIEW_OK || p->view == VIEW_UNSTABLE;
}
static inline bool seen_listed(const struct life *l)
{
	return l->seen && l->seen->listed;
}
static inline bool seen_in(const struct life *l, enum queue q)
{
	const struct seen *s = l->seen;

	return s && s->listed && s->queue == q;
}
/* Does a source show when the server lets l go? */
static inline bool sees_release(const struct model *m, const struct life *l)
{
	return m->cfg.sees_release || l->tracked || view_active(l->proc);
}
/* Still there for the server: its end would have been seen, or its request is. */
static inline bool still_held(const struct model *m, const struct life *l)
{
	return m->cfg.sees_release || l->tracked || seen_listed(l);
}
bool seen_entry(const struct model *m, const struct life *l); /* may be in its forward pass */
/* The view is able to show l, and shows neither a request nor a status entry. */
bool seen_unheld(const struct model *m, const struct life *l);
/* The status is the one that the profile calls so (offsets of struct profile_python's states). */
bool seen_failed(const struct model *m, const struct life *l);
bool seen_bootstrap(const struct model *m, const struct life *l);
bool seen_ready(const struct model *m, const struct life *l);
bool seen_moving(const struct model *m, const struct life *l);
bool seen_done(const struct model *m, const struct life *l);
const char *seen_state(const struct model *m, int64_t code); /* "moving"; "" no meaning */
/* No thread is at it and no chunk of it waits for one; false where the profile cannot tell. */
bool seen_idle(const struct model *m, const struct life *l);
bool backlog_known(const struct model *m);
uint64_t worker_moved(const struct worker *w);   /* when, by both sources; stall.c */
uint32_t worker_at_life(const struct worker *w); /* of the room it is at; 0: not known */
/* The thread that is at it, or in whose backlog it waits; NULL: none, or not known. */
struct worker *seen_worker(const struct model *m, const struct life *l);
/* The server's main loop may have been in a forward pass ever since then. */
bool loop_busy(const struct model *m, const struct proc *p, uint64_t since);
/* Peers that have announced themselves, and how many must (0: not known), from both sources. */
uint32_t life_announced(const struct life *l);
uint32_t life_quorum_need(const struct life *l);

/* ---- held.c: events of requests ------------------------------------------------------------ */

int route_held(struct model *m, struct proc *p, const struct sp_event *ev);
/* A new request, though by its ids it is the one of which s tells. */
bool seen_begins_anew(const struct seen *s, const struct sp_event *ev);
void route_inferred(struct model *m, const struct sp_event *ev); /* a release, EV_INFERRED */

/* ---- view.c: rounds, and lives that wait for them ------------------------------------------ */

int view_event(struct model *m, const struct sp_event *ev);
int view_ask(struct model *m, struct life *l, uint64_t ns);
/* It moved, or was judged, or ended. */
void view_unask(struct model *m, struct seen *s);
/* From now on rounds that do not list it tell its end. */
void view_watch_end(struct model *m, struct life *l, uint64_t ns);
void view_unwait(struct model *m, struct seen *s); /* neither of both */

/* ---- park.c: ends that can be taken back --------------------------------------------------- */

enum sp_outcome inferred_outcome(const struct model *m, const struct life *l);
void life_park(struct model *m, struct life *l, enum sp_outcome outcome);
struct life *park_find(struct model *m, const struct room *r, const struct sp_event *ev);
void park_reopen(struct model *m, struct life *l);
void park_drop(struct model *m, const struct proc *p);

/* ---- verdict_view.c ------------------------------------------------------------------------ */

/* The cause for a life that the view lists; false: it does not. */
bool view_choose(const struct model *m, const struct life *l, uint64_t now, struct choice *c);
/* verdict.c: queued behind another room, by native events alone. */
bool native_behind(const struct model *m, const struct life *l, uint64_t now, struct choice *c);
/* What the view leaves of a verdict on any other life. */
void view_cap(const struct model *m, const struct life *l, struct choice *c);

#endif
