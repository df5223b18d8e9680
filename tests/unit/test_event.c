// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "event/event.h"

static void names(void **state)
{
	for (int i = ROLE_NONE + 1; i < ROLE_MAX; i++)
		assert_int_equal(sp_role_parse(sp_role_name(i)), i);
	for (int i = STAGE_NONE + 1; i < SP_STAGE_MAX; i++)
		assert_int_equal(sp_stage_parse(sp_stage_name(i)), i);
	assert_int_equal(sp_role_parse("none"), ROLE_NONE);
	assert_int_equal(sp_role_parse("POST"), ROLE_NONE);
	assert_int_equal(sp_role_parse(""), ROLE_NONE);
	assert_int_equal(sp_stage_parse("inflights"), STAGE_NONE);
	assert_string_equal(sp_role_name(99), "none");
	assert_string_equal(sp_stage_name(99), "none");
	assert_string_equal(sp_stage_name(STAGE_INFLIGHT), "inflight");
}

static void is(const struct sp_event *ev, const char *words)
{
	char buf[200];

	sp_event_describe(ev, buf, sizeof(buf));
	assert_string_equal(buf, words);
}

static void described(void **state)
{
	struct sp_event ev;

	sp_event_init(&ev);
	ev.role = ROLE_POST;
	strcpy(ev.kind, "kv");
	ev.chunk = 2;
	ev.last = 1;
	ev.status = OPS_BUSY;
	ev.code = 1;
	is(&ev, "post kv chunk 2 last");
	ev.part = 1;
	ev.parts = 4;
	ev.rank = 3;
	ev.flags = EV_CREATED;
	is(&ev, "create kv chunk 2 last part 1 of 4 rank 3");
	ev.status = OPS_ERROR;
	ev.code = -3;
	strcpy(ev.note, "backend error");
	is(&ev, "create kv chunk 2 last part 1 of 4 rank 3 failed: error -3 (backend error)");

	sp_event_init(&ev);
	ev.role = ROLE_POST;
	ev.op = 0x7f1234;
	is(&ev, "post of op 0x7f1234");

	sp_event_init(&ev);
	ev.role = ROLE_ANNOUNCE;
	strcpy(ev.peer, "10.0.0.7:41231");
	strcpy(ev.agent, "decode-0");
	ev.need = 2;
	is(&ev, "announce from 10.0.0.7:41231 (need 2)");
	ev.flags = EV_NODATA | EV_CUT;
	is(&ev, "announce from 10.0.0.7:41231 (need 2) (takes no data) (began before the attach)");
	ev.peer[0] = '\0';
	ev.flags = 0;
	is(&ev, "announce from decode-0 (need 2)");

	sp_event_init(&ev);
	ev.role = ROLE_STATUS;
	ev.op = 0x7f00;
	ev.status = OPS_DONE;
	is(&ev, "status done of op 0x7f00");
	ev.status = OPS_BUSY;
	ev.code = 1;
	is(&ev, "status in progress of op 0x7f00");
	ev.status = OPS_ERROR;
	ev.code = -10;
	strcpy(ev.note, "remote disconnect");
	is(&ev, "status error -10 of op 0x7f00 (remote disconnect)");

	sp_event_init(&ev);
	ev.role = ROLE_ABORT;
	is(&ev, "abort");
	strcpy(ev.peer, "10.0.0.7:1");
	is(&ev, "abort from 10.0.0.7:1");

	sp_event_init(&ev);
	ev.role = ROLE_CLOSE;
	ev.op = 16;
	is(&ev, "close of op 0x10");

	sp_event_init(&ev);
	ev.role = ROLE_LOSS;
	ev.code = 12;
	strcpy(ev.kind, "ring full");
	is(&ev, "loss of 12 events (ring full)");

	sp_event_init(&ev);
	ev.role = ROLE_STALL;
	ev.code = 1500000000;
	is(&ev, "stall of the watcher for 1.5 s");

	sp_event_init(&ev);
	ev.role = ROLE_THREAD;
	ev.tid = 77;
	is(&ev, "thread 77 exited");
	ev.tid = 0;
	strcpy(ev.kind, "unsure");
	strcpy(ev.note, "no thread is in *.work");
	is(&ev, "thread unsure (no thread is in *.work)");

	sp_event_init(&ev);
	ev.role = ROLE_VIEW;
	strcpy(ev.kind, "misfit");
	strcpy(ev.note, "inflight");
	is(&ev, "view misfit (inflight)");

	sp_event_init(&ev);
	ev.role = ROLE_HELD;
	strcpy(ev.kind, "inflight");
	ev.code = 2;
	ev.flags = EV_WAITS;
	is(&ev, "held in queue inflight status 2 waits for a thread");

	sp_event_init(&ev);
	ev.role = ROLE_TARGET;
	strcpy(ev.kind, "lib");
	strcpy(ev.note, "libnixl.so");
	ev.flags = EV_GAP;
	is(&ev, "target lib (what ran before was not seen) (libnixl.so)");
}

static void peer_is(const char *kind, const char *agent, const char *peer, const char *note,
		    const char *words)
{
	struct sp_event ev;

	sp_event_init(&ev);
	ev.role = ROLE_PEER;
	strcpy(ev.kind, kind);
	strcpy(ev.agent, agent);
	strcpy(ev.peer, peer);
	strcpy(ev.note, note);
	is(&ev, words);
}

