// SPDX-License-Identifier: Apache-2.0
/*
 * The exported MultiTransport: a batch is a descriptor whose address is its id, each request of it
 * one write of engine.h. As in the real one the status calls move things on, and a batch that is
 * freed before all of it has ended stays, busy, for ever.
 */
#include "mooncake.h"

#include <cstring>

#include "engine.h"
#include "mooncake_data.h"
#include "mooncake_hooks.h"

namespace mooncake
{
struct Write {
	std::shared_ptr<Op> op;
};

Status::Status(Code code, const char *message)
    : code_(code), message_(message ? strdup(message) : nullptr)
{
}

Status::Status(const Status &s) : Status(s.code_, s.message_)
{
}

Status::~Status()
{
	free(const_cast<char *>(message_));
}

MultiTransport::MultiTransport() : data(std::make_unique<Data>())
{
}

MultiTransport::~MultiTransport() = default;

namespace
{
Transport::BatchDesc &to_desc(Transport::BatchID id)
{
	return *reinterpret_cast<Transport::BatchDesc *>(id);
}

/* Into the counters that a real slice updates when it ends. */
void settle(Transport::TransferTask &task)
{
	const Op &op = *task.write->op;

	task.transferred_bytes = op.sent;
	if (op.status == NIXL_SUCCESS)
		task.success_slice_count = 1;
	else if (op.status < 0)
		task.failed_slice_count = 1;
}

Transport::TransferStatusEnum state_of(Transport::TransferTask &task)
{
	if (task.success_slice_count + task.failed_slice_count < task.slice_count)
		return Transport::WAITING;
	task.is_finished = true;
	return task.failed_slice_count ? Transport::FAILED : Transport::COMPLETED;
}

std::shared_ptr<Op> write_of(const Transport::TransferRequest &r, const std::string &peer)
{
	auto op = std::make_shared<Op>();

	op->peer = peer;
	op->local.push_back({reinterpret_cast<uintptr_t>(r.source), r.length});
	op->remote.push_back({r.target_offset, r.length});
	op->bytes = r.length;
	return op;
}
} // namespace

MultiTransport::BatchID MultiTransport::allocateBatchID(size_t batch_size)
{
	test_point(HOOK_ALLOCATE);
	auto *desc = new Transport::BatchDesc();

	desc->id = reinterpret_cast<BatchID>(desc);
	desc->batch_size = batch_size;
	desc->task_list.reserve(batch_size);
	return desc->id;
}

#ifdef MOONCAKE_OLD
Status MultiTransport::freeBatchID(BatchID batch_id)
{
	const std::function<void()> before_delete;
#else
Status MultiTransport::freeBatchID(BatchID batch_id)
{
	return freeBatchID(batch_id, {});
}

Status MultiTransport::freeBatchID(BatchID batch_id, const std::function<void()> &before_delete)
{
#endif
	auto &desc = to_desc(batch_id);

	test_point(HOOK_FREE);
	for (auto &task : desc.task_list)
		if (!task.is_finished)
			return {Status::Code::kBatchBusy, "some task has not ended"};
	if (before_delete)
		before_delete();
	delete &desc;
	return {};
}

#ifdef MOONCAKE_OLD
Status MultiTransport::submitTransfer(BatchID batch_id, const std::vector<TransferRequest> &entries)
{
#else
Status MultiTransport::submitTransfer(BatchID batch_id, const std::vector<TransferRequest> &entries)
{
	return submitTransfer(batch_id, entries, nullptr);
}

Status MultiTransport::submitTransfer(BatchID batch_id, const std::vector<TransferRequest> &entries,
				      std::vector<size_t> *)
{
#endif
	auto &desc = to_desc(batch_id);
	bool fail;

	test_point(HOOK_SUBMIT);
	if (desc.task_list.size() + entries.size() > desc.batch_size)
		return {Status::Code::kTooManyRequests, "the batch is smaller"};
	fail = test_submission(batch_id);
	std::lock_guard<std::mutex> hold(data->engine.lock);

	for (auto &r : entries) {
		if (r.target_id >= data->segments.size() || r.opcode != TransferRequest::WRITE)
			return {Status::Code::kInvalidArgument, "no such segment, or not a write"};
		if (!data->engine.in_allowed(reinterpret_cast<uintptr_t>(r.source), r.length))
			return {Status::Code::kAddressNotRegistered,
				"the source is not registered"};
	}
	for (auto &r : entries) {
		auto &task = desc.task_list.emplace_back();
		auto op = write_of(r, data->segments[r.target_id]);

		task.batch_id = batch_id;
		task.request = &r;
		task.slice_count = 1;
		task.total_bytes = r.length;
		task.write = std::make_shared<Write>(Write{op});
		if (fail)
			op->status = NIXL_ERR_BACKEND;
		else
			data->engine.post(op);
		fail = false;
	}
	return {};
}

Status MultiTransport::getTransferStatus(BatchID batch_id, size_t task_id, TransferStatus &status)
{
	auto &desc = to_desc(batch_id);

	test_point(HOOK_STATUS);
	if (task_id >= desc.task_list.size())
		return {Status::Code::kInvalidArgument, "no such task"};
	auto &task = desc.task_list[task_id];
	std::lock_guard<std::mutex> hold(data->engine.lock);

	if (task.write->op->status == NIXL_IN_PROG)
		data->engine.step();
	settle(task);
	status.s = state_of(task);
	status.transferred_bytes = task.transferred_bytes;
	return {};
}

Status MultiTransport::getBatchTransferStatus(BatchID batch_id, TransferStatus &status)
{
	auto &desc = to_desc(batch_id);
	size_t done = 0;

	test_point(HOOK_BATCH_STATUS);
	status = {Transport::WAITING, 0};
	for (size_t i = 0; i < desc.task_list.size(); i++) {
		TransferStatus one;

		getTransferStatus(batch_id, i, one);
		if (one.s == Transport::FAILED) {
			status.s = Transport::FAILED;
			return {};
		}
		status.transferred_bytes += one.transferred_bytes;
		done += one.s == Transport::COMPLETED;
	}
	if (done < desc.task_list.size())
		return {};
	status.s = Transport::COMPLETED;
#ifndef MOONCAKE_OLD
	desc.finished_transfer_bytes = status.transferred_bytes;
	desc.is_finished = true;
#endif
	return {};
}
} // namespace mooncake
