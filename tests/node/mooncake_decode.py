# SPDX-License-Identifier: Apache-2.0
"""A decode rank over Mooncake: told by messages, not by notifications, that its bytes have come."""
import array
import contextlib
import os
import random
import struct

import zmq

from decode import Rank
from kv import KVPoll
from mooncake_wire import KVArgsRegisterInfo, MooncakeTransferEngine, TransferInfo


class Agent:
    """The engine under the names that decode.py uses."""

    def __init__(self, build):
        self.engine = MooncakeTransferEngine(build)
        self.name = self.engine.get_session_id()
        self.register_memory = self.engine.register
        self.progress = self.engine.engine.progress
        self.set_rate = self.engine.engine.set_rate


class MooncakeRank(Rank):
    def new_agent(self, args):
        """Workers are chosen by the port of a session: one of the right ones, where it matters. Of ports that the
        kernel chooses all odd ones come first."""
        if args.on_worker < 0:
            return Agent(args.build)
        for _ in range(1000):
            port = random.randrange(10000 // args.workers, 32000 // args.workers) * args.workers + args.on_worker
            os.environ["SILENTPIN_NODE_PORT"] = str(port)
            with contextlib.suppress(OSError, RuntimeError):  # the port is taken
                return Agent(args.build)
        raise OSError("no port is free")

    def bind(self, args, number, ctx):
        self.told = ctx.socket(zmq.PULL)
        return self.told.bind_to_random_port("tcp://127.0.0.1")

    def registration(self, size, number):
        geometry = self.geometry
        return KVArgsRegisterInfo(
            room="None", endpoint="127.0.0.1", dst_port=self.local_port,
            mooncake_session_id=self.agent.name,
            dst_kv_ptrs=[self.base + at for at in geometry.kv_offsets()],
            dst_aux_ptrs=[self.base + geometry.aux_offset()],
            dst_state_data_ptrs=[[self.base + geometry.state_offset()]],
            dst_tp_rank=number, dst_attn_tp_size=size, dst_kv_item_len=geometry.item_len).to_zmq()

    def metadata(self, room, pages, aux, required, state, prefix):
        return TransferInfo(
            room=room, endpoint="127.0.0.1", dst_port=self.local_port,
            mooncake_session_id=self.agent.name, dst_kv_indices=array.array("i", pages),
            dst_aux_index=aux, dst_state_indices=list(state), required_dst_info_num=required,
            is_dummy=False, decode_prefix_len=prefix).to_zmq()

    def take_notifs(self):
        """The rooms that prefill has said to be complete."""
        done = []
        while self.told.poll(0):
            msg = self.told.recv_multipart()
            if msg[0] == b"AUX_DATA":
                self.take_aux(msg)
            elif msg[0] != b"ABORT_ACK" and int(msg[1]) == KVPoll.Success and int(msg[0]) in self.rooms:
                done.append(int(msg[0]))
        return done

    def take_aux(self, msg):
        (size,) = struct.unpack(">I", msg[4])
        assert size == len(msg[5]) == self.geometry.aux_len, f"pid {os.getpid()}: aux of {size} bytes"
        at = self.geometry.aux_offset() + int(msg[3]) * size
        self.memory[at:at + size] = msg[5]
