// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "python/pages.h"
#include "util/cleanup.h"

#define PAGE_SHIFT 12 /* a page of the target may be larger, never smaller */
#define PAGE       ((uint64_t)1 << PAGE_SHIFT)
#define PAGES_MAX  1024u /* of one round: 4 MiB, stays in the cache */
#define SLOTS      4096u /* 4 for each of them */
#define RUN_MAX    32u   /* pages of one piece */
#define FEW        16u   /* pieces that are not worth a page each */

#define EMPTY ((uint64_t)0)

struct pypages {
	uint64_t key[SLOTS]; /* page number + 1, EMPTY: none */
	uint16_t at[SLOTS];  /* its place in page[] */
	uint64_t page[PAGES_MAX];
	bool bad[PAGES_MAX]; /* cannot be read */
	unsigned n;
	uint8_t *data; /* PAGES_MAX pages */
	struct pymem_span run[PAGES_MAX];
};

struct pypages *pypages_new(void)
{
	struct pypages *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->data = malloc(PAGES_MAX << PAGE_SHIFT);
	if (!p->data) {
		free(p);
		return NULL;
	}
	return p;
}

void pypages_free(struct pypages *p)
{
	if (!p)
		return;
	free(p->data);
	free(p);
}

static size_t slot_of(const struct pypages *p, uint64_t page)
{
	size_t i = (page * 0x9e3779b97f4a7c15ull) >> 52; /* 12 bits: SLOTS */

	while (p->key[i] != EMPTY && p->key[i] != page + 1)
		i = (i + 1) % SLOTS;
	return i;
}

/* false: full. */
static bool add_page(struct pypages *p, uint64_t page)
{
	size_t i = slot_of(p, page);

	if (p->key[i] != EMPTY)
		return true;
	if (p->n == PAGES_MAX)
		return false;
	p->key[i] = page + 1;
	p->page[p->n++] = page;
	return true;
}

/* No object is there, and the sums below would wrap. */
static bool wild(const struct pymem_span *s)
{
	return !s->len || s->len > PAGE || s->addr > UINT64_MAX - 2 * PAGE;
}

static bool add_span(struct pypages *p, const struct pymem_span *s)
{
	uint64_t first = s->addr >> PAGE_SHIFT, last = (s->addr + s->len - 1) >> PAGE_SHIFT;

	if (wild(s))
		return true;
	/* Both or none, so that a full round serves all that it has taken. */
	if (first != last && p->n + 2 > PAGES_MAX)
		return false;
	return add_page(p, first) && (first == last || add_page(p, last));
}

static int by_page(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Neighbours in one piece; one that fails is read again page by page. */
static int read_pages(struct pypages *p, struct pymem *m)
{
	unsigned nruns = 0, at = 0;
	int err;

	qsort(p->page, p->n, sizeof(p->page[0]), by_page);
	for (unsigned i = 0; i < p->n; i++) {
		struct pymem_span *r = nruns ? &p->run[nruns - 1] : NULL;

		p->at[slot_of(p, p->page[i])] = (uint16_t)i;
		p->bad[i] = false;
		if (r && r->len < RUN_MAX << PAGE_SHIFT && p->page[i] == p->page[i - 1] + 1) {
			r->len += PAGE;
			continue;
		}
		p->run[nruns++] = (struct pymem_span){.addr = p->page[i] << PAGE_SHIFT,
						      .buf = p->data + ((size_t)i << PAGE_SHIFT),
						      .len = PAGE};
	}
	err = pymem_readv(m, p->run, nruns);
	for (unsigned i = 0; i < nruns && !err; i++) {
		unsigned pages = p->run[i].len >> PAGE_SHIFT;

		for (unsigned k = at; p->run[i].rc && k < at + pages && !err; k++) {
			int rc = pages == 1 ? p->run[i].rc
					    : pymem_read(m, p->page[k] << PAGE_SHIFT,
							 p->data + ((size_t)k << PAGE_SHIFT), PAGE);

			p->bad[k] = rc;
			err = rc && rc != -EFAULT ? rc : 0;
		}
		at += pages;
	}
	return err;
}

static const uint8_t *page_data(const struct pypages *p, uint64_t page)
{
	unsigned i = p->at[slot_of(p, page)];

	return p->bad[i] ? NULL : p->data + ((size_t)i << PAGE_SHIFT);
}

static int serve(const struct pypages *p, struct pymem *m, struct pymem_span *s)
{
	uint64_t first = s->addr >> PAGE_SHIFT, off = s->addr & (PAGE - 1);
	size_t here = s->len <= PAGE - off ? s->len : (size_t)(PAGE - off);
	const uint8_t *data, *next;

	if (wild(s)) {
		s->rc = -EFAULT;
		return 0;
	}
	data = page_data(p, first);
	next = here < s->len ? page_data(p, first + 1) : data;
	if (!data || !next) { /* an image may hold less than a page */
		int err = pymem_read(m, s->addr, s->buf, s->len);

		s->rc = err;
		return err == -EFAULT ? 0 : err;
	}
	memcpy(s->buf, data + off, here);
	if (here < s->len)
		memcpy((uint8_t *)s->buf + here, next, s->len - here);
	s->rc = 0;
	return 0;
}

int pypages_read(struct pypages *p, struct pymem *m, struct pymem_span *span, size_t n)
{
	if (n <= FEW)
		return n ? pymem_readv(m, span, n) : 0;
	for (size_t from = 0, to = 0; from < n; from = to) {
		int err;

		memset(p->key, 0, sizeof(p->key));
		p->n = 0;
		while (to < n && add_span(p, &span[to]))
			to++;
		err = read_pages(p, m);
		for (size_t i = from; i < to && !err; i++)
			err = serve(p, m, &span[i]);
		if (err)
			return err;
	}
	return 0;
}
