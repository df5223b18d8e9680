// SPDX-License-Identifier: Apache-2.0
/* Every kind of error in a probes file, with its place; limits. */
#include <stdlib.h>

#include "profile_rig.h"

/* ---- errors and their places ------------------------------------------------------------------
 */

#define HEAD                                                                                       \
	"version: 1\n"                                                                             \
	"profiles:\n"                                                                              \
	"  - name: t\n"                                                                            \
	"    room: {type: u64}\n"                                                                  \
	"    libraries: {l: {file: \"lib.so\"}}\n"
#define PROBES "    probes:\n"
#define PROBE  "      - {name: p, library: l, symbol: f"
#define ARGS   "        args:\n"
#define FULL   HEAD PROBES "      - name: p\n        library: l\n        symbol: f\n"
#define RET    FULL "        on: ret\n"
#define OK_ARG "          - {name: op, fetch: \"$arg1\", type: u64}\n"
#define EVENT  "        event: {role: close}\n"
#define TEXT   "          - {name: text, fetch: \"+0($arg1)\", type: string}\n"
#define MSG                                                                                        \
	FULL ARGS "          - {name: frame, fetch: \"+0($arg1)\", type: zmqmsg}\n"                \
		  "          - {name: sock, fetch: \"$arg2\", type: u64}\n"                        \
		  "        frame: frame\n        socket: sock\n        messages:\n"

