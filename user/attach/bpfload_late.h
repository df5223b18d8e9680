/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that are loaded beside the others: that for probes of elements, and the sockets' larger
 * ones. The kernel needs as long to verify them as for all else, and they are needed last, if at
 * all. What asks for one waits for it.
 */
#ifndef SP_ATTACH_BPFLOAD_LATE_H
#define SP_ATTACH_BPFLOAD_LATE_H

#include <stdint.h>

#include "attach/kbtf.h"

enum late_prog {
	LATE_EACH, /* the first: its probes are the transport's */
	LATE_LIBC,
	LATE_SYS,
	LATE_ITER,
	LATE_TCP, /* the first of those for SOCKETS_TCP: ends, entries, and what has no entry */
	LATE_TCP_ENTER = LATE_TCP + 4,
	LATE_TCP_OPEN = LATE_TCP_ENTER + 4,
	LATE_MAX = LATE_TCP_OPEN + 2,
};

struct late;
/* Which function of the kernel the program is attached to, NULL: none. */
const char *late_function(enum late_prog which);
/* Before the object is opened: what libbpf then finds in the sections sp_* is kept here. func:
 * those functions in the kernel's types, id 0 where there is none. NULL: no memory. */
struct late *late_open(const struct kbtf_func func[LATE_MAX]);
/* After the object has been loaded: begin. The object must outlive it. */
void late_start(struct late *l);
/* The program's descriptor, -EOPNOTSUPP: none, or why it could not be loaded. */
int late_fd(struct late *l, enum late_prog which);
/* Close this descriptor at the end, too. 0. */
int late_keep(struct late *l, int fd);
void late_close(struct late *l); /* may be NULL */

#endif
