// SPDX-License-Identifier: Apache-2.0
/*
 * pydump PID --frame GLOB --local NAME [--attrs A,B,...] [--repeat N] [--once]
 *
 * What user/python/ reads of a local variable of a live Python frame, as one line of JSON each
 * time: an int is {"!int": "5"}, a string a string, None null, a list an array, others {"!tuple":
 * [...]}, {"!deque": [...]},
 * {"!dict": [[key, value], ...]}. An instance is {"!type": NAME, "attrs": {...}} with those of the
 * named attributes that it has. {"!error": WHY}: it cannot be read; {"!unstable": WHY}: it changed
 * whenever it was read.
 *
 * An element is read after its container, so a container is read again after its elements, and
 * counts only if it is the same then.
 */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "python/frame.h"
#include "util/cleanup.h"

#define DEPTH_MAX 16
#define TRIES     3
#define ATTRS_MAX 256

struct dump {
	struct py_runtime rt;
	char *attr[ATTRS_MAX];
	int nattrs;
	bool once;
	int gone; /* -errno: nothing can be read any more */
};

static json_t *show(struct dump *d, uint64_t obj, int depth);

static json_t *why_not(struct dump *d, int err)
{
	if (err == -ESRCH || err == -EPERM)
		d->gone = err;
	return json_pack("{s:s}", err == -EAGAIN || err == -EFAULT ? "!unstable" : "!error",
			 strerrorname_np(-err));
}

static json_t *show_int(struct dump *d, uint64_t obj)
{
	char text[32];
	int64_t v;
	bool negative;
	int err = py_int(&d->rt, obj, &v, &negative);

	if (err)
		return why_not(d, err);
	if (negative)
		snprintf(text, sizeof(text), "%lld", (long long)v);
	else
		snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
	return json_pack("{s:s}", "!int", text);
}

static json_t *show_str(struct dump *d, uint64_t obj)
{
	char text[PY_STR_MAX];
	size_t full, chars = 0, len;
	json_t *j;
	int err = py_str(&d->rt, obj, text, sizeof(text), &full);

	if (err)
		return why_not(d, err);
	len = strlen(text);
	for (size_t i = 0; i < len; i++)
		chars += (text[i] & 0xc0) != 0x80;
	/* A shorter text than there is was cut by the buffer, or holds a NUL. */
	if (chars > full || (chars < full && len + 4 < sizeof(text)))
		return json_pack("{s:s}", "!error", "LENGTH");
	j = json_stringn(text, len);
	return j ? j : json_pack("{s:s}", "!error", "UTF-8");
}

static json_t *elements_once(struct dump *d, uint64_t obj, int depth, int *err)
{
	__free uint64_t *now = NULL, *then = NULL;
	json_t *list = json_array();
	size_t n, m;

	*err = py_elements(&d->rt, obj, &now, &n, 0);
	for (size_t i = 0; !*err && i < n; i++)
		json_array_append_new(list, show(d, now[i], depth + 1));
	if (*err || d->once)
		return list;
	*err = py_elements(&d->rt, obj, &then, &m, 0);
	if (!*err && (n != m || (n && memcmp(now, then, n * sizeof(*now)) != 0)))
		*err = -EAGAIN;
	return list;
}

static json_t *entries_once(struct dump *d, uint64_t obj, int depth, int *err)
{
	__free struct py_entry_addr *now = NULL, *then = NULL;
	json_t *list = json_array();
	size_t n, m;

	*err = py_entries(&d->rt, obj, &now, &n, 0);
	for (size_t i = 0; !*err && i < n; i++)
		json_array_append_new(list, json_pack("[o,o]", show(d, now[i].key, depth + 1),
						      show(d, now[i].value, depth + 1)));
	if (*err || d->once)
		return list;
	*err = py_entries(&d->rt, obj, &then, &m, 0);
	if (!*err && (n != m || (n && memcmp(now, then, n * sizeof(*now)) != 0)))
		*err = -EAGAIN;
	return list;
}

static json_t *attrs_once(struct dump *d, uint64_t obj, int depth, int *err)
{
	json_t *all = json_object();

	*err = 0;
	for (int i = 0; !*err && i < d->nattrs; i++) {
		uint64_t value, again;

		*err = py_attr(&d->rt, obj, d->attr[i], &value);
		if (!*err)
			json_object_set_new(all, d->attr[i], show(d, value, depth + 1));
		if (!*err && !d->once) {
			*err = py_attr(&d->rt, obj, d->attr[i], &again);
			if (*err == -ENODATA || (!*err && again != value))
				*err = -EAGAIN;
		} else if (*err == -ENODATA) {
			*err = 0;
		}
	}
	return all;
}

