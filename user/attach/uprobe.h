/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links: the two ways to hang a program on places in a file, for one process. Detaching is closing
 * the descriptors; the kernel does so when silentpin dies.
 */
#ifndef SP_ATTACH_UPROBE_H
#define SP_ATTACH_UPROBE_H

#include "attach/attach.h"
#include "attach/plan.h"

/* Kernel numbers that the headers of the oldest build machine do not have (linux/bpf.h, 6.6). */
#define SP_BPF_TRACE_UPROBE_MULTI    48
#define SP_BPF_F_UPROBE_MULTI_RETURN 1

struct links {
	int *fd;
	int n;
};

struct uprobe_progs {
	int hit;  /* the program's descriptor */
	int each; /* of the one for plan_site.each; negative: there is none */
	enum attach_backend backend;
};

/* One of the kinds of links that a plan's sites want. */
struct uprobe_kind {
	bool at_return, each;
};
/* One kind at those of n places that are of it. One descriptor a call (multi) or two a place
 * (perf), appended. 0 or -errno, then nothing is appended. file_fd stays the caller's: the kernel
 * keeps the file. */
int uprobe_multi_link(int prog_fd, int file_fd, pid_t pid, struct uprobe_kind kind,
		      const struct plan_site *site, int n, struct links *out);
int uprobe_perf_link(int prog_fd, int file_fd, pid_t pid, struct uprobe_kind kind,
		     const struct plan_site *site, int n, struct links *out);

bool uprobe_is(const struct plan_site *s, struct uprobe_kind kind);

/*
 * All sites of a plan for one process. err[i] for plan probe i: 0 or -errno; a probe is attached at
 * all of its places or not at all. The number of probes attached.
 */
int uprobe_attach(const struct uprobe_progs *progs, const struct plan *plan, pid_t pid,
		  struct links *out, int *err);
/* Why an attach failed, and what to do. */
void uprobe_reason(int err, enum attach_backend backend, char *buf, size_t len);

int links_add(struct links *l, int fd); /* takes fd over, closes it on -ENOMEM */
void links_cut(struct links *l, int n); /* close all but the first n */
void links_close(struct links *l);
/* The same from many threads: each close waits for grace periods of the kernel (40 ms and more), so
 * let them wait together. */
void links_close_all(struct links *l);
/* The same in the background: what reads the records must not wait. */
void links_close_later(struct links *l);

#endif
