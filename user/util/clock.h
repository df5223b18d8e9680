/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_UTIL_CLOCK_H
#define SP_UTIL_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_SEC 1000000000ull
#define NS_PER_MS  1000000ull

static inline uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

static inline uint64_t mono_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* CLOCK_REALTIME - CLOCK_MONOTONIC */
static inline int64_t utc_offset_ns(void)
{
	return (int64_t)(clock_ns(CLOCK_REALTIME) - mono_ns());
}

#endif
