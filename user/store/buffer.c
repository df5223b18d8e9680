// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "store/buffer.h"

#define PLACE_BYTES sizeof(void *) /* of one element of batch.ev */

bool seqs_add(struct seqs *s, uint64_t seq)
{
	uint64_t delta = seq - s->last;

	if (!s->first) {
		s->first = s->last = seq;
		return true;
	}
	if (s->len + 10 > s->cap) {
		uint32_t cap = s->cap ? s->cap * 2 : 32;
		uint8_t *buf = realloc(s->buf, cap);

		if (!buf)
			return false;
		s->buf = buf;
		s->cap = cap;
	}
	for (; delta >= 0x80; delta >>= 7)
		s->buf[s->len++] = (uint8_t)(delta | 0x80);
	s->buf[s->len++] = (uint8_t)delta;
	s->last = seq;
	return true;
}

bool seqs_next(const struct seqs *s, uint32_t *at, uint64_t *seq)
{
	uint64_t delta = 0;
	unsigned int shift = 0;

	if (!*seq) {
		*seq = s->first;
		return s->first != 0;
	}
	if (*at >= s->len)
		return false;
	for (;; shift += 7) {
		uint8_t byte = s->buf[(*at)++];

		delta |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			break;
	}
	*seq += delta;
	return true;
}

void seqs_free(struct seqs *s)
{
	free(s->buf);
	*s = (struct seqs){0};
}

struct batch *batch_new(uint64_t base)
{
	struct batch *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->base = base;
	b->lives_tail = &b->lives;
	b->alerts_tail = &b->alerts;
	b->stacks_tail = &b->stacks;
	return b;
}

static size_t event_bytes(const struct pending_event *p)
{
	size_t n = sizeof(*p) + PT_MAX;

	for (int i = 0; i < PT_MAX; i++)
		n += p->len[i];
	return n;
}

static void free_event(struct batch *b, size_t i)
{
	if (!b->ev[i])
		return;
	b->bytes -= event_bytes(b->ev[i]);
	free(b->ev[i]);
	b->ev[i] = NULL;
}

static void free_life(struct batch *b)
{
	struct life_row *l = b->lives;

	b->lives = l->next;
	if (!b->lives)
		b->lives_tail = &b->lives;
	b->bytes -= sizeof(*l);
	free(l->verdict);
	free(l);
}

static void free_alert(struct batch *b)
{
	struct alert_row *a = b->alerts;

	b->alerts = a->next;
	if (!b->alerts)
		b->alerts_tail = &b->alerts;
	b->bytes -= sizeof(*a);
	free(a);
}

static size_t stack_bytes(const struct stack_row *s)
{
	return sizeof(*s) + strlen(s->frames) + 1;
}

static void free_stack(struct batch *b)
{
	struct stack_row *s = b->stacks;

	b->stacks = s->next;
	if (!b->stacks)
		b->stacks_tail = &b->stacks;
	b->bytes -= stack_bytes(s);
	free(s);
}

void batch_free_rows(struct batch *b)
{
	while (b->lives)
		free_life(b);
	while (b->alerts)
		free_alert(b);
	while (b->stacks)
		free_stack(b);
	b->bytes -= b->ndel * sizeof(*b->del);
	b->ndel = 0;
}

void batch_free_events(struct batch *b, size_t upto)
{
	for (; b->head < upto; b->head++) {
		free_event(b, b->head);
		b->bytes -= PLACE_BYTES; /* the place counts even when its event was dropped */
	}
}

void batch_free(struct batch *b)
{
	if (!b)
		return;
	batch_free_rows(b);
	batch_free_events(b, b->n);
	free(b->del);
	free(b->ev);
	free(b);
}

bool batch_empty(const struct batch *b)
{
	return b->head == b->n && !b->lives && !b->alerts && !b->stacks && !b->ndel;
}

/* Room for one more; what has been dropped at the front is used first. */
static bool grow_events(struct batch *b)
{
	struct pending_event **ev;
	size_t cap = b->cap ? b->cap * 2 : 1024;

	if (b->n < b->cap)
		return true;
	if (b->head > b->cap / 2) {
		memmove(b->ev, b->ev + b->head, (b->n - b->head) * PLACE_BYTES);
		b->base += b->head;
		b->n -= b->head;
		b->head = 0;
		return true;
	}
	ev = realloc(b->ev, cap * PLACE_BYTES);
	if (!ev)
		return false;
	b->ev = ev;
	b->cap = cap;
	return true;
}

