// SPDX-License-Identifier: Apache-2.0
/* silentpin check [FILE]: validate a probes file and show what it compiles to. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/check.h"
#include "cli/cli.h"
#include "output/output.h"
#include "profile/notes.h"
#include "profile/profile.h"

struct check_opts {
	const char *file, *profile;
	bool summary;
};

static bool is_shown(const struct check_opts *o, const struct profile *p)
{
	return !o->profile || !strcmp(o->profile, p->name);
}

static bool is_of(const struct profile_probe *probe, const char *group)
{
	return probe->group && !strcmp(probe->group, group);
}

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
	for (int i = 0; i < py->nqueues; i++) {
		char name[sizeof(py->queue[i].name) + 1];

		snprintf(name, sizeof(name), "%s%s", py->queue[i].name,
			 py->queue[i].optional ? "?" : "");
		print_alts(name, &py->queue[i].alts);
	}
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

static void print_note(void *ctx, const char *text)
{
	printf("\n    note: %s\n", text);
}

/* Those of groups are printed once for all profiles that use them. */
static void print_probes(const struct profile *p)
{
	if (p->nuprobes)
		printf("\n    %-14s %-8s %-6s %s\n", "PROBE", "LIBRARY", "ON", "SYMBOL");
	else
		printf("\n    no probes: only %s%s%s watched\n",
		       p->python ? "the server's own view" : "",
		       p->python && p->sockets ? " and " : "", p->sockets ? "sockets are" : " is");
	for (int i = 0; i < p->nuprobes; i++)
		if (!p->probes[i].group)
			check_print_probe(p, &p->probes[i]);
	profile_notes(p, print_note, NULL);
	if (p->sockets)
		printf("\n    %-23s %-6s %s\n", "SOCKET", "SPEAKS", "DIRECTION");
	for (int i = 0; p->sockets && i < p->sockets->nentries; i++)
		print_socket(p, &p->sockets->entry[i]);
}

/* A line for each probe of a group, NULL: of none, sockets included. */
static void print_lines(const struct profile *p, const char *group)
{
	printf("\n    %-25s %-9s %-7s %-12s %s\n", "PROBE", "LIBRARY", "ON", "EVENTS", "SYMBOL");
	for (int i = 0; i < p->nprobes; i++)
		if (group ? is_of(&p->probes[i], group) : !p->probes[i].group)
			check_print_line(p, &p->probes[i]);
}

static void print_profile(const struct profile *p, bool summary)
{
	printf("\nprofile %s\n", p->name);
	print_settings(p);
	if (summary) {
		print_lines(p, NULL);
		profile_notes(p, print_note, NULL);
	} else {
		print_probes(p);
		if (p->python)
			print_python(p->python);
	}
}

/* ---- groups ------------------------------------------------------------------------------------
 */

static bool takes_room(const struct pattern *pat)
{
	for (int i = 0; i < pat->nparts; i++)
		if (pat->part[i].is_capture && !strcmp(pat->part[i].name, "room"))
			return true;
	return false;
}

/* Then what it compiles to depends on the profile's kind of room, and else on nothing of it. */
static bool group_takes_room(const struct profile *p, const char *group)
{
	bool takes = false;

	for (int i = 0; i < p->nuprobes; i++)
		for (int k = 0; is_of(&p->probes[i], group) && k < p->probes[i].nmatch; k++) {
			const struct evt_match *m = &p->probes[i].match[k];

			for (int n = 0; n < m->non; n++)
				takes |= takes_room(&m->on[n].pat);
			for (int n = 0; n < m->nframes; n++)
				takes |= takes_room(&m->frames[n]);
		}
	return takes;
}

static bool same_group(const struct profile *a, const struct profile *b, const char *group)
{
	bool uses = false;

	for (int i = 0; i < b->nuses; i++)
		uses |= !strcmp(b->uses[i], group);
	return uses && (a->room_u64 == b->room_u64 || !group_takes_room(a, group));
}

static void print_group(const struct profile_file *pf, const struct check_opts *o,
			const struct profile *p, const char *group)
{
	const char *before = "";

	for (const struct profile *q = pf->profiles; q < p; q++)
		if (is_shown(o, q) && same_group(p, q, group))
			return; /* it has been printed */
	printf("\ngroup %s, used by ", group);
	for (int i = 0; i < pf->nprofiles; i++) {
		if (!same_group(p, &pf->profiles[i], group))
			continue;
		printf("%s%s", before, pf->profiles[i].name);
		before = ", ";
	}
	printf("\n");
	if (o->summary) {
		print_lines(p, group);
		return;
	}
	printf("\n    %-14s %-8s %-6s %s\n", "PROBE", "LIBRARY", "ON", "SYMBOL");
	for (int i = 0; i < p->nuprobes; i++)
		if (is_of(&p->probes[i], group))
			check_print_probe(p, &p->probes[i]);
}

static void print_file(const struct profile_file *pf, const struct check_opts *o)
{
	for (int i = 0; i < pf->nprofiles; i++)
		if (is_shown(o, &pf->profiles[i]))
			print_profile(&pf->profiles[i], o->summary);
	for (int i = 0; i < pf->nprofiles; i++)
		for (int k = 0; is_shown(o, &pf->profiles[i]) && k < pf->profiles[i].nuses; k++)
			print_group(pf, o, &pf->profiles[i], pf->profiles[i].uses[k]);
}

/* ---- command line ------------------------------------------------------------------------------
 */

#define KEY_PROFILE 0x100
#define KEY_SUMMARY 0x101

static const struct argp_option options[] = {
	{.name = "profile",
	 .key = KEY_PROFILE,
	 .arg = "NAME",
	 .doc = "Show this profile only, with the groups it uses"},
	{.name = "summary",
	 .key = KEY_SUMMARY,
	 .doc = "Show a line for each probe: where it sits, what its events are"},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct check_opts *o = state->input;

	switch (key) {
	case KEY_PROFILE:
		o->profile = arg;
		return 0;
	case KEY_SUMMARY:
		o->summary = true;
		return 0;
	case ARGP_KEY_ARG:
		if (o->file)
			return cli_usage("%s: one file at a time: check them one after the other",
					 arg);
		o->file = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int cmd_check(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "[FILE]",
		.doc = "Validate a probes file and show the compiled probes, those of a group "
		       "once.\v"
		       "Without FILE: the file that `watch` would take. A note is no error: the "
		       "file means something, but perhaps not what was meant. Exit codes: 0 the "
		       "file is fine, 2 it is not (one line says where and why).",
	};
	struct check_opts o = {0};
	struct profile_file *pf = NULL;
	struct sp_err err = {0};
	int rc = cli_parse(&argp, argc, argv, &o);

	if (rc >= 0)
		return rc;
	if (profile_load(o.file, &pf, &err))
		return cli_fail(&err);
	if (o.profile && !profile_by_name(pf, o.profile)) {
		sp_err_set(&err, SP_EXIT_USAGE, -ENOENT,
			   "--profile %s: no such profile in %s: see `silentpin check --summary`",
			   o.profile, pf->path);
		profile_free(pf);
		return cli_fail(&err);
	}
	printf("%s: fine, %d profile%s\n", pf->path, pf->nprofiles, pf->nprofiles == 1 ? "" : "s");
	print_file(pf, &o);
	profile_free(pf);
	return SP_EXIT_OK;
}
