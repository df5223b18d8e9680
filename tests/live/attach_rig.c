// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "attach_rig.h"
#include "util/clock.h"
#include "util/log.h"

const char *rig_dir(void)
{
	static char dir[PATH_MAX];

	if (!dir[0] && readlink("/proc/self/exe", dir, sizeof(dir) - 1) > 0)
		dirname(dir);
	return dir;
}

enum attach_backend rig_backend(void)
{
	const char *s = getenv("SILENTPIN_UPROBE");

	if (!s)
		return BACKEND_NONE;
	return strcmp(s, "perf") ? BACKEND_MULTI : BACKEND_PERF;
}

/* ---- the target ------------------------------------------------------------------------------ */

static void read_answer(struct target *t)
{
	assert_non_null(fgets(t->answer, sizeof(t->answer), t->from));
	t->answer[strcspn(t->answer, "\n")] = 0;
}

void target_run(struct target *t, const char *prefix[], const char *const libs[])
{
	char program[PATH_MAX + 32], path[8][PATH_MAX + 32];
	const char *argv[24];
	int to[2], from[2], n = 0;

	while (prefix && prefix[n]) {
		argv[n] = prefix[n];
		n++;
	}
	snprintf(program, sizeof(program), "%s/smoke_target", rig_dir());
	if (!prefix)
		argv[n++] = program;
	for (int i = 0; libs[i]; i++) {
		if (strchr(libs[i], '/') || !strncmp(libs[i], "libzmq", 6))
			snprintf(path[i], sizeof(path[i]), "%s", libs[i]);
		else
			snprintf(path[i], sizeof(path[i]), "%s/%s", rig_dir(), libs[i]);
		argv[n++] = path[i];
	}
	argv[n] = NULL;
	assert_int_equal(pipe(to), 0);
	assert_int_equal(pipe(from), 0);
	t->pid = fork();
	if (t->pid == 0) {
		dup2(to[0], 0);
		dup2(from[1], 1);
		close(to[1]);
		close(from[0]);
		execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	t->to = fdopen(to[1], "w");
	t->from = fdopen(from[0], "r");
	read_answer(t);
	assert_string_equal(t->answer, "ready");
}

const char *target_say(struct target *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(t->to, fmt, ap);
	va_end(ap);
	fputc('\n', t->to);
	fflush(t->to);
	read_answer(t);
	return t->answer;
}

void target_end(struct target *t)
{
	if (t->pid <= 0)
		return;
	kill(t->pid, SIGKILL);
	waitpid(t->pid, NULL, 0);
	fclose(t->to);
	fclose(t->from);
	t->pid = 0;
}

/* ---- silentpin ------------------------------------------------------------------------------- */

static void on_notice(void *ctx, const struct attach_notice *n)
{
	struct rig *r = ctx;

	pr_debug("notice %d pid %u n %d gap %d: %s", n->what, n->pid, n->n, n->gap, n->text);
	if (r->nnotice < RIG_NOTICES)
		r->notice[r->nnotice++] = *n;
}

static int on_record(void *ctx, void *data, size_t size)
{
	struct rig *r = ctx;

	assert_true(size >= sizeof(struct sp_rec_hit));
	assert_true(r->nrec < RIG_RECORDS);
	memcpy(&r->rec[r->nrec], data, size < sizeof(r->rec[0]) ? size : sizeof(r->rec[0]));
	attach_record(r->attach, &r->rec[r->nrec].hit);
	r->nrec++;
	return 0;
}

void rig_open(struct rig *r, const char *yaml)
{
	struct attach_opts o = {.force = rig_backend(),
				.ring_bytes = r->ring_bytes ? r->ring_bytes : 1 << 20,
				.returns = r->returns,
				.follow_children = true};
	struct sp_err err = {0};

	if (getenv("RIG_VERBOSE"))
		sp_verbosity = SP_DEBUG;
	if (profile_parse("smoke.yaml", yaml, strlen(yaml), &r->pf, &err))
		fail_msg("%s", err.text);
	r->profile = &r->pf->profiles[0];
	if (attach_open(r->profile, &o, on_notice, r, &r->attach, &err))
		fail_msg("%s", err.text);
	r->ring = ring_buffer__new(attach_ring_fd(r->attach), on_record, r, NULL);
	assert_non_null(r->ring);
}

static void print_row(void *ctx, const struct attach_row *row)
{
	fprintf(stderr, "%s %s %s: %s %s %s\n", row->ok ? "ok" : "NO", row->probe, row->symbol,
		row->where, row->emulated ? "emulated" : "single-stepped", row->reason);
}

void rig_add(struct rig *r, pid_t pid, int n)
{
	struct sp_err err = {0};
	int got = attach_add(r->attach, pid, &err);

	if (got != n) {
		attach_rows(r->attach, print_row, NULL);
		fail_msg("%d probes in place, not %d: %s", got, n, err.text);
	}
	if (sp_verbosity == SP_DEBUG)
		attach_rows(r->attach, print_row, NULL);
}

void rig_close(struct rig *r)
{
	ring_buffer__free(r->ring);
	attach_close(r->attach);
	profile_free(r->pf);
	memset(r, 0, sizeof(*r));
}

void rig_attach(struct rig *r, struct target *t, const char *const libs[], const char *yaml, int n)
{
	target_run(t, NULL, libs);
	rig_open(r, yaml);
	rig_add(r, t->pid, n);
}

void rig_detach(struct rig *r, struct target *t)
{
	target_end(t);
	if (r->attach)
		rig_close(r);
}

void rig_pump(struct rig *r)
{
	assert_true(ring_buffer__consume(r->ring) >= 0);
}

void rig_until(struct rig *r, bool (*cond)(struct rig *r, long arg), long arg, const char *what)
{
	const char *slow = getenv("SILENTPIN_TEST_SLOW");
	uint64_t end = mono_ns() + (uint64_t)((slow ? atof(slow) : 1) * 10 * NS_PER_SEC);

	for (;;) {
		ring_buffer__poll(r->ring, 10);
		rig_pump(r);
		attach_tick(r->attach);
		if (cond(r, arg))
			return;
		if (mono_ns() > end)
			fail_msg("waited in vain for: %s", what);
	}
}

void rig_clear(struct rig *r)
{
	rig_pump(r);
	r->nrec = 0;
}

void rig_start(struct rig *r)
{
	rig_clear(r);
	attach_counters(r->attach, r->counted);
}

/* ---- records --------------------------------------------------------------------------------- */

int rig_probe(const struct rig *r, const char *name)
{
	for (int i = 0; i < r->profile->nprobes; i++)
		if (!strcmp(r->profile->probes[i].name, name))
			return i;
	fail_msg("no probe %s", name);
	return -1;
}

const struct sp_rec_hit *rig_hit(const struct rig *r, const char *probe, int i)
{
	int p = rig_probe(r, probe);

	for (int k = 0; k < r->nrec; k++)
		if (r->rec[k].hit.h.type == SP_REC_HIT && r->rec[k].hit.h.probe == p && i-- == 0)
			return &r->rec[k].hit;
	return NULL;
}

int rig_count(const struct rig *r, const char *probe)
{
	int n = 0;

	while (rig_hit(r, probe, n))
		n++;
	return n;
}

uint64_t rig_counter(const struct rig *r, enum sp_counter c)
{
	uint64_t all[SP_C_MAX];

	attach_counters(r->attach, all);
	return all[c];
}

int rig_gained(const struct rig *r, enum sp_counter c)
{
	return (int)(rig_counter(r, c) - r->counted[c]);
}

int rig_arg(const struct rig *r, const char *probe, const char *arg)
{
	const struct profile_probe *p = &r->profile->probes[rig_probe(r, probe)];

	for (int i = 0; i < p->nargs; i++)
		if (!strcmp(p->args[i].name, arg))
			return i;
	fail_msg("no argument %s of %s", arg, probe);
	return -1;
}

static int arg_of(const struct rig *r, const struct sp_rec_hit *h, const char *arg)
{
	assert_non_null(h);
	return rig_arg(r, r->profile->probes[h->h.probe].name, arg);
}

uint64_t rig_val(const struct rig *r, const struct sp_rec_hit *h, const char *arg)
{
	return h->val[arg_of(r, h, arg)];
}

int rig_len(const struct rig *r, const struct sp_rec_hit *h, const char *arg)
{
	return h->len[arg_of(r, h, arg)];
}

const char *rig_text(const struct rig *r, const struct sp_rec_hit *h, const char *arg)
{
	static char text[4][SP_SLOT_MAX + 1];
	static int turn;
	int a = arg_of(r, h, arg);
	const struct sp_fetch *f;
	char *out = text[turn++ % 4];

	f = &r->profile->probes[h->h.probe].prog.fetch[h->alt[a]];
	if (h->len[a] <= 0)
		return "";
	memcpy(out, h->data + f->data_at, (size_t)h->len[a]);
	out[h->len[a]] = 0;
	return out;
}

bool rig_noticed(const struct rig *r, enum attach_what what, pid_t pid)
{
	for (int i = 0; i < r->nnotice; i++)
		if (r->notice[i].what == what && (pid_t)r->notice[i].pid == pid)
			return true;
	return false;
}
