// SPDX-License-Identifier: Apache-2.0
/* What a probes file says and no probe of it gives: notes, where it is so and nowhere else. */
#include "profile_rig.h"

#include "profile/notes.h"

#define HEAD                                                                                       \
	"version: 1\nprofiles:\n  - name: t\n    room: {type: u64}\n    libraries: {l: {file: "    \
	"l}}\n"
#define ROOM "args: [{name: room, fetch: $arg1, type: u64}]"
#define POST                                                                                       \
	"      - {name: post, library: l, symbol: f, " ROOM                                        \
	", event: {role: post, kind: kv, op: room}}\n"
#define TEXT(pattern, event)                                                                       \
	"      - {name: text, library: l, symbol: g, args: [{name: s, fetch: +0($arg1), type: "    \
	"stdstring},\n         {name: op, fetch: $arg2, type: x64}], match: [{s: \"" pattern       \
	"\"}], event: " event "}\n"
#define WORK(word)                                                                                 \
	"      - {name: w" word ", library: l, symbol: w, " ROOM                                   \
	", event: {role: call, work: " word "}}\n"
#define TALLY(name, what, key)                                                                     \
	"      - {name: " name ", library: l, symbol: " name                                       \
	", each: {array: $arg1, count: $arg2, "                                                    \
	"stride: 8},\n         args: [{name: q, fetch: $arg3, type: u64}, {name: e, fetch: "       \
	"$each, "                                                                                  \
	"type: u64}],\n         tally: {name: " key ", key: q, " what                              \
	": true}, event: {role: call}}\n"

struct heard {
	char text[8][PROFILE_NOTE_MAX];
	int n;
};

static void hear(void *ctx, const char *text)
{
	struct heard *h = ctx;

	assert_true(h->n < 8);
	assert_true(strlen(text) < PROFILE_NOTE_MAX);
	snprintf(h->text[h->n++], PROFILE_NOTE_MAX, "%s", text);
}

/* off: a probe to be turned off first, or NULL. */
static struct heard notes_of(const char *text, const char *off)
{
	struct profile_file *pf = parse(text);
	struct sp_err err = {0};
	struct heard h = {0};

	if (off)
		assert_int_equal(profile_enable(&pf->profiles[0], off, false, &err), 0);
	profile_notes(&pf->profiles[0], hear, &h);
	profile_free(pf);
	return h;
}

static const struct {
	const char *text, *off, *says; /* says NULL: nothing */
} table[] = {
	/* a kind that is posted, as a word, by a capture, or covered by another */
	{HEAD "    done: {needs: [kv]}\n    probes:\n" POST, NULL, NULL},
	{HEAD "    done: {needs: [aux]}\n    probes:\n" POST, NULL, "done needs aux, "},
	{HEAD "    done: {needs: [aux.once]}\n    probes:\n" POST, NULL, "done needs aux, "},
	{HEAD "    done: {needs: [kv]}\n    probes:\n" POST WORK("begin") WORK("end"), "post",
	 "done needs kv, "},
	{HEAD "    done: {needs: [kv.last]}\n    probes:\n" POST, NULL, "done needs kv.last, "},
	{HEAD "    done: {needs: [kv.last]}\n    probes:\n" TEXT("{room}/{last}",
								 "{role: post, kind: kv}"),
	 NULL, NULL},
	{HEAD "    done: {needs: [kv.last]}\n    probes:\n" TEXT("{room}",
								 "{role: post, kind: kv, last: 1}"),
	 NULL, NULL},
	{HEAD "    done: {needs: [kv.last]}\n    probes:\n" TEXT("{room}",
								 "{role: post, kind: kv, last: 0}"),
	 NULL, "done needs kv.last, "},
	{HEAD "    done: {needs: [kv.last]}\n    probes:\n" TEXT(
		 "{room}", "{role: post, kind: aux, covers: [kv.last]}"),
	 NULL, NULL},
	{HEAD "    done: {needs: [aux]}\n    probes:\n" TEXT("{room}/{kind}", "{role: post}"), NULL,
	 NULL},
	{HEAD "    done: {needs: [aux]}\n    probes:\n" TEXT("{room}/{what}",
							     "{role: post, kind: what}"),
	 NULL, NULL},
	{HEAD "    done: {needs: [aux]}\n    probes:\n" TEXT("{room}", "{role: call, kind: aux}"),
	 NULL, "done needs aux, "},
	/* the two ends of a thread's work */
	{HEAD "    probes:\n" WORK("begin") WORK("end"), NULL, NULL},
	{HEAD "    probes:\n" WORK("begin"), NULL, "work: begin without work: end"},
	{HEAD "    probes:\n" WORK("end"), NULL, "work: end without work: begin"},
	{HEAD "    probes:\n" WORK("begin") WORK("end"), "wend", "work: begin without work: end"},
	{HEAD "    probes:\n" POST, NULL, NULL},
	/* the two sides of a tally: others have nothing to do with it */
	{HEAD "    probes:\n" TALLY("a", "posts", "q") TALLY("b", "completes", "q"), NULL, NULL},
	{HEAD "    probes:\n" TALLY("a", "posts", "q"), NULL, "tally q: no probe says completes"},
	{HEAD "    probes:\n" TALLY("b", "completes", "q"), NULL, "tally q: no probe says posts"},
	{HEAD "    probes:\n" TALLY("a", "posts", "q") TALLY("b", "completes", "q"), "a",
	 "tally q: no probe says posts"},
	{HEAD "    probes:\n" TALLY("a", "posts", "q") POST, "a", NULL},
};

