/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `silentpin doctor`: each prints its findings, a line each. */
#ifndef SP_CLI_DOCTOR_H
#define SP_CLI_DOCTOR_H

#include "attach/attach.h"
#include "profile/profile.h"

#define DOCTOR_MAX_PIDS 64

struct doctor {
	pid_t pid[DOCTOR_MAX_PIDS];
	int npids;
	bool find;
	const char *probes, *profile;
	struct attach_features features;
	struct attach_opts forced;
	int good; /* probes that can be attached, and views that can be read */
	bool wants_probes;
	/* of the process at hand: entries whose sockets can be watched; probes that do not tell a
	 * server (cli_tells_server) */
	int sockets, others;
};

/* One finding a line: fine, to be mended, or worth knowing. */
#define FINE   "ok"
#define BAD    "NO"
#define NOTICE "--"
void doctor_say(const char *what, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Fills d->features; 0, or -errno: no probe can be attached at all. */
int doctor_kernel(struct doctor *d);
void doctor_rights(const struct doctor *d);
int doctor_process(struct doctor *d, const struct profile_file *pf, pid_t pid, struct sp_err *err);

#endif