static void sockets_described(void **state)
{
	struct sp_event ev;

	sp_event_init(&ev);
	ev.role = ROLE_ARRIVE;
	is(&ev, "arrive");
	strcpy(ev.peer, "2.2.2.2");
	ev.flags = EV_FAKE | EV_TRACKED;
	is(&ev, "arrive host 2.2.2.2 (a health check)");
	ev.flags = EV_SHARED;
	is(&ev, "arrive host 2.2.2.2 (perhaps of another process)");

	sp_event_init(&ev);
	ev.role = ROLE_REPLY;
	is(&ev, "reply");
	ev.code = 200;
	strcpy(ev.kind, "first");
	is(&ev, "reply 200 begins");
	strcpy(ev.kind, "end");
	is(&ev, "reply 200");

	sp_event_init(&ev);
	ev.role = ROLE_ABORT;
	strcpy(ev.kind, "client-gone");
	is(&ev, "abort: the client has gone");

	peer_is("closed", "", "10.0.0.7:41231", "", "peer 10.0.0.7:41231 closed");
	peer_is("reset", "decode-0", "10.0.0.7:5555", "", "peer decode-0 10.0.0.7:5555 reset");
	peer_is("opened", "10.0.0.7:5555", "10.0.0.7:5555", "", "peer 10.0.0.7:5555 opened");
	peer_is("trusted", "", "10.0.0.7:41231", "received",
		"peer 10.0.0.7:41231 followed from here on (received)");
	peer_is("lost", "", "unix", "received: bytes passed unseen",
		"peer unix no longer followed (received: bytes passed unseen)");
	peer_is("unreadable", "", "[::1]:5", "encrypted, CURVE",
		"peer [::1]:5 unreadable (encrypted, CURVE)");
	peer_is("untracked", "", "", "bytes passed unseen",
		"reply will not be seen (bytes passed unseen)");
	peer_is("unread", "decode-0", "", "announce",
		"announce from decode-0 has come and the server has not taken it");
}

/* Every length: cut, never beyond the buffer, always ended. */
static void calls_described(void **state)
{
	struct sp_event ev;

	sp_event_init(&ev);
	ev.role = ROLE_CALL;
	ev.ns = 50000000000;
	is(&ev, "call");
	strcpy(ev.kind, "copy");
	is(&ev, "copy");
	ev.bytes = 4 << 20;
	is(&ev, "copy of 4.0 MiB");
	strcpy(ev.object, "stream 0x7f");
	ev.took_ns = 1234567;
	is(&ev, "copy of 4.0 MiB, stream 0x7f, took 1.2 ms");
	ev.status = OPS_ERROR;
	ev.code = 700;
	strcpy(ev.note, "illegal address");
	ev.bytes = 0;
	ev.count = 3;
	is(&ev, "copy, 3 pieces, stream 0x7f, took 1.2 ms failed: error 700 (illegal address)");

	sp_event_init(&ev);
	ev.role = ROLE_CALL;
	ev.ns = 50000000000;
	strcpy(ev.kind, "inside");
	ev.code = 9000000000;
	is(&ev, "in this call for 41.0 s");
	strcpy(ev.object, "stream 0x7f");
	strcpy(ev.note, "not verified");
	is(&ev, "stream 0x7f: in this call for 41.0 s (not verified)");
	strcpy(ev.kind, "left");
	ev.note[0] = '\0';
	ev.took_ns = 40500000000;
	is(&ev, "stream 0x7f: left this call after 40.5 s");

	sp_event_init(&ev);
	ev.role = ROLE_CALL;
	strcpy(ev.kind, "count");
	ev.count = 1000;
	ev.bytes = 100;
	is(&ev, "1000 calls of 100 bytes");
	ev.code = 2;
	is(&ev, "1000 calls of 100 bytes (2 failed)");
	sp_event_init(&ev);
	ev.role = ROLE_CALL;
	strcpy(ev.kind, "tally");
	strcpy(ev.object, "queue pair 17");
	ev.code = 5;
	ev.op = 1;
	is(&ev, "queue pair 17: 5 posted and not completed");
	ev.code = 0;
	is(&ev, "queue pair 17: all is complete again");
}

static void cut(void **state)
{
	struct sp_event ev;
	char whole[200], buf[200];

	sp_event_init(&ev);
	ev.role = ROLE_ANNOUNCE;
	memset(ev.peer, 'p', sizeof(ev.peer) - 1);
	memset(ev.note, 'n', sizeof(ev.note) - 1);
	ev.need = 2147483647;
	ev.flags = EV_CUT | EV_NODATA;
	sp_event_describe(&ev, whole, sizeof(whole));
	for (size_t len = 0; len <= sizeof(buf); len++) {
		memset(buf, '#', sizeof(buf));
		sp_event_describe(&ev, buf, len);
		if (len) {
			assert_true(strlen(buf) < len);
			assert_memory_equal(buf, whole, strlen(buf) ? strlen(buf) - 1 : 0);
		}
		if (len < sizeof(buf))
			assert_int_equal(buf[len], '#');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(described),
		cmocka_unit_test(sockets_described),
		cmocka_unit_test(calls_described),
		cmocka_unit_test(cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
