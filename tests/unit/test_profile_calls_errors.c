// SPDX-License-Identifier: Apache-2.0
/* Every mistake in what test_profile_calls.c is about, with its line. */
#include "profile_calls_rig.h"

#define LIST "        each: {list: $arg4, next: 8}\n"
#define RECV                                                                                       \
	"      - name: recv\n"                                                                     \
	"        library: l\n"                                                                     \
	"        symbol: f\n"                                                                      \
	"        on: return\n"                                                                     \
	"        args: [{name: f, fetch: \"+0($arg1)\", type: zmqmsg, max: 256},\n"                \
	"               {name: s, fetch: $arg2, type: x64}]\n"                                     \
	"        frame: f\n"                                                                       \
	"        socket: s\n"                                                                      \
	"        messages:\n"

/* ---- mistakes ----------------------------------------------------------------------------------
 */

#define GROUP "version: 1\ngroups:\n  - name: g\n    libraries: {l: {file: lib.so}}\n    probes: "
#define GOOD  "[{name: q, library: l, symbol: f, event: {role: call}}]\n"
#define T     "profiles:\n  - name: t\n    room: {type: u64}\n"
#define P1    "      - {name: p, library: l, symbol: f, on: return, event: {role: call}"

static const struct slip errors[] = {
	/* groups */
	{"version: 1\ngroups: {}\n" T, "2", "must be a list"},
	{"version: 1\ngroups: [{name: g, lib: x}]\n" T, "2", "unknown key \"lib\" in a group"},
	{"version: 1\ngroups: [{}]\n" T, "2", "the group has no \"name\""},
	{"version: 1\ngroups: [{name: g}]\n" T, "2", "the group has no \"libraries\""},
	{GROUP GOOD "  - name: g\n" T, "6", "group \"g\" a second time"},
	{GROUP GOOD T "    uses: [h]\n", "9", "no group is named \"h\": did you mean \"g\"?"},
	{GROUP GOOD T "    uses: g\n", "9", "must be a list"},
	{GROUP GOOD T "    uses: [g, g]\n", "9", "a second time"},
	{"version: 1\n" T "    uses: [g]\n", "5", "this file has no groups"},
	{GROUP GOOD T "    uses: [g]\n    libraries: {l: {file: other}}\n", "4",
	 "library \"l\" of group g is another one in profile t"},
	{GROUP GOOD T "    uses: [g]\n    libraries: {l: {file: lib.so}}\n    probes: " GOOD, "5",
	 "probe \"q\" a second time: used with group g"},
	{GROUP "[{name: g, library: l, symbol: f, event: {role: call}}]\n" T "    uses: [g]\n", "9",
	 "is the name of a group and of a probe"},
	{GROUP "[{name: q, library: k, symbol: f, event: {role: call}}]\n" T "    uses: [g]\n", "5",
	 "not among libraries"},
	/* of a group that nobody uses too */
	{GROUP "[{name: q, library: k, symbol: f, event: {role: call}}]\n" T
	       "    libraries: {l: {file: x}}\n    probes: " GOOD,
	 "5", "not among libraries"},
	{HEAD "    libraries: {l: {file: []}}\n", "7", "a second time"},
	{"version: 1\n" T "    libraries: {l: {file: [a, a]}}\n", "5", "a second time in file"},
	{"version: 1\n" T "    libraries: {l: {file: [a/b]}}\n", "5", "without folders"},
	{"version: 1\n" T "    libraries: {l: {file: []}}\n", "5", "empty list"},
	/* a probe */
	{HEAD P1 ", enabled: maybe}\n", "7", "true or false"},
	{HEAD "      - {name: p, library: l, symbol: f, waits: true}\n", "7",
	 "waits: with on: entry"},
	{HEAD "      - {name: p, library: l, symbol: f, skip_zero: true}\n", "7",
	 "skip_zero needs the return value"},
	{HEAD P1 ", scope: calls}\n", "7", "did you mean \"call\"?"},
	{HEAD P1 ", scop: call}\n", "7", "did you mean \"scope\"?"},
	{HEAD
	 "      - {name: p, library: l, symbol: f, scope: call, args: [{name: room, fetch: $arg1, "
	 "type: u64}], event: {role: told}}\n",
	 "7", "scope is for events that may come without a room"},
	{HEAD RECV "          - {frames: [A], event: {role: control}}\n        scope: call\n", "17",
	 "scope and messages"},
	{HEAD P1 ", status: {done: 0, busy: 0}}\n", "7", "overlap"},
	/* elements */
	{HEAD PUSH CALL "        only: $arg1\n", "12", "only is for probes with each"},
	{HEAD PUSH CALL "        tally: {}\n", "12", "tally is for probes with each"},
	{HEAD PUSH CALL "        events: first\n", "12", "events is for probes with each"},
	{HEAD PUSH CALL LIST "        on_change: qp\n" ARG_QP, "13", "each and on_change"},
	{HEAD PUSH CALL "        each: {}\n", "12", "each needs list"},
	{HEAD PUSH CALL "        each: $arg1\n", "12", "each must be a map"},
	{HEAD PUSH CALL "        each: []\n", "12", "empty list"},
	{HEAD PUSH CALL "        each: {list: $arg1}\n", "12", "no \"next\""},
	{HEAD PUSH CALL "        each: {list: $arg1, next: 8, stride: 4}\n", "12",
	 "unknown key \"stride\" in a list"},
	{HEAD PUSH CALL "        each: {list: $arg1, next: 5000000000}\n", "12", "number of bytes"},
	{HEAD PUSH CALL "        each: {list: \"+0($arg1):string\", next: 0}\n", "12",
	 "must be a number"},
	{HEAD PUSH CALL "        each: {list: $each, next: 0}\n", "12",
	 "$each is for probes with each"},
	{HEAD PUSH CALL "        each: {array: $arg1, stride: 8}\n", "12", "either count"},
	{HEAD PUSH CALL "        each: {array: $arg1, count: $arg2, end: $arg3, stride: 8}\n", "12",
	 "either count"},
	{HEAD PUSH CALL "        each: {array: $arg1, count: $arg2}\n", "12", "no stride"},
	{HEAD PUSH CALL "        each: {array: $arg1, count: $arg2, stride: 0}\n", "12", "from 1"},
	{HEAD PUSH CALL "        each: {array: $arg1, count: $arg2, number: $arg3}\n", "12",
	 "number goes with end"},
	{HEAD PUSH CALL "        each: {array: $arg1, end: $arg2, stride: 8, number: $arg3}\n",
	 "12", "keep one"},
	{HEAD PUSH CALL LIST "        args: [{name: a, fetch: $outer, type: u64}]\n", "13",
	 "$outer needs two levels"},
	{HEAD PUSH CALL "        args: [{name: a, fetch: $each, type: u64}]\n", "12",
	 "$each is for probes with each"},
	{HEAD PUSH CALL LIST "        only: {fetch: $arg1, mask: 0}\n", "13", "a bit set"},
	{HEAD PUSH CALL LIST "        only: {fetch: $arg1, mask: 65536}\n", "13",
	 "from 0 to 65535"},
	{HEAD PUSH CALL LIST "        only: {mask: 1}\n", "13", "no \"fetch\""},
	{HEAD PUSH CALL LIST "        events: last\n", "13", "use every or first"},
	{HEAD PUSH CALL LIST ARG_QP "        tally: {key: qp, posts: true}\n", "14", "no \"name\""},
	{HEAD PUSH CALL LIST ARG_QP "        tally: {name: a, posts: true}\n", "14", "no \"key\""},
	{HEAD PUSH CALL LIST ARG_QP "        tally: {name: a, key: b, posts: true}\n", "14",
	 "no argument is named \"b\""},
	{HEAD PUSH CALL LIST ARG_QP "        tally: {name: a, key: qp}\n", "14",
	 "one of posts: true"},
	{HEAD PUSH CALL LIST ARG_QP
	 "        tally: {name: a, key: qp, posts: true, completes: true}\n",
	 "14", "one of posts: true"},
	{HEAD PUSH CALL LIST ARG_QP "        tally: {name: a, key: qp, within: b, ends: true}\n",
	 "14", "no argument is named \"b\""},
	{HEAD PUSH CALL LIST ARG_QP
	 "        tally: {name: a name that is far too long, key: qp, posts: true}\n",
	 "14", "1 to 23 characters"},
	{HEAD PUSH CALL LIST ARG_QP "        tally: {name: a, key: qp, posts: true, if: $retval}\n",
	 "14", "counted at the entry"},
	{HEAD PUSH CALL LIST ARG_QP
	 "        tally: {name: a, key: qp, completes: true, refused: $arg3}\n",
	 "14", "refused is for a tally with posts"},
	{HEAD REF "        symbol: f\n" CALL LIST ARG_QP
		  "        tally: {name: a, key: qp, posts: true, refused: $arg3}\n",
	 "13", "needs on: ret"},
	{HEAD PUSH CALL LIST ARG_QP
	 "        tally: {name: a, key: qp, posts: true, refused: $each}\n",
	 "14", "refused: $each"},
	{HEAD PUSH CALL LIST ARG_QP
	 "        tally: {name: a, key: qp, posts: true, refused: \"+0($arg3):string\"}\n",
	 "14", "must be a number"},
	/* another's place */
	{HEAD PUSH CALL "      - {name: q, instead_of: pull, symbol: g}\n", "12",
	 "no probe before this one is named \"pull\""},
	{HEAD "      - {name: q, instead_of: push, symbol: g}\n" PUSH CALL, "7", "no probe before"},
	{HEAD PUSH CALL "      - {name: q, instead_of: [push], symbol: g}\n", "12", "instead_of"},
	{HEAD PUSH CALL "      - {name: q, instead_of: push}\n", "12", "no \"symbol\""},
	{HEAD PUSH CALL "      - {instead_of: push, symbol: g}\n", "12", "no \"name\""},
	{HEAD PUSH CALL "      - {name: q, instead_of: push, symbol: g, required: true}\n", "12",
	 "may be missing: remove required"},
	{HEAD PUSH CALL "      - {name: q, instead_of: push, symbol: g, onn: ret}\n", "12",
	 "did you mean \"on\"?"},
	{HEAD PUSH CALL "      - {name: q, instead_of: push, symbol: g}\n"
			"      - {name: r, instead_of: q, symbol: h}\n",
	 "13", "\"q\" itself stands instead of \"push\""},
	{HEAD PUSH CALL
	 "      - {name: q, instead_of: push, pointer: {after: g, library: m, fetch: "
	 "$retval}}\n",
	 "12", "with a symbol"},
	/* pointers */
	{HEAD REF CALL, "7", "no \"symbol\""},
	{HEAD REF CALL "        symbol: f\n        pointer: []\n", "11", "keep one"},
	{HEAD REF CALL "        pointer: f\n", "10", "must be a map"},
	{HEAD REF CALL "        pointer: {library: m}\n", "10", "either after"},
	{HEAD REF CALL "        pointer: {afterr: f}\n", "10", "did you mean \"after\"?"},
	{HEAD REF CALL "        pointer: {after: f, passed_to: g}\n", "10", "either after"},
	{HEAD REF CALL "        pointer: {after: \"*\", library: m, fetch: $retval}\n", "10",
	 "every function"},
	{HEAD REF CALL "        pointer: {after: f, fetch: $retval}\n", "10", "no \"library\""},
	{HEAD REF CALL "        pointer: {after: f, library: n, fetch: $retval}\n", "10",
	 "not among libraries"},
	{HEAD REF CALL "        pointer: {after: f, library: m}\n", "10", "no \"fetch\""},
	{HEAD REF CALL "        pointer: {after: f, library: m, fetch: \"$retval:u32\"}\n", "10",
	 "must give a pointer"},
	{HEAD REF CALL "        pointer: {after: f, library: m, fetch: $retval, slot: 8}\n", "10",
	 "unknown key \"slot\" in a pointer with after"},
	{HEAD REF CALL "        pointer: {passed_to: f, library: m}\n", "10", "no \"argument\""},
	{HEAD REF CALL "        pointer: {passed_to: f, library: m, argument: 0, slot: 8}\n", "10",
	 "from 1 to 6"},
	{HEAD REF CALL "        pointer: {passed_to: f, library: m, argument: 2}\n", "10",
	 "which entry of the table"},
	{HEAD REF CALL "        pointer: {passed_to: f, library: m, argument: 2, copied_to: 0}\n",
	 "10", "must not be 0"},
	{HEAD REF CALL
	 "        on: return\n        pointer: {after: f, library: m, fetch: $retval}\n",
	 "10", "on: return with pointer"},
	/* events */
	{HEAD "      - {name: p, library: l, symbol: f, event: {role: register, bytes: 1}}\n", "7",
	 "bytes is for role call and post"},
	{HEAD "      - {name: p, library: l, symbol: f, event: {role: peer, object: x}}\n", "7",
	 "object is for role call"},
	{HEAD "      - {name: p, library: l, symbol: f, event: {role: call, count: x}}\n", "7",
	 "nor a number"},
	{HEAD "      - {name: p, library: l, symbol: f, event: {role: call, work: start}}\n", "7",
	 "use begin or end"},
	{HEAD "      - {name: p, library: l, symbol: f, event: {role: arrive, room: 1, need: 2}}\n",
	 "7", "need is for role announce: remove it"},
	{HEAD "      - {name: p, library: l, symbol: f, event: {role: call, work: begin}}\n", "7",
	 "work: begin needs a room"},
	{HEAD "      - {name: p, library: l, symbol: f, event: {role: call, address: x}}\n", "7",
	 "address is for role post"},
	{HEAD RECV
	 "          - {frames: [A, \"{n:s32s}\"], event: {role: control, note: \"{n}\"}}\n",
	 "16", "\"n\" is an array"},
	{HEAD RECV "          - {frames: [A, \"{n:s32s}\"], event: {role: control, chunk: n}}\n",
	 "16", "\"n\" is an array"},
	{HEAD RECV
	 "          - {frames: [\"{room}\", \"{n}\"], event: {role: announce, pages: n}}\n",
	 "16", "no array captured"},
	{HEAD RECV "          - {frames: [\"{room}\", \"{pages}\"], event: {role: announce}}\n",
	 "16", "write \"{pages:s32s}\""},
	{HEAD RECV "          - {frames: [A, \"{bases:u64s}\"], event: {role: register}}\n", "16",
	 "bases and item belong together"},
	{HEAD RECV "          - {frames: [A, \"{segment:u64}\"], event: {role: register, segment: "
		   "segment}}\n",
	 "16", "say whose"},
	{HEAD RECV "          - {frames: [\"{n:u64s}\"], event: {role: control}}\n", "16",
	 "must be a fixed text"},
	{HEAD
	 "      - {name: p, library: l, symbol: f, args: [{name: t, fetch: \"+0($arg1)\", type: "
	 "string}], match: {t: \"{x:u64s}\"}, event: {role: call}}\n",
	 "7", "is for frames of messages"},
};

static void each_error(void **state)
{
	expect_slips(errors, ARRAY_SIZE(errors));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
