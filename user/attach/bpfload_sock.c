// SPDX-License-Identifier: Apache-2.0
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "attach/bpfload.h"
#include "attach/bpfload_late.h"
#include "attach/bpfload_sock.h"
#include "silentpin.skel.h"
#include "sp_conn.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"

enum attach_sockets sock_how(const struct profile *p, const struct attach_opts *o)
{
	if (!p->sockets || !p->sockets->nentries || o->no_sockets)
		return SOCKETS_NONE;
	return o->sock_force ? o->sock_force : SOCKETS_LIBC;
}

void sock_wants(struct sock_load *s)
{
	int n = s->how == SOCKETS_TCP ? LATE_MAX : s->how ? LATE_ITER + 1 : 0;

	s->kind[0] = (struct kbtf_enum){"ITER_IOVEC", -1};
	s->kind[1] = (struct kbtf_enum){"ITER_UBUF", -1};
	for (int i = 0; i < n; i++)
		s->func[i].name = late_function((enum late_prog)i);
	s->find = (struct kbtf_find){s->func, n, s->kind, s->how == SOCKETS_TCP ? 2 : 0};
}

void sock_wants_libbpf(struct sock_load *s)
{
	for (int i = 0; i < s->find.nfunc; i++) {
		const char *name = late_function((enum late_prog)i);
		int id = -ENOENT;

		/* of an iterator, libbpf knows the first half of the name */
		if (name && i == LATE_ITER)
			id = libbpf_find_vmlinux_btf_id(name + strlen("bpf_iter_"), BPF_TRACE_ITER);
		else if (name)
			id = libbpf_find_vmlinux_btf_id(name, BPF_TRACE_FENTRY);
		s->func[i].id = id > 0 ? (uint32_t)id : 0;
	}
}

/* ---- the load ---------------------------------------------------------------------------- */

int sock_make_conns(void)
{
	return bpf_map_create(BPF_MAP_TYPE_HASH, "sp_conns", sizeof(uint64_t),
			      sizeof(struct sp_conn), SP_MAX_CONNS, NULL);
}

/* The coarse clock moves once a jiffy. */
static uint32_t jiffies_of_a_second(void)
{
	struct timespec ts;

	if (clock_getres(CLOCK_MONOTONIC_COARSE, &ts) || ts.tv_sec || ts.tv_nsec <= 0)
		return 1000; /* no kernel has more */
	return (uint32_t)(NS_PER_SEC / (uint64_t)ts.tv_nsec);
}

static void no_maps(struct silentpin_bpf *skel)
{
	struct bpf_map *map[] = {skel->maps.sp_sock_rules, skel->maps.sp_sock_procs,
				 skel->maps.sp_conns,      skel->maps.sp_conn_none,
				 skel->maps.sp_ended,      skel->maps.sp_blocks,
				 skel->maps.sp_sock_saved};

	for (size_t i = 0; i < sizeof(map) / sizeof(map[0]); i++)
		bpf_map__set_autocreate(map[i], false);
}

/* The programs that are loaded: those of one way, and of all. */
static void choose(struct silentpin_bpf *skel, const struct sock_load *s)
{
	struct bpf_program *const tcp[] = {
		skel->progs.tcp_in,         skel->progs.tcp_out,        skel->progs.unix_in,
		skel->progs.unix_out,       skel->progs.tcp_in_enter,   skel->progs.tcp_out_enter,
		skel->progs.unix_in_enter,  skel->progs.unix_out_enter, skel->progs.unix_accepted,
		skel->progs.unix_connected,
	};

	bpf_program__set_autoload(skel->progs.sock_libc, s->how == SOCKETS_LIBC);
	bpf_program__set_autoload(skel->progs.sock_sys, s->how == SOCKETS_SYSCALL);
	bpf_program__set_autoload(skel->progs.sock_state, s->how);
	bpf_program__set_autoload(skel->progs.sock_reset, s->how);
	bpf_program__set_autoload(skel->progs.sock_iter, s->how && s->func[LATE_ITER].id);
	for (size_t i = 0; i < ARRAY_SIZE(tcp); i++)
		bpf_program__set_autoload(tcp[i],
					  s->how == SOCKETS_TCP && s->func[LATE_TCP + i].id);
}

int sock_configure(struct silentpin_bpf *skel, const struct sock_load *s, const struct profile *p,
		   enum attach_backend backend)
{
	choose(skel, s);
	if (!s->how) {
		no_maps(skel);
		return 0;
	}
	if (backend == BACKEND_MULTI)
		bpf_program__set_expected_attach_type(skel->progs.sock_libc,
						      SP_BPF_TRACE_UPROBE_MULTI);
	skel->rodata->sp_iter_iovec = (uint8_t)s->kind[0].value; /* -1: 0xff */
	skel->rodata->sp_iter_ubuf = (uint8_t)s->kind[1].value;
	skel->rodata->sp_have_calls = s->how == SOCKETS_LIBC;
	skel->rodata->sp_hz = jiffies_of_a_second();
	return 0;
}

