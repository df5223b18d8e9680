// SPDX-License-Identifier: Apache-2.0
/* A profile of the server's own view alone, and what is said to those who write one. */
#include "profile_rig.h"

#define HEAD "version: 1\nprofiles:\n  - name: t\n    room: {type: u64}\n"
#define PY   "    python:\n      root: {frame: f}\n"
#define Q    "      queues: {inflight: \"self.q[*].room\"}\n"
#define ST   "      status: \"self.s{} -> {room: key, status: value}\"\n"

static void refused(const char *text, const char *words)
{
	struct profile_file *pf;
	struct sp_err err = {0};

	if (!profile_parse("t.yaml", text, strlen(text), &pf, &err))
		fail_msg("taken: %s", text);
	assert_int_equal(err.exit_code, SP_EXIT_USAGE);
	if (!strstr(err.text, words))
		fail_msg("%s: not in: %s", words, err.text);
}

static void test_alone(void **state)
{
	static const char *const texts[] = {
		HEAD PY Q,
		HEAD "    probes: []\n" PY Q,
		HEAD "    libraries: {l: {file: \"l.so\"}}\n    probes: []\n" PY Q,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct profile_file *pf = parse(texts[i]);

		assert_int_equal(pf->profiles[0].nprobes, 0);
		assert_non_null(pf->profiles[0].python);
		profile_free(pf);
	}
	refused(HEAD, "no \"libraries\"");
	refused(HEAD "    libraries: {l: {file: \"l.so\"}}\n", "no \"probes\"");
	refused(HEAD "    libraries: {l: {file: \"l.so\"}}\n    probes: []\n", "an empty list");
	refused(HEAD "    probes: [{name: p, library: l, symbol: f, event: {role: call}}]\n" PY Q,
		"library \"l\" is not among libraries");
}

/* An attribute that is named as the parts of an entry are. */
static void test_key_and_value(void **state)
{
	char text[200];
	struct profile_file *pf;

	(void)state;
	refused(HEAD PY "      queues: {inflight: \"self.q[*] -> {room: value}\"}\n",
		"t.yaml:7:47: queue inflight: \"value\" of what? The query does not end in {}");
	refused(HEAD PY "      queues: {inflight: \"self.q[*] -> {room: r, rid: key.x}\"}\n",
		"or write .key for an attribute of that name");
	pf = parse(HEAD PY "      queues: {inflight: \"self.q[*] -> {room: .value, rid: .x}\"}\n");
	py_query_print(&pf->profiles[0].python->queue[0].alts.query[0], text, sizeof(text));
	assert_string_equal(text, "self.q[*] -> {room: .value, rid: x}");
	profile_free(pf);
	pf = parse(HEAD PY "      queues: {inflight: \"self.q[*].value\"}\n");
	py_query_print(&pf->profiles[0].python->queue[0].alts.query[0], text, sizeof(text));
	assert_string_equal(text, "self.q[*] -> {room: .value}");
	profile_free(pf);
	refused(HEAD PY "      queues: {inflight: \"self.q{} -> {room: .key}\"}\n",
		"key or value expected here");
}

static void test_root_type(void **state)
{
	struct profile_file *pf =
		parse(HEAD "    python:\n      root: {frame: f, type: \"Bak*\"}\n" Q);

	(void)state;
	assert_string_equal(pf->profiles[0].python->root[0].type, "Bak*");
	profile_free(pf);
	refused(HEAD "    python:\n      root: {frame: f, type: \"[x\"}\n" Q, "without \"]\"");
}

/* Each says what to do. */
static void test_remedies(void **state)
{
	(void)state;
	refused(HEAD PY "      queues:\n        waiting: \"self.q[*].r\"\n"
			"        waiting: \"self.p[*].r\"\n",
		"\"waiting\" a second time: give it another name that says its stage, such as "
		"waiting2, or make its query an alternative of the first");
	refused(HEAD PY "      queues: {waiting: 42}\n",
		"then the way to the elements: self.NAME[*]");
	refused(HEAD PY "      queues: {waiting: \"self.waiting[0] -> {room: r}\"}\n",
		"only [*], every element, can be written here: write [*] for it");
	refused(HEAD PY "      queues:\n        waiting: self.q[*] -> {room: r}\n",
		"quote a text that holds \": \", the whole of it");
	refused(HEAD PY Q ST "      states: {done: 4, moving: 4}\n",
		"moving and done are both 4: leave the one out");
	refused(HEAD PY Q ST "      states: {done: finished}\n",
		"done must be a whole number: the one in the status table");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_key_and_value),
		cmocka_unit_test(test_root_type),
		cmocka_unit_test(test_remedies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
