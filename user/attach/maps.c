// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "attach/maps.h"
#include "util/cleanup.h"

static bool known(const struct map_files *m, const struct map_file *f)
{
	for (int i = 0; i < m->n; i++)
		if (m->file[i].ino == f->ino && m->file[i].dev_major == f->dev_major &&
		    m->file[i].dev_minor == f->dev_minor)
			return true;
	return false;
}

/* "\012" stands for a newline in a path, and for nothing else (fs/proc/task_mmu.c). */
static char *unescape(const char *s, size_t len)
{
	char *out = malloc(len + 1), *p = out;

	if (!out)
		return NULL;
	for (size_t i = 0; i < len; i++) {
		if (len - i >= 4 && !memcmp(s + i, "\\012", 4)) {
			*p++ = '\n';
			i += 3;
		} else {
			*p++ = s[i];
		}
	}
	*p = 0;
	return out;
}

/* 1: a line of a file's code, into f, whose path is new; 0: of something else. */
static int read_line(const char *line, size_t len, struct map_file *f, uint64_t *offset)
{
	static const char gone[] = " (deleted)";
	char perms[5], head[128]; /* the path begins at column 73 */
	int at = 0;

	memset(f, 0, sizeof(*f));
	snprintf(head, sizeof(head), "%.*s", (int)(len < 127 ? len : 127), line);
	if (sscanf(head, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &f->start,
		   &f->end, perms, offset, &f->dev_major, &f->dev_minor, &f->ino, &at) < 7)
		return -EINVAL;
	if (perms[2] != 'x' || f->ino == 0 || (size_t)at >= len || line[at] != '/')
		return 0;
	len -= (size_t)at;
	if (len > sizeof(gone) - 1 &&
	    !memcmp(line + at + len - (sizeof(gone) - 1), gone, sizeof(gone) - 1)) {
		f->deleted = true;
		len -= sizeof(gone) - 1;
	}
	f->path = unescape(line + at, len);
	if (!f->path)
		return -ENOMEM;
	f->base = strrchr(f->path, '/') + 1;
	return 1;
}

static int add_line(struct map_files *m, const char *line, size_t len)
{
	struct map_file f, *grown;
	uint64_t offset;
	int rc = read_line(line, len, &f, &offset);

	if (rc <= 0)
		return rc;
	if (known(m, &f)) {
		free(f.path);
		return 0;
	}
	grown = realloc(m->file, sizeof(f) * (size_t)(m->n + 1));
	if (!grown) {
		free(f.path);
		return -ENOMEM;
	}
	m->file = grown;
	m->file[m->n++] = f;
	return 0;
}

int maps_parse(const char *text, struct map_files *out)
{
	int err = 0;

	memset(out, 0, sizeof(*out));
	while (*text && !err) {
		size_t len = strcspn(text, "\n");

		err = add_line(out, text, len);
		text += len;
		text += *text == '\n';
	}
	if (err)
		maps_free(out);
	return err;
}

/* The whole of a file of /proc, whose size is not known before. NULL: *err tells why. */
static char *slurp(const char *path, int *err)
{
	size_t cap = 64 << 10, len = 0;
	__closefd int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *buf = fd >= 0 ? malloc(cap) : NULL;
	ssize_t n = 1;

	*err = fd >= 0 ? -ENOMEM : -errno;
	while (buf && n > 0) {
		n = read(fd, buf + len, cap - len - 1);
		if (n < 0) {
			*err = -errno;
			free(buf);
			return NULL;
		}
		len += (size_t)n;
		if (cap - len < 4096) {
			char *grown = realloc(buf, cap * 2);

			if (!grown)
				free(buf);
			buf = grown;
			cap *= 2;
		}
	}
	if (buf)
		buf[len] = 0;
	return buf;
}

static char *slurp_maps(pid_t pid, int *err)
{
	char path[64], *text;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	text = slurp(path, err);
	if (*err == -ENOENT)
		*err = -ESRCH;
	else if (*err == -EACCES)
		*err = -EPERM;
	return text;
}

int maps_read(pid_t pid, struct map_files *out)
{
	__free char *text = NULL;
	int err;

	memset(out, 0, sizeof(*out));
	text = slurp_maps(pid, &err);
	return text ? maps_parse(text, out) : err;
}

int maps_at(pid_t pid, uint64_t addr, struct map_file *out, uint64_t *offset)
{
	__free char *text = NULL;
	uint64_t first;
	int err;

	text = slurp_maps(pid, &err);
	for (const char *p = text; p && *p; p += *p == '\n') {
		size_t len = strcspn(p, "\n");

		if (read_line(p, len, out, &first) == 1) {
			if (addr >= out->start && addr < out->end) {
				*offset = first + (addr - out->start);
				return 0;
			}
			free(out->path);
		}
		p += len;
	}
	return text ? -ENOENT : err;
}

void maps_free(struct map_files *m)
{
	for (int i = 0; i < m->n; i++)
		free(m->file[i].path);
	free(m->file);
	memset(m, 0, sizeof(*m));
}

/* These give stat() a device of their own that differs from the one in the maps. */
static bool hides_device(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) &&
	       (fs.f_type == OVERLAYFS_SUPER_MAGIC || fs.f_type == BTRFS_SUPER_MAGIC);
}

static bool same_file(int fd, const struct map_file *f)
{
	struct stat st;

	if (fstat(fd, &st))
		return false;
	if (st.st_ino == f->ino && major(st.st_dev) == f->dev_major &&
	    minor(st.st_dev) == f->dev_minor)
		return true;
	return hides_device(fd);
}

/* Opened by its place in the process, where another file may be mapped by now. A file system may
 * show stat() another number than the maps: then the maps are asked again. */
static bool still_there(int fd, pid_t pid, const struct map_file *f)
{
	struct map_file now;
	struct stat st;
	uint64_t offset;
	bool same;

	if (!fstat(fd, &st) && st.st_ino == f->ino)
		return true;
	if (maps_at(pid, f->start, &now, &offset))
		return false;
	same = now.ino == f->ino && now.dev_major == f->dev_major && now.dev_minor == f->dev_minor;
	free(now.path);
	return same;
}

int maps_open(pid_t pid, const struct map_file *f, char *why, size_t why_len)
{
	__free char *path = NULL;
	char range[80];
	int fd, err;

	snprintf(range, sizeof(range), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, f->start,
		 f->end);
	fd = open(range, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && still_there(fd, pid, f))
		return fd;
	err = fd < 0 ? -errno : -ESTALE; /* another file is mapped there by now */
	if (fd >= 0)
		close(fd);
	if (f->deleted) {
		snprintf(why, why_len,
			 "the file is deleted, and its mapping cannot be opened: %s%s",
			 strerror(-err),
			 err == -EPERM ? ": give CAP_CHECKPOINT_RESTORE (or CAP_SYS_ADMIN)" : "");
		return err;
	}
	if (asprintf(&path, "/proc/%d/root%s", pid, f->path) < 0) {
		path = NULL;
		snprintf(why, why_len, "out of memory");
		return -ENOMEM;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* by now it may be a FIFO */
	if (fd < 0) {
		err = -errno;
		snprintf(why, why_len, "cannot be opened: %s%s", strerror(-err),
			 err == -EACCES ? ": give CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH" : "");
		return err;
	}
	if (!same_file(fd, f)) {
		close(fd);
		snprintf(why, why_len,
			 "the file on disk is not the one that is mapped (replaced?): give "
			 "CAP_CHECKPOINT_RESTORE, or restart the process");
		return -ESTALE;
	}
	return fd;
}
