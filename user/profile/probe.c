// SPDX-License-Identifier: Apache-2.0
/* One probe: where it sits, and the flags that the kernel side follows. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile_priv.h"

static int read_on(const struct reader *r, const struct ynode *map, struct profile_probe *p)
{
	static const char *const words[] = {"entry", "return", "ret", NULL};
	const struct ynode *n = ynode_get(map, "on");
	unsigned which = 0;
	int rc = n ? read_word(r, n, "on", words, &which) : 0;

	p->on = (enum probe_on)which;
	return rc;
}

/* Whether the glob can name a C++ function (an Itanium-mangled name begins with _Z). */
static bool may_be_cxx(const char *glob)
{
	const char *head = "_Z";

	for (; *head; head++, glob++) {
		if (*glob == '*' || *glob == '?' || *glob == '[' || *glob == '\\')
			return true;
		if (*glob != *head)
			return false;
	}
	return true;
}

/* A return probe moves the return address, and an exception that crosses its frame is then fatal
 * to the traced process: a person must vouch for the function. */
static int read_nothrow(const struct reader *r, const struct ynode *map, struct profile_probe *p)
{
	const struct ynode *n = ynode_get(map, "nothrow");
	const char *reason;
	int rc;

	if (n && n->kind == YNODE_SCALAR && n->plain &&
	    (!strcmp(n->text, "true") || !strcmp(n->text, "false"))) {
		p->nothrow = n->text[0] == 't';
	} else if (n) {
		rc = read_text(r, n, "nothrow", &reason);
		if (rc)
			return rc;
		if (!reason[strspn(reason, " \t")])
			return bad_at(r, n->mark, "nothrow is empty: say why it cannot throw");
		p->nothrow = true;
	}
	if (p->on != ON_RETURN || p->nothrow || (p->symbol && !may_be_cxx(p->symbol)))
		return 0;
	n = ynode_get(map, "on");
	if (!p->symbol)
		return bad_at(
			r, n->mark,
			"on: return with pointer: nobody knows whether an exception can cross "
			"that function, which would kill the process: use on: ret, or say "
			"nothrow: \"why it cannot throw\"");
	return bad_at(r, n->mark,
		      "on: return on a C++ function (%.48s): an exception that crosses it would "
		      "kill the process: use on: ret, or say nothrow: \"why it cannot throw\"",
		      p->symbol);
}

/* By its name, or by a pointer to it. */
static int read_function(const struct reader *r, const struct ynode *map, struct profile_probe *p)
{
	const struct ynode *pointer = ynode_get(map, "pointer");
	struct ynode *n = ynode_get(map, "symbol");
	int rc = 0;

	if (pointer && n)
		return bad_at(
			r, pointer->mark,
			"symbol and pointer in one probe: pointer is for a function without a "
			"symbol: keep one");
	if (pointer)
		return read_pointers(r, pointer, p);
	if (!n)
		rc = need_key(r, map, "the probe", "symbol", &n);
	if (!rc)
		rc = read_glob(r, n, "symbol", &p->symbol);
	if (!rc && !p->symbol[strspn(p->symbol, "*?")])
		rc = bad_at(r, n->mark, "symbol would match every function: name the function");
	return rc;
}

static int read_place(const struct reader *r, const struct ynode *map, struct profile_probe *p)
{
	struct ynode *n;
	const char *text;
	int rc = need_key(r, map, "the probe", "name", &n);

	if (!rc)
		rc = read_name(r, n, "a probe's name", &text);
	if (!rc)
		rc = read_copy(r, n, "name", &p->name);
	if (!rc)
		rc = need_key(r, map, "the probe", "library", &n);
	if (!rc)
		rc = read_text(r, n, "library", &text);
	if (rc)
		return rc;
	p->library = lib_by_id(r->profile, text);
	if (p->library < 0)
		return bad_at(r, n->mark,
			      "library \"%.32s\" is not among libraries: add it there or correct "
			      "the name",
			      text);
	rc = read_function(r, map, p);
	if (!rc)
		rc = read_on(r, map, p);
	if (!rc)
		rc = read_nothrow(r, map, p);
	p->required = true;
	n = ynode_get(map, "required");
	if (!rc && n)
		rc = read_bool(r, n, "required", &p->required);
	return rc;
}

/* How codes read here: as it says itself, else as its group or profile does. */
static int read_own_status(const struct reader *r, const struct ynode *map, struct profile_probe *p)
{
	const struct ynode *n = ynode_get(map, "status");
	struct status_spec *s;

	p->status = r->status;
	if (!n)
		return 0;
	p->status = r->profile->nstatuses;
	s = status_add(r->profile);
	return s ? read_status(r, n, s) : no_memory(r);
}

