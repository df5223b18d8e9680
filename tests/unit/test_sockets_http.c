// SPDX-License-Identifier: Apache-2.0
/* collect/http.c: requests and their replies. */
#include "sockets_http_rig.h"

static void test_one_request(void **state)
{
	struct rig *r = *state;
	struct sp_event ev;

	head(r, CONN, 1, "POST /generate");
	string(r, CONN, 1, SOCK_KEY_RID, NONE, "abc");
	string(r, CONN, 1, SOCK_KEY_HOST, NONE, "10.0.0.1");
	number(r, CONN, 1, SOCK_KEY_ROOM, NONE, 9223372036854775807u);
	rig_none(r);
	is(r, 30, CONN, 1, SP_HTTP_REQUEST_END, 0);
	ev = told(r, ROLE_ARRIVE, "", "9223372036854775807");
	assert_int_equal(ev.ns, 30);
	assert_string_equal(ev.rid, "abc");
	assert_string_equal(ev.peer, "10.0.0.1");
	assert_int_equal(ev.flags, EV_TRACKED);
	is(r, 40, CONN, 1, SP_HTTP_REPLY, 200);
	ev = told(r, ROLE_REPLY, "first", "9223372036854775807");
	assert_int_equal(ev.code, 200);
	assert_int_equal(ev.ns, 40);
	is(r, 50, CONN, 1, SP_HTTP_REPLY_END, 0);
	ev = told(r, ROLE_REPLY, "end", "9223372036854775807");
	assert_int_equal(ev.code, 200);
	assert_string_equal(ev.rid, "abc");
	conn_is(r, 60, CONN, S_HTTP, SP_CONN_EOF, 0, SP_DIR_IN);
	conn_is(r, 61, CONN, S_HTTP, SP_CONN_CLOSED, 0, 0);
	rig_none(r);
}

static void test_no_room_no_event(void **state)
{
	struct rig *r = *state;

	head(r, CONN, 1, "GET /health");
	is(r, 3, CONN, 1, SP_HTTP_REQUEST_END, 0);
	is(r, 4, CONN, 1, SP_HTTP_REPLY, 200);
	is(r, 5, CONN, 1, SP_HTTP_REPLY_END, 0);
	head(r, CONN, 2, "POST /generate");
	string(r, CONN, 2, SOCK_KEY_ROOM, NONE, "no number");
	string(r, CONN, 2, SOCK_KEY_RID, NONE, "abc");
	is(r, 6, CONN, 2, SP_HTTP_REQUEST_END, 0);
	conn_is(r, 9, CONN, S_HTTP, SP_CONN_RESET, 0, 0);
	rig_none(r);
}

static void test_fake_host(void **state)
{
	struct rig *r = *state;

	head(r, CONN, 1, "POST /generate");
	string(r, CONN, 1, SOCK_KEY_HOST, NONE, "2.2.2.2");
	number(r, CONN, 1, SOCK_KEY_ROOM, NONE, 0);
	is(r, 3, CONN, 1, SP_HTTP_REQUEST_END, 0);
	assert_int_equal(told(r, ROLE_ARRIVE, "", "0").flags, EV_TRACKED | EV_FAKE);
}

static void test_lists(void **state)
{
	struct rig *r = *state;
	struct sp_event ev;

	head(r, CONN, 1, "POST /generate");
	list(r, CONN, 1, SOCK_KEY_HOST);
	string(r, CONN, 1, SOCK_KEY_HOST, 0, "10.0.0.1");
	string(r, CONN, 1, SOCK_KEY_HOST, 2, "2.2.2.2"); /* the second is null */
	list(r, CONN, 1, SOCK_KEY_ROOM);
	number(r, CONN, 1, SOCK_KEY_ROOM, 0, 100);
	number(r, CONN, 1, SOCK_KEY_ROOM, 1, 101);
	number(r, CONN, 1, SOCK_KEY_ROOM, 2, 102);
	string(r, CONN, 1, SOCK_KEY_RID, NONE, "all");
	is(r, 3, CONN, 1, SP_HTTP_REQUEST_END, 0);
	ev = told(r, ROLE_ARRIVE, "", "100");
	assert_string_equal(ev.peer, "10.0.0.1");
	assert_string_equal(ev.rid, "all");
	assert_int_equal(ev.flags, 0); /* the one reply comes when the last is done */
	ev = told(r, ROLE_ARRIVE, "", "101");
	assert_string_equal(ev.peer, "");
	ev = told(r, ROLE_ARRIVE, "", "102");
	assert_string_equal(ev.peer, "2.2.2.2");
	assert_int_equal(ev.flags, EV_FAKE);
	assert_string_equal(ev.rid, "all");
	is(r, 4, CONN, 1, SP_HTTP_REPLY_END, 500);
	assert_int_equal(told(r, ROLE_REPLY, "end", "100").code, 500);
	told(r, ROLE_REPLY, "end", "101");
	told(r, ROLE_REPLY, "end", "102");
	rig_none(r);
}

