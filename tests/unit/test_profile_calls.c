// SPDX-License-Identifier: Apache-2.0
/*
 * Profiles: groups of probes, whose room a call belongs to, probes of several elements, tallies,
 * functions behind pointers, events with sizes and addresses. What they compile to.
 */
#include "profile_calls_rig.h"

static struct profile_probe *named(struct profile_file *pf, const char *name)
{
	for (int i = 0; i < pf->profiles[0].nprobes; i++)
		if (!strcmp(pf->profiles[0].probes[i].name, name))
			return &pf->profiles[0].probes[i];
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

/* ---- groups ------------------------------------------------------------------------------------
 */

static const char grouped[] =
	"version: 1\n"
	"groups:\n"
	"  - name: gpu\n"
	"    status: {done: 0, error: \">0\", names: {700: illegal address}}\n"
	"    libraries: {gpu: {file: [\"libgpu.so*\", \"libgpu2.so*\"]}, l: {file: x}}\n"
	"    probes:\n"
	"      - {name: copy, library: gpu, symbol: copy, on: return, scope: call,\n"
	"         args: [{name: rc, fetch: $retval, type: s32}],\n"
	"         event: {role: call, status: rc}}\n"
	"      - {name: launch, library: gpu, symbol: launch, enabled: false,\n"
	"         status: {done: 7}, event: {role: call}}\n"
	"  - name: spare\n"
	"    libraries: {s: {file: s}}\n"
	"    probes: [{name: copy, library: s, symbol: f, event: {role: call}}]\n"
	"profiles:\n"
	"  - name: t\n"
	"    uses: [gpu]\n"
	"    room: {type: u64}\n"
	"    libraries: {k: {file: k}, l: {file: x}}\n"
	"    probes:\n"
	"      - {name: own, library: l, symbol: f, on: return, status: {done: 5},\n"
	"         args: [{name: room, fetch: $arg3, type: u64}], event: {role: call}}\n"
	"      - {name: poll, library: l, symbol: g, on: return, on_change: op,\n"
	"         args: [{name: op, fetch: $arg1, type: u64}],\n"
	"         event: {role: status, status: op}}\n"
	"      - {name: wait, library: l, symbol: h, on: return, waits: true,\n"
	"         args: [{name: op, fetch: $arg1, type: u64}], event: {role: close}}\n"
	"      - {name: enter, library: l, symbol: i,\n"
	"         args: [{name: op, fetch: $arg1, type: u64}], event: {role: close}}\n"
	"      - {name: blank, library: l, symbol: j, on: return, event: {role: call}}\n"
	"    sockets:\n"
	"      - {name: wire, process: self, when: {bytes: zmtp}, decode: zmtp,\n"
	"         messages: [{frames: [A, \"{room}\"], event: {role: abort}}]}\n"
	"  - name: bare\n"
	"    uses: [gpu]\n"
	"    room: {type: string}\n";

static void groups(void **state)
{
	struct profile_file *pf = parse(grouped);
	struct profile *p = &pf->profiles[0];
	struct profile_probe *copy = named(pf, "copy"), *launch = named(pf, "launch");

	assert_int_equal(p->nuses, 1);
	assert_string_equal(p->uses[0], "gpu");
	/* k, l of both, gpu */
	assert_int_equal(p->nlibs, 3);
	assert_string_equal(p->libs[copy->library].id, "gpu");
	assert_int_equal(p->libs[copy->library].nfiles, 2);
	assert_true(profile_lib_fits(&p->libs[copy->library], "libgpu2.so.1"));
	assert_false(profile_lib_fits(&p->libs[copy->library], "libgpu3.so.1"));
	/* those of the groups behind the profile's own, sockets last */
	assert_int_equal(p->nuprobes, 7);
	assert_int_equal(p->nprobes, 8);
	assert_ptr_equal(copy, &p->probes[5]);
	assert_null(p->probes[0].group);
	assert_string_equal(copy->group, "gpu");
	assert_true(launch->off && !copy->off);
	/* codes: the profile's, the group's, a probe's own */
	assert_int_equal(named(pf, "poll")->status, 0);
	assert_true(p->statuses[named(pf, "own")->status].done.lo == 5);
	assert_true(p->statuses[copy->status].error.lo == 1);
	assert_true(p->statuses[copy->status].busy.lo > p->statuses[copy->status].busy.hi);
	assert_int_equal(p->statuses[copy->status].names[0].code, 700);
	assert_true(p->statuses[launch->status].done.lo == 7);
	/* groups alone make a profile */
	assert_int_equal(pf->profiles[1].nuprobes, 2);
	assert_int_equal(pf->profiles[1].nlibs, 2);
	profile_free(pf);
}

static bool has(struct profile_file *pf, const char *name, uint32_t flag)
{
	return named(pf, name)->prog.flags & flag;
}

static void scopes(void **state)
{
	struct profile_file *pf = parse(grouped);
	struct profile *p = &pf->profiles[0];
	struct sp_err err = {0};

	assert_true(has(pf, "own", SP_P_SCOPE));
	assert_false(has(pf, "poll", SP_P_SCOPE)); /* may get on with anybody's work */
	assert_false(has(pf, "wait", SP_P_SCOPE));
	assert_false(has(pf, "enter", SP_P_SCOPE)); /* its end is not seen */
	assert_false(has(pf, "blank", SP_P_SCOPE)); /* gives nothing */
	assert_false(has(pf, "copy", SP_P_SCOPE));
	assert_true(has(pf, "copy", SP_P_SCOPED));
	assert_false(has(pf, "own", SP_P_SCOPED));
	assert_int_equal(named(pf, "copy")->scope, SCOPE_CALL);
	/* where nobody asks, nothing is kept track of; a group is all its probes */
	assert_int_equal(profile_enable(p, "gpu", false, &err), 0);
	assert_true(named(pf, "copy")->off && named(pf, "launch")->off);
	assert_false(has(pf, "own", SP_P_SCOPE));
	assert_int_equal(profile_enable(p, "copy", true, &err), 0);
	assert_true(!named(pf, "copy")->off && named(pf, "launch")->off);
	assert_true(has(pf, "own", SP_P_SCOPE));
	assert_int_equal(profile_enable(p, "own", false, &err), 0);
	assert_false(has(pf, "own", SP_P_SCOPE));
	/* what there is not */
	assert_true(profile_enable(p, "lanch", true, &err) < 0);
	assert_int_equal(err.exit_code, SP_EXIT_USAGE);
	assert_non_null(strstr(err.text, "did you mean \"launch\"?"));
	assert_true(profile_enable(p, "gpus", true, &err) < 0);
	assert_non_null(strstr(err.text, "did you mean \"gpu\"?"));
	assert_true(profile_enable(p, "wire", false, &err) < 0);
	assert_non_null(strstr(err.text, "an entry of sockets"));
	profile_free(pf);
}

/* ---- elements, tallies, pointers ---------------------------------------------------------------
 */

static void check_op(const struct sp_op *op, int code, int n, int imm)
{
	assert_int_equal(op->code, code);
	assert_int_equal(op->n, n);
	assert_int_equal(op->imm, imm);
}

static void elements(void **state)
{
	struct profile_file *pf = parse(
		HEAD PUSH
		"        each:\n"
		"          - {list: $arg4, next: 8}\n"
		"          - {array: \"+16($each)\", count: \"+24($outer):s32\", stride: 16}\n"
		"        events: first\n"
		"        only: {fetch: \"+32($outer):u32\", mask: 2}\n"
		"        args:\n"
		"          - {name: qp, fetch: \"+52($arg1)\", type: u32}\n"
		"          - {name: bytes, fetch: \"+8($each)\", type: u32, if: {fetch: $arg6, "
		"mask: 4}}\n"
		"        tally: {name: queue pair, key: qp, posts: true, refused: \"+0($arg7)\", "
		"if: "
		"\"+4($each):u8\"}\n" CALL "      - name: reap\n"
		"        library: l\n"
		"        symbol: g\n"
		"        on: return\n"
		"        skip_negative: true\n"
		"        skip_zero: true\n"
		"        each: {array: $arg3, end: \"+8($arg3)\", number: \"$retval:s32\"}\n" ARG_QP
		"        tally: {name: queue pair, key: qp, completes: true}\n" CALL);
	const struct profile_probe *push = named(pf, "push"), *reap = named(pf, "reap");
	const struct sp_each *e = &push->each;

	assert_int_equal(pf->profiles[0].ntallies, 1);
	assert_string_equal(pf->profiles[0].tallies[0].name, "queue pair");
	assert_true(push->prog.flags & SP_P_EACH);
	assert_int_equal(e->nlevels, 2);
	assert_int_equal(e->level[0].kind, SP_EACH_LIST);
	assert_int_equal(e->level[0].next, 8);
	check_op(&e->level[0].base.op[0], SP_OP_ARG, 4, 0);
	assert_int_equal(e->level[1].kind, SP_EACH_COUNT);
	assert_int_equal(e->level[1].stride, 16);
	/* the inner level begins at the outer element, however it is called */
	check_op(&e->level[1].base.op[0], SP_OP_EACH, 1, 0);
	check_op(&e->level[1].count.op[0], SP_OP_EACH, 1, 0);
	assert_int_equal(e->level[1].count.type, SP_T_S32);
	assert_true(e->first && e->has_only && e->has_asks);
	check_op(&e->only.op[0], SP_OP_EACH, 1, 0);
	assert_true(e->only.flags & SP_F_COND);
	assert_int_equal(e->only.max, 2);
	check_op(&e->asks.op[0], SP_OP_EACH, 0, 0);
	assert_int_equal(e->asks.max, 0);
	assert_int_equal(e->tally, SP_TALLY_POST);
	assert_int_equal(e->tally_arg, 0);
	/* qp, the condition, bytes */
	assert_int_equal(push->prog.fetch[1].max, 4);
	check_op(&push->prog.fetch[2].op[0], SP_OP_EACH, 0, 0);
	assert_true(e->has_refused);
	check_op(&e->refused.op[0], SP_OP_ARG, 7, 0);
	assert_int_equal(push->prog.nsaved, 7);
	assert_int_equal(reap->each.level[0].kind, SP_EACH_END);
	assert_int_equal(reap->each.level[0].stride, 0);
	assert_int_equal(reap->each.tally, SP_TALLY_DONE);
	assert_int_equal(reap->each.tally_id, e->tally_id);
	assert_int_equal(reap->prog.nsaved, 3);
	assert_int_equal(reap->prog.flags, SP_P_EACH | SP_P_DROP_NEGATIVE | SP_P_DROP_ZERO);
	profile_free(pf);
}

/* What a probe does not say for itself is as in the one whose place it takes. */
static void instead(void **state)
{
	struct profile_file *pf =
		parse(HEAD PUSH ARG_QP CALL
		      "        waits: true\n        status: {done: 7}\n"
		      "      - {name: as, instead_of: push, symbol: g}\n"
		      "      - {name: own, instead_of: push, symbol: h, waits: false, library: m,\n"
		      "         args: [{name: qp, fetch: $arg9, type: u64}]}\n");
	const struct profile_probe *push = named(pf, "push"), *as = named(pf, "as"),
				   *own = named(pf, "own");
	struct sp_err err;

	assert_int_equal(push->instead_of, 0);
	assert_true(push->required);
	assert_string_equal(as->symbol, "g");
	assert_int_equal(as->instead_of, push - pf->profiles[0].probes + 1);
	assert_int_equal(as->library, push->library);
	assert_int_equal(as->on, ON_RET);
	assert_true(as->waits && !as->required);
	assert_int_equal(as->event.role, ROLE_CALL);
	assert_int_equal(pf->profiles[0].statuses[as->status].done.lo, 7);
	check_op(&as->prog.fetch[0].op[0], SP_OP_ARG, 1, 0);
	assert_int_equal(own->library, 1);
	assert_false(own->waits);
	assert_int_equal(own->nargs, 1);
	check_op(&own->prog.fetch[0].op[0], SP_OP_ARG, 9, 0);
	assert_int_equal(own->prog.nsaved, 9);
	/* both are turned off */
	assert_int_equal(profile_enable(&pf->profiles[0], "push", false, &err), 0);
	assert_true(push->off && as->off && own->off);
	assert_int_equal(profile_enable(&pf->profiles[0], "as", true, &err), 0);
	assert_true(push->off && !as->off);
	profile_free(pf);
}

static void pointers(void **state)
{
	struct profile_file *pf =
		parse(HEAD REF
		      "        on: ret\n"
		      "        pointer:\n"
		      "          - {after: make, library: m, fetch: \"+208(+0($retval))\"}\n"
		      "          - {passed_to: set, library: m, argument: 2, copied_to: -24, slot: "
		      "0x1b8}\n"
		      "          - {passed_to: set, library: m, argument: 1, copied_to: 8}\n" CALL
		      "      - {name: two, library: m, pointer: {after: f, library: l, fetch: "
		      "$arg1}, event: "
		      "{role: call}}\n");
	const struct profile_probe *p = named(pf, "ref");

	assert_null(p->symbol);
	assert_int_equal(p->npointers, 3);
	assert_true(p->pointer[0].at_call);
	assert_string_equal(p->pointer[0].function, "make");
	assert_int_equal(p->pointer[0].library, 1);
	assert_int_equal(p->pointer[0].fetch.nops, 2);
	assert_int_equal(p->pointer[0].fetch.off, 208);
	assert_false(p->pointer[1].at_call);
	assert_int_equal(p->pointer[1].argument, 2);
	assert_true(p->pointer[1].copied_to == -24);
	assert_true(p->pointer[1].slot == 0x1b8);
	assert_true(p->pointer[2].slot == -1);
	assert_int_equal(named(pf, "two")->npointers, 1);
	profile_free(pf);
}

/* ---- events ------------------------------------------------------------------------------------
 */

#define RECV                                                                                       \
	"      - name: recv\n"                                                                     \
	"        library: l\n"                                                                     \
	"        symbol: f\n"                                                                      \
	"        on: return\n"                                                                     \
	"        args: [{name: f, fetch: \"+0($arg1)\", type: zmqmsg, max: 256},\n"                \
	"               {name: s, fetch: $arg2, type: x64}]\n"                                     \
	"        frame: f\n"                                                                       \
	"        socket: s\n"                                                                      \
	"        messages:\n"

static void fields(void **state)
{
	struct profile_file *pf = parse(
		HEAD RECV
		"          - {frames: [None, \"{peer}\", \"{bases:u64s}\", \"{item:u64}\"], event: "
		"{role: register}}\n"
		"          - {frames: [\"{room}\", \"{peer}\", \"{n:s32s}\"], event: {role: "
		"announce, "
		"pages: n, work: begin, dummy_if_empty: [n]}}\n"
		"      - {name: put, library: l, symbol: g, on: ret, scope: thread, args: [\n"
		"          {name: op, fetch: $arg1, type: x64}, {name: to, fetch: $arg2, type: "
		"u64},\n"
		"          {name: n, fetch: $arg3, type: u64}], event: {role: post, address: to, "
		"segment: n, bytes: n, count: 3, work: end}}\n"
		"      - {name: run, library: l, symbol: h, args: [{name: q, fetch: $arg1, type: "
		"x64}],\n"
		"         event: {role: call, object: \"queue {q}\"}}\n");
	const struct profile_probe *recv = named(pf, "recv"), *put = named(pf, "put");

	assert_true(recv->waits); /* to wait is what a receive is for */
	assert_int_equal(recv->prog.size_class, SP_CLASS_LARGE);
	assert_int_equal(recv->match[0].frames[2].part[0].shape, PAT_U64S);
	assert_true(recv->prog.head[0].copy == 0xf); /* an array is copied */
	assert_string_equal(field(&recv->match[1].event, "pages"), "n");
	assert_string_equal(field(&recv->match[1].event, "work"), "begin");
	assert_string_equal(field(&put->event, "address"), "to");
	assert_int_equal(put->scope, SCOPE_THREAD);
	/* it asks for a room and gives one: what it has an operation for */
	assert_int_equal(put->prog.flags, SP_P_SCOPE | SP_P_SCOPED | SP_P_CLEAR_POLL);
	assert_string_equal(field(&named(pf, "run")->event, "object"), "queue {q}");
	profile_free(pf);
}

static void arrays(void **state)
{
	static const char bytes[] = "\1\0\0\0\0\0\0\0\377\377\377\377\0\0\0\0\7";
	struct captures caps = {.n = 0};
	struct pattern p;
	char why[200];

	assert_int_equal(pattern_compile(&p, "{x:u64s}", true, why, sizeof(why)), 0);
	assert_true(pattern_match(&p, bytes, 16, 16, &caps));
	assert_ptr_equal(caps.cap[0].raw, bytes);
	assert_true(caps.cap[0].raw_len == 16 && caps.cap[0].num == 16);
	/* a frame that is no whole number of them is no such array */
	assert_false(pattern_match(&p, bytes, 12, 12, &caps));
	assert_int_equal(caps.n, 1);
	/* cut: the elements that are there, whole */
	caps.n = 0;
	assert_true(pattern_match(&p, bytes, 12, 800, &caps));
	assert_true(caps.cap[0].raw_len == 8 && caps.cap[0].num == 800);
	caps.n = 0;
	assert_true(pattern_match(&p, bytes, 0, 0, &caps));
	assert_true(caps.cap[0].raw_len == 0 && caps.cap[0].num == 0);
	pattern_free(&p);
	caps.n = 0;
	assert_int_equal(pattern_compile(&p, "{x:s32s}", true, why, sizeof(why)), 0);
	assert_true(pattern_match(&p, bytes, 12, 12, &caps));
	assert_true(caps.cap[0].raw_len == 12);
	assert_false(pattern_match(&p, bytes, 13, 13, &caps));
	pattern_free(&p);
	assert_true(pattern_compile(&p, "a{x:s32s}", true, why, sizeof(why)) < 0);
	assert_non_null(strstr(why, "{x:s32s} stands for a whole frame"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups),  cmocka_unit_test(scopes),   cmocka_unit_test(elements),
		cmocka_unit_test(instead), cmocka_unit_test(pointers), cmocka_unit_test(fields),
		cmocka_unit_test(arrays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
