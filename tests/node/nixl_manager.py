# SPDX-License-Identifier: Apache-2.0
"""NixlKVManager: what decode ranks say, and the transfers of one scheduler over NIXL."""
import logging
import threading
import time
import uuid

from kv import GUARD, KVArgsRegisterInfo, KVPoll, TransferInfo
from manager import CommonKVManager
from proc import alive

logger = logging.getLogger("node")


class NixlKVManager(CommonKVManager):
    def __init__(self, args, geometry):
        self.agent = None
        self.prep_handles = {}
        super().__init__(args, geometry)

    def _load_agent(self):
        """Imported here: with lazy_nixl the library is mapped when the first decode registers."""
        import _nixl_standin

        self.agent = _nixl_standin.Agent(str(uuid.uuid4()))
        self.agent.register_memory(self.memory_ptr, self.geometry.size())
        self.prep_handles[""] = self.agent.prep_xfer_dlist(
            "", self.geometry.page_descs(self.kv_data_ptrs))

    @staticmethod
    def hooks():
        import _nixl_standin

        return _nixl_standin

    def peer_pid(self, name):
        """The process of a decode rank, from its agent's metadata ("NODE1 port pid name")."""
        return int(self.decode_kv_args_table[name].agent_metadata.split()[2])

    def pending_ops(self, room, peers):
        """What is posted for a room and not complete."""
        return [{"peer": peer, "notif": notif, "bytes": size, "sent": sent, "status": status}
                for peer, notif, size, sent, status in (self.agent.ops() if self.agent else [])
                if notif.startswith(f"{room}_")]

    # ---- messages of the decode side -----------------------------------------------------------
    def _handle_message(self, msg):
        if msg[0] in (b"WATERMARK", b"STAGING_RSP"):
            return  # staging is off
        if msg[0] == b"ABORT":
            self._handle_abort(msg)
            return
        # A foreign message ends this thread, here as in the server that this stands for.
        assert msg[0] == GUARD, f"not ours: {msg[0][:20]!r}"
        self._handle_guarded(msg[1:])

    def _handle_guarded(self, msg):
        if msg[0] == b"None":
            self._add_remote_peer(KVArgsRegisterInfo.from_zmq(msg))
            self.counters["registration"] += 1
            return
        info = TransferInfo.from_zmq(msg)
        room = info.room
        infos = self.transfer_infos.setdefault(room, {})
        infos[info.agent_name] = info
        self.counters["metadata"] += 1
        if len(infos) == info.required_dst_info_num:
            self.req_to_decode_prefix_len[room] = max(
                i.decode_prefix_len or 0 for i in infos.values())
            self.update_status(room, KVPoll.WaitingForInput)

    def _add_remote_peer(self, info):
        if info.agent_name in self.decode_kv_args_table:
            return
        if self.agent is None:
            self._load_agent()
        if len(info.dst_kv_ptrs) != self.geometry.layers:
            raise RuntimeError("decode has another number of layers")
        self.agent.add_remote_agent(info.agent_metadata)
        self.prep_handles[info.agent_name] = self.agent.prep_xfer_dlist(
            info.agent_name, self.geometry.page_descs(info.dst_kv_ptrs))
        self.decode_kv_args_table[info.agent_name] = info

    # ---- transfers -----------------------------------------------------------------------------
    def transfer_worker(self, queue, now):
        now.tid = threading.get_native_id()
        while True:
            now.chunk = None
            kv_chunk = queue.get()
            room = kv_chunk.room
            now.since_ns, now.peers, now.polls, now.chunk = time.monotonic_ns(), [], 0, kv_chunk
            # The handles of the chunk before are released here, when their list goes.
            handles = []
            self.counters["chunks"] += 1
            self._staging_outstanding[room] = self._staging_outstanding.get(room, 0) + 1
            try:
                if self.check_status(room) == KVPoll.Failed:
                    self._staging_outstanding.pop(room, None)
                    self.counters["chunks_skipped"] += 1
                    continue
                if room not in self.transfer_infos:
                    self._chunk_stopped(room)
                    self.counters["chunks_skipped"] += 1
                    continue
                self.update_status(room, KVPoll.Transferring)
                for req in list(self.transfer_infos[room].values()):
                    if not req.is_dummy():
                        now.peers.append(req.agent_name)
                        self._post_chunk(kv_chunk, req, handles)
                while handles:
                    now.polls += 1
                    states = [self.agent.check_xfer_state(handle) for handle in handles]
                    if all(state == "DONE" for state in states):
                        break
                    time.sleep(self.server_args.poll_sleep)
                self._chunk_stopped(room)
                self._chunk_done(kv_chunk)
            except Exception as e:
                self._chunk_failed(room, handles, e)

    def _chunk_stopped(self, room):
        left = self._staging_outstanding.get(room, 0) - 1
        if left > 0:
            self._staging_outstanding[room] = left
        else:
            self._staging_outstanding.pop(room, None)

    def _chunk_done(self, kv_chunk):
        room = kv_chunk.room
        if not kv_chunk.is_last_chunk:
            self.update_status(room, KVPoll.Transferring)
        elif room not in self._aux_held:
            self.update_status(room, KVPoll.Success)
            self.transfer_infos.pop(room, None)
            self.req_to_decode_prefix_len.pop(room, None)

    def _chunk_failed(self, room, handles, e):
        """The worker lives on; only the room fails."""
        logger.warning("unexpected worker error for room %d: %r", room, e)
        self.counters["worker_errors"] += 1
        if type(e).__name__ == "nixlRemoteDisconnectError":
            for name in list(self.decode_kv_args_table):
                if not alive(self.peer_pid(name)):
                    self.failed_sessions.add(name)
        if not handles:
            self._chunk_stopped(room)
        self.exceptions[room] = e
        self.record_failure(room, str(e))
        self.update_status(room, KVPoll.Failed)

    def _post_chunk(self, kv_chunk, req, handles):
        """The writes of one chunk to one decode rank; each handle is kept once it is posted."""
        if req.agent_name in self.failed_sessions:
            raise RuntimeError(f"decode {req.agent_name} failed before")
        dst_info = self.decode_kv_args_table[req.agent_name]
        pages = kv_chunk.prefill_kv_indices
        if pages:
            dst_pages = req.dst_kv_indices[kv_chunk.index_slice]
            if len(dst_pages) < len(pages):
                logger.warning("room %d: %d pages for %d", req.room, len(dst_pages), len(pages))
                pages = pages[:len(dst_pages)]
            notif = (f"{req.room}_kv_{kv_chunk.chunk_id}_{int(kv_chunk.is_last_chunk)}"
                     f"_{self.engine_rank}")
            if pages:
                handle = self.agent.make_prepped_xfer(
                    self.prep_handles[""], self.geometry.flat(pages),
                    self.prep_handles[req.agent_name], self.geometry.flat(dst_pages),
                    notif.encode("ascii"))
                self.agent.transfer(handle)
                handles.append(handle)
        if not kv_chunk.is_last_chunk:
            return
        if req.dst_state_indices and dst_info.dst_state_data_ptrs:
            size = self.geometry.state_len
            handles.append(self._write(
                self.state_data_ptr + kv_chunk.prefill_aux_index * size,
                dst_info.dst_state_data_ptrs[0][0] + req.dst_state_indices[0][0] * size,
                size, req.agent_name, f"{req.room}_state_{self.engine_rank}"))
        if req.room in self._aux_held:
            return
        if kv_chunk.prefill_aux_index is None:
            raise RuntimeError("no auxiliary index for the last chunk")
        notif = f"{req.room}_aux" if pages else f"{req.room}_aux_nokv_{self.engine_rank}"
        size = self.geometry.aux_len
        handles.append(self._write(
            self.aux_data_ptr + kv_chunk.prefill_aux_index * size,
            dst_info.dst_aux_ptrs[0] + req.dst_aux_index * size, size, req.agent_name, notif))

    def _write(self, src, dst, size, peer, notif):
        handle = self.agent.initialize_xfer([(src, size)], [(dst, size)], peer,
                                            notif.encode("ascii"))
        self.agent.transfer(handle)
        return handle
