// SPDX-License-Identifier: Apache-2.0
/* May returns be probed: what a trial's end means, who has a filter, and what is planned instead.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "attach/plan.h"
#include "attach/returns.h"
#include "attach/target.h"
#include "profile_rig.h"

static volatile long sink;

/* Two ways out. */
__attribute__((noinline, used)) long returns_test_two(long n)
{
	if (n > 3) {
		sink = n;
		return sink * 3;
	}
	sink += n;
	return n;
}

/* The only way out leads into another function. */
__attribute__((noinline, used, optimize("O2"))) long returns_test_tail(long n)
{
	sink = n;
	return returns_test_two(n + 1);
}

/* ---- the trial ------------------------------------------------------------------------------- */

static int end_by(int sig, int code)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_DUMPABLE, 0);
		signal(sig, SIG_DFL);
		if (sig)
			kill(getpid(), sig);
		_exit(code);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void judged(int status, uint64_t hits, enum attach_returns want, const char *words)
{
	char why[96];

	assert_int_equal(returns_judge(status, hits, why, sizeof(why)), want);
	if (!strstr(why, words))
		fail_msg("\"%s\" does not say \"%s\"", why, words);
	assert_int_equal(why[0] == 0, want == RETURNS_FINE);
}

static void test_judge(void **state)
{
	judged(end_by(0, CHILD_LIVED), 3, RETURNS_FINE, "");
	judged(end_by(0, CHILD_NO_FILTER), 0, RETURNS_FINE, "");
	/* a probe that was never hit has shown nothing */
	judged(end_by(0, CHILD_LIVED), 0, RETURNS_UNFILTERED, "not hit");
	judged(end_by(0, CHILD_CRASHED), 1, RETURNS_UNFILTERED, "crash");
	judged(end_by(SIGSEGV, 0), 1, RETURNS_UNFILTERED, "crash");
	judged(end_by(SIGTRAP, 0), 0, RETURNS_UNFILTERED, "crash");
	judged(end_by(SIGKILL, 0), 1, RETURNS_UNFILTERED, "killed");
	judged(end_by(0, CHILD_REFUSED), 0, RETURNS_UNFILTERED, "may not use seccomp");
	judged(end_by(0, CHILD_IDLE), 0, RETURNS_UNFILTERED, "could not be tried");
}

/* ---- who has a filter ------------------------------------------------------------------------ */

static void take_filter(void)
{
	struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	const struct sock_fprog filter = {1, allow};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		_exit(1);
}

static int said[2];

static void *filtered_thread(void *arg)
{
	take_filter();
	if (write(said[1], "x", 1) == 1)
		pause();
	return NULL;
}

/* how: 0 without one, 1 in its first thread, 2 in another. */
static pid_t child(int how)
{
	pid_t pid = fork();
	pthread_t thread;

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (how == 1)
		take_filter();
	if (how == 2)
		pthread_create(&thread, NULL, filtered_thread, NULL);
	else if (write(said[1], "x", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static void test_filtered(void **state)
{
	bool already = target_filtered(getpid()); /* in a container */
	char c;

	for (int how = 0; how < 3; how++) {
		pid_t pid;

		assert_int_equal(pipe(said), 0);
		pid = child(how);
		close(said[1]); /* a child that cannot tell ends, and so does the wait */
		assert_int_equal(read(said[0], &c, 1), 1);
		assert_int_equal(target_filtered(pid), how > 0 || already);
		assert_int_equal(attach_may_return(RETURNS_UNFILTERED, pid), !how && !already);
		assert_true(attach_may_return(RETURNS_FINE, pid));
		assert_false(attach_may_return(RETURNS_NEVER, pid));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		/* in doubt: no */
		assert_false(attach_may_return(RETURNS_UNFILTERED, pid));
		close(said[0]);
	}
}

/* ---- the plan -------------------------------------------------------------------------------- */

static const char yaml[] =
	"version: 1\n"
	"profiles:\n"
	"  - name: p\n"
	"    room: {type: u64}\n"
	"    libraries: {own: {file: \"test_returns*\"}}\n"
	"    probes:\n"
	"      - {name: two, library: own, symbol: returns_test_two, on: return,"
	" event: {role: call}}\n"
	"      - {name: tail, library: own, symbol: returns_test_tail, on: return,"
	" event: {role: call}}\n"
	"      - {name: in, library: own, symbol: returns_test_two, on: entry,"
	" event: {role: call}}\n";

static struct plan *plan_own(const struct profile *p, bool no_return)
{
	struct map_file f = {.path = "/x/test_returns", .base = "test_returns"};
	struct plan *plan;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(plan_make(p, &f, no_return, fd, "", &plan), 0);
	assert_int_equal(plan->nprobe, 3);
	assert_int_equal(plan->no_return, no_return);
	return plan;
}

static int count(const struct plan *plan, int probe, enum sp_site site)
{
	int n = 0;

	for (int i = 0; i < plan->nsite; i++)
		n += plan->site[i].probe == probe && SP_COOKIE_SITE(plan->site[i].cookie) == site;
	return n;
}

static void test_plan(void **state)
{
	struct profile_file *pf = parse(yaml);
	struct plan *plan;

	assert_true(attach_has_returns(&pf->profiles[0]));
	plan = plan_own(&pf->profiles[0], false);
	assert_true(plan->probe[0].ok && plan->probe[1].ok && plan->probe[2].ok);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(count(plan, i, SP_SITE_SAVE), 1);
		assert_int_equal(count(plan, i, SP_SITE_RETURN), 1);
		assert_int_equal(count(plan, i, SP_SITE_RET), 0);
	}
	plan_free(plan);

	plan = plan_own(&pf->profiles[0], true);
	for (int i = 0; i < plan->nsite; i++)
		assert_false(plan->site[i].at_return);
	assert_true(plan->probe[0].ok && plan->probe[2].ok);
	assert_int_equal(count(plan, 0, SP_SITE_SAVE), 1);
	assert_true(count(plan, 0, SP_SITE_RET) >= 1);
	assert_int_equal(count(plan, 0, SP_SITE_RETURN), 0);
	assert_int_equal(count(plan, 2, SP_SITE_ENTRY), 1);
	/* no place at all where not every return would be seen */
	assert_false(plan->probe[1].ok);
	assert_int_equal(count(plan, 1, SP_SITE_SAVE) + count(plan, 1, SP_SITE_RET), 0);
	assert_non_null(strstr(plan->probe[1].reason, "return probes are not used"));
	assert_non_null(strstr(plan->probe[1].reason, "nor its rets"));
	plan_free(plan);
	profile_free(pf);
}

/* No return probe, nothing to try. */
static void test_has_returns(void **state)
{
	struct profile_file *pf = parse(yaml);
	struct profile *p = &pf->profiles[0];

	p->probes[0].off = true;
	assert_true(attach_has_returns(p));
	p->probes[1].on = ON_RET;
	assert_false(attach_has_returns(p));
	profile_free(pf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_judge),
		cmocka_unit_test(test_filtered),
		cmocka_unit_test(test_plan),
		cmocka_unit_test(test_has_returns),
	};

	return cmocka_run_group_tests_name("returns", tests, NULL, NULL);
}
