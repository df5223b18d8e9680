/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collect: ring buffer -> records -> decoded events, in order of time. One struct collect has one
 * profile and one ring buffer. Single-threaded.
 *
 * CPUs hand in records slightly out of order, so events wait in a heap until the caller says that
 * nothing older can come (collect_release). A record lost in the kernel leaves a hole in the
 * sequence numbers; a hole older than a second is a loss and becomes a ROLE_LOSS event.
 */
#ifndef SP_COLLECT_H
#define SP_COLLECT_H

#include "attach/attach.h"
#include "event/event.h"
#include "profile/profile.h"
#include "sp_shared.h"
#include "util/err.h"

/* How long after its time a record may still arrive: caller releases up to now - this. */
#define COLLECT_SLACK_NS 50000000ull

struct collect_ops {
	/* An event, oldest first. */
	void (*event)(void *ctx, const struct sp_event *ev);
	/* A FORK, EXEC or EXIT record, at once and before its event. May be NULL. */
	void (*process)(void *ctx, const struct sp_rec_hit *rec);
	/* Sockets (attach_owners, attach_has). NULL: a process owns its own events, no probe is in
	 * place. */
	int (*owners)(void *ctx, uint32_t pid, uint32_t *owners, int max);
	bool (*has_probe)(void *ctx, uint32_t pid, int probe);
};

struct collect;
int collect_open(const struct profile *p, bool has_seq, const struct collect_ops *ops, void *ctx,
		 struct collect **out, struct sp_err *err);
void collect_close(struct collect *c);
/* Take the records of this ring buffer (-1: there is none), which may have been coming for a while.
 * The mapping of its pages takes 2 ms: the probes are put in place before. 0, or -errno + err. */
int collect_listen(struct collect *c, int ring_fd, struct sp_err *err);
/* Wait at most timeout_ms for records and decode all there are. Number of records, or -errno. */
int collect_poll(struct collect *c, int timeout_ms);
/* One record, as the ring buffer hands it in. 0, or -ENOMEM: an event is lost. */
int collect_record(struct collect *c, const void *rec, size_t len);
/* Put an event of the watch's own (target, stall) in its place in time. */
int collect_inject(struct collect *c, const struct sp_event *ev);
/* The kernel's counters (struct attach: attach_counters); what grew since the last call becomes
 * ROLE_LOSS events at time now_ns. */
void collect_counters(struct collect *c, const uint64_t now[SP_C_MAX], uint64_t now_ns);
/* Calls under way (attach_inside) and work not completed (attach_tallies), all of them, about once
 * a second; what is new or over becomes events of role call, kind inside, left, tally. */
void collect_inside(struct collect *c, const struct attach_inside *in, int n, uint64_t now_ns);
void collect_tallies(struct collect *c, const struct attach_tally *t, int n, uint64_t now_ns);
/* Nothing more will come: what waits for something goes on as it is, what was counted is told.
 * Before the last collect_release. */
void collect_finish(struct collect *c, uint64_t now_ns);
/* Hand on every event up to horizon_ns. */
void collect_release(struct collect *c, uint64_t horizon_ns);

struct collect_stats {
	uint64_t records, events;
	uint64_t unmatched;  /* hits whose text fitted no pattern */
	uint64_t unreadable; /* hits without an argument that the event needs */
	uint64_t broken;     /* multipart messages with frames missing */
	uint64_t late;       /* events older than what had been released, not those that waited */
	uint64_t given_up;   /* calls whose room might have been known: waited too long */
	uint64_t lost;       /* records lost in the kernel */
	uint64_t conns, untrusted,
		unreadable_conns;   /* connections seen; not decoded; encrypted or foreign */
	uint64_t confirmed, unread; /* messages seen by both sources; on the wire only */
	uint64_t sockets_over; /* connections, rooms of requests, messages: beyond the bounds, not
				  followed */
};
void collect_stats(const struct collect *c, struct collect_stats *s);

/* ---- the parts, each testable alone ------------------------------------------------------- */

/* decode.c: one record -> at most one event. */
struct decoder;
struct decoder *decoder_new(const struct profile *p);
void decoder_free(struct decoder *d);
/* 1: *ev is an event; 0: none; -EFAULT: an argument it needs could not be read. len: bytes of rec.
 */
int decoder_record(struct decoder *d, const struct sp_rec_hit *rec, size_t len,
		   struct sp_event *ev);
