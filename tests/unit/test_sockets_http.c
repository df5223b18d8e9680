// SPDX-License-Identifier: Apache-2.0
/* collect/http.c, values.c: requests and replies of the front's connections. */
#include "sockets_rig.h"

#include "collect/conns.h"
#include "collect/http.h"

#define CONN 1
#define NONE 0xffff /* index of a value that is in no list */
#define LIST 0xfffe

static struct sp_rec_http rec_of(uint64_t ns, uint64_t conn, uint32_t req, int what)
{
	return (struct sp_rec_http){
		.h = {.ns = ns, .pid = FRONT, .tid = 21, .type = SP_REC_HTTP, .probe = P_HTTP},
		.conn = conn,
		.num = req,
		.req = req,
		.what = (uint16_t)what};
}

static void feed(struct rig *r, const struct sp_rec_http *rec)
{
	sockets_record(r->s, rec, sizeof(*rec));
}

static void text(struct sp_rec_http *rec, const char *s)
{
	rec->len = (uint8_t)(strlen(s) < sizeof(rec->text) ? strlen(s) : sizeof(rec->text));
	memcpy(rec->text, s, rec->len);
}

static void head(struct rig *r, uint64_t conn, uint32_t req, const char *line)
{
	struct sp_rec_http rec = rec_of(1, conn, req, SP_HTTP_REQUEST);

	text(&rec, line);
	feed(r, &rec);
}

static void number(struct rig *r, uint64_t conn, uint32_t req, int key, int index, uint64_t num)
{
	struct sp_rec_http rec = rec_of(2, conn, req, SP_HTTP_VALUE);

	rec.key = (uint16_t)key;
	rec.index = (uint16_t)index;
	rec.is_num = 1;
	rec.num = num;
	feed(r, &rec);
}

static void string(struct rig *r, uint64_t conn, uint32_t req, int key, int index, const char *s)
{
	struct sp_rec_http rec = rec_of(2, conn, req, SP_HTTP_VALUE);

	rec.key = (uint16_t)key;
	rec.index = (uint16_t)index;
	text(&rec, s);
	feed(r, &rec);
}

static void list(struct rig *r, uint64_t conn, uint32_t req, int key)
{
	struct sp_rec_http rec = rec_of(2, conn, req, SP_HTTP_VALUE);

	rec.key = (uint16_t)key;
	rec.index = LIST;
	feed(r, &rec);
}

static void is(struct rig *r, uint64_t ns, uint64_t conn, uint32_t req, int what, int code)
{
	struct sp_rec_http rec = rec_of(ns, conn, req, what);

	rec.code = (uint16_t)code;
	feed(r, &rec);
}

/* A whole request with one room, its arrival not looked at. */
static void request(struct rig *r, uint64_t conn, uint32_t req, uint64_t room, const char *rid)
{
	head(r, conn, req, "POST /generate");
	number(r, conn, req, SOCK_KEY_ROOM, NONE, room);
	if (rid[0])
		string(r, conn, req, SOCK_KEY_RID, NONE, rid);
	is(r, 3, conn, req, SP_HTTP_REQUEST_END, 0);
	rig_expect(r, ROLE_ARRIVE, "");
}

static struct sp_event told(struct rig *r, enum sp_role role, const char *kind, const char *room)
{
	struct sp_event ev = rig_expect(r, role, kind);

	assert_string_equal(ev.room, room);
	assert_int_equal(ev.pid, PID); /* the owner's, not the front's */
	assert_int_equal(ev.tid, 0);
	assert_int_equal(ev.probe, P_HTTP);
	return ev;
}

static int setup(void **state)
{
	rig_setup(state);
	conn_opens(*state, 1, FRONT, CONN, S_HTTP);
	rig_none(*state); /* an HTTP client is no peer */
	return 0;
}

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

