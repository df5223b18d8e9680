// SPDX-License-Identifier: Apache-2.0
#include "hooks.h"

#include <map>
#include <mutex>

#include "throwing.h"

namespace
{
const char *const names[HOOK_MAX] = {"makeXferReq",   "createXferReq",  "postXferReq",
				     "getXferStatus", "releaseXferReq", "getNotifs",
				     "genNotif"};
Throwing throwing("nixl", names, "NIXL_TEST_THROW");
std::atomic<bool> have_errors{false};
std::mutex errors_lock;
std::map<std::string, int> errors;
} // namespace

void test_point(Hook h)
{
	throwing.point(h);
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
	return throwing.arm(function);
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
