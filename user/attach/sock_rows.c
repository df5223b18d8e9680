// SPDX-License-Identifier: Apache-2.0
/* What became of the sockets, for people: a row for each function of a libc, and for each entry of
 * the profile and process that it holds in. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "attach/sock_front.h"
#include "attach/sock_links.h"
#include "attach/sock_sites.h"
#include "attach/sockets.h"

#define LIBRARY "sockets"

static void libc_rows(uint32_t pid, const struct plan *plan, const int *err,
		      enum attach_backend backend, attach_row_fn fn, void *ctx)
{
	for (int i = 0; i < plan->nprobe; i++) {
		const struct plan_probe *p = &plan->probe[i];
		struct attach_row row = {
			.pid = pid,
			.socket = true,
			.library = LIBRARY,
			.file = plan->path,
			.probe = p->symbol,
			.symbol = p->symbol,
			.ok = p->ok && !(err && err[i]),
			.required = sock_funcs[p->index].needed,
			.emulated = p->emulated,
			.backend = backend,
		};

		snprintf(row.where, sizeof(row.where), "%s", p->where);
		if (!p->ok)
			snprintf(row.reason, sizeof(row.reason), "%s", p->reason);
		else if (err && err[i])
			uprobe_reason(err[i], backend, row.reason, sizeof(row.reason));
		fn(ctx, &row);
	}
}

/* An entry of the profile in one process; of: 0 none, pid itself, or a front's number. */
static void entry_row(const struct profile *p, int entry, uint32_t pid, uint32_t of,
		      const char *how, const char *why, attach_row_fn fn, void *ctx)
{
	char symbol[48];
	struct attach_row row = {
		.pid = pid,
		.socket = true,
		.library = LIBRARY,
		.file = "",
		.probe = p->probes[p->sockets->entry[entry].probe].name,
		.symbol = of ? symbol : "",
		.ok = of && !*why,
		.emulated = true,
	};

	if (of == pid)
		snprintf(symbol, sizeof(symbol), "its own sockets");
	else
		snprintf(symbol, sizeof(symbol), "sockets of process %u", of);
	snprintf(row.where, sizeof(row.where), "%.60s", how);
	snprintf(row.reason, sizeof(row.reason), "%.150s",
		 of ? why : "no process fits the profile's `process:` now");
	fn(ctx, &row);
}

static const char *why_not(const struct sock_watch *sw)
{
	return sw->in_place ? "" : sw->why[0] ? sw->why : "not yet in place";
}

void socks_rows(const struct attach *a, const struct watched *w, attach_row_fn fn, void *ctx)
{
	uint32_t pid = (uint32_t)w->id.pid;
	const char *how = attach_sockets_name(a->how);

	for (int i = 0; i < w->sock.nlib; i++)
		libc_rows(pid, w->sock.lib[i].plan, w->sock.lib[i].err, a->bpf.progs.backend, fn,
			  ctx);
	for (int i = 0; a->how && i < a->profile->sockets->nentries; i++) {
		const struct sock_process *want = &a->profile->sockets->entry[i].process;
		int n = 0;

		if (front_self("/proc", want, w->id.pid)) {
			entry_row(a->profile, i, pid, pid, how, why_not(&w->sock), fn, ctx);
			n++;
		}
		for (int k = 0; k < a->nfronts; k++) {
			const struct front *f = a->front[k];

			for (int o = 0; o < f->nowners; o++) {
				if (f->owner[o].pid != pid || !(f->owner[o].rules & 1u << i))
					continue;
				entry_row(a->profile, i, pid, (uint32_t)f->id.pid, how,
					  why_not(socks_of(a, f)), fn, ctx);
				n++;
			}
		}
		if (!n)
			entry_row(a->profile, i, pid, 0, how, "", fn, ctx);
	}
}

/* ---- without attaching ----------------------------------------------------------------------- */

/* Can its libcs be probed? fn NULL: no rows. */
static void dry_libcs(pid_t pid, const struct map_files *files, char *why, size_t len,
		      attach_row_fn fn, void *ctx)
{
	bool found = false;

	why[0] = 0;
	for (int i = 0; i < files->n; i++) {
		char bad[200], unread[160] = "";
		struct plan *plan;
		int fd;

		if (!sock_is_libc(files->file[i].base))
			continue;
		fd = maps_open(pid, &files->file[i], unread, sizeof(unread));
		if (sock_plan_make(&files->file[i], fd, unread, &plan))
			continue;
		found |= plan->nprobe > 0;
		if (!sock_plan_good(plan, NULL, BACKEND_NONE, bad, sizeof(bad)))
			snprintf(why, len, "%s", bad);
		if (fn)
			libc_rows((uint32_t)pid, plan, NULL, BACKEND_NONE, fn, ctx);
		plan_free(plan);
	}
	if (!found)
		snprintf(why, len,
			 "no libc is mapped, its calls go another way: say "
			 "SILENTPIN_SOCKETS=syscall");
}

static bool is_me(void *ctx, pid_t pid)
{
	return pid == getpid();
}

void socks_dry_rows(const struct profile *p, pid_t pid, const struct map_files *files,
		    attach_row_fn fn, void *ctx)
{
	char own[200], why[200];

	if (!p->sockets)
		return;
	dry_libcs(pid, files, own, sizeof(own), fn, ctx);
	for (int i = 0; i < p->sockets->nentries; i++) {
		const struct sock_process *want = &p->sockets->entry[i].process;
		pid_t front[FRONTS_MAX];
		int n = front_find("/proc", want, pid, is_me, NULL, front);
		bool self = front_self("/proc", want, pid);

		if (self)
			entry_row(p, i, (uint32_t)pid, (uint32_t)pid, "libc", own, fn, ctx);
		for (int k = 0; k < n; k++) {
			struct map_files of;

			if (maps_read(front[k], &of))
				continue;
			dry_libcs(front[k], &of, why, sizeof(why), NULL, NULL);
			maps_free(&of);
			entry_row(p, i, (uint32_t)pid, (uint32_t)front[k], "libc", why, fn, ctx);
		}
		if (!self && !n)
			entry_row(p, i, (uint32_t)pid, 0, "libc", "", fn, ctx);
	}
}
