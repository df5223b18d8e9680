// SPDX-License-Identifier: Apache-2.0
/* collect/conns.c: streams that cannot be read whole, bounds, garbage. */
#include "sockets_conns_rig.h"

static void test_trust(void **state)
{
	struct rig *r = *state;
	struct sp_rec_conn rec = conn_rec(5, PID, 1, S_STATUS, SP_CONN_KIND);

	feed_conn(r, &rec); /* begun before */
	peer(r, "opened", "", "10.0.0.1:41001");
	assert_int_equal(rig_stats(r).untrusted, 1);
	conn_is(r, 6, 1, S_STATUS, SP_CONN_TRUST, 0, SP_DIR_IN);
	assert_string_equal(peer(r, "trusted", "", "10.0.0.1:41001").note, "received");
	assert_int_equal(rig_stats(r).untrusted, 0);
	conn_is(r, 7, 1, S_STATUS, SP_CONN_LOST, SP_WHY_GAP, SP_DIR_IN);
	assert_string_equal(peer(r, "lost", "", "10.0.0.1:41001").note,
			    "received: bytes passed unseen");
	assert_int_equal(rig_stats(r).untrusted, 1);
	conn_is(r, 8, 1, S_STATUS, SP_CONN_LOST, SP_WHY_GAP, SP_DIR_IN); /* it was already */
	conn_is(r, 8, 1, S_STATUS, SP_CONN_TRUST, 0, SP_DIR_OUT);        /* of no interest */
	conn_is(r, 8, 1, S_STATUS, SP_CONN_LOST, SP_WHY_GAP, SP_DIR_OUT);
	rig_none(r);
	conn_is(r, 9, 1, S_STATUS, SP_CONN_CLOSED, 0, 0);
	peer(r, "closed", "", "10.0.0.1:41001");
	assert_int_equal(rig_stats(r).untrusted, 1);
	assert_int_equal(rig_stats(r).conns, 1);
	/* a message proves that it is followed */
	rec.conn = 2;
	feed_conn(r, &rec);
	assert_int_equal(rig_stats(r).untrusted, 2);
	announce(r, 10, 2, "77", "a", ADDR);
	assert_int_equal(rig_stats(r).untrusted, 1);
}

/* Of a connection of which it is not known what it speaks. */
static void stream(struct rig *r, const char *kind, const char *addr)
{
	struct sp_event ev = rig_expect(r, ROLE_PEER, kind);

	assert_string_equal(ev.peer, addr);
	assert_int_equal(ev.pid, PID);
	assert_int_equal(ev.probe, -1);
}

/* Older than the watch: bytes pass that nobody can read yet. Doubt, until it is believed, turns out
 * to be something else, or ends. */
static void test_begun_before(void **state)
{
	struct rig *r = *state;
	struct sp_rec_conn rec;

	for (uint64_t i = 1; i < 5; i++) {
		rec = conn_rec(5, PID, i, NO_RULE, SP_CONN_LOST);
		rec.why = SP_WHY_BEFORE;
		rec.family = i == 4 ? AF_UNIX : AF_INET;
		feed_conn(r, &rec);
		feed_conn(r, &rec);
	}
	stream(r, "lost", "10.0.0.1:41001");
	stream(r, "lost", "10.0.0.2:41002");
	stream(r, "lost", "10.0.0.3:41003");
	rig_none(r); /* the server's own processes */
	rec = conn_rec(6, PID, 1, S_STATUS, SP_CONN_TRUST);
	feed_conn(r, &rec);
	peer(r, "trusted", "", "10.0.0.1:41001");
	conn_is(r, 7, 2, NO_RULE, SP_CONN_TRUST, SP_WHY_NOTHING, SP_DIR_IN);
	stream(r, "trusted", "10.0.0.2:41002");
	conn_is(r, 8, 3, NO_RULE, SP_CONN_CLOSED, 0, 0);
	stream(r, "closed", "10.0.0.3:41003");
	conn_is(r, 9, 2, NO_RULE, SP_CONN_CLOSED, 0, 0);
	rig_none(r);
	assert_int_equal(rig_stats(r).untrusted, 2); /* the last two */
}

/* What happens to a stream is said of the agents behind it, and last of the connection: so its end
 * is, too, when it had been told that not all of it is read. */
