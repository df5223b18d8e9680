// SPDX-License-Identifier: Apache-2.0
/*
 * Profiles: the shipped file, the example of the design, all that a file may say. Run from the
 * repository's root.
 */
#include "profile_rig.h"

/* ---- the design's example, to the letter ------------------------------------------------------
 */

static const char design[] =
	"version: 1\n"
	"profiles:\n"
	"  - name: sglang-nixl-prefill\n"
	"    match: {cmdline: \"sglang::scheduler*\"}          # how --find recognises a process\n"
	"    room: {type: u64, fake: [0, \"<64\"]}              # rooms with no peer traffic\n"
	"    stages: {bootstrap: 330s, ready: 300s, inflight: 30s, releasing: 10s}\n"
	"    done: {needs: [kv.last, aux]}\n"
	"    libraries:\n"
	"      nixl: {file: \"libnixl.so*\"}\n"
	"      zmq:  {file: \"libzmq*.so*\"}\n"
	"    probes:\n"
	"      - name: xfer_create\n"
	"        library: nixl\n"
	"        symbol: \"_ZNK9nixlAgent13createXferReq*\"     # glob over symbols\n"
	"        on: return                                   # entry | return\n"
	"        nothrow: \"returns a status code, ...\"        # required for a return probe\n"
	"        args:                                        # kernel fetcharg notation\n"
	"          - {name: op,    fetch: \"+0($arg6)\",  type: x64}\n"
	"          - {name: text,  fetch: \"+24($arg7)\", type: stdstring, max: 128, if: "
	"\"+56($arg7):u8\"}\n"
	"          - {name: rc,    fetch: \"$retval\",    type: s32}\n"
	"        match: {text: \"{room}_kv_{chunk}_{last}_{rank}\"}   # several allowed\n"
	"        event: {role: post, kind: kv}\n";

static void design_example(void **state)
{
	struct profile_file *pf = parse(design);
	const struct profile *p = &pf->profiles[0];
	const struct profile_probe *probe = &p->probes[0];

	assert_int_equal(pf->nprofiles, 1);
	assert_string_equal(pf->text, design);
	assert_string_equal(p->name, "sglang-nixl-prefill");
	assert_string_equal(p->match_cmdline, "sglang::scheduler*");
	assert_true(p->room_u64);
	assert_int_equal(p->nfake, 2);
	assert_true(p->stage_ns[STAGE_BOOTSTRAP] == 330000000000ULL);
	assert_true(p->stage_ns[STAGE_RELEASING] == 10000000000ULL);
	assert_int_equal(p->nneeds, 2);
	assert_string_equal(p->needs[0].kind, "kv");
	assert_true(p->needs[0].last);
	assert_string_equal(p->needs[1].kind, "aux");
	assert_false(p->needs[1].last);
	assert_int_equal(p->nlibs, 2);
	assert_string_equal(p->libs[1].id, "zmq");
	assert_string_equal(p->libs[1].file[0], "libzmq*.so*");
	assert_int_equal(p->nprobes, 1);
	assert_int_equal(probe->library, 0);
	assert_int_equal(probe->on, ON_RETURN);
	assert_true(probe->nothrow);
	assert_true(probe->required);
	assert_int_equal(probe->nargs, 3);
	assert_true(probe->args[0].is_hex);
	assert_true(probe->args[1].is_composite);
	assert_true(probe->args[2].is_signed);
	assert_int_equal(probe->prog.nfetch, 4);
	assert_int_equal(probe->prog.fetch[1].flags, SP_F_COND | SP_F_MEM);
	assert_int_equal(probe->prog.fetch[1].arg, 1);
	assert_int_equal(probe->prog.fetch[2].type, SP_T_STDSTRING);
	assert_int_equal(probe->prog.fetch[2].max, 128);
	assert_int_equal(probe->prog.nsaved, 7);
	assert_int_equal(probe->prog.size_class, SP_CLASS_MEDIUM);
	assert_int_equal(probe->prog.flags, SP_P_CLEAR_POLL);
	assert_int_equal(probe->prog.op_arg, 0);
	assert_int_equal(probe->nmatch, 1);
	assert_int_equal(probe->match[0].on[0].arg, 1);
	assert_int_equal(probe->match[0].event.role, ROLE_POST);
	assert_string_equal(probe->match[0].event.field[0].value, "kv");
	/* what the file leaves out */
	assert_true(p->statuses[0].done.lo == 0 && p->statuses[0].done.hi == 0);
	assert_true(p->statuses[0].busy.lo == 1 && p->statuses[0].busy.hi == 1);
	assert_true(p->statuses[0].error.lo == INT64_MIN && p->statuses[0].error.hi == -1);
	profile_free(pf);
}

