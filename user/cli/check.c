// SPDX-License-Identifier: Apache-2.0
/* silentpin check [FILE]: validate a probes file and show what it compiles to. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "output/output.h"
#include "profile/profile.h"

static const char *const on_names[] = {
	[ON_ENTRY] = "entry",
	[ON_RETURN] = "return",
	[ON_RET] = "ret",
};

static void print_range(const char *what, const struct status_range *r)
{
	if (r->lo == INT64_MIN)
		printf(" %s <%" PRId64, what, r->hi + 1);
	else if (r->hi == INT64_MAX)
		printf(" %s >%" PRId64, what, r->lo - 1);
	else if (r->lo == r->hi)
		printf(" %s %" PRId64, what, r->lo);
	else
		printf(" %s %" PRId64 "..%" PRId64, what, r->lo, r->hi);
}

static void print_settings(const struct profile *p)
{
	char span[32];

	printf("  match      %s\n", p->match_cmdline ? p->match_cmdline : "(none: not for --find)");
	printf("  room       %s", p->room_u64 ? "u64" : "string");
	for (int i = 0; i < p->nfake; i++)
		printf("%s%" PRIu64 "%s", i ? ", " : "; fake ", p->fake[i].hi,
		       p->fake[i].lo != p->fake[i].hi ? " and below" : "");
	for (int i = 0; i < p->nfake_hosts; i++)
		printf("%s%s", i ? ", " : "; fake host ", p->fake_hosts[i]);
	printf("\n  stages    ");
	for (enum sp_stage s = STAGE_BOOTSTRAP; s < STAGE_ENDED; s++) {
		time_span(p->stage_ns[s], span, sizeof(span));
		printf("%s %s %s", s > STAGE_BOOTSTRAP ? "," : "", sp_stage_name(s),
		       p->stage_ns[s] ? span : "never");
	}
	printf("\n  done       %s", p->nneeds ? "" : "(all posted operations complete)");
	for (int i = 0; i < p->nneeds; i++)
		printf("%s%s%s", i ? ", " : "", p->needs[i].kind, p->needs[i].last ? ".last" : "");
	printf("\n  status    ");
	print_range("done", &p->statuses[0].done);
	printf(",");
	print_range("busy", &p->statuses[0].busy);
	printf(",");
	print_range("error", &p->statuses[0].error);
	if (p->statuses[0].nnames)
		printf("; %d named", p->statuses[0].nnames);
	printf("\n");
	for (int i = 0; i < p->nlibs; i++)
		printf("  library    %s: %s\n", p->libs[i].id, p->libs[i].file[0]);
}

static void print_args(const struct profile_probe *p)
{
	const struct sp_probe *prog = &p->prog;
	char words[200];
	int last = -1;

	for (int i = 0; i < prog->nfetch; i++) {
		const struct sp_fetch *f = &prog->fetch[i];
		const struct profile_arg *arg = &p->args[f->arg];

		if (f->arg != last)
			printf("      %-8s %-10s", arg->name, type_name(arg->type, arg->is_hex));
		else if (!(prog->fetch[i - 1].flags & SP_F_COND))
			printf("%26s", "or ");
		last = f->arg;
		fetch_print(f, words, sizeof(words));
		if (f->flags & SP_F_COND)
			printf("if (%s) ", words);
		else
			printf("%s\n", words);
	}
}

static void print_heads(const struct profile_probe *p)
{
	for (int i = 0; i < p->prog.nheads; i++) {
		const struct sp_head *h = &p->prog.head[i];

		if (h->kind == SP_HEAD_DIGITS)
			printf("      first frame a number");
		else
			printf("      first frame \"%.*s\"", h->len, h->lit);
		printf(", copied of its message: frames");
		for (int k = 0; k < 64; k++)
			if (h->copy >> k & 1)
				printf(" %d", k);
		printf("\n");
	}
}

static void print_event(const struct evt_spec *ev)
{
	printf("%s", sp_role_name(ev->role));
	for (int i = 0; i < ev->nfields; i++)
		printf(" %s=%s", ev->field[i].name, ev->field[i].value);
	for (int i = 0; i < ev->ncovers; i++)
		printf(" covers=%s", ev->covers[i]);
	for (int i = 0; i < ev->ndummy; i++)
		printf(" %s%s", i ? "" : "dummy if empty: ", ev->dummy[i]);
	printf("\n");
}

static void print_matches(const struct profile_probe *p)
{
	char text[400];

	if (!p->nmatch) {
		printf("      every hit: ");
		print_event(&p->event);
	}
	for (int i = 0; i < p->nmatch; i++) {
		const struct evt_match *m = &p->match[i];

		printf("      %s", p->is_frames ? "frames" : m->non ? "when" : "else");
		for (int k = 0; k < m->non; k++) {
			pattern_print(&m->on[k].pat, text, sizeof(text));
			printf(" %s = %s", p->args[m->on[k].arg].name, text);
		}
		for (int k = 0; k < m->nframes; k++) {
			pattern_print(&m->frames[k], text, sizeof(text));
			printf(" %s", text);
		}
		printf("%s\n        %s%s", m->frames_open ? " ..." : "", m->name ? m->name : "",
		       m->name ? ": " : "");
		print_event(&m->event);
	}
}

static void print_probe(const struct profile *p, const struct profile_probe *probe)
{
	uint32_t flags = probe->prog.flags;

	printf("\n    %-14s %-8s %-6s %s\n", probe->name, p->libs[probe->library].id,
	       on_names[probe->on], probe->symbol);
	if (!probe->required)
		printf("      may be missing\n");
	if (flags & SP_P_DROP_NEGATIVE)
		printf("      dropped when it returns less than 0\n");
	if (flags & SP_P_ON_CHANGE)
		printf("      told only when the answer for %s changes\n",
		       probe->args[probe->prog.op_arg].name);
	if (flags & SP_P_CLEAR_POLL)
		printf("      forgets the last answer for %s\n",
		       probe->args[probe->prog.op_arg].name);
	print_args(probe);
	print_heads(probe);
	print_matches(probe);
}

static void print_alts(const char *what, const struct py_alts *alts)
{
	char text[600];

	for (int i = 0; i < alts->n; i++) {
		py_query_print(&alts->query[i], text, sizeof(text));
		printf("      %-10s %s%s\n", i ? "" : what, i ? "or " : "", text);
	}
}

static void print_paths(const char *what, const struct py_path *path, int n)
{
	char text[300];

	for (int i = 0; i < n; i++) {
		py_path_print(&path[i], text, sizeof(text));
		printf("%s %s", i ? " or" : what, text);
	}
}

static void print_thread(const struct py_thread_spec *t)
{
	char text[600];

	printf("      %-10s a thread in %s", t->role == PY_THREAD_WORKER ? "worker" : "bootstrap",
	       t->frame);
	print_paths(", at work on", t->busy, t->nbusy);
	if (t->idle[0])
		printf(" unless in %s", t->idle);
	print_paths(", serves", t->serves, t->nserves);
	printf("\n");
	for (int i = 0; i < t->behind.n; i++) {
		py_query_print(&t->behind.query[i], text, sizeof(text));
		printf("%17s%s%s\n", "", i ? "or " : "behind it: ", text);
	}
}

static void print_states(const struct profile_python *py)
{
	const struct {
		const char *name;
		int64_t value;
	} states[] = {{"failed", py->states.failed},
		      {"bootstrap", py->states.bootstrap},
		      {"ready", py->states.ready},
		      {"moving", py->states.moving},
		      {"done", py->states.done}};
	const char *before = "      states    ";

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		if (states[i].value == PY_STATE_UNSET)
			continue;
		printf("%s %s %" PRId64, before, states[i].name, states[i].value);
		before = ",";
	}
	if (*before == ',')
		printf("\n");
}

/* The server's own view: what is looked for in its objects. */
static void print_python(const struct profile_python *py)
{
	printf("\n    PYTHON\n");
	for (int i = 0; i < py->nroots; i++)
		printf("      %-10s %s%s of a frame %s%s%s\n", i ? "" : "root", i ? "or " : "",
		       py->root[i].local, py->root[i].frame, py->root[i].type[0] ? ", a " : "",
		       py->root[i].type);
	for (int i = 0; i < py->nqueues; i++)
		print_alts(py->queue[i].name, &py->queue[i].alts);
	print_alts("status", &py->status);
	print_alts("announced", &py->announced);
	print_alts("backlog", &py->backlog);
	print_states(py);
	for (int i = 0; i < py->nthreads; i++)
		print_thread(&py->thread[i]);
}

