// SPDX-License-Identifier: Apache-2.0
/*
 * Attach as processes come and go: fork, exec, libraries loaded later, deleted or behind a chroot,
 * pid namespaces, commands started under watch. Run as root; SILENTPIN_UPROBE as in attach_smoke.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "attach_rig.h"

static const char yaml[] = "version: 1\n"
			   "profiles:\n"
			   "  - name: smoke\n"
			   "    match: {cmdline: \"*smoke_target*\"}\n"
			   "    room: {type: u64}\n"
			   "    libraries:\n"
			   "      smoke: {file: \"libsmoke.so\"}\n"
			   "    probes:\n"
			   "      - name: text\n"
			   "        library: smoke\n"
			   "        symbol: smoke_text\n"
			   "        on: entry\n"
			   "        args:\n"
			   "          - {name: s, fetch: \"+0($arg1)\", type: string, max: 64}\n"
			   "        event: {role: call}\n"
			   "      - name: made\n"
			   "        library: smoke\n"
			   "        symbol: smoke_make\n"
			   "        on: return\n"
			   "        args:\n"
			   "          - {name: rc, fetch: $retval, type: s32}\n"
			   "        event: {role: call}\n"
			   "      - name: missing\n"
			   "        library: smoke\n"
			   "        symbol: smoke_texx\n"
			   "        on: entry\n"
			   "        required: false\n"
			   "        event: {role: call}\n";

#define PROBES 2

static const char *const smoke_lib[] = {"libsmoke.so", NULL};
static const char *const no_libs[] = {NULL};

static struct rig rig;
static struct target target;

static int clean(void **state)
{
	rig_detach(&rig, &target);
	return 0;
}

static bool noticed(struct rig *r, long what)
{
	for (int i = 0; i < r->nnotice; i++)
		if ((long)r->notice[i].what == what)
			return true;
	return false;
}

static bool probes_are(struct rig *r, long n)
{
	return attach_probes(r->attach) == n;
}

static pid_t number_after(const char *text, const char *word)
{
	const char *p = strstr(text, word);

	assert_non_null(p);
	return (pid_t)strtol(p + strlen(word), NULL, 10);
}

static void test_fork(void **state)
{
	const struct sp_rec_hit *h;
	pid_t child;

	target_run(&target, NULL, smoke_lib);
	rig_open(&rig, yaml);
	rig_add(&rig, target.pid, PROBES);
	child = number_after(target_say(&target, "fork"), "pid=");
	rig_until(&rig, noticed, NOTICE_FORK, "the fork");
	assert_true(rig_noticed(&rig, NOTICE_FORK, child));
	assert_int_equal(attach_targets(rig.attach), 2);
	assert_int_equal(attach_probes(rig.attach), 2 * PROBES);
	target_say(&target, "child text from-child");
	target_say(&target, "text from-parent");
	rig_pump(&rig);
	assert_int_equal(rig_count(&rig, "text"), 2); /* each once, though both are watched */
	h = rig_hit(&rig, "text", 0);
	assert_int_equal(h->h.pid, child);
	assert_string_equal(rig_text(&rig, h, "s"), "from-child");
	/* A child's child too. */
	target_say(&target, "child fork");
	rig_until(&rig, probes_are, 3 * PROBES, "the grandchild's probes");
	target_say(&target, "killchild");
	rig_until(&rig, noticed, NOTICE_EXITED, "the child's exit");
	assert_true(rig_noticed(&rig, NOTICE_EXITED, child));
}

/* A full ring loses records: they are counted, show as a gap, and a child is found all the same. */
static void test_lost_records(void **state)
{
	uint64_t first, last, lost;
	pid_t child;

	target_run(&target, NULL, smoke_lib);
	rig.ring_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
	rig_open(&rig, yaml);
	rig_add(&rig, target.pid, PROBES);
	for (int i = 0; i < 50; i++)
		target_say(&target, "text fill"); /* large records, then small ones */
	for (int i = 0; i < 50; i++)
		target_say(&target, "make 0");
	child = number_after(target_say(&target, "fork"), "pid=");
	lost = rig_counter(&rig, SP_C_RING_FULL);
	assert_true(lost > 0 && lost < 101);
	rig_pump(&rig);
	assert_int_equal(rig.nrec + lost, 101);
	assert_false(rig_noticed(&rig, NOTICE_FORK, child));
	rig_until(&rig, probes_are, 2 * PROBES, "the child whose record was lost");
	assert_true(rig_noticed(&rig, NOTICE_FORK, child));
	if (!attach_has_seq(rig.attach))
		return;
	first = rig.rec[0].hit.h.seq;
	target_say(&target, "text after");
	rig_pump(&rig);
	last = rig.rec[rig.nrec - 1].hit.h.seq;
	assert_int_equal(last - first + 1, rig.nrec + lost);
}