static void test_stream_of_agents(void **state)
{
	struct rig *r = *state;

	conn_opens(r, 1, PID, 1, S_STATUS);
	conn_opens(r, 1, PID, 2, S_STATUS);
	announce(r, 2, 1, "77", "a", ADDR);
	announce(r, 2, 2, "77", "a", ADDR);
	r->n = 0;
	conn_is(r, 7, 1, S_STATUS, SP_CONN_LOST, SP_WHY_GAP, SP_DIR_IN);
	peer(r, "lost", "a", ADDR);
	peer(r, "lost", "", "10.0.0.1:41001");
	conn_is(r, 8, 1, S_STATUS, SP_CONN_CLOSED, 0, 0);
	peer(r, "closed", "", "10.0.0.1:41001");
	rig_none(r);
	conn_is(r, 7, 2, S_STATUS, SP_CONN_LOST, SP_WHY_GAP, SP_DIR_IN);
	r->n = 0;
	conn_is(r, 8, 2, S_STATUS, SP_CONN_TRUST, 0, SP_DIR_IN);
	peer(r, "trusted", "a", ADDR);
	peer(r, "trusted", "", "10.0.0.2:41002");
	conn_is(r, 9, 2, S_STATUS, SP_CONN_CLOSED, 0, 0);
	peer(r, "closed", "a", ADDR);
	rig_none(r);
	conn_opens(r, 10, PID, 3, S_STATUS);
	announce(r, 11, 3, "78", "a", ADDR);
	r->n = 0;
	conn_is(r, 12, 3, S_STATUS, SP_CONN_UNREADABLE, SP_WHY_LONG, SP_DIR_IN);
	peer(r, "unreadable", "a", ADDR);
	peer(r, "unreadable", "", "10.0.0.3:41003");
	conn_is(r, 13, 3, S_STATUS, SP_CONN_CLOSED, 0, 0);
	peer(r, "closed", "a", ADDR);
	peer(r, "closed", "", "10.0.0.3:41003");
	rig_none(r);
}

static void test_unreadable(void **state)
{
	struct rig *r = *state;

	conn_opens(r, 5, PID, 1, S_STATUS);
	r->n = 0;
	conn_is(r, 6, 1, S_STATUS, SP_CONN_UNREADABLE, SP_WHY_CURVE, SP_DIR_IN);
	assert_string_equal(peer(r, "unreadable", "", "10.0.0.1:41001").note, "encrypted, CURVE");
	conn_is(r, 6, 1, S_STATUS, SP_CONN_UNREADABLE, SP_WHY_CURVE, SP_DIR_OUT);
	rig_none(r);
	assert_int_equal(rig_stats(r).unreadable_conns, 1);
	assert_int_equal(rig_stats(r).untrusted, 0);
	conn_is(r, 7, 1, S_STATUS, SP_CONN_CLOSED, 0, 0);
	peer(r, "closed", "", "10.0.0.1:41001");
	/* TLS, on a port that any rule may be meant for: counted */
	conn_is(r, 8, 2, 0xff, SP_CONN_UNREADABLE, SP_WHY_TLS, SP_DIR_IN);
	rig_none(r);
	assert_int_equal(rig_stats(r).unreadable_conns, 2);
}

static struct sp_event sealed(struct rig *r)
{
	struct sp_event ev = rig_expect(r, ROLE_PEER, "sealed");

	assert_int_equal(ev.pid, PID); /* whose front it is */
	assert_string_equal(ev.peer, "10.0.0.2:41002");
	return ev;
}

/* Clients that nobody can read are told of once, where requests are expected. */
static void test_sealed(void **state)
{
	struct rig *r = *state;
	struct sp_rec_conn rec = conn_rec(8, FRONT, 2, 0xff, SP_CONN_UNREADABLE);

	rec.why = SP_WHY_TLS;
	for (int i = 0; i < 3; i++)
		feed_conn(r, &rec);
	assert_string_equal(sealed(r).note, "encrypted, TLS");
	rig_none(r);
	rec.why = SP_WHY_VERSION; /* of ZMTP, perhaps */
	feed_conn(r, &rec);
	rig_none(r);
	rec.decode = SP_DEC_HTTP;
	feed_conn(r, &rec);
	sealed(r);
	rec.h.pid = PID;
	feed_conn(r, &rec);
	rig_none(r);
	sockets_process_gone(r->s, FRONT, 9);
	rec.h.pid = FRONT;
	feed_conn(r, &rec);
	sealed(r);
	rig_none(r);
}

