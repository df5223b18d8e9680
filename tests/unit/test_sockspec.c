// SPDX-License-Identifier: Apache-2.0
/* The `sockets:` section: what it may say, and what the shipped one says. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "profile/profile.h"
#include "util/cleanup.h"

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

static struct profile *must(const char *text, struct profile_file **pf)
{
	struct sp_err err = {0};

	if (profile_parse("t.yaml", text, strlen(text), pf, &err))
		fail_msg("%s", err.text);
	return &(*pf)->profiles[0];
}

/* ---- what it may say ---------------------------------------------------------------------------
 */

/* The probe that an entry of frames is besides: as a receive's would be. */
static void is_frame_probe(const struct profile *p, int entry)
{
	const struct sock_entry *e = &p->sockets->entry[entry];
	const struct profile_probe *pr = &p->probes[e->probe];
	const struct sp_probe *prog = &pr->prog;

	assert_int_equal(e->probe, p->nuprobes + entry);
	assert_int_equal(e->rule.probe, e->probe);
	assert_int_equal(pr->socket, entry);
	assert_int_equal(pr->library, -1);
	assert_null(pr->symbol);
	assert_false(pr->required);
	assert_true(pr->is_frames);
	assert_int_equal(pr->nargs, 2);
	assert_string_equal(pr->args[0].name, "frame");
	assert_true(pr->args[0].is_composite);
	assert_string_equal(pr->args[1].name, "sock");
	assert_false(pr->args[1].is_composite);
	assert_int_equal(prog->nargs, 2);
	assert_int_equal(prog->nfetch, 2);
	assert_int_equal(prog->fetch[0].type, SP_T_ZMQMSG);
	assert_int_equal(prog->fetch[0].arg, 0);
	assert_int_equal(prog->fetch[0].max, 64);
	assert_int_equal(prog->fetch[0].data_at, 0);
	assert_int_equal(prog->fetch[1].type, SP_T_U64);
	assert_int_equal(prog->fetch[1].arg, 1);
	assert_int_equal(prog->frame_arg, 0);
	assert_int_equal(prog->sock_arg, 1);
	assert_int_equal(prog->more_mask, 0);
	assert_int_equal(prog->flags, SP_P_FRAMES);
	assert_int_equal(prog->size_class, SP_CLASS_SMALL);
}

static void same_as(void **state)
{
	struct profile_file *pf;
	struct profile *p = must(HEAD SOCKETS ZMTP "        same_as: recv\n", &pf);
	const struct sock_entry *e = &p->sockets->entry[0];
	const struct profile_probe *from = &p->probes[1], *to = &p->probes[2];

	assert_int_equal(p->nuprobes, 2);
	assert_int_equal(p->nprobes, 3);
	assert_int_equal(p->probes[0].socket, -1);
	assert_int_equal(from->socket, -1);
	assert_int_equal(p->sockets->nentries, 1);
	is_frame_probe(p, 0);
	assert_int_equal(e->process.is, SOCK_IS_SELF);
	assert_true(e->process.same_exe);
	assert_false(e->process.listens);
	assert_null(e->process.cmdline);
	assert_int_equal(e->rule.decode, SP_DEC_ZMTP);
	assert_int_equal(e->rule.dirs, 1 << SP_DIR_IN);
	assert_int_equal(e->rule.bytes, 1);
	assert_int_equal(e->rule.listen_lo + e->rule.listen_hi, 0);
	assert_int_equal(e->rule.peer_lo + e->rule.peer_hi, 0);
	assert_int_equal(e->same_as, 1);
	assert_int_equal(e->wins, SOCK_WINS_PROBE);
	/* the messages are copies, to the last text */
	assert_string_equal(to->name, "s");
	assert_int_equal(to->nmatch, 2);
	for (int i = 0; i < 2; i++) {
		const struct evt_match *a = &from->match[i], *b = &to->match[i];
		char one[200], two[200];

		assert_int_equal(a->nframes, b->nframes);
		assert_int_equal(a->frames_open, b->frames_open);
		assert_int_equal(a->event.role, b->event.role);
		assert_int_equal(a->event.nfields, b->event.nfields);
		for (int k = 0; k < a->nframes; k++) {
			pattern_print(&a->frames[k], one, sizeof(one));
			pattern_print(&b->frames[k], two, sizeof(two));
			assert_string_equal(one, two);
			if (a->frames[k].part[0].literal)
				assert_ptr_not_equal(a->frames[k].part[0].literal,
						     b->frames[k].part[0].literal);
		}
	}
	assert_string_equal(to->match[0].name, "hello");
	assert_null(to->match[1].name);
	assert_string_equal(to->match[1].event.field[0].value, "gone");
	assert_string_equal(to->match[0].event.dummy[0], "n");
	assert_int_equal(to->prog.nheads, 2);
	assert_memory_equal(to->prog.head, from->prog.head, sizeof(to->prog.head));
	profile_free(pf);
}