static void test_client_gone(void **state)
{
	struct rig *r = *state;
	struct sp_event ev;

	request(r, CONN, 1, 101, "abc");
	request(r, CONN, 2, 102, "");
	is(r, 4, CONN, 1, SP_HTTP_REPLY, 200); /* in the middle of its reply */
	told(r, ROLE_REPLY, "first", "101");
	head(r, CONN, 3, "POST /generate");
	number(r, CONN, 3, SOCK_KEY_ROOM, NONE, 103); /* never complete */
	conn_is(r, 5, CONN, S_HTTP, SP_CONN_EOF, 0, SP_DIR_IN);
	rig_none(r); /* it may wait for its reply */
	conn_is(r, 6, CONN, S_HTTP, SP_CONN_CLOSED, 0, 0);
	ev = told(r, ROLE_ABORT, "client-gone", "101");
	assert_int_equal(ev.ns, 6);
	assert_string_equal(ev.rid, "abc");
	told(r, ROLE_ABORT, "client-gone", "102");
	rig_none(r);
	conn_is(r, 7, CONN, S_HTTP, SP_CONN_RESET, 0, 0);
	rig_none(r);
}

/* The profile may ask for arrivals only. */
static void test_events_wanted(void **state)
{
	struct rig *r = *state;
	struct sp_event ev;

	r->entries.entry[S_HTTP].events = SOCK_TELLS_ARRIVE;
	head(r, CONN, 1, "POST /generate");
	number(r, CONN, 1, SOCK_KEY_ROOM, NONE, 101);
	is(r, 30, CONN, 1, SP_HTTP_REQUEST_END, 0);
	ev = told(r, ROLE_ARRIVE, "", "101");
	assert_int_equal(ev.flags, 0); /* nobody will tell of its answer */
	is(r, 40, CONN, 1, SP_HTTP_REPLY, 200);
	rig_none(r);
	conn_is(r, 50, CONN, S_HTTP, SP_CONN_CLOSED, 0, 0);
	told(r, ROLE_PEER, "untracked", "101");
	rig_none(r);
}

static void test_half_closed_client_is_answered(void **state)
{
	struct rig *r = *state;

	request(r, CONN, 1, 101, "");
	conn_is(r, 5, CONN, S_HTTP, SP_CONN_EOF, 0, SP_DIR_IN);
	is(r, 6, CONN, 1, SP_HTTP_REPLY, 200);
	is(r, 7, CONN, 1, SP_HTTP_REPLY_END, 0);
	conn_is(r, 8, CONN, S_HTTP, SP_CONN_CLOSED, 0, 0);
	told(r, ROLE_REPLY, "first", "101");
	told(r, ROLE_REPLY, "end", "101");
	rig_none(r);
}

/* What calls that were under way tell may come in behind the reset. */
static void test_reset(void **state)
{
	struct rig *r = *state;

	request(r, CONN, 1, 101, "");
	conn_is(r, 6, CONN, S_HTTP, SP_CONN_RESET, 0, 0);
	sockets_tick(r->s, 7);
	rig_none(r);
	sockets_tick(r->s, 6 + SEC / 2);
	assert_int_equal(told(r, ROLE_ABORT, "client-gone", "101").ns, 6 + SEC / 2);
	sockets_tick(r->s, 5 * SEC);
	rig_none(r);
}

static void test_reset_before_the_reply_is_told(void **state)
{
	struct rig *r = *state;

	request(r, CONN, 1, 101, "");
	request(r, CONN, 2, 102, "");
	conn_is(r, 6, CONN, S_HTTP, SP_CONN_RESET, 0, 0);
	is(r, 7, CONN, 1, SP_HTTP_REPLY, 200);
	is(r, 8, CONN, 1, SP_HTTP_REPLY_END, 0);
	told(r, ROLE_REPLY, "first", "101");
	assert_int_equal(told(r, ROLE_REPLY, "end", "101").ns, 8);
	rig_none(r);
	sockets_tick(r->s, SEC);
	told(r, ROLE_ABORT, "client-gone", "102");
	rig_none(r);
	assert_int_equal(rig_stats(r).sockets_over, 0);
}

