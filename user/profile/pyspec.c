// SPDX-License-Identifier: Apache-2.0
/* The `python:` section: where the server keeps its queues and its status table. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile_priv.h"
#include "util/cleanup.h"

#define FIELD(w) (1u << (w))

/* ---- pieces ------------------------------------------------------------------------------------
 */

static int read_short(const struct reader *r, const struct ynode *n, const char *what, bool glob,
		      char out[PY_NAME_MAX])
{
	__free char *copy = NULL;
	int rc = glob ? read_glob(r, n, what, &copy) : read_copy(r, n, what, &copy);

	if (rc)
		return rc;
	if (strlen(copy) >= PY_NAME_MAX)
		return bad_at(r, n->mark, "%s has more than %d bytes", what, PY_NAME_MAX - 1);
	memcpy(out, copy, strlen(copy) + 1);
	return 0;
}

/* One text, or a list of alternatives. */
static int one_or_list(const struct reader *r, const struct ynode *n, const char *what, size_t max,
		       size_t *count)
{
	*count = 1;
	if (n->kind != YNODE_LIST)
		return 0;
	*count = n->n;
	return need_list(r, n, what, max);
}

static const struct ynode *nth(const struct ynode *n, size_t i)
{
	return n->kind == YNODE_LIST ? n->item[i] : n;
}

static int read_alts(const struct reader *r, const struct ynode *n, const char *what,
		     unsigned allowed, unsigned needed, struct py_alts *out)
{
	size_t count = 0;
	int rc = one_or_list(r, n, what, PY_MAX_ALTS, &count);

	for (size_t i = 0; !rc && i < count; i++) {
		rc = read_py_query(r, nth(n, i), what, allowed, needed, &out->query[i]);
		if (!rc)
			out->n++;
	}
	return rc;
}

static int read_paths(const struct reader *r, const struct ynode *n, const char *what,
		      struct py_path out[PY_MAX_ALTS], int *nout)
{
	size_t count = 0;
	int rc = one_or_list(r, n, what, PY_MAX_ALTS, &count);

	for (size_t i = 0; !rc && i < count; i++) {
		rc = read_py_path(r, nth(n, i), what, &out[i]);
		if (!rc)
			(*nout)++;
	}
	return rc;
}

/* ---- root --------------------------------------------------------------------------------------
 */

static int read_root(const struct reader *r, const struct ynode *map, struct py_root *out)
{
	static const char *const keys[] = {"frame", "type", "local", NULL};
	struct py_path local;
	struct ynode *n;
	int rc = need_map(r, map, "root");

	snprintf(out->local, sizeof(out->local), "self");
	if (!rc)
		rc = read_keys(r, map, "root", keys);
	if (!rc)
		rc = need_key(r, map, "root", "frame", &n);
	if (!rc)
		rc = read_short(r, n, "frame", true, out->frame);
	n = ynode_get(map, "type");
	if (!rc && n)
		rc = read_short(r, n, "type", true, out->type);
	n = ynode_get(map, "local");
	if (rc || !n)
		return rc;
	rc = read_py_path(r, n, "local", &local);
	if (!rc && local.nsteps)
		rc = bad_at(r, n->mark, "local is a variable's name: drop what follows \"%s\"",
			    local.head);
	if (!rc)
		memcpy(out->local, local.head, sizeof(out->local));
	return rc;
}

static int read_roots(const struct reader *r, const struct ynode *n, struct profile_python *py)
{
	size_t count = 0;
	int rc = one_or_list(r, n, "root", PY_MAX_ROOTS, &count);

	for (size_t i = 0; !rc && i < count; i++) {
		rc = read_root(r, nth(n, i), &py->root[i]);
		if (!rc)
			py->nroots++;
	}
	return rc;
}

/* A query of the root starts at a local that some root names. */
static int check_heads(const struct reader *r, const struct profile_python *py,
		       const struct ynode *n, const struct py_alts *alts)
{
	for (int i = 0; i < alts->n; i++) {
		const char *head = alts->query[i].path.head;
		struct profile_mark mark = nth(n, (size_t)i)->mark;
		bool known = false;

		for (int k = 0; k < py->nroots; k++)
			known |= !strcmp(py->root[k].local, head);
		if (!known)
			return bad_at(r, mark,
				      "\"%s\" is not the root: the path begins with \"%s\", the "
				      "root's local",
				      head, py->root[0].local);
	}
	return 0;
}

/* ---- queues and tables -------------------------------------------------------------------------
 */