static void own_messages(void **state)
{
	struct profile_file *pf;
	struct profile *p = must(
		HEAD SOCKETS
		"      - name: told\n"
		"        process: {is: [self, sibling], cmdline: \"*x*\", exe: any, listens: on}\n"
		"        when: {listen: 8998, peer: \"8000-8099\"}\n"
		"        decode: zmtp\n"
		"        direction: out\n"
		"        messages:\n"
		"          - name: status\n"
		"            frames: [\"{room}\", \"{code:u64}\", \"{rank}\"]\n"
		"            event: {role: told, status: code}\n"
		"      - name: both\n"
		"        process: {is: ancestor}\n"
		"        when: {peer: 65535, bytes: zmtp}\n"
		"        decode: zmtp\n"
		"        direction: both\n"
		"        same_as: recv\n"
		"        wins: socket\n",
		&pf);
	const struct sock_entry *e = p->sockets->entry;
	const struct profile_probe *pr = &p->probes[2];

	assert_int_equal(p->sockets->nentries, 2);
	assert_int_equal(p->nprobes, 4);
	is_frame_probe(p, 0);
	is_frame_probe(p, 1);
	assert_int_equal(e[0].process.is, SOCK_IS_SELF | SOCK_IS_SIBLING);
	assert_false(e[0].process.same_exe);
	assert_true(e[0].process.listens);
	assert_string_equal(e[0].process.cmdline, "*x*");
	assert_int_equal(e[0].rule.dirs, 1 << SP_DIR_OUT);
	assert_int_equal(e[0].rule.bytes, 0);
	assert_int_equal(e[0].rule.listen_lo, 8998);
	assert_int_equal(e[0].rule.listen_hi, 8998);
	assert_int_equal(e[0].rule.peer_lo, 8000);
	assert_int_equal(e[0].rule.peer_hi, 8099);
	assert_int_equal(e[0].same_as, -1);
	assert_int_equal(e[0].wins, SOCK_WINS_ITSELF);
	assert_int_equal(pr->nmatch, 1);
	assert_int_equal(pr->match[0].event.role, ROLE_TOLD);
	assert_int_equal(pr->prog.nheads, 1);
	assert_int_equal(pr->prog.head[0].kind, SP_HEAD_DIGITS);
	assert_true(pr->prog.head[0].copy == 7);
	assert_int_equal(e[1].process.is, SOCK_IS_ANCESTOR);
	assert_int_equal(e[1].rule.dirs, 1 << SP_DIR_IN | 1 << SP_DIR_OUT);
	assert_int_equal(e[1].rule.peer_lo, 65535);
	assert_int_equal(e[1].wins, SOCK_WINS_SOCKET);
	profile_free(pf);
}

static bool key_is(const struct sock_entry *e, enum sock_key k, const char *name)
{
	return e->rule.key[k].len == strlen(name) &&
	       !memcmp(e->rule.key[k].name, name, strlen(name));
}

static void http(void **state)
{
	struct profile_file *pf;
	struct profile *p =
		must(HEAD SOCKETS HTTP
		     "        keys: {rid: rid, room: abcdefghijklmnopqrstuvwxyz01234}\n"
		     "        abort: /v1/abort\n"
		     "        events: [client-gone, arrive]\n"
		     "      - {name: i, process: parent, when: {listen: 1-65535}, decode: http,\n"
		     "         keys: {room: room, host: \"the host\"}}\n",
		     &pf);
	const struct sock_entry *e = p->sockets->entry;
	const struct profile_probe *pr = &p->probes[2];

	assert_int_equal(e[0].rule.decode, SP_DEC_HTTP);
	assert_int_equal(e[0].rule.probe, 2);
	assert_int_equal(e[0].rule.nkeys, SOCK_NKEYS);
	assert_true(key_is(&e[0], SOCK_KEY_ROOM, "abcdefghijklmnopqrstuvwxyz01234"));
	assert_true(key_is(&e[0], SOCK_KEY_HOST, ""));
	assert_true(key_is(&e[0], SOCK_KEY_RID, "rid"));
	assert_string_equal(e[0].abort_path, "/v1/abort");
	assert_int_equal(e[0].events, SOCK_TELLS_ARRIVE | SOCK_TELLS_GONE);
	assert_int_equal(e[1].events, SOCK_TELLS_ARRIVE | SOCK_TELLS_REPLY | SOCK_TELLS_GONE);
	assert_int_equal(e[0].process.is, SOCK_IS_PARENT);
	assert_int_equal(e[0].same_as, -1);
	assert_false(pr->is_frames);
	assert_int_equal(pr->nmatch, 0);
	assert_int_equal(pr->prog.nfetch + pr->prog.nheads + pr->prog.flags, 0);
	assert_null(e[1].abort_path);
	assert_true(key_is(&e[1], SOCK_KEY_HOST, "the host"));
	assert_true(key_is(&e[1], SOCK_KEY_RID, ""));
	assert_int_equal(e[1].rule.bytes, 0);
	assert_int_equal(e[1].rule.listen_lo, 1);
	assert_int_equal(e[1].rule.listen_hi, 65535);
	profile_free(pf);
}