static void test_reset_before_the_request_is_told(void **state)
{
	struct rig *r = *state;

	conn_is(r, 6, CONN, S_HTTP, SP_CONN_RESET, 0, 0);
	request(r, CONN, 1, 101, "");
	sockets_tick(r->s, SEC);
	told(r, ROLE_ABORT, "client-gone", "101");
	rig_none(r);
}

/* Several resets at different times: each in its own turn. */
static void test_resets(void **state)
{
	struct rig *r = *state;

	for (uint64_t i = 2; i < 6; i++) {
		conn_opens(r, 1, FRONT, i, S_HTTP);
		request(r, i, 1, 100 + i, "");
		conn_is(r, i * SEC, i, S_HTTP, SP_CONN_RESET, 0, 0);
	}
	for (uint64_t i = 2; i < 6; i++) {
		char room[8];

		snprintf(room, sizeof(room), "%u", 100 + (unsigned int)i);
		sockets_tick(r->s, i * SEC + SEC / 4);
		rig_none(r);
		sockets_tick(r->s, i * SEC + SEC / 2);
		told(r, ROLE_ABORT, "client-gone", room);
		rig_none(r);
	}
}

static void test_lost(void **state)
{
	struct rig *r = *state;
	static const int what[] = {SP_CONN_LOST, SP_CONN_LOST, SP_CONN_UNREADABLE};
	static const int dir[] = {SP_DIR_IN, SP_DIR_OUT, SP_DIR_OUT};

	for (uint64_t i = 0; i < 3; i++) {
		uint64_t conn = 10 + i;
		struct sp_event ev;

		conn_opens(r, 1, FRONT, conn, S_HTTP);
		request(r, conn, 1, 101, "");
		head(r, conn, 2, "POST /generate");
		number(r, conn, 2, SOCK_KEY_ROOM, NONE, 102);
		conn_is(r, 6, conn, S_HTTP, what[i], SP_WHY_GAP, dir[i]);
		ev = told(r, ROLE_PEER, "untracked", "101");
		assert_string_equal(ev.note, "bytes passed unseen");
		is(r, 7, conn, 2, SP_HTTP_REQUEST_END, 0); /* its list may be cut */
		is(r, 8, conn, 1, SP_HTTP_REPLY_END, 200);
		conn_is(r, 9, conn, S_HTTP, SP_CONN_CLOSED, 0, 0);
		rig_none(r);
	}
}

/* A compressed body says nothing; the requests around it are followed. */
static void test_compressed_request(void **state)
{
	struct rig *r = *state;

	request(r, CONN, 1, 101, "");
	head(r, CONN, 2, "POST /generate");
	number(r, CONN, 2, SOCK_KEY_ROOM, NONE, 102);
	conn_is(r, 6, CONN, S_HTTP, SP_CONN_UNREADABLE, SP_WHY_ENCODED, SP_DIR_IN);
	is(r, 7, CONN, 2, SP_HTTP_REQUEST_END, 0);
	is(r, 8, CONN, 1, SP_HTTP_REPLY_END, 200);
	told(r, ROLE_REPLY, "end", "101");
	head(r, CONN, 3, "POST /generate");
	number(r, CONN, 3, SOCK_KEY_ROOM, NONE, 103);
	is(r, 9, CONN, 3, SP_HTTP_REQUEST_END, 0);
	assert_int_equal(told(r, ROLE_ARRIVE, "", "103").flags, EV_TRACKED);
	conn_is(r, 10, CONN, S_HTTP, SP_CONN_RESET, 0, 0);
	sockets_tick(r->s, SEC);
	told(r, ROLE_ABORT, "client-gone", "103");
	rig_none(r);
	assert_int_equal(rig_stats(r).unreadable_conns, 1);
}

