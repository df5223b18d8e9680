/* SPDX-License-Identifier: Apache-2.0 */
/* Scope-bound clean-up: `__free char *p`, `__closefd int fd = -1`, `__fclose FILE *f`. */
#ifndef SP_UTIL_CLEANUP_H
#define SP_UTIL_CLEANUP_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_fd(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void cleanup_file(FILE **f)
{
	if (*f)
		fclose(*f);
}

#define __free    __attribute__((__cleanup__(cleanup_free)))
#define __closefd __attribute__((__cleanup__(cleanup_fd)))
#define __fclose  __attribute__((__cleanup__(cleanup_file)))

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#endif
