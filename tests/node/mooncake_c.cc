// SPDX-License-Identifier: Apache-2.0
/* The C names of the transfer engine: each call is one of the class behind it. */
#include "mooncake.h"

using mooncake::TransferEngine;
using mooncake::Transport;

extern "C" {
struct transfer_request {
	int opcode;
	void *source;
	int32_t target_id;
	uint32_t file_id;
	uint64_t target_offset;
	uint64_t length;
};
static_assert(sizeof(struct transfer_request) == 40);

struct transfer_status {
	int status;
	uint64_t transferred_bytes;
};

void *createTransferEngine(const char *, const char *, const char *, uint64_t, int)
{
	return new TransferEngine();
}

void destroyTransferEngine(void *engine)
{
	delete static_cast<TransferEngine *>(engine);
}

int getLocalIpAndPort(void *engine, char *buf_out, size_t buf_len)
{
	return snprintf(buf_out, buf_len, "127.0.0.1:%d",
			static_cast<TransferEngine *>(engine)->rpcPort()) < 0;
}

int registerLocalMemory(void *engine, void *addr, size_t length, const char *, int)
{
	return static_cast<TransferEngine *>(engine)->registerLocalMemory(addr, length);
}

int32_t openSegment(void *engine, const char *segment_name)
{
	return static_cast<int32_t>(
		static_cast<TransferEngine *>(engine)->openSegment(segment_name));
}

uint64_t allocateBatchID(void *engine, size_t batch_size)
{
	return static_cast<TransferEngine *>(engine)->allocateBatchID(batch_size);
}

int submitTransfer(void *engine, uint64_t batch_id, struct transfer_request *entries, size_t count)
{
	std::vector<Transport::TransferRequest> requests(count);

	for (size_t i = 0; i < count; i++) {
		requests[i].opcode =
			static_cast<Transport::TransferRequest::OpCode>(entries[i].opcode);
		requests[i].source = entries[i].source;
		requests[i].target_id = static_cast<uint64_t>(entries[i].target_id);
		requests[i].target_offset = entries[i].target_offset;
		requests[i].length = entries[i].length;
	}
	return static_cast<int>(
		static_cast<TransferEngine *>(engine)->submitTransfer(batch_id, requests).code());
}

int getTransferStatus(void *engine, uint64_t batch_id, size_t task_id,
		      struct transfer_status *status)
{
	Transport::TransferStatus s = {};
	auto code = static_cast<TransferEngine *>(engine)
			    ->getTransferStatus(batch_id, task_id, s)
			    .code();

	status->status = s.s;
	status->transferred_bytes = s.transferred_bytes;
	return static_cast<int>(code);
}

int freeBatchID(void *engine, uint64_t batch_id)
{
	return static_cast<int>(
		static_cast<TransferEngine *>(engine)->freeBatchID(batch_id).code());
}

/* Not of the real library: the receiving side has no thread of its own here. */
void mooncake_test_progress(void *engine, int timeout_ms)
{
	static_cast<TransferEngine *>(engine)->progress(timeout_ms);
}
}