/* Where a line of the text after these begins: HEAD has 5 lines, FULL 9. */
static const struct slip errors[] = {
	/* the file */
	{"version: 1\n", "1:1", "no \"profiles\""},
	{"profiles: []\n", "1:1", "no \"version\""},
	{"version: 2\nprofiles: []\n", "1:10", "version 2 is unknown"},
	{"version: one\nprofiles: []\n", "1:10", "whole number"},
	{"version: 1\nprofiles: []\n", "2:11", "empty list"},
	{"version: 1\nprofiles: {}\n", "2:11", "must be a list"},
	{"version: 1\nprofiles:\n", "2:10", "must be a list (- item), not nothing"},
	{"version: 1\nprofile: []\n", "2:1", "did you mean \"profiles\"?"},
	{"version: 1\nfoo: 1\n", "2:1", "use version, groups or profiles"},
	{"version: 1\nversion: 1\n", "2:1", "a second time"},
	{"- version: 1\n", "1:1", "must be a map"},
	{"just text\n", "1:1", "must be a map (key: value), not a text"},
	{"version: 1\nprofiles:\n  - name\n", "3:5", "must be a map"},
	/* YAML itself */
	{"version: 1\n\tprofiles: 1\n", "2:1", "not YAML"},
	{"version: [1\n", "2:1", "not YAML"},
	{"a: b: c\n", "1:5", "not YAML"},
	{"version: \"1\n", "2:1", "not YAML"},
	{"a: 1\nb\n", "3:1", "not YAML"},
	{"version: *x\n", "1:10", "alias"},
	{"version: * \n", "1:11", "quote a text that begins with *"},
	{"version: &x 1\n", "1:10", "anchor"},
	{"version: !!int 1\n", "1:10", "tag"},
	{"a: &a [x]\nb: *a\n", "1:4", "anchor"},
	{"version: 1\n---\nversion: 1\n", "2:1", "second document"},
	{"? [a]\n: b\n", "1:3", "a key must be a word"},
	{"version: 1\nx: \"\\0\"\n", "2:4", "NUL"},
	{"version: \x01\n", "1:10", "UTF-8"},
	{"ok: \xc3\xb6 \xff\n", "1:7", "UTF-8"},
	{"a: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[x]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]\n", "1:27", "too deep"},
	/* a profile */
	{"version: 1\nprofiles:\n  - room: {type: u64}\n", "3:5", "no \"name\""},
	{"version: 1\nprofiles:\n  - name: a b\n", "3:11", "1 to 31 letters"},
	{"version: 1\nprofiles:\n  - name: abcdefghijklmnopqrstuvwxyz012345\n", "3:11",
	 "1 to 31 letters"},
	{"version: 1\nprofiles:\n  - name:\n", "3:10", "is empty"},
	{"version: 1\nprofiles:\n  - name: [t]\n", "3:11", "must be a text, not a list"},
	{"version: 1\nprofiles:\n  - name: {t}\n", "3:11", "quote a text that begins with {"},
	{"version: 1\nprofiles:\n  - name: t\n", "3:5", "no \"room\""},
	{"version: 1\nprofiles:\n  - name: t\n    room: u64\n", "4:11", "must be a map"},
	{"version: 1\nprofiles:\n  - name: t\n    room: {}\n", "4:11", "no \"type\""},
	{"version: 1\nprofiles:\n  - name: t\n    room: {type: u32}\n", "4:18", "u64 or string"},
	{"version: 1\nprofiles:\n  - name: t\n    room: {type: u64, fakes: [0]}\n", "4:23",
	 "did you mean \"fake\"?"},
	{"version: 1\nprofiles:\n  - name: t\n    room: {type: u64, fake: [x]}\n", "4:30",
	 "a fake room is a number"},
	{"version: 1\nprofiles:\n  - name: t\n    room: {type: u64, fake: [\"<0\"]}\n", "4:30",
	 "a fake room is a number"},
	{"version: 1\nprofiles:\n  - name: t\n    room: {type: u64, fake: [-1]}\n", "4:30",
	 "a fake room is a number"},
	{"version: 1\nprofiles:\n  - name: t\n    room: {type: u64, fake: 0}\n", "4:29",
	 "must be a list"},
	{"version: 1\nprofiles:\n  - name: t\n    room: {type: u64, fake: [0,1,2,3,4,5,6,7,8]}\n",
	 "4:46", "more than 8"},
	{"version: 1\nprofiles:\n  - name: t\n    room: {type: string, fake: [0]}\n", "4:32",
	 "fake needs rooms of type u64"},
	{"version: 1\nprofiles:\n  - name: t\n    room: {type: u64}\n", "3:5", "no \"libraries\""},
	{"version: 1\nprofiles:\n  - name: t\n    room: {type: u64}\n    libraries: {}\n", "5:16",
	 "name at least one"},
	{"version: 1\nprofiles:\n  - name: t\n    room: {type: u64}\n    libraries: {l: x}\n",
	 "5:20", "must be a map"},
	{"version: 1\nprofiles:\n  - name: t\n    room: {type: u64}\n    libraries: {l: {}}\n",
	 "5:20", "no \"file\""},
	{"version: 1\nprofiles:\n  - name: t\n    room: {type: u64}\n"
	 "    libraries: {l: {file: /usr/lib/x.so}}\n",
	 "5:27", "without folders"},
	{"version: 1\nprofiles:\n  - name: t\n    room: {type: u64}\n"
	 "    libraries: {l: {file: \"x[ab\"}}\n",
	 "5:27", "\"[\" without \"]\""},
	{"version: 1\nprofiles:\n  - name: t\n    room: {type: u64}\n"
	 "    libraries: {l: {file: \"x\\\\\"}}\n",
	 "5:27", "at its end"},
	{"version: 1\nprofiles:\n  - name: t\n    room: {type: u64}\n"
	 "    libraries: {l: {file: \"\"}}\n",
	 "5:27", "nothing in it"},
	{"version: 1\nprofiles:\n  - name: t\n    room: {type: u64}\n"
	 "    libraries: {l: {file: a}, l: {file: b}}\n",
	 "5:31", "a second time"},
	{HEAD, "3:5", "no \"probes\""},
	{HEAD "    pythn: {}\n", "6:5", "did you mean \"python\"?"},
	{HEAD "    prboes: []\n", "6:5", "did you mean \"probes\"?"},
	{HEAD "    match: {comm: x}\n", "6:13", "use cmdline"},
	{HEAD "    match: {}\n", "6:12", "no \"cmdline\""},
	{HEAD "    stages: {inflight: 30}\n", "6:24", "is no duration"},
	{HEAD "    stages: {inflght: 30s}\n", "6:14", "did you mean \"inflight\"?"},
	{HEAD "    stages: {ended: 30s}\n", "6:14", "use bootstrap, ready, inflight or releasing"},
	{HEAD "    stages: 30s\n", "6:13", "must be a map"},
	{HEAD "    done: {}\n", "6:11", "no \"needs\""},
	{HEAD "    done: {needs: []}\n", "6:19", "empty list"},
	{HEAD "    done: {needs: [kv.first]}\n", "6:20", "KIND.last"},
	{HEAD "    done: {needs: [kv.last.last]}\n", "6:20", "KIND.last"},
	{HEAD "    done: {needs: [kv, aux, kv]}\n", "6:29", "a second time"},
	{HEAD "    done: {needs: [abcdefghijklmnop]}\n", "6:20", "at most 15"},
	{HEAD "    done: {needs: [a,b,c,d,e,f,g,h,i]}\n", "6:36", "more than 8"},
	{HEAD "    status: {done: x}\n", "6:20", "a code or a range"},
	{HEAD "    status: {done: \"2..1\"}\n", "6:20", "a code or a range"},
	{HEAD "    status: {done: 1, busy: \"1..2\"}\n", "6:13", "done and busy of status overlap"},
	{HEAD "    status: {done: \"-5..0\"}\n", "6:13", "done and error of status overlap"},
	{HEAD "    status: {names: {x: y}}\n", "6:22", "whole number"},
	{HEAD "    status: {names: {1: y, 0x1: z}}\n", "6:28", "a second time"},
	{HEAD "    status: {names: {1: [y]}}\n", "6:25", "must be a text"},
	{HEAD "    probes: []\n", "6:13", "empty list"},
	{HEAD "    probes: [p]\n", "6:14", "must be a map"},
	{HEAD PROBES PROBE ", event: {role: call}}\n" PROBE ", event: {role: call}}\n", "8:9",
	 "probe \"p\" a second time"},
	/* a probe's place */
	{HEAD PROBES "      - {library: l}\n", "7:9", "no \"name\""},
	{HEAD PROBES "      - {name: p}\n", "7:9", "no \"library\""},
	{HEAD PROBES "      - {name: p, library: x}\n", "7:28", "not among libraries"},
	{HEAD PROBES "      - {name: p, library: l}\n", "7:9", "no \"symbol\""},
	{HEAD PROBES "      - {name: p, library: l, symbol: \"*\"}\n", "7:39", "every function"},
	{HEAD PROBES "      - {name: p, library: l, symbol: \"[f\"}\n", "7:39", "is no glob"},
	{HEAD PROBES PROBE ", symbl: g}\n", "7:42", "did you mean \"symbol\"?"},
	{HEAD PROBES PROBE ", on: exit}\n", "7:46", "use entry, return or ret"},
	{HEAD PROBES PROBE ", on: retrun}\n", "7:46", "did you mean \"return\"?"},
	{HEAD PROBES PROBE ", required: maybe}\n", "7:52", "true or false"},
	{HEAD PROBES PROBE ", required: \"true\"}\n", "7:52", "true or false"},
	{HEAD PROBES PROBE "}\n", "7:9", "no event"},
	{HEAD PROBES "      - {name: p, library: l, symbol: _Zf, on: return}\n", "7:48",
	 "use on: ret, or say nothrow"},
	{HEAD PROBES "      - {name: p, library: l, symbol: \"*f\", on: return}\n", "7:49",
	 "use on: ret, or say nothrow"},
	{HEAD PROBES "      - {name: p, library: l, symbol: \"_?f\", on: return}\n", "7:50",
	 "use on: ret, or say nothrow"},
	{HEAD PROBES "      - {name: p, library: l, symbol: _Zf, on: return, nothrow: false}\n",
	 "7:48", "use on: ret, or say nothrow"},
	{HEAD PROBES "      - {name: p, library: l, symbol: _Zf, on: return, nothrow: \" \"}\n",
	 "7:65", "say why"},
	{HEAD PROBES PROBE ", skip_negative: true, event: {role: call}}\n", "7:57",
	 "set on: ret or on: return"},
	/* arguments */
	{FULL "        args: op\n", "10:15", "must be a list"},
	{FULL ARGS "          - op\n", "11:13", "must be a map"},
	{FULL ARGS "          - {fetch: \"$arg1\", type: u64}\n", "11:13", "no \"name\""},
	{FULL ARGS "          - {name: op, type: u64}\n", "11:13", "no \"fetch\""},
	{FULL ARGS "          - {name: 1op, fetch: \"$arg1\", type: u64}\n", "11:20",
	 "letters, digits or _"},
	{FULL ARGS "          - {name: event, fetch: \"$arg1\", type: u64}\n", "11:20",
	 "cannot name an argument"},
	{FULL ARGS OK_ARG OK_ARG EVENT, "12:20", "argument \"op\" a second time"},
	{FULL ARGS "          - {name: op, fetch: \"$arg1\"}\n", "11:31", "no type"},
	{FULL ARGS "          - {name: op, fetch: \"$arg1\", type: int}\n", "11:31",
	 "unknown type \"int\""},
	{FULL ARGS "          - {name: op, fetch: \"%di\", type: u64}\n", "11:31", "registers"},
	{FULL ARGS "          - {name: op, fetch: \"@sym\", type: u64}\n", "11:31", "@SYMBOL"},
	{FULL ARGS "          - {name: op, fetch: \"$retval\", type: u64}\n", "11:31",
	 "only at a return"},
	{FULL ARGS "          - {name: op, fetch: \"$arg1\", type: u64, max: 8}\n", "11:31",
	 "its own size"},
	{FULL ARGS "          - {name: t, fetch: \"+0($arg1)\", type: bytes}\n", "11:30",
	 "needs max"},
	{FULL ARGS "          - {name: t, fetch: \"+0($arg1)\", type: bytes, max: 0}\n", "11:61",
	 "1 to 256"},
	{FULL ARGS "          - {name: t, fetch: \"+0($arg1)\", type: bytes, max: 300}\n", "11:61",
	 "1 to 256"},
	{FULL ARGS "          - {name: t, fetch: \"+0($arg1)\", type: bytes, max: big}\n", "11:61",
	 "must be a number"},
	{FULL ARGS "          - {name: t, fetch: \"+0($arg1)\", type: bytes, max: 010}\n"
		   "          - {name: u, fetch: \"$x\", type: u8}\n",
	 "12:30", "unknown variable"},
	{FULL ARGS "          - {name: t, fetch: \"+0($arg1)\", type: u64, size: 8}\n", "11:54",
	 "unknown key \"size\""},
	{FULL ARGS "          - {name: t, fetch: \"+0($arg1)\", type: u64, if: \"$x\"}\n", "11:58",
	 "unknown variable"},
	{FULL ARGS
	 "          - {name: t, fetch: \"+0($arg1)\", type: u64, if: \"+0($arg1):string\"}\n",
	 "11:58", "if must be a number"},
	{FULL ARGS "          - {name: t, fetch: [], type: u64}\n", "11:30", "empty list"},
	{FULL ARGS "          - {name: t, fetch: [\"$arg1\", \"$arg11\"], type: u64}\n", "11:40",
	 "$arg1 to $arg10"},
	{FULL ARGS "          - {name: t, fetch: [{type: u64}]}\n", "11:31", "no \"fetch\""},
	{FULL ARGS "          - {name: t, fetch: [{fetch: \"$arg1\", max: 8}], type: u64}\n",
	 "11:48", "unknown key \"max\""},
	{FULL ARGS "          - {name: t, fetch: [{fetch: \"$arg1\", type: u8}, {fetch: "
		   "\"+0($arg1)\", type: string}]}\n",
	 "11:67", "all be numbers or all be texts"},
	{FULL ARGS "          - {name: a, fetch: [$arg1,$arg1,$arg1,$arg1,$arg1,$arg1,$arg1,$arg1,"
		   "$arg1,$arg1,$arg1,$arg1,$arg1,$arg1,$arg1,$arg1], type: u64}\n"
		   "          - {name: b, fetch: \"$arg1\", type: u64}\n",
	 "12:30", "more than 16 fetch"},
	{FULL ARGS "          - {name: a, fetch: \"+0($arg1)\", type: bytes, max: 256}\n"
		   "          - {name: b, fetch: \"+0($arg1)\", type: bytes, max: 249}\n"
		   "          - {name: c, fetch: \"+0($arg1)\", type: bytes, max: 1}\n",
	 "13:13", "at most 512"},
	{FULL ARGS OK_ARG OK_ARG OK_ARG OK_ARG OK_ARG OK_ARG OK_ARG OK_ARG OK_ARG, "19:13",
	 "args: more than 8"},
	/* on_change */
	{RET ARGS OK_ARG "        on_change: oops\n", "13:20", "no argument is named \"oops\""},
	{FULL ARGS OK_ARG "        on_change: op\n", "12:20", "set on: ret or on: return"},
	{RET ARGS TEXT "        on_change: text\n", "13:20", "must be a number"},
	{RET ARGS "          - {name: op, fetch: [\"$arg1\", \"$arg2\"], type: u64}\n"
		  "        on_change: op\n",
	 "13:20", "one fetch"},
	/* match */
	{FULL ARGS TEXT "        match: text\n", "12:16", "must be a list"},
	{FULL ARGS TEXT "        match: [text]\n", "12:17", "must be a map"},
	{FULL ARGS TEXT "        match: {txet: \"{room}\"}\n", "12:17", "did you mean \"text\"?"},
	{FULL ARGS TEXT "        match: {text: \"{room\"}\n", "12:23", "has no \"}\""},
	{FULL ARGS TEXT "        match: {text: {room}}\n", "12:23", "quote a text that begins"},
	{FULL ARGS TEXT "        match: {text: \"{n:len}\"}\n", "12:23", "is for frames"},
	{FULL ARGS TEXT "        match: {text: \"{text}\"}\n", "12:23", "name of an argument"},
	{FULL ARGS TEXT "        match: {text: \"{a}-{a}\"}\n", "12:23", "{a} a second time"},
	{FULL ARGS TEXT "          - {name: more, fetch: \"+0($arg2)\", type: string}\n"
			"        match: {text: \"{a}\", more: \"{a}\"}\n",
	 "13:36", "{a} a second time"},
	{FULL ARGS TEXT "        match: {text: \"{room}\"}\n", "12:16", "has no role"},
	{FULL ARGS TEXT "        match: {text: \"{x}\"}\n        event: {role: abort}\n", "13:16",
	 "role abort needs a room"},
	{FULL ARGS TEXT "        match: [{event: {role: call}}, {text: x}]\n", "12:17",
	 "put it last"},
	/* events */
	{FULL "        event: close\n", "10:16", "must be a map"},
	{FULL "        event: {rol: close}\n", "10:17", "did you mean \"role\"?"},
	{FULL "        event: {role: closed}\n", "10:23", "did you mean \"close\"?"},
	{FULL "        event: {role: loss}\n", "10:23", "unknown role \"loss\""},
	{FULL "        event: {kind: kv}\n", "10:16", "has no role"},
	{FULL "        event: {role: close}\n", "10:16", "needs a room or an op"},
	{FULL "        event: {role: post}\n", "10:16", "needs a room or an op"},
	{FULL "        event: {role: release}\n", "10:16", "needs a room"},
	{FULL ARGS OK_ARG "        event: {role: status}\n", "12:16", "needs status: ARGUMENT"},
	{FULL ARGS OK_ARG "        event: {role: status, status: rc}\n", "12:31",
	 "\"rc\" is neither an argument nor a capture"},
	{FULL ARGS OK_ARG "        event: {role: post, status: op, error: op}\n", "12:41",
	 "keep one"},
	{FULL ARGS OK_ARG "        event: {role: post, chunk: two}\n", "12:29", "nor a number"},
	{FULL ARGS OK_ARG "        event: {role: post, chunk: -1}\n", "12:29", "nor a number"},
	{FULL ARGS OK_ARG "        event: {role: post, peer: \"{ip}\"}\n", "12:29",
	 "peer: \"ip\" is neither"},
	{FULL ARGS OK_ARG "        event: {role: post, peer: \"{op\"}\n", "12:29",
	 "\"{\" without \"}\""},
	{FULL ARGS OK_ARG "        event: {role: post, peer: \"op}\"}\n", "12:29",
	 "\"}\" without \"{\""},
	{FULL ARGS OK_ARG "        event: {role: post, peer: somebody}\n", "12:29",
	 "neither an argument nor a capture"},
	{FULL ARGS OK_ARG "        event: {role: post, kind: abcdefghijklmnop}\n", "12:29",
	 "too long"},
	{FULL ARGS OK_ARG "        event: {role: post, kind: [kv]}\n", "12:35", "must be a text"},
	{FULL ARGS OK_ARG "        event: {role: post, created: 2}\n", "12:38", "true or false"},
	{FULL ARGS OK_ARG "        event: {role: close, created: true}\n", "12:30",
	 "created is for role post"},
	{FULL ARGS OK_ARG "        event: {role: post, covers: [kv.last]}\n", "12:38",
	 "not among done.needs"},
	{HEAD "    done: {needs: [kv]}\n" PROBES PROBE ", event: {role: call, covers: [kv]}}\n",
	 "8:49", "covers is for role post"},
	{FULL ARGS OK_ARG "        event: {role: post, dummy_if_empty: [op]}\n", "12:16",
	 "for role announce"},
	{FULL ARGS "          - {name: room, fetch: \"$arg1\", type: u64}\n"
		   "        event: {role: announce, dummy_if_empty: [room]}\n",
	 "12:16", "no length captured"},
	{FULL ARGS OK_ARG "        event: {role: post, role: close}\n", "12:29", "a second time"},
	/* messages */
	{FULL "        frame: x\n        event: {role: call}\n", "10:16",
	 "is for probes with messages"},
	{FULL ARGS OK_ARG "        socket: op\n        event: {role: call}\n", "12:17",
	 "is for probes with messages"},
	{FULL "        match: {}\n        messages: []\n", "11:19", "keep one"},
	{FULL "        messages: []\n", "7:9", "no \"frame\""},
	{FULL ARGS OK_ARG "        frame: op\n        messages: []\n", "12:16", "type zmqmsg"},
	{FULL ARGS TEXT "        frame: text\n        messages: []\n", "12:16", "type zmqmsg"},
	{FULL ARGS "          - {name: f, fetch: \"+0($arg1)\", type: zmqmsg}\n"
		   "        frame: f\n        messages: []\n",
	 "7:9", "no \"socket\""},
	{FULL ARGS "          - {name: f, fetch: \"+0($arg1)\", type: zmqmsg, if: \"$arg1\"}\n"
		   "        frame: f\n        messages: []\n",
	 "12:16", "one fetch"},
	{MSG "          - x\n", "16:13", "must be a map"},
	{MSG "          - {name: x}\n", "16:13", "no \"frames\""},
	{MSG "          - {frames: []}\n", "16:22", "empty list"},
	{MSG "          - {frame: [x]}\n", "16:14", "did you mean \"frames\"?"},
	{MSG "          - {frames: [\"...\"]}\n", "16:23", "only be the last"},
	{MSG "          - {frames: [a, \"...\", b]}\n", "16:26", "only be the last"},
	{MSG "          - {frames: [\"{agent}\"]}\n", "16:23", "fixed text or a number"},
	{MSG "          - {frames: [\"a{room}\"]}\n", "16:23", "fixed text or a number"},
	{MSG "          - {frames: [\"*\"]}\n", "16:23", "fixed text or a number"},
	{MSG "          - {frames: [\"{n:len}\"]}\n", "16:23", "fixed text or a number"},
	{MSG "          - {frames: [\"\"]}\n", "16:23", "fixed text or a number"},
	{MSG "          - {frames: [abcdefghijklmnopqrstuvwxyz01234]}\n", "16:23", "at most 30"},
	{MSG "          - {frames: [a, {room}]}\n", "16:26", "quote a text"},
	{MSG "          - {frames: [a, \"{room}\", \"{room}\"]}\n", "16:36", "a second time"},
	{MSG "          - {frames: [a, \"{n:len}b\"]}\n", "16:26", "whole frame"},
	{MSG "          - {frames: [a, "
	     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx]}\n",
	 "16:26", "longer than the 64 bytes"},
	{MSG "          - {frames: [a], event: {role: abort}}\n", "16:34", "needs a room"},
	{MSG "          - {frames: [a, \"{room}\"]}\n", "16:13", "has no role"},
	{MSG
	 "          - {frames: [a, \"{room}\", \"{n}\"], event: {role: announce, dummy_if_empty: "
	 "[n]}}\n",
	 "16:51", "no length captured"},
	{MSG "          - {name: a b, frames: [a]}\n", "16:20", "letters"},
	{MSG "          - {frames: [a], event: {role: call}}\n        more: {arg: sock}\n", "17:15",
	 "no \"mask\""},
	{MSG "          - {frames: [a], event: {role: call}}\n        more: {arg: x, mask: 1}\n",
	 "17:21", "no argument is named"},
	{MSG "          - {frames: [a], event: {role: call}}\n        more: {arg: sock, mask: 0}\n",
	 "17:33", "a bit set"},
	{MSG "          - {frames: [a], event: {role: call}}\n        more: 2\n", "17:15",
	 "must be a map"},
};

