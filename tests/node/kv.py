# SPDX-License-Identifier: Apache-2.0
"""The plain data of the stand-in server: status values, chunks, the messages of the decode side.

Names and values that an observer may look for (KVPoll numbers, FastQueue._buf, frame order) are
those of the real server; the code is ours.
"""
import array
import collections
import dataclasses
import struct
import threading

GUARD = b"NixlMsgGuard"
FAKE_BOOTSTRAP_HOST = "2.2.2.2"


class KVPoll:
    Failed = 0
    Bootstrapping = 1
    WaitingForInput = 2
    Transferring = 3
    Success = 4


class KVTransferError(Exception):
    def __init__(self, room, reason):
        super().__init__(f"KVTransferError(bootstrap_room={room}): {reason}")


class FastQueue:
    """A deque under a condition: what the scheduler puts, one worker takes."""

    def __init__(self):
        self._buf = collections.deque()
        self._cond = threading.Condition()

    def put(self, item):
        with self._cond:
            self._buf.append(item)
            self._cond.notify()

    def get(self):
        with self._cond:
            while not self._buf:
                self._cond.wait()
            return self._buf.popleft()


@dataclasses.dataclass
class TransferKVChunk:
    room: int
    prefill_kv_indices: list
    index_slice: slice
    is_last_chunk: bool
    chunk_id: int
    prefill_aux_index: int = None
    state_indices: list = None


def pack_int_lists(lists, code):
    """u32 number of lists, then for each a u32 length and its numbers."""
    out = [struct.pack("<I", len(lists))]
    for one in lists:
        out.append(struct.pack(f"<I{len(one)}{code}", len(one), *one))
    return b"".join(out)


def unpack_int_lists(data, code):
    (count,), at, lists = struct.unpack_from("<I", data), 4, []
    for _ in range(count):
        (n,) = struct.unpack_from("<I", data, at)
        lists.append(list(struct.unpack_from(f"<{n}{code}", data, at + 4)))
        at += 4 + n * struct.calcsize(code)
    return lists


@dataclasses.dataclass
class TransferInfo:
    """One decode rank's answer for one room (frames after the guard)."""

    room: int
    endpoint: str
    dst_port: int
    agent_name: str
    dst_kv_indices: array.array
    dst_aux_index: int
    required_dst_info_num: int
    dst_state_indices: list
    decode_prefix_len: int

    def is_dummy(self):
        return not self.dst_kv_indices and not self.decode_prefix_len

    @classmethod
    def from_zmq(cls, msg):
        return cls(
            room=int(msg[0]), endpoint=msg[1].decode("ascii"), dst_port=int(msg[2]),
            agent_name=msg[3].decode("ascii"), dst_kv_indices=array.array("i", msg[4]),
            dst_aux_index=int(msg[5]), required_dst_info_num=int(msg[6]),
            dst_state_indices=unpack_int_lists(msg[7], "i") if msg[7] else [],
            decode_prefix_len=int(msg[8]) if len(msg) > 8 and msg[8] else None)

    def to_zmq(self):
        return [GUARD, b"%d" % self.room, self.endpoint.encode(), b"%d" % self.dst_port,
                self.agent_name.encode(), self.dst_kv_indices.tobytes(),
                b"%d" % self.dst_aux_index, b"%d" % self.required_dst_info_num,
                pack_int_lists(self.dst_state_indices, "i") if self.dst_state_indices else b"",
                b"%d" % (self.decode_prefix_len or 0)]


@dataclasses.dataclass
class KVArgsRegisterInfo:
    """What a decode rank sends once: where its buffers are (frames after the guard)."""

    room: str
    endpoint: str
    dst_port: int
    agent_name: str
    agent_metadata: bytes
    dst_kv_ptrs: list
    dst_aux_ptrs: list
    dst_state_data_ptrs: list
    gpu_id: int
    decode_tp_size: int
    decode_tp_rank: int
    dst_kv_item_len: int
    dst_num_slots: int

    @classmethod
    def from_zmq(cls, msg):
        return cls(
            room=msg[0].decode("ascii"), endpoint=msg[1].decode("ascii"), dst_port=int(msg[2]),
            agent_name=msg[3].decode("ascii"), agent_metadata=bytes(msg[4]),
            dst_kv_ptrs=list(struct.unpack(f"<{len(msg[5]) // 8}Q", msg[5])),
            dst_aux_ptrs=list(struct.unpack(f"<{len(msg[6]) // 8}Q", msg[6])),
            dst_state_data_ptrs=unpack_int_lists(msg[7], "Q") if msg[7] else [],
            gpu_id=int(msg[8]), decode_tp_size=int(msg[9]), decode_tp_rank=int(msg[10]),
            dst_kv_item_len=int(msg[11]), dst_num_slots=int(msg[16]))

    def to_zmq(self):
        layers = len(self.dst_kv_ptrs)
        return [GUARD, b"None", self.endpoint.encode(), b"%d" % self.dst_port,
                self.agent_name.encode(), self.agent_metadata,
                struct.pack(f"<{layers}Q", *self.dst_kv_ptrs),
                struct.pack(f"<{len(self.dst_aux_ptrs)}Q", *self.dst_aux_ptrs),
                pack_int_lists(self.dst_state_data_ptrs, "Q") if self.dst_state_data_ptrs else b"",
                b"%d" % self.gpu_id, b"%d" % self.decode_tp_size, b"%d" % self.decode_tp_rank,
                b"%d" % self.dst_kv_item_len,
                b"", b"", b"", b"",  # state lengths and dimensions, staging base and size
                b"%d" % self.dst_num_slots,
                b",".join([b"VRAM"] * layers),
                struct.pack(f"<{layers}Q", *[self.dst_kv_item_len] * layers)]


@dataclasses.dataclass
class Geometry:
    """Sizes that prefill and decode must agree on, and the layout of a rank's memory: for each
    layer num_pages items of item_len bytes, then aux_slots items of aux_len, then one state."""

    page_size: int = 16  # tokens
    layers: int = 2
    item_len: int = 16384  # bytes of one page in one layer
    num_pages: int = 1024
    aux_len: int = 512
    aux_slots: int = 128
    state_len: int = 2048

    def size(self):
        return (self.layers * self.num_pages * self.item_len + self.aux_slots * self.aux_len
                + self.aux_slots * self.state_len)

    def kv_offsets(self):
        return [layer * self.num_pages * self.item_len for layer in range(self.layers)]

    def aux_offset(self):
        return self.layers * self.num_pages * self.item_len

    def state_offset(self):
        return self.aux_offset() + self.aux_slots * self.aux_len

    def page_descs(self, ptrs):
        """Descriptor of page p in layer l has the index l * num_pages + p."""
        return [(ptr + page * self.item_len, self.item_len)
                for ptr in ptrs for page in range(self.num_pages)]

    def flat(self, pages):
        return [layer * self.num_pages + page for layer in range(self.layers) for page in pages]


PAGE_HEAD = struct.Struct("<QI")  # what a forward pass leaves in a page: room, page of the request