/* An HTTP client's connection is no peer. */
static void test_clients_are_no_peers(void **state)
{
	struct rig *r = *state;

	conn_opens(r, 1, FRONT, 1, S_HTTP);
	conn_is(r, 2, 1, S_HTTP, SP_CONN_LOST, SP_WHY_GAP, SP_DIR_IN);
	assert_int_equal(rig_stats(r).untrusted, 1);
	conn_is(r, 3, 1, S_HTTP, SP_CONN_TRUST, 0, SP_DIR_IN);
	assert_int_equal(rig_stats(r).untrusted, 0);
	conn_is(r, 4, 1, S_HTTP, SP_CONN_UNREADABLE, SP_WHY_UPGRADE, SP_DIR_IN);
	conn_is(r, 5, 1, S_HTTP, SP_CONN_CLOSED, 0, 0);
	rig_none(r);
}

/* Connections that nobody saw end make room for new ones; their agents are not said to go. */
static void test_bounds(void **state)
{
	struct rig *r = *state;

	conn_opens(r, 1, PID, 1, S_STATUS);
	announce(r, 2, 1, "77", "a", ADDR);
	announce(r, 2, 1, "77", "b", ADDR);
	conn_opens(r, 3, PID, 2, S_STATUS);
	announce(r, 3, 2, "77", "a", ADDR);
	for (uint64_t id = 3; id < 3 + SP_MAX_CONNS - 1; id++) {
		announce(r, 4, 2, "77", "a", ADDR); /* a sign of life */
		conn_opens(r, 4, PID, id, S_STATUS);
	}
	assert_int_equal(rig_stats(r).sockets_over, 1); /* 1 has gone: the one idle for longest */
	r->n = 0;
	conn_is(r, 5, 1, S_STATUS, SP_CONN_CLOSED, 0, 0);
	rig_none(r);
	conn_is(r, 5, 2, S_STATUS, SP_CONN_CLOSED, 0, 0);
	rig_none(r); /* a may still be connected by the forgotten one */
	/* an ended one goes before any that is open */
	conn_opens(r, 6, PID, 1 << 20, S_STATUS);
	assert_int_equal(rig_stats(r).sockets_over, 1);
	r->n = 0;
	announce(r, 7, 1 << 20, "77", "b", "10.0.0.7:5556"); /* known anew */
	conn_is(r, 8, 1 << 20, S_STATUS, SP_CONN_CLOSED, 0, 0);
	peer(r, "opened", "b", "10.0.0.7:5556");
	announced(r);
	peer(r, "closed", "b", "10.0.0.7:5556");
	/* and then the oldest, one after another */
	for (uint64_t i = 1; i <= 20; i++)
		conn_opens(r, 9, PID, (1 << 20) + i, S_STATUS);
	assert_int_equal(rig_stats(r).sockets_over, 20);
	r->n = 0;
	conn_is(r, 10, 21, S_STATUS, SP_CONN_CLOSED, 0, 0);
	rig_none(r);
	conn_is(r, 10, 22, S_STATUS, SP_CONN_CLOSED, 0, 0);
	rig_expect(r, ROLE_PEER, "closed");
}

/* Agents of one connection, and of all, are bounded. */
static void test_many_agents(void **state)
{
	struct rig *r = *state;
	char name[32];

	conn_opens(r, 1, PID, 1, S_STATUS);
	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "a%d", i);
		announce(r, 2, 1, "77", name, "");
	}
	assert_int_equal(rig_stats(r).sockets_over, 300 - 256);
	r->n = 0;
	conn_is(r, 3, 1, S_STATUS, SP_CONN_CLOSED, 0, 0);
	assert_int_equal(r->n, 256);
	for (int i = 0; i < 16384 + 100; i++) {
		snprintf(name, sizeof(name), "b%d", i);
		announce(r, 4, 2 + (uint64_t)i / 200, "77", name, "");
	}
	assert_int_equal(rig_stats(r).sockets_over, 300 - 256 + 100);
}

static void test_process_gone(void **state)
{
	struct rig *r = *state;

	conn_opens(r, 1, PID, 1, S_STATUS);
	announce(r, 2, 1, "77", "a", ADDR);
	r->n = 0;
	sockets_process_gone(r->s, PID, 3);
	conn_is(r, 4, 1, S_STATUS, SP_CONN_CLOSED, 0, 0); /* its doing, not the peer's */
	rig_none(r);
}

static void test_kept_for_a_while(void **state)
{
	struct rig *r = *state;

	conn_opens(r, SEC, PID, 1, S_STATUS);
	conn_is(r, SEC, 1, S_STATUS, SP_CONN_CLOSED, 0, 0);
	r->n = 0;
	sockets_tick(r->s, 601 * SEC - 1);
	announce(r, 500 * SEC, 1, "77", "a", ADDR);
	announced(r);
	peer(r, "closed", "a", ADDR);
	sockets_tick(r->s, 601 * SEC);
	announce(r, 601 * SEC, 1, "78", "a", ADDR); /* nothing is known of it any more */
	peer(r, "opened", "a", ADDR);
	announced(r);
}

