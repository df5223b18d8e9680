// SPDX-License-Identifier: Apache-2.0
/* What attach tells of processes: for the person who watches, and as events for the model. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/watch.h"
#include "util/clock.h"
#include "util/log.h"

static const char *const notice_kind[] = {
	[NOTICE_ATTACHED] = "attached", [NOTICE_LIB] = "lib",       [NOTICE_FORK] = "attached",
	[NOTICE_EXEC] = "exec",         [NOTICE_EXITED] = "exited",
};

/* Is this the first time that probes are in place in pid? */
static bool first_probes(struct watch *w, uint32_t pid)
{
	for (int i = 0; i < w->nprobed; i++)
		if (w->probed[i].pid == pid)
			return false;
	if (w->nprobed < WATCH_MAX_PROBED)
		w->probed[w->nprobed++] = (struct probed){.pid = pid};
	return true;
}

/* True: there were some. */
static bool forget_probes(struct watch *w, uint32_t pid)
{
	for (int i = 0; i < w->nprobed; i++)
		if (w->probed[i].pid == pid) {
			w->probed[i] = w->probed[--w->nprobed];
			return true;
		}
	return false;
}

static void notice_event(struct watch *w, const struct attach_notice *n)
{
	const char *kind = notice_kind[n->what];
	struct sp_event ev;

	if (n->what != NOTICE_EXITED && n->what != NOTICE_EXEC && first_probes(w, n->pid))
		kind = notice_kind[NOTICE_ATTACHED];
	sp_event_init(&ev);
	ev.ns = n->ns;
	ev.pid = n->pid;
	ev.tid = n->pid;
	ev.role = ROLE_TARGET;
	ev.code = n->n;
	if (n->gap)
		ev.flags |= EV_GAP;
	snprintf(ev.kind, sizeof(ev.kind), "%s", kind);
	snprintf(ev.note, sizeof(ev.note), "%.*s", (int)sizeof(ev.note) - 1, n->text);
	collect_inject(w->collect, &ev);
}

void watch_target_seen(struct watch *w, uint32_t pid, const char *what)
{
	struct attach_notice n = {.what = NOTICE_LIB, .ns = mono_ns(), .pid = pid};

	for (int i = 0; i < w->nprobed; i++)
		if (w->probed[i].pid == pid)
			return;
	snprintf(n.text, sizeof(n.text), "%s", what);
	notice_event(w, &n);
}

/* A process that may be the server, or one of its children. */
static void look_at_python(struct watch *w, uint32_t pid)
{
	struct sp_err err = {0};
	int rc = watch_python_add(w->python, pid, &err);

	/* what somebody named should have one; of children and finds it is normal */
	for (int i = 0; i < w->o.npids && rc && !w->o.find; i++)
		if ((uint32_t)w->o.pids[i] == pid && rc != -EPERM && rc != -ENOTSUP)
			pr_info("%s: the server's own view is not read", err.text);
}

struct missing {
	uint32_t pid;
	int n;
};

static void count_missing(void *ctx, const struct attach_row *row)
{
	struct missing *m = ctx;

	m->n += row->pid == m->pid && row->required && !row->ok && !row->later && !row->off;
}

static void say_attached(const struct watch *w, const struct attach_notice *n)
{
	struct missing m = {.pid = n->pid};
	int probes = n->n - attach_sees_sockets(w->attach, n->pid, false);

	if (probes > 0)
		pr_info("pid %u: %d probes in place: %s", n->pid, probes, n->text);
	else
		pr_info("pid %u: watched: %s", n->pid, n->text);
	if (w->o.no_uprobes)
		return;
	attach_rows(w->attach, count_missing, &m);
	if (m.n)
		pr_info("pid %u: %d probes that the profile requires are not: silentpin doctor -p "
			"%u "
			"says why",
			n->pid, m.n, n->pid);
}

/* Is a probe in place that shows this? */
static bool shows(const struct watch *w, uint32_t pid, enum sp_role role)
{
	const struct profile *p = w->profile;

	for (int i = 0; i < p->nuprobes; i++) {
		bool does = p->probes[i].event.role == role;

		for (int k = 0; k < p->probes[i].nmatch; k++)
			does |= p->probes[i].match[k].event.role == role;
		if (does && attach_has(w->attach, pid, i))
			return true;
	}
	return false;
}

/* A transport without symbols is watched by its sockets alone, and what is sent stays out of sight:
 * the model must know. */
