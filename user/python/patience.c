// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "python/patience.h"

bool patience_unstable(struct patience *p, uint64_t ns)
{
	if (!p->rounds++)
		p->since_ns = ns;
	if (p->rounds < (p->used_up ? PATIENCE_ROUNDS_LEFT : PATIENCE_ROUNDS))
		return false;
	if (!p->used_up && ns - p->since_ns < PATIENCE_NS)
		return false;
	p->used_up = true;
	p->rounds = 0;
	return true;
}

void patience_ok(struct patience *p)
{
	memset(p, 0, sizeof(*p));
}