/* "waiting", or "waiting?" for one that may not be there. */
static int queue_name(const struct reader *r, const struct ynode *key, char out[16], bool *optional)
{
	size_t len = strlen(key->text);

	static const char *const kinds[] = {"bootstrap", "waiting", "inflight"};
	bool known = false;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		known |= strstr(key->text, kinds[i]) != NULL;
	if (!known)
		return bad_at(r, key->mark,
			      "queue \"%.32s\": its name says which stage it is: it holds "
			      "bootstrap, waiting or inflight",
			      key->text);
	*optional = key->text[len - 1] == '?';
	len -= *optional;
	if (strcspn(key->text, "?") != len)
		return bad_at(r, key->mark,
			      "queue \"%.32s\": one ? at its end says that some versions of the "
			      "server do not have it",
			      key->text);
	if (len > 15)
		return bad_at(r, key->mark, "queue \"%.32s\": a name of more than 15 bytes",
			      key->text);
	snprintf(out, 16, "%.*s", (int)len, key->text);
	return 0;
}

static int read_queues(const struct reader *r, const struct ynode *map, struct profile_python *py)
{
	const unsigned allowed = FIELD(PY_ROOM) | FIELD(PY_RID) | FIELD(PY_SENT) | FIELD(PY_TOTAL);
	bool always = false;
	char what[40];
	int rc = need_map(r, map, "queues");

	if (!rc && !map->n)
		rc = bad_at(r, map->mark, "queues: empty: name at least one");
	if (!rc && map->n > PY_MAX_QUEUES)
		rc = bad_at(r, ynode_key(map, PY_MAX_QUEUES)->mark, "queues: more than %d",
			    PY_MAX_QUEUES);
	for (size_t i = 0; !rc && i < map->n; i++) {
		const struct ynode *key = ynode_key(map, i);

		rc = queue_name(r, key, py->queue[i].name, &py->queue[i].optional);
		for (size_t k = 0; !rc && k < i; k++)
			if (!strcmp(py->queue[k].name, py->queue[i].name))
				rc = bad_at(r, key->mark,
					    "queue \"%s\" a second time: give it another name that "
					    "says its stage, such as %.9s2, or make its query an "
					    "alternative of the first",
					    py->queue[i].name, py->queue[i].name);
		always |= !py->queue[i].optional;
		snprintf(what, sizeof(what), "queue %s", py->queue[i].name);
		if (!rc)
			rc = read_alts(r, ynode_value(map, i), what, allowed, FIELD(PY_ROOM),
				       &py->queue[i].alts);
		if (!rc)
			rc = check_heads(r, py, ynode_value(map, i), &py->queue[i].alts);
		py->nqueues++;
	}
	if (!rc && !always)
		rc = bad_at(r, map->mark,
			    "queues: each has a ?: one that every version has must tell whether "
			    "this is the server");
	return rc;
}

static int read_tables(const struct reader *r, const struct ynode *map, struct profile_python *py)
{
	const struct {
		const char *key;
		unsigned allowed, needed;
		struct py_alts *out;
	} tables[] = {
		{"status", FIELD(PY_ROOM) | FIELD(PY_STATUS), FIELD(PY_ROOM) | FIELD(PY_STATUS),
		 &py->status},
		{"announced", FIELD(PY_ROOM) | FIELD(PY_SEEN) | FIELD(PY_NEED),
		 FIELD(PY_ROOM) | FIELD(PY_SEEN), &py->announced},
		{"backlog", FIELD(PY_ROOM), FIELD(PY_ROOM), &py->backlog},
	};
	int rc = 0;

	for (size_t i = 0; !rc && i < ARRAY_SIZE(tables); i++) {
		const struct ynode *n = ynode_get(map, tables[i].key);

		if (!n)
			continue;
		rc = read_alts(r, n, tables[i].key, tables[i].allowed, tables[i].needed,
			       tables[i].out);
		if (!rc)
			rc = check_heads(r, py, n, tables[i].out);
	}
	return rc;
}

static int read_states(const struct reader *r, const struct ynode *map, struct profile_python *py)
{
	static const char *const keys[] = {"failed", "bootstrap", "ready", "moving", "done", NULL};
	int64_t *const values[] = {&py->states.failed, &py->states.bootstrap, &py->states.ready,
				   &py->states.moving, &py->states.done};
	int rc = need_map(r, map, "states");

	if (!rc)
		rc = read_keys(r, map, "states", keys);
	if (!rc && !py->status.n)
		rc = bad_at(r, map->mark, "states without status: say where the status table is");
	for (size_t i = 0; !rc && i < ARRAY_SIZE(values); i++) {
		const struct ynode *n = ynode_get(map, keys[i]);

		if (!n)
			continue;
		if (n->kind != YNODE_SCALAR || !number_parse(n->text, values[i]))
			rc = bad_at(r, n->mark,
				    "%s must be a whole number: the one in the status table (of a "
				    "member of an Enum, its value)",
				    keys[i]);
		/* -1 is HELD_NO_ENTRY in events: a table that holds it could not be told apart */
		if (!rc && *values[i] < 0)
			rc = bad_at(r, n->mark, "%s: a state's value is 0 or more", keys[i]);
		for (size_t k = 0; !rc && k < i; k++)
			if (*values[k] == *values[i])
				rc = bad_at(r, n->mark,
					    "%s and %s are both %lld: leave the one out that the "
					    "server does not tell apart",
					    keys[k], keys[i], (long long)*values[i]);
	}
	return rc;
}

