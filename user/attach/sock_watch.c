// SPDX-License-Identifier: Apache-2.0
/* Link the socket functions of a process's libc, or enter it where all processes are seen. */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/sock_links.h"
#include "attach/sock_sites.h"
#include "attach/sockets.h"
#include "util/clock.h"

#define PATIENCE NS_PER_SEC /* a program that has just been started has no libc mapped yet */

static void drop_libs(struct sock_watch *sw)
{
	for (int i = 0; i < sw->nlib; i++) {
		links_close_later(&sw->lib[i].links);
		free(sw->lib[i].err);
	}
	free(sw->lib);
	sw->lib = NULL;
	sw->nlib = 0;
	sw->in_place = false;
}

static void refuse(struct attach *a, pid_t pid, struct sock_watch *sw, const char *why)
{
	struct attach_notice n = {.what = NOTICE_SOCKETS_NO, .ns = mono_ns(), .pid = (uint32_t)pid};
	const struct watched *w = watched_find(a, (uint32_t)pid);

	drop_libs(sw);
	bpfload_sock_proc(&a->bpf, (uint32_t)pid, 0);
	sw->rules = 0;
	sw->refused = true;
	snprintf(sw->why, sizeof(sw->why), "%s", why);
	snprintf(n.text, sizeof(n.text), "%s", why);
	if (!w || socks_is_server(a, w))
		attach_notify(a, &n);
}

static struct plan *libc_plan(struct attach *a, pid_t pid, const struct map_file *f)
{
	struct plan **grown, *plan;
	char why[160] = "";
	int fd;

	for (int i = 0; i < a->nlibc; i++)
		if (a->libc[i]->fd >= 0 && plan_is_for(a->libc[i], f))
			return a->libc[i];
	grown = realloc(a->libc, sizeof(void *) * (size_t)(a->nlibc + 1)); /* of pointers */
	if (!grown)
		return NULL;
	a->libc = grown;
	fd = maps_open(pid, f, why, sizeof(why));
	if (sock_plan_make(f, fd, why, &plan))
		return NULL;
	a->libc[a->nlibc++] = plan;
	return plan;
}

/* What is missing and not needed. */
static void say_missing(const struct attach *a, pid_t pid, const struct watched_lib *lib)
{
	struct attach_notice n = {.what = NOTICE_FAILED, .ns = mono_ns(), .pid = (uint32_t)pid};
	char why[160];

	for (int i = 0; i < lib->plan->nprobe; i++) {
		const struct plan_probe *p = &lib->plan->probe[i];

		if (p->ok && !lib->err[i])
			continue;
		if (p->ok)
			uprobe_reason(lib->err[i], a->bpf.progs.backend, why, sizeof(why));
		snprintf(n.text, sizeof(n.text), "%.20s of %.40s: %.150s (not required)", p->symbol,
			 strrchr(lib->plan->path, '/') + 1, p->ok ? why : p->reason);
		attach_notify(a, &n);
	}
}

/* 0, or -errno with the reason. */
static int add_libc(struct attach *a, pid_t pid, struct sock_watch *sw, struct plan *plan,
		    char *why, size_t len)
{
	const struct uprobe_progs progs = {.hit = bpfload_prog_sock_libc(&a->bpf),
					   .backend = a->bpf.progs.backend};
	struct watched_lib *grown = realloc(sw->lib, sizeof(*grown) * (size_t)(sw->nlib + 1)), *lib;

	snprintf(why, len, "out of memory");
	if (!grown)
		return -ENOMEM;
	sw->lib = grown;
	lib = &sw->lib[sw->nlib];
	memset(lib, 0, sizeof(*lib));
	lib->plan = plan;
	lib->err = calloc((size_t)plan->nprobe + 1, sizeof(*lib->err));
	if (!lib->err)
		return -ENOMEM;
	sw->nlib++;
	if (!sock_plan_good(plan, NULL, BACKEND_NONE, why, len))
		return -ENOENT;
	lib->good = uprobe_attach(&progs, plan, pid, &lib->links, lib->err);
	for (int i = 0; i < plan->nprobe; i++)
		sw->link_err = lib->err[i] ? lib->err[i] : sw->link_err;
	if (!sock_plan_good(plan, lib->err, progs.backend, why, len))
		return -ENOENT;
	say_missing(a, pid, lib);
	return 0;
}

static bool has_libc(const struct sock_watch *sw, const struct map_file *f)
{
	for (int i = 0; i < sw->nlib; i++)
		if (plan_is_for(sw->lib[i].plan, f))
			return true;
	return false;
}

