// SPDX-License-Identifier: Apache-2.0
/* What became of each probe, for people. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "attach/pointer.h"
#include "attach/sockets.h"

static void row_of(const struct profile *p, uint32_t pid, const struct plan *plan, int i,
		   enum attach_backend backend, int err, struct attach_row *row)
{
	const struct plan_probe *pp = &plan->probe[i];
	const struct profile_probe *probe = &p->probes[pp->index];

	*row = (struct attach_row){
		.pid = pid,
		.library = p->libs[probe->library].id,
		.file = plan->path,
		.probe = probe->name,
		.symbol = pp->symbol ? pp->symbol : "",
		.ok = pp->ok && !err,
		.required = probe->required || (pp->ok && probe->instead_of &&
						p->probes[probe->instead_of - 1].required),
		.emulated = pp->emulated,
		.off = pp->off,
		.later = pp->later,
		.backend = backend,
	};
	snprintf(row->where, sizeof(row->where), "%s", pp->where);
	if (!pp->ok)
		snprintf(row->reason, sizeof(row->reason), "%s", pp->reason);
	else if (err)
		uprobe_reason(err, backend, row->reason, sizeof(row->reason));
}

/* Probes of a library that no mapped file fits. */
static void rows_missing(const struct profile *p, int n, uint32_t pid, const bool *seen,
			 attach_row_fn fn, void *ctx)
{
	for (int i = 0; i < n; i++) {
		const struct profile_probe *probe = &p->probes[i];
		const struct profile_lib *lib =
			probe->library < 0 ? NULL : &p->libs[probe->library];
		struct attach_row row = {
			.pid = pid,
			.library = lib ? lib->id : "",
			.file = "",
			.probe = probe->name,
			.symbol = "",
			.required = probe->required,
		};

		if (seen[i] || !lib || probe->instead_of)
			continue;
		row.off = probe->off;
		if (row.off)
			plan_say_off(probe, row.reason, sizeof(row.reason));
		else
			snprintf(row.reason, sizeof(row.reason), "no mapped file is named %.60s%s",
				 lib->file[0], lib->nfiles > 1 ? ", or one of the others" : "");
		fn(ctx, &row);
	}
}

/* Is this a row for nobody: a finder's (pointer.h), or that of a function without a symbol which
 * was found in another way? */
static bool is_hidden(const struct attach *a, const struct watched *w, const struct plan_probe *pp)
{
	if (pp->index >= a->pointers.given || pp->hidden)
		return true;
	return !pp->ok && !pp->off && pointer_found(w, pp->index);
}

void attach_rows(const struct attach *a, attach_row_fn fn, void *ctx)
{
	struct attach_row row;

	for (int i = 0; i < a->nwatched; i++) {
		const struct watched *w = a->watched[i];
		bool seen[SP_MAX_PROBES] = {0};

		for (int k = 0; k < w->nlib; k++)
			for (int n = 0; n < w->lib[k].plan->nprobe; n++) {
				seen[w->lib[k].plan->probe[n].index] = true;
				if (is_hidden(a, w, &w->lib[k].plan->probe[n]))
					continue;
				row_of(a->profile, (uint32_t)w->id.pid, w->lib[k].plan, n,
				       a->bpf.progs.backend, w->lib[k].err[n], &row);
				fn(ctx, &row);
			}
		if (!a->opts.no_uprobes)
			rows_missing(a->profile, a->pointers.given, (uint32_t)w->id.pid, seen, fn,
				     ctx);
		socks_rows(a, w, fn, ctx);
	}
}

int attach_dry_rows(const struct profile *p, pid_t pid, enum attach_returns returns,
		    attach_row_fn fn, void *ctx, struct sp_err *err)
{
	bool no_return = attach_has_returns(p) && !attach_may_return(returns, pid);
	bool seen[SP_MAX_PROBES] = {0};
	struct target_id id;
	struct map_files files;
	struct attach_row row;
	int rc = target_open(pid, &id, err);

	if (rc)
		return rc;
	if (!p->nprobes) {
		target_close(&id);
		return 0;
	}
	rc = maps_read(pid, &files);
	target_close(&id);
	if (rc)
		return sp_err_set(err, SP_EXIT_NOATTACH, rc,
				  "process %d: its memory map cannot be read: %s%s", pid,
				  strerror(-rc), rc == -EPERM ? ": give CAP_SYS_PTRACE" : "");
	for (int i = 0; i < files.n && !rc; i++) {
		char why[160] = "";
		struct plan *plan;
		int fd;

		if (!plan_wants(p, &files.file[i]))
			continue;
		fd = maps_open(pid, &files.file[i], why, sizeof(why));
		rc = plan_make(p, &files.file[i], no_return, fd, why, &plan);
		if (!rc)
			rc = pointer_plan(p, pid, &files, plan);
		for (int n = 0; !rc && n < plan->nprobe; n++) {
			seen[plan->probe[n].index] = true;
			if (plan->probe[n].hidden)
				continue;
			row_of(p, (uint32_t)pid, plan, n, BACKEND_NONE, 0, &row);
			fn(ctx, &row);
		}
		if (!rc)
			plan_free(plan);
	}
	if (!rc) {
		rows_missing(p, p->nprobes, (uint32_t)pid, seen, fn, ctx);
		socks_dry_rows(p, pid, &files, fn, ctx);
	}
	maps_free(&files);
	return rc;
}