/* What cannot be read any more, in one direction or in both: no reply is promised there. */
static void test_unreadable_directions(void **state)
{
	static const struct {
		int why, dir, flags;
	} row[] = {{SP_WHY_LONG, SP_DIR_IN, EV_TRACKED},
		   {SP_WHY_LONG, SP_DIR_OUT, 0},
		   {SP_WHY_UPGRADE, SP_DIR_IN, 0}};
	struct rig *r = *state;

	for (uint64_t i = 0; i < 3; i++) {
		conn_opens(r, 1, FRONT, 10 + i, S_HTTP);
		conn_is(r, 2, 10 + i, S_HTTP, SP_CONN_UNREADABLE, row[i].why, row[i].dir);
		head(r, 10 + i, 1, "POST /generate");
		number(r, 10 + i, 1, SOCK_KEY_ROOM, NONE, 101);
		is(r, 3, 10 + i, 1, SP_HTTP_REQUEST_END, 0);
		assert_int_equal(told(r, ROLE_ARRIVE, "", "101").flags, row[i].flags);
	}
}

/* Where replies are not decoded nothing is promised, and no client is said to have gone. */
static void test_replies_not_followed(void **state)
{
	struct rig *r = *state;
	struct sp_rec_conn rec = conn_rec(5, FRONT, 2, S_HTTP, SP_CONN_TRUST);

	feed_conn(r, &rec); /* requests only */
	r->n = 0;
	head(r, 2, 1, "POST /generate");
	number(r, 2, 1, SOCK_KEY_ROOM, NONE, 101);
	is(r, 3, 2, 1, SP_HTTP_REQUEST_END, 0);
	assert_int_equal(told(r, ROLE_ARRIVE, "", "101").flags, 0);
	conn_is(r, 6, 2, S_HTTP, SP_CONN_CLOSED, 0, 0);
	told(r, ROLE_PEER, "untracked", "101");
	rig_none(r);
}

static void test_abort_request(void **state)
{
	struct rig *r = *state;
	struct sp_event ev;

	conn_opens(r, 1, FRONT, 2, S_HTTP);
	conn_opens(r, 1, FRONT, 3, S_HTTP);
	request(r, CONN, 1, 101, "abc");
	request(r, 2, 1, 102, "xyz");
	head(r, 3, 1, "POST /abort_request");
	string(r, 3, 1, SOCK_KEY_RID, NONE, "xyz");
	is(r, 9, 3, 1, SP_HTTP_REQUEST_END, 0);
	ev = told(r, ROLE_ABORT, "", "102");
	assert_int_equal(ev.ns, 9);
	assert_string_equal(ev.rid, "xyz");
	rig_none(r);
	head(r, 3, 2, "POST /abort_request"); /* of nobody: no room, no event */
	string(r, 3, 2, SOCK_KEY_RID, NONE, "abcd");
	is(r, 9, 3, 2, SP_HTTP_REQUEST_END, 0);
	head(r, 3, 3, "POST /abort_requests"); /* other paths */
	string(r, 3, 3, SOCK_KEY_RID, NONE, "abc");
	is(r, 9, 3, 3, SP_HTTP_REQUEST_END, 0);
	head(r, 3, 3, "POST /abort_requesT");
	string(r, 3, 3, SOCK_KEY_RID, NONE, "abc");
	is(r, 9, 3, 3, SP_HTTP_REQUEST_END, 0);
	head(r, 3, 4, "/abort_request");
	string(r, 3, 4, SOCK_KEY_RID, NONE, "abc");
	is(r, 9, 3, 4, SP_HTTP_REQUEST_END, 0);
	is(r, 9, 3, 4, SP_HTTP_REPLY_END, 200);
	rig_none(r);
	is(r, 10, 2, 1, SP_HTTP_REPLY_END, 200); /* its own answer comes all the same */
	told(r, ROLE_REPLY, "end", "102");
}

