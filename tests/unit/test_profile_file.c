// SPDX-License-Identifier: Apache-2.0
/* Files that are no probes file, and random damage to one. Run from the repository's root. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "profile/profile.h"

#define SMALL                                                                                      \
	"version: 1\nprofiles:\n  - name: t\n    room: {type: u64}\n"                              \
	"    libraries: {l: {file: lib.so}}\n    probes:\n"

/* ---- files -------------------------------------------------------------------------------------
 */

static char dir[] = "/tmp/sp-yaml-XXXXXX";

static int make_dir(void **state)
{
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/f", dir);
	unlink(path);
	return rmdir(dir);
}

static void refuse(const char *path, const char *words)
{
	struct profile_file *pf = (void *)1;
	struct sp_err err = {0};

	assert_true(profile_load(path, &pf, &err) < 0);
	assert_null(pf);
	assert_int_equal(err.exit_code, SP_EXIT_USAGE);
	if (strncmp(err.text, path, strlen(path)) != 0 || !strstr(err.text, words))
		fail_msg("%s: lacks \"%s\"", err.text, words);
}

static void write_file(const char *path, const void *data, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
	close(fd);
}

static void files(void **state)
{
	static char big[1024 * 1024 + 2];
	struct profile_file *pf;
	struct sp_err err = {0};
	char path[300];

	snprintf(path, sizeof(path), "%s/f", dir);
	refuse(path, "No such file or directory: check the path");
	refuse("", "not a file's name");
	refuse(dir, "Is a directory: name the file itself");
	refuse("/dev/null", "not a regular file");
	write_file(path, "", 0);
	refuse(path, "is empty");
	write_file(path, " \n\t\n", 4);
	refuse(path, "is empty");
	write_file(path, "# nothing\n", 10);
	refuse(path, "only comments");
	write_file(path,
		   "\x7f"
		   "ELF\0\0",
		   6);
	refuse(path, "binary");
	memset(big, '#', sizeof(big));
	write_file(path, big, sizeof(big));
	refuse(path, "has 1 MiB");
	assert_int_equal(truncate(path, 100 << 20), 0);
	refuse(path, "has 100 MiB: is it a probes file?");
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	refuse(path, "not a regular file"); /* at once, without a writer */
	unlink(path);
	if (geteuid()) {
		write_file(path, "version: 1\n", 11);
		chmod(path, 0);
		refuse(path, "Permission denied: check the file's permissions");
		unlink(path);
	}
	/* a byte order mark and CRLF are no errors */
	snprintf(big, sizeof(big), "\xef\xbb\xbf%s%s", SMALL,
		 "      - {name: p, library: l, symbol: f, event: {role: call}}");
	write_file(path, big, strlen(big));
	if (profile_load(path, &pf, &err))
		fail_msg("%s", err.text);
	assert_string_equal(pf->path, path);
	assert_string_equal(pf->text, big);
	profile_free(pf);
	assert_int_equal(setenv("SILENTPIN_PROBES", path, 1), 0);
	assert_int_equal(profile_load(NULL, &pf, &err), 0);
	assert_string_equal(pf->path, path);
	profile_free(pf);
	unsetenv("SILENTPIN_PROBES");
	assert_int_equal(profile_parse("crlf", "version: 2\r\nprofiles: []\r\n", 26, &pf, &err),
			 -EINVAL);
	assert_string_equal(err.text,
			    "crlf:1:10: version 2 is unknown: this program reads version 1");
}

/* ---- random damage ------------------------------------------------------------------------------
 */

static uint64_t seed = 20261129;

static size_t rnd(size_t n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (size_t)(seed >> 33) % n;
}

