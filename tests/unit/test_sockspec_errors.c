// SPDX-License-Identifier: Apache-2.0
/* The `sockets:` section: every error with its place; limits. */
#include <stdlib.h>

#include "profile_rig.h"

/* 22 lines: a probe with messages, one without, and one whose event takes an argument's value. */
#define HEAD                                                                                       \
	"version: 1\n"                                                                             \
	"profiles:\n"                                                                              \
	"  - name: t\n"                                                                            \
	"    room: {type: u64}\n"                                                                  \
	"    libraries: {l: {file: \"lib.so\"}}\n"                                                 \
	"    probes:\n"                                                                            \
	"      - {name: p, library: l, symbol: f, event: {role: call}}\n"                          \
	"      - name: recv\n"                                                                     \
	"        library: l\n"                                                                     \
	"        symbol: g\n"                                                                      \
	"        args: [{name: frame, fetch: \"+0($arg1)\", type: zmqmsg, max: 128},\n"            \
	"               {name: sock, fetch: \"$arg2\", type: x64},\n"                              \
	"               {name: extra, fetch: \"$arg3\", type: u32}]\n"                             \
	"        frame: frame\n"                                                                   \
	"        socket: sock\n"                                                                   \
	"        more: {arg: extra, mask: 2}\n"                                                    \
	"        messages:\n"                                                                      \
	"          - name: hello\n"                                                                \
	"            frames: [HELLO, \"{room}\", \"x{agent}{{\", \"{n:len}\", \"...\"]\n"          \
	"            event: {role: announce, dummy_if_empty: [n]}\n"                               \
	"          - frames: [BYE, \"*\", \"{room}\"]\n"                                           \
	"            event: {role: abort, note: gone}\n"
#define SOCKETS "    sockets:\n"
#define ZMTP                                                                                       \
	"      - name: s\n"                                                                        \
	"        process: self\n"                                                                  \
	"        when: {bytes: zmtp}\n"                                                            \
	"        decode: zmtp\n"
#define HTTP                                                                                       \
	"      - name: h\n"                                                                        \
	"        process: {is: parent}\n"                                                          \
	"        when: {bytes: http}\n"                                                            \
	"        decode: http\n"
#define KEYS "        keys: {room: r}\n"

/* ---- errors and their places ------------------------------------------------------------------
 */

#define NAMED   HEAD SOCKETS "      - name: s\n"
#define PLACED  NAMED "        process: self\n"
#define DECODED PLACED "        decode: zmtp\n"
#define WEB     HEAD SOCKETS HTTP
#define ZM      HEAD SOCKETS ZMTP

/* Where a line of the text after these begins: HEAD has 22 lines, NAMED 24, PLACED 25, DECODED 26,
 * WEB and ZM 27. */