static void tell_sight(struct watch *w, uint32_t pid)
{
	struct sp_event ev;
	int code;

	if (w->o.no_uprobes || !attach_sees_sockets(w->attach, pid, false))
		return;
	code = (shows(w, pid, ROLE_POST) ? 0 : TARGET_BLIND) |
	       (shows(w, pid, ROLE_ANNOUNCE) ? 0 : TARGET_DEAF);
	for (int i = 0; i < w->nprobed; i++) {
		if (w->probed[i].pid != pid || w->probed[i].blind == code)
			continue;
		w->probed[i].blind = code;
		sp_event_init(&ev);
		ev.ns = mono_ns();
		ev.pid = ev.tid = pid;
		ev.role = ROLE_TARGET;
		ev.code = code;
		snprintf(ev.kind, sizeof(ev.kind), code ? "blind" : "sighted");
		collect_inject(w->collect, &ev);
		if (code & TARGET_BLIND)
			pr_info("pid %u: what it sends cannot be seen: no probe of its transport "
				"is "
				"in place, only its sockets are watched",
				pid);
	}
}

static void say_sockets(struct watch *w, const struct attach_notice *n)
{
	switch (n->what) {
	case NOTICE_SOCKETS:
		if (n->pid == n->ppid) {
			pr_info("pid %u: its sockets are watched: %s", n->pid, n->text);
			watch_target_seen(w, n->pid, n->text);
		} else
			pr_info("pid %u: its sockets are watched, it is the front of %u: %s",
				n->pid, n->ppid, n->text);
		break;
	case NOTICE_SOCKETS_NO:
		pr_warn("pid %u: its sockets are not watched: %s", n->pid, n->text);
		break;
	case NOTICE_IO_URING:
		pr_warn("pid %u: uses io_uring: what it sends and receives that way is not seen",
			n->pid);
		break;
	case NOTICE_FRONT_EXITED:
		pr_info("pid %u: exited: it was the front of %u", n->pid, n->ppid);
		break;
	default:
		break;
	}
}

void watch_notice(void *ctx, const struct attach_notice *n)
{
	struct watch *w = ctx;

	switch (n->what) {
	case NOTICE_ATTACHED:
		if (!n->n) {
			look_at_python(w, n->pid); /* a command before its exec */
			pr_debug("pid %u: watched, no probe in place yet", n->pid);
			return;
		}
		say_attached(w, n);
		watch_enabled_look(w, n->pid, false);
		break;
	case NOTICE_LIB:
		pr_info("pid %u: probes in place in %s%s", n->pid, n->text,
			n->gap ? " (what it did before this moment was not seen)" : "");
		watch_enabled_look(w, n->pid, true);
		break;
	case NOTICE_FAILED:
		pr_warn("pid %u: %s", n->pid, n->text);
		return; /* nothing happened in the target */
	case NOTICE_EXITED:
		watch_python_drop(w->python, n->pid);
		if (forget_probes(w, n->pid) || n->pid == (uint32_t)w->child.pid)
			pr_info("pid %u: exited", n->pid);
		else
			pr_debug("pid %u: exited", n->pid);
		break;
	case NOTICE_EXEC:
		watch_python_exec(w->python, n->pid);
		forget_probes(w, n->pid);
		pr_debug("pid %u: runs another program now", n->pid);
		return; /* the kernel's own record of it is the event */
	case NOTICE_FORK:
		if (!n->n) {
			look_at_python(w, n->pid); /* nothing to see in it yet, and perhaps never */
			pr_debug("pid %u: new child of %u", n->pid, n->ppid);
			return;
		}
		pr_info("pid %u: %d probes in place: new child of %u: %s", n->pid, n->n, n->ppid,
			n->text);
		break;
	default:
		say_sockets(w, n);
		return;
	}
	notice_event(w, n);
	tell_sight(w, n->pid);
	if (n->what == NOTICE_ATTACHED || n->what == NOTICE_FORK)
		look_at_python(w, n->pid);
}

void watch_unreadable(struct watch *w, const struct sp_event *ev)
{
	if (!strcmp(ev->kind, "sealed"))
		pr_warn("pid %u: its front has clients whose requests cannot be read (%s): when "
			"they arrive and are answered is not seen",
			ev->pid, ev->note);
	if (strcmp(ev->kind, "unreadable") || w->said_unreadable)
		return;
	w->said_unreadable = true;
	pr_warn("pid %u: a connection from %s cannot be read (%s): what it announces is not seen "
		"on the socket",
		ev->pid, ev->peer[0] ? ev->peer : "a peer", ev->note);
}
