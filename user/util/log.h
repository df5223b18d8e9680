/* SPDX-License-Identifier: Apache-2.0 */
/* Status and warnings, to stderr, one line each. A blocked or closed stderr is ignored. */
#ifndef SP_UTIL_LOG_H
#define SP_UTIL_LOG_H

enum sp_level { SP_WARN = 0, SP_INFO = 1, SP_DEBUG = 2 };

extern enum sp_level sp_verbosity; /* lines above this level are dropped; default SP_INFO */

void sp_log(enum sp_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Control characters (of a file's name, of a target's text) become '?', line ends blanks. */
void sp_one_line(char *text);

#define pr_warn(...)  sp_log(SP_WARN, __VA_ARGS__)
#define pr_info(...)  sp_log(SP_INFO, __VA_ARGS__)
#define pr_debug(...) sp_log(SP_DEBUG, __VA_ARGS__)

#endif
