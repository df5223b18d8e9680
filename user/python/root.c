// SPDX-License-Identifier: Apache-2.0
/* The object from which all paths begin. */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "python/reader.h"
#include "util/clock.h"

static int try_frame(struct pyreader *r, const struct py_frame *f, const struct py_root *spec)
{
	enum py_type kind;
	char name[PY_NAME_MAX];
	uint64_t obj, type;
	int err = py_local(&r->rt, f, spec->local, &obj);

	if (!err)
		err = py_type_of(&r->rt, obj, &kind, name, sizeof(name));
	if (!err)
		err = pymem_u64(r->mem, obj + PY_OB_TYPE, &type);
	if (err)
		return err;
	if (spec->type[0] && fnmatch(spec->type, name, 0) != 0)
		return -ENODATA;
	if (r->root.obj != obj || r->root.type != type) { /* another server, for all we know */
		memset(r->queue_alt, 0, sizeof(r->queue_alt));
		r->status_alt = r->announced_alt = r->backlog_alt = 0;
	}
	r->root.seen_ns = mono_ns();
	if (r->root.found != obj)
		r->root.first_ns = r->root.seen_ns;
	r->root.obj = r->root.found = obj;
	r->root.type = type;
	r->root.local = spec->local;
	memcpy(r->root.name, name, sizeof(name));
	return 0;
}

static int search(struct pyreader *r, const struct py_threads *t)
{
	int torn = -ENOENT;

	for (size_t i = 0; i < t->n; i++)
		for (int f = 0; f < t->t[i].nframes; f++) {
			const struct pycode *c = pycodes_get(r, t->t[i].frame[f].code);

			for (int s = 0; c && s < r->spec->nroots; s++) {
				int err;

				if (!(c->roots >> s & 1))
					continue;
				err = try_frame(r, &t->t[i].frame[f], &r->spec->root[s]);
				if (!err || pybatch_fatal(r->batch, err))
					return err;
				if (err == -EAGAIN || err == -EFAULT)
					torn = -EAGAIN;
			}
		}
	return torn;
}

static int not_found(const struct pyreader *r, size_t threads, struct sp_err *err)
{
	const struct py_root *root = &r->spec->root[0];

	return sp_err_set(
		err, SP_EXIT_FAIL, -ENOENT,
		"process %d: none of its %zu Python threads is in a frame %s%s with %s%s%s: "
		"the server is still starting, or the profile's python.root is for another "
		"one",
		(int)r->pid, threads, root->frame, r->spec->nroots > 1 ? " (or others)" : "",
		root->local, root->type[0] ? " of type " : "", root->type);
}

int pyroot_find(struct pyreader *r, struct sp_err *err)
{
	struct py_threads t;
	int rc = -EAGAIN;

	r->root.obj = 0;
	for (int i = 0; i < PY_TRIES && rc == -EAGAIN; i++) {
		rc = pyreader_threads(r, false, &t);
		if (rc)
			return rc;
		rc = pycodes_update(r, &t);
		if (!rc)
			rc = search(r, &t);
		if (rc == -ENOENT)
			not_found(r, t.n, err);
		py_threads_free(&t);
	}
	return rc;
}

int pyroot_check(struct pyreader *r)
{
	enum py_type kind;
	char name[PY_NAME_MAX] = "";
	uint64_t type;
	int err = pymem_u64(r->mem, r->root.obj + PY_OB_TYPE, &type);

	if (!err && type == r->root.type)
		err = py_type_of(&r->rt, r->root.obj, &kind, name, sizeof(name));
	else if (!err)
		err = -ENOENT;
	if (!err && strcmp(name, r->root.name) != 0)
		err = -ENOENT;
	return err && !pybatch_fatal(r->batch, err) ? -ENOENT : err;
}