/* A vfork child runs in its parent's memory: nothing may be seen twice, nothing lost. */
static void test_vfork(void **state)
{
	target_run(&target, NULL, smoke_lib);
	rig_open(&rig, yaml);
	rig_add(&rig, target.pid, PROBES);
	for (int i = 0; i < 10; i++) {
		target_say(&target, "spawn");
		target_say(&target, "text after");
	}
	rig_pump(&rig);
	rig_until(&rig, probes_are, PROBES, "the end of the children");
	assert_int_equal(rig_count(&rig, "text"), 10);
	assert_int_equal(attach_targets(rig.attach), 1);
}

static void test_exec(void **state)
{
	target_run(&target, NULL, smoke_lib);
	rig_open(&rig, yaml);
	rig_add(&rig, target.pid, PROBES);
	target_say(&target, "exec %s/smoke_target", rig_dir()); /* says "ready" */
	rig_until(&rig, noticed, NOTICE_EXEC, "the exec");
	assert_int_equal(attach_probes(rig.attach), 0);
	assert_string_equal(target_say(&target, "open %s/libsmoke.so", rig_dir()), "ok");
	rig_until(&rig, probes_are, PROBES, "the library of the new program");
	target_say(&target, "text again");
	rig_pump(&rig);
	assert_int_equal(rig_count(&rig, "text"), 1);
}

static void test_late_library(void **state)
{
	target_run(&target, NULL, no_libs);
	rig_open(&rig, yaml);
	rig_add(&rig, target.pid, 0);
	target_say(&target, "open %s/libsmoke.so", rig_dir());
	rig_until(&rig, noticed, NOTICE_LIB, "the library");
	for (int i = 0; i < rig.nnotice; i++)
		if (rig.notice[i].what == NOTICE_LIB) {
			assert_true(rig.notice[i].gap);
			assert_int_equal(rig.notice[i].n, PROBES);
			assert_non_null(strstr(rig.notice[i].text, "libsmoke.so"));
		}
	target_say(&target, "text late");
	rig_pump(&rig);
	assert_int_equal(rig_count(&rig, "text"), 1);
}

static void copy_file(const char *from, const char *to)
{
	char buf[1 << 16];
	int in = open(from, O_RDONLY | O_CLOEXEC), out;
	ssize_t n;

	out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	assert_true(in >= 0 && out >= 0);
	while ((n = read(in, buf, sizeof(buf))) > 0)
		assert_int_equal(write(out, buf, (size_t)n), n);
	close(in);
	close(out);
}

static void copy_lib(const char *folder, const char *name)
{
	char from[PATH_MAX + 64], to[PATH_MAX + 64];

	snprintf(from, sizeof(from), "%s/%s", rig_dir(), name);
	snprintf(to, sizeof(to), "%s/%s", folder, name);
	copy_file(from, to);
}

static void test_deleted_library(void **state)
{
	char dir[] = "/tmp/sp-smoke-XXXXXX", lib[64], other[64];
	const char *libs[] = {lib, NULL};

	assert_non_null(mkdtemp(dir));
	snprintf(lib, sizeof(lib), "%s/libsmoke.so", dir);
	copy_lib(dir, "libsmoke.so");
	target_run(&target, NULL, libs);
	unlink(lib);
	/* Another file under the same name must not be taken for it. */
	snprintf(other, sizeof(other), "%s/libsmokexx.so", dir);
	copy_lib(dir, "libsmokexx.so");
	assert_int_equal(rename(other, lib), 0);
	rig_open(&rig, yaml);
	rig_add(&rig, target.pid, PROBES);
	target_say(&target, "text deleted");
	rig_pump(&rig);
	assert_int_equal(rig_count(&rig, "text"), 1);
	/* A child of it too, though the file has no name any more. */
	target_say(&target, "fork");
	rig_until(&rig, probes_are, 2 * PROBES, "the child's probes");
	target_say(&target, "child text deleted");
	rig_pump(&rig);
	assert_int_equal(rig_count(&rig, "text"), 2);
	unlink(lib);
	rmdir(dir);
}