static void test_several_owners(void **state)
{
	struct rig *r = *state;

	for (int i = 0; i < 70; i++)
		r->owners[i] = 100 + i;
	r->nowners = 2;
	head(r, CONN, 1, "POST /generate");
	number(r, CONN, 1, SOCK_KEY_ROOM, NONE, 101);
	is(r, 3, CONN, 1, SP_HTTP_REQUEST_END, 0);
	is(r, 4, CONN, 1, SP_HTTP_REPLY, 200);
	conn_is(r, 5, CONN, S_HTTP, SP_CONN_CLOSED, 0, 0);
	assert_int_equal(r->n, 6);
	for (int i = 0; i < 6; i++) {
		struct sp_event ev = rig_take(r);

		assert_int_equal(ev.pid, 100 + i % 2);
		assert_true(ev.flags & EV_SHARED);
	}
	r->nowners = 0; /* nobody's */
	conn_opens(r, 6, FRONT, 2, S_HTTP);
	head(r, 2, 1, "POST /generate");
	number(r, 2, 1, SOCK_KEY_ROOM, NONE, 101);
	is(r, 7, 2, 1, SP_HTTP_REQUEST_END, 0);
	rig_none(r);
	r->nowners = 70; /* as many as there is room for */
	is(r, 8, 2, 1, SP_HTTP_REPLY, 200);
	assert_int_equal(r->n, 64);
}

static void test_front_gone(void **state)
{
	struct rig *r = *state;

	request(r, CONN, 1, 101, "");
	sockets_process_gone(r->s, PID, 5); /* another */
	rig_none(r);
	sockets_process_gone(r->s, FRONT, 6);
	told(r, ROLE_PEER, "untracked", "101");
	conn_is(r, 7, CONN, S_HTTP, SP_CONN_RESET, 0, 0);
	rig_none(r);
}

/* Records that were lost: never a wrong room, never a room with another's reply. */
static void test_lost_records(void **state)
{
	struct rig *r = *state;

	number(r, CONN, 1, SOCK_KEY_ROOM, NONE, 101); /* the head was lost */
	is(r, 3, CONN, 1, SP_HTTP_REQUEST_END, 0);
	head(r, CONN, 2, "POST /generate");
	number(r, CONN, 2, SOCK_KEY_ROOM, 3, 102); /* the list's beginning */
	is(r, 3, CONN, 2, SP_HTTP_REQUEST_END, 0);
	head(r, CONN, 3, "POST /generate");
	number(r, CONN, 3, SOCK_KEY_ROOM, NONE, 103); /* the end, and the next head */
	number(r, CONN, 4, SOCK_KEY_ROOM, NONE, 104);
	is(r, 3, CONN, 4, SP_HTTP_REQUEST_END, 0);
	head(r, CONN, 5, "POST /generate"); /* the end of 5 */
	number(r, CONN, 5, SOCK_KEY_ROOM, NONE, 105);
	head(r, CONN, 6, "POST /generate");
	is(r, 3, CONN, 6, SP_HTTP_REQUEST_END, 0);
	rig_none(r);
	request(r, CONN, 7, 107, "");
	is(r, 3, CONN, 6, SP_HTTP_REPLY, 200);
	is(r, 3, CONN, 8, SP_HTTP_REPLY_END, 200);
	told(r, ROLE_PEER, "untracked", "107");
	rig_none(r);
}

static void test_many_rooms(void **state)
{
	struct rig *r = *state;

	head(r, CONN, 1, "POST /generate");
	list(r, CONN, 1, SOCK_KEY_ROOM);
	for (int i = 0; i < 5000; i++)
		number(r, CONN, 1, SOCK_KEY_ROOM, i, 1000 + (uint64_t)i);
	is(r, 3, CONN, 1, SP_HTTP_REQUEST_END, 0);
	assert_int_equal(r->n, 4096);
	assert_string_equal(r->ev[4095].room, "5095");
	assert_int_equal(rig_stats(r).sockets_over, 5000 - 4096);
	r->n = 0;
	is(r, 4, CONN, 1, SP_HTTP_REPLY_END, 200);
	assert_int_equal(r->n, 4096);
}