static void each_error(void **state)
{
	expect_slips(errors, ARRAY_SIZE(errors));
}

/* A quoted word of the file cannot break the one line of the message. */
static void one_line(void **state)
{
	static const char text[] = "version: 1\n\"a\\nb\\e[31m\": 1\n";
	struct profile_file *pf;
	struct sp_err err = {0};

	assert_true(profile_parse("t.yaml", text, strlen(text), &pf, &err) < 0);
	assert_string_equal(err.text, "t.yaml:2:1: unknown key \"a?b?[31m\" in a probes file: use "
				      "version, groups or profiles");
	/* and nobody needs to want the words */
	assert_true(profile_parse("t.yaml", text, strlen(text), &pf, NULL) < 0);
}

/* ---- limits ------------------------------------------------------------------------------------
 */

static void too_many(const char *head, const char *item, int max, const char *tail,
		     const char *words)
{
	for (int n = max; n <= max + 1; n++) {
		char *text = malloc(200000);
		size_t at = (size_t)sprintf(text, "%s", head);
		struct profile_file *pf = NULL;
		struct sp_err err = {0};
		int rc;

		assert_non_null(text);
		for (int i = 0; i < n; i++) {
			const char *mark = strchr(item, '#');

			if (mark)
				at += (size_t)sprintf(text + at, "%.*s%d%s", (int)(mark - item),
						      item, i, mark + 1);
			else
				at += (size_t)sprintf(text + at, "%s", item);
		}
		sprintf(text + at, "%s", tail);
		rc = profile_parse("t.yaml", text, strlen(text), &pf, &err);
		if (n == max && rc)
			fail_msg("%d: %s", n, err.text);
		if (n > max && (!rc || !strstr(err.text, words)))
			fail_msg("%d: %s", n, err.text);
		profile_free(pf);
		free(text);
	}
}

