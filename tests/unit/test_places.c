// SPDX-License-Identifier: Apache-2.0
/* collect/places: posts tied to rooms by where their data goes, through collect and a profile like
 * that of a transport which knows no rooms. */
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

#define PID  10
#define ITEM 0x1000

enum { P_RECV, P_SEND, P_OPEN, P_BATCH, P_ANY, P_FREE };

static const char text[] =
	"version: 1\n"
	"profiles:\n"
	"  - name: t\n"
	"    room: {type: u64}\n"
	"    status: {done: 4, busy: \"1..3\", error: 0}\n"
	"    libraries: {x: {file: \"libx*\"}}\n"
	"    probes:\n"
	"      - name: recv\n"
	"        library: x\n"
	"        symbol: recv\n"
	"        on: return\n"
	"        args:\n"
	"          - {name: sock, fetch: \"$arg2\", type: x64}\n"
	"          - {name: frame, fetch: \"+0($arg1)\", type: zmqmsg, max: 256}\n"
	"        frame: frame\n"
	"        socket: sock\n"
	"        messages:\n"
	"          - {name: registration, frames: [\"None\", \"{agent}\", \"{bases:u64s}\", "
	"\"{item:u64}\"], event: {role: register}}\n"
	"          - {name: metadata, frames: [\"{room}\", \"{agent}\", \"{pages:s32s}\"], event: "
	"{role: announce}}\n"
	"          - {name: abort, frames: [\"ABORT\", \"{room}\"], event: {role: abort}}\n"
	"      - name: send\n"
	"        library: x\n"
	"        symbol: send\n"
	"        on: return\n"
	"        args:\n"
	"          - {name: sock, fetch: \"$arg2\", type: x64}\n"
	"          - {name: frame, fetch: \"+0($arg1)\", type: zmqmsg, max: 64}\n"
	"        frame: frame\n"
	"        socket: sock\n"
	"        messages:\n"
	"          - {name: status, frames: [\"{room}\", \"{code:u64}\"], event: {role: told, "
	"status: "
	"code}}\n"
	"      - {name: open, library: x, symbol: open, on: return, args: [{name: agent, fetch: "
	"\"+0($arg1)\", type: string, max: 48}, {name: segment, fetch: \"$retval\", type: u64}], "
	"event: {role: register}}\n"
	"      - {name: batch, library: x, symbol: batch, on: return, args: [{name: op, fetch: "
	"\"$arg1\", type: x64}, {name: address, fetch: \"$arg2\", type: x64}, {name: segment, "
	"fetch: "
	"\"$arg3\", type: u64}], event: {role: post, kind: kv}}\n"
	"      - {name: any, library: x, symbol: any, on: return, args: [{name: op, fetch: "
	"\"$arg1\", "
	"type: x64}, {name: address, fetch: \"$arg2\", type: x64}], event: {role: post, kind: "
	"kv}}\n"
	"      - {name: free, library: x, symbol: free, args: [{name: op, fetch: \"$arg1\", type: "
	"x64}], event: {role: close}}\n";

struct rig {
	struct profile_file *pf;
	const struct profile *p;
	struct collect *c;
	struct sp_event last; /* the last post */
	uint64_t ns, counters[SP_C_MAX];
};

static void on_event(void *ctx, const struct sp_event *ev)
{
	if (ev->role == ROLE_POST)
		((struct rig *)ctx)->last = *ev;
}

