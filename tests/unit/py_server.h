/* SPDX-License-Identifier: Apache-2.0 */
/* A snapshot of tests/unit/data/py_server.py as text, and the profile that it takes. */
#ifndef TEST_PY_SERVER_H
#define TEST_PY_SERVER_H

#include "py_walk.h"
#include "python/reader.h"

#define SERVER_IMAGE DATA "py-server-3.%d.bin"

/* The first of each pair of alternatives is that of a server that this one is not. */
static const char server_yaml[] =
	"version: 1\n"
	"profiles:\n"
	"  - name: t\n"
	"    room: {type: u64}\n"
	"    libraries: {l: {file: \"lib.so\"}}\n"
	"    probes: [{name: p, library: l, symbol: f, event: {role: call}}]\n"
	"    python:\n"
	"      root:\n"
	"        - {frame: \"*.event_loop\", type: Server}\n"
	"        - {frame: \"*.event_loop\", type: Scheduler}\n"
	"      queues:\n"
	"        bootstrap:\n"
	"          - \"self.absent.queue[*] -> {room: bootstrap_room}\"\n"
	"          - \"self.bootstrap.queue[*] -> {room: bootstrap_room, rid: rid}\"\n"
	"        waiting:\n"
	"          - \"self.waiting_queue[*] -> {room: room, rid: rid}\"\n"
	"          - \"self.waiting_queue[*] -> {room: bootstrap_room, rid: rid}\"\n"
	"        inflight:\n"
	"          - \"self.no_queue[*] -> {room: bootstrap_room}\"\n"
	"          - \"self.inflight[*] -> {room: bootstrap_room, rid: rid, sent?: "
	"disagg_kv_sender.curr_idx, total?: disagg_kv_sender.num_kv_indices}\"\n"
	"      status:\n"
	"        - \"self.bootstrap.kv_manager.request_status{} -> {room: key, status: "
	"value.value}\"\n"
	"        - \"self.bootstrap.kv_manager.request_status{} -> {room: key, status: value}\"\n"
	"      announced: \"self.bootstrap.kv_manager.transfer_infos{} -> {room: key, seen: "
	"value#, need: value{0}.required_dst_info_num}\"\n"
	"      backlog: \"self.bootstrap.kv_manager.transfer_queues[*]._buf[*].room\"\n"
	"      threads:\n"
	"        worker: {frame: \"*.transfer_worker\", idle: get, busy: [nothing, room], "
	"serves: queue}\n"
	"        bootstrap: {frame: \"*.bootstrap_thread\"}\n";

static inline struct profile_file *server_profile(const char *yaml)
{
	struct profile_file *pf;
	struct sp_err err = {0};

	if (profile_parse("t.yaml", yaml, strlen(yaml), &pf, &err))
		fail_msg("%s", err.text);
	return pf;
}

static inline void server_text(const struct py_snapshot *s, const struct profile_python *py,
			       FILE *out)
{
	for (size_t i = 0; i < s->nrequest; i++)
		fprintf(out, "queue %s %s %s %" PRId64 "/%" PRId64 "\n",
			py->queue[s->request[i].queue].name, s->request[i].room, s->request[i].rid,
			s->request[i].sent, s->request[i].total);
	for (size_t i = 0; i < s->nstatus; i++)
		fprintf(out, "status %s %" PRId64 "\n", s->status[i].room, s->status[i].code);
	for (size_t i = 0; i < s->nannounced; i++)
		fprintf(out, "announced %s %d/%d\n", s->announced[i].room, s->announced[i].seen,
			s->announced[i].need);
	for (size_t i = 0; i < s->nwaiting; i++) {
		size_t k = 0;

		while (k < s->nworker && s->worker[k].serves != s->waiting[i].queue)
			k++;
		fprintf(out, "waiting %s ", s->waiting[i].room);
		fprintf(out, k < s->nworker && s->waiting[i].served ? "%zu\n" : "orphan\n", k);
	}
	for (size_t i = 0; i < s->nworker; i++)
		fprintf(out, "worker %zu %s\n", i, s->worker[i].room[0] ? s->worker[i].room : "-");
	if (s->bootstrap_declared && s->bootstrap_alive)
		fprintf(out, "bootstrap thread\n");
}

static inline struct pymem *server_load(int minor, struct py_runtime *rt)
{
	char path[64];
	struct pymem *m;

	snprintf(path, sizeof(path), SERVER_IMAGE, minor);
	m = image_load(path, rt);
	if (!m)
		fail_msg("%s: missing or broken", path);
	return m;
}

static inline char *text_of(const struct py_snapshot *s, const struct profile_python *py)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	server_text(s, py, out);
	fclose(out);
	return text;
}

static inline char *expected(int minor)
{
	char path[64];
	char *text = calloc(1, 65536);
	__fclose FILE *f = NULL;

	snprintf(path, sizeof(path), DATA "py-server-3.%d.txt", minor);
	f = fopen(path, "re");
	assert_non_null(f);
	assert_non_null(text);
	assert_in_range(fread(text, 1, 65535, f), 100, 65000);
	return text;
}

static inline uint64_t word_at(struct pyreader *r, uint64_t addr)
{
	uint64_t v = 0;

	assert_int_equal(pymem_u64(r->mem, addr, &v), 0);
	return v;
}

/* Address of the inflight list's elements, and of the list. */
static inline uint64_t inflight(struct pyreader *r, uint64_t *list)
{
	const struct py_path path = {.nsteps = 1, .step = {{.kind = PY_ATTR, .name = "inflight"}}};

	pymem_budget(r->mem, 0, 0);
	pybatch_begin(r->batch);
	assert_int_equal(pyquery_path(r->batch, r->root.obj, &path, list), 0);
	return word_at(r, *list + 24);
}

#endif