/* Whether it is attached, and whether a thread may stay in it for long. */
static int read_nature(const struct reader *r, const struct ynode *map, struct profile_probe *p)
{
	const struct ynode *enabled = ynode_get(map, "enabled"), *waits = ynode_get(map, "waits");
	bool on = true;
	int rc = 0;

	p->waits = ynode_get(map, "messages") && p->on != ON_ENTRY;
	if (enabled)
		rc = read_bool(r, enabled, "enabled", &on);
	p->off = !on;
	if (!rc && waits)
		rc = read_bool(r, waits, "waits", &p->waits);
	if (!rc && waits && p->waits && p->on == ON_ENTRY)
		rc = bad_at(r, waits->mark,
			    "waits: with on: entry nobody sees how long a call takes: set on: ret "
			    "or on: return, or remove it");
	return rc;
}

static int programs_of(const struct profile_probe *p, int arg)
{
	int n = 0;

	for (int i = 0; i < p->prog.nfetch; i++)
		n += p->prog.fetch[i].arg == arg;
	return n;
}

int read_arg_ref(const struct reader *r, const struct ynode *n, const char *what,
		 const struct profile_probe *p, bool composite, uint8_t *out)
{
	const char *text;
	int rc = read_text(r, n, what, &text);
	int arg;

	if (rc)
		return rc;
	arg = arg_by_name(p, text);
	if (arg < 0)
		return bad_at(r, n->mark, "%s: no argument is named \"%.32s\": declare it in args",
			      what, text);
	if (p->args[arg].is_composite != composite)
		return bad_at(r, n->mark, "%s: argument %s must be a %s", what, text,
			      composite ? "message (type zmqmsg)" : "number");
	if (programs_of(p, arg) != 1)
		return bad_at(r, n->mark,
			      "%s: argument %s must have one fetch, without alternatives or if",
			      what, text);
	*out = (uint8_t)arg;
	return 0;
}

static int read_more(const struct reader *r, const struct ynode *map, struct profile_probe *p)
{
	static const char *const keys[] = {"arg", "mask", NULL};
	struct ynode *arg, *mask;
	uint64_t v;
	int rc = need_map(r, map, "more");

	if (!rc)
		rc = read_keys(r, map, "more", keys);
	if (!rc)
		rc = need_key(r, map, "more", "arg", &arg);
	if (!rc)
		rc = read_arg_ref(r, arg, "more", p, false, &p->prog.more_arg);
	if (!rc)
		rc = need_key(r, map, "more", "mask", &mask);
	if (!rc)
		rc = read_u64(r, mask, "mask", UINT32_MAX, &v);
	if (!rc && !v)
		rc = bad_at(r, mask->mark, "mask must have a bit set");
	if (!rc)
		p->prog.more_mask = (uint32_t)v;
	return rc;
}

static int read_frame_keys(const struct reader *r, const struct ynode *map, struct profile_probe *p)
{
	static const char *const keys[] = {"frame", "socket", "more", NULL};
	struct ynode *messages = ynode_get(map, "messages"), *n;
	int rc;

	if (!messages) {
		for (size_t i = 0; keys[i]; i++)
			if (ynode_get(map, keys[i]))
				return bad_at(r, ynode_get(map, keys[i])->mark,
					      "%s is for probes with messages: remove it or add "
					      "messages",
					      keys[i]);
		return 0;
	}
	if (ynode_get(map, "match"))
		return bad_at(r, messages->mark, "match and messages in one probe: keep one");
	rc = need_key(r, map, "a probe with messages", "frame", &n);
	if (!rc)
		rc = read_arg_ref(r, n, "frame", p, true, &p->prog.frame_arg);
	if (!rc && p->args[p->prog.frame_arg].type != SP_T_ZMQMSG)
		rc = bad_at(r, n->mark, "frame: argument %s must be a message (type zmqmsg)",
			    p->args[p->prog.frame_arg].name);
	if (!rc)
		rc = need_key(r, map, "a probe with messages", "socket", &n);
	if (!rc)
		rc = read_arg_ref(r, n, "socket", p, false, &p->prog.sock_arg);
	n = rc ? NULL : ynode_get(map, "more");
	if (n)
		rc = read_more(r, n, p);
	if (!rc) {
		p->is_frames = true;
		p->prog.flags |= SP_P_FRAMES;
	}
	return rc;
}

/* A result that is no event, dropped where it costs next to nothing. */
static int read_skip(const struct reader *r, const struct ynode *map, struct profile_probe *p,
		     const char *key, uint32_t flag)
{
	const struct ynode *n = ynode_get(map, key);
	bool yes = false;
	int rc = n ? read_bool(r, n, key, &yes) : 0;

	if (!rc && yes && p->on == ON_ENTRY)
		return bad_at(r, n->mark, "%s needs the return value: set on: ret or on: return",
			      key);
	if (yes)
		p->prog.flags |= flag;
	return rc;
}