/* A list of one is one room; an empty list is none. */
static void test_short_lists(void **state)
{
	struct rig *r = *state;

	head(r, CONN, 1, "POST /generate");
	list(r, CONN, 1, SOCK_KEY_ROOM);
	number(r, CONN, 1, SOCK_KEY_ROOM, 0, 100);
	is(r, 3, CONN, 1, SP_HTTP_REQUEST_END, 0);
	assert_int_equal(told(r, ROLE_ARRIVE, "", "100").flags, EV_TRACKED);
	head(r, CONN, 2, "POST /generate");
	list(r, CONN, 2, SOCK_KEY_ROOM);
	is(r, 3, CONN, 2, SP_HTTP_REQUEST_END, 0);
	rig_none(r);
	head(r, CONN, 3, "POST /generate"); /* the first is null: not the only one */
	list(r, CONN, 3, SOCK_KEY_ROOM);
	number(r, CONN, 3, SOCK_KEY_ROOM, 1, 101);
	is(r, 3, CONN, 3, SP_HTTP_REQUEST_END, 0);
	assert_int_equal(told(r, ROLE_ARRIVE, "", "101").flags, 0);
}

/* The last of several equal keys is the one that counts, as for the server. */
static void test_duplicate_keys(void **state)
{
	struct rig *r = *state;
	struct sp_event ev;

	head(r, CONN, 1, "POST /generate");
	list(r, CONN, 1, SOCK_KEY_ROOM);
	number(r, CONN, 1, SOCK_KEY_ROOM, 0, 100);
	number(r, CONN, 1, SOCK_KEY_ROOM, 1, 101);
	string(r, CONN, 1, SOCK_KEY_RID, NONE, "first");
	number(r, CONN, 1, SOCK_KEY_ROOM, NONE, 7);
	string(r, CONN, 1, SOCK_KEY_RID, NONE, "second");
	is(r, 3, CONN, 1, SP_HTTP_REQUEST_END, 0);
	ev = told(r, ROLE_ARRIVE, "", "7");
	assert_string_equal(ev.rid, "second");
	rig_none(r);
	head(r, CONN, 2, "POST /generate");
	number(r, CONN, 2, SOCK_KEY_ROOM, NONE, 8);
	list(r, CONN, 2, SOCK_KEY_ROOM);
	number(r, CONN, 2, SOCK_KEY_ROOM, 0, 9);
	is(r, 3, CONN, 2, SP_HTTP_REQUEST_END, 0);
	told(r, ROLE_ARRIVE, "", "9");
	rig_none(r);
}

/* A number in quotes is read as the server reads it. */
static void test_room_in_quotes(void **state)
{
	struct rig *r = *state;

	head(r, CONN, 1, "POST /generate");
	list(r, CONN, 1, SOCK_KEY_ROOM);
	string(r, CONN, 1, SOCK_KEY_ROOM, 0, "18446744073709551615");
	string(r, CONN, 1, SOCK_KEY_ROOM, 1, "18446744073709551616");
	string(r, CONN, 1, SOCK_KEY_ROOM, 2, "-1");
	string(r, CONN, 1, SOCK_KEY_ROOM, 3, "12x");
	string(r, CONN, 1, SOCK_KEY_ROOM, 4, "");
	string(r, CONN, 1, SOCK_KEY_ROOM, 5, "0007");
	is(r, 3, CONN, 1, SP_HTTP_REQUEST_END, 0);
	told(r, ROLE_ARRIVE, "", "18446744073709551615");
	told(r, ROLE_ARRIVE, "", "7");
	rig_none(r);
	r->p.room_u64 = false;
	head(r, CONN, 2, "POST /generate");
	string(r, CONN, 2, SOCK_KEY_ROOM, NONE, "req-12x");
	is(r, 3, CONN, 2, SP_HTTP_REQUEST_END, 0);
	told(r, ROLE_ARRIVE, "", "req-12x");
}

/* Longer than is kept: other rooms where they differ at all, and an abort finds its own. */
static void test_long_ids(void **state)
{
	static const char id[] =
		"chatcmpl-___prefill_addr_10.0.0.1:20001___decode_addr_10.0.0.2:20002_";
	struct rig *r = *state;
	char room[128], name[SP_ROOM_MAX];

	r->p.room_u64 = false;
	for (uint32_t i = 1; i < 4; i++) {
		snprintf(room, sizeof(room), "%s%u", id, i);
		sp_id_name(name, room, strlen(room));
		head(r, CONN, i, "POST /generate");
		string(r, CONN, i, SOCK_KEY_ROOM, NONE, room);
		string(r, CONN, i, SOCK_KEY_RID, NONE, room);
		is(r, 3, CONN, i, SP_HTTP_REQUEST_END, 0);
		assert_string_equal(told(r, ROLE_ARRIVE, "", name).rid, name);
	}
	conn_opens(r, 4, FRONT, CONN + 1, S_HTTP);
	head(r, CONN + 1, 1, "POST /abort_request");
	snprintf(room, sizeof(room), "%s2", id);
	sp_id_name(name, room, strlen(room));
	string(r, CONN + 1, 1, SOCK_KEY_RID, NONE, room);
	is(r, 5, CONN + 1, 1, SP_HTTP_REQUEST_END, 0);
	told(r, ROLE_ABORT, "", name);
	rig_none(r);
}

