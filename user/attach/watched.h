/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share of struct attach: the processes watched. */
#ifndef SP_ATTACH_WATCHED_H
#define SP_ATTACH_WATCHED_H

#include "attach/attach.h"
#include "attach/bpfload.h"
#include "attach/plan.h"
#include "attach/pointer.h"
#include "attach/sock_watch.h"
#include "attach/target.h"

#define WATCHED_POINTERS 256
struct watched_pointer { /* seen in it, see pointer.h */
	int probe;
	uint64_t addr;
};

struct watched {
	struct target_id id;
	struct watched_lib *lib;
	int nlib;
	struct watched_pointer *pointer;
	int npointers;
	int waited;          /* scans in which a file waited for a library (pointer_waits) */
	uint64_t pages;      /* mapped at the last scan */
	uint64_t born_ns;    /* since when it has its present program, as far as known */
	uint64_t due_ns;     /* no scan before */
	uint64_t forced_ns;  /* a scan at the latest */
	bool named;          /* given to attach_add, not forked */
	bool borrowed;       /* in its parent's memory (vfork) until its exec */
	bool no_return;      /* its returns may not be probed, see returns.h */
	uint64_t trampoline; /* the page to which return probes lead (inside.c); 0: not known */
	struct sock_watch sock;
	uint32_t lonely; /* bit i: entry i of the profile's sockets has no front here, and it was
			    said */
};

/* A process in front of targets. Mostly no target itself: then only its sockets are watched. */
struct front_owner {
	uint32_t pid; /* a target */
	uint32_t rules;
	bool said;
};
struct front {
	struct target_id id;
	struct sock_watch sock; /* unused where it is a target too: then its own serves both */
	struct front_owner *owner;
	int nowners;
};

#define GONE_MAX   256
#define STRAYS_MAX 64
struct attach {
	const struct profile *profile; /* with the finders of pointers */
	struct pointers pointers;
	struct attach_opts opts;
	struct attach_features features;
	enum attach_returns returns; /* RETURNS_UNKNOWN: the profile has none */
	attach_notice_fn fn;
	void *ctx;
	struct bpfload bpf;
	struct plan **plan;
	int nplan;
	struct watched **watched;
	int nwatched;
	struct inside_over *over; /* calls found to be over, see inside.h */
	uint32_t gone[GONE_MAX];  /* threads that have ended since forget_ns */
	int ngone;
	uint64_t forget_ns;
	uint64_t adopt_ns;          /* when to look for children whose FORK record was lost */
	uint32_t stray[STRAYS_MAX]; /* unknown at the last look: their record may still come */
	int nstrays;
	enum attach_sockets how;  /* socket calls are seen; NONE: not at all */
	char no_sockets_why[160]; /* they were wanted, and cannot be had here */
	struct plan **libc;       /* the socket functions of each libc met */
	int nlibc;
	struct front **front;
	int nfronts;
	uint64_t fronts_ns, uring_ns; /* when to look next */
	uint64_t sweep_ns;
};

/* Attach what is mapped now and was not before. Probes new in place, or -errno when the process
 * cannot be read. */
int watched_scan(struct attach *a, struct watched *w);
/* The same for a child that has just been forked: it has its parent's libraries. */
int watched_inherit(struct attach *a, struct watched *w, const struct watched *parent);
int watched_probes(const struct watched *w); /* uprobes, and one more when its sockets are seen */
int watched_uprobes(const struct watched *w);
struct watched *watched_find(const struct attach *a, uint32_t pid); /* NULL: no target */
/* Link the probes of one more plan. Their number, or -ENOMEM. */
int watched_add_plan(struct attach *a, struct watched *w, struct plan *plan);
/* The last error of a link that failed, 0 when none did. */
int watched_link_error(const struct watched *w);
/* Forget its libraries; their links are closed in the background. */
void watched_drop_libs(struct watched *w);

/* Free the plans that no process uses, once in a while. */
void plans_sweep(struct attach *a, uint64_t now);

void attach_notify(const struct attach *a, const struct attach_notice *n);

#endif
