// SPDX-License-Identifier: Apache-2.0
/*
 * Records of sockets in any order and with anything in them, through collect: whatever comes, the
 * events are in order of time, are those of processes that are watched, and their texts end where
 * they should. Input: a list of records, each a byte that says which and the bytes it is made of.
 */
#include "fuzz.h"

#include "collect/collect.h"
#include "profile/profile.h"

enum { P_RECV = 0, P_IN, P_HTTP, P_TOLD };

#define PID   10
#define FRONT 20
#define MS    1000000ull

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
	"          - {name: metadata, frames: [\"G\", \"{room}\", \"{ip:ip}\", \"{agent}\", "
	"\"...\"],\n"
	"             event: {role: announce, peer: \"{ip}\"}}\n"
	"          - {name: abort, frames: [\"A\", \"{room}\"], event: {role: abort}}\n"
	"    sockets:\n"
	"      - name: in\n"
	"        process: self\n"
	"        when: {bytes: zmtp}\n"
	"        decode: zmtp\n"
	"        same_as: recv\n"
	"      - name: http\n"
	"        process: {is: [parent], listens: true}\n"
	"        when: {bytes: http}\n"
	"        decode: http\n"
	"        keys: {room: bootstrap_room, host: bootstrap_host, rid: rid}\n"
	"        abort: /abort_request\n"
	"      - name: told\n"
	"        process: self\n"
	"        when: {peer: 9000}\n"
	"        decode: zmtp\n"
	"        direction: both\n"
	"        messages:\n"
	"          - {name: status, frames: [\"{room}\", \"{status:u64}\"], event: {role: told}}\n";

struct in {
	const uint8_t *p;
	size_t n;
	uint64_t ns, heard_ns;
};

static const struct profile *profile(void)
{
	static struct profile_file *pf;
	struct sp_err err = {0};

	if (!pf && profile_parse("t.yaml", profile_text, sizeof(profile_text) - 1, &pf, &err)) {
		fprintf(stderr, "%s\n", err.text);
		abort();
	}
	return &pf->profiles[0];
}

static uint8_t take(struct in *in)
{
	if (!in->n)
		return 0;
	in->n--;
	return *in->p++;
}

static void take_text(struct in *in, char *to, size_t n)
{
	n = n < in->n ? n : in->n;
	memcpy(to, in->p, n);
	in->p += n;
	in->n -= n;
}

#define ENDS(text) CHECK(memchr(text, '\0', sizeof(text)))

static void on_event(void *ctx, const struct sp_event *ev)
{
	struct in *in = (struct in *)ctx;

	CHECK(ev->ns >= in->heard_ns);
	in->heard_ns = ev->ns;
	CHECK(ev->role > ROLE_NONE && ev->role < ROLE_MAX);
	CHECK(ev->probe >= -1 && ev->probe < profile()->nprobes);
	ENDS(ev->room);
	ENDS(ev->kind);
	ENDS(ev->peer);
	ENDS(ev->agent);
	ENDS(ev->rid);
	ENDS(ev->note);
	CHECK(strspn(ev->room, "0123456789") == strlen(ev->room));
	if (ev->role == ROLE_ARRIVE || ev->role == ROLE_REPLY || ev->role == ROLE_PEER)
		CHECK(ev->pid != FRONT); /* they are told to the owners */
	if (ev->role == ROLE_ARRIVE)
		CHECK(ev->room[0] || ev->rid[0]);
}

static int owners(void *ctx, uint32_t pid, uint32_t *to, int max)
{
	to[0] = pid == FRONT ? PID : pid;
	return pid == PID || pid == FRONT;
}

static bool has_probe(void *ctx, uint32_t pid, int probe)
{
	return pid == PID && probe == P_RECV;
}

static void begin(struct in *in, struct sp_rec *h, uint16_t type)
{
	uint8_t b = take(in);

	in->ns += (b & 0x3f) * MS;
	h->type = type;
	h->ns = b & 0x40 ? in->ns - 20 * MS : in->ns;
	h->pid = b & 0x80 ? FRONT : PID;
}

/* In memory of its own size: a reader that goes beyond is seen. */
static void hand_in(struct collect *c, const void *rec, size_t len)
{
	void *copy = malloc(len ? len : 1);

	CHECK(copy);
	memcpy(copy, rec, len);
	CHECK(!collect_record(c, copy, len));
	free(copy);
}

static void put_http(struct in *in, struct collect *c)
{
	struct sp_rec_http r = {0};
	uint8_t b;

	begin(in, &r.h, SP_REC_HTTP);
	b = take(in);
	r.h.probe = (uint16_t)(b & 0x80 ? take(in) : P_HTTP);
	r.conn = 1 + (b & 3);
	r.what = b >> 2 & 7;
	r.req = take(in);
	r.num = take(in);
	r.num |= b & 0x40 ? (uint64_t)take(in) << 56 : 0;
	r.code = (uint16_t)(take(in) * 4);
	r.key = take(in) & 3;
	r.index = take(in);
	if (r.index > 0xf0)
		r.index |= 0xff00;
	r.is_num = b >> 5 & 1;
	r.len = take(in) & 0x7f;
	if (r.len > SP_HTTP_TEXT)
		r.len = SP_HTTP_TEXT;
	take_text(in, r.text, r.len);
	hand_in(c, &r, sizeof(r));
}