int sock_fill(const struct silentpin_bpf *skel, enum attach_sockets how, const struct profile *p)
{
	for (uint32_t i = 0; how && i < (uint32_t)p->sockets->nentries; i++)
		if (bpf_map_update_elem(bpf_map__fd(skel->maps.sp_sock_rules), &i,
					&p->sockets->entry[i].rule, BPF_ANY))
			return -errno;
	return 0;
}

/* ---- afterwards -------------------------------------------------------------------------- */

static bool call_of(const void *key, const void *pid)
{
	return *(const uint64_t *)key >> 32 == *(const uint32_t *)pid;
}

int bpfload_sock_proc(const struct bpfload *b, uint32_t pid, uint32_t rules)
{
	int fd = b->skel && b->how ? bpf_map__fd(b->skel->maps.sp_sock_procs) : -1;

	if (fd < 0)
		return 0;
	if (!rules) /* what its threads are in: nobody will see them come out */
		bpfload_delete_if(bpf_map__fd(b->skel->maps.sp_sock_saved), call_of, &pid);
	if (rules ? bpf_map_update_elem(fd, &pid, &rules, BPF_ANY) : bpf_map_delete_elem(fd, &pid))
		return -errno;
	return 0;
}

int bpfload_sock_scan(const struct bpfload *b, uint32_t pid)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts);
	union bpf_iter_link_info info = {0};
	__closefd int link = -1, iter = -1;
	int prog = late_fd(b->late, LATE_ITER);
	char none[64];
	ssize_t n;

	if (prog < 0)
		return -EOPNOTSUPP;
	b->skel->bss->sp_scan_pid = pid;
	info.task.pid = pid; /* from 6.1 on; before, the program passes over all others */
	opts.iter_info = &info;
	opts.iter_info_len = sizeof(info);
	link = bpf_link_create(prog, 0, BPF_TRACE_ITER, &opts);
	if (link < 0) {
		opts.iter_info_len = sizeof(info.map);
		info.task.pid = 0;
		link = bpf_link_create(prog, 0, BPF_TRACE_ITER, &opts);
	}
	if (link < 0)
		return -errno;
	iter = bpf_iter_create(link);
	if (iter < 0)
		return -errno;
	do
		n = read(iter, none, sizeof(none));
	while (n > 0 || (n < 0 && errno == EAGAIN));
	return n < 0 ? -errno : 0;
}

int bpfload_prog_sock_libc(const struct bpfload *b)
{
	return late_fd(b->late, LATE_LIBC);
}

enum attach_sockets bpfload_sock_how(const struct bpfload *b)
{
	return b->skel ? b->how : SOCKETS_NONE;
}

/* TCP's changes of state: seen where the kernel has these tracepoints; without them a connection's
 * end is seen by its reads only. */
static void attach_state(struct silentpin_bpf *skel)
{
	skel->links.sock_state = bpf_program__attach(skel->progs.sock_state);
	skel->links.sock_reset = bpf_program__attach(skel->progs.sock_reset);
	if (!skel->links.sock_state || !skel->links.sock_reset)
		pr_debug("sockets: changes of state: %s", strerror(errno));
}

static int attach_function(struct late *l, int which)
{
	int prog = late_fd(l, (enum late_prog)which), link;

	if (prog < 0)
		return prog;
	link = bpf_raw_tracepoint_open(NULL, prog);
	return link < 0 ? -errno : late_keep(l, link);
}

/* TCP is what it is about: without unix sockets it goes on. An end without its entry is passed
 * over. */
static int attach_functions(struct late *l)
{
	int rc[LATE_MAX] = {0};

	for (int i = LATE_TCP; i < LATE_MAX; i++)
		rc[i] = attach_function(l, i);
	for (int i = 0; i < 2; i++)
		if (rc[LATE_TCP + i] || rc[LATE_TCP_ENTER + i])
			return rc[LATE_TCP + i] ?: rc[LATE_TCP_ENTER + i];
	return 0;
}

int bpfload_sock_attach(struct bpfload *b, enum attach_sockets how)
{
	int prog;

	if (!b->skel || !b->how)
		return 0;
	attach_state(b->skel);
	if (how == SOCKETS_TCP)
		return attach_functions(b->late);
	if (how != SOCKETS_SYSCALL)
		return 0;
	prog = late_fd(b->late, LATE_SYS);
	if (prog < 0)
		return prog;
	prog = bpf_raw_tracepoint_open("sys_exit", prog);
	return prog < 0 ? -errno : late_keep(b->late, prog);
}
