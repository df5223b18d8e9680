// SPDX-License-Identifier: Apache-2.0
/* collect/http.c: clients that go, what cannot be read, what is too much. */
#include "sockets_http_rig.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
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
