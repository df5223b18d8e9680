// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include "python/mem.h"

/* A snapshot of 10,000 rooms takes about 10 MB and 0.3 million spans: ample, and still bounded. */
#define BUDGET_BYTES (256ull << 20)
#define BUDGET_READS (4ull << 20)
/* The smallest page of the architectures we build for: no mapping ends within one. */
#define PAGE_MIN 4096u

void pymem_budget(struct pymem *m, uint64_t bytes, uint64_t reads)
{
	m->bytes_left = bytes ? bytes : BUDGET_BYTES;
	m->reads_left = reads ? reads : BUDGET_READS;
}

/* All or nothing: a batch that the budget does not cover is not begun. */
static int spend(struct pymem *m, const struct pymem_span *span, size_t n)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		bytes += span[i].len;
	if (n > m->reads_left || bytes > m->bytes_left) {
		m->reads_left = m->bytes_left = 0;
		return -E2BIG;
	}
	m->reads_left -= n;
	m->bytes_left -= bytes;
	m->reads += n;
	m->bytes += bytes;
	return 0;
}

int pymem_readv(struct pymem *m, struct pymem_span *span, size_t n)
{
	int err = spend(m, span, n);

	return err || !n ? err : m->readv(m->ctx, span, n);
}

int pymem_read(struct pymem *m, uint64_t addr, void *buf, size_t len)
{
	struct pymem_span s = {.addr = addr, .buf = buf, .len = (uint32_t)len};
	int err;

	if (len > UINT32_MAX)
		return -E2BIG;
	err = pymem_readv(m, &s, 1);
	return err ? err : s.rc;
}

int pymem_u64(struct pymem *m, uint64_t addr, uint64_t *v)
{
	return pymem_read(m, addr, v, sizeof(*v));
}

int pymem_cstr(struct pymem *m, uint64_t addr, char *buf, size_t len)
{
	size_t used = 0;

	while (used + 1 < len) {
		size_t part = PAGE_MIN - (size_t)((addr + used) % PAGE_MIN);
		int err;

		if (part > len - 1 - used)
			part = len - 1 - used;
		err = pymem_read(m, addr + used, buf + used, part);
		if (err)
			return err;
		if (memchr(buf + used, 0, part))
			return 0;
		used += part;
	}
	buf[used] = 0;
	return 0;
}

void pymem_close(struct pymem *m)
{
	if (m)
		m->close(m);
}