/* Which processes, and which of their sockets. */
static void print_place(const struct sock_entry *e)
{
	static const char *const is[] = {"the process itself", "its parent", "an ancestor of it",
					 "a sibling of it"};
	const struct sp_sock_rule *rule = &e->rule;
	const char *before = "      in        ";

	for (unsigned i = 0; i < sizeof(is) / sizeof(is[0]); i++) {
		if (!(e->process.is >> i & 1))
			continue;
		printf("%s %s", before, is[i]);
		before = " or";
	}
	if (e->process.is != SOCK_IS_SELF)
		printf("%s", e->process.same_exe ? ", of the same program" : ", of any program");
	if (e->process.cmdline)
		printf(", with a command line %s", e->process.cmdline);
	printf("%s\n", e->process.listens ? ", that listens" : "");
	before = "      sockets   ";
	if (rule->bytes)
		printf("%s that begin with %s", before,
		       rule->decode == SP_DEC_HTTP ? "an HTTP request" : "a ZMTP greeting");
	if (rule->bytes)
		before = ",";
	if (rule->listen_lo)
		printf("%s accepted at port %u", before, rule->listen_lo);
	if (rule->listen_hi != rule->listen_lo)
		printf("-%u", rule->listen_hi);
	if (rule->listen_lo)
		before = ",";
	if (rule->peer_lo)
		printf("%s with port %u at the peer", before, rule->peer_lo);
	if (rule->peer_hi != rule->peer_lo)
		printf(" up to %u", rule->peer_hi);
	printf("\n");
}

