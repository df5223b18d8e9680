// SPDX-License-Identifier: Apache-2.0
/* Names of threads: sys.modules["threading"]._active maps pthread_self() to the Thread object. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "python/raw.h"
#include "python/threads.h"
#include "util/cleanup.h"

#define MODULE_DICT 16 /* PyModuleObject.md_dict, in 3.10 to 3.13 */

static int active_dict(struct py_runtime *rt, uint64_t *dict)
{
	const struct py_layout *l = &rt->lay;
	uint64_t interp, modules, module, names;
	int err = pymem_u64(rt->mem, rt->addr + l->runtime.interpreters_head, &interp);
	uint64_t next = interp;

	/* sys.modules of the main interpreter, which is the last of the list. */
	for (int i = 0; !err && next && i < PY_INTERPS_MAX; i++) {
		interp = next;
		err = pymem_u64(rt->mem, interp + l->interp.next, &next);
	}
	if (!err)
		err = pymem_u64(rt->mem, interp + l->interp.modules, &modules);
	if (!err)
		err = py_dict_find(rt, modules, "threading", &module);
	if (!err)
		err = pymem_u64(rt->mem, module + MODULE_DICT, &names);
	return err ? err : py_dict_find(rt, names, "_active", dict);
}

static int name_of(struct py_runtime *rt, uint64_t thread, char *buf, size_t len)
{
	uint64_t name;
	int err = py_attr(rt, thread, "_name", &name);

	return err ? err : py_str(rt, name, buf, len, NULL);
}

static void from_threading(struct py_runtime *rt, const struct py_ident *id, struct py_threads *t)
{
	__free struct py_entry_addr *e = NULL;
	uint64_t dict;
	size_t n;

	if (active_dict(rt, &dict) || py_entries(rt, dict, &e, &n, PY_THREADS_MAX))
		return;
	for (size_t i = 0; i < n; i++) {
		int64_t key;

		if (py_int(rt, e[i].key, &key, NULL))
			continue;
		for (size_t j = 0; j < t->n; j++)
			if (id[j].pthread == (uint64_t)key &&
			    name_of(rt, e[i].value, t->t[j].name, sizeof(t->t[j].name)))
				t->t[j].name[0] = 0;
	}
}

static FILE *open_comm(pid_t pid, uint32_t tid)
{
	char path[80];

	snprintf(path, sizeof(path), "/proc/%d/task/%u/comm", pid, tid);
	return fopen(path, "re");
}

static void from_comm(pid_t pid, struct py_thread *t)
{
	__fclose FILE *f = open_comm(pid, t->tid);

	if (!f || !fgets(t->name, sizeof(t->name), f))
		t->name[0] = 0;
	t->name[strcspn(t->name, "\n")] = 0;
}

void py_names(struct py_runtime *rt, pid_t pid, const struct py_ident *id, struct py_threads *t)
{
	from_threading(rt, id, t);
	for (size_t i = 0; i < t->n; i++)
		if (pid && t->t[i].tid && !t->t[i].name[0])
			from_comm(pid, &t->t[i]);
}
