// SPDX-License-Identifier: Apache-2.0
/*
 * What is kept of the libraries of processes that come and go. Run as root; SILENTPIN_UPROBE as in
 * attach_smoke.
 */
#include <dirent.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "attach_rig.h"

static const char yaml[] =
	RIG_YAML "      - name: text\n        library: smoke\n        symbol: smoke_text\n"
		 "        on: entry\n" RIG_CALL;

static struct rig rig;
static struct target target;

static int clean(void **state)
{
	rig_detach(&rig, &target);
	return 0;
}

/* With perf uprobes a detach takes a tenth of a second. */
#define COPIES (rig_backend() == BACKEND_PERF ? 10 : 50)

static int descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static bool few_descriptors(struct rig *r, long most)
{
	return attach_targets(r->attach) == 0 && descriptors() <= most;
}

/* Servers come and go, each from a file of its own, as when containers are started again: what was
 * kept of each is gone with its last process. */
static void test_plans_go(void **state)
{
	char dir[] = "/tmp/silentpin-plans-XXXXXX", copy[64], command[PATH_MAX + 128];
	const char *const libs[] = {copy, NULL};
	int before;

	assert_non_null(mkdtemp(dir));
	snprintf(copy, sizeof(copy), "%s/libsmoke.so", dir);
	rig_open(&rig, yaml);
	before = descriptors();
	for (int i = 0; i < COPIES; i++) {
		snprintf(command, sizeof(command), "rm -f %s && cp %s/libsmoke.so %s", copy,
			 rig_dir(), copy);
		assert_int_equal(system(command), 0);
		target_run(&target, NULL, libs);
		rig_add(&rig, target.pid, 1);
		target_end(&target);
		attach_tick(rig.attach);
	}
	unlink(copy);
	rmdir(dir);
	rig_until(&rig, few_descriptors, before, "the files of ended processes to be closed");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_plans_go, clean),
	};

	return cmocka_run_group_tests_name("attach_plans", tests, NULL, NULL);
}
