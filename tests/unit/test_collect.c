// SPDX-License-Identifier: Apache-2.0
/* collect/: multipart messages, records to events. */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/collect.h"

static const char profile_text[] =
	"version: 1\n"
	"profiles:\n"
	"  - name: t\n"
	"    room: {type: u64}\n"
	"    stages: {bootstrap: 330s, ready: 300s, inflight: 30s, releasing: 10s}\n"
	"    done: {needs: [kv.last, aux]}\n"
	"    status: {done: 0, busy: 1, error: \"<0\", names: {-10: \"remote disconnect\"}}\n"
	"    libraries:\n"
	"      z: {file: \"libz*\"}\n"
	"    probes:\n"
	"      - name: recv\n"
	"        library: z\n"
	"        symbol: recv\n"
	"        on: return\n"
	"        args:\n"
	"          - {name: sock, fetch: \"$arg2\", type: x64}\n"
	"          - {name: frame, fetch: \"+0($arg1)\", type: zmqmsg, max: 64}\n"
	"        frame: frame\n"
	"        socket: sock\n"
	"        messages:\n"
	"          - {name: metadata, frames: [\"Guard\", \"{room}\", \"{ip:ip}\", \"{port:u64}\", "
	"\"{agent}\",\n"
	"             \"{kv:len}\", \"{aux:len}\", \"{need}\"], event: {role: announce, peer: "
	"\"{ip}:{port}\",\n"
	"             dummy_if_empty: [kv, aux]}}\n"
	"          - {name: registration, frames: [\"Guard\", \"None\", \"{ip:ip}\", "
	"\"{port:u64}\", "
	"\"...\"],\n"
	"             event: {role: register, peer: \"{ip}:{port}\"}}\n"
	"          - {name: abort, frames: [\"ABORT\", \"{room}\", \"{ip:ip}\", \"{port:u64}\"], "
	"event: {role: abort}}\n"
	"      - name: create\n"
	"        library: z\n"
	"        symbol: create\n"
	"        on: return\n"
	"        args:\n"
	"          - {name: op, fetch: \"+0($arg1)\", type: x64}\n"
	"          - {name: text, fetch: \"+0($arg2)\", type: stdstring, max: 96}\n"
	"          - {name: rc, fetch: \"$retval\", type: s32}\n"
	"        match:\n"
	"          - {text: \"{room}_kv_{chunk}_{last}_{rank}\", event: {kind: kv}}\n"
	"          - {text: \"{room}_aux_nokv_{rank}\", event: {kind: aux, covers: [kv.last]}}\n"
	"          - {text: \"{room}_aux\", event: {kind: aux}}\n"
	"        event: {role: post, error: rc, created: true}\n"
	"      - name: poll\n"
	"        library: z\n"
	"        symbol: poll\n"
	"        on: return\n"
	"        args:\n"
	"          - {name: op, fetch: \"$arg1\", type: x64}\n"
	"          - {name: rc, fetch: \"$retval\", type: s32}\n"
	"        on_change: op\n"
	"        event: {role: status, status: rc}\n";

struct fixture {
	struct profile_file *pf;
	struct decoder *d;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct sp_err err = {0};

	if (profile_parse("t.yaml", profile_text, strlen(profile_text), &f->pf, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return -1;
	}
	f->d = decoder_new(&f->pf->profiles[0]);
	*state = f;
	return f->d ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	decoder_free(f->d);
	profile_free(f->pf);
	free(f);
	return 0;
}

struct rec {
	struct sp_rec_hit hit;
	char data[SP_DATA_LARGE];
};

static struct rec *rec_new(int probe)
{
	static struct rec r;