static void test_owners(void **state)
{
	struct rig *r = *state;
	struct sp_rec_conn rec = conn_rec(5, FRONT, 1, S_STATUS, SP_CONN_KIND);

	r->owners[0] = 30;
	r->owners[1] = 31;
	r->nowners = 2;
	feed_conn(r, &rec);
	assert_int_equal(r->n, 2);
	assert_int_equal(rig_take(r).pid, 30);
	assert_int_equal(rig_take(r).pid, 31);
	r->nowners = 0;
	rec.conn = 2;
	feed_conn(r, &rec);
	rig_none(r);
}

static void address_is(unsigned int family, const unsigned char *a, const char *text)
{
	char buf[64];

	conns_address(family, a, 443, buf, sizeof(buf));
	assert_string_equal(buf, text);
}

static void test_addresses(void **state)
{
	static const unsigned char v4[16] = {192, 168, 1, 2};
	static const unsigned char v6[16] = {[15] = 1};
	static const unsigned char mapped[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 7};

	address_is(AF_INET, v4, "192.168.1.2:443");
	address_is(AF_INET6, v6, "[::1]:443");
	address_is(AF_INET6, mapped, "10.0.0.7:443");
	address_is(AF_UNIX, v4, "unix");
	address_is(0, v4, "");
	for (unsigned int why = 1; why < SP_WHY_MAX; why++)
		assert_string_not_equal(conns_why(why), "");
	assert_string_equal(conns_why(SP_WHY_MAX), "");
}

/* Records of any content, cut at any length: no crash, no event from a short one. */
static void test_garbage(void **state)
{
	struct rig *r = *state;
	unsigned int seed = 5;
	union {
		struct sp_rec h;
		struct sp_rec_conn conn;
		struct sp_rec_http http;
		unsigned char b[256];
	} u;

	for (int i = 0; i < 200000; i++) {
		for (size_t k = 0; k < sizeof(u); k++)
			u.b[k] = (unsigned char)rand_r(&seed);
		u.h.type = i & 1 ? SP_REC_CONN : SP_REC_HTTP;
		u.h.pid %= 4;
		u.h.probe %= P_N + 1;
		u.conn.conn %= 64;
		if (i & 1) {
			u.conn.what %= SP_CONN_RESET + 2;
			u.conn.rule %= S_N + 2;
			u.conn.decode %= 4;
		} else {
			u.http.what %= SP_HTTP_REPLY_END + 2;
			u.http.req %= 4;
			u.http.key %= 5;
			u.http.index = i % 3 ? u.http.index % 16 : 0xfffe + u.http.index % 2;
		}
		sockets_record(r->s, &u, i % 7 ? sizeof(u) : (size_t)rand_r(&seed) % 200);
		r->n = 0;
	}
	for (size_t len = 0; len < sizeof(struct sp_rec_conn); len++) {
		struct sp_rec_conn rec = conn_rec(5, PID, 1000, S_STATUS, SP_CONN_KIND);

		sockets_record(r->s, &rec, len);
		rig_none(r);
	}
}

/* Both directions of one socket: frames of one do not end a message of the other. */
static void test_frames_of_two_directions(void **state)
{
	struct sp_rec_hit rec = {.h = {.type = SP_REC_HIT, .probe = P_STATUS, .pid = PID}};
	struct frames *f = frames_new();
	const struct message *msg;

	rec.h.flags = SP_RF_MORE;
	assert_int_equal(frames_add(f, &rec, 7, 2, "in", 2, &msg), 0);
	rec.h.flags = SP_RF_MORE | SP_RF_OUT;
	assert_int_equal(frames_add(f, &rec, 7, 3, "out", 3, &msg), 0);
	rec.h.frame = 1;
	rec.h.flags = 0;
	assert_int_equal(frames_add(f, &rec, 7, 1, "x", 1, &msg), 1);
	assert_memory_equal(msg->frame[0].data, "in", 2);
	rec.h.flags = SP_RF_OUT;
	assert_int_equal(frames_add(f, &rec, 7, 1, "y", 1, &msg), 1);
	assert_memory_equal(msg->frame[0].data, "out", 3);
	frames_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_trust),
		T(test_begun_before),
		T(test_stream_of_agents),
		T(test_unreadable),
		T(test_sealed),
		T(test_clients_are_no_peers),
		T(test_bounds),
		T(test_many_agents),
		T(test_process_gone),
		T(test_kept_for_a_while),
		T(test_owners),
		T(test_addresses),
		T(test_garbage),
		T(test_frames_of_two_directions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
