# SPDX-License-Identifier: Apache-2.0
"""What both sides of the Mooncake connector know: the messages of the decode side, the engine."""
import array
import dataclasses
import struct
import sys

from kv import pack_int_lists, unpack_int_lists


@dataclasses.dataclass
class TransferInfo:
    """One decode rank's answer for one room."""

    room: int
    endpoint: str
    dst_port: int
    mooncake_session_id: str
    dst_kv_indices: array.array
    dst_aux_index: int
    dst_state_indices: list
    required_dst_info_num: int
    is_dummy: bool
    decode_prefix_len: int

    @classmethod
    def from_zmq(cls, msg):
        dummy = msg[4] == b"" and msg[5] == b""
        return cls(
            room=int(msg[0]), endpoint=msg[1].decode("ascii"), dst_port=int(msg[2]),
            mooncake_session_id=msg[3].decode("ascii"), dst_kv_indices=array.array("i", msg[4]),
            dst_aux_index=None if dummy else int(msg[5]),
            dst_state_indices=unpack_int_lists(msg[6], "i") if msg[6] else [],
            required_dst_info_num=int(msg[7]), is_dummy=dummy,
            decode_prefix_len=int(msg[8]) if len(msg) > 8 and msg[8] else None)

    def to_zmq(self):
        return [b"%d" % self.room, self.endpoint.encode(), b"%d" % self.dst_port,
                self.mooncake_session_id.encode(), self.dst_kv_indices.tobytes(),
                b"" if self.is_dummy else b"%d" % self.dst_aux_index,
                pack_int_lists(self.dst_state_indices, "i") if self.dst_state_indices else b"",
                b"%d" % self.required_dst_info_num, b"%d" % (self.decode_prefix_len or 0),
                b""]  # pages of a second, device-side pool


@dataclasses.dataclass
class KVArgsRegisterInfo:
    """What a decode rank sends once: where its buffers are."""

    room: str
    endpoint: str
    dst_port: int
    mooncake_session_id: str
    dst_kv_ptrs: list
    dst_aux_ptrs: list
    dst_state_data_ptrs: list
    dst_tp_rank: int
    dst_attn_tp_size: int
    dst_kv_item_len: int

    @classmethod
    def from_zmq(cls, msg):
        return cls(
            room=msg[0].decode("ascii"), endpoint=msg[1].decode("ascii"), dst_port=int(msg[2]),
            mooncake_session_id=msg[3].decode("ascii"),
            dst_kv_ptrs=list(struct.unpack(f"<{len(msg[4]) // 8}Q", msg[4])),
            dst_aux_ptrs=list(struct.unpack(f"<{len(msg[5]) // 8}Q", msg[5])),
            dst_state_data_ptrs=unpack_int_lists(msg[6], "Q") if msg[6] else [],
            dst_tp_rank=int(msg[7]), dst_attn_tp_size=int(msg[8]), dst_kv_item_len=int(msg[9]))

    def to_zmq(self):
        return [b"None", self.endpoint.encode(), b"%d" % self.dst_port,
                self.mooncake_session_id.encode(),
                struct.pack(f"<{len(self.dst_kv_ptrs)}Q", *self.dst_kv_ptrs),
                struct.pack(f"<{len(self.dst_aux_ptrs)}Q", *self.dst_aux_ptrs),
                pack_int_lists(self.dst_state_data_ptrs, "Q"),
                b"%d" % self.dst_tp_rank, b"%d" % self.dst_attn_tp_size,
                b"%d" % self.dst_kv_item_len,
                b"", b"", b"", b"",  # state lengths and dimensions, layer ids of KV and state
                b"", b"",  # staging base and size
                b"1", b"0"]  # size and rank of decode context parallelism


class MooncakeTransferEngine:
    """The server's wrapper of the engine's Python class."""

    def __init__(self, build, old=False):
        sys.path.insert(0, f"{build}/old" if old else build)
        from mooncake.engine import TransferEngine

        self.engine = TransferEngine()
        self.hostname = "127.0.0.1"
        self.engine.initialize(self.hostname, "P2PHANDSHAKE", "tcp", "")
        self.session_id = f"{self.hostname}:{self.engine.get_rpc_port()}"

    def register(self, ptr, length):
        self.engine.register_memory(ptr, length)

    def get_session_id(self):
        return self.session_id

    def transfer_sync(self, session_id, buffer, peer_buffer_address, length):
        return self.engine.transfer_sync_write(session_id, buffer, peer_buffer_address, length)

    def batch_transfer_sync(self, session_id, buffers, peer_buffer_addresses, lengths):
        return self.engine.batch_transfer_sync_write(session_id, buffers, peer_buffer_addresses,
                                                     lengths)
