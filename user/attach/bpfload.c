// SPDX-License-Identifier: Apache-2.0
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "attach/bpfload.h"
#include "attach/bpfload_calls.h"
#include "attach/bpfload_late.h"
#include "attach/bpfload_sock.h"
#include "attach/features.h"
#include "attach/kbtf.h"
#include "silentpin.skel.h"
#include "util/cleanup.h"
#include "util/log.h"

#define RING_BYTES   (16u << 20)
#define WAKE_BACKLOG (64u << 10) /* bytes; measured: facts in docs/performance.md */

static int print_libbpf(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	char line[1024];
	size_t n;

	if (level == LIBBPF_DEBUG || sp_verbosity < SP_DEBUG)
		return 0;
	vsnprintf(line, sizeof(line), fmt, ap);
	n = strlen(line);
	if (n && line[n - 1] == '\n')
		line[n - 1] = 0;
	pr_debug("%s", line);
	return 0;
}

static int no_backend(enum attach_backend force, const struct attach_features *f,
		      struct sp_err *err)
{
	if (force == BACKEND_MULTI)
		return sp_err_set(err, SP_EXIT_NOATTACH, -EOPNOTSUPP,
				  "uprobe_multi: %s: unset SILENTPIN_UPROBE", f->why_multi);
	if (force == BACKEND_PERF)
		return sp_err_set(err, SP_EXIT_NOATTACH, -EOPNOTSUPP,
				  "perf uprobes: %s: unset SILENTPIN_UPROBE", f->why_perf);
	return sp_err_set(err, SP_EXIT_NOATTACH, -EOPNOTSUPP,
			  "no kind of uprobe works: uprobe_multi: %s; perf uprobes: %s: see "
			  "`silentpin doctor`",
			  f->why_multi, f->why_perf);
}

static int configure(struct silentpin_bpf *skel, const struct profile *p,
		     const struct attach_opts *o, const struct attach_features *f,
		     enum attach_backend backend, const struct sock_load *sock)
{
	uint64_t dev, ino;
	int err;

	features_pidns(&dev, &ino);
	skel->rodata->sp_have_seq = f->seq;
	skel->rodata->sp_follow = o->follow_children;
	skel->rodata->sp_nprobes = (uint32_t)p->nprobes;
	for (int i = 0; i < p->nprobes; i++) {
		uint32_t bit = 1u << p->probes[i].prog.size_class;

		skel->rodata->sp_classes |= bit;
		if (p->probes[i].prog.flags & SP_P_FRAMES)
			skel->rodata->sp_frame_classes |= bit;
	}
	skel->rodata->sp_pidns_dev = dev;
	skel->rodata->sp_pidns_ino = ino;
	skel->rodata->sp_wake_backlog = WAKE_BACKLOG;
	err = bpf_map__set_max_entries(skel->maps.sp_ring,
				       o->ring_bytes ? o->ring_bytes : RING_BYTES);
	if (backend == BACKEND_MULTI)
		bpf_program__set_expected_attach_type(skel->progs.hit, SP_BPF_TRACE_UPROBE_MULTI);
	err = err ? err : calls_configure(skel, p, backend);
	return err ? err : sock_configure(skel, sock, p, backend);
}

static int fill_probes(const struct silentpin_bpf *skel, const struct profile *p)
{
	int fd = bpf_map__fd(skel->maps.sp_probes);

	for (uint32_t i = 0; i < (uint32_t)p->nprobes; i++) {
		struct sp_probe prog = p->probes[i].prog;

		prog.op_fetch = calls_fetch_of(&prog, prog.op_arg);
		prog.frame_fetch = calls_fetch_of(&prog, prog.frame_arg);
		prog.more_fetch = calls_fetch_of(&prog, prog.more_arg);
		prog.sock_fetch = calls_fetch_of(&prog, prog.sock_arg);
		if (bpf_map_update_elem(fd, &i, &prog, BPF_ANY))
			return -errno;
	}
	return 0;
}