bool batch_event(struct batch *b, const struct sp_event *ev, uint64_t ns, uint64_t life_row,
		 const char *room)
{
	const char *text[PT_MAX] = {room,    ev->kind, ev->peer,  ev->agent,
				    ev->rid, ev->note, ev->object};
	uint8_t len[PT_MAX];
	struct pending_event *p;
	size_t bytes = sizeof(*p) + PT_MAX;
	char *at;

	for (int i = 0; i < PT_MAX; i++) {
		len[i] = (uint8_t)strnlen(text[i], SP_ROOM_MAX - 1);
		bytes += len[i];
	}
	if (!grow_events(b))
		return false;
	p = malloc(bytes);
	if (!p)
		return false;
	*p = (struct pending_event){
		.ns = ns,
		.at_ns = ev->ns < ns ? ev->ns : 0,
		.bytes = ev->bytes,
		.took_ns = ev->took_ns,
		.count = ev->count,
		.op = ev->op,
		.life = life_row,
		.code = ev->code,
		.pid = ev->pid,
		.tid = ev->tid,
		.covers = ev->covers,
		.chunk = ev->chunk,
		.part = ev->part,
		.parts = ev->parts,
		.need = ev->need,
		.probe = ev->probe,
		.rank = ev->rank,
		.role = ev->role,
		.status = ev->status,
		.flags = ev->flags,
		.last = ev->last,
	};
	at = p->text;
	for (int i = 0; i < PT_MAX; i++) {
		p->len[i] = len[i];
		memcpy(at, text[i], len[i]);
		at[len[i]] = '\0';
		at += len[i] + 1;
	}
	b->ev[b->n++] = p;
	b->bytes += event_bytes(p) + PLACE_BYTES;
	return true;
}

struct life_row *batch_life(struct batch *b)
{
	struct life_row *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	*b->lives_tail = l;
	b->lives_tail = &l->next;
	b->bytes += sizeof(*l);
	return l;
}

struct alert_row *batch_alert(struct batch *b)
{
	struct alert_row *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	*b->alerts_tail = a;
	b->alerts_tail = &a->next;
	b->bytes += sizeof(*a);
	return a;
}

struct stack_row *batch_stack(struct batch *b, const char *frames)
{
	size_t len = strlen(frames) + 1;
	struct stack_row *s = calloc(1, sizeof(*s) + len);

	if (!s)
		return NULL;
	memcpy(s->frames, frames, len);
	*b->stacks_tail = s;
	b->stacks_tail = &s->next;
	b->bytes += stack_bytes(s);
	return s;
}

static void add_del(struct batch *b, uint64_t seq)
{
	if (b->ndel == b->cap_del) {
		size_t cap = b->cap_del ? b->cap_del * 2 : 256;
		uint64_t *del = realloc(b->del, cap * sizeof(*del));

		if (!del)
			return; /* it stays in the file until --keep-mb takes it */
		b->del = del;
		b->cap_del = cap;
	}
	b->del[b->ndel++] = seq;
	b->bytes += sizeof(*b->del);
}

void batch_unwant(struct batch *b, uint64_t seq)
{
	if (seq < b->base + b->head)
		add_del(b, seq);
	else if (seq < b->base + b->n)
		free_event(b, seq - b->base);
}

uint64_t batch_trim(struct batch *b, size_t bytes)
{
	uint64_t gone = 0;

	while (b->bytes > bytes && b->head < b->n) {
		gone += b->ev[b->head] != NULL;
		batch_free_events(b, b->head + 1);
	}
	while (b->bytes > bytes && b->alerts) {
		free_alert(b);
		gone++;
	}
	while (b->bytes > bytes && b->stacks) {
		free_stack(b);
		gone++;
	}
	/* the row of an open life comes again with its next change, and with its verdict */
	while (b->bytes > bytes && b->lives) {
		struct life_ref *ref = b->lives->ref;

		if (ref)
			ref->pending = NULL;
		else
			gone++;
		if (ref && b->lives->verdict)
			ref->verdict_sum = 0;
		free_life(b);
	}
	if (b->bytes > bytes) {
		b->bytes -= b->ndel * sizeof(*b->del);
		b->ndel = 0;
	}
	return gone;
}

void batch_take_rows(struct batch *b, struct batch *older)
{
	if (older->lives) {
		*older->lives_tail = b->lives;
		if (!b->lives)
			b->lives_tail = older->lives_tail;
		b->lives = older->lives;
		older->lives = NULL;
	}
	if (older->alerts) {
		*older->alerts_tail = b->alerts;
		if (!b->alerts)
			b->alerts_tail = older->alerts_tail;
		b->alerts = older->alerts;
		older->alerts = NULL;
	}
	if (older->stacks) {
		*older->stacks_tail = b->stacks;
		if (!b->stacks)
			b->stacks_tail = older->stacks_tail;
		b->stacks = older->stacks;
		older->stacks = NULL;
	}
	for (size_t i = 0; i < older->ndel; i++)
		add_del(b, older->del[i]); /* in no particular order */
	batch_free_events(older, older->n);
	b->bytes += older->bytes - older->ndel * sizeof(*older->del);
	older->ndel = 0;
	free(older->del);
	free(older->ev);
	free(older);
}