/* Requests without an answer on more connections than are followed: the oldest is given up. */
static void test_many_connections(void **state)
{
	struct rig *r = *state;

	for (uint64_t conn = 1; conn <= SP_MAX_CONNS + 1; conn++) {
		head(r, 100 + conn, 1, "POST /generate");
		number(r, 100 + conn, 1, SOCK_KEY_ROOM, NONE, conn);
		is(r, 3, 100 + conn, 1, SP_HTTP_REQUEST_END, 0);
		if (conn == SP_MAX_CONNS)
			r->n = 0;
	}
	told(r, ROLE_PEER, "untracked", "1");
	told(r, ROLE_ARRIVE, "", "16385");
	rig_none(r);
	assert_int_equal(rig_stats(r).sockets_over, 1);
}

static void last_flags(void *ctx, const struct sp_event *ev)
{
	*(uint16_t *)ctx = ev->flags;
}

/* A request of which a room had no place is not one with a single room. */
static void test_request_cut_by_the_bound(void **state)
{
	struct rig *r = *state;
	uint16_t flags = UINT16_MAX;
	struct sock_out out = {.emit = last_flags, .ctx = &flags};
	struct http *h = http_new(&r->p, &out);
	struct sp_rec_http rec = rec_of(1, 1, 1, SP_HTTP_REQUEST);

	for (rec.conn = 1; rec.conn <= 65; rec.conn++) {
		int rooms = rec.conn < 64 ? 4096 : rec.conn == 64 ? 4095 : 2;

		rec.what = SP_HTTP_REQUEST;
		http_record(h, &rec, true);
		rec.what = SP_HTTP_VALUE;
		rec.is_num = 1;
		rec.index = LIST;
		http_record(h, &rec, true);
		for (rec.index = 0; rec.index < rooms; rec.index++)
			http_record(h, &rec, true);
	}
	rec.conn = 65;
	rec.what = SP_HTTP_REQUEST_END;
	http_record(h, &rec, true);
	assert_int_equal(flags, 0);
	http_free(h);
}

static void swallow(void *ctx, const struct sp_event *ev)
{
	(*(uint64_t *)ctx)++;
}

/* However much comes at once, what is held is bounded, and all of it is given back. */
static void test_memory(void **state)
{
	struct rig *r = *state;
	uint64_t told_events = 0;
	struct sock_out out = {.emit = swallow, .ctx = &told_events};
	struct http *h = http_new(&r->p, &out);
	struct collect_stats st = {0};
	size_t most = 0;

	for (uint64_t conn = 1; conn <= 20000; conn++) {
		struct sp_rec_http rec = rec_of(1, conn, 1, SP_HTTP_REQUEST);

		http_record(h, &rec, true);
		rec.what = SP_HTTP_VALUE;
		rec.is_num = 1;
		rec.index = LIST;
		http_record(h, &rec, true);
		for (int i = 0; i < 100; i++) {
			rec.index = (uint16_t)i;
			http_record(h, &rec, true);
		}
		if (conn % 2) {
			rec.what = SP_HTTP_REQUEST_END;
			http_record(h, &rec, true);
		}
		most = http_held(h) > most ? http_held(h) : most;
	}
	assert_true(most > 200000 && most < 300000);
	http_stats(h, &st);
	assert_true(st.sockets_over > 1000000);
	http_process_gone(h, FRONT, 9);
	assert_int_equal(http_held(h), 0);
	assert_true(told_events > 0);
	http_free(h);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_one_request),
		T(test_no_room_no_event),
		T(test_fake_host),
		T(test_lists),
		T(test_short_lists),
		T(test_duplicate_keys),
		T(test_room_in_quotes),
		T(test_pipelined),
		T(test_a_reply_unseen),
		T(test_reply_during_the_next),
		T(test_early_reply),
		T(test_client_gone),
		T(test_events_wanted),
		T(test_half_closed_client_is_answered),
		T(test_reset),
		T(test_reset_before_the_reply_is_told),
		T(test_reset_before_the_request_is_told),
		T(test_resets),
		T(test_lost),
		T(test_compressed_request),
		T(test_unreadable_directions),
		T(test_replies_not_followed),
		T(test_abort_request),
		T(test_several_owners),
		T(test_front_gone),
		T(test_lost_records),
		T(test_many_rooms),
		T(test_many_connections),
		T(test_request_cut_by_the_bound),
		T(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