/* Sockets are enough, with the server's own view or without. */
static void alone(void **state)
{
	static const char head[] = "version: 1\nprofiles:\n  - name: t\n    room: {type: string}\n";
	static const char python[] = "    python:\n      root: {frame: f}\n"
				     "      queues: {inflight: \"self.q[*].room\"}\n";

	for (int i = 0; i < 4; i++) {
		struct profile_file *pf;
		struct profile *p;
		char text[1000];

		snprintf(text, sizeof(text), "%s%s" SOCKETS HTTP KEYS "%s", head,
			 i & 1 ? "    probes: []\n" : "", i & 2 ? python : "");
		p = must(text, &pf);
		assert_int_equal(p->nuprobes, 0);
		assert_int_equal(p->nprobes, 1);
		assert_int_equal(p->sockets->entry[0].probe, 0);
		assert_true(!p->python == !(i & 2));
		profile_free(pf);
	}
}

static void fake_hosts(void **state)
{
	struct profile_file *pf;
	struct profile *p = must("version: 1\nprofiles:\n  - name: t\n"
				 "    room: {type: string, fake_hosts: [2.2.2.2, Warm-Up.local]}\n"
				 "    libraries: {l: {file: \"lib.so\"}}\n"
				 "    probes: [{name: p, library: l, symbol: f, event: {role: "
				 "call}}]\n",
				 &pf);

	assert_int_equal(p->nfake_hosts, 2);
	assert_true(profile_host_is_fake(p, "2.2.2.2"));
	assert_true(profile_host_is_fake(p, "warm-up.LOCAL"));
	assert_false(profile_host_is_fake(p, "2.2.2.20"));
	assert_false(profile_host_is_fake(p, "2.2.2."));
	assert_false(profile_host_is_fake(p, ""));
	profile_free(pf);
	p = must(HEAD, &pf);
	assert_null(p->sockets);
	assert_false(profile_host_is_fake(p, "2.2.2.2"));
	profile_free(pf);
}

static void shipped(void **state)
{
	struct profile_file *pf;
	struct sp_err err = {0};
	const struct profile *p;
	const struct sock_entry *e;

	if (profile_load("probes.yaml", &pf, &err))
		fail_msg("%s", err.text);
	p = profile_by_name(pf, "sglang-nixl-prefill");
	assert_true(profile_host_is_fake(p, "2.2.2.2"));
	assert_int_equal(p->sockets->nentries, 2);
	e = &p->sockets->entry[0];
	is_frame_probe(p, 0);
	assert_string_equal(p->probes[e->probe].name, "bootstrap_socket");
	assert_string_equal(p->probes[e->same_as].name, "zmq_recv");
	assert_int_equal(e->wins, SOCK_WINS_PROBE);
	assert_int_equal(e->process.is, SOCK_IS_SELF);
	assert_memory_equal(p->probes[e->probe].prog.head, p->probes[e->same_as].prog.head,
			    sizeof(p->probes[0].prog.head));
	e = &p->sockets->entry[1];
	assert_string_equal(p->probes[e->probe].name, "http");
	assert_int_equal(e->process.is, SOCK_IS_PARENT | SOCK_IS_ANCESTOR | SOCK_IS_SIBLING);
	assert_true(e->process.listens);
	assert_true(e->process.same_exe);
	assert_true(key_is(e, SOCK_KEY_ROOM, "bootstrap_room"));
	assert_true(key_is(e, SOCK_KEY_HOST, "bootstrap_host"));
	assert_true(key_is(e, SOCK_KEY_RID, "rid"));
	assert_string_equal(e->abort_path, "/abort_request");
	profile_free(pf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_as),    cmocka_unit_test(own_messages),
		cmocka_unit_test(http),       cmocka_unit_test(alone),
		cmocka_unit_test(fake_hosts), cmocka_unit_test(shipped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
