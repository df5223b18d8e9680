/* SPDX-License-Identifier: Apache-2.0 */
/* A recording on a table, with what the server's own view adds: its events, stacks. */
#ifndef STORE_VIEW_RIG_H
#define STORE_VIEW_RIG_H

#include "store_rig.h"

static inline struct sp_event held_event(const char *room, const char *queue, int64_t code,
					 uint64_t ns)
{
	struct sp_event ev = make_event(ROLE_HELD, room, ns);

	ev.probe = -1;
	ev.op = 0x7f0000001000;
	ev.code = code;
	snprintf(ev.kind, sizeof(ev.kind), "%s", queue);
	snprintf(ev.rid, sizeof(ev.rid), "req-1");
	return ev;
}

static inline void give(struct store *s, struct rig_life *x, const struct sp_event *ev)
{
	x->l.last_ns = ev->ns;
	store_event(s, ev, &x->l);
	store_life_changed(s, &x->l);
}

static inline void loose(struct store *s, enum sp_role role, const char *kind, const char *room,
			 uint64_t ns)
{
	struct sp_event ev = make_event(role, room, ns);

	snprintf(ev.kind, sizeof(ev.kind), "%s", kind);
	store_event(s, &ev, NULL);
}

/* ---- stacks -------------------------------------------------------------------------------- */

struct stacks {
	char text[4096];
	int n, lines;
};

static inline bool on_stack(void *ctx, const struct rec_stack *st)
{
	struct stacks *x = ctx;
	size_t at = strlen(x->text);

	at += (size_t)snprintf(x->text + at, sizeof(x->text) - at,
			       "%llu %u %u %s:", (unsigned long long)(st->ns - START), st->pid,
			       st->tid, st->name);
	for (int i = 0; i < st->nlines && i < 3; i++)
		at += (size_t)snprintf(x->text + at, sizeof(x->text) - at, " %s", st->line[i]);
	snprintf(x->text + at, sizeof(x->text) - at, "; ");
	x->n++;
	x->lines = st->nlines;
	return true;
}

static inline struct stacks read_stacks(const struct rig *r, const char *room)
{
	struct stacks x = {0};
	struct read_back b = {0};
	struct recording *rec = rig_open(r);
	struct sp_err err = {0};

	assert_int_equal(rec_lives(rec, room, 0, 0, back_life, &b, &err), 0);
	assert_int_equal(b.nlives, 1);
	assert_int_equal(rec_stacks(rec, &b.life[0], on_stack, &x, &err), 0);
	rec_close(rec);
	back_free(&b);
	return x;
}

static inline void give_stack(struct store *s, struct rig_life *x, uint64_t ns, uint32_t tid,
			      const char *first)
{
	char a[64], b[] = "loop.py:40 event\xff_loop";
	char *const line[] = {a, b};

	snprintf(a, sizeof(a), "%s", first);
	store_stack(s, &x->l, ns, 4242, tid, "worker", line, 2);
}

#endif
