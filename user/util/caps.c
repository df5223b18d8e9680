// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stddef.h>
#include <sys/capability.h>
#include <sys/prctl.h>

#include "util/caps.h"
#include "util/cleanup.h"

int caps_keep_needed(bool perf_uprobes, bool foreign_folder)
{
	static const cap_value_t always[] = {
		CAP_BPF,                /* create links and read maps */
		CAP_PERFMON,            /* tracing programs */
		CAP_SYS_PTRACE,         /* /proc/PID/maps and root of other users' processes */
		CAP_DAC_READ_SEARCH,    /* libraries in folders of other users */
		CAP_CHECKPOINT_RESTORE, /* /proc/PID/map_files: deleted libraries */
	};
	cap_value_t want[ARRAY_SIZE(always) + 2];
	cap_t have = cap_get_proc();
	cap_t keep = cap_init();
	int n = 0, rc = 0;

	for (size_t i = 0; i < ARRAY_SIZE(always); i++)
		want[n++] = always[i];
	if (perf_uprobes)
		want[n++] = CAP_SYS_ADMIN;
	if (foreign_folder)
		want[n++] = CAP_DAC_OVERRIDE;
	if (!have || !keep)
		rc = -ENOMEM;
	for (int i = 0; !rc && i < n; i++) {
		cap_flag_value_t permitted = CAP_CLEAR;

		if (cap_get_flag(have, want[i], CAP_PERMITTED, &permitted) || permitted != CAP_SET)
			continue;
		if (cap_set_flag(keep, CAP_PERMITTED, 1, &want[i], CAP_SET) ||
		    cap_set_flag(keep, CAP_EFFECTIVE, 1, &want[i], CAP_SET))
			rc = -errno;
	}
	if (!rc && cap_set_proc(keep))
		rc = -errno;
	if (!rc && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		rc = -errno;
	cap_free(have);
	cap_free(keep);
	return rc;
}
