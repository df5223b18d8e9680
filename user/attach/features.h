/* SPDX-License-Identifier: Apache-2.0 */
/* What attach_features() finds out, in the parts that attach_open() needs. */
#ifndef SP_ATTACH_FEATURES_H
#define SP_ATTACH_FEATURES_H

#include "attach/attach.h"

/* All but the two uprobe kinds, which cost time. 0, or -errno when BPF does not work at all. */
int features_basic(struct attach_features *f);
/* Hang a probe on a function of this very program and call it from a second thread. */
void features_multi(struct attach_features *f);
void features_perf(struct attach_features *f);
/* How socket calls can be seen: all of it, when the kinds of uprobes are known; or one way. */
void features_sock(struct attach_features *f);
void features_sock_syscall(struct attach_features *f);
void features_sock_tcp(struct attach_features *f);
/* A map of one counter, and a program that adds one to it: descriptors, or -errno. */
int features_counter_map(void);
int features_counter(int map, enum attach_backend backend);
/* The file that holds code of this very program, and where in it: a descriptor, or -errno. */
int features_own_file(uint64_t addr, uint64_t *offset);
/* The pid namespace as the kernel names it; ino 0: the first one. */
void features_pidns(uint64_t *dev, uint64_t *ino);

#endif
