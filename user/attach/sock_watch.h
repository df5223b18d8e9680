/* SPDX-License-Identifier: Apache-2.0 */
/* What sees the socket calls of one process. */
#ifndef SP_ATTACH_SOCK_WATCH_H
#define SP_ATTACH_SOCK_WATCH_H

#include "attach/attach.h"
#include "attach/uprobe.h"

/* One library file of one process. */
struct watched_lib {
	struct plan *plan; /* owned by struct attach */
	struct links links;
	int *err; /* for each plan probe: 0 or -errno of its link */
	int good; /* probes in place */
};

struct sock_watch {
	uint32_t rules;    /* bit i: entry i of the profile's sockets holds here; 0: not watched */
	bool in_place;     /* its calls are seen */
	bool refused;      /* they cannot be; it was said */
	char why[160];     /* when refused */
	int link_err;      /* the error of a link that failed, 0 when none did */
	bool said, uring;  /* NOTICE_SOCKETS, NOTICE_IO_URING */
	uint64_t since_ns; /* when it was first tried with its present program */
	struct watched_lib *lib; /* libcs */
	int nlib;
};

/* The rules that are to hold in it from now on; 0: watch it no longer. */
void sock_watch_set(struct attach *a, pid_t pid, struct sock_watch *sw, uint32_t rules);
/* Link what is mapped now and was not before. Reads the maps itself where files is NULL. */
void sock_watch_scan(struct attach *a, pid_t pid, struct sock_watch *sw,
		     const struct map_files *files);
/* The same for a child that has just been forked. */
void sock_watch_inherit(struct attach *a, pid_t pid, struct sock_watch *sw,
			const struct sock_watch *parent);
/* The process has another program now (its rules stay), or is gone. */
void sock_watch_exec(struct sock_watch *sw);
void sock_watch_gone(struct attach *a, pid_t pid, struct sock_watch *sw);
/* How it is seen, for people. */
void sock_watch_how(const struct attach *a, const struct sock_watch *sw, char *buf, size_t len);

#endif