/* The target's root is a folder of its own, in a mount namespace of its own: as in a container. */
static void test_other_root(void **state)
{
	static const char *const system_libs[] = {"libc.so.6", "ld-linux-x86-64.so.2",
						  "ld-linux-aarch64.so.1"};
	static const char *const folders[] = {"/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu",
					      "/lib64", "/lib"};
	char dir[] = "/tmp/sp-smoke-XXXXXX", path[PATH_MAX], to[PATH_MAX + 64], cmd[PATH_MAX];
	const char *libs[] = {"/libsmoke.so", NULL};
	const char *prefix[] = {"unshare", "-m", "chroot", dir, "/smoke_target", NULL};

	assert_non_null(mkdtemp(dir));
	copy_lib(dir, "libsmoke.so");
	copy_lib(dir, "smoke_target");
	for (size_t f = 0; f < sizeof(folders) / sizeof(*folders); f++)
		for (size_t i = 0; i < sizeof(system_libs) / sizeof(*system_libs); i++) {
			snprintf(path, sizeof(path), "%s/%s", folders[f], system_libs[i]);
			if (access(path, R_OK))
				continue;
			snprintf(cmd, sizeof(cmd), "mkdir -p %s%s", dir, folders[f]);
			assert_int_equal(system(cmd), 0);
			snprintf(to, sizeof(to), "%s%s", dir, path);
			copy_file(path, to);
		}
	target_run(&target, prefix, libs);
	rig_open(&rig, yaml);
	rig_add(&rig, target.pid, PROBES);
	target_say(&target, "text contained");
	rig_pump(&rig);
	assert_int_equal(rig_count(&rig, "text"), 1);
	target_end(&target);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	assert_int_equal(system(cmd), 0);
}

/* The target is the first process of its own pid namespace; silentpin sees other numbers. */
static void test_pid_namespace(void **state)
{
	const char *prefix[] = {
		"unshare", "-p", "-f", "--kill-child", "sh", "-c", "exec \"$0\" \"$@\"",
		NULL,      NULL};
	char program[PATH_MAX + 32], path[64];
	pid_t inner = 0;
	FILE *f;

	snprintf(program, sizeof(program), "%s/smoke_target", rig_dir());
	prefix[7] = program;
	target_run(&target, prefix, smoke_lib);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", target.pid, target.pid);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%d", &inner) != 1)
		inner = 0;
	if (f)
		fclose(f);
	assert_true(inner > 0);
	rig_open(&rig, yaml);
	rig_add(&rig, inner, PROBES);
	target_say(&target, "text inside");
	target_say(&target, "fork");
	rig_until(&rig, probes_are, 2 * PROBES, "the child's probes");
	target_say(&target, "child text inside");
	rig_pump(&rig);
	assert_int_equal(rig_count(&rig, "text"), 2);
	assert_int_equal(rig_hit(&rig, "text", 0)->h.pid, inner);
	assert_true(rig_hit(&rig, "text", 1)->h.pid != (uint32_t)inner);
	assert_true(rig_noticed(&rig, NOTICE_FORK, (pid_t)rig_hit(&rig, "text", 1)->h.pid));
}

static void test_exit(void **state)
{
	struct sp_err err = {0};
	pid_t pid;

	target_run(&target, NULL, smoke_lib);
	rig_open(&rig, yaml);
	rig_add(&rig, target.pid, PROBES);
	pid = target.pid;
	target_end(&target);
	rig_until(&rig, noticed, NOTICE_EXITED, "the exit");
	assert_int_equal(attach_targets(rig.attach), 0);
	assert_int_equal(attach_add(rig.attach, pid, &err), -ESRCH);
	assert_non_null(strstr(err.text, "does not exist"));
}

static void test_command(void **state)
{
	char program[PATH_MAX + 32], lib[PATH_MAX + 32];
	char script[] = "/tmp/silentpin-test-XXXXXX";
	char *argv[] = {program, lib, NULL}, *none[] = {"/nonexistent/program", NULL};
	char *broken[] = {script, NULL};
	struct target_child c;
	struct sp_err err = {0};
	int stdin_was = dup(0), keep_open[2], fd;

	/* Its input never ends, so that it stays. */
	assert_int_equal(pipe(keep_open), 0);
	dup2(keep_open[0], 0);
	snprintf(program, sizeof(program), "%s/smoke_target", rig_dir());
	snprintf(lib, sizeof(lib), "%s/libsmoke.so", rig_dir());
	rig_open(&rig, yaml);
	assert_int_equal(target_spawn(none, &c, &err), -ENOENT);
	assert_non_null(strstr(err.text, "No such file"));
	/* there, and what is to run it is not: only the exec says so */
	fd = mkstemp(script);
	assert_true(fd >= 0 && write(fd, "#!/no/such\n", 11) == 11 && !fchmod(fd, 0700));
	close(fd);
	assert_int_equal(target_spawn(broken, &c, &err), 0);
	assert_int_equal(target_go(&c, broken[0], &err), -ENOENT);
	assert_non_null(strstr(err.text, "No such file"));
	unlink(script);
	assert_int_equal(target_spawn(argv, &c, &err), 0);
	rig_add(&rig, c.pid, 0);
	assert_int_equal(target_go(&c, argv[0], &err), 0);
	rig_until(&rig, probes_are, PROBES, "the command's library");
	assert_true(rig_noticed(&rig, NOTICE_EXEC, c.pid));
	kill(c.pid, SIGKILL);
	waitpid(c.pid, NULL, 0);
	dup2(stdin_was, 0);
	close(stdin_was);
	close(keep_open[0]);
	close(keep_open[1]);
}

