/* SPDX-License-Identifier: Apache-2.0 */
/* Probes files as text: those that are taken, and those that are refused with a place and words. */
#ifndef PROFILE_RIG_H
#define PROFILE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "profile/profile.h"
#include "util/cleanup.h"

static inline struct profile_file *parse(const char *text)
{
	struct profile_file *pf;
	struct sp_err err = {0};

	if (profile_parse("t.yaml", text, strlen(text), &pf, &err))
		fail_msg("%s in\n%s", err.text, text);
	return pf;
}

/* at: line, or line and column; words: among those of the one line that is told. */
struct slip {
	const char *text, *at, *words;
};

static inline bool slips_as(const struct slip *s)
{
	struct profile_file *pf = (void *)1;
	struct sp_err err = {0};
	char prefix[64];

	if (!profile_parse("t.yaml", s->text, strlen(s->text), &pf, &err))
		fail_msg("taken:\n%s", s->text);
	assert_int_equal(err.exit_code, SP_EXIT_USAGE);
	assert_null(strchr(err.text, '\n'));
	assert_null(pf);
	snprintf(prefix, sizeof(prefix), "t.yaml:%s:%s", s->at, strchr(s->at, ':') ? " " : "");
	if (!strncmp(err.text, prefix, strlen(prefix)) && strstr(err.text, s->words))
		return true;
	print_error("\"%s\" should be \"%s...%s\" for:\n%s\n", err.text, prefix, s->words, s->text);
	return false;
}

static inline void expect_slips(const struct slip *s, size_t n)
{
	size_t failed = 0;

	for (size_t i = 0; i < n; i++)
		failed += !slips_as(&s[i]);
	assert_int_equal(failed, 0);
}

#endif
