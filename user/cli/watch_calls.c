// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/watch.h"
#include "cli/watch_calls.h"
#include "util/clock.h"
#include "util/log.h"

/* What has lasted for half a second is looked at; from one second on it is told. */
#define CALLS_EVERY_NS (500 * NS_PER_MS)
#define CALLS_OLD_NS   (500 * NS_PER_MS)

struct gathered {
	struct attach_inside *in;
	struct attach_tally *tally;
	int nin, ntally;
};

/* One more item: the list doubles at each power of two. NULL: no memory, the list is as it was. */
static void *room_for(void *list, size_t size, int n)
{
	return n & (n + 1) ? list : realloc(list, size * ((size_t)n + 1) * 2);
}

static void take_inside(void *ctx, const struct attach_inside *in)
{
	struct gathered *g = ctx;
	struct attach_inside *list = room_for(g->in, sizeof(*list), g->nin);

	if (!list)
		return;
	g->in = list;
	g->in[g->nin++] = *in;
}

static void take_tally(void *ctx, const struct attach_tally *t)
{
	struct gathered *g = ctx;
	struct attach_tally *list = room_for(g->tally, sizeof(*list), g->ntally);

	if (!list)
		return;
	g->tally = list;
	g->tally[g->ntally++] = *t;
}

void watch_calls_turn(struct watch *w, uint64_t now_ns)
{
	struct gathered g = {0};

	if (w->o.no_uprobes || now_ns < w->calls.next_ns)
		return;
	w->calls.next_ns = now_ns + CALLS_EVERY_NS;
	if (attach_inside(w->attach, now_ns - CALLS_OLD_NS, take_inside, &g) >= 0)
		collect_inside(w->collect, g.in, g.nin, now_ns);
	if (w->profile->ntallies && attach_tallies(w->attach, take_tally, &g) >= 0)
		collect_tallies(w->collect, g.tally, g.ntally, now_ns);
	free(g.in);
	free(g.tally);
}

static struct watch_call *call_of(struct watch_calls *c, uint32_t pid, int probe)
{
	for (int i = 0; i < c->n; i++)
		if (c->of[i].pid == pid && c->of[i].probe == probe)
			return &c->of[i];
	if (c->n == WATCH_CALLS_MAX) {
		c->more = true;
		return NULL;
	}
	c->of[c->n] = (struct watch_call){.pid = pid, .probe = probe};
	return &c->of[c->n++];
}

void watch_calls_event(struct watch *w, const struct sp_event *ev)
{
	struct watch_call *c;

	if (ev->role != ROLE_CALL || strcmp(ev->kind, "count") != 0 || ev->probe < 0 || ev->room[0])
		return;
	c = call_of(&w->calls, ev->pid, ev->probe);
	if (!c)
		return;
	c->n += ev->count;
	c->bytes += ev->bytes;
	c->failed += (uint64_t)ev->code;
}

static int tell_one(const struct watch *w, const struct watch_call *c, char *buf, size_t len)
{
	char bytes[32] = "", failed[40] = "";

	if (c->bytes)
		snprintf(bytes, sizeof(bytes), " (%.1f MiB)", (double)c->bytes / (1 << 20));
	if (c->failed)
		snprintf(failed, sizeof(failed), ", %" PRIu64 " failed", c->failed);
	return snprintf(buf, len, "%s %" PRIu64 "%s%s", w->profile->probes[c->probe].name, c->n,
			bytes, failed);
}

void watch_calls_tell(const struct watch *w)
{
	const struct watch_calls *c = &w->calls;

	for (int i = 0; i < c->n; i++) {
		char line[512];
		size_t n = 0;
		bool first = true;

		for (int k = 0; k < i; k++)
			first &= c->of[k].pid != c->of[i].pid;
		if (!first)
			continue;
		for (int k = i; k < c->n && n < sizeof(line) - 2; k++) {
			if (c->of[k].pid != c->of[i].pid)
				continue;
			if (n)
				n += (size_t)snprintf(line + n, sizeof(line) - n, ", ");
			n += (size_t)tell_one(w, &c->of[k], line + n, sizeof(line) - n);
		}
		pr_info("pid %u: calls that belong to no room: %s%s", c->of[i].pid, line,
			c->more ? " (and others)" : "");
	}
}