static void damage(char *text, size_t *len, size_t cap)
{
	static const char bytes[] = "{}[]:,-#\"'*&!|>%@`?~ \n\t$+()\\019azAZ_.\x01\xc3\xff";
	size_t at = rnd(*len), n, from;

	switch (rnd(5)) {
	case 0: /* another byte */
		text[at] = bytes[rnd(sizeof(bytes) - 1)];
		break;
	case 1: /* something lost */
		n = 1 + rnd(40);
		if (n > *len - at)
			n = *len - at;
		memmove(text + at, text + at + n, *len - at - n);
		*len -= n;
		break;
	case 2: /* something twice */
		n = 1 + rnd(200);
		from = rnd(*len);
		if (n > *len - from)
			n = *len - from;
		if (*len + n > cap)
			break;
		memmove(text + at + n, text + at, *len - at);
		memmove(text + at,
			text + (from < at         ? from
				: from + n < *len ? from + n
						  : from),
			from + 2 * n <= *len ? n : 0);
		*len += n;
		break;
	case 3: /* the end lost */
		*len = at + 1;
		break;
	default: /* a byte more */
		if (*len == cap)
			break;
		memmove(text + at + 1, text + at, *len - at);
		text[at] = bytes[rnd(sizeof(bytes) - 1)];
		(*len)++;
	}
}

static void damaged(const char *good)
{
	size_t whole = strlen(good), cap = 2 * whole;
	struct profile_file *pf;
	struct sp_err err = {0};
	char *text = malloc(cap);
	int taken = 0, refused = 0;

	assert_non_null(text);
	if (profile_parse("t.yaml", good, whole, &pf, &err))
		fail_msg("%s", err.text);
	profile_free(pf);
	for (int i = 0; i < 1500; i++) {
		size_t len = whole;
		int rc;

		memcpy(text, good, whole);
		for (size_t k = 1 + rnd(3); k > 0 && len; k--)
			damage(text, &len, cap);
		err.text[0] = '\0';
		rc = profile_parse("t.yaml", text, len, &pf, &err);
		if (!rc) {
			taken++;
			profile_free(pf);
			continue;
		}
		refused++;
		assert_null(pf);
		assert_int_equal(err.exit_code, SP_EXIT_USAGE);
		if (strncmp(err.text, "t.yaml:", 7) != 0 || strchr(err.text, '\n'))
			fail_msg("%s", err.text);
	}
	assert_true(taken > 20 && refused > 500); /* damage to comments is no damage */
	free(text);
}

static void random_damage(void **state)
{
	struct profile_file *shipped;
	struct sp_err err = {0};

	if (profile_load("probes.yaml", &shipped, &err))
		fail_msg("%s", err.text);
	damaged(shipped->text);
	profile_free(shipped);
}

/* Small, so that most of the damage falls on what is said of sockets. */
static void random_damage_sockets(void **state)
{
	damaged(SMALL
		"      - {name: p, library: l, symbol: f, frame: a, socket: b,\n"
		"         args: [{name: a, fetch: +0($arg1), type: zmqmsg},\n"
		"                {name: b, fetch: $arg2, type: u64}],\n"
		"         messages: [{frames: [x, \"{room}\"], event: {role: abort}}]}\n"
		"    sockets:\n"
		"      # seen by p too\n"
		"      - {name: s, process: self, when: {bytes: zmtp}, decode: zmtp,\n"
		"         same_as: p, wins: socket, direction: both}\n"
		"      # what goes out: room and rank\n"
		"      - name: told\n"
		"        process: {is: [self, sibling], cmdline: \"*prefill*\", exe: any}\n"
		"        when: {listen: 8998, peer: \"8000-8099\"}\n"
		"        decode: zmtp\n"
		"        direction: out\n"
		"        messages: [{frames: [\"{room}\", \"{rank}\"], event: {role: told}}]\n"
		"      # the front\n"
		"      - {name: http, process: {is: parent, listens: true}, when: {bytes: "
		"http},\n"
		"         decode: http, keys: {room: bootstrap_room, rid: rid}, abort: /abort}\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(files, make_dir, remove_dir),
		cmocka_unit_test(random_damage),
		cmocka_unit_test(random_damage_sockets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
