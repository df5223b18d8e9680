/* SPDX-License-Identifier: Apache-2.0 */
/* Which one of a library's probed functions throws when it is called next: for the tests. */
#ifndef NODE_THROWING_H
#define NODE_THROWING_H

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

class Throwing
{
      public:
	/* The function that the environment variable names is armed from the start. */
	template <size_t N>
	Throwing(const char *library_name, const char *const (&functions)[N], const char *variable)
	    : library(library_name), names(functions), count(static_cast<int>(N))
	{
		arm(getenv(variable));
	}

	/* -1: no such function. NULL or "": none throws any more. */
	int arm(const char *function)
	{
		if (!function || !*function) {
			armed = -1;
			return 0;
		}
		for (int i = 0; i < count; i++) {
			if (!strcmp(function, names[i])) {
				armed = i;
				return 0;
			}
		}
		return -1;
	}

	void point(int function) const
	{
		if (armed.load(std::memory_order_relaxed) == function)
			throw std::runtime_error(std::string(library) +
						 " test hook: " + names[function]);
	}

      private:
	const char *library;
	const char *const *names;
	int count;
	std::atomic<int> armed{-1};
};

#endif