static const struct slip errors[] = {
	/* the section */
	{HEAD "    sockets: {}\n", "23:14", "sockets must be a list (- item), not a map"},
	{HEAD "    sockets: []\n", "23:14", "an empty list"},
	{HEAD "    socket: []\n", "23:5", "did you mean \"sockets\"?"},
	{HEAD SOCKETS "      - s\n", "24:9", "an entry of sockets must be a map"},
	{HEAD SOCKETS "      - {process: self}\n", "24:9", "the entry has no \"name\""},
	{NAMED "        key: {}\n", "25:9", "did you mean \"keys\"?"},
	{NAMED "        symbol: f\n", "25:9",
	 "use name, process, when, decode, direction, same_as, wins, messages, keys, abort or "
	 "events"},
	{HEAD SOCKETS "      - {name: a b}\n", "24:16", "letters"},
	{HEAD SOCKETS "      - {name: p}\n", "24:16", "\"p\" is already the name of a probe"},
	{WEB KEYS "      - {name: h}\n", "29:16", "already the name of an entry above"},
	/* process */
	{NAMED, "24:9", "the entry has no \"process\""},
	{NAMED "        process: child\n", "25:18",
	 "process: \"child\" is unknown: use self, parent, ancestor or sibling"},
	{NAMED "        process: [self]\n", "25:18", "process must be a word (self) or a map"},
	{NAMED "        process: {}\n", "25:18", "process has no \"is\""},
	{NAMED "        process: {is: siblings}\n", "25:23", "did you mean \"sibling\"?"},
	{NAMED "        process: {is: []}\n", "25:23", "empty list"},
	{NAMED "        process: {is: [parent, parent]}\n", "25:32", "parent a second time"},
	{NAMED "        process: {is: [parent, [self]]}\n", "25:32", "must be a text"},
	{NAMED "        process: {is: self, cmd: x}\n", "25:29", "use is, cmdline, exe or listens"},
	{NAMED "        process: {is: self, cmdline: \"[x\"}\n", "25:38", "without \"]\""},
	{NAMED "        process: {is: self, exe: other}\n", "25:34",
	 "exe: \"other\" is unknown: use same or any"},
	{NAMED "        process: {is: self, listens: maybe}\n", "25:38",
	 "listens must be true or false"},
	/* decode, when */
	{PLACED, "24:9", "the entry has no \"decode\""},
	{PLACED "        decode: grpc\n", "26:17", "decode: \"grpc\" is unknown: use zmtp or http"},
	{DECODED, "24:9", "the entry has no \"when\""},
	{DECODED "        when: zmtp\n", "27:15", "when must be a map"},
	{DECODED "        when: {}\n", "27:15", "when: empty: say which sockets"},
	{DECODED "        when: {port: 1}\n", "27:16", "use bytes, listen or peer"},
	{DECODED "        when: {bytes: tls}\n", "27:23", "bytes: \"tls\" is unknown: use zmtp or"},
	{DECODED "        when: {bytes: http}\n", "27:23", "bytes: http and decode: zmtp"},
	{DECODED "        when: {listen: 0}\n", "27:24", "listen must be a port from 1 to 65535"},
	{DECODED "        when: {listen: 65536}\n", "27:24", "listen must be a port"},
	{DECODED "        when: {listen: 4294967297}\n", "27:24", "listen must be a port"},
	{DECODED "        when: {listen: 080}\n", "27:24", "listen must be a port"},
	{DECODED "        when: {listen: http}\n", "27:24", "listen must be a port"},
	{DECODED "        when: {listen: -5}\n", "27:24", "listen must be a port"},
	{DECODED "        when: {listen: 80-}\n", "27:24", "8998 or \"8000-8099\""},
	{DECODED "        when: {listen: 80-0}\n", "27:24", "listen must be a port"},
	{DECODED "        when: {listen: 80-90-99}\n", "27:24", "listen must be a port"},
	{DECODED "        when: {listen: [80]}\n", "27:24", "must be a text, not a list"},
	{DECODED "        when: {peer: \"90-80\"}\n", "27:22",
	 "peer: 90 is above 80: write \"80-90\""},
	{DECODED "        when: {peer: 80..90}\n", "27:22", "peer must be a port"},
	/* zmtp */
	{ZM, "24:9", "the entry has no messages: write them, or name with same_as"},
	{ZM "        direction: up\n", "28:20",
	 "direction: \"up\" is unknown: use in, out or both"},
	{ZM "        keys: {room: r}\n", "28:9", "keys is for decode: http: remove it"},
	{ZM "        abort: /a\n", "28:9", "abort is for decode: http: remove it"},
	{ZM "        wins: probe\n", "28:15", "wins is for an entry with same_as"},
	{ZM "        same_as: recv\n        wins: both\n", "29:15",
	 "wins: \"both\" is unknown: use probe or socket"},
	{ZM "        same_as: nobody\n", "28:18", "no probe is named \"nobody\""},
	{ZM "        same_as: s\n", "28:18", "no probe is named \"s\""},
	{ZM "        same_as: p\n", "28:18", "probe p has no messages"},
	{ZM "        same_as: recv\n        messages: []\n", "29:19", "messages and same_as"},
	{ZM "        messages: []\n", "28:19", "empty list"},
	{ZM "        messages:\n          - {frames: [a]}\n", "29:13", "has no role"},
	{ZM "        messages:\n          - {frames: [\"*\"]}\n", "29:23",
	 "fixed text or a number"},
	{ZM "        messages:\n          - {frames: [a, \"{sock}\"], event: {role: call}}\n",
	 "29:26", "name of an argument"},
	{ZM "        messages:\n          - {frames: [a, "
	    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx]}\n",
	 "29:26", "longer than the 64 bytes"},
	{ZM "        events: [arrive]\n", "28:9", "events is for decode: http: remove it"},
	/* http */
	{WEB KEYS "        events: arrive\n", "29:17", "events must be a list"},
	{WEB KEYS "        events: [reply]\n", "29:17", "events lacks arrive"},
	{WEB KEYS "        events: [arrive, arrive]\n", "29:26", "arrive a second time"},
	{WEB KEYS "        events: [arrive, replies]\n", "29:26",
	 "use arrive, reply or client-gone"},
	{WEB, "24:9", "an entry with decode: http has no \"keys\""},
	{WEB KEYS "        messages: []\n", "29:9", "messages is for decode: zmtp: remove it"},
	{WEB KEYS "        direction: in\n", "29:9", "direction is for decode: zmtp: remove it"},
	{WEB KEYS "        same_as: recv\n", "29:9", "same_as is for decode: zmtp: remove it"},
	{WEB KEYS "        wins: probe\n", "29:9", "wins is for decode: zmtp: remove it"},
	{WEB "        keys: [room]\n", "28:15", "keys must be a map"},
	{WEB "        keys: {host: h}\n", "28:15", "keys has no \"room\""},
	{WEB "        keys: {room: r, hosts: h}\n", "28:25", "did you mean \"host\"?"},
	{WEB "        keys: {room: \"\"}\n", "28:22", "room: a key has 1 to 31 bytes"},
	{WEB "        keys: {room: abcdefghijklmnopqrstuvwxyz012345}\n", "28:22", "1 to 31 bytes"},
	{WEB "        keys: {room: 'a\"b'}\n", "28:22", "cannot hold a quote"},
	{WEB "        keys: {room: 'a\\b'}\n", "28:22", "cannot hold a quote"},
	{WEB "        keys: {room: r, rid: r}\n", "28:30", "room and rid are both \"r\""},
	{WEB KEYS "        abort: /a\n", "29:16", "abort needs the key that says which request"},
	{WEB "        keys: {room: r, rid: i}\n        abort: a\n", "29:16", "must be a path"},
	{WEB "        keys: {room: r, rid: i}\n        abort: \"/a?b=c\"\n", "29:16",
	 "without a query"},
	{WEB "        keys: {room: r, rid: i}\n"
	     "        abort: /abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz0123\n",
	 "29:16", "at most 56 bytes"},
	/* fake hosts */
	{"version: 1\nprofiles:\n  - name: t\n    room: {type: u64, fake_hosts: 2.2.2.2}\n", "4:35",
	 "fake_hosts must be a list"},
	{"version: 1\nprofiles:\n  - name: t\n    room: {type: u64, fake_hosts: []}\n", "4:35",
	 "empty list"},
	{"version: 1\nprofiles:\n  - name: t\n    room: {type: u64, fake_hosts: [a b]}\n", "4:36",
	 "a fake host is a name or an address"},
	{"version: 1\nprofiles:\n  - name: t\n    room: {type: u64, fake_hosts: [a, A]}\n", "4:39",
	 "\"A\" a second time"},
	{"version: 1\nprofiles:\n  - name: t\n    room: {type: u64, fake_host: [a]}\n", "4:23",
	 "did you mean \"fake_hosts\"?"},
};