static void test_pipelined(void **state)
{
	struct rig *r = *state;

	request(r, CONN, 1, 101, "");
	request(r, CONN, 2, 102, "");
	head(r, CONN, 3, "GET /health");
	is(r, 3, CONN, 3, SP_HTTP_REQUEST_END, 0);
	request(r, CONN, 4, 104, "");
	is(r, 4, CONN, 1, SP_HTTP_REPLY, 200);
	is(r, 5, CONN, 1, SP_HTTP_REPLY_END, 0);
	is(r, 6, CONN, 2, SP_HTTP_REPLY, 503);
	is(r, 7, CONN, 2, SP_HTTP_REPLY_END, 0);
	is(r, 8, CONN, 3, SP_HTTP_REPLY, 200);
	is(r, 9, CONN, 3, SP_HTTP_REPLY_END, 0);
	is(r, 10, CONN, 4, SP_HTTP_REPLY, 200);
	is(r, 11, CONN, 4, SP_HTTP_REPLY_END, 0);
	told(r, ROLE_REPLY, "first", "101");
	told(r, ROLE_REPLY, "end", "101");
	assert_int_equal(told(r, ROLE_REPLY, "first", "102").code, 503);
	told(r, ROLE_REPLY, "end", "102");
	told(r, ROLE_REPLY, "first", "104");
	told(r, ROLE_REPLY, "end", "104");
	rig_none(r);
}

static void test_a_reply_unseen(void **state)
{
	struct rig *r = *state;

	request(r, CONN, 1, 101, "");
	request(r, CONN, 2, 102, "");
	is(r, 6, CONN, 2, SP_HTTP_REPLY, 200);
	told(r, ROLE_PEER, "untracked", "101");
	told(r, ROLE_REPLY, "first", "102");
	rig_none(r);
}

/* The reply to one request comes while the next is still on its way. */
static void test_reply_during_the_next(void **state)
{
	struct rig *r = *state;

	head(r, CONN, 1, "GET /health");
	is(r, 2, CONN, 1, SP_HTTP_REQUEST_END, 0);
	request(r, CONN, 2, 102, "");
	head(r, CONN, 3, "POST /generate");
	is(r, 3, CONN, 1, SP_HTTP_REPLY, 200);
	is(r, 3, CONN, 1, SP_HTTP_REPLY_END, 0);
	rig_none(r);
	is(r, 4, CONN, 2, SP_HTTP_REPLY_END, 200);
	told(r, ROLE_REPLY, "end", "102");
	is(r, 4, CONN, 2, SP_HTTP_REPLY_END, 200); /* twice is once */
	number(r, CONN, 3, SOCK_KEY_ROOM, NONE, 103);
	is(r, 5, CONN, 3, SP_HTTP_REQUEST_END, 0);
	told(r, ROLE_ARRIVE, "", "103");
	is(r, 5, CONN, 3, SP_HTTP_REQUEST_END, 0);
	rig_none(r);
	request(r, CONN, 4, 104, "");
	is(r, 6, CONN, 3, SP_HTTP_REPLY_END, 200);
	is(r, 7, CONN, 4, SP_HTTP_REPLY_END, 200);
	told(r, ROLE_REPLY, "end", "103");
	told(r, ROLE_REPLY, "end", "104");
	rig_none(r);
}

/* Refused before its body was complete: the server has never taken it. */
static void test_early_reply(void **state)
{
	struct rig *r = *state;

	head(r, CONN, 1, "POST /generate");
	is(r, 2, CONN, 1, SP_HTTP_REPLY, 413);
	is(r, 2, CONN, 1, SP_HTTP_REPLY_END, 0);
	number(r, CONN, 1, SOCK_KEY_ROOM, NONE, 101);
	is(r, 3, CONN, 1, SP_HTTP_REQUEST_END, 0);
	rig_none(r);
	head(r, CONN, 2, "POST /generate");
	is(r, 4, CONN, 2, SP_HTTP_REPLY, 200); /* it streams both ways */
	number(r, CONN, 2, SOCK_KEY_ROOM, NONE, 102);
	is(r, 5, CONN, 2, SP_HTTP_REQUEST_END, 0);
	told(r, ROLE_ARRIVE, "", "102");
	assert_int_equal(told(r, ROLE_REPLY, "first", "102").code, 200);
	is(r, 6, CONN, 2, SP_HTTP_REPLY_END, 0);
	assert_int_equal(told(r, ROLE_REPLY, "end", "102").code, 200);
	rig_none(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_one_request),    T(test_no_room_no_event),
		T(test_fake_host),      T(test_lists),
		T(test_short_lists),    T(test_duplicate_keys),
		T(test_room_in_quotes), T(test_pipelined),
		T(test_a_reply_unseen), T(test_reply_during_the_next),
		T(test_early_reply),    T(test_long_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
