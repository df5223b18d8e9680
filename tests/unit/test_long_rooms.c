// SPDX-License-Identifier: Apache-2.0
/* Ids longer than a room's name, from arguments and frames: one id is one room wherever it is read,
 * and what was not copied whole is no room at all. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collect/collect.h"
#include "event/id.h"

#define PROXY                                                                                      \
	"chatcmpl-___prefill_addr_10.0.1.2:21001___decode_addr_10.0.1.3:22001_"                    \
	"8d4f0d2a31e8ab4c55a1b2c3"

enum { P_READ, P_TAKE, P_RECV, P_JOIN };

static const char yaml[] =
	"version: 1\n"
	"profiles:\n"
	"  - name: t\n"
	"    room: {type: string}\n"
	"    libraries: {z: {file: \"libz*\"}}\n"
	"    probes:\n"
	"      - name: read\n"
	"        library: z\n"
	"        symbol: read\n"
	"        args:\n"
	"          - {name: text, fetch: \"+0($arg1)\", type: stdstring, max: 256}\n"
	"        match:\n"
	"          - {text: \"HB:{}\", event: {role: call, kind: heartbeat}}\n"
	"          - {text: \"{room}:{:u64}\", event: {role: post, kind: read}}\n"
	"          - {text: \"abort {room}\", event: {role: abort}}\n"
	"        event: {role: call}\n"
	"      - name: take\n"
	"        library: z\n"
	"        symbol: take\n"
	"        args:\n"
	"          - {name: room, fetch: \"+0($arg1)\", type: string, max: 256}\n"
	"          - {name: rid, fetch: \"+0($arg2)\", type: string, max: 128}\n"
	"        event: {role: arrive}\n"
	"      - name: recv\n"
	"        library: z\n"
	"        symbol: recv\n"
	"        on: return\n"
	"        args:\n"
	"          - {name: sock, fetch: \"$arg2\", type: x64}\n"
	"          - {name: frame, fetch: \"+0($arg1)\", type: zmqmsg, max: 256}\n"
	"        frame: frame\n"
	"        socket: sock\n"
	"        messages:\n"
	"          - {name: hello, frames: [HELLO, \"{room}\", \"{peer}\"], event: {role: "
	"announce}}\n"
	"      - name: join\n"
	"        library: z\n"
	"        symbol: join\n"
	"        args:\n"
	"          - {name: left, fetch: \"+0($arg1)\", type: string, max: 128}\n"
	"          - {name: right, fetch: \"+0($arg2)\", type: string, max: 128}\n"
	"        event: {role: abort, room: \"{left}-{right}\"}\n";

struct rec {
	struct sp_rec_hit hit;
	char data[SP_DATA_LARGE + SP_DATA_SLACK];
};

struct fixture {
	struct profile_file *pf;
	struct decoder *d;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct sp_err err = {0};

	if (profile_parse("t.yaml", yaml, strlen(yaml), &f->pf, &err))
		fail_msg("%s", err.text);
	f->d = decoder_new(&f->pf->profiles[0]);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	decoder_free(f->d);
	profile_free(f->pf);
	free(f);
	return 0;
}

static void set_text(const struct fixture *f, struct rec *r, int probe, int arg, const char *s,
		     size_t full)
{
	const struct sp_probe *prog = &f->pf->profiles[0].probes[probe].prog;

	for (int i = 0; i < prog->nfetch; i++) {
		size_t n = full < prog->fetch[i].max ? full : prog->fetch[i].max;

		if (prog->fetch[i].arg != arg)
			continue;
		memcpy(r->data + prog->fetch[i].data_at, s, n < strlen(s) ? n : strlen(s));
		r->hit.alt[arg] = (uint8_t)i;
		r->hit.val[arg] = full;
		r->hit.len[arg] = (int16_t)n;
	}
}

/* A call with these texts, of which the first is `full` bytes long, whatever of it there is. */
static int call_cut(struct fixture *f, int probe, const char *a, size_t full, const char *b,
		    struct sp_event *ev)
{
	struct rec *r = calloc(1, sizeof(*r));
	int rc;

	r->hit.h.type = SP_REC_HIT;
	r->hit.h.probe = (uint16_t)probe;
	set_text(f, r, probe, 0, a, full);
	if (b)
		set_text(f, r, probe, 1, b, strlen(b));
	rc = decoder_record(f->d, &r->hit, sizeof(*r), ev);
	free(r);
	return rc;
}

static int call(struct fixture *f, int probe, const char *a, const char *b, struct sp_event *ev)
{
	return call_cut(f, probe, a, strlen(a), b, ev);
}

