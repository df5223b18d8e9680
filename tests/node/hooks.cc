// SPDX-License-Identifier: Apache-2.0
#include "hooks.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>

namespace
{
const char *const names[HOOK_MAX] = {"makeXferReq",   "createXferReq",  "postXferReq",
				     "getXferStatus", "releaseXferReq", "getNotifs",
				     "genNotif"};
std::atomic<int> throwing{-1};
std::atomic<bool> have_errors{false};
std::mutex errors_lock;
std::map<std::string, int> errors;

[[gnu::constructor]] void from_environment()
{
	const char *env = getenv("NIXL_TEST_THROW");

	if (env)
		nixl_test_throw(env);
}
} // namespace

void test_point(Hook h)
{
	if (throwing.load(std::memory_order_relaxed) == h)
		throw std::runtime_error(std::string("nixl test hook: ") + names[h]);
}

nixl_status_t test_status(const std::string &notif, nixl_status_t s)
{
	if (!have_errors.load(std::memory_order_relaxed))
		return s;
	std::lock_guard<std::mutex> hold(errors_lock);

	for (auto &e : errors)
		if (notif.compare(0, e.first.size(), e.first) == 0)
			return static_cast<nixl_status_t>(e.second);
	return s;
}

int nixl_test_throw(const char *function)
{
	if (!function || !*function) {
		throwing = -1;
		return 0;
	}
	for (int i = 0; i < HOOK_MAX; i++) {
		if (!strcmp(function, names[i])) {
			throwing = i;
			return 0;
		}
	}
	return -1;
}

void nixl_test_error(const char *prefix, int status)
{
	std::lock_guard<std::mutex> hold(errors_lock);

	if (status < 0)
		errors[prefix] = status;
	else
		errors.erase(prefix);
	have_errors = !errors.empty();
}
