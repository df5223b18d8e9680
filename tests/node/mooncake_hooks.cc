// SPDX-License-Identifier: Apache-2.0
#include "mooncake_hooks.h"

#include <condition_variable>
#include <mutex>

#include "mooncake.h"
#include "throwing.h"

namespace mooncake
{
namespace
{
const char *const names[HOOK_MAX] = {"allocateBatchID", "submitTransfer", "getTransferStatus",
				     "getBatchTransferStatus", "freeBatchID"};
Throwing throwing("mooncake", names, "MOONCAKE_TEST_THROW");
thread_local bool fail_next, block_next;
std::mutex block_lock;
std::condition_variable unblocked;
uint64_t unblocks;
} // namespace

void test_point(Hook h)
{
	throwing.point(h);
}

bool test_submission()
{
	bool fail = fail_next;

	fail_next = false;
	if (block_next) {
		std::unique_lock<std::mutex> hold(block_lock);
		uint64_t now = unblocks;

		block_next = false;
		unblocked.wait(hold, [&] { return unblocks != now; });
	}
	return fail;
}
} // namespace mooncake

int mooncake_test_throw(const char *method)
{
	return mooncake::throwing.arm(method);
}

void mooncake_test_fail()
{
	mooncake::fail_next = true;
}

void mooncake_test_block()
{
	mooncake::block_next = true;
}

void mooncake_test_unblock()
{
	std::lock_guard<std::mutex> hold(mooncake::block_lock);

	mooncake::unblocks++;
	mooncake::unblocked.notify_all();
}
