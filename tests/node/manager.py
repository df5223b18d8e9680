# SPDX-License-Identifier: Apache-2.0
"""CommonKVManager: status table, bootstrap thread and transfer workers of one scheduler, whatever moves
the bytes."""
import ctypes
import mmap
import threading

import zmq

from kv import FastQueue, KVPoll, TransferKVChunk


class WorkerNow:
    """What a transfer worker is doing, for the truth page."""

    def __init__(self):
        self.tid = 0
        self.chunk = None
        self.since_ns = 0
        self.peers = []
        self.polls = 0  # rounds over the handles of this chunk
        self.blocked = False  # a hook keeps it within a call


class CommonKVManager:
    """Of the transport: _load_agent, _handle_message, transfer_worker, peer_pid and pending_ops."""

    def __init__(self, args, geometry):
        self.server_args = args
        self.geometry = geometry
        self.engine_rank = 0
        self.attn_tp_size = 1
        self.attn_tp_rank = 0
        self.pp_size = 1
        self.pp_rank = 0
        self.system_dp_size = 1
        self.is_mla_backend = True
        self.enable_staging = False
        self.is_dummy_cp_rank = False
        self.local_ip = "127.0.0.1"
        self.bootstrap_host = "127.0.0.1"
        self.bootstrap_port = args.port
        self.bootstrap_timeout = args.bootstrap_timeout

        self.request_status = {}
        self.transfer_infos = {}
        self.req_to_decode_prefix_len = {}
        self.decode_kv_args_table = {}
        self.failure_records = {}
        self.failure_lock = threading.Lock()
        self.exceptions = {}
        self.failed_sessions = set()
        # Chunks taken by a worker and not known to have stopped writing. A chunk that ended in a
        # transport error stays counted: its write may still land.
        self._staging_outstanding = {}
        self.counters = {"metadata": 0, "registration": 0, "abort": 0, "abort_ignored": 0,
                         "chunks": 0, "chunks_skipped": 0, "worker_errors": 0}

        self.memory = mmap.mmap(-1, geometry.size())
        self.memory_ptr = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.kv_data_ptrs = [self.memory_ptr + at for at in geometry.kv_offsets()]
        self.aux_data_ptr = self.memory_ptr + geometry.aux_offset()
        self.state_data_ptr = self.memory_ptr + geometry.state_offset()
        self._aux_held = set()  # test hook: rooms whose auxiliary write is lost
        if not args.lazy_nixl:
            self._load_agent()

        self._zmq_ctx = zmq.Context()
        self.server_socket = self._zmq_ctx.socket(zmq.PULL)
        self.rank_port = self.server_socket.bind_to_random_port("tcp://127.0.0.1")

        self.transfer_queues = [FastQueue() for _ in range(args.workers)]
        self.worker_now = [WorkerNow() for _ in self.transfer_queues]
        self.worker_threads = []
        for i, queue in enumerate(self.transfer_queues):
            self.worker_threads.append(threading.Thread(
                target=self.transfer_worker, args=(queue, self.worker_now[i]),
                name=f"transfer-{i}", daemon=True))
            self.worker_threads[-1].start()
        self.bootstrap_tid = 0
        self._start_bootstrap_thread()

    def batches(self):
        return []

    # ---- the status table ----------------------------------------------------------------------
    def check_status(self, bootstrap_room):
        return self.request_status.get(bootstrap_room, KVPoll.WaitingForInput)

    def update_status(self, bootstrap_room, status):
        """Failed does not bring a cleared entry back, and stays until the sender clears it."""
        now = self.request_status.get(bootstrap_room)
        if now is None:
            if status != KVPoll.Failed:
                self.request_status[bootstrap_room] = status
        elif status == KVPoll.Failed:
            self.request_status[bootstrap_room] = KVPoll.Failed
        elif now != KVPoll.Failed:
            self.request_status[bootstrap_room] = max(now, status)

    def record_failure(self, bootstrap_room, reason):
        with self.failure_lock:
            self.failure_records[bootstrap_room] = reason

    # ---- messages of the decode side -----------------------------------------------------------
    def _start_bootstrap_thread(self):
        def bootstrap_thread():
            self.bootstrap_tid = threading.get_native_id()
            while True:
                self._handle_message(self.server_socket.recv_multipart())

        self.bootstrap_thread = threading.Thread(target=bootstrap_thread, name="bootstrap",
                                                 daemon=True)
        self.bootstrap_thread.start()

    def _handle_abort(self, msg):
        room = int(msg[1])
        self.counters["abort"] += 1
        if room in self.request_status and self.check_status(room) != KVPoll.Success:
            self.record_failure(room, "Aborted by the decode side.")
            self.update_status(room, KVPoll.Failed)
        else:
            self.counters["abort_ignored"] += 1

    # ---- transfers -----------------------------------------------------------------------------
    def shard_of(self, room):
        """Which worker has the room's chunks."""
        return room % len(self.transfer_queues)

    def add_transfer_request(self, bootstrap_room, kv_indices, index_slice, is_last_chunk,
                             chunk_id, aux_index=None, state_indices=None):
        self.transfer_queues[self.shard_of(bootstrap_room)].put(TransferKVChunk(
            room=bootstrap_room, prefill_kv_indices=kv_indices, index_slice=index_slice,
            is_last_chunk=is_last_chunk, chunk_id=chunk_id, prefill_aux_index=aux_index,
            state_indices=state_indices))