/* What the last record says beside its event (fields.h); valid until the next one. */
struct event_more;
const struct event_more *decoder_more(const struct decoder *d);
/* Where the fields of a probe's event, or of its first alternative, come from. */
struct field_plan;
const struct field_plan *decoder_plan(const struct decoder *d, int probe);
void decoder_stats(const struct decoder *d, struct collect_stats *s);

/* frames.c: the frames of one message, put together again. */
#define FRAMES_MAX  64 /* as many as a profile can name */
#define FRAME_BYTES SP_SLOT_MAX
struct frame {
	uint32_t size;    /* full length */
	uint16_t len;     /* bytes copied */
	const char *data; /* set once the message is complete */
};
struct message {
	uint32_t pid, tid;
	uint16_t probe;
	bool cut;    /* begun before the attach */
	int n;       /* frames; only the first FRAMES_MAX are kept */
	char *bytes; /* of all frames, one after another */
	struct frame frame[FRAMES_MAX];
};
struct frames;
struct frames *frames_new(void);
void frames_free(struct frames *f);
/* Add one frame record; a complete message is in *msg (valid until the next call). 1 complete, 0
 * more to come, -EBADMSG: frames are missing, the message is given up. */
int frames_add(struct frames *f, const struct sp_rec_hit *rec, uint64_t sock, uint32_t size,
	       const char *data, uint16_t len, const struct message **msg);
/* The record's frame could not be read: its message is given up. sock NULL: nor could its socket,
 * then those of all that the thread reads there are. */
void frames_lost(struct frames *f, const struct sp_rec_hit *rec, const uint64_t *sock);
/* Which alternative of the probe fits the message, its captures appended; -1: none. A cut message
 * fits an alternative whose end it is, when that has an address or a literal to vouch for it. */
int frames_match(const struct profile_probe *probe, const struct message *msg,
		 struct captures *caps);
/* Does a message of that role still say what it is when its first frame is missing? The kernel
 * takes for such a rest only what begins with digits, and names that stood in the first frame are
 * lost. */
bool frames_cut_tells(const struct profile_probe *probe, enum sp_role role);

/*
 * sockets.c: records of sockets (conns.c: connections and who announced himself over them; http.c:
 * requests and replies; confirm.c: one event for a message seen by a uprobe and on the socket) ->
 * events, through emit, in any order of time. emit may be called several times for one record.
 */
typedef void (*sockets_emit)(void *ctx, const struct sp_event *ev);
struct sockets;
struct sockets *sockets_new(const struct profile *p, const struct collect_ops *ops, void *ops_ctx,
			    sockets_emit emit, void *ctx);
void sockets_free(struct sockets *s);
/* A CONN or HTTP record. */
void sockets_record(struct sockets *s, const void *rec, size_t len);
/* A message that decoder_record made of a socket's frames: conn is the connection, sent: by the
 * watched process. Emits it, or holds it for its confirmation. */
void sockets_message(struct sockets *s, const struct sp_event *ev, uint64_t conn, bool sent);
/* An event of a uprobe: true when it is to go on, false when the socket has told it already. */
bool sockets_native(struct sockets *s, const struct sp_event *ev);
/* What has waited long enough for its confirmation. */
void sockets_tick(struct sockets *s, uint64_t now_ns);
void sockets_process_gone(struct sockets *s, uint32_t pid, uint64_t ns);
void sockets_stats(const struct sockets *s, struct collect_stats *st);

/* seq.c: holes in the sequence numbers. */
struct seq {
	uint64_t base;    /* every number below was seen or given up */
	uint64_t top;     /* one above the highest seen */
	uint64_t hole_ns; /* when the hole at base was first noticed, 0: none */
	uint64_t lost;
	uint64_t bits[1024]; /* seen numbers of [base, base + 65536), by number modulo 65536 */
};
void seq_seen(struct seq *s, uint64_t n, uint64_t now_ns);
/* Give up holes older than a second; returns how many numbers were newly lost. */
uint64_t seq_expire(struct seq *s, uint64_t now_ns);

/* reorder.c: a heap of events by time, stable for equal times. */
struct reorder;
struct reorder *reorder_new(void);
void reorder_free(struct reorder *r);
int reorder_push(struct reorder *r, const struct sp_event *ev);
/* The oldest event at or before horizon_ns into *ev; false: none. */
bool reorder_pop(struct reorder *r, uint64_t horizon_ns, struct sp_event *ev);
/* Each that waits, in no order. Its time must stay. */
void reorder_each(struct reorder *r, void (*fn)(void *ctx, struct sp_event *ev), void *ctx);
size_t reorder_count(const struct reorder *r);

#endif
