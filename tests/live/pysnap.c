// SPDX-License-Identifier: Apache-2.0
/*
 * pysnap PID PROBES REPEAT [MS]
 *
 * Snapshots of a server's own view, one JSON object a line, MS milliseconds apart (0 unless given),
 * all by the same reader; then a line of its statistics.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "python/snapshot.h"

static json_t *requests(const struct py_snapshot *s, const struct profile_python *py)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->nrequest; i++) {
		const struct pyview_request *x = &s->request[i];

		json_array_append_new(list,
				      json_pack("[s s s I I]", py->queue[x->queue].name, x->room,
						x->rid, (json_int_t)x->sent, (json_int_t)x->total));
	}
	return list;
}

static json_t *status(const struct py_snapshot *s)
{
	json_t *map = json_object();

	for (size_t i = 0; i < s->nstatus; i++)
		json_object_set_new(map, s->status[i].room, json_integer(s->status[i].code));
	return map;
}

static json_t *rest(const struct py_snapshot *s)
{
	json_t *o = json_object(), *announced = json_array(), *waiting = json_array(),
	       *workers = json_array();

	for (size_t i = 0; i < s->nannounced; i++)
		json_array_append_new(announced,
				      json_pack("[s i i]", s->announced[i].room,
						s->announced[i].seen, s->announced[i].need));
	for (size_t i = 0; i < s->nwaiting; i++)
		json_array_append_new(waiting, json_string(s->waiting[i].room));
	for (size_t i = 0; i < s->nworker; i++)
		json_array_append_new(workers, json_string(s->worker[i].room));
	json_object_set_new(o, "announced", announced);
	json_object_set_new(o, "waiting", waiting);
	json_object_set_new(o, "workers", workers);
	return o;
}

static int print(const struct py_snapshot *s, const struct profile_python *py)
{
	json_t *o = rest(s);
	int err;

	json_object_set_new(o, "stable", json_boolean(s->stable));
	json_object_set_new(o, "complete", json_boolean(s->complete));
	json_object_set_new(o, "unstable", json_integer((json_int_t)s->unstable));
	json_object_set_new(o, "bootstrap", json_boolean(s->bootstrap_alive));
	json_object_set_new(o, "took_us", json_integer((json_int_t)(s->took_ns / 1000)));
	json_object_set_new(o, "requests", requests(s, py));
	json_object_set_new(o, "status", status(s));
	err = json_dumpf(o, stdout, JSON_COMPACT) || putchar('\n') == EOF || fflush(stdout);
	json_decref(o);
	return err;
}

static int snapshots(struct pyreader *r, const struct profile *p, long n, long ms)
{
	struct pyreader_stats stats;

	for (long i = 0; i < n; i++) {
		struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
		struct py_snapshot s;
		int err = pyreader_snapshot(r, &s);

		if (err) {
			fprintf(stderr, "pysnap: %s\n", strerror(-err));
			return 1;
		}
		err = print(&s, p->python);
		py_snapshot_free(&s);
		if (err)
			return 1;
		nanosleep(&pause, NULL);
	}
	pyreader_stats(r, &stats);
	printf("{\"snapshots\":%llu,\"unstable\":%llu,\"mean_us\":%llu,\"max_us\":%llu}\n",
	       (unsigned long long)stats.snapshots, (unsigned long long)stats.unstable,
	       (unsigned long long)(stats.ns / (stats.snapshots ? stats.snapshots : 1) / 1000),
	       (unsigned long long)(stats.max_ns / 1000));
	return 0;
}

int main(int argc, char **argv)
{
	struct profile_file *pf = NULL;
	struct pyreader *r = NULL;
	struct sp_err why = {0};
	int rc = 1;

	if (argc < 4) {
		fprintf(stderr, "usage: pysnap PID PROBES REPEAT [MS]\n");
		return 2;
	}
	if (profile_load(argv[2], &pf, &why) ||
	    pyreader_open((pid_t)atol(argv[1]), &pf->profiles[0], &r, &why))
		fprintf(stderr, "pysnap: %s\n", why.text);
	else
		rc = snapshots(r, &pf->profiles[0], atol(argv[3]), argc > 4 ? atol(argv[4]) : 0);
	pyreader_close(r);
	profile_free(pf);
	return rc;
}
