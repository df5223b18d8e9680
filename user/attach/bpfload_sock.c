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

#define ITER_FUNC "bpf_iter_task_file"

enum attach_sockets sock_how(const struct profile *p, const struct attach_opts *o)
{
	if (!p->sockets || !p->sockets->nentries || o->no_sockets)
		return SOCKETS_NONE;
	return o->sock_force ? o->sock_force : SOCKETS_LIBC;
}

int sock_wants(struct sock_load *s)
{
	if (!s->how)
		return 0;
	s->func[0].name = ITER_FUNC;
	return 1;
}

/* ---- the load ----------------------------------------------------------------------------------
 */

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

int sock_configure(struct silentpin_bpf *skel, const struct sock_load *s, const struct profile *p,
		   enum attach_backend backend)
{
	uint32_t iter = s->how ? s->func[0].id : 0;

	bpf_program__set_autoload(skel->progs.sock_libc, s->how == SOCKETS_LIBC);
	bpf_program__set_autoload(skel->progs.sock_sys, s->how == SOCKETS_SYSCALL);
	bpf_program__set_autoload(skel->progs.sock_state, s->how);
	bpf_program__set_autoload(skel->progs.sock_reset, s->how);
	bpf_program__set_autoload(skel->progs.sock_iter, iter);
	if (!s->how) {
		no_maps(skel);
		return 0;
	}
	if (backend == BACKEND_MULTI)
		bpf_program__set_expected_attach_type(skel->progs.sock_libc,
						      SP_BPF_TRACE_UPROBE_MULTI);
	skel->rodata->sp_hz = jiffies_of_a_second();
	skel->rodata->sp_nsock_rules = (uint32_t)p->sockets->nentries;
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

/* ---- afterwards --------------------------------------------------------------------------------
 */

int bpfload_sock_proc(const struct bpfload *b, uint32_t pid, uint32_t rules)
{
	int fd = b->skel && b->how ? bpf_map__fd(b->skel->maps.sp_sock_procs) : -1;

	if (fd < 0)
		return 0;
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
	opts.iter_info = &info;
	opts.iter_info_len = sizeof(info);
	link = bpf_link_create(prog, 0, BPF_TRACE_ITER, &opts);
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

int bpfload_sock_attach(struct bpfload *b, enum attach_sockets how)
{
	int prog;

	if (!b->skel || !b->how)
		return 0;
	attach_state(b->skel);
	if (how != SOCKETS_SYSCALL)
		return 0;
	prog = late_fd(b->late, LATE_SYS);
	if (prog < 0)
		return prog;
	prog = bpf_raw_tracepoint_open("sys_exit", prog);
	return prog < 0 ? -errno : late_keep(b->late, prog);
}
