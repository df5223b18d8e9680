/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attach: process -> libraries -> symbols -> compiled probes -> loaded BPF. One struct attach holds
 * the loaded BPF object of one profile and any number of target processes. Single-threaded. Nothing
 * here writes to a target; closing the file descriptors (or dying) removes every probe.
 */
#ifndef SP_ATTACH_H
#define SP_ATTACH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "profile/profile.h"
#include "sp_shared.h"
#include "util/err.h"

enum attach_backend { BACKEND_NONE, BACKEND_MULTI, BACKEND_PERF };
/* How socket calls are seen: uprobes on libc's functions (costs other processes nothing), the
 * system call tracepoint (programs that bypass libc), fentry on the kernel's TCP functions. */
enum attach_sockets { SOCKETS_NONE, SOCKETS_LIBC, SOCKETS_SYSCALL, SOCKETS_TCP };

/* Where the kernel's return probes are used, see returns.h: in every process, not in those with a
 * seccomp filter, in none. Where they are not, the `ret` instructions of the functions are. */
enum attach_returns { RETURNS_UNKNOWN, RETURNS_FINE, RETURNS_UNFILTERED, RETURNS_NEVER };

struct attach_opts {
	enum attach_backend force; /* BACKEND_NONE: by feature probe; from SILENTPIN_UPROBE */
	uint32_t ring_bytes;       /* a power of two of pages; 0: 16 MiB */
	bool follow_children;      /* pick up forked children (default of the verbs: true) */
	/* No BPF at all: processes are only followed (exits, and children as /proc lists them). So
	 * it is in any case for a profile without probes. */
	bool no_probes;
	bool no_uprobes, no_sockets;    /* leave one kind of source out */
	enum attach_sockets sock_force; /* SOCKETS_NONE: by feature probe; from SILENTPIN_SOCKETS */
	enum attach_returns returns;    /* RETURNS_UNKNOWN: by trial; from SILENTPIN_RETURNS */
};

/* What the kernel offers, found by trying (never by version). why_*: the reason of a "no". */
struct attach_features {
	bool btf, ringbuf, cookie, multi, perf, seq; /* seq: fetch-and-add returns a value */
	bool pidns; /* silentpin runs in a pid namespace of its own */
	char why_multi[96], why_perf[96], why_bpf[160];
	bool sock_libc, sock_syscall, sock_tcp, sock_state; /* sock_state: TCP's changes of state */
	char why_sock_syscall[96], why_sock_tcp[96], why_sock_state[96];
	enum attach_returns returns; /* not tried where no kind of uprobe works */
	char why_returns[96];        /* RETURNS_UNFILTERED */
};
int attach_features(struct attach_features *f);
const char *attach_sockets_name(enum attach_sockets s); /* "libc", "syscall", "tcp" */

enum attach_what {
	NOTICE_ATTACHED, /* pid is watched: n probes in place (text: the command line, cut) */
	NOTICE_LIB,      /* a library's probes came in place later: text = file; gap true when the
			    library had been mapped before that and may have run */
	NOTICE_FAILED,   /* text: one line "probe xfer_create in FILE: reason" */
	NOTICE_FORK,     /* pid is a new child of ppid */
	NOTICE_EXEC,
	NOTICE_EXITED,
	NOTICE_SOCKETS,    /* sockets of pid are watched; ppid: the target whose front it is, or pid
			      itself; text: how */
	NOTICE_SOCKETS_NO, /* they cannot be; text: why and what to do */
	NOTICE_IO_URING,   /* pid has an io_uring: what goes through it is not seen */
	NOTICE_FRONT_EXITED,
};
struct attach_notice {
	enum attach_what what;
	uint64_t ns;
	uint32_t pid, ppid;
	int n;
	bool gap;
	char text[256];
};
typedef void (*attach_notice_fn)(void *ctx, const struct attach_notice *n);

struct attach;
int attach_open(const struct profile *p, const struct attach_opts *o, attach_notice_fn fn,
		void *ctx, struct attach **out, struct sp_err *err);
void attach_close(struct attach *a);
/* Watch pid (a process, not a thread). Attaches what it can now. Returns the number of probes in
 * place, counted as by attach_probes (>= 0: 0 when nothing could be attached yet), or -errno:
 * -ESRCH gone, -EPERM rights. */