static int read_flags(const struct reader *r, const struct ynode *map, struct profile_probe *p)
{
	const struct ynode *n;
	int rc = read_skip(r, map, p, "skip_negative", SP_P_DROP_NEGATIVE);

	if (!rc)
		rc = read_skip(r, map, p, "skip_zero", SP_P_DROP_ZERO);
	n = ynode_get(map, "on_change");
	if (rc || !n)
		return rc;
	if (p->on == ON_ENTRY)
		return bad_at(r, n->mark,
			      "on_change needs the return value: set on: ret or on: return");
	rc = read_arg_ref(r, n, "on_change", p, false, &p->prog.op_arg);
	p->prog.flags |= SP_P_ON_CHANGE;
	return rc;
}

static bool opens_or_ends_op(const struct profile_probe *p)
{
	bool yes = p->event.role == ROLE_POST || p->event.role == ROLE_CLOSE;

	for (int i = 0; i < p->nmatch; i++)
		yes |= p->match[i].event.role == ROLE_POST || p->match[i].event.role == ROLE_CLOSE;
	return yes;
}

/* Handles are reused: what opens or ends an operation makes its last answer void. */
static void set_clear_poll(struct profile_probe *p)
{
	int op = arg_by_name(p, "op");

	/* of a probe of elements the kernel side looks at no handle before it walks */
	if (op < 0 || p->args[op].is_composite || (p->prog.flags & SP_P_EACH) ||
	    (p->prog.flags & SP_P_ON_CHANGE) || !opens_or_ends_op(p))
		return;
	p->prog.flags |= SP_P_CLEAR_POLL;
	p->prog.op_arg = (uint8_t)op;
}

static int read_meaning(const struct reader *r, const struct ynode *map, struct profile_probe *p)
{
	const struct ynode *match = ynode_get(map, "match"), *messages = ynode_get(map, "messages");
	const struct ynode *event = ynode_get(map, "event");
	int rc = 0;

	if (event)
		rc = read_event(r, event, &p->event);
	if (rc)
		return rc;
	if (match)
		return read_match(r, match, p);
	if (messages)
		return read_messages(r, messages, p);
	if (!event)
		return bad_at(r, map->mark, "the probe has no event: say what a hit means");
	return check_event(r, p, NULL, &p->event);
}

static void save_for(struct sp_probe *prog, const struct sp_fetch *f)
{
	for (int k = 0; k < f->nops; k++)
		if (f->op[k].code == SP_OP_ARG && f->op[k].n > prog->nsaved)
			prog->nsaved = f->op[k].n;
}

/* What an entry keeps for the return. */
static void set_saved(struct profile_probe *p)
{
	if (p->on == ON_ENTRY)
		return;
	for (int i = 0; i < p->prog.nfetch; i++)
		save_for(&p->prog, &p->prog.fetch[i]);
	for (int i = 0; i < p->each.nlevels; i++) {
		save_for(&p->prog, &p->each.level[i].base);
		save_for(&p->prog, &p->each.level[i].count);
		save_for(&p->prog, &p->each.level[i].number);
	}
	save_for(&p->prog, &p->each.only);
	save_for(&p->prog, &p->each.asks);
	save_for(&p->prog, &p->each.refused);
}

int read_probe(const struct reader *r, const struct ynode *map, struct profile_probe *p)
{
	static const char *const keys[] = {
		"name",    "library",       "symbol",    "on",        "nothrow", "required",
		"args",    "match",         "messages",  "frame",     "socket",  "more",
		"event",   "skip_negative", "on_change", "skip_zero", "enabled", "scope",
		"waits",   "status",        "each",      "only",      "events",  "tally",
		"pointer", "instead_of",    NULL,
	};
	const struct ynode *args;
	int rc = need_map(r, map, "a probe");

	p->mark = map->mark;
	p->socket = -1;
	p->group = r->group;
	if (!rc)
		rc = read_keys(r, map, "a probe", keys);
	if (!rc)
		rc = read_place(r, map, p);
	if (!rc)
		rc = read_own_status(r, map, p);
	if (!rc)
		rc = read_nature(r, map, p);
	if (!rc)
		rc = read_each(r, map, p);
	args = rc ? NULL : ynode_get(map, "args");
	if (args)
		rc = read_args(r, args, p);
	if (!rc)
		rc = read_each_more(r, map, p);
	if (!rc)
		rc = read_flags(r, map, p);
	if (!rc)
		rc = read_frame_keys(r, map, p);
	if (!rc)
		rc = read_meaning(r, map, p);
	if (!rc)
		rc = read_scope(r, map, p);
	if (rc)
		return rc;
	set_clear_poll(p);
	set_saved(p);
	return 0;
}

void probe_clear(struct profile_probe *p)
{
	for (int i = 0; i < p->nmatch; i++)
		match_clear(&p->match[i]);
	free(p->match);
	event_free(&p->event);
	for (int i = 0; i < p->npointers; i++)
		free(p->pointer[i].function);
	free(p->pointer);
	free(p->name);
	free(p->symbol);
}
