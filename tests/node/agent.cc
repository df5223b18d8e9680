// SPDX-License-Identifier: Apache-2.0
/* The exported class: checks its arguments as the real one does and hands the work to the engine.
 */
#include <algorithm>

#include "engine.h"
#include "hooks.h"

class nixlDlistH
{
      public:
	std::string agent; /* "" for this side */
	std::vector<nixlBasicDesc> descs;
};

class nixlXferReqH
{
      public:
	std::shared_ptr<Op> op;
};

struct nixlAgent::Data : Engine {
	using Engine::Engine;
};

namespace
{
std::string notif_of(const nixl_opt_args_t *extra)
{
	if (!extra)
		return "";
	if (extra->notif)
		return *extra->notif;
	return extra->hasNotif ? extra->notifMsg : "";
}

/* One more piece for the wire; a piece that continues the last one on both sides is merged. */
void add_piece(Op &op, const nixlBasicDesc &from, const nixlBasicDesc &to, bool merge)
{
	if (merge && !op.local.empty()) {
		Segment &l = op.local.back(), &r = op.remote.back();

		if (l.addr + l.len == from.addr && r.addr + r.len == to.addr) {
			l.len += from.len;
			r.len += to.len;
			op.bytes += from.len;
			return;
		}
	}
	op.local.push_back({from.addr, from.len});
	op.remote.push_back({to.addr, to.len});
	op.bytes += from.len;
}

bool registered(const Engine &e, const std::vector<nixlBasicDesc> &descs)
{
	return std::all_of(descs.begin(), descs.end(),
			   [&](const nixlBasicDesc &d) { return e.in_allowed(d.addr, d.len); });
}
} // namespace

nixlAgent::nixlAgent(const std::string &name) : data(std::make_unique<Data>(name))
{
}
nixlAgent::~nixlAgent() = default;

nixl_status_t nixlAgent::registerMem(uintptr_t addr, size_t len)
{
	std::lock_guard<std::mutex> hold(data->lock);

	data->allow(addr, len);
	return NIXL_SUCCESS;
}

nixl_status_t nixlAgent::getLocalMD(std::string &md) const
{
	md = data->metadata();
	return NIXL_SUCCESS;
}

nixl_status_t nixlAgent::loadRemoteMD(const std::string &md, std::string &name)
{
	std::lock_guard<std::mutex> hold(data->lock);

	return data->connect(md, name);
}

nixl_status_t nixlAgent::prepXferDlist(const std::string &agent, const nixl_xfer_dlist_t &descs,
				       nixlDlistH *&handle) const
{
	std::lock_guard<std::mutex> hold(data->lock);

	if (agent.empty() ? !registered(*data, descs.descs) : !data->knows(agent))
		return NIXL_ERR_NOT_FOUND;
	handle = new nixlDlistH{agent, descs.descs};
	return NIXL_SUCCESS;
}

nixl_status_t nixlAgent::releasedDlistH(nixlDlistH *handle) const
{
	delete handle;
	return NIXL_SUCCESS;
}

#ifdef NIXL_SPAN
nixl_status_t nixlAgent::makeXferReq(const nixl_xfer_op_t &operation, const nixlDlistH *local_side,
				     const std::vector<int> &local_indices,
				     const nixlDlistH *remote_side,
				     const std::vector<int> &remote_indices,
				     nixlXferReqH *&req_hndl,
				     const nixl_opt_args_t *extra_params) const
{
	req_hndl = nullptr;
	if (!local_side || !remote_side)
		return NIXL_ERR_INVALID_PARAM;
	return makeXferReq(operation, *local_side, local_indices, *remote_side, remote_indices,
			   req_hndl, extra_params);
}

