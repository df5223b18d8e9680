// SPDX-License-Identifier: Apache-2.0
/*
 * Return probes, and a target whose seccomp filter refuses the system calls that the kernel makes
 * for them: where they are used it lives, where they are not the events come all the same. Run as
 * root; SILENTPIN_UPROBE as in attach_smoke.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include <cmocka.h>

#include "attach/target.h"
#include "attach_rig.h"

static const char *const libs[] = {"libsmoke.so", NULL};

static const char yaml[] =
	RIG_YAML "      - name: ways\n        library: smoke\n        symbol: smoke_ways\n        "
		 "on: return\n"
		 "        args:\n"
		 "          - {name: n, fetch: $arg1, type: s64}\n"
		 "          - {name: rc, fetch: $retval, type: s64}\n" RIG_CALL
		 "      - name: tail\n        library: smoke\n        symbol: smoke_tail\n        "
		 "on: return\n"
		 "        args: [{name: rc, fetch: $retval, type: s64}]\n" RIG_CALL;

static struct rig rig;
static struct target target;

static int clean(void **state)
{
	rig_detach(&rig, &target);
	return 0;
}

/* smoke_ways(n) calls itself until n is 2. */
static void check_calls(int n)
{
	rig_clear(&rig);
	target_say(&target, "ways %d", n);
	rig_pump(&rig);
	assert_int_equal(rig_count(&rig, "ways"), n - 1);
	for (int i = 2; i <= n; i++)
		assert_int_equal(rig_val(&rig, rig_hit(&rig, "ways", i - 2), "n"), i);
}

struct found {
	char ways[64], tail[160];
};

static void find_row(void *ctx, const struct attach_row *row)
{
	struct found *f = ctx;

	if (!strcmp(row->probe, "ways"))
		snprintf(f->ways, sizeof(f->ways), "%s", row->where);
	else
		snprintf(f->tail, sizeof(f->tail), "%s", row->ok ? "ok" : row->reason);
}

static struct found rows(void)
{
	struct found f = {"", ""};

	attach_rows(rig.attach, find_row, &f);
	return f;
}

static void check_returns(void)
{
	struct found f = rows();

	assert_non_null(strstr(f.ways, "; return"));
	assert_string_equal(f.tail, "ok");
}

/* A function that ends in another has no ret of its own. */
static void check_rets(void)
{
	struct found f = rows();

	assert_non_null(strstr(f.ways, " ret")); /* "entry; 3 ret" */
	assert_null(strstr(f.ways, "return"));
	assert_non_null(strstr(f.tail, "return probes are not used in this process"));
}

#if defined(__x86_64__)
static void check_target_filter(bool on)
{
	char path[64], line[256], want[32];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", target.pid);
	snprintf(want, sizeof(want), "Seccomp:\t%d\n", on ? 2 : 0);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, "Seccomp:", 8))
			assert_string_equal(line, want);
	fclose(f);
}

/* By trial: on a kernel that would crash it, rets; on all others return probes. It lives. */
static void test_filter_by_trial(void **state)
{
	struct attach_features f;
	bool fine;

	assert_int_equal(attach_features(&f), 0);
	fine = f.returns == RETURNS_FINE;
	print_message("return probes under a filter: %s\n", fine ? "fine" : f.why_returns);
	target_run(&target, NULL, libs);
	target_say(&target, "filter");
	check_target_filter(true);
	rig_open(&rig, yaml);
	rig_add(&rig, target.pid, fine ? 2 : 1);
	if (fine)
		check_returns();
	else
		check_rets();
	check_calls(5);
	check_calls(5);
}

static bool at_rets(struct rig *r, long arg)
{
	return !strstr(rows().ways, "; return");
}

/* The filter comes while return probes are in place: others take their place. */
static void test_late_filter(void **state)
{
	if (target_filtered(getpid()))
		return; /* in a container: no target is without one */
	target_run(&target, NULL, libs);
	check_target_filter(false);
	rig.returns = RETURNS_UNFILTERED;
	rig_open(&rig, yaml);
	rig_add(&rig, target.pid, 2);
	check_returns();
	check_calls(5);
	target_say(&target, "filter");
	target_say(&target, "open libm.so.6"); /* the map has changed: the next look is soon */
	rig_until(&rig, at_rets, 0, "probes at rets");
	check_rets();
	check_calls(5);
}
#endif

static void test_never(void **state)
{
	target_run(&target, NULL, libs);
	rig.returns = RETURNS_NEVER;
	rig_open(&rig, yaml);
	rig_add(&rig, target.pid, 1);
	check_rets();
	check_calls(5);
}

/* Of a test's name: that one alone. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
#if defined(__x86_64__)
		cmocka_unit_test_teardown(test_filter_by_trial, clean),
		cmocka_unit_test_teardown(test_late_filter, clean),
#endif
		cmocka_unit_test_teardown(test_never, clean),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("attach_returns", tests, NULL, NULL);
}
