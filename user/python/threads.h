/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's side of threads: their ids and names. Used by frame.c only. */
#ifndef SP_PYTHON_THREADS_H
#define SP_PYTHON_THREADS_H

#include "python/frame.h"

struct py_ident {         /* what an interpreter says about a thread */
	uint64_t pthread; /* pthread_self() */
	uint64_t native;  /* gettid() in the process' own pid namespace, 0: not recorded */
};
/* Fill in tid. pid 0: as the target says. */
int py_tids(struct py_runtime *rt, pid_t pid, const struct py_ident *id, struct py_threads *t);
/* Fill in names: those of threading, else comms. Errors leave a name empty. */
void py_names(struct py_runtime *rt, pid_t pid, const struct py_ident *id, struct py_threads *t);

#endif