nixl_status_t nixlAgent::makeXferReq(nixl_xfer_op_t operation, const nixlDlistH &local,
				     std::span<const int> local_indices, const nixlDlistH &remote,
				     std::span<const int> remote_indices, nixlXferReqH *&req_hndl,
				     const nixl_opt_args_t *extra_params) const
{
	const nixlDlistH *local_side = &local, *remote_side = &remote;
#else
nixl_status_t nixlAgent::makeXferReq(const nixl_xfer_op_t &operation, const nixlDlistH *local_side,
				     const std::vector<int> &local_indices,
				     const nixlDlistH *remote_side,
				     const std::vector<int> &remote_indices,
				     nixlXferReqH *&req_hndl,
				     const nixl_opt_args_t *extra_params) const
{
#endif
	auto op = std::make_shared<Op>();
	std::lock_guard<std::mutex> hold(data->lock);

	req_hndl = nullptr;
	test_point(HOOK_MAKE);
	if (!local_side || !remote_side || local_indices.empty())
		return NIXL_ERR_INVALID_PARAM;
	if (operation != NIXL_WRITE)
		return NIXL_ERR_NOT_SUPPORTED;
	if (local_indices.size() != remote_indices.size())
		return NIXL_ERR_MISMATCH;
	if (!data->knows(remote_side->agent))
		return NIXL_ERR_NOT_FOUND;
	for (size_t i = 0; i < local_indices.size(); i++) {
		auto l = static_cast<size_t>(local_indices[i]);
		auto r = static_cast<size_t>(remote_indices[i]);

		if (l >= local_side->descs.size() || r >= remote_side->descs.size())
			return NIXL_ERR_INVALID_PARAM;
		if (local_side->descs[l].len != remote_side->descs[r].len)
			return NIXL_ERR_MISMATCH;
		add_piece(*op, local_side->descs[l], remote_side->descs[r],
			  !extra_params || !extra_params->skipDescMerge);
	}
	op->peer = remote_side->agent;
	op->notif = notif_of(extra_params);
	req_hndl = new nixlXferReqH{op};
	return NIXL_SUCCESS;
}

nixl_status_t nixlAgent::createXferReq(const nixl_xfer_op_t &operation,
				       const nixl_xfer_dlist_t &local_descs,
				       const nixl_xfer_dlist_t &remote_descs,
				       const std::string &remote_agent, nixlXferReqH *&req_hndl,
				       const nixl_opt_args_t *extra_params) const
{
	auto op = std::make_shared<Op>();
	std::lock_guard<std::mutex> hold(data->lock);

	req_hndl = nullptr;
	test_point(HOOK_CREATE);
	if (operation != NIXL_WRITE)
		return NIXL_ERR_NOT_SUPPORTED;
	if (local_descs.descs.size() != remote_descs.descs.size())
		return NIXL_ERR_MISMATCH;
	if (!data->knows(remote_agent) || !registered(*data, local_descs.descs))
		return NIXL_ERR_NOT_FOUND;
	for (size_t i = 0; i < local_descs.descs.size(); i++) {
		if (local_descs.descs[i].len != remote_descs.descs[i].len)
			return NIXL_ERR_MISMATCH;
		add_piece(*op, local_descs.descs[i], remote_descs.descs[i],
			  !extra_params || !extra_params->skipDescMerge);
	}
	op->peer = remote_agent;
	op->notif = notif_of(extra_params);
	req_hndl = new nixlXferReqH{op};
	return NIXL_SUCCESS;
}

nixl_status_t nixlAgent::postXferReq(nixlXferReqH *req_hndl,
				     const nixl_opt_args_t *extra_params) const
{
	std::lock_guard<std::mutex> hold(data->lock);

	test_point(HOOK_POST);
	if (!req_hndl)
		return NIXL_ERR_INVALID_PARAM;
	if (req_hndl->op->status == NIXL_IN_PROG)
		return NIXL_ERR_REPOST_ACTIVE;
	if (extra_params && (extra_params->notif || extra_params->hasNotif))
		req_hndl->op->notif = notif_of(extra_params);
	return data->post(req_hndl->op);
}

nixl_status_t nixlAgent::getXferStatus(nixlXferReqH *req_hndl) const
{
	std::lock_guard<std::mutex> hold(data->lock);

	test_point(HOOK_STATUS);
	if (!req_hndl)
		return NIXL_ERR_INVALID_PARAM;

	Op &op = *req_hndl->op;

	if (op.status == NIXL_IN_PROG)
		data->step();
	if (op.status >= 0)
		op.status = test_status(op.notif, op.status);
	return op.status;
}

/* An operation that is still in progress goes on: its bytes are half on the wire. */
nixl_status_t nixlAgent::releaseXferReq(nixlXferReqH *req_hndl) const
{
	std::lock_guard<std::mutex> hold(data->lock);

	test_point(HOOK_RELEASE);
	if (!req_hndl)
		return NIXL_ERR_INVALID_PARAM;
	delete req_hndl;
	return NIXL_SUCCESS;
}

nixl_status_t nixlAgent::getNotifs(nixl_notifs_t &notif_map, const nixl_opt_args_t *extra_params)
{
	std::lock_guard<std::mutex> hold(data->lock);

	test_point(HOOK_NOTIFS);
	if (extra_params && !extra_params->backends.empty())
		return NIXL_ERR_NOT_SUPPORTED;
	data->step();
	data->drain(notif_map);
	return NIXL_SUCCESS;
}

nixl_status_t nixlAgent::genNotif(const std::string &remote_agent, const std::string &msg,
				  const nixl_opt_args_t *extra_params) const
{
	std::lock_guard<std::mutex> hold(data->lock);

	test_point(HOOK_GEN);
	if (extra_params && !extra_params->backends.empty())
		return NIXL_ERR_NOT_SUPPORTED;
	return data->notify(remote_agent, msg);
}

void nixlAgent::progress(int timeout_ms) const
{
	data->progress(timeout_ms);
}

void nixlAgent::setRate(uint64_t bytes_per_s)
{
	std::lock_guard<std::mutex> hold(data->lock);

	data->set_rate(bytes_per_s);
}

std::vector<nixlOpView> nixlAgent::ops() const
{
	std::lock_guard<std::mutex> hold(data->lock);

	return data->ops();
}