/* ---- the shipped file --------------------------------------------------------------------------
 */

static const struct profile_probe *probe_named(const struct profile *p, const char *name)
{
	for (int i = 0; i < p->nprobes; i++)
		if (!strcmp(p->probes[i].name, name))
			return &p->probes[i];
	fail_msg("no probe %s", name);
	return NULL;
}

static const char *field(const struct evt_spec *ev, const char *name)
{
	for (int i = 0; i < ev->nfields; i++)
		if (!strcmp(ev->field[i].name, name))
			return ev->field[i].value;
	return NULL;
}

/* The event that a text gives, as "kind captures covers". */
static const char *event_of(const struct profile_probe *p, const char *text)
{
	static char out[200];

	for (int i = 0; i < p->nmatch; i++) {
		const struct evt_match *m = &p->match[i];
		struct captures caps = {.n = 0};
		size_t at;

		if (!pattern_match(&m->on[0].pat, text, strlen(text), strlen(text), &caps))
			continue;
		at = (size_t)snprintf(out, sizeof(out), "%s", field(&m->event, "kind"));
		for (int k = 0; k < caps.n; k++)
			at += (size_t)snprintf(out + at, sizeof(out) - at, " %s=%s",
					       caps.cap[k].name, caps.cap[k].text);
		if (field(&m->event, "last"))
			at += (size_t)snprintf(out + at, sizeof(out) - at, " last:%s",
					       field(&m->event, "last"));
		if (m->event.ncovers)
			snprintf(out + at, sizeof(out) - at, " covers:%s", m->event.covers[0]);
		assert_int_equal(m->event.role, ROLE_POST);
		assert_string_equal(field(&m->event, "created"), "true");
		assert_string_equal(field(&m->event, "error"), "rc");
		return out;
	}
	return "none";
}

static void shipped_texts(void **state)
{
	static const struct {
		const char *text, *event;
	} cases[] = {
		{"77_kv_2_0_3", "kv room=77 chunk=2 last=0 rank=3"},
		{"77_kv_2_1_3_part_0_4", "kv room=77 chunk=2 last=1 rank=3 part=0 parts=4"},
		{"77_kv_2_1", "kv room=77 chunk=2 last=1"},
		{"77_aux", "aux room=77"},
		{"77_aux_nokv_1", "aux room=77 rank=1 covers:kv.last"},
		{"77_state_1", "state room=77 rank=1"},
		{"77_state_1_2", "state room=77 rank=1 part=2"},
		{"77_kv", "none"},
		{"kv_2_1", "none"},
		{"some other notification", "none"},
	};
	static const struct {
		const char *probe, *text, *event;
	} staged[] = {
		{"xfer_make", "77_stg_2_0_1_0_64_16_a_b",
		 "stg room=77 chunk=2 last=0 rank=1 agent=a_b"},
		{"xfer_make", "77_stg_2_1_1_0_64_16_a_b",
		 "stg room=77 chunk=2 rank=1 agent=a_b last:1 covers:kv.last"},
		{"xfer_create", "77_stg_2_1_1_0_64_16_a_b",
		 "stg room=77 chunk=2 rank=1 last:1 covers:kv.last"},
	};
	struct profile_file *pf;
	struct sp_err err = {0};

	if (profile_load("probes.yaml", &pf, &err))
		fail_msg("%s", err.text);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_string_equal(
			event_of(probe_named(&pf->profiles[0], "xfer_make"), cases[i].text),
			cases[i].event);
		assert_string_equal(
			event_of(probe_named(&pf->profiles[0], "xfer_create"), cases[i].text),
			cases[i].event);
	}
	for (size_t i = 0; i < ARRAY_SIZE(staged); i++)
		assert_string_equal(
			event_of(probe_named(&pf->profiles[0], staged[i].probe), staged[i].text),
			staged[i].event);
	profile_free(pf);
}

