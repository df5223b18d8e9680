/* SPDX-License-Identifier: Apache-2.0 */
/* Everything in tests/unit/data/py_target.py, as text; and the images recorded from it. */
#ifndef TEST_PY_WALK_H
#define TEST_PY_WALK_H

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>

#include "python/frame.h"
#include "util/cleanup.h"

#define DATA "tests/unit/data/"

#define WALK_TEXT  64 /* as TEXT in py_target.py */
#define WALK_DEPTH 8

static void walk_value(struct py_runtime *rt, uint64_t obj, FILE *out, int depth, char **names);

static void walk_error(FILE *out, int err)
{
	fprintf(out, "!%s", strerrorname_np(-err));
}

static void walk_elements(struct py_runtime *rt, uint64_t obj, enum py_type t, FILE *out, int depth)
{
	const char *ends = t == PY_T_LIST ? "[]" : t == PY_T_TUPLE ? "()" : "<>";
	__free uint64_t *item = NULL;
	size_t n;
	int err = py_elements(rt, obj, &item, &n, 0);

	if (err) {
		walk_error(out, err);
		return;
	}
	fputc(ends[0], out);
	for (size_t i = 0; i < n && i < 4096; i++) {
		fputs(i ? ", " : "", out);
		walk_value(rt, item[i], out, depth + 1, NULL);
	}
	fputc(ends[1], out);
}

static void walk_dict(struct py_runtime *rt, uint64_t obj, FILE *out, int depth)
{
	__free struct py_entry_addr *e = NULL;
	size_t n;
	int err = py_entries(rt, obj, &e, &n, 0);

	if (err) {
		walk_error(out, err);
		return;
	}
	fputc('{', out);
	for (size_t i = 0; i < n && i < 4096; i++) {
		fputs(i ? ", " : "", out);
		walk_value(rt, e[i].key, out, depth + 1, NULL);
		fputs(": ", out);
		walk_value(rt, e[i].value, out, depth + 1, NULL);
	}
	fputc('}', out);
}

static void walk_int(struct py_runtime *rt, uint64_t obj, FILE *out)
{
	int64_t v = 0;
	bool neg = false;
	int err = py_int(rt, obj, &v, &neg);

	if (err == -ERANGE)
		fputs("range", out);
	else if (err)
		walk_error(out, err);
	else if (neg)
		fprintf(out, "%" PRId64, v);
	else
		fprintf(out, "%" PRIu64, (uint64_t)v);
}

static void walk_str(struct py_runtime *rt, uint64_t obj, FILE *out)
{
	char text[WALK_TEXT];
	size_t full = 0;
	int err = py_str(rt, obj, text, sizeof(text), &full);

	if (err)
		walk_error(out, err);
	else
		fprintf(out, "\"%s\"/%zu", text, full);
}

static void walk_instance(struct py_runtime *rt, uint64_t obj, const char *type, FILE *out,
			  int depth, char **names)
{
	fprintf(out, "%s(", type);
	for (int i = 0; names && names[i]; i++) {
		uint64_t value;
		int err = py_attr(rt, obj, names[i], &value);

		fprintf(out, "%s%s=", i ? " " : "", names[i]);
		if (err == -ENODATA)
			fputc('-', out);
		else if (err)
			walk_error(out, err);
		else
			walk_value(rt, value, out, depth + 1, NULL);
	}
	fputc(')', out);
}

static void walk_value(struct py_runtime *rt, uint64_t obj, FILE *out, int depth, char **names)
{
	char type[64];
	enum py_type t;
	int err = depth > WALK_DEPTH ? -ELOOP : py_type_of(rt, obj, &t, type, sizeof(type));

	if (err)
		walk_error(out, err);
	else if (t == PY_T_NONE)
		fputs("None", out);
	else if (t == PY_T_INT)
		walk_int(rt, obj, out);
	else if (t == PY_T_STR)
		walk_str(rt, obj, out);
	else if (t == PY_T_DICT)
		walk_dict(rt, obj, out, depth);
	else if (t == PY_T_OTHER)
		walk_instance(rt, obj, type, out, depth, names);
	else
		walk_elements(rt, obj, t, out, depth);
}

/* One case: (name, value) or (name, value, names of attributes). */
static void walk_case(struct py_runtime *rt, uint64_t obj, FILE *out)
{
	__free uint64_t *part = NULL, *name = NULL;
	char title[64], text[64][32], *names[65] = {0};
	size_t n, count = 0;

	if (py_elements(rt, obj, &part, &n, 3) || n < 2 ||
	    py_str(rt, part[0], title, sizeof(title), NULL))
		return;
	if (n == 3 && py_elements(rt, part[2], &name, &count, 64))
		return;
	for (size_t i = 0; i < count; i++) {
		if (py_str(rt, name[i], text[i], sizeof(text[i]), NULL))
			return;
		names[i] = text[i];
	}
	fprintf(out, "%s ", title);
	walk_value(rt, part[1], out, 0, names);
	fputc('\n', out);
}

