// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <time.h>

#include "output/output.h"
#include "util/clock.h"

void time_utc(uint64_t mono_ns, int64_t utc_offset_ns, char buf[32])
{
	uint64_t ns = mono_ns + (uint64_t)utc_offset_ns;
	time_t sec = (time_t)(ns / NS_PER_SEC);
	struct tm tm;
	size_t n;

	if (!gmtime_r(&sec, &tm)) {
		snprintf(buf, 32, "-");
		return;
	}
	n = strftime(buf, 32, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(buf + n, 32 - n, ".%03uZ", (unsigned int)(ns % NS_PER_SEC / NS_PER_MS));
}

void time_span(uint64_t ns, char *buf, unsigned long len)
{
	uint64_t s = ns / NS_PER_SEC;

	if (ns < 1000)
		snprintf(buf, len, "%llu ns", (unsigned long long)ns);
	else if (ns < NS_PER_MS)
		snprintf(buf, len, "%llu us", (unsigned long long)(ns / 1000));
	else if (s < 1)
		snprintf(buf, len, "%llu ms", (unsigned long long)(ns / NS_PER_MS));
	else if (s < 60)
		snprintf(buf, len, "%llu.%llu s", (unsigned long long)s,
			 (unsigned long long)(ns % NS_PER_SEC / (NS_PER_SEC / 10)));
	else if (s < 3600)
		snprintf(buf, len, "%llu min %llu s", (unsigned long long)(s / 60),
			 (unsigned long long)(s % 60));
	else if (s < 86400)
		snprintf(buf, len, "%llu h %llu min", (unsigned long long)(s / 3600),
			 (unsigned long long)(s % 3600 / 60));
	else
		snprintf(buf, len, "%llu d %llu h", (unsigned long long)(s / 86400),
			 (unsigned long long)(s % 86400 / 3600));
}
