/* SPDX-License-Identifier: Apache-2.0 */
/* The files whose code a process has mapped. */
#ifndef SP_ATTACH_MAPS_H
#define SP_ATTACH_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct map_file {
	uint64_t start, end; /* its first executable mapping */
	unsigned dev_major, dev_minor;
	uint64_t ino;
	char *path; /* as the process sees it, without " (deleted)" */
	const char *base;
	bool deleted;
};
struct map_files {
	struct map_file *file;
	int n;
};

/* Each mapped executable file once, in the order of addresses. -ESRCH, -EPERM... */
int maps_read(pid_t pid, struct map_files *out);
/* The same from the text of /proc/PID/maps. */
int maps_parse(const char *text, struct map_files *out);
void maps_free(struct map_files *m);

/* The file whose code is mapped at an address, and where in it that is. out->path is the caller's
 * to free. -ENOENT: none. */
int maps_at(pid_t pid, uint64_t addr, struct map_file *out, uint64_t *offset);

/*
 * Open the very file that is mapped: through map_files (deleted files, other mount namespaces), or
 * where that is not allowed by its path below /proc/PID/root, if it is still the same file. A
 * descriptor, or -errno + why.
 */
int maps_open(pid_t pid, const struct map_file *f, char *why, size_t why_len);

#endif
