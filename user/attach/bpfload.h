/* SPDX-License-Identifier: Apache-2.0 */
/* The loaded BPF object. One that was never opened (all zero) answers as an empty one. */
#ifndef SP_ATTACH_BPFLOAD_H
#define SP_ATTACH_BPFLOAD_H

#include "attach/attach.h"
#include "attach/uprobe.h"

struct silentpin_bpf;
struct late;
struct bpfload {
	struct silentpin_bpf *skel;
	struct uprobe_progs progs;
	bool seq;
	enum attach_sockets how; /* what of the sockets' programs is loaded */
	struct late *late;       /* these, but for the small ones */
};

/* f: features_basic() has been called; the uprobe kinds are tried here, as o->force says. */
int bpfload_open(const struct profile *p, const struct attach_opts *o, struct attach_features *f,
		 struct bpfload *b, struct sp_err *err);
void bpfload_close(struct bpfload *b);

int bpfload_ring_fd(const struct bpfload *b);
void bpfload_counters(const struct bpfload *b, uint64_t out[SP_C_MAX]);
bool bpfload_last_poll(const struct bpfload *b, uint32_t pid, uint64_t op, struct sp_poll *out);

/* Report forks, execs and exits of pid from now on, or no longer. */
int bpfload_target(const struct bpfload *b, uint32_t pid, bool on);
/* The processes that the kernel side reports, forked children that it has added included; at most
 * max. Their number. */
int bpfload_targets(const struct bpfload *b, uint32_t *pid, int max);
/* Sockets. Bit i of rules: entry i of the profile's `sockets:` holds in pid; 0: forget the process.
 */
int bpfload_sock_proc(const struct bpfload *b, uint32_t pid, uint32_t rules);
/* Enter the sockets that the process has already: -EOPNOTSUPP where the kernel cannot say. */
int bpfload_sock_scan(const struct bpfload *b, uint32_t pid);
/* The uprobe program for sites with SP_SOCK_COOKIE cookies: its descriptor, -1: not loaded. */
int bpfload_prog_sock_libc(const struct bpfload *b);
/* How socket calls are to be seen, as chosen at bpfload_open; and the links that are for all
 * processes at once (SYSCALL, TCP), and TCP's changes of state, where they can be had. */
enum attach_sockets bpfload_sock_how(const struct bpfload *b);
int bpfload_sock_attach(struct bpfload *b, enum attach_sockets how);

/* The maps sp_saved and sp_tallies; -1: nothing is loaded. */
int bpfload_saved_fd(const struct bpfload *b);
int bpfload_tallies_fd(const struct bpfload *b);

/* The programs for a plan's sites; waits for what is still being loaded. */
const struct uprobe_progs *bpfload_progs(struct bpfload *b, const struct plan *plan);

/* Delete of a hash map whose keys are at most so long what fits. For the files of bpfload alone. */
#define BPFLOAD_KEY_BYTES 24ul
void bpfload_delete_if(int map_fd, bool (*is)(const void *key, const void *ctx), const void *ctx);

/* Forget what is kept for a process that has ended, or (ended false) has another program; or for
 * threads (their place in messages). */
void bpfload_forget_process(const struct bpfload *b, uint32_t pid, bool ended);
void bpfload_forget_threads(const struct bpfload *b, const uint32_t *tid, int n);

#endif