static const struct sp_head *head_named(const struct profile_probe *p, const char *lit)
{
	for (int i = 0; i < p->prog.nheads; i++)
		if (p->prog.head[i].len == strlen(lit) &&
		    !memcmp(p->prog.head[i].lit, lit, strlen(lit)))
			return &p->prog.head[i];
	fail_msg("no head %s", lit);
	return NULL;
}

static void shipped_probes(void **state)
{
	static const char *const names[] = {"xfer_make",   "xfer_create",  "xfer_post",
					    "xfer_status", "xfer_release", "zmq_recv",
					    "zmq_send"};
	const struct profile_probe *p;
	struct profile_file *pf;
	struct sp_err err = {0};

	if (profile_load("probes.yaml", &pf, &err))
		fail_msg("%s", err.text);
	assert_non_null(profile_by_name(pf, "sglang-nixl-prefill"));
	assert_null(profile_by_name(pf, "sglang"));
	assert_non_null(profile_by_cmdline(pf, "sglang::scheduler_TP0"));
	assert_null(profile_by_cmdline(pf, "python3 -m sglang.launch_server"));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		p = probe_named(&pf->profiles[0], names[i]);
		/* an exception may cross any C++ function: no return probes there */
		if (!strncmp(p->symbol, "_Z", 2))
			assert_true(p->on != ON_RETURN);
		/* small records: these run at every frame and every operation */
		assert_true(p->prog.size_class <= SP_CLASS_MEDIUM);
	}
	p = probe_named(&pf->profiles[0], "xfer_status");
	assert_int_equal(p->prog.flags, SP_P_ON_CHANGE);
	assert_string_equal(p->args[p->prog.op_arg].name, "op");
	for (size_t i = 0; i < 5; i++)
		if (strcmp(names[i], "xfer_status") != 0)
			assert_int_equal(probe_named(&pf->profiles[0], names[i])->prog.flags &
						 ~SP_P_SCOPE,
					 SP_P_CLEAR_POLL);
	p = probe_named(&pf->profiles[0], "zmq_recv");
	assert_int_equal(p->prog.flags, SP_P_FRAMES | SP_P_DROP_NEGATIVE);
	assert_int_equal(p->prog.more_mask, 0);
	/* guard, room, ip, port, agent; needed ranks; prefix length. Never the indices. */
	assert_true(head_named(p, "NixlMsgGuard")->copy == 0x29f);
	assert_true(head_named(p, "ABORT")->copy == 0xf);
	assert_true(head_named(p, "STAGING_RSP")->copy == 0x7);
	assert_true(head_named(p, "WATERMARK")->copy == 0x9);
	assert_int_equal(p->prog.nheads, 4);
	p = probe_named(&pf->profiles[0], "zmq_send");
	assert_int_equal(p->prog.more_mask, 2);
	assert_string_equal(p->args[p->prog.more_arg].name, "flags");
	assert_string_equal(p->args[p->prog.sock_arg].name, "sock");
	profile_free(pf);
}

/* Every whole profile in the documentation is one that works. */
static void documented(void **state)
{
	static char page[100000];
	FILE *f = fopen("docs/profiles.md", "r");
	char *at = page, *end;
	size_t len;
	int n = 0;

	assert_non_null(f);
	len = fread(page, 1, sizeof(page) - 1, f);
	fclose(f);
	assert_true(len < sizeof(page) - 1);
	while ((at = strstr(at, "```yaml\n"))) {
		at += strlen("```yaml\n");
		end = strstr(at, "```");
		assert_non_null(end);
		*end = '\0';
		profile_free(parse(at));
		at = end + 3;
		n++;
	}
	assert_int_equal(n, 7);
}

static void fakes(void **state)
{
	struct profile_file *pf = parse(design);
	const struct profile *p = &pf->profiles[0];

	assert_true(profile_room_is_fake(p, "0"));
	assert_true(profile_room_is_fake(p, "63"));
	assert_false(profile_room_is_fake(p, "64"));
	assert_false(profile_room_is_fake(p, ""));
	assert_false(profile_room_is_fake(p, "-1"));
	assert_false(profile_room_is_fake(p, "7x"));
	assert_false(profile_room_is_fake(p, "18446744073709551616"));
	profile_free(pf);
}