static int hello(struct fixture *f, const char *room, size_t full, struct sp_event *ev)
{
	const char *frame[] = {"HELLO", room, "10.0.0.7:1"};
	int rc = 0;

	for (int i = 0; i < 3; i++) {
		struct rec *r = calloc(1, sizeof(*r));

		r->hit.h.type = SP_REC_HIT;
		r->hit.h.probe = P_RECV;
		r->hit.h.frame = (uint8_t)i;
		r->hit.h.flags = i < 2 ? SP_RF_MORE : 0;
		r->hit.val[0] = 0x5000;
		set_text(f, r, P_RECV, 1, frame[i], i == 1 ? full : strlen(frame[i]));
		rc = decoder_record(f->d, &r->hit, sizeof(*r), ev);
		free(r);
	}
	return rc;
}

/* An argument, a part of a text, a frame, a template: the same name. */
static void test_same_everywhere(void **state)
{
	static const char *const ids[] = {PROXY, PROXY PROXY, PROXY "-0", PROXY "-1", "short"};
	struct fixture *f = *state;
	char text[300], name[SP_ROOM_MAX];
	struct sp_event ev;

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		sp_id_name(name, ids[i], strlen(ids[i]));
		snprintf(text, sizeof(text), "%s:12", ids[i]);
		assert_int_equal(call(f, P_READ, text, NULL, &ev), 1);
		assert_string_equal(ev.room, name);
		assert_int_equal(ev.role, ROLE_POST);
		snprintf(text, sizeof(text), "abort %s", ids[i]);
		assert_int_equal(call(f, P_READ, text, NULL, &ev), 1);
		assert_string_equal(ev.room, name);
		assert_int_equal(call(f, P_TAKE, ids[i], "7", &ev), 1);
		assert_string_equal(ev.room, name);
		assert_string_equal(ev.rid, "7");
		assert_int_equal(hello(f, ids[i], strlen(ids[i]), &ev), 1);
		assert_string_equal(ev.room, name);
	}
	assert_int_equal(call(f, P_JOIN, PROXY, "0", &ev), 1);
	sp_id_name(name, PROXY "-0", strlen(PROXY "-0"));
	assert_string_equal(ev.room, name);
	assert_int_equal(call(f, P_TAKE, "7", PROXY "-0", &ev), 1);
	assert_string_equal(ev.rid, name);
}

/* Of what was cut nobody knows which room it is. */
static void test_cut_is_no_room(void **state)
{
	struct fixture *f = *state;
	struct collect_stats cs = {0};
	char text[257];
	struct sp_event ev;

	memset(text, 'x', 256);
	text[256] = '\0';
	assert_int_equal(call_cut(f, P_TAKE, text, 257, "7", &ev), -EFAULT);
	assert_int_equal(hello(f, text, 257, &ev), -EFAULT);
	assert_int_equal(hello(f, text, 256, &ev), 1);
	memcpy(text, "abort ", 6);
	assert_int_equal(call_cut(f, P_READ, text, 257, NULL, &ev), -EFAULT);
	decoder_stats(f->d, &cs);
	assert_int_equal(cs.unreadable, 3);
	assert_int_equal(cs.unmatched, 0);
}

/* It fits no alternative as far as it goes; it might, if it went further. */
static void test_cut_before_it_fits(void **state)
{
	struct fixture *f = *state;
	struct collect_stats cs = {0};
	char text[257];
	struct sp_event ev;

	memset(text, 'x', 256);
	text[256] = '\0';
	assert_true(call_cut(f, P_READ, text, 300, NULL, &ev) < 0);
	decoder_stats(f->d, &cs);
	assert_int_equal(cs.unreadable, 1);
	/* what is no id is nobody's; a list of ids is what it is, cut or not */
	text[10] = ' ';
	assert_int_equal(call_cut(f, P_READ, text, 300, NULL, &ev), 0);
	text[10] = 'x';
	memcpy(text, "HB:", 3);
	assert_int_equal(call_cut(f, P_READ, text, 300, NULL, &ev), 1);
	assert_string_equal(ev.kind, "heartbeat");
	assert_string_equal(ev.room, "");
	decoder_stats(f->d, &cs);
	assert_int_equal(cs.unreadable, 1);
	assert_int_equal(cs.unmatched, 1);
}

/* Another room than what is known of it says, and so none; of a request's id as well. */
static void test_cut_parts(void **state)
{
	struct fixture *f = *state;
	char text[129];
	struct sp_event ev;

	memset(text, 'x', 128);
	text[128] = '\0';
	assert_int_equal(call_cut(f, P_JOIN, text, 129, "0", &ev), -EFAULT);
	assert_int_equal(call(f, P_TAKE, "7", text, &ev), 1);
	assert_string_not_equal(ev.rid, "");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_same_everywhere),
		T(test_cut_is_no_room),
		T(test_cut_before_it_fits),
		T(test_cut_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