/* The kernel maps it together with the program, and it maps libc. A static program has none. */
static bool has_loader(const struct map_files *files)
{
	for (int i = 0; i < files->n; i++)
		if (!fnmatch("ld[-6.]*", files->file[i].base, 0))
			return true;
	return false;
}

static void link_libcs(struct attach *a, pid_t pid, struct sock_watch *sw,
		       const struct map_files *files)
{
	int had = sw->nlib;
	char why[200];

	for (int i = 0; i < files->n; i++) {
		struct plan *plan;

		if (!sock_is_libc(files->file[i].base) || has_libc(sw, &files->file[i]))
			continue;
		plan = libc_plan(a, pid, &files->file[i]);
		snprintf(why, sizeof(why), "out of memory");
		if (plan && !plan->nprobe)
			continue; /* libpthread, a stub since glibc 2.34 */
		if (!plan || add_libc(a, pid, sw, plan, why, sizeof(why))) {
			refuse(a, pid, sw, why);
			return;
		}
	}
	if (sw->nlib > had)
		bpfload_sock_scan(&a->bpf, (uint32_t)pid);
	sw->in_place = sw->nlib > 0;
	if (!sw->in_place && (!has_loader(files) || mono_ns() - sw->since_ns > PATIENCE))
		refuse(a, pid, sw,
		       "no libc is mapped, its calls go another way: say "
		       "SILENTPIN_SOCKETS=syscall");
}

void sock_watch_scan(struct attach *a, pid_t pid, struct sock_watch *sw,
		     const struct map_files *files)
{
	struct map_files own;

	if (!sw->rules || sw->refused || a->how != SOCKETS_LIBC)
		return;
	if (files) {
		link_libcs(a, pid, sw, files);
		return;
	}
	if (maps_read(pid, &own))
		return; /* gone */
	link_libcs(a, pid, sw, &own);
	maps_free(&own);
}

void sock_watch_set(struct attach *a, pid_t pid, struct sock_watch *sw, uint32_t rules)
{
	char why[160];
	int rc;

	if (!a->how || sw->rules == rules || sw->refused)
		return;
	/* First the rules, then the links, then what is open already: nothing falls between. */
	rc = bpfload_sock_proc(&a->bpf, (uint32_t)pid, rules);
	if (rc) {
		snprintf(why, sizeof(why), "it cannot be entered: %s", strerror(-rc));
		refuse(a, pid, sw, why);
		return;
	}
	if (!sw->since_ns)
		sw->since_ns = mono_ns();
	sw->rules = rules;
	if (!rules) {
		drop_libs(sw);
		return;
	}
	if (a->how != SOCKETS_LIBC)
		sw->in_place = true;
	if (sw->in_place)
		bpfload_sock_scan(&a->bpf, (uint32_t)pid);
}

void sock_watch_inherit(struct attach *a, pid_t pid, struct sock_watch *sw,
			const struct sock_watch *parent)
{
	char why[200];

	sock_watch_set(a, pid, sw, parent->rules);
	if (!sw->rules || a->how != SOCKETS_LIBC)
		return;
	for (int i = 0; i < parent->nlib; i++)
		if (add_libc(a, pid, sw, parent->lib[i].plan, why, sizeof(why))) {
			refuse(a, pid, sw, why);
			return;
		}
	sw->in_place = sw->nlib > 0;
	if (sw->in_place)
		bpfload_sock_scan(&a->bpf, (uint32_t)pid);
}

void sock_watch_exec(struct sock_watch *sw)
{
	bool seen = sw->in_place && !sw->nlib; /* not through a libc */

	drop_libs(sw);
	sw->in_place = seen;
	sw->refused = sw->uring = sw->said = false;
	sw->since_ns = mono_ns();
}

void sock_watch_gone(struct attach *a, pid_t pid, struct sock_watch *sw)
{
	if (sw->rules)
		bpfload_sock_proc(&a->bpf, (uint32_t)pid, 0);
	drop_libs(sw);
	sw->rules = 0;
}

void sock_watch_how(const struct attach *a, const struct sock_watch *sw, char *buf, size_t len)
{
	if (a->how == SOCKETS_SYSCALL)
		snprintf(buf, len, "system calls");
	else if (a->how == SOCKETS_TCP)
		snprintf(buf, len, "the kernel's TCP functions");
	else
		snprintf(buf, len, "the calls of %.200s",
			 sw->nlib ? sw->lib[0].plan->path : "libc");
}
