// SPDX-License-Identifier: Apache-2.0
/* The sink: whoever reads may be slow, blocked or gone; the caller never waits. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "output/output.h"
#include "util/clock.h"

#define MANY 20000

static void write_numbers(struct sink *s, int n)
{
	char line[32];

	for (int i = 0; i < n; i++) {
		snprintf(line, sizeof(line), "line %d\n", i);
		sink_write(s, line);
	}
}

static void test_order(void **state)
{
	char want[32], got[32];
	int fd[2];
	struct sink *s;
	FILE *f;

	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	s = sink_open(fd[1]);
	write_numbers(s, 1000); /* fits into a pipe */
	sink_close(s);
	close(fd[1]);
	f = fdopen(fd[0], "r");
	for (int i = 0; i < 1000; i++) {
		snprintf(want, sizeof(want), "line %d\n", i);
		assert_non_null(fgets(got, sizeof(got), f));
		assert_string_equal(got, want);
	}
	assert_null(fgets(got, sizeof(got), f));
	fclose(f);
}

/* Each line is written as it comes, not when a buffer is full. */
static void test_at_once(void **state)
{
	struct pollfd p = {.events = POLLIN};
	int fd[2];
	struct sink *s;

	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	s = sink_open(fd[1]);
	sink_write(s, "one\n");
	p.fd = fd[0];
	assert_int_equal(poll(&p, 1, 5000), 1);
	sink_close(s);
	close(fd[0]);
	close(fd[1]);
}

/* Nobody reads: writing stays cheap, memory bounded, what is beyond is counted, closing ends. */
static void test_blocked(void **state)
{
	char line[4096];
	uint64_t t0;
	int fd[2];
	struct sink *s;

	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	s = sink_open(fd[1]);
	memset(line, 'x', sizeof(line));
	line[sizeof(line) - 2] = '\n';
	line[sizeof(line) - 1] = '\0';
	t0 = mono_ns();
	for (int i = 0; i < MANY; i++)
		sink_write(s, line);
	assert_true(mono_ns() - t0 < 5 * NS_PER_SEC); /* of which a blocked write would take all */
	assert_true(sink_dropped(s) > 100 && sink_dropped(s) < MANY);
	t0 = mono_ns();
	sink_close(s);
	assert_true(mono_ns() - t0 < 3 * NS_PER_SEC);
	/* the abandoned thread still sits in its write: let it go before its pipe is closed */
	fcntl(fd[0], F_SETFL, O_NONBLOCK);
	while (read(fd[0], line, sizeof(line)) > 0)
		;
	close(fd[0]);
}

/* A reader that goes on after a pause gets all that was kept, in whole lines. */
static void test_slow_reader(void **state)
{
	char line[64];
	int fd[2], n = 0;
	struct sink *s;
	FILE *f;

	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	s = sink_open(fd[1]);
	write_numbers(s, 50000);
	assert_int_equal(sink_dropped(s), 0);
	f = fdopen(fd[0], "r");
	while (n < 50000 && fgets(line, sizeof(line), f))
		assert_int_equal(atoi(line + 5), n++);
	assert_int_equal(n, 50000);
	sink_close(s);
	close(fd[1]);
	fclose(f);
}

static void test_reader_gone(void **state)
{
	int fd[2];
	struct sink *s;

	signal(SIGPIPE, SIG_DFL); /* it must not kill us */
	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	s = sink_open(fd[1]);
	close(fd[0]);
	sink_write(s, "nobody\n");
	for (int i = 0; i < 5000 && !sink_dropped(s); i++)
		usleep(1000);
	assert_int_equal(sink_dropped(s), 1);
	sink_write(s, "hears\n");
	assert_int_equal(sink_dropped(s), 2);
	sink_close(s);
	close(fd[1]);
}

static void test_closed_descriptor(void **state)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct sink *s = sink_open(fd);

	close(fd);
	sink_write(s, "x\n");
	for (int i = 0; i < 5000 && !sink_dropped(s); i++)
		usleep(1000);
	assert_int_equal(sink_dropped(s), 1);
	sink_close(s);
}

/* Somebody who shares stdout has made it non-blocking. */
static void test_nonblocking(void **state)
{
	char buf[4096];
	size_t got = 0;
	int fd[2];
	struct sink *s;

	assert_int_equal(pipe2(fd, O_CLOEXEC | O_NONBLOCK), 0);
	s = sink_open(fd[1]);
	write_numbers(s, 20000);
	while (got < 20000 * 6) {
		struct pollfd p = {.fd = fd[0], .events = POLLIN};
		ssize_t n;

		assert_int_equal(poll(&p, 1, 5000), 1);
		n = read(fd[0], buf, sizeof(buf));
		assert_true(n > 0);
		got += (size_t)n;
	}
	assert_int_equal(sink_dropped(s), 0);
	while (read(fd[0], buf, sizeof(buf)) > 0)
		;
	sink_close(s);
	close(fd[0]);
	close(fd[1]);
}

static void test_unused(void **state)
{
	sink_close(sink_open(1));
	sink_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_at_once),
		cmocka_unit_test(test_slow_reader),
		cmocka_unit_test(test_reader_gone),
		cmocka_unit_test(test_closed_descriptor),
		cmocka_unit_test(test_nonblocking),
		cmocka_unit_test(test_unused),
		cmocka_unit_test(test_blocked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
