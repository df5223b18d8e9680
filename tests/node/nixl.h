/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the transfer library that a probe can see: class names, argument types and argument
 * layouts, so that the exported symbols and what lies behind the argument registers are those of
 * the real library (release 1.4.0). What happens inside is our own: see engine.h.
 */
#ifndef NODE_NIXL_H
#define NODE_NIXL_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>
#ifdef NIXL_SPAN
#include <span>
#endif

enum nixl_xfer_op_t : uint32_t { NIXL_READ = 0, NIXL_WRITE = 1 };

enum nixl_status_t : int32_t {
	NIXL_IN_PROG = 1,
	NIXL_SUCCESS = 0,
	NIXL_ERR_NOT_POSTED = -1,
	NIXL_ERR_INVALID_PARAM = -2,
	NIXL_ERR_BACKEND = -3,
	NIXL_ERR_NOT_FOUND = -4,
	NIXL_ERR_MISMATCH = -5,
	NIXL_ERR_NOT_ALLOWED = -6,
	NIXL_ERR_REPOST_ACTIVE = -7,
	NIXL_ERR_UNKNOWN = -8,
	NIXL_ERR_NOT_SUPPORTED = -9,
	NIXL_ERR_REMOTE_DISCONNECT = -10,
	NIXL_ERR_CANCELED = -11,
	NIXL_ERR_NO_TELEMETRY = -12,
};

struct nixlBasicDesc {
	uintptr_t addr = 0;
	size_t len = 0;
	uint64_t devId = 0;
};

template <class T> class nixlDescList
{
      public:
	std::vector<T> descs;
};

class nixlDlistH;   /* a prepared descriptor list */
class nixlXferReqH; /* one transfer request */
class nixlBackendH;

class nixlAgentOptionalArgs
{
      public:
	std::vector<nixlBackendH *> backends;
	std::optional<std::string> notif; /* what current callers set */
	std::string notifMsg;             /* what older callers set, with hasNotif */
	bool hasNotif = false;
	bool skipDescMerge = false;
	bool includeConnInfo = false;
	std::string ipAddr;
	int port = 0;
	std::string metadataLabel;
	std::string customParam;
};

/* A probe reads these offsets (x86-64 and arm64, libstdc++): they are the point of this header. */
static_assert(sizeof(std::string) == 32 && sizeof(std::optional<std::string>) == 40);
static_assert(sizeof(nixlAgentOptionalArgs) == 208);
static_assert(offsetof(nixlAgentOptionalArgs, notif) == 24);
static_assert(offsetof(nixlAgentOptionalArgs, notifMsg) == 64);
static_assert(offsetof(nixlAgentOptionalArgs, hasNotif) == 96);

using nixl_xfer_dlist_t = nixlDescList<nixlBasicDesc>;
using nixl_notifs_t = std::unordered_map<std::string, std::vector<std::string>>;
using nixl_opt_args_t = nixlAgentOptionalArgs;

/* One operation as the truth page of the node shows it. */
struct nixlOpView {
	std::string peer, notif;
	uint64_t bytes, sent;
	int status;
};

class nixlAgent
{
      public:
	/* Listens on a loopback port of its own. Throws std::system_error. */
	explicit nixlAgent(const std::string &name);
	~nixlAgent();
	nixlAgent(const nixlAgent &) = delete;
	nixlAgent &operator=(const nixlAgent &) = delete;

	/* Setting up: not probed, and not shaped like the real calls. */
	nixl_status_t registerMem(uintptr_t addr, size_t len);
	nixl_status_t getLocalMD(std::string &md) const;
	nixl_status_t loadRemoteMD(const std::string &md, std::string &name);
	nixl_status_t prepXferDlist(const std::string &agent, const nixl_xfer_dlist_t &descs,
				    nixlDlistH *&handle) const;
	nixl_status_t releasedDlistH(nixlDlistH *handle) const;

	/* The probed calls. */
	nixl_status_t makeXferReq(const nixl_xfer_op_t &operation, const nixlDlistH *local_side,
				  const std::vector<int> &local_indices,
				  const nixlDlistH *remote_side,
				  const std::vector<int> &remote_indices, nixlXferReqH *&req_hndl,
				  const nixl_opt_args_t *extra_params = nullptr) const;
#ifdef NIXL_SPAN /* of sources newer than 1.4: what the one above is made of */
	nixl_status_t makeXferReq(nixl_xfer_op_t operation, const nixlDlistH &local_side,
				  std::span<const int> local_indices, const nixlDlistH &remote_side,
				  std::span<const int> remote_indices, nixlXferReqH *&req_hndl,
				  const nixl_opt_args_t *extra_params = nullptr) const;
#endif
	nixl_status_t createXferReq(const nixl_xfer_op_t &operation,
				    const nixl_xfer_dlist_t &local_descs,
				    const nixl_xfer_dlist_t &remote_descs,
				    const std::string &remote_agent, nixlXferReqH *&req_hndl,
				    const nixl_opt_args_t *extra_params = nullptr) const;
	nixl_status_t postXferReq(nixlXferReqH *req_hndl,
				  const nixl_opt_args_t *extra_params = nullptr) const;
	nixl_status_t getXferStatus(nixlXferReqH *req_hndl) const;
	nixl_status_t releaseXferReq(nixlXferReqH *req_hndl) const;
	nixl_status_t getNotifs(nixl_notifs_t &notif_map,
				const nixl_opt_args_t *extra_params = nullptr);
	nixl_status_t genNotif(const std::string &remote_agent, const std::string &msg,
			       const nixl_opt_args_t *extra_params = nullptr) const;

	/* For the receiving side and for the tests: not probed. */
	void progress(int timeout_ms) const; /* receive and send what is possible */
	void setRate(uint64_t bytes_per_s);  /* how fast this side receives, 0: no limit */
	std::vector<nixlOpView> ops() const; /* posted and not yet complete */

      private:
	struct Data;
	std::unique_ptr<Data> data;
};

/*
 * Test hooks. nixl_test_throw: every later call of the named probed function (without
 * "nixlAgent::") throws std::runtime_error; NULL or "" ends it; the environment variable
 * NIXL_TEST_THROW arms it at load. nixl_test_error: a status call for an operation whose
 * notification text begins with prefix answers status (negative) from now on; status 0 ends it.
 */
extern "C" {
int nixl_test_throw(const char *function);
void nixl_test_error(const char *prefix, int status);
}

#endif
