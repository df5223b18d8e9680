// SPDX-License-Identifier: Apache-2.0
/* A process's reader: opened once, then a snapshot or the stacks of its threads at any time. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "python/reader.h"
#include "util/cleanup.h"

/* ---- the program ------------------------------------------------------------------------------
 */

/*
 * An exec keeps the pid and its start time. It gives the process a new stack and, unless the
 * program is linked to a fixed address, new code: startcode and startstack, fields 26 and 28 of
 * /proc/PID/stat (proc(5)). They are 0 for those who may not look, and then equal for ever.
 */
static int program_image(pid_t pid, uint64_t image[2])
{
	char path[32], line[1024];
	__fclose FILE *f = NULL;
	const char *p;
	size_t n;

	image[0] = image[1] = 0;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return errno == ENOENT ? -ESRCH : -errno;
	n = fread(line, 1, sizeof(line) - 1, f);
	line[n] = '\0';
	p = strrchr(line, ')'); /* a name may hold anything */
	for (int field = 2; p && field < 28; field++) {
		p = strchr(p + 1, ' ');
		if (p && field == 25)
			image[0] = strtoull(p + 1, NULL, 10);
		if (p && field == 27)
			image[1] = strtoull(p + 1, NULL, 10);
	}
	return p ? 0 : -ESRCH;
}

int pyreader_same_program(const struct pyreader *r)
{
	uint64_t image[2];
	int err;

	if (!r->pid)
		return 0;
	err = program_image(r->pid, image);
	if (err)
		return err;
	return memcmp(image, r->image, sizeof(image)) ? -ESRCH : 0;
}

/* ---- opening ----------------------------------------------------------------------------------
 */

void *pyreader_grow(void **array, size_t n, size_t size)
{
	void *grown = realloc(*array, (n + 1) * size);

	if (!grown)
		return NULL;
	*array = grown;
	return (char *)grown + n * size;
}

static int reader_new(const struct profile *p, struct pyreader **out)
{
	struct pyreader *r;

	if (!p->python)
		return -EINVAL;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->spec = p->python;
	*out = r;
	return 0;
}

/* What is the same for a process and an image, once the runtime is known. */
static int start(struct pyreader *r, struct sp_err *err)
{
	r->batch = pybatch_new(&r->rt);
	if (!r->batch)
		return -ENOMEM;
	pymem_budget(r->mem, 0, 0);
	pybatch_begin(r->batch);
	return pyroot_find(r, err);
}

static int explain(pid_t pid, int rc, struct sp_err *err)
{
	if (err && !err->text[0])
		sp_err_set(err, SP_EXIT_FAIL, rc,
			   "process %d: its Python state cannot be read: %s: "
			   "try again",
			   (int)pid, strerror(-rc));
	return rc;
}

int pyreader_open(pid_t pid, const struct profile *p, struct pyreader **out, struct sp_err *err)
{
	struct pyreader *r = NULL;
	int rc = reader_new(p, &r);

	*out = NULL;
	if (rc == -EINVAL)
		return sp_err_set(err, SP_EXIT_USAGE, rc,
				  "profile %s: it has no python: section: add one, see "
				  "docs/profiles.md",
				  p->name);
	if (rc)
		return explain(pid, rc, err);
	r->pid = pid;
	rc = pymem_open(pid, &r->mem, err);
	r->own_mem = !rc;
	if (!rc)
		rc = program_image(pid, r->image);
	if (!rc) {
		pymem_budget(r->mem, 0, 0);
		rc = py_locate(pid, r->mem, &r->rt, err);
	}
	if (!rc)
		rc = start(r, err);
	if (rc) {
		pyreader_close(r);
		return explain(pid, rc, err);
	}
	*out = r;
	return 0;
}

int pyreader_at(struct pymem *mem, int minor, uint64_t runtime_addr, const struct profile *p,
		struct pyreader **out)
{
	struct pyreader *r = NULL;
	int rc = reader_new(p, &r);

	*out = NULL;
	if (rc)
		return rc;
	r->mem = mem;
	pymem_budget(r->mem, 0, 0);
	rc = py_runtime_at(mem, minor, runtime_addr, &r->rt);
	if (!rc)
		rc = start(r, NULL);
	if (rc) {
		pyreader_close(r);
		return rc;
	}
	*out = r;
	return 0;
}

void pyreader_forget(struct pyreader *r)
{
	pybatch_reset(r->batch);
	memset(&r->codes, 0, sizeof(r->codes));
	for (int i = 0; i < PY_MAX_QUEUES; i++)
		pymemory_clear(&r->queue_rows[i]);
	pymemory_clear(&r->announced_rows);
}

void pyreader_close(struct pyreader *r)
{
	if (!r)
		return;
	if (r->batch)
		pyreader_forget(r);
	pybatch_free(r->batch);
	if (r->own_mem)
		pymem_close(r->mem);
	free(r);
}

const char *pyreader_version(const struct pyreader *r)
{
	return r->rt.version;
}

void pyreader_stats(const struct pyreader *r, struct pyreader_stats *s)
{
	*s = r->stats;
}

/* ---- stacks -----------------------------------------------------------------------------------
 */

static int stack_text(struct pyreader *r, const struct py_thread *t, struct py_stack *s)
{
	char text[256];

	s->tid = t->tid;
	memcpy(s->name, t->name, sizeof(s->name));
	s->line = calloc((size_t)t->nframes + 1, sizeof(char *));
	if (!s->line)
		return -ENOMEM;
	for (int i = 0; i < t->nframes; i++) {
		int err = py_frame_text(&r->rt, &t->frame[i], text, sizeof(text));

		if (err && pybatch_fatal(r->batch, err))
			return err;
		/* It has just returned: the ones outside of it may still be there. */
		s->line[s->nlines] = strdup(err ? "?" : text);
		if (!s->line[s->nlines])
			return -ENOMEM;
		s->nlines++;
	}
	return 0;
}

int pyreader_stacks(struct pyreader *r, struct py_stack **out, size_t *n)
{
	struct py_threads t;
	struct py_stack *s;
	int err;

	*out = NULL;
	*n = 0;
	pymem_budget(r->mem, 0, 0);
	err = pyreader_threads(r, true, &t);
	if (err)
		return err;
	s = calloc(t.n + 1, sizeof(*s));
	if (!s)
		err = -ENOMEM;
	for (size_t i = 0; i < t.n && !err; i++)
		err = stack_text(r, &t.t[i], &s[i]);
	if (err && s)
		py_stacks_free(s, t.n);
	if (!err) {
		*out = s;
		*n = t.n;
	}
	py_threads_free(&t);
	return err;
}

void py_stacks_free(struct py_stack *s, size_t n)
{
	for (size_t i = 0; s && i < n; i++) {
		for (int k = 0; k < s[i].nlines; k++)
			free(s[i].line[k]);
		free(s[i].line);
	}
	free(s);
}
