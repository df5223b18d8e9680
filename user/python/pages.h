/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thousands of small reads at once. A piece of process_vm_readv costs about as much as two pages of
 * payload (facts: 0.7 us a piece, 0.4 us a page), and the objects of a queue lie close together:
 * so whole pages are read, each once a batch, and the pieces are taken out of them.
 */
#ifndef SP_PYTHON_PAGES_H
#define SP_PYTHON_PAGES_H

#include "python/mem.h"

struct pypages;

struct pypages *pypages_new(void); /* NULL: no memory */
void pypages_free(struct pypages *p);
/* As pymem_readv: each span's rc says how it went. Spans of at most 4096 bytes. */
int pypages_read(struct pypages *p, struct pymem *m, struct pymem_span *span, size_t n);

#endif
