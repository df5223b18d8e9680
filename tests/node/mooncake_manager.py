# SPDX-License-Identifier: Apache-2.0
"""MooncakeKVManager: what decode ranks say, and the transfers of one scheduler over Mooncake's engine.

A worker takes one chunk at a time and calls the engine once for each destination; the call returns when
the bytes have come, or not at all. At the end of the last chunk each destination is told the room's status.
"""
import concurrent.futures
import os
import struct
import threading
import time

import zmq

from kv import KVPoll
from manager import CommonKVManager
from mooncake_wire import KVArgsRegisterInfo, MooncakeTransferEngine, TransferInfo


def contiguous(src, dst):
    """[(first source page, first destination page, pages)]: runs that are contiguous on both sides."""
    runs = []
    for s, d in zip(src, dst):
        if runs and runs[-1][0] + runs[-1][2] == s and runs[-1][1] + runs[-1][2] == d:
            runs[-1][2] += 1
        else:
            runs.append([s, d, 1])
    return runs


class MooncakeKVManager(CommonKVManager):
    AUX_DATA_HEADER = b"AUX_DATA"

    def __init__(self, args, geometry):
        self.engine = None
        self.session_failures = {}
        self.session_lock = threading.Lock()
        self.peer_pids = {}  # told by the tests: a session does not say whose it is
        self.fails, self.blocks = set(), set()  # test hooks: rooms whose next write fails, blocks
        self.copies = {}  # test hook: {room: bytes} that its next write copies on the device
        self._socket_cache = {}
        self._socket_lock = threading.Lock()
        self.executors = [concurrent.futures.ThreadPoolExecutor(2) for _ in range(args.workers)]
        super().__init__(args, geometry)

    def _load_agent(self):
        os.environ["MC_TRANSFER_TIMEOUT"] = str(self.server_args.transfer_timeout)
        self.engine = MooncakeTransferEngine(self.server_args.build, self.server_args.old_engine)
        self.engine.register(self.memory_ptr, self.geometry.size())

    @staticmethod
    def hooks():
        import mooncake.engine

        return mooncake.engine

    def peer_pid(self, name):
        return self.peer_pids.get(name, 0)

    def pending_ops(self, room, peers):
        """What is submitted and not complete to these peers: the engine knows no rooms."""
        return [{"peer": peer, "bytes": size, "sent": sent}
                for peer, size, sent in (self.engine.engine.pending() if self.engine else [])
                if peer in peers]

    def batches(self):
        """What has been submitted, and for which room: [[batch id, room]]."""
        return [[batch, str(room)] for batch, room in
                (self.hooks().test_batches() if self.engine else [])]

    def update_status(self, bootstrap_room, status):
        """Failed does not bring a cleared entry back; a retry of a failed room begins anew."""
        if bootstrap_room not in self.request_status:
            if status != KVPoll.Failed:
                self.request_status[bootstrap_room] = status
        elif status == KVPoll.Failed:
            self.request_status[bootstrap_room] = KVPoll.Failed
        else:
            self.request_status[bootstrap_room] = max(self.request_status[bootstrap_room], status)

    # ---- messages ------------------------------------------------------------------------------
    def _handle_message(self, msg):
        room = msg[0].decode("ascii")
        if room in ("WATERMARK", "STAGING_RSP"):
            return  # staging is off
        if room == "ABORT":
            self._handle_abort(msg)
            self._tell(msg[2].decode("ascii"), int(msg[3]), b"ABORT_ACK", msg[1])
            return
        mooncake_session_id = msg[3].decode("ascii")
        if room == "None":
            if self.engine is None:
                self._load_agent()
            self.decode_kv_args_table[mooncake_session_id] = KVArgsRegisterInfo.from_zmq(msg)
            with self.session_lock:
                self.failed_sessions.discard(mooncake_session_id)
                self.session_failures.pop(mooncake_session_id, None)
            self.counters["registration"] += 1
            return
        info = TransferInfo.from_zmq(msg)
        self.transfer_infos.setdefault(info.room, {})[mooncake_session_id] = info
        self.counters["metadata"] += 1
        if len(self.transfer_infos[info.room]) == info.required_dst_info_num:
            self.req_to_decode_prefix_len[info.room] = next(
                (i.decode_prefix_len for i in self.transfer_infos[info.room].values()
                 if i.decode_prefix_len is not None), 0)
            self.update_status(info.room, KVPoll.WaitingForInput)

    def _tell(self, host, port, *frames):
        endpoint = f"tcp://{host}:{port}"
        with self._socket_lock:
            if endpoint not in self._socket_cache:
                socket = self._zmq_ctx.socket(zmq.PUSH)
                socket.setsockopt(zmq.LINGER, 0)
                socket.connect(endpoint)
                self._socket_cache[endpoint] = socket
            self._socket_cache[endpoint].send_multipart(frames)

    def sync_status_to_decode_endpoint(self, remote, dst_port, room, status, prefill_rank):
        self._tell(remote, dst_port, b"%d" % room, b"%d" % status, b"%d" % prefill_rank)

    def conclude(self, room, status, targets, reason=None):
        if status == KVPoll.Failed:
            self.record_failure(room, reason)
        self.update_status(room, status)
        for endpoint, dst_port in targets:
            self.sync_status_to_decode_endpoint(endpoint, dst_port, room, status, self.engine_rank)

    # ---- transfers -----------------------------------------------------------------------------
    def shard_of(self, room):
        """By the ports of the destinations: what goes to the same ones waits in one queue."""
        return sum(int(session.rsplit(":", 1)[1])
                   for session in self.transfer_infos[room]) % len(self.transfer_queues)

    def add_transfer_request(self, bootstrap_room, *more):
        if self.request_status.get(bootstrap_room) in (None, KVPoll.Failed):
            self.counters["chunks_skipped"] += 1
        elif bootstrap_room not in self.transfer_infos:
            self.counters["chunks_skipped"] += 1  # as if nobody took data from this rank
        else:
            super().add_transfer_request(bootstrap_room, *more)

    def transfer_worker(self, queue, now):
        now.tid = threading.get_native_id()
        executor = self.executors[self.worker_now.index(now)]
        while True:
            now.chunk = None
            try:
                kv_chunk = queue.get()
                now.since_ns, now.peers, now.chunk = time.monotonic_ns(), [], kv_chunk
                self._staging_outstanding[kv_chunk.room] = self._staging_outstanding.get(
                    kv_chunk.room, 0) + 1
                self.counters["chunks"] += 1
                if self.request_status.get(kv_chunk.room) in (None, KVPoll.Failed):
                    self._staging_outstanding.pop(kv_chunk.room, None)
                    self.counters["chunks_skipped"] += 1
                    continue
                polls, told = [], []
                for req in list(self.transfer_infos.get(kv_chunk.room, {}).values()):
                    if req.is_dummy:
                        if kv_chunk.is_last_chunk and req.room in self.request_status:
                            self.update_status(req.room, KVPoll.Success)
                        continue
                    now.peers.append(req.mooncake_session_id)
                    if self._send_chunk(kv_chunk, req, executor, now) != 0:
                        self._session_failed(kv_chunk, req)
                        break
                    if not kv_chunk.is_last_chunk or req.room in self._aux_held:
                        continue
                    polls.append(self._send_last(kv_chunk, req) == 0)
                    told.append((req.endpoint, req.dst_port))
                    if len(polls) == req.required_dst_info_num:
                        self.conclude(req.room, KVPoll.Success if all(polls) else KVPoll.Failed,
                                      told, f"Failed to send aux data of {req.room}")
                self._chunk_over(kv_chunk)
            except Exception as e:
                raise RuntimeError(f"Transfer thread failed because of {e}.") from e

    def _chunk_over(self, kv_chunk):
        left = self._staging_outstanding.get(kv_chunk.room, 0) - 1
        self._staging_outstanding[kv_chunk.room] = left
        status = self.request_status.get(kv_chunk.room)
        if left <= 0:
            self._staging_outstanding.pop(kv_chunk.room, None)
        if left <= 0 and (status in (None, KVPoll.Success)
                          or (kv_chunk.is_last_chunk and status == KVPoll.Failed)):
            self.transfer_infos.pop(kv_chunk.room, None)
            self.req_to_decode_prefix_len.pop(kv_chunk.room, None)

    def _session_failed(self, kv_chunk, req):
        session = req.mooncake_session_id
        self.counters["worker_errors"] += 1
        with self.session_lock:
            self.session_failures[session] = self.session_failures.get(session, 0) + 1
            if kv_chunk.room not in self.fails:  # of a hook: the peer is well
                self.failed_sessions.add(session)
        self.conclude(kv_chunk.room, KVPoll.Failed, [(req.endpoint, req.dst_port)],
                      f"Failed to send kv chunk of {kv_chunk.room} to {session}")

    def _send_chunk(self, kv_chunk, req, executor, now):
        """The pages of one chunk to one decode rank: 0, or -1."""
        with self.session_lock:
            if req.mooncake_session_id in self.failed_sessions:
                return -1
        target = self.decode_kv_args_table[req.mooncake_session_id]
        pages, dst = kv_chunk.prefill_kv_indices, req.dst_kv_indices[kv_chunk.index_slice]
        item = target.dst_kv_item_len
        runs = contiguous(pages, dst)
        layers = [[(src_ptr + s * item, dst_ptr + d * item, n * item) for s, d, n in runs]
                  for src_ptr, dst_ptr in zip(self.kv_data_ptrs, target.dst_kv_ptrs)]
        if not runs:
            return 0
        if kv_chunk.room in self.fails:
            self.hooks().test_fail()
        if kv_chunk.room in self.copies:
            self.hooks().test_copy(self.copies.pop(kv_chunk.room))
        if kv_chunk.room in self.blocks:
            self.blocks.discard(kv_chunk.room)
            now.blocked = True
            self.hooks().test_block()
        if self.server_args.layer_threads:
            futures = [executor.submit(self._transfer_data, kv_chunk.room, req.mooncake_session_id, layer)
                       for layer in layers]
            ret = next((f.result() for f in futures if f.result() != 0), 0)
        else:
            ret = self._transfer_data(kv_chunk.room, req.mooncake_session_id, sum(layers, []))
        now.blocked = False
        return ret

    def _transfer_data(self, room, mooncake_session_id, transfer_blocks):
        self.hooks().test_room(room)
        if not self.server_args.old_engine:
            src, dst, lengths = zip(*transfer_blocks)
            return self.engine.batch_transfer_sync(mooncake_session_id, list(src), list(dst),
                                                   list(lengths))
        for block in transfer_blocks:
            if self.engine.transfer_sync(mooncake_session_id, *block) != 0:
                return -1
        return 0

    def _send_last(self, kv_chunk, req):
        """What goes with the last chunk: state, then the auxiliary data."""
        target = self.decode_kv_args_table[req.mooncake_session_id]
        size = self.geometry.state_len
        if req.dst_state_indices and target.dst_state_data_ptrs and self._transfer_data(
                kv_chunk.room, req.mooncake_session_id, [(
                    self.state_data_ptr + kv_chunk.prefill_aux_index * size,
                    target.dst_state_data_ptrs[0][0] + req.dst_state_indices[0][0] * size,
                    size)]) != 0:
            return -1
        size = self.geometry.aux_len
        src = kv_chunk.prefill_aux_index * size
        if self.server_args.aux_by_zmq:
            at = self.geometry.aux_offset() + src
            self._tell(req.endpoint, req.dst_port, self.AUX_DATA_HEADER, b"%d" % req.room, b"0",
                       b"%d" % req.dst_aux_index, struct.pack(">I", size),
                       self.memory[at:at + size])
            return 0
        return self._transfer_data(kv_chunk.room, req.mooncake_session_id, [(
            self.aux_data_ptr + src, target.dst_aux_ptrs[0] + req.dst_aux_index * size, size)])