static int attach_process(struct silentpin_bpf *skel)
{
	skel->links.on_fork = bpf_program__attach(skel->progs.on_fork);
	skel->links.on_exec = skel->links.on_fork ? bpf_program__attach(skel->progs.on_exec) : NULL;
	skel->links.on_exit = skel->links.on_exec ? bpf_program__attach(skel->progs.on_exit) : NULL;
	return skel->links.on_exit ? 0 : -errno;
}

static int load_fail(int rc, struct sp_err *err)
{
	if (rc == -EPERM || rc == -EACCES)
		return sp_err_set(err, SP_EXIT_NOATTACH, rc,
				  "BPF programs: not permitted: run as root, or give CAP_BPF and "
				  "CAP_PERFMON (`silentpin doctor` tells more)");
	return sp_err_set(err, SP_EXIT_NOATTACH, rc,
			  "BPF programs: cannot be loaded: %s: run with -v for the kernel's reason",
			  strerror(-rc));
}

/* types: the kernel's types as a file, or negative: libbpf finds them itself. */
static struct silentpin_bpf *open_object(int types)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts);
	char path[40];

	if (types < 0) {
		pr_debug("kernel types: %s: left to libbpf", strerror(-types));
		return silentpin_bpf__open();
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", types);
	opts.btf_custom_path = path;
	return silentpin_bpf__open_opts(&opts);
}

/* The largest maps, which the kernel takes 6 ms to clear: made by two threads. */
struct big_maps {
	uint32_t ring_bytes;
	int ring, polls, conns;
	pthread_t thread[2];
	bool running[2];
};

static void *make_ring_and_polls(void *arg)
{
	struct big_maps *m = arg;

	m->ring = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "sp_ring", 0, 0, m->ring_bytes, NULL);
	m->polls = bpf_map_create(BPF_MAP_TYPE_HASH, "sp_polls", sizeof(struct sp_poll_key),
				  sizeof(struct sp_poll), SP_MAX_POLLS, NULL);
	return NULL;
}

static void *make_conns(void *arg)
{
	struct big_maps *m = arg;

	m->conns = sock_make_conns();
	return NULL;
}

static void big_maps_begin(struct big_maps *m, const struct attach_opts *o, bool sockets)
{
	*m = (struct big_maps){
		.ring_bytes = o->ring_bytes ? o->ring_bytes : RING_BYTES,
		.ring = -1,
		.polls = -1,
		.conns = -1,
	};
	m->running[0] = !pthread_create(&m->thread[0], NULL, make_ring_and_polls, m);
	m->running[1] = sockets && !pthread_create(&m->thread[1], NULL, make_conns, m);
}

/* fd is closed; where it is none, libbpf makes the map. */
static void use_map(struct bpf_map *map, int fd)
{
	if (fd < 0)
		return;
	if (map && bpf_map__reuse_fd(map, fd))
		pr_debug("map %s: made anew", bpf_map__name(map));
	close(fd);
}

/* skel NULL: it could not be opened. */
static void big_maps_use(struct big_maps *m, const struct silentpin_bpf *skel)
{
	for (size_t i = 0; i < ARRAY_SIZE(m->thread); i++)
		if (m->running[i])
			pthread_join(m->thread[i], NULL);
	use_map(skel ? skel->maps.sp_ring : NULL, m->ring);
	use_map(skel ? skel->maps.sp_polls : NULL, m->polls);
	use_map(skel ? skel->maps.sp_conns : NULL, m->conns);
}

/* The object, its maps being made while the kernel's types are looked through. *types as in
 * open_object: to be closed after the load. */
