// SPDX-License-Identifier: Apache-2.0
#include "mooncake_hooks.h"

#include <condition_variable>
#include <deque>
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
constexpr size_t kept_batches = 1 << 14;
thread_local uint64_t room_now;
std::mutex batches_lock;
std::deque<Submitted> batches;

void note_batch(uint64_t batch_id)
{
	std::lock_guard<std::mutex> hold(batches_lock);

	if (batches.size() >= kept_batches)
		batches.pop_front();
	batches.push_back({batch_id, room_now});
}
} // namespace

void test_point(Hook h)
{
	throwing.point(h);
}

std::vector<Submitted> test_batches()
{
	std::lock_guard<std::mutex> hold(batches_lock);

	return {batches.begin(), batches.end()};
}

bool test_submission(uint64_t batch_id)
{
	bool fail = fail_next;

	note_batch(batch_id);
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

void mooncake_test_room(uint64_t room)
{
	mooncake::room_now = room;
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
