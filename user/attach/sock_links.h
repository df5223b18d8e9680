/* SPDX-License-Identifier: Apache-2.0 */
/* A libc's socket functions: what to probe in one file, and the links to one process. */
#ifndef SP_ATTACH_SOCK_LINKS_H
#define SP_ATTACH_SOCK_LINKS_H

#include "attach/plan.h"
#include "attach/uprobe.h"

/* Is this a libc, or the libpthread that answered socket calls before glibc 2.34? */
bool sock_is_libc(const char *base);

/*
 * A plan (plan.h) whose probes are the file's functions: index counts in sock_funcs. What it does
 * not export is left out, a second name of an address too; what only leads to another function of
 * the list needs no place of its own. fd and why as in plan_make.
 */
int sock_plan_make(const struct map_file *f, int fd, const char *why, struct plan **out);

/* Is every needed function in place? Else buf tells which is not, why and what to do. err: as from
 * uprobe_attach, or NULL before it. */
bool sock_plan_good(const struct plan *plan, const int *err, enum attach_backend backend, char *buf,
		    size_t len);

#endif