static void test_table(void **state)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct heard h = notes_of(table[i].text, table[i].off);

		if (h.n != !!table[i].says ||
		    (h.n && strncmp(h.text[0], table[i].says, strlen(table[i].says)) != 0))
			fail_msg("row %zu: %d notes, \"%s\" instead of \"%s\" for\n%s", i, h.n,
				 h.text[0], table[i].says ? table[i].says : "", table[i].text);
	}
}

static void test_each_tally_on_its_own(void **state)
{
	struct heard h = notes_of(
		HEAD "    probes:\n" TALLY("a", "posts", "q") TALLY("b", "completes", "r"), NULL);

	assert_int_equal(h.n, 2);
	assert_non_null(strstr(h.text[0], "tally q: no probe says completes"));
	assert_non_null(strstr(h.text[1], "tally r: no probe says posts"));
}

/* Calls that ask whose they are, where nobody can say. */
static void test_scopes(void **state)
{
	static const char asks[] = HEAD "    probes:\n"
					"      - {name: c, library: l, symbol: f, on: return, "
					"scope: thread, event: {role: call}}\n";
	char text[sizeof(asks) + 400];
	struct heard h = notes_of(asks, NULL);

	assert_int_equal(h.n, 2);
	assert_non_null(strstr(h.text[0], "no call gives a room"));
	assert_non_null(strstr(h.text[1], "scope: thread goes no further"));
	assert_int_equal(notes_of(asks, "c").n, 0);
	snprintf(text, sizeof(text), "%s" WORK("begin") WORK("end"), asks);
	assert_int_equal(notes_of(text, NULL).n, 0);
}

/* The profiles that come with it: what is said of them is true of them (docs/profiles.md). */
static void test_shipped(void **state)
{
	struct profile_file *pf;
	struct sp_err err = {0};

	assert_int_equal(profile_load("probes.yaml", &pf, &err), 0);
	for (int i = 0; i < pf->nprofiles; i++) {
		struct heard h = {0};

		profile_notes(&pf->profiles[i], hear, &h);
		for (int k = 0; k < h.n; k++)
			if (!strstr(h.text[k], "no call gives a room") &&
			    !strstr(h.text[k], "scope: thread goes no further"))
				fail_msg("%s: %s", pf->profiles[i].name, h.text[k]);
	}
	profile_free(pf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_each_tally_on_its_own),
		cmocka_unit_test(test_scopes),
		cmocka_unit_test(test_shipped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
