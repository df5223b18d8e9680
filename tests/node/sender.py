# SPDX-License-Identifier: Apache-2.0
"""The senders: what a request holds to hand its chunks to the manager and to ask how they fare."""
import time

from kv import KVPoll, KVTransferError


class CommonKVSender:
    def __init__(self, mgr, bootstrap_addr, bootstrap_room, dest_tp_ranks, pp_rank):
        self.kv_mgr = mgr
        self.bootstrap_room = bootstrap_room
        self.aux_index = None
        self.bootstrap_server_url = bootstrap_addr
        self.conclude_state = None
        self.curr_idx = 0
        self.num_kv_indices = 0
        self.init_time = time.time()
        self.has_sent = False
        self.chunk_id = 0
        self._send_failed = False
        self.kv_mgr.update_status(bootstrap_room, KVPoll.Bootstrapping)

    def init(self, num_kv_indices, aux_index=None):
        self.num_kv_indices = num_kv_indices
        self.aux_index = aux_index

    def pop_decode_prefix_len(self):
        return self.kv_mgr.req_to_decode_prefix_len.pop(self.bootstrap_room, 0)

    def send(self, kv_indices, state_indices=None):
        if self._send_failed:
            return
        index_slice = slice(self.curr_idx, self.curr_idx + len(kv_indices))
        self.curr_idx += len(kv_indices)
        is_last_chunk = self.curr_idx == self.num_kv_indices
        self.kv_mgr.add_transfer_request(
            self.bootstrap_room, kv_indices, index_slice, is_last_chunk, self.chunk_id,
            self.aux_index, state_indices)
        self.chunk_id += 1
        if is_last_chunk:
            self.has_sent = True

    def poll(self):
        if self._send_failed:
            return KVPoll.Failed
        status = self.kv_mgr.check_status(self.bootstrap_room)
        if status == KVPoll.Bootstrapping:
            return self._check_bootstrap_timeout()
        if status == KVPoll.Success and self.kv_mgr._staging_outstanding.get(self.bootstrap_room):
            return KVPoll.Transferring  # some write of this room may still land
        return status

    def _check_bootstrap_timeout(self):
        elapsed = time.time() - self.init_time
        if elapsed < self.kv_mgr.bootstrap_timeout:
            return KVPoll.Bootstrapping
        self.kv_mgr.record_failure(self.bootstrap_room, f"no decode after {elapsed:.1f} s")
        self.kv_mgr.update_status(self.bootstrap_room, KVPoll.Failed)
        return KVPoll.Failed

    def clear(self):
        self.kv_mgr.request_status.pop(self.bootstrap_room, None)
        self.kv_mgr.req_to_decode_prefix_len.pop(self.bootstrap_room, None)
        self.kv_mgr.transfer_infos.pop(self.bootstrap_room, None)

    def abort(self):
        self.kv_mgr.record_failure(self.bootstrap_room, "Aborted by AbortReq.")
        self.kv_mgr.update_status(self.bootstrap_room, KVPoll.Failed)
        self.conclude_state = KVPoll.Failed

    def failure_exception(self):
        """Ends the sender and says why by raising."""
        exc = self.kv_mgr.exceptions.pop(self.bootstrap_room, None)
        with self.kv_mgr.failure_lock:
            reason = self.kv_mgr.failure_records.pop(self.bootstrap_room, None)
        if self.conclude_state is None:
            self.conclude_state = KVPoll.Failed
        self._send_failed = True
        self.clear()
        if exc is not None:
            raise exc
        raise KVTransferError(self.bootstrap_room, reason or "failed on another rank")


class NixlKVSender(CommonKVSender):
    pass


class MooncakeKVSender(CommonKVSender):
    """It keeps its end: later polls do not ask the table."""

    def poll(self):
        if self.conclude_state is None:
            status = super().poll()
            if status in (KVPoll.Success, KVPoll.Failed):
                self.conclude_state = status
            return status
        return self.conclude_state


class FakeKVSender:
    """Health checks and warm-up: nothing is sent, the status table is not used."""

    def __init__(self, mgr, bootstrap_addr, bootstrap_room, dest_tp_ranks, pp_rank):
        self.kv_mgr = mgr
        self.bootstrap_room = bootstrap_room
        self.conclude_state = None
        self.curr_idx = 0
        self.num_kv_indices = 0
        self.init_time = time.time()
        self.has_sent = False
        self.chunk_id = 0

    def init(self, num_kv_indices, aux_index=None):
        self.num_kv_indices = num_kv_indices

    def pop_decode_prefix_len(self):
        return 0

    def send(self, kv_indices, state_indices=None):
        self.curr_idx += len(kv_indices)
        self.chunk_id += 1
        self.has_sent = self.curr_idx == self.num_kv_indices

    def poll(self):
        return KVPoll.Success if self.has_sent else KVPoll.WaitingForInput

    def clear(self):
        pass

    def abort(self):
        self.conclude_state = KVPoll.Failed

    def failure_exception(self):
        raise KVTransferError(self.bootstrap_room, "fake sender failed")