static int prepare(struct bpfload *b, const struct profile *p, const struct attach_opts *o,
		   const struct attach_features *f, enum attach_backend backend, int *types)
{
	struct sock_load sock = {.how = sock_how(p, o)};
	struct big_maps big;
	size_t len;
	const void *elf = silentpin_bpf__elf_bytes(&len);
	int rc = -ENOMEM;

	big_maps_begin(&big, o, sock.how != SOCKETS_NONE);
	sock_wants(&sock);
	*types = kbtf_open(elf, len, &sock.find);
	if (*types < 0)
		sock_wants_libbpf(&sock);
	b->late = sock.how || calls_want_each(p) ? late_open(sock.func) : NULL;
	b->skel = open_object(*types);
	b->how = sock.how;
	if (b->skel)
		rc = configure(b->skel, p, o, f, backend, &sock);
	big_maps_use(&big, b->skel);
	return rc;
}

/* The programs, for one kind of uprobe. */
static int load(struct bpfload *b, const struct profile *p, const struct attach_opts *o,
		const struct attach_features *f, enum attach_backend backend)
{
	__closefd int types = -1;
	int rc = prepare(b, p, o, f, backend, &types);

	if (!rc)
		rc = silentpin_bpf__load(b->skel);
	if (!rc)
		rc = fill_probes(b->skel, p);
	if (!rc)
		rc = calls_fill(b->skel, p);
	if (!rc)
		rc = sock_fill(b->skel, b->how, p);
	if (!rc && b->late)
		late_start(b->late);
	if (!rc)
		rc = attach_process(b->skel);
	if (rc)
		bpfload_close(b);
	return rc;
}

static void *try_multi(void *f)
{
	features_multi(f);
	return NULL;
}

/*
 * Whether uprobe_multi works is tried (10 ms of waiting for the kernel) while the programs for it
 * are being loaded. Where it does not, they are loaded again for perf.
 */
static int load_multi(struct bpfload *b, const struct profile *p, const struct attach_opts *o,
		      struct attach_features *f)
{
	bool threaded;
	pthread_t thread;
	int rc;

	threaded = !pthread_create(&thread, NULL, try_multi, f);
	if (!threaded)
		features_multi(f);
	rc = load(b, p, o, f, BACKEND_MULTI);
	if (threaded)
		pthread_join(thread, NULL);
	if (!f->multi && !rc)
		bpfload_close(b);
	return f->multi ? rc : -EOPNOTSUPP;
}

int bpfload_open(const struct profile *p, const struct attach_opts *o, struct attach_features *f,
		 struct bpfload *b, struct sp_err *err)
{
	enum attach_backend backend = BACKEND_MULTI;
	int rc = -EOPNOTSUPP;

	memset(b, 0, sizeof(*b));
	libbpf_set_print(print_libbpf);
	if (o->force != BACKEND_PERF)
		rc = load_multi(b, p, o, f);
	if (!f->multi) {
		backend = BACKEND_PERF;
		if (o->force != BACKEND_MULTI)
			features_perf(f);
		if (!f->perf)
			return no_backend(o->force, f, err);
		rc = load(b, p, o, f, BACKEND_PERF);
	}
	if (rc)
		return load_fail(rc, err);
	b->seq = f->seq;
	b->progs.backend = backend;
	b->progs.hit = bpf_program__fd(b->skel->progs.hit);
	b->progs.each = -EOPNOTSUPP;
	return 0;
}

const struct uprobe_progs *bpfload_progs(struct bpfload *b, const struct plan *plan)
{
	for (int i = 0; i < plan->nsite && b->progs.each < 0; i++)
		if (plan->site[i].each)
			b->progs.each = late_fd(b->late, LATE_EACH);
	return &b->progs;
}

void bpfload_close(struct bpfload *b)
{
	late_close(b->late);
	b->late = NULL;
	if (b->skel)
		silentpin_bpf__destroy(b->skel);
	b->skel = NULL;
}

int bpfload_ring_fd(const struct bpfload *b)
{
	return b->skel ? bpf_map__fd(b->skel->maps.sp_ring) : -1;
}