static void limits(void **state)
{
	too_many(HEAD PROBES, "      - {name: p#, library: l, symbol: f, event: {role: call}}\n",
		 SP_MAX_PROBES, "", "probes: more than 128");
	too_many(FULL ARGS, "          - {name: a#, fetch: \"$arg1\", type: u64}\n", SP_MAX_ARGS,
		 "        event: {role: call}\n", "args: more than 8");
	too_many(MSG, "          - {frames: [h#], event: {role: call}}\n", SP_MAX_HEADS, "",
		 "more than 8 different first frames");
	too_many(MSG "          - {frames: [h", ", \"{}\"", 63, "], event: {role: call}}\n",
		 "frames: more than 64");
	too_many(FULL ARGS TEXT "        event: {role: call}\n        match:\n",
		 "          - {text: t#}\n", 32, "", "match: more than 32");
	/* names of the alternative and of the arguments share one table */
	too_many(MSG "          - {frames: [h", ", \"{c#}\"", CAP_MAX - 2,
		 "], event: {role: call}}\n", "more than 32 names");
	too_many("version: 1\nprofiles:\n",
		 "  - {name: t#, room: {type: u64}, libraries: {l: {file: x}}, probes: [{name: p, "
		 "library: l, symbol: f, event: {role: call}}]}\n",
		 32, "", "profiles: more than 32");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_error),
		cmocka_unit_test(one_line),
		cmocka_unit_test(limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
