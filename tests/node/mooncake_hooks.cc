// SPDX-License-Identifier: Apache-2.0
#include "mooncake_hooks.h"

#include <condition_variable>
#include <deque>
#include <mutex>

#include <dlfcn.h>

#include "mooncake.h"
#include "throwing.h"

namespace mooncake
{
namespace
{
const char *const names[HOOK_MAX] = {
	"openSegment",       "allocateBatchID",        "submitTransfer",
	"getTransferStatus", "getBatchTransferStatus", "freeBatchID"};
Throwing throwing("mooncake", names, "MOONCAKE_TEST_THROW");
thread_local bool fail_next, block_next;
thread_local size_t copy_next; /* bytes */
constexpr size_t most_copied = 1 << 16;
char copied_from[most_copied], copied_to[most_copied];
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

/* As a transport does whose source lies on a device. Nothing where there is no such library. */
void copy_on_device(size_t bytes)
{
	using Copy = int (*)(uint64_t to, uint64_t from, size_t bytes, void *stream);
	auto copy = reinterpret_cast<Copy>(dlsym(RTLD_DEFAULT, "cuMemcpyAsync"));

	if (copy && bytes <= most_copied)
		copy(reinterpret_cast<uintptr_t>(copied_to),
		     reinterpret_cast<uintptr_t>(copied_from), bytes, nullptr);
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
	size_t bytes = copy_next;

	note_batch(batch_id);
	fail_next = false;
	copy_next = 0;
	if (bytes)
		copy_on_device(bytes);
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

void mooncake_test_copy(uint64_t bytes)
{
	mooncake::copy_next = bytes;
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
