// SPDX-License-Identifier: Apache-2.0
/* A probe in words: where it sits, what it fetches, what it means. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/check.h"

static const char *const on_names[] = {
	[ON_ENTRY] = "entry",
	[ON_RETURN] = "return",
	[ON_RET] = "ret",
};

static void print_range(const char *what, const struct status_range *r)
{
	if (r->lo > r->hi)
		printf(" %s never", what);
	else if (r->lo == INT64_MIN)
		printf(" %s <%" PRId64, what, r->hi + 1);
	else if (r->hi == INT64_MAX)
		printf(" %s >%" PRId64, what, r->lo - 1);
	else if (r->lo == r->hi)
		printf(" %s %" PRId64, what, r->lo);
	else
		printf(" %s %" PRId64 "..%" PRId64, what, r->lo, r->hi);
}

void check_print_status(const struct status_spec *s)
{
	print_range("done", &s->done);
	printf(",");
	print_range("busy", &s->busy);
	printf(",");
	print_range("error", &s->error);
	if (s->nnames)
		printf("; %d named", s->nnames);
	printf("\n");
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

void check_print_messages(const struct profile_probe *probe)
{
	print_heads(probe);
	print_matches(probe);
}

static void print_pointers(const struct profile *p, const struct profile_probe *probe)
{
	char words[200];

	for (int i = 0; i < probe->npointers; i++) {
		const struct probe_pointer *ptr = &probe->pointer[i];
		const char *lib = p->libs[ptr->library].id;

		if (ptr->at_call) {
			fetch_print(&ptr->fetch, words, sizeof(words));
			printf("      found when %s (%s) returns: %s\n", ptr->function, lib, words);
			continue;
		}
		printf("      found in the file: the table in argument %d of %s (%s),",
		       ptr->argument, ptr->function, lib);
		if (ptr->copied_to)
			printf(" the entry copied to %+" PRId64 "%s", ptr->copied_to,
			       ptr->slot >= 0 ? ", else" : "");
		if (ptr->slot >= 0)
			printf(" the entry at %+" PRId64, ptr->slot);
		printf("\n");
	}
}

static void print_level(const struct sp_each_level *l, const char *before)
{
	char base[200], count[200], number[200];

	fetch_print(&l->base, base, sizeof(base));
	fetch_print(&l->count, count, sizeof(count));
	fetch_print(&l->number, number, sizeof(number));
	printf("      %s", before);
	if (l->kind == SP_EACH_LIST)
		printf(" of the list from (%s), the next one's address at %+d\n", base, l->next);
	else if (l->kind == SP_EACH_COUNT)
		printf(" of the array from (%s), as many as (%s), %u bytes each\n", base, count,
		       l->stride);
	else if (l->stride)
		printf(" of the array from (%s) to (%s), %u bytes each\n", base, count, l->stride);
	else
		printf(" of the array from (%s) to (%s), of (%s) equal parts\n", base, count,
		       number);
}

static void print_each(const struct profile *p, const struct profile_probe *probe)
{
	static const char *const does[] = {[SP_TALLY_POST] = "counts what is posted",
					   [SP_TALLY_DONE] = "counts what is completed",
					   [SP_TALLY_END] = "ends what is posted"};
	const struct sp_each *e = &probe->each;
	char words[200];

	if (!e->nlevels)
		return;
	print_level(&e->level[0], "for each element");
	if (e->nlevels > 1)
		print_level(&e->level[1], "and in it, each element");
	if (e->has_only) {
		fetch_print(&e->only, words, sizeof(words));
		printf("      told only if (%s)\n", words);
	}
	printf("      told %s\n", e->first ? "once for all of them, with their number as count"
					   : "for every one of them");
	if (!e->tally)
		return;
	printf("      %s in each %s, by %s", does[e->tally], p->tallies[e->tally_id].name,
	       probe->args[e->tally_arg].name);
	if (e->has_within)
		printf(" within %s", probe->args[e->within_arg].name);
	if (e->has_asks) {
		fetch_print(&e->asks, words, sizeof(words));
		printf(", %sonly if (%s)",
		       e->tally == SP_TALLY_POST ? "a completion will come " : "", words);
	}
	printf("\n");
	if (e->has_refused) {
		fetch_print(&e->refused, words, sizeof(words));
		printf("      of a call that failed, what lies before (%s) counts as posted\n",
		       words);
	}
}

/* Whose room, and whether anybody looks. */
static void print_scope(const struct profile *p, const struct profile_probe *probe)
{
	if (probe->instead_of)
		printf("      takes the place of %s where it is found\n",
		       p->probes[probe->instead_of - 1].name);
	if (probe->group)
		printf("      of group %s\n", probe->group);
	if (probe->off)
		printf("      off unless enabled: watch --enable %s\n", probe->name);
	if (!probe->required)
		printf("      may be missing\n");
	if (probe->waits)
		printf("      waits: to be in it for long is no fault\n");
	if (probe->scope != SCOPE_NONE)
		printf("      without a room: that of the call around it on its thread%s, else "
		       "none\n",
		       probe->scope == SCOPE_THREAD ? ", else the one its thread works for" : "");
	if (probe->prog.flags & SP_P_SCOPE)
		printf("      calls inside it belong to its room\n");
}

static const char *symbol_of(const struct profile_probe *probe)
{
	return probe->symbol ? probe->symbol : "(no symbol: by pointer)";
}

static void list_roles(const struct profile_probe *probe, char *buf, size_t len)
{
	bool seen[ROLE_MAX] = {false};
	size_t n = 0;

	for (int i = 0; (i < probe->nmatch || !i) && n < len; i++) {
		enum sp_role role = probe->nmatch ? probe->match[i].event.role : probe->event.role;

		if (!seen[role])
			n += (size_t)snprintf(buf + n, len - n, "%s%s", i ? "," : "",
					      sp_role_name(role));
		seen[role] = true;
	}
}

void check_print_line(const struct profile *p, const struct profile_probe *probe)
{
	bool uprobe = probe->library >= 0;
	char roles[120];

	list_roles(probe, roles, sizeof(roles));
	if (!uprobe) {
		printf("    %-25s %-9s %-7s %s\n", probe->name, "", "socket", roles);
		return;
	}
	printf("    %-25s %-9s %-7s %-12s %s%s%s\n", probe->name, p->libs[probe->library].id,
	       on_names[probe->on], roles, symbol_of(probe),
	       probe->off ? ", off unless enabled" : "", probe->required ? "" : ", may be missing");
}

void check_print_probe(const struct profile *p, const struct profile_probe *probe)
{
	uint32_t flags = probe->prog.flags;

	printf("\n    %-14s %-8s %-6s %s\n", probe->name, p->libs[probe->library].id,
	       on_names[probe->on], symbol_of(probe));
	print_pointers(p, probe);
	print_scope(p, probe);
	if (flags & SP_P_DROP_NEGATIVE)
		printf("      dropped when it returns less than 0\n");
	if (flags & SP_P_DROP_ZERO)
		printf("      dropped when it returns 0\n");
	if (flags & SP_P_ON_CHANGE)
		printf("      told only when the answer for %s changes\n",
		       probe->args[probe->prog.op_arg].name);
	if (flags & SP_P_CLEAR_POLL)
		printf("      forgets the last answer for %s\n",
		       probe->args[probe->prog.op_arg].name);
	print_each(p, probe);
	print_args(probe);
	if (probe->status) {
		printf("      its codes:");
		check_print_status(&p->statuses[probe->status]);
	}
	check_print_messages(probe);
}