static void print_http(const struct sock_entry *e)
{
	static const char *const names[] = {
		[SOCK_KEY_ROOM] = "room", [SOCK_KEY_HOST] = "host", [SOCK_KEY_RID] = "rid"};

	printf("      keys      ");
	for (int i = 0; i < SOCK_NKEYS; i++) {
		const struct sp_http_key *key = &e->rule.key[i];

		if (key->len)
			printf("%s %s = %.*s", i ? "," : "", names[i], key->len, key->name);
	}
	printf("\n");
	printf("      events     arrive%s%s\n", e->events & SOCK_TELLS_REPLY ? ", reply" : "",
	       e->events & SOCK_TELLS_GONE ? ", client-gone" : "");
	if (e->abort_path)
		printf("      abort      a request to %s with a rid\n", e->abort_path);
}

static void print_socket(const struct profile *p, const struct sock_entry *e)
{
	static const char *const ways[] = {
		[1 << SP_DIR_IN] = "in",
		[1 << SP_DIR_OUT] = "out",
		[1 << SP_DIR_IN | 1 << SP_DIR_OUT] = "both ways",
	};
	const struct profile_probe *probe = &p->probes[e->probe];
	bool http = e->rule.decode == SP_DEC_HTTP;

	printf("\n    %-23s %-6s %s\n", probe->name, http ? "http" : "zmtp",
	       http ? "requests in, replies out" : ways[e->rule.dirs]);
	print_place(e);
	if (http)
		print_http(e);
	if (e->same_as >= 0)
		printf("      same as    %s; of a message that both see, the %s's event counts, "
		       "the "
		       "%s's confirms it\n",
		       p->probes[e->same_as].name, e->wins == SOCK_WINS_SOCKET ? "socket" : "probe",
		       e->wins == SOCK_WINS_SOCKET ? "probe" : "socket");
	if (http)
		return;
	print_heads(probe);
	print_matches(probe);
}

static void print_probes(const struct profile *p)
{
	if (p->nuprobes)
		printf("\n    %-14s %-8s %-6s %s\n", "PROBE", "LIBRARY", "ON", "SYMBOL");
	else
		printf("\n    no probes: only %s%s%s watched\n",
		       p->python ? "the server's own view" : "",
		       p->python && p->sockets ? " and " : "", p->sockets ? "sockets are" : " is");
	for (int i = 0; i < p->nuprobes; i++)
		print_probe(p, &p->probes[i]);
	if (p->sockets)
		printf("\n    %-23s %-6s %s\n", "SOCKET", "SPEAKS", "DIRECTION");
	for (int i = 0; p->sockets && i < p->sockets->nentries; i++)
		print_socket(p, &p->sockets->entry[i]);
}

static void print_profile(const struct profile *p)
{
	printf("\nprofile %s\n", p->name);
	print_settings(p);
	print_probes(p);
	if (p->python)
		print_python(p->python);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	const char **file = state->input;

	if (key != ARGP_KEY_ARG)
		return ARGP_ERR_UNKNOWN;
	if (*file)
		return cli_usage("%s: one file at a time: check them one after the other", arg);
	*file = arg;
	return 0;
}

int cmd_check(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse,
		.args_doc = "[FILE]",
		.doc = "Validate a probes file and show the compiled probes.\v"
		       "Without FILE: the file that `watch` would take. Exit codes: 0 the file is "
		       "fine, 2 it is not (one line says where and why).",
	};
	const char *file = NULL;
	struct profile_file *pf = NULL;
	struct sp_err err = {0};
	int rc = cli_parse(&argp, argc, argv, &file);

	if (rc >= 0)
		return rc;
	if (profile_load(file, &pf, &err))
		return cli_fail(&err);
	printf("%s: fine, %d profile%s\n", pf->path, pf->nprofiles, pf->nprofiles == 1 ? "" : "s");
	for (int i = 0; i < pf->nprofiles; i++)
		print_profile(&pf->profiles[i]);
	profile_free(pf);
	return SP_EXIT_OK;
}