/* ---- threads -----------------------------------------------------------------------------------
 */

static int read_worker(const struct reader *r, const struct ynode *map, struct py_thread_spec *t)
{
	static const char *const keys[] = {"frame", "idle", "busy", "serves", "behind", NULL};
	const struct ynode *n;
	int rc = read_keys(r, map, "worker", keys);

	n = ynode_get(map, "busy");
	if (!rc && n)
		rc = read_paths(r, n, "busy", t->busy, &t->nbusy);
	n = ynode_get(map, "serves");
	if (!rc && n)
		rc = read_paths(r, n, "serves", t->serves, &t->nserves);
	n = ynode_get(map, "behind");
	if (!rc && n)
		rc = read_alts(r, n, "behind", FIELD(PY_ROOM), FIELD(PY_ROOM), &t->behind);
	n = ynode_get(map, "idle");
	if (!rc && n)
		rc = read_short(r, n, "idle", true, t->idle);
	if (!rc && n && !t->nbusy)
		rc = bad_at(r, n->mark, "idle without busy: say which local holds the room");
	if (!rc && !t->nbusy && !t->nserves && !t->behind.n)
		rc = bad_at(r, map->mark,
			    "worker: nothing to look at: give busy, serves or behind");
	return rc;
}

static int read_thread(const struct reader *r, const struct ynode *map, enum py_thread_role role,
		       struct py_thread_spec *t)
{
	static const char *const keys[] = {"frame", NULL};
	const char *what = role == PY_THREAD_WORKER ? "worker" : "bootstrap";
	struct ynode *n;
	int rc = need_map(r, map, what);

	t->role = role;
	t->line = map->mark.line;
	t->col = map->mark.col;
	if (!rc)
		rc = role == PY_THREAD_WORKER ? read_worker(r, map, t)
					      : read_keys(r, map, what, keys);
	if (!rc)
		rc = need_key(r, map, what, "frame", &n);
	if (!rc)
		rc = read_short(r, n, "frame", true, t->frame);
	return rc;
}

static int read_threads(const struct reader *r, const struct ynode *map, struct profile_python *py)
{
	static const char *const keys[] = {"worker", "bootstrap", NULL};
	int rc = need_map(r, map, "threads");

	if (!rc)
		rc = read_keys(r, map, "threads", keys);
	for (size_t i = 0; !rc && i < map->n; i++) {
		const struct ynode *n = ynode_value(map, i);
		enum py_thread_role role = strcmp(ynode_key(map, i)->text, "worker") != 0
						   ? PY_THREAD_BOOTSTRAP
						   : PY_THREAD_WORKER;
		size_t count = 0;

		rc = one_or_list(r, n, ynode_key(map, i)->text, PY_MAX_THREADS, &count);
		for (size_t k = 0; !rc && k < count; k++) {
			if (py->nthreads == PY_MAX_THREADS)
				return bad_at(r, nth(n, k)->mark, "threads: more than %d",
					      PY_MAX_THREADS);
			rc = read_thread(r, nth(n, k), role, &py->thread[py->nthreads++]);
		}
	}
	return rc;
}

/* ---- the section -------------------------------------------------------------------------------
 */

int read_python(const struct reader *r, const struct ynode *map)
{
	static const char *const keys[] = {"root",    "queues", "status",  "announced",
					   "backlog", "states", "threads", NULL};
	struct profile_python *py = calloc(1, sizeof(*py));
	struct ynode *n;
	int rc;

	if (!py)
		return no_memory(r);
	r->profile->python = py; /* freed with the profile */
	py->line = map->mark.line;
	py->col = map->mark.col;
	py->states.failed = py->states.bootstrap = py->states.ready = PY_STATE_UNSET;
	py->states.moving = py->states.done = PY_STATE_UNSET;
	rc = need_map(r, map, "python");
	if (!rc)
		rc = read_keys(r, map, "python", keys);
	if (!rc)
		rc = need_key(r, map, "python", "root", &n);
	if (!rc)
		rc = read_roots(r, n, py);
	if (!rc)
		rc = need_key(r, map, "python", "queues", &n);
	if (!rc)
		rc = read_queues(r, n, py);
	if (!rc)
		rc = read_tables(r, map, py);
	n = ynode_get(map, "states");
	if (!rc && n)
		rc = read_states(r, n, py);
	n = ynode_get(map, "threads");
	if (!rc && n)
		rc = read_threads(r, n, py);
	return rc;
}