static void walk_cases(struct py_runtime *rt, const struct py_threads *t, FILE *out)
{
	for (size_t i = 0; i < t->n; i++) {
		for (int k = 0; k < t->t[i].nframes; k++) {
			__free uint64_t *item = NULL;
			struct py_code code;
			uint64_t cases;
			size_t n;

			if (py_code(rt, t->t[i].frame[k].code, &code) ||
			    strcmp(code.name, "hold") ||
			    py_local(rt, &t->t[i].frame[k], "cases", &cases) ||
			    py_elements(rt, cases, &item, &n, 1024))
				continue;
			for (size_t c = 0; c < n; c++)
				walk_case(rt, item[c], out);
		}
	}
}

/* The value of a case; 0: none of that name. */
static inline uint64_t walk_find(struct py_runtime *rt, const char *name)
{
	struct py_threads t;
	uint64_t found = 0;

	if (py_threads(rt, 0, false, &t))
		return 0;
	for (size_t i = 0; i < t.n && !found; i++) {
		for (int k = 0; k < t.t[i].nframes && !found; k++) {
			__free uint64_t *item = NULL;
			uint64_t cases;
			size_t n = 0;

			if (py_local(rt, &t.t[i].frame[k], "cases", &cases) ||
			    py_elements(rt, cases, &item, &n, 1024))
				continue;
			for (size_t c = 0; c < n && !found; c++) {
				__free uint64_t *part = NULL;
				char title[64];
				size_t parts;

				if (!py_elements(rt, item[c], &part, &parts, 3) && parts > 1 &&
				    !py_str(rt, part[0], title, sizeof(title), NULL) &&
				    !strcmp(title, name))
					found = part[1];
			}
		}
	}
	py_threads_free(&t);
	return found;
}

static void walk_locals(struct py_runtime *rt, const struct py_frame *f, const char *func,
			FILE *out)
{
	static const char *const name[] = {"self", "queue", "room", "free", "none"};

	fprintf(out, "local %s", func);
	for (size_t i = 0; i < ARRAY_SIZE(name); i++) {
		uint64_t v;
		int err = py_local(rt, f, name[i], &v);

		fprintf(out, " %s=", name[i]);
		if (err == -ENODATA)
			fputc('-', out);
		else if (err)
			walk_error(out, err);
		else
			walk_value(rt, v, out, 0, NULL);
	}
	fputc('\n', out);
}

static void walk_thread(struct py_runtime *rt, const struct py_thread *t, FILE *out)
{
	if (!strcmp(t->name, "reporter")) /* it knows not where it will wait */
		return;
	fprintf(out, "thread %u %s\n", t->tid, t->name);
	for (int k = 0; k < t->nframes; k++) {
		char text[512];
		int err = py_frame_text(rt, &t->frame[k], text, sizeof(text));

		fputs("  at ", out);
		if (err)
			walk_error(out, err);
		else
			fputs(text, out);
		fputc('\n', out);
	}
}

static void walk_worker(struct py_runtime *rt, const struct py_thread *t, FILE *out)
{
	static const char *const func[] = {"serve", "inner"};

	for (size_t i = 0; i < ARRAY_SIZE(func); i++) {
		for (int k = 0; k < t->nframes; k++) {
			struct py_code code;

			if (!py_code(rt, t->frame[k].code, &code) && !strcmp(code.name, func[i]))
				walk_locals(rt, &t->frame[k], func[i], out);
		}
	}
}

/* 0 and the text, to be freed; -errno of the walk over the threads. */
static inline int walk(struct py_runtime *rt, pid_t pid, char **text)
{
	struct py_threads t;
	size_t len;
	int err = py_threads(rt, pid, true, &t);
	FILE *out = open_memstream(text, &len);

	if (!out)
		abort();
	walk_cases(rt, &t, out);
	for (size_t i = 0; i < t.n; i++)
		walk_thread(rt, &t.t[i], out);
	if (t.n > 1) /* the first worker */
		walk_worker(rt, &t.t[1], out);
	fclose(out);
	py_threads_free(&t);
	return err;
}

/* ---- recorded images: minor, address of _PyRuntime, then pieces ------------------------------ */

struct piece_head {
	uint64_t addr : 48, len : 16;
};

/* NULL: no such file, or not one of ours. */
static inline struct pymem *image_load(const char *path, struct py_runtime *rt)
{
	__fclose FILE *f = fopen(path, "re");
	struct pymem *m = pymem_image();
	struct piece_head h;

	if (!f || !m || fread(&h, sizeof(h), 1, f) != 1 ||
	    py_runtime_at(m, (int)h.len, h.addr, rt)) {
		if (m)
			pymem_close(m);
		return NULL;
	}
	while (fread(&h, sizeof(h), 1, f) == 1) {
		__free uint8_t *bytes = malloc(h.len);

		if (!bytes || fread(bytes, 1, h.len, f) != h.len ||
		    pymem_image_add(m, h.addr, bytes, h.len)) {
			pymem_close(m);
			return NULL;
		}
	}
	return m;
}

static inline struct pymem *load(int minor, struct py_runtime *rt)
{
	char path[64];
	struct pymem *m;

	snprintf(path, sizeof(path), DATA "py-3.%d.bin", minor);
	m = image_load(path, rt);
	if (!m)
		fail_msg("%s: missing or broken", path);
	return m;
}

static const int minors[] = {10, 11, 12, 13};

#endif
