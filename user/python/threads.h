/* SPDX-License-Identifier: Apache-2.0 */
/* What frame.c puts together: the stack of a thread, its id in the kernel, its name. */
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
/* Fill in the frames of a thread. -EAGAIN: it moves too fast. */
int py_stack(struct py_runtime *rt, struct py_thread *t);

#endif