/* ---- what the file may say ---------------------------------------------------------------------
 */

static void extensions(void **state)
{
	struct profile_file *pf =
		parse("version: 1\n"
		      "profiles:\n"
		      "  - name: t\n"
		      "    room: {type: string}\n"
		      "    stages: {inflight: 0s}\n"
		      "    done: {needs: [kv.last]}\n"
		      "    status: {done: \"10..12\", busy: 2, error: \">99\", names: {100: gone, "
		      "-1: x}}\n"
		      "    libraries: {a: {file: liba.so}, b: {file: \"libb[.-]*\"}}\n"
		      "    probes:\n"
		      "      - name: p\n"
		      "        library: b\n"
		      "        symbol: \"_Zp*\"\n"
		      "        on: ret\n"
		      "        required: false\n"
		      "        args:\n"
		      "          - name: text\n"
		      "            max: 60\n"
		      "            fetch:\n"
		      "              - {fetch: \"+8($arg2)\", type: stdstring, if: \"$arg3:u8\"}\n"
		      "              - \"+0($retval):string\"\n"
		      "          - {name: op, fetch: \"$arg4\", type: x32}\n"
		      "          - {name: who, fetch: \"+0($arg9)\", type: string, max: 100}\n"
		      "        event: {role: post, kind: a, agent: who, op: op}\n"
		      "        match:\n"
		      "          - text: \"{room}:{chunk}\"\n"
		      "            event: {kind: kv, covers: [kv.last], last: 1, created: true}\n"
		      "          - {text: \"{room}\", who: \"*\"}\n"
		      "          - event: {role: call}\n"
		      "      - {name: q, library: a, symbol: q, on: return, skip_negative: true,\n"
		      "         event: {role: call, note: q was called}}\n"
		      "  - name: u\n"
		      "    match: {cmdline: \"*\"}\n"
		      "    room: {type: u64}\n"
		      "    libraries: {a: {file: liba.so}}\n"
		      "    probes: [{name: q, library: a, symbol: q, event: {role: peer}}]\n");
	const struct profile *p = &pf->profiles[0];
	const struct profile_probe *a = &p->probes[0], *q = &p->probes[1];

	assert_int_equal(pf->nprofiles, 2);
	assert_false(p->room_u64);
	assert_null(p->match_cmdline);
	assert_ptr_equal(profile_by_cmdline(pf, "anything"), &pf->profiles[1]);
	assert_true(p->stage_ns[STAGE_INFLIGHT] == 0);
	assert_true(p->stage_ns[STAGE_READY] == 300000000000ULL); /* left out: the default */
	assert_true(p->statuses[0].done.lo == 10 && p->statuses[0].done.hi == 12);
	assert_true(p->statuses[0].error.lo == 100 && p->statuses[0].error.hi == INT64_MAX);
	assert_int_equal(p->statuses[0].nnames, 2);
	assert_string_equal(p->statuses[0].names[0].text, "gone");
	assert_int_equal(p->statuses[0].names[1].code, -1);

	assert_int_equal(a->library, 1);
	assert_int_equal(a->on, ON_RET);
	assert_false(a->required);
	assert_int_equal(a->prog.nfetch, 5);
	assert_int_equal(a->prog.fetch[0].flags, SP_F_COND);
	assert_int_equal(a->prog.fetch[0].arg, 0);
	assert_int_equal(a->prog.fetch[1].type, SP_T_STDSTRING);
	assert_int_equal(a->prog.fetch[2].type, SP_T_STRING);
	assert_int_equal(a->prog.fetch[1].data_at, 0);
	assert_int_equal(a->prog.fetch[2].data_at, 0); /* alternatives share a place */
	assert_int_equal(a->prog.fetch[1].max, 64);
	assert_int_equal(a->prog.fetch[2].max, 64);
	assert_int_equal(a->prog.fetch[4].data_at, 64);
	assert_int_equal(a->prog.fetch[4].max, 104);
	assert_int_equal(a->prog.size_class, SP_CLASS_LARGE);
	assert_int_equal(a->prog.nargs, 3);
	assert_int_equal(a->prog.nsaved, 9);
	assert_int_equal(a->prog.flags, SP_P_CLEAR_POLL);
	assert_int_equal(a->prog.op_arg, 1);
	assert_int_equal(a->nmatch, 3);
	assert_string_equal(field(&a->match[0].event, "kind"), "kv");
	assert_string_equal(field(&a->match[0].event, "agent"), "who");
	assert_string_equal(field(&a->match[0].event, "created"), "true");
	assert_string_equal(a->match[0].event.covers[0], "kv.last");
	assert_string_equal(field(&a->match[1].event, "kind"), "a");
	assert_null(field(&a->match[1].event, "created"));
	assert_int_equal(a->match[1].event.ncovers, 0);
	assert_int_equal(a->match[1].non, 2);
	assert_true(a->match[1].on[1].pat.any);
	assert_int_equal(a->match[2].event.role, ROLE_CALL);
	assert_int_equal(a->match[2].non, 0);
	assert_int_equal(a->match[0].mark.line, 25);
	assert_int_equal(a->match[0].mark.col, 13);

	assert_int_equal(q->on, ON_RETURN); /* a C function: nothing to vouch for */
	assert_int_equal(q->prog.flags, SP_P_DROP_NEGATIVE);
	assert_int_equal(q->nmatch, 0);
	assert_string_equal(field(&q->event, "note"), "q was called");
	profile_free(pf);
}