static void put_conn(struct in *in, struct collect *c)
{
	struct sp_rec_conn r = {0};
	uint8_t b;

	begin(in, &r.h, SP_REC_CONN);
	b = take(in);
	r.conn = 1 + (b & 3);
	r.what = b >> 2 & 15;
	r.num = b >> 6;
	b = take(in);
	r.why = b & 15;
	r.dir = b >> 4 & 1;
	r.decode = b >> 5 & 3;
	r.rule = b & 0x80 ? take(in) : (b & 15) % 3;
	r.family = take(in);
	r.lport = take(in);
	r.rport = take(in);
	take_text(in, (char *)r.raddr, take(in) & 16);
	hand_in(c, &r, sizeof(r));
}

/* One frame of probe, as the kernel hands it in; spoil: one argument's length is anything. */
static void put_frame(struct in *in, struct collect *c, const struct sp_rec *h, uint64_t sock,
		      bool spoil)
{
	_Alignas(8) char buf[sizeof(struct sp_rec_hit) + SP_DATA_LARGE + SP_DATA_SLACK] = "";
	struct sp_rec_hit *r = (struct sp_rec_hit *)buf;
	const struct sp_probe *prog = &profile()->probes[h->probe].prog;
	size_t n = take(in) & 0x7f;

	n = n > SP_ZMTP_PART ? SP_ZMTP_PART : n;
	r->h = *h;
	r->val[prog->sock_arg] = sock;
	for (int i = 0; i < prog->nfetch; i++) {
		if (prog->fetch[i].arg != prog->frame_arg)
			continue;
		r->alt[prog->frame_arg] = (uint8_t)i;
		take_text(in, r->data + prog->fetch[i].data_at, n);
	}
	r->val[prog->frame_arg] = n == SP_ZMTP_PART ? n + take(in) : n;
	r->len[prog->frame_arg] = (int16_t)(n ? (int)n : SP_LEN_EMPTY);
	if (spoil) {
		r->len[take(in) & 7] = (int16_t)(take(in) << 8 | take(in));
		r->alt[take(in) & 7] = take(in);
	}
	hand_in(c, buf, spoil ? sizeof(*r) + SP_DATA_SMALL : sizeof(buf));
}

/* A multipart message of the uprobe or of a socket. */
static void put_message(struct in *in, struct collect *c)
{
	struct sp_rec h = {0};
	uint8_t b, frames;
	uint64_t sock;

	begin(in, &h, SP_REC_HIT);
	b = take(in);
	h.probe = (b & 3) == P_HTTP ? P_RECV : b & 3;
	h.pid = PID;
	h.tid = h.probe ? 0 : 11;
	h.flags = b & 4 ? SP_RF_OUT : 0;
	sock = 1 + (b >> 3 & 3);
	frames = 1 + (b >> 5);
	for (uint8_t i = 0; i < frames; i++) {
		bool spoil = take(in) > 0xf0;

		h.frame = spoil ? take(in) : i;
		h.flags &= (uint8_t)~SP_RF_MORE;
		h.flags |= i + 1 < frames ? SP_RF_MORE : 0;
		put_frame(in, c, &h, sock, spoil);
	}
}

static void put_process(struct in *in, struct collect *c)
{
	struct sp_rec_hit r = {0};

	begin(in, &r.h, SP_REC_EXEC);
	if (take(in) & 1)
		r.h.type = SP_REC_EXIT;
	r.val[0] = take(in) & 1;
	hand_in(c, &r, sizeof(r));
}

static void put_any(struct in *in, struct collect *c)
{
	char raw[sizeof(struct sp_rec_http)] = "";
	size_t n = take(in);

	n = n < sizeof(raw) ? n : sizeof(raw);
	take_text(in, raw, n);
	((struct sp_rec *)raw)->ns = in->ns; /* a clock that jumps is not the question here */
	hand_in(c, raw, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct collect_ops ops = {
		.event = on_event, .owners = owners, .has_probe = has_probe};
	struct in in = {.p = data, .n = size, .ns = 1000 * MS};
	struct collect_stats st;
	struct sp_err err = {0};
	struct collect *c;

	CHECK(!collect_open(profile(), false, &ops, &in, &c, &err));
	while (in.n) {
		uint8_t op = take(&in) % 8;

		if (op < 3)
			put_http(&in, c);
		else if (op < 5)
			put_conn(&in, c);
		else if (op == 5)
			put_message(&in, c);
		else if (op == 6)
			(in.n & 1 ? put_process : put_any)(&in, c);
		else
			collect_release(c, in.ns - COLLECT_SLACK_NS);
	}
	collect_release(c, in.ns + 3600000 * MS);
	collect_stats(c, &st);
	CHECK(!st.late);
	collect_close(c);
	return 0;
}
