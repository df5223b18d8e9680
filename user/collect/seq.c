// SPDX-License-Identifier: Apache-2.0
#include "collect/collect.h"

#define WINDOW      65536ull
#define HOLE_AGE_NS 1000000000ull /* CPUs reorder records; later than this it is lost */

static bool bit_get(const struct seq *s, uint64_t n)
{
	return s->bits[n % WINDOW / 64] >> (n % 64) & 1;
}

static void bit_set(struct seq *s, uint64_t n)
{
	s->bits[n % WINDOW / 64] |= 1ull << (n % 64);
}

static void bit_clear(struct seq *s, uint64_t n)
{
	s->bits[n % WINDOW / 64] &= ~(1ull << (n % 64));
}

/* Step over the numbers at base that were seen. */
static void advance(struct seq *s)
{
	uint64_t was = s->base;

	while (s->base < s->top && bit_get(s, s->base)) {
		bit_clear(s, s->base);
		s->base++;
	}
	if (s->base != was)
		s->hole_ns = 0;
}

/* Give up the run of missing numbers at base. */
static void give_up(struct seq *s)
{
	while (s->base < s->top && !bit_get(s, s->base)) {
		s->base++;
		s->lost++;
	}
	s->hole_ns = 0;
	advance(s);
}

void seq_seen(struct seq *s, uint64_t n, uint64_t now_ns)
{
	if (n < s->base)
		return; /* came after it had been given up */
	while (n >= s->base + WINDOW) {
		if (s->base == s->top) { /* nothing between: jump */
			s->lost += n - WINDOW + 1 - s->base;
			s->base = n - WINDOW + 1;
			s->top = s->base;
			break;
		}
		give_up(s);
	}
	bit_set(s, n);
	if (n >= s->top)
		s->top = n + 1;
	advance(s);
	if (s->base < s->top && !s->hole_ns)
		s->hole_ns = now_ns;
}

uint64_t seq_expire(struct seq *s, uint64_t now_ns)
{
	uint64_t was = s->lost;

	if (s->hole_ns && now_ns >= s->hole_ns && now_ns - s->hole_ns > HOLE_AGE_NS) {
		give_up(s);
		if (s->base < s->top)
			s->hole_ns = now_ns;
	}
	return s->lost - was;
}
