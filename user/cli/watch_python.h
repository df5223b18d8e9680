/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's own view in `watch`: a reader for each process that is a Python server of the
 * profile's kind, a snapshot every --python-every and one at once when the model asks, and the
 * Python stacks of the threads that an alert speaks of. Whatever fails here is told once; watching
 * goes on without.
 */
#ifndef SP_CLI_WATCH_PYTHON_H
#define SP_CLI_WATCH_PYTHON_H

#include <stdbool.h>
#include <stdint.h>

#include "model/model.h"
#include "util/err.h"

#define PYTHON_EVERY_NS     500000000ull
#define PYTHON_EVERY_MIN_NS 50000000ull /* closer together, two snapshots confirm nothing */
#define PYTHON_EVERY_MAX_NS 60000000000ull

struct watch;
struct watch_python;

/* NULL: the profile has no python: section, or out of memory. */
struct watch_python *watch_python_new(struct watch *w);
void watch_python_free(struct watch_python *wp);
/* Look at pid from now on. 0: it is read already, or wp is NULL; else -errno, err says why: -EPERM
 * and -ENOTSUP for ever (and it is told), others perhaps only not yet. */
int watch_python_add(struct watch_python *wp, uint32_t pid, struct sp_err *err);
/* Watching goes on: what could not be read may be told now. Before, one error line says it all. */
void watch_python_started(struct watch_python *wp);
void watch_python_drop(struct watch_python *wp, uint32_t pid);
/* It runs another program now. */
void watch_python_exec(struct watch_python *wp, uint32_t pid);
/* Snapshots that are due. Call at each turn of the loop. */
void watch_python_turn(struct watch_python *wp, uint64_t now_ns);
/* A last round, so that the end of the watch judges by what is so now. */
void watch_python_last(struct watch_python *wp);
/* Keep the stacks of the threads that a stuck alert speaks of. */
void watch_python_alert(struct watch_python *wp, const struct model_alert *a);
/* Why a process can never be read (rights, version); NULL: nothing of that kind. Before _started.
 */
const char *watch_python_why(const struct watch_python *wp);
size_t watch_python_readers(const struct watch_python *wp); /* processes that are read now */
void watch_python_tell(const struct watch_python *wp);      /* -v: what it costs */

#endif
