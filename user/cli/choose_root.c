// SPDX-License-Identifier: Apache-2.0
/*
 * Which of several profiles a process is for, where neither its command line nor its libraries
 * tell: the one whose root object it has.
 */
#include <errno.h>

#include "cli/choose_root.h"
#include "python/snapshot.h"

int cli_root_found(pid_t pid, const struct profile *p)
{
	struct pyreader *r;
	struct sp_err err = {0};
	int rc;

	if (!p->python)
		return 0;
	rc = pyreader_open(pid, p, &r, &err);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	pyreader_close(r);
	return 1;
}