int attach_add(struct attach *a, pid_t pid, struct sp_err *err);
/* Pick up libraries mapped since, children, exits. Call at least once a second. */
void attach_tick(struct attach *a);
/* Give it each FORK, EXEC, EXIT record; it reacts at once (a child is attached here). */
void attach_record(struct attach *a, const struct sp_rec_hit *rec);
int attach_targets(const struct attach *a); /* alive; fronts are not targets */
/* The targets that a process's socket events belong to: itself, when it is one, and those whose
 * front it is; at most max. Their number. Of a target that is a front too and has no uprobe in
 * place (the root of a command that silentpin has started) they are only those. */
int attach_owners(const struct attach *a, uint32_t pid, uint32_t *owners, int max);
/* Are the sockets of this target itself (front false) or of a front of it (true) watched? */
bool attach_sees_sockets(const struct attach *a, uint32_t pid, bool front);
enum attach_sockets attach_sockets_used(const struct attach *a);
/* Is this probe of the profile in place in pid? */
bool attach_has(const struct attach *a, uint32_t pid, int probe);
/* In place now, over all targets: uprobes, and one more for each process (a front too) whose
 * sockets are watched. */
int attach_probes(const struct attach *a);
enum attach_backend attach_backend_used(const struct attach *a);

/* For collect/: descriptors owned by attach. */
int attach_ring_fd(const struct attach *a); /* BPF_MAP_TYPE_RINGBUF; -1: no_probes */
bool attach_has_seq(const struct attach *a);
int attach_counters(const struct attach *a, uint64_t out[SP_C_MAX]);
bool attach_last_poll(const struct attach *a, uint32_t pid, uint64_t op, struct sp_poll *out);

/* Calls that were entered before older_than_ns and have not been left, as far as can be told. */
struct attach_inside {
	uint32_t pid, tid;
	int probe;                  /* index into the profile's probes */
	uint64_t enter_ns;          /* CLOCK_MONOTONIC */
	uint64_t scope_ns;          /* enter_ns of the call that encloses it, 0: none */
	uint64_t arg[SP_MAX_SAVED]; /* its first nargs arguments */
	uint64_t bad;               /* bit i: arg[i] is not known */
	int nargs;
	bool unsure; /* whether the thread is still in it could not be verified */
};
typedef void (*attach_inside_fn)(void *ctx, const struct attach_inside *in);
int attach_inside(const struct attach *a, uint64_t older_than_ns, attach_inside_fn fn, void *ctx);
/* Work posted and not completed, by key (a queue pair): every entry of the tallies. */
struct attach_tally {
	uint32_t pid;
	int id; /* tally of the profile (struct profile.tally) */
	uint64_t key, within;
	struct sp_tally n;
};
typedef void (*attach_tally_fn)(void *ctx, const struct attach_tally *t);
int attach_tallies(const struct attach *a, attach_tally_fn fn, void *ctx);

/* Each (target, library file, probe): what became of it. */
struct attach_row {
	uint32_t pid;
	const char *library, *file, *probe, *symbol; /* symbol: as found, "" when not */
	bool ok, required, emulated; /* emulated: the kernel need not single-step it */
	bool off;    /* not asked for (enabled: false, --disable): not attached, and no fault */
	bool later;  /* its function is known when another one next returns: no fault */
	bool socket; /* a socket function of a libc (file), or (file "") an entry of `sockets:` in a
			process (symbol) */
	enum attach_backend backend;
	char where[64];   /* "entry+4, push", "3 ret" */
	char reason[160]; /* when not ok */
};
typedef void (*attach_row_fn)(void *ctx, const struct attach_row *row);
void attach_rows(const struct attach *a, attach_row_fn fn, void *ctx);
/* Resolve without loading BPF or attaching: what would be attached to pid. For doctor. */
int attach_dry_rows(const struct profile *p, pid_t pid, enum attach_returns returns,
		    attach_row_fn fn, void *ctx, struct sp_err *err);
/* Does this profile have return probes (`on: return`, or to find functions by)? May pid's returns
 * be probed? */
bool attach_has_returns(const struct profile *p);
bool attach_may_return(enum attach_returns r, pid_t pid);

/* Processes whose command line fits the profile's match, oldest first; at most max. Number found.
 */
int target_find(const struct profile *p, pid_t *pids, int max);
/* Start argv stopped before its exec; target_go() lets it run, and without it the process ends with
 * ours. -errno + err when it cannot start: a program that is not there is found at once, what the
 * kernel cannot run (-ENOEXEC...) by target_go. */
struct target_child {
	pid_t pid;
	int go_fd, status_fd;
};
int target_spawn(char *const argv[], struct target_child *c, struct sp_err *err);
int target_go(struct target_child *c, const char *name, struct sp_err *err);
/* Command line joined by spaces, or the comm in brackets; 0 or -errno. */
int target_cmdline(pid_t pid, char *buf, size_t len);

#endif
