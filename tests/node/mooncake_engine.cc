// SPDX-License-Identifier: Apache-2.0
/* The exported TransferEngine: segments and memory; the rest it hands to MultiTransport. */
#include <algorithm>

#include <poll.h>

#include "mooncake_data.h"
#include "mooncake_hooks.h"

namespace mooncake
{
TransferEngine::TransferEngine() : multi_transports_(std::make_unique<MultiTransport>())
{
}

TransferEngine::~TransferEngine() = default;

TransferEngine::SegmentHandle TransferEngine::openSegment(const std::string &segment_name)
{
	auto &d = *multi_transports_->data;
	size_t colon = segment_name.rfind(':');
	std::string peer;

	test_point(HOOK_OPEN);
	std::lock_guard<std::mutex> hold(d.engine.lock);
	auto known = std::find(d.segments.begin(), d.segments.end(), segment_name);

	if (known != d.segments.end())
		return static_cast<SegmentHandle>(known - d.segments.begin());
	if (colon == std::string::npos ||
	    d.engine.connect("NODE1 " + segment_name.substr(colon + 1) + " 0 " + segment_name,
			     peer) != NIXL_SUCCESS)
		return static_cast<SegmentHandle>(-1);
	d.segments.push_back(segment_name);
	return d.segments.size() - 1;
}

int TransferEngine::registerLocalMemory(void *addr, size_t length)
{
	auto &d = *multi_transports_->data;
	std::lock_guard<std::mutex> hold(d.engine.lock);

	d.engine.allow(reinterpret_cast<uintptr_t>(addr), length);
	return 0;
}

TransferEngine::BatchID TransferEngine::allocateBatchID(size_t batch_size)
{
	return multi_transports_->allocateBatchID(batch_size);
}

Status TransferEngine::freeBatchID(BatchID batch_id)
{
	return multi_transports_->freeBatchID(batch_id);
}

Status TransferEngine::submitTransfer(BatchID batch_id, const std::vector<TransferRequest> &entries)
{
	return multi_transports_->submitTransfer(batch_id, entries);
}

Status TransferEngine::getTransferStatus(BatchID batch_id, size_t task_id, TransferStatus &status)
{
	return multi_transports_->getTransferStatus(batch_id, task_id, status);
}

Status TransferEngine::getBatchTransferStatus(BatchID batch_id, TransferStatus &status)
{
	return multi_transports_->getBatchTransferStatus(batch_id, status);
}

uint16_t TransferEngine::rpcPort() const
{
	/* "NODE1 port pid name" */
	return static_cast<uint16_t>(
		std::stoul(multi_transports_->data->engine.metadata().substr(6)));
}

void TransferEngine::progress(int timeout_ms) const
{
	multi_transports_->data->engine.progress(timeout_ms);
}

void TransferEngine::setRate(uint64_t bytes_per_s)
{
	auto &d = *multi_transports_->data;
	std::lock_guard<std::mutex> hold(d.engine.lock);

	d.engine.set_rate(bytes_per_s);
}

std::vector<TransferEngine::Pending> TransferEngine::pending() const
{
	auto &d = *multi_transports_->data;
	std::vector<Pending> all;
	std::lock_guard<std::mutex> hold(d.engine.lock);

	for (auto &op : d.engine.ops())
		all.push_back({op.peer, op.bytes, op.sent});
	return all;
}
} // namespace mooncake