static int setup(void **state)
{
	static const struct collect_ops ops = {.event = on_event};
	struct rig *r = calloc(1, sizeof(*r));
	struct sp_err err = {0};

	if (profile_parse("t.yaml", text, strlen(text), &r->pf, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return -1;
	}
	r->p = &r->pf->profiles[0];
	r->ns = 1000;
	*state = r;
	return collect_open(r->p, false, &ops, r, &r->c, &err);
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

static void begin(struct rig *r, struct rec *rec, int probe)
{
	memset(rec, 0, sizeof(*rec));
	rec->hit.h.type = SP_REC_HIT;
	rec->hit.h.probe = (uint16_t)probe;
	rec->hit.h.pid = PID;
	rec->hit.h.tid = 1;
	rec->hit.h.ns = r->ns += 10;
	rec->hit.h.enter_ns = r->ns - 5;
}

static void set_text(struct rig *r, struct rec *rec, int arg, const void *s, size_t len)
{
	const struct sp_probe *prog = &r->p->probes[rec->hit.h.probe].prog;

	for (int i = 0; i < prog->nfetch; i++) {
		size_t max = prog->fetch[i].max;

		if (prog->fetch[i].arg != arg)
			continue;
		rec->hit.alt[arg] = (uint8_t)i;
		rec->hit.val[arg] = len;
		memcpy((char *)&rec->hit + sizeof(rec->hit) + prog->fetch[i].data_at, s,
		       len < max ? len : max);
		rec->hit.len[arg] = len ? (int16_t)(len < max ? len : max) : SP_LEN_EMPTY;
		return;
	}
	fail();
}

static void frame(struct rig *r, int probe, int at, const void *s, size_t len, bool more)
{
	struct rec rec;

	begin(r, &rec, probe);
	rec.hit.h.frame = (uint8_t)at;
	rec.hit.h.flags = more ? SP_RF_MORE : 0;
	set_text(r, &rec, 1, s, len);
	collect_record(r->c, &rec, sizeof(rec));
}

static void frame_text(struct rig *r, int probe, int at, const char *s, bool more)
{
	frame(r, probe, at, s, strlen(s), more);
}

/* Two layers, at base and at base + 1 MiB. */
static void registers(struct rig *r, const char *agent, uint64_t base)
{
	uint64_t bases[] = {base + 0x100000, base};

	frame_text(r, P_RECV, 0, "None", true);
	frame_text(r, P_RECV, 1, agent, true);
	frame(r, P_RECV, 2, bases, sizeof(bases), true);
	frame_text(r, P_RECV, 3, "4096", false);
}

static void announces_many(struct rig *r, const char *room, const char *agent, const int32_t *pages,
			   size_t n)
{
	frame_text(r, P_RECV, 0, room, true);
	frame_text(r, P_RECV, 1, agent, true);
	frame(r, P_RECV, 2, pages, n * sizeof(*pages), false);
}

static void announces(struct rig *r, const char *room, const char *agent, int32_t first)
{
	const int32_t pages[] = {first + 2, first, first + 1};

	announces_many(r, room, agent, pages, 3);
}

static void told(struct rig *r, const char *room, const char *code)
{
	frame_text(r, P_SEND, 0, room, true);
	frame_text(r, P_SEND, 1, code, false);
}

static void opens(struct rig *r, const char *agent, uint64_t segment)
{
	struct rec rec;

	begin(r, &rec, P_OPEN);
	set_text(r, &rec, 0, agent, strlen(agent));
	rec.hit.val[1] = segment;
	collect_record(r->c, &rec, sizeof(rec));
}

/* Whose a post to this address is. */
static const char *whose(struct rig *r, int probe, uint64_t address, uint64_t segment)
{
	struct rec rec;

	begin(r, &rec, probe);
	rec.hit.val[0] = 0x7f00;
	rec.hit.val[1] = address;
	rec.hit.val[2] = segment;
	collect_record(r->c, &rec, sizeof(rec));
	memset(&r->last, 0, sizeof(r->last));
	collect_release(r->c, r->ns);
	assert_int_equal(r->last.op, 0x7f00);
	assert_string_equal(r->last.note, r->last.room[0] ? "tied by its address" : "");
	return r->last.room;
}

static void assert_whose(struct rig *r, uint64_t address, uint64_t segment, const char *room)
{
	assert_string_equal(whose(r, P_BATCH, address, segment), room);
}

#define B 0x7f0000000000ull

static void peer(struct rig *r, const char *agent, uint64_t base, uint64_t segment)
{
	registers(r, agent, base);
	opens(r, agent, segment);
}

/* Two rooms in chunks on one thread, one handle for all: only addresses tell them apart. */
static void test_chunks(void **state)
{
	struct rig *r = *state;

	peer(r, "d1", B, 3);
	announces(r, "7", "d1", 10);
	announces(r, "8", "d1", 20);
	assert_whose(r, B + 10 * ITEM, 3, "7");
	assert_whose(r, B + 20 * ITEM, 3, "8");
	assert_whose(r, B + 12 * ITEM, 3, "7");
	assert_whose(r, B + 0x100000 + 21 * ITEM + 17, 3, "8"); /* the second layer, in a page */
	assert_whose(r, B + 13 * ITEM, 3, "");                  /* nobody's page */
	assert_whose(r, B - 1, 3, "");
	assert_whose(r, B + 0x100000 * 9, 3, "");
}

static void test_segments_tell_peers_apart(void **state)
{
	struct rig *r = *state;

	peer(r, "d1", B, 3);
	peer(r, "d2", B, 4); /* the same addresses */
	announces(r, "7", "d1", 10);
	announces(r, "8", "d2", 10);
	assert_whose(r, B + 10 * ITEM, 3, "7");
	assert_whose(r, B + 10 * ITEM, 4, "8");
	assert_whose(r, B + 10 * ITEM, 5, ""); /* a peer that was opened before the attach */
	/* without a segment both could be it */
	assert_string_equal(whose(r, P_ANY, B + 10 * ITEM, 0), "");
	told(r, "8", "4");
	assert_string_equal(whose(r, P_ANY, B + 10 * ITEM, 0), "7");
	announces(r, "9", "d3", 10); /* whose buffers are not known */
	assert_string_equal(whose(r, P_ANY, B + 10 * ITEM, 0), "");
}

/* The peer gives the page to another room once the first is over. */
static void test_page_changes_hands(void **state)
{
	struct rig *r = *state;

	peer(r, "d1", B, 3);
	announces(r, "7", "d1", 10);
	told(r, "7", "2"); /* in progress: no end */
	assert_whose(r, B + 10 * ITEM, 3, "7");
	announces(r, "8", "d1", 12); /* page 12 twice, neither over */
	assert_whose(r, B + 12 * ITEM, 3, "");
	assert_whose(r, B + 10 * ITEM, 3, "7");
	told(r, "7", "0");
	assert_whose(r, B + 12 * ITEM, 3, "8");
	assert_whose(r, B + 10 * ITEM, 3, "");
	frame_text(r, P_RECV, 0, "ABORT", true);
	frame_text(r, P_RECV, 1, "8", false);
	assert_whose(r, B + 12 * ITEM, 3, "");
}

/* 100 pages, of which 64 are copied. */
static void test_cut(void **state)
{
	struct rig *r = *state;
	int32_t pages[100];

	for (int i = 0; i < 100; i++)
		pages[i] = 99 - i;
	peer(r, "d1", B, 3);
	announces(r, "7", "d1", 200);
	announces_many(r, "8", "d1", pages, 100);
	assert_whose(r, B + 99 * ITEM, 3, "8");
	assert_whose(r, B + 20 * ITEM, 3, ""); /* beyond what was copied */
	/* the newer one may have taken it over */
	assert_whose(r, B + 200 * ITEM, 3, "");
	announces(r, "9", "d1", 240);
	assert_whose(r, B + 240 * ITEM, 3, "9");
}

static void test_peer_begins_anew(void **state)
{
	struct rig *r = *state;

	peer(r, "d1", B, 3);
	announces(r, "7", "d1", 10);
	registers(r, "d1", B); /* the same once more changes nothing */
	assert_whose(r, B + 10 * ITEM, 3, "7");
	registers(r, "d1", B + 0x40000000);
	assert_whose(r, B + 0x40000000 + 10 * ITEM, 3, "");
	announces(r, "8", "d1", 10);
	assert_whose(r, B + 0x40000000 + 10 * ITEM, 3, "8");
	assert_whose(r, B + 10 * ITEM, 3, "");
}

static void test_loss(void **state)
{
	struct rig *r = *state;

	peer(r, "d1", B, 3);
	announces(r, "7", "d1", 10);
	r->counters[SP_C_RING_FULL]++;
	collect_counters(r->c, r->counters, r->ns);
	assert_whose(r, B + 10 * ITEM, 3, ""); /* its end may be what was lost */
	announces(r, "8", "d1", 20);
	assert_whose(r, B + 20 * ITEM, 3, "8");
}

static void test_process_ends(void **state)
{
	struct rig *r = *state;
	struct rec rec;

	peer(r, "d1", B, 3);
	announces(r, "7", "d1", 10);
	begin(r, &rec, 0);
	rec.hit.h.type = SP_REC_EXIT;
	rec.hit.val[0] = 1;
	collect_record(r->c, &rec, sizeof(rec));
	announces(r, "7", "d1", 10);
	assert_whose(r, B + 10 * ITEM, 3, "");
}

/* More rooms than are kept: the oldest are forgotten, none is mistaken. */
static void test_bounds(void **state)
{
	struct rig *r = *state;
	char room[24];

	peer(r, "d1", B, 3);
	for (int i = 0; i < 20000; i++) {
		snprintf(room, sizeof(room), "%d", i + 1);
		announces(r, room, "d1", i * 3);
	}
	registers(r, "d1", B);
	assert_whose(r, B + 1 * ITEM, 3, "");
	assert_whose(r, B + 0x100000 + (19999 * 3 + 1) * (uint64_t)ITEM, 3, "20000");
}

int main(void)
{
#define RIG(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		RIG(test_chunks),
		RIG(test_segments_tell_peers_apart),
		RIG(test_page_changes_hands),
		RIG(test_cut),
		RIG(test_peer_begins_anew),
		RIG(test_loss),
		RIG(test_process_ends),
		RIG(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
