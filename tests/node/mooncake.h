/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of Mooncake's transfer engine that a probe can see: class names, argument types and the
 * layouts of requests, tasks and batch descriptors, so that exported symbols and what lies behind
 * the argument registers are those of the real library (its main branch of 2026; with MOONCAKE_OLD
 * those of the releases before 0.3.9). What happens inside is our own: see engine.h.
 */
#ifndef NODE_MOONCAKE_H
#define NODE_MOONCAKE_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace mooncake
{
struct Write; /* how far the bytes of one request are */

/* It owns its message, so it is returned through a hidden pointer: the first argument register. */
class Status
{
      public:
	enum class Code : uint16_t {
		kOk = 0,
		kInvalidArgument = 1,
		kTooManyRequests = 2,
		kAddressNotRegistered = 3,
		kBatchBusy = 4,
	};
	Status() = default;
	Status(Code code, const char *message);
	Status(const Status &s);
	Status &operator=(const Status &) = delete;
	~Status();
	bool ok() const
	{
		return code_ == Code::kOk;
	}
	Code code() const
	{
		return code_;
	}

      private:
	Code code_ = Code::kOk;
	const char *message_ = nullptr;
};

class Transport
{
      public:
	using SegmentID = uint64_t;
	using SegmentHandle = SegmentID;
	using BatchID = uint64_t;

	struct TransferRequest {
		enum OpCode { READ, WRITE };

		OpCode opcode;
		void *source;
		SegmentID target_id;
		uint64_t target_offset; /* an address in the peer */
		size_t length;
		int advise_retry_cnt = 0;
#ifndef MOONCAKE_OLD
		int transport_hint = 0;
		uint64_t task_group_id = 0;
#endif
	};

	enum TransferStatusEnum { WAITING, PENDING, INVALID, CANCELED, COMPLETED, TIMEOUT, FAILED };
	struct TransferStatus {
		TransferStatusEnum s;
		size_t transferred_bytes;
	};

	struct TransferTask {
		volatile uint64_t slice_count = 0;
		volatile uint64_t success_slice_count = 0;
		volatile uint64_t failed_slice_count = 0;
		volatile uint64_t transferred_bytes = 0;
		volatile bool is_finished = false;
		uint64_t total_bytes = 0;
		BatchID batch_id = 0;
		const TransferRequest *request = nullptr;
		std::shared_ptr<Write> write; /* in the place of the list of slices */
	};

	struct BatchDesc {
		BatchID id;
		size_t batch_size;
		std::vector<TransferTask> task_list;
		void *context;
		int64_t start_timestamp;
#ifndef MOONCAKE_OLD
		std::atomic<bool> has_failure{false};
		std::atomic<bool> is_finished{false};
		std::atomic<uint64_t> finished_transfer_bytes{0};
#endif
	};
};

/* A probe reads these offsets (x86-64 and arm64, libstdc++): they are the point of this header. */
static_assert(sizeof(Status) == 16 && !std::is_trivially_copyable_v<Status>);
static_assert(offsetof(Transport::TransferRequest, target_id) == 16);
static_assert(offsetof(Transport::TransferRequest, target_offset) == 24);
static_assert(offsetof(Transport::TransferRequest, length) == 32);
static_assert(offsetof(Transport::TransferTask, failed_slice_count) == 16);
static_assert(offsetof(Transport::TransferTask, is_finished) == 32);
static_assert(offsetof(Transport::BatchDesc, batch_size) == 8);
static_assert(offsetof(Transport::BatchDesc, task_list) == 16);
#ifdef MOONCAKE_OLD
static_assert(sizeof(Transport::TransferRequest) == 48);
static_assert(sizeof(Transport::BatchDesc) == 56);
#else
static_assert(sizeof(Transport::TransferRequest) == 56);
static_assert(offsetof(Transport::BatchDesc, has_failure) == 56);
static_assert(offsetof(Transport::BatchDesc, is_finished) == 57);
static_assert(offsetof(Transport::BatchDesc, finished_transfer_bytes) == 64);
#endif

class MultiTransport
{
      public:
	using BatchID = Transport::BatchID;
	using TransferRequest = Transport::TransferRequest;
	using TransferStatus = Transport::TransferStatus;

	/* Listens on a loopback port of its own. Throws std::system_error. */
	MultiTransport();
	~MultiTransport();
	MultiTransport(const MultiTransport &) = delete;
	MultiTransport &operator=(const MultiTransport &) = delete;

	BatchID allocateBatchID(size_t batch_size);
	Status freeBatchID(BatchID batch_id);
	Status submitTransfer(BatchID batch_id, const std::vector<TransferRequest> &entries);
	/* Of the main branch: what the two above are made of. */
#ifndef MOONCAKE_OLD
	Status freeBatchID(BatchID batch_id, const std::function<void()> &before_delete);
	Status submitTransfer(BatchID batch_id, const std::vector<TransferRequest> &entries,
			      std::vector<size_t> *task_sizes);
#endif
	Status getTransferStatus(BatchID batch_id, size_t task_id, TransferStatus &status);
	Status getBatchTransferStatus(BatchID batch_id, TransferStatus &status);

	struct Data;
	std::unique_ptr<Data> data;
};

class TransferEngine
{
      public:
	using BatchID = Transport::BatchID;
	using TransferRequest = Transport::TransferRequest;
	using TransferStatus = Transport::TransferStatus;
	using SegmentHandle = Transport::SegmentHandle;

	TransferEngine();
	~TransferEngine();

	/* The segment of "127.0.0.1:PORT"; (SegmentHandle)-1: no such peer. */
	SegmentHandle openSegment(const std::string &segment_name);
	int registerLocalMemory(void *addr, size_t length);
	BatchID allocateBatchID(size_t batch_size);
	Status freeBatchID(BatchID batch_id);
	Status submitTransfer(BatchID batch_id, const std::vector<TransferRequest> &entries);
	Status getTransferStatus(BatchID batch_id, size_t task_id, TransferStatus &status);
	Status getBatchTransferStatus(BatchID batch_id, TransferStatus &status);

	/* For the receiving side and for the tests: not probed. */
	uint16_t rpcPort() const;
	void progress(int timeout_ms) const; /* receive and send what is possible */
	void setRate(uint64_t bytes_per_s);  /* how fast this side receives, 0: no limit */
	struct Pending {
		std::string peer;
		uint64_t bytes, sent;
	};
	std::vector<Pending> pending() const; /* submitted and not yet complete */

      private:
	std::unique_ptr<MultiTransport> multi_transports_;
};
} // namespace mooncake

/*
 * Test hooks. mooncake_test_throw: every later call of that method (of MultiTransport; openSegment
 * of TransferEngine) throws std::runtime_error; NULL or "" ends it; the environment variable
 * MOONCAKE_TEST_THROW arms it at load. mooncake_test_room: of which room the calling thread's
 * submissions are, for the tests alone. The others are about its next submission:
 * mooncake_test_fail, its first request fails; mooncake_test_copy, it calls cuMemcpyAsync of so
 * many bytes, where the process has such a function; mooncake_test_block, it does not return until
 * mooncake_test_unblock.
 */
extern "C" {
int mooncake_test_throw(const char *method);
void mooncake_test_room(uint64_t room);
void mooncake_test_fail(void);
void mooncake_test_copy(uint64_t bytes);
void mooncake_test_block(void);
void mooncake_test_unblock(void);
}

#endif