#define SMALL                                                                                      \
	"version: 1\nprofiles:\n  - name: t\n    room: {type: u64}\n"                              \
	"    libraries: {l: {file: lib.so}}\n    probes:\n"
#define MESSAGES                                                                                   \
	SMALL "      - name: p\n        library: l\n        symbol: f\n        args:\n"            \
	      "          - {name: frame, fetch: \"+0($arg1)\", type: zmqmsg}\n"                    \
	      "          - {name: sock, fetch: \"$arg2\", type: u64}\n"                            \
	      "        frame: frame\n        socket: sock\n        messages:\n"

static void message_heads(void **state)
{
	struct profile_file *pf = parse(
		MESSAGES
		"          - {name: one, frames: [\"{room}\", \"{x:len}\", \"*\", lit, \"{}\"]}\n"
		"          - {frames: [\"{n:u64}\", \"{room}\"]}\n"
		"          - {frames: [GO, \"{room}\", \"...\"], event: {role: abort}}\n"
		"          - {frames: [GO, \"*\", \"\", \"{room}\"], event: {role: told}}\n"
		"        event: {role: announce}\n");
	const struct profile_probe *p = &pf->profiles[0].probes[0];

	assert_true(p->is_frames);
	assert_int_equal(p->prog.nheads, 2);
	assert_int_equal(p->prog.head[0].kind, SP_HEAD_DIGITS);
	assert_true(p->prog.head[0].copy == 0x1b); /* both messages' frames */
	assert_int_equal(p->prog.head[1].kind, SP_HEAD_LITERAL);
	assert_int_equal(p->prog.head[1].len, 2);
	assert_memory_equal(p->prog.head[1].lit, "GO\0\0", 4);
	assert_true(p->prog.head[1].copy == 0xb); /* an empty frame needs no bytes */
	assert_int_equal(p->prog.frame_arg, 0);
	assert_int_equal(p->prog.sock_arg, 1);
	assert_int_equal(p->nmatch, 4);
	assert_string_equal(p->match[0].name, "one");
	assert_int_equal(p->match[0].nframes, 5);
	assert_false(p->match[0].frames_open);
	assert_int_equal(p->match[0].event.role, ROLE_ANNOUNCE);
	assert_int_equal(p->match[2].nframes, 2);
	assert_true(p->match[2].frames_open);
	assert_int_equal(p->match[2].event.role, ROLE_ABORT);
	profile_free(pf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(design_example), cmocka_unit_test(shipped_texts),
		cmocka_unit_test(shipped_probes), cmocka_unit_test(documented),
		cmocka_unit_test(fakes),          cmocka_unit_test(extensions),
		cmocka_unit_test(message_heads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