static void test_find(void **state)
{
	pid_t pids[64];
	bool found = false;
	int n;

	target_run(&target, NULL, smoke_lib);
	rig_open(&rig, yaml);
	n = target_find(rig.profile, pids, 64);
	for (int i = 0; i < n; i++)
		found |= pids[i] == target.pid;
	assert_true(found);
}

static void count_row(void *ctx, const struct attach_row *row)
{
	int *count = ctx;

	count[row->ok]++;
	if (!row->ok)
		assert_non_null(strstr(row->reason, "smoke_text")); /* the nearest is named */
}

static void test_rows(void **state)
{
	int wet[2] = {0}, dry[2] = {0};
	struct sp_err err = {0};

	target_run(&target, NULL, smoke_lib);
	rig_open(&rig, yaml);
	rig_add(&rig, target.pid, PROBES);
	attach_rows(rig.attach, count_row, wet);
	assert_int_equal(
		attach_dry_rows(rig.profile, target.pid, RETURNS_FINE, count_row, dry, &err), 0);
	assert_int_equal(wet[1], PROBES);
	assert_int_equal(wet[0], 1);
	assert_int_equal(dry[1], PROBES);
	assert_int_equal(dry[0], 1);
}

/* Is the target's code of libsmoke.so that of the file, byte for byte? */
static bool code_is_files(pid_t pid)
{
	char path[PATH_MAX + 32], line[PATH_MAX + 128], perms[8];
	unsigned long start, end, off;
	bool same = false, found = false;
	FILE *maps;
	int mem, lib;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	mem = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "%s/libsmoke.so", rig_dir());
	lib = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "re");
	assert_true(mem >= 0 && lib >= 0 && maps);
	while (!found && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %7s %lx", &start, &end, perms, &off) != 4 ||
		    perms[2] != 'x' || !strstr(line, "libsmoke.so"))
			continue;
		char *mapped = malloc(end - start), *file = calloc(1, end - start);

		found = true;
		assert_int_equal(pread(mem, mapped, end - start, (off_t)start), end - start);
		assert_true(pread(lib, file, end - start, (off_t)off) > 0);
		same = memcmp(mapped, file, end - start) == 0;
		free(mapped);
		free(file);
	}
	fclose(maps);
	close(mem);
	close(lib);
	assert_true(found);
	return same;
}

static void test_text_restored(void **state)
{
	target_run(&target, NULL, smoke_lib);
	rig_open(&rig, yaml);
	assert_true(code_is_files(target.pid));
	rig_add(&rig, target.pid, PROBES);
	target_say(&target, "text x");
	assert_false(code_is_files(target.pid)); /* the probes are there to be seen */
	rig_close(&rig);
	assert_true(code_is_files(target.pid));
	assert_string_equal(target_say(&target, "text x"), "ok");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_fork, clean),
		cmocka_unit_test_teardown(test_lost_records, clean),
		cmocka_unit_test_teardown(test_vfork, clean),
		cmocka_unit_test_teardown(test_exec, clean),
		cmocka_unit_test_teardown(test_late_library, clean),
		cmocka_unit_test_teardown(test_deleted_library, clean),
		cmocka_unit_test_teardown(test_other_root, clean),
		cmocka_unit_test_teardown(test_pid_namespace, clean),
		cmocka_unit_test_teardown(test_exit, clean),
		cmocka_unit_test_teardown(test_command, clean),
		cmocka_unit_test_teardown(test_find, clean),
		cmocka_unit_test_teardown(test_rows, clean),
		cmocka_unit_test_teardown(test_text_restored, clean),
	};

	return cmocka_run_group_tests_name("attach_process", tests, NULL, NULL);
}
