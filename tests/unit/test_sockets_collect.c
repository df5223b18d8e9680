// SPDX-License-Identifier: Apache-2.0
/* collect/collect.c with sockets: records of all kinds to events in order of time, through a
 * profile as it is written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/collect.h"

#define SEC   1000000000ull
#define PID   10
#define FRONT 20

enum { P_RECV = 0, P_SOCKET, P_HTTP };

static const char profile_text[] =
	"version: 1\n"
	"profiles:\n"
	"  - name: t\n"
	"    room: {type: u64, fake_hosts: [\"2.2.2.2\"]}\n"
	"    stages: {bootstrap: 330s, ready: 300s, inflight: 30s, releasing: 10s}\n"
	"    done: {needs: [kv.last, aux]}\n"
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
	"\"{agent}\"],\n"
	"             event: {role: announce, peer: \"{ip}:{port}\"}}\n"
	"    sockets:\n"
	"      - name: socket\n"
	"        process: self\n"
	"        when: {bytes: zmtp}\n"
	"        decode: zmtp\n"
	"        same_as: recv\n"
	"      - name: http\n"
	"        process: {is: [parent], listens: true}\n"
	"        when: {bytes: http}\n"
	"        decode: http\n"
	"        keys: {room: bootstrap_room, host: bootstrap_host, rid: rid}\n";

struct rig {
	struct profile_file *pf;
	struct collect *c;
	struct sp_event ev[32];
	int n, processes;
	bool front_known, has;
};

static void on_event(void *ctx, const struct sp_event *ev)
{
	struct rig *r = ctx;

	assert_true(r->n < 32);
	if (r->n)
		assert_true(r->ev[r->n - 1].ns <= ev->ns);
	r->ev[r->n++] = *ev;
}

/* As attach does: the front's end is taken note of at once. */
static void on_process(void *ctx, const struct sp_rec_hit *rec)
{
	struct rig *r = ctx;

	assert_true(rec->h.type == SP_REC_FORK || rec->h.type == SP_REC_EXEC ||
		    rec->h.type == SP_REC_EXIT);
	r->processes++;
	if (rec->h.type == SP_REC_EXIT && rec->h.pid == FRONT && rec->val[0])
		r->front_known = false;
}

static int owners(void *ctx, uint32_t pid, uint32_t *to, int max)
{
	const struct rig *r = ctx;

	to[0] = PID;
	return pid == PID || r->front_known;
}

static bool has_probe(void *ctx, uint32_t pid, int probe)
{
	return ((struct rig *)ctx)->has && probe == P_RECV;
}