static json_t *show_container(struct dump *d, uint64_t obj, enum py_type type, const char *name,
			      int depth)
{
	static const char *const key[] = {
		[PY_T_LIST] = "!list",
		[PY_T_TUPLE] = "!tuple",
		[PY_T_DEQUE] = "!deque",
		[PY_T_DICT] = "!dict",
	};
	json_t *j = NULL;
	int err = -EAGAIN;

	for (int i = 0; i < TRIES && err == -EAGAIN && !d->gone; i++) {
		json_decref(j);
		if (type == PY_T_DICT)
			j = entries_once(d, obj, depth, &err);
		else if (type == PY_T_OTHER)
			j = attrs_once(d, obj, depth, &err);
		else
			j = elements_once(d, obj, depth, &err);
	}
	if (err) {
		json_decref(j);
		return why_not(d, err);
	}
	if (type == PY_T_OTHER)
		return json_pack("{s:s,s:o}", "!type", name, "attrs", j);
	return type == PY_T_LIST ? j : json_pack("{s:o}", key[type], j);
}

static json_t *show(struct dump *d, uint64_t obj, int depth)
{
	enum py_type type;
	char name[128];
	int err = py_type_of(&d->rt, obj, &type, name, sizeof(name));

	if (err)
		return why_not(d, err);
	if (depth > DEPTH_MAX)
		return json_pack("{s:s}", "!error", "DEPTH");
	switch (type) {
	case PY_T_NONE:
		return json_null();
	case PY_T_INT:
		return show_int(d, obj);
	case PY_T_STR:
		return show_str(d, obj);
	default:
		return show_container(d, obj, type, name, depth);
	}
}

static int find_local(struct dump *d, pid_t pid, const char *frame, const char *local,
		      uint64_t *value)
{
	struct py_threads threads;
	int err = py_threads(&d->rt, pid, false, &threads), found = -ENOENT;

	if (err)
		return err;
	for (size_t i = 0; i < threads.n; i++)
		for (int k = 0; found && k < threads.t[i].nframes; k++) {
			struct py_code code;

			if (!py_code(&d->rt, threads.t[i].frame[k].code, &code) &&
			    py_code_matches(&code, frame))
				found = py_local(&d->rt, &threads.t[i].frame[k], local, value);
		}
	py_threads_free(&threads);
	return found;
}

/* The same object again and again: its frame holds it. Its type is looked at each time, so that
 * another program under the same pid is noticed. */
static int dump_repeatedly(struct dump *d, uint64_t obj, long repeat)
{
	char first[128], name[128];
	enum py_type type;
	int err = py_type_of(&d->rt, obj, &type, first, sizeof(first));

	for (long i = 0; !err && i < repeat; i++) {
		__free char *text = NULL;
		json_t *j;

		pymem_budget(d->rt.mem, 0, 0);
		j = show(d, obj, 0);
		text = json_dumps(j, JSON_COMPACT | JSON_ENCODE_ANY);
		json_decref(j);
		err = d->gone ? d->gone : py_type_of(&d->rt, obj, &type, name, sizeof(name));
		if (!err && (!text || strcmp(first, name) != 0))
			err = -ESRCH;
		if (!err && (puts(text) < 0 || fflush(stdout)))
			return 0;
	}
	return err;
}

static int parse(int argc, char **argv, struct dump *d, const char **frame, const char **local,
		 long *repeat)
{
	static const struct option opts[] = {
		{"frame", required_argument, NULL, 'f'}, {"local", required_argument, NULL, 'l'},
		{"attrs", required_argument, NULL, 'a'}, {"repeat", required_argument, NULL, 'r'},
		{"once", no_argument, NULL, 'o'},        {0}};
	char *name, *save = NULL;
	int c;

	while ((c = getopt_long(argc, argv, "", opts, NULL)) != -1) {
		if (c == 'f')
			*frame = optarg;
		else if (c == 'l')
			*local = optarg;
		else if (c == 'r')
			*repeat = atol(optarg);
		else if (c == 'o')
			d->once = true;
		else if (c != 'a')
			return -EINVAL;
		else
			for (name = strtok_r(optarg, ",", &save); name && d->nattrs < ATTRS_MAX;
			     name = strtok_r(NULL, ",", &save))
				d->attr[d->nattrs++] = name;
	}
	return optind == argc - 1 && *frame && *local ? 0 : -EINVAL;
}

int main(int argc, char **argv)
{
	const char *frame = NULL, *local = NULL;
	struct pymem *mem = NULL;
	struct dump d = {0};
	struct sp_err why = {0};
	uint64_t obj;
	long repeat = 1;
	pid_t pid;
	int err;

	if (parse(argc, argv, &d, &frame, &local, &repeat)) {
		fprintf(stderr, "usage: pydump PID --frame GLOB --local NAME [--attrs A,B] "
				"[--repeat N] [--once]\n");
		return 2;
	}
	pid = (pid_t)atol(argv[optind]);
	err = pymem_open(pid, &mem, &why);
	if (!err)
		err = py_locate(pid, mem, &d.rt, &why);
	if (!err)
		err = find_local(&d, pid, frame, local, &obj);
	if (!err)
		err = dump_repeatedly(&d, obj, repeat);
	if (err)
		fprintf(stderr, "pydump: %s\n", why.text[0] ? why.text : strerror(-err));
	pymem_close(mem);
	return err ? 1 : 0;
}