void bpfload_counters(const struct bpfload *b, uint64_t out[SP_C_MAX])
{
	for (int i = 0; i < SP_C_MAX; i++)
		out[i] = b->skel ? __atomic_load_n(&b->skel->bss->sp_counters[i], __ATOMIC_RELAXED)
				 : 0;
}

bool bpfload_last_poll(const struct bpfload *b, uint32_t pid, uint64_t op, struct sp_poll *out)
{
	struct sp_poll_key key = {.op = op, .pid = pid};

	return b->skel && !bpf_map_lookup_elem(bpf_map__fd(b->skel->maps.sp_polls), &key, out);
}

int bpfload_target(const struct bpfload *b, uint32_t pid, bool on)
{
	int fd = b->skel ? bpf_map__fd(b->skel->maps.sp_targets) : -1;
	uint32_t one = 1;

	if (fd < 0)
		return 0;
	if (on ? bpf_map_update_elem(fd, &pid, &one, BPF_ANY) : bpf_map_delete_elem(fd, &pid))
		return -errno;
	return 0;
}

int bpfload_targets(const struct bpfload *b, uint32_t *pid, int max)
{
	int fd = b->skel ? bpf_map__fd(b->skel->maps.sp_targets) : -1, n = 0;
	uint32_t key;
	bool more = fd >= 0 && !bpf_map_get_next_key(fd, NULL, &key);

	while (more && n < max) {
		pid[n++] = key;
		more = !bpf_map_get_next_key(fd, &key, &key);
	}
	return n;
}

int bpfload_saved_fd(const struct bpfload *b)
{
	return b->skel ? bpf_map__fd(b->skel->maps.sp_saved) : -1;
}

int bpfload_tallies_fd(const struct bpfload *b)
{
	return b->skel ? bpf_map__fd(b->skel->maps.sp_tallies) : -1;
}

void bpfload_delete_if(int map_fd, bool (*is)(const void *key, const void *ctx), const void *ctx)
{
	uint64_t key[BPFLOAD_KEY_BYTES / 8], next[BPFLOAD_KEY_BYTES / 8];
	bool more = !bpf_map_get_next_key(map_fd, NULL, next);

	while (more) {
		memcpy(key, next, sizeof(key));
		/* The next key is asked for first: after a deletion the walk would start anew. */
		more = !bpf_map_get_next_key(map_fd, key, next);
		if (is(key, ctx))
			bpf_map_delete_elem(map_fd, key);
	}
}

_Static_assert(sizeof(struct sp_poll_key) <= BPFLOAD_KEY_BYTES &&
		       sizeof(struct sp_seq_key) <= BPFLOAD_KEY_BYTES &&
		       sizeof(struct sp_saved_key) <= BPFLOAD_KEY_BYTES &&
		       sizeof(struct sp_tally_key) <= BPFLOAD_KEY_BYTES,
	       "room for the longest key");

static bool poll_of(const void *key, const void *pid)
{
	return ((const struct sp_poll_key *)key)->pid == *(const uint32_t *)pid;
}

void bpfload_forget_process(const struct bpfload *b, uint32_t pid, bool ended)
{
	if (!b->skel)
		return;
	bpfload_delete_if(bpf_map__fd(b->skel->maps.sp_polls), poll_of, &pid);
	calls_forget(b->skel, pid, ended);
}

struct tids {
	const uint32_t *tid;
	int n;
};

static bool frames_of(const void *key, const void *ctx)
{
	const struct tids *t = ctx;

	for (int i = 0; i < t->n; i++)
		if (t->tid[i] == ((const struct sp_seq_key *)key)->tid)
			return true;
	return false;
}

void bpfload_forget_threads(const struct bpfload *b, const uint32_t *tid, int n)
{
	struct tids t = {tid, n};

	if (b->skel)
		bpfload_delete_if(bpf_map__fd(b->skel->maps.sp_frames), frames_of, &t);
}
