/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_UTIL_CAPS_H
#define SP_UTIL_CAPS_H

#include <stdbool.h>

/*
 * Give up every capability that later attaches (children, libraries loaded later) do not need.
 * perf_uprobes: perf uprobes are in use, which need CAP_SYS_ADMIN. foreign_folder: the recording
 * lies in a folder of another user, whose journal files only CAP_DAC_OVERRIDE can create. 0 or
 * -errno.
 */
int caps_keep_needed(bool perf_uprobes, bool foreign_folder);

#endif
