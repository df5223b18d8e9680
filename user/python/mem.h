/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of another process, through an interface, so that a recorded image serves as well as a
 * live process. Nothing here stops or writes to the target.
 *
 * Budgets protect from what a hostile or torn image says: every reader stops with -E2BIG once a
 * snapshot has used up its bytes or reads.
 */
#ifndef SP_PYTHON_MEM_H
#define SP_PYTHON_MEM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/err.h"

struct pymem_span {
	uint64_t addr;
	void *buf;
	uint32_t len;
	int32_t rc; /* out: 0, or -EFAULT: not one byte of it is valid then */
};

struct pymem {
	/* Read n spans; each span's rc says how it went. 0, or -errno when no read at all is
	 * possible any more: -ESRCH (gone), -EPERM (rights). */
	int (*readv)(void *ctx, struct pymem_span *span, size_t n);
	void (*close)(struct pymem *m);
	void *ctx;
	uint64_t bytes_left, reads_left; /* the budget: spans and their bytes */
	uint64_t bytes, reads, calls;    /* used so far, for -v: calls into the kernel */
};

/* One span, all of it: 0, -EFAULT, -ESRCH, -EPERM, -E2BIG (budget). */
int pymem_read(struct pymem *m, uint64_t addr, void *buf, size_t len);
int pymem_readv(struct pymem *m, struct pymem_span *span, size_t n);
int pymem_u64(struct pymem *m, uint64_t addr, uint64_t *v);
/* A C string, cut to len - 1 bytes; never reads past the page it ends in. */
int pymem_cstr(struct pymem *m, uint64_t addr, char *buf, size_t len);
/* Start a new snapshot's budget. 0: the defaults, 256 MiB and 4 million spans. */
void pymem_budget(struct pymem *m, uint64_t bytes, uint64_t reads);

/*
 * A live process: process_vm_readv in batches (IOV_MAX spans a call), else /proc/PID/mem. Pinned by
 * start time and pidfd: a pid that names another process gives -ESRCH. After an exec the addresses
 * mean nothing: the caller re-locates. err: one line with the capability or setting that is missing
 * (CAP_SYS_PTRACE, kernel.yama.ptrace_scope, dumpable).
 */
int pymem_open(pid_t pid, struct pymem **out, struct sp_err *err);
void pymem_close(struct pymem *m);

/* A recorded image for tests: pages at addresses. Reads outside give -EFAULT. The bytes are copied.
 */
struct pymem *pymem_image(void);
int pymem_image_add(struct pymem *m, uint64_t addr, const void *bytes, size_t len);

#endif