	memset(&r, 0, sizeof(r));
	r.hit.h.type = SP_REC_HIT;
	r.hit.h.probe = probe;
	r.hit.h.pid = 10;
	r.hit.h.tid = 11;
	r.hit.h.ns = 1000;
	return &r;
}

/* Which fetch program makes an argument: what the kernel writes into alt[]. */
static void set_text(const struct fixture *f, struct rec *r, int arg, const char *s, size_t len)
{
	const struct sp_probe *prog = &f->pf->profiles[0].probes[r->hit.h.probe].prog;

	for (int i = 0; i < prog->nfetch; i++) {
		if (prog->fetch[i].arg != arg || prog->fetch[i].flags & SP_F_COND)
			continue;
		r->hit.alt[arg] = i;
		memcpy((char *)&r->hit + sizeof(r->hit) + prog->fetch[i].data_at, s, len);
		r->hit.len[arg] = len ? (int)len : SP_LEN_EMPTY;
		r->hit.val[arg] = len;
		return;
	}
	fail();
}

static int frame(struct fixture *f, int at, const char *s, size_t len, int flags,
		 struct sp_event *ev)
{
	struct rec *r = rec_new(0);

	r->hit.val[0] = 0x5000;
	r->hit.h.frame = at;
	r->hit.h.flags = flags;
	set_text(f, r, 1, s, len < 64 ? len : 64);
	r->hit.val[1] = len;
	return decoder_record(f->d, &r->hit, sizeof(*r), ev);
}

/* Send the frames one after another; the result of the last. */
static int message(struct fixture *f, const char *const *s, int n, int flags, struct sp_event *ev)
{
	int rc = 0;

	for (int i = 0; i < n; i++)
		rc = frame(f, i, s[i], strlen(s[i]), flags | (i + 1 < n ? SP_RF_MORE : 0), ev);
	return rc;
}

static const char *const metadata[] = {"Guard",   "9223372036854775807", "10.0.0.7", "41231",
				       "agent-x", "\x01\x01\x01\x01",    "7",        "2"};

static void test_message(void **state)
{
	struct fixture *f = *state;
	struct sp_event ev;

	assert_int_equal(message(f, metadata, 8, 0, &ev), 1);
	assert_int_equal(ev.role, ROLE_ANNOUNCE);
	assert_string_equal(ev.room, "9223372036854775807");
	assert_string_equal(ev.peer, "10.0.0.7:41231");
	assert_string_equal(ev.agent, "agent-x");
	assert_int_equal(ev.need, 2);
	assert_int_equal(ev.flags, 0);
	assert_int_equal(ev.pid, 10);
	assert_int_equal(ev.tid, 11);
}

static void test_dummy_rank(void **state)
{
	struct fixture *f = *state;
	const char *const m[] = {"Guard", "5", "10.0.0.7", "41231", "a", "", "", "2"};
	struct sp_event ev;

	assert_int_equal(message(f, m, 8, 0, &ev), 1);
	assert_int_equal(ev.flags, EV_NODATA);
}

static void test_message_wrong_shapes(void **state)
{
	struct fixture *f = *state;
	const char *const bad_room[] = {"Guard", "x5", "10.0.0.7", "41231", "a", "k", "7", "2"};
	const char *const bad_ip[] = {"Guard", "5", "somewhere", "41231", "a", "k", "7", "2"};
	struct sp_event ev;

	assert_int_equal(message(f, bad_room, 8, 0, &ev), 0);
	assert_int_equal(message(f, bad_ip, 8, 0, &ev), 0);
	assert_int_equal(message(f, metadata, 7, 0, &ev), 0); /* one frame short */
	assert_int_equal(message(f, metadata, 8, 0, &ev), 1); /* and the next is whole again */
}

static void test_open_ended_message(void **state)
{
	struct fixture *f = *state;
	const char *const m[] = {"Guard", "None", "10.0.0.7", "41231", "a", "b", "c"};
	struct sp_event ev;

	assert_int_equal(message(f, m, 7, 0, &ev), 1);
	assert_int_equal(ev.role, ROLE_REGISTER);
	assert_string_equal(ev.room, "");
}

static void test_cut_message(void **state)
{
	struct fixture *f = *state;
	const char *const abort_tail[] = {"77", "10.0.0.7", "41231"};
	struct sp_event ev;

	/* its first frame was received inside the call that the attach found under way */
	assert_int_equal(message(f, metadata + 1, 7, SP_RF_CUT, &ev), 1);
	assert_int_equal(ev.role, ROLE_ANNOUNCE);
	assert_int_equal(ev.flags & EV_CUT, EV_CUT);
	assert_string_equal(ev.room, "9223372036854775807");
	assert_int_equal(message(f, abort_tail, 3, SP_RF_CUT, &ev), 1);
	assert_int_equal(ev.role, ROLE_ABORT);
	assert_string_equal(ev.room, "77");
	/* cut later, the room is gone: no event, and no room is invented */
	assert_int_equal(message(f, metadata + 2, 6, SP_RF_CUT, &ev), 0);
	assert_int_equal(message(f, metadata + 7, 1, SP_RF_CUT, &ev), 0);
}

/* A message without a byte: nothing was ever kept of it. */
static void test_empty_message(void **state)
{
	struct fixture *f = *state;
	struct sp_event ev;

	assert_int_equal(frame(f, 0, "", 0, SP_RF_MORE, &ev), 0);
	assert_int_equal(frame(f, 1, "", 0, 0, &ev), 0);
	assert_int_equal(message(f, metadata, 8, 0, &ev), 1);
}

static void test_frames_missing(void **state)
{
	struct fixture *f = *state;
	struct collect_stats cs = {0};
	struct sp_event ev;

	assert_int_equal(frame(f, 0, "Guard", 5, SP_RF_MORE, &ev), 0);
	assert_int_equal(frame(f, 2, "10.0.0.7", 8, SP_RF_MORE, &ev), 0); /* 1 was lost */
	assert_int_equal(frame(f, 3, "1", 1, 0, &ev), 0);
	assert_int_equal(message(f, metadata, 8, 0, &ev), 1);
	decoder_stats(f->d, &cs);
	assert_true(cs.broken > 0);
}

/* A frame that could not be read, as the kernel side tells it. */
static int lost(struct fixture *f, int at, int16_t sock_len, struct sp_event *ev)
{
	struct rec *r = rec_new(0);

	r->hit.val[0] = 0x5000;
	r->hit.len[0] = sock_len;
	r->hit.h.frame = at;
	r->hit.h.flags = SP_RF_MORE;
	r->hit.len[1] = -EFAULT;
	return decoder_record(f->d, &r->hit, sizeof(*r), ev);
}

/* Its message is given up: nothing that comes after it is taken for the rest of what was before. */
static void test_frame_lost(void **state)
{
	static const int16_t sock[] = {0, -EFAULT};
	struct fixture *f = *state;
	struct sp_event ev;

	for (size_t i = 0; i < sizeof(sock) / sizeof(sock[0]); i++) {
		assert_int_equal(frame(f, 0, "ABORT", 5, SP_RF_MORE, &ev), 0);
		assert_int_equal(lost(f, 1, sock[i], &ev), -EFAULT);
		assert_int_equal(frame(f, 1, "8", 1, SP_RF_MORE, &ev), 0);
		assert_int_equal(frame(f, 2, "10.0.0.7", 8, SP_RF_MORE, &ev), 0);
		assert_int_equal(frame(f, 3, "1", 1, 0, &ev), 0);
		assert_int_equal(message(f, metadata, 8, 0, &ev), 1);
		assert_string_equal(ev.room, "9223372036854775807");
	}
}

static void test_too_many_frames(void **state)
{
	struct fixture *f = *state;
	struct sp_event ev;

	for (int i = 0; i < 200; i++)
		assert_int_equal(frame(f, i, "Guard", 5, SP_RF_MORE, &ev), 0);
	assert_int_equal(message(f, metadata, 8, 0, &ev), 1);
}

static int create(struct fixture *f, const char *text, uint64_t op, int rc, struct sp_event *ev)
{
	struct rec *r = rec_new(1);

	r->hit.val[0] = op;
	set_text(f, r, 1, text, strlen(text));
	r->hit.val[2] = (uint64_t)(int64_t)rc;
	return decoder_record(f->d, &r->hit, sizeof(*r), ev);
}

static void test_create(void **state)
{
	struct fixture *f = *state;
	struct sp_event ev;

	assert_int_equal(create(f, "77_kv_3_1_0", 0x7f00, 0, &ev), 1);
	assert_int_equal(ev.role, ROLE_POST);
	assert_int_equal(ev.flags, EV_CREATED);
	assert_string_equal(ev.kind, "kv");
	assert_string_equal(ev.room, "77");
	assert_int_equal(ev.chunk, 3);
	assert_int_equal(ev.last, 1);
	assert_int_equal(ev.rank, 0);
	assert_int_equal(ev.op, 0x7f00);
	assert_int_equal(ev.status, OPS_UNKNOWN); /* created, not complete */
	assert_int_equal(create(f, "77_aux", 0x7f10, 0, &ev), 1);
	assert_string_equal(ev.kind, "aux");
	assert_int_equal(ev.covers, 0);
	assert_int_equal(create(f, "77_aux_nokv_0", 0x7f10, 0, &ev), 1);
	assert_int_equal(ev.covers, 1);
	assert_int_equal(create(f, "77_kv_0_1_0", 0, -10, &ev), 1);
	assert_int_equal(ev.status, OPS_ERROR);
	assert_int_equal(ev.code, -10);
	assert_string_equal(ev.note, "remote disconnect");
	assert_int_equal(create(f, "something else", 1, 0, &ev), 0);
}

static void test_unreadable_argument(void **state)
{
	struct fixture *f = *state;
	struct rec *r = rec_new(1);
	struct sp_event ev;

	set_text(f, r, 1, "77_aux", 6);
	r->hit.len[0] = -EFAULT; /* the handle */
	assert_int_equal(decoder_record(f->d, &r->hit, sizeof(*r), &ev), -EFAULT);
	r = rec_new(1);
	r->hit.len[1] = -EFAULT; /* the text */
	assert_int_equal(decoder_record(f->d, &r->hit, sizeof(*r), &ev), -EFAULT);
	r = rec_new(1);
	r->hit.len[1] = SP_LEN_UNSET; /* no text: not ours, no fault */
	assert_int_equal(decoder_record(f->d, &r->hit, sizeof(*r), &ev), 0);
}

static void test_status(void **state)
{
	struct fixture *f = *state;
	struct rec *r = rec_new(2);
	struct sp_event ev;

	r->hit.val[0] = 0x7f00;
	r->hit.val[1] = 1;
	assert_int_equal(decoder_record(f->d, &r->hit, sizeof(*r), &ev), 1);
	assert_int_equal(ev.role, ROLE_STATUS);
	assert_int_equal(ev.status, OPS_BUSY);
	r->hit.val[1] = 0;
	assert_int_equal(decoder_record(f->d, &r->hit, sizeof(*r), &ev), 1);
	assert_int_equal(ev.status, OPS_DONE);
	r->hit.val[1] = (uint64_t)-3;
	assert_int_equal(decoder_record(f->d, &r->hit, sizeof(*r), &ev), 1);
	assert_int_equal(ev.status, OPS_ERROR);
	assert_int_equal(ev.code, -3);
}

static void test_hostile_records(void **state)
{
	struct fixture *f = *state;
	unsigned int seed = 11;
	struct sp_event ev;

	for (int i = 0; i < 200000; i++) {
		struct rec *r = rec_new(0);
		unsigned char *p = (unsigned char *)r;
		size_t len = rand_r(&seed) % (sizeof(*r) + 1);

		for (size_t k = 0; k < sizeof(*r); k++)
			p[k] = rand_r(&seed);
		if (i % 2)
			r->hit.h.type = SP_REC_HIT;
		if (i % 4 == 1)
			r->hit.h.probe %= 3;
		decoder_record(f->d, &r->hit, len, &ev);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_message, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dummy_rank, setup, teardown),
		cmocka_unit_test_setup_teardown(test_message_wrong_shapes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_open_ended_message, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cut_message, setup, teardown),
		cmocka_unit_test_setup_teardown(test_empty_message, setup, teardown),
		cmocka_unit_test_setup_teardown(test_frames_missing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_frame_lost, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_many_frames, setup, teardown),
		cmocka_unit_test_setup_teardown(test_create, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unreadable_argument, setup, teardown),
		cmocka_unit_test_setup_teardown(test_status, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile_records, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
