// SPDX-License-Identifier: Apache-2.0
/* silentpin check [FILE]: validate a probes file and show what it compiles to. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/check.h"
#include "cli/cli.h"
#include "output/output.h"
#include "profile/profile.h"

/* Is a peer told how a room ended? Where nothing else says what is needed, that is its end. */
static bool tells_end(const struct profile *p)
{
	for (int i = 0; i < p->nprobes; i++) {
		if (p->probes[i].event.role == ROLE_TOLD)
			return true;
		for (int k = 0; k < p->probes[i].nmatch; k++)
			if (p->probes[i].match[k].event.role == ROLE_TOLD)
				return true;
	}
	return false;
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
		printf("%s %s %s%s", s > STAGE_BOOTSTRAP ? "," : "", sp_stage_name(s),
		       p->stage_ns[s] ? span : "never", p->delayed[s] ? " (delayed)" : "");
	}
	printf("\n  done       %s", p->nneeds      ? ""
				    : tells_end(p) ? "(when its peers are told how it ended)"
						   : "(all posted operations complete)");
	for (int i = 0; i < p->nneeds; i++)
		printf("%s%s%s", i ? ", " : "", p->needs[i].kind,
		       p->needs[i].last   ? ".last"
		       : p->needs[i].once ? ".once"
					  : "");
	printf("\n  status    ");
	check_print_status(&p->statuses[0]);
	for (int i = 0; i < p->nuses; i++)
		printf("%s%s%s", i ? ", " : "  groups     ", p->uses[i],
		       i == p->nuses - 1 ? "\n" : "");
	for (int i = 0; i < p->nlibs; i++) {
		printf("  library    %s: ", p->libs[i].id);
		for (int k = 0; k < p->libs[i].nfiles; k++)
			printf("%s%s", k ? " or " : "", p->libs[i].file[k]);
		printf("\n");
	}
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
	check_print_messages(probe);
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
		check_print_probe(p, &p->probes[i]);
	check_print_notes(p);
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