static int setup(void **state)
{
	static const struct collect_ops ops = {
		.event = on_event, .process = on_process, .owners = owners, .has_probe = has_probe};
	struct rig *r = calloc(1, sizeof(*r));
	struct sp_err err = {0};

	assert_non_null(r);
	r->front_known = r->has = true;
	if (profile_parse("t.yaml", profile_text, strlen(profile_text), &r->pf, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return -1;
	}
	*state = r;
	return collect_open(&r->pf->profiles[0], false, &ops, r, &r->c, &err);
}

static int teardown(void **state)
{
	struct rig *r = *state;

	collect_close(r->c);
	profile_free(r->pf);
	free(r);
	return 0;
}

struct rec {
	struct sp_rec_hit hit;
	char data[SP_DATA_LARGE];
};

/* One frame as the kernel hands it in: of a uprobe, or of a connection. */
static void frame(struct rig *r, uint64_t ns, int probe, int at, const char *s, int flags)
{
	const struct sp_probe *prog = &r->pf->profiles[0].probes[probe].prog;
	struct rec rec = {.hit.h = {.ns = ns,
				    .pid = PID,
				    .tid = probe == P_RECV ? 11 : 0,
				    .type = SP_REC_HIT,
				    .probe = (uint16_t)probe,
				    .flags = (uint8_t)flags,
				    .frame = (uint8_t)at}};

	rec.hit.val[prog->sock_arg] = 7;
	for (int i = 0; i < prog->nfetch; i++) {
		if (prog->fetch[i].arg != prog->frame_arg || prog->fetch[i].flags & SP_F_COND)
			continue;
		rec.hit.alt[prog->frame_arg] = (uint8_t)i;
		memcpy((char *)&rec + sizeof(rec.hit) + prog->fetch[i].data_at, s, strlen(s));
	}
	rec.hit.val[prog->frame_arg] = strlen(s);
	rec.hit.len[prog->frame_arg] = (int16_t)strlen(s);
	assert_int_equal(collect_record(r->c, &rec, sizeof(rec)), 0);
}

static void metadata(struct rig *r, uint64_t ns, int probe, const char *room, int flags)
{
	const char *const s[] = {"Guard", room, "10.0.0.7", "5555", "a"};

	for (int i = 0; i < 5; i++)
		frame(r, ns, probe, i, s[i], flags | (i < 4 ? SP_RF_MORE : 0));
}

static void conn(struct rig *r, uint64_t ns, uint32_t pid, int rule, int what)
{
	struct sp_rec_conn rec = {.h = {.ns = ns, .pid = pid, .type = SP_REC_CONN},
				  .conn = rule ? 8 : 7,
				  .num = 1,
				  .what = (uint8_t)what,
				  .decode = rule ? SP_DEC_HTTP : SP_DEC_ZMTP,
				  .family = 2,
				  .rule = (uint8_t)rule,
				  .rport = 41231,
				  .raddr = {10, 0, 0, 7}};

	assert_int_equal(collect_record(r->c, &rec, sizeof(rec)), 0);
}

static void http(struct rig *r, uint64_t ns, int what, uint64_t room)
{
	struct sp_rec_http rec = {
		.h = {.ns = ns, .pid = FRONT, .tid = 21, .type = SP_REC_HTTP, .probe = P_HTTP},
		.conn = 8,
		.num = room,
		.req = 1,
		.is_num = 1,
		.what = (uint16_t)what,
		.code = what == SP_HTTP_REPLY ? 200 : 0,
		.index = 0xffff};

	assert_int_equal(collect_record(r->c, &rec, sizeof(rec)), 0);
}

static void process(struct rig *r, uint64_t ns, uint32_t pid, int type)
{
	struct sp_rec_hit rec = {.h = {.ns = ns, .pid = pid, .tid = pid, .type = (uint16_t)type},
				 .val = {1}};

	assert_int_equal(collect_record(r->c, &rec, sizeof(rec)), 0);
}

static void is(const struct rig *r, int i, enum sp_role role, const char *kind, uint64_t ns)
{
	assert_true(i < r->n);
	assert_string_equal(sp_role_name(r->ev[i].role), sp_role_name(role));
	assert_string_equal(r->ev[i].kind, kind);
	assert_int_equal(r->ev[i].ns, ns);
	if (role != ROLE_THREAD)
		assert_int_equal(r->ev[i].pid, PID);
}

static struct collect_stats stats(const struct rig *r)
{
	struct collect_stats st;

	collect_stats(r->c, &st);
	return st;
}

static void test_one_event_of_two_sources(void **state)
{
	struct rig *r = *state;

	conn(r, SEC, PID, 0, SP_CONN_KIND);
	metadata(r, 2 * SEC, P_SOCKET, "77", 0);
	metadata(r, 2 * SEC + 5, P_RECV, "77", 0);
	collect_release(r->c, 9 * SEC);
	is(r, 0, ROLE_PEER, "opened", SEC);
	is(r, 1, ROLE_PEER, "opened", 2 * SEC);
	assert_string_equal(r->ev[1].agent, "a");
	is(r, 2, ROLE_ANNOUNCE, "", 2 * SEC + 5);
	assert_int_equal(r->ev[2].tid, 11);
	assert_int_equal(r->ev[2].probe, P_RECV);
	assert_int_equal(r->n, 3);
	assert_int_equal(stats(r).confirmed, 1);
	assert_int_equal(stats(r).conns, 1);
	assert_int_equal(stats(r).late, 0);
	assert_int_equal(stats(r).records, 11);
}

static void test_two_directions(void **state)
{
	struct rig *r = *state;

	r->has = false;
	frame(r, SEC, P_SOCKET, 0, "Guard", SP_RF_MORE);
	metadata(r, SEC + 1, P_SOCKET, "78", SP_RF_OUT);
	collect_release(r->c, 2 * SEC);
	is(r, 0, ROLE_ANNOUNCE, "", SEC + 1); /* and nobody is behind what was sent */
	assert_int_equal(r->n, 1);
	assert_int_equal(stats(r).broken, 0);
}

static void test_unread_is_not_late(void **state)
{
	struct rig *r = *state;

	metadata(r, SEC, P_RECV, "1", 0);
	metadata(r, 2 * SEC, P_SOCKET, "77", 0);
	for (uint64_t ns = SEC; ns < 4 * SEC; ns += SEC / 10)
		collect_release(r->c, ns);
	is(r, 0, ROLE_ANNOUNCE, "", SEC);
	is(r, 1, ROLE_PEER, "opened", 2 * SEC);
	is(r, 2, ROLE_PEER, "unread", 3 * SEC);
	assert_int_equal(r->n, 3);
	assert_int_equal(stats(r).late, 0);
	assert_int_equal(stats(r).unread, 1);
}

static void test_http(void **state)
{
	struct rig *r = *state;

	conn(r, SEC, FRONT, 1, SP_CONN_KIND);
	http(r, 2 * SEC, SP_HTTP_REQUEST, 0);
	http(r, 2 * SEC, SP_HTTP_VALUE, 77);
	http(r, 2 * SEC, SP_HTTP_REQUEST_END, 0);
	http(r, 3 * SEC, SP_HTTP_REPLY, 0);
	http(r, 4 * SEC, SP_HTTP_REPLY_END, 0);
	collect_release(r->c, 9 * SEC);
	is(r, 0, ROLE_ARRIVE, "", 2 * SEC);
	assert_string_equal(r->ev[0].room, "77");
	assert_int_equal(r->ev[0].flags, EV_TRACKED);
	is(r, 1, ROLE_REPLY, "first", 3 * SEC);
	is(r, 2, ROLE_REPLY, "end", 4 * SEC);
	assert_int_equal(r->n, 3);
	assert_int_equal(r->processes, 0);
}

/* Whose front it was is still known when its unanswered requests are given up. */
static void test_front_ends(void **state)
{
	struct rig *r = *state;

	for (int i = 0; i < 2; i++) {
		conn(r, SEC, FRONT, 1, SP_CONN_KIND);
		http(r, 2 * SEC, SP_HTTP_REQUEST, 0);
		http(r, 2 * SEC, SP_HTTP_VALUE, 77);
		http(r, 2 * SEC, SP_HTTP_REQUEST_END, 0);
		process(r, 3 * SEC, FRONT, i ? SP_REC_EXIT : SP_REC_EXEC);
		conn(r, 3 * SEC, FRONT, 1, SP_CONN_CLOSED);
		collect_release(r->c, 9 * SEC);
		is(r, 0, ROLE_ARRIVE, "", 2 * SEC);
		is(r, 1, ROLE_PEER, "untracked", 3 * SEC);
		assert_int_equal(r->n, 3); /* and what the record itself says */
		assert_int_equal(r->processes, i + 1);
		r->n = 0;
	}
	assert_false(r->front_known);
}

static void test_short_records(void **state)
{
	struct rig *r = *state;
	char rec[sizeof(struct sp_rec_http)] = {0};

	for (int type = 0; type <= SP_REC_HTTP + 1; type++) {
		((struct sp_rec *)rec)->type = (uint16_t)type;
		for (size_t len = 0; len < sizeof(struct sp_rec_conn); len++)
			assert_int_equal(collect_record(r->c, rec, len), 0);
	}
	collect_release(r->c, 9 * SEC);
	assert_int_equal(r->n, 0);
	assert_int_equal(r->processes, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void loss_of(void *ctx, const struct sp_event *ev)
{
	struct sp_event *last = ctx;

	if (ev->role == ROLE_LOSS)
		*last = *ev;
}

/* Each counter of the kernel side that means something went unseen is told, its kind whole. */
static void test_counters_are_told(void **state)
{
	static const struct {
		enum sp_counter counter;
		const char *kind;
	} row[] = {{SP_C_RING_FULL, "ring-full"},         {SP_C_SAVE_FULL, "entry-map-full"},
		   {SP_C_POLL_FULL, "poll-map-full"},     {SP_C_FRAME_FULL, "frame-map-full"},
		   {SP_C_CONN_FULL, SP_LOSS_CONNECTIONS}, {SP_C_EACH_CUT, "elements-cut"},
		   {SP_C_SCOPE_FULL, "scope-map-full"},   {SP_C_TALLY_FULL, "tally-map-full"}};
	struct rig *r = *state;
	uint64_t now[SP_C_MAX] = {0};
	struct sp_event last;
	struct collect_ops counted = {.event = loss_of};
	struct collect *c;
	struct sp_err err;

	assert_int_equal(collect_open(&r->pf->profiles[0], false, &counted, &last, &c, &err), 0);
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		memset(&last, 0, sizeof(last));
		now[row[i].counter] += i + 1;
		collect_counters(c, now, 10 * (i + 1));
		collect_release(c, 10 * (i + 1));
		assert_string_equal(last.kind, row[i].kind);
		assert_int_equal(last.code, i + 1);
	}
	/* the last of them once: it may go on for ever */
	memset(&last, 0, sizeof(last));
	now[SP_C_TALLY_FULL]++;
	collect_counters(c, now, 100);
	collect_release(c, 100);
	assert_int_equal(last.role, ROLE_NONE);
	collect_close(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_one_event_of_two_sources),
		T(test_two_directions),
		T(test_unread_is_not_late),
		T(test_http),
		T(test_front_ends),
		T(test_short_records),
		T(test_counters_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