static void each_error(void **state)
{
	expect_slips(errors, ARRAY_SIZE(errors));
}

static void taken(const char *text)
{
	struct profile_file *pf;
	struct sp_err err = {0};

	if (profile_parse("t.yaml", text, strlen(text), &pf, &err))
		fail_msg("%s", err.text);
	profile_free(pf);
}

static void refused(const char *text, const char *words)
{
	struct profile_file *pf;
	struct sp_err err = {0};

	if (!profile_parse("t.yaml", text, strlen(text), &pf, &err))
		fail_msg("taken: %s", text);
	if (!strstr(err.text, words))
		fail_msg("\"%s\" lacks \"%s\"", err.text, words);
}

/* What a socket cannot have of the probe whose messages it takes. */
static void same_as_more(void **state)
{
	static const char probe[] =
		"version: 1\nprofiles:\n  - name: t\n    room: {type: u64}\n"
		"    libraries: {l: {file: \"lib.so\"}}\n    probes:\n"
		"      - name: recv\n        library: l\n        symbol: g\n"
		"        args: [{name: f, fetch: \"+0($arg1)\", type: zmqmsg, max: 128},\n"
		"               {name: s, fetch: \"$arg2\", type: x64}]\n"
		"        frame: f\n        socket: s\n        messages:\n"
		"          - {name: m, frames: [%s], event: {role: %s}}\n"
		"    sockets:\n" ZMTP "        same_as: recv\n";
	char text[2000];

	snprintf(text, sizeof(text), probe, "A, \"{room}\"", "announce");
	taken(text);
	snprintf(text, sizeof(text), probe, "A", "post, op: s");
	refused(text, "t.yaml:21:18: same_as: message m of recv takes a value from the call's "
		      "arguments");
	snprintf(text, sizeof(text), probe, "A, \"{room}\"", "announce, note: \"{s}\"");
	refused(text, "takes a value from the call's arguments");
	snprintf(text, sizeof(text), probe,
		 "A, xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "call");
	taken(text);
	snprintf(text, sizeof(text), probe,
		 "A, xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "call");
	refused(text, "t.yaml:21:18: same_as: message m of recv compares more than the 64 bytes");
}

/* ---- limits ------------------------------------------------------------------------------------
 */

/* A profile of so many probes and entries of sockets. */
static void of_size(char *text, int nprobes, int nsockets)
{
	text += sprintf(text, "version: 1\nprofiles:\n  - name: t\n    room: {type: u64}\n"
			      "    libraries: {l: {file: x}}\n    probes:\n");
	for (int i = 0; i < nprobes; i++)
		text += sprintf(text,
				"      - {name: p%d, library: l, symbol: f, event: {role: call}}\n",
				i);
	text += sprintf(text, "    sockets:\n");
	for (int i = 0; i < nsockets; i++)
		text += sprintf(text,
				"      - {name: s%d, process: parent, when: {listen: 1}, decode: "
				"http, keys: {room: r}}\n",
				i);
}

static void limits(void **state)
{
	char *text = malloc(100000);

	assert_non_null(text);
	of_size(text, 1, SP_MAX_SOCK_RULES);
	taken(text);
	of_size(text, 1, SP_MAX_SOCK_RULES + 1);
	refused(text, "sockets: more than 8");
	of_size(text, SP_MAX_PROBES - 2, 2);
	taken(text);
	of_size(text, SP_MAX_PROBES - 2, 3);
	refused(text, "t.yaml:136:9: more than 128 probes and entries of sockets in one profile");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_error),
		cmocka_unit_test(same_as_more),
		cmocka_unit_test(limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
