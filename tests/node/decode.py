#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The stand-in decode: one or more ranks that announce rooms, receive their bytes and check them.

usage: decode.py --rank-port PORT [--ranks N] [--first-rank N] [--rate BYTES] [--build DIR] ...

Commands come as JSON lines on stdin, events go as JSON lines to stdout:
  {"do":"announce","room":R,"tokens":N,"prefix":0,"required":null,"ranks":null,"state":false,
       "times":1}
      refused, and said so, when this decode has no room left for it
  {"do":"announce_part","rooms":[R,..]}    one of two ranks: these rooms never leave bootstrap
  {"do":"abort","room":R}      {"do":"raw","frames":["hex",..]}      {"do":"rate","bytes":N}
  {"ev":"ready","agents":[..],"pid":..}   {"ev":"done","room":"R","ok":true}   {"ev":"sent",..}
`required` is how many ranks the room needs (default: all of this process); `ranks` which of ours
announce; `times`: the same message so often, at once. Anything else about the process (stopped,
killed) is done with signals from outside.
With --scheduler it is a decode scheduler (decode_server.py), of one rank.
"""
import argparse
import array
import collections
import ctypes
import json
import mmap
import os
import sys
import threading
import uuid

import zmq

from kv import PAGE_HEAD, Geometry, KVArgsRegisterInfo, TransferInfo
from proc import die_with_parent, node_build


def emit(**event):
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


class Room:
    """What one rank expects for one room, and what of it has come."""

    def __init__(self, pages, first_page, aux, state):
        self.pages = pages
        self.first_page = first_page
        self.aux_index = aux
        self.expects_state = state
        self.chunks = set()
        self.chunks_expected = None
        self.has_aux = self.has_state = False

    def take(self, parts):
        if parts[1] == "kv":
            self.chunks.add(int(parts[2]))
            if int(parts[3]):
                self.chunks_expected = int(parts[2]) + 1
        elif parts[1] == "aux":
            self.has_aux = True
            if len(parts) > 2 and parts[2] == "nokv":
                self.chunks_expected = 0
        elif parts[1] == "state":
            self.has_state = True

    def is_done(self):
        return (self.has_aux and self.chunks_expected == len(self.chunks)
                and (self.has_state or not self.expects_state))


class Rank:
    """One decode rank: an agent with memory of its own and a socket to the prefill rank."""

    def __init__(self, number, size, args, geometry, ctx):
        self.geometry = geometry
        self.memory = mmap.mmap(-1, geometry.size())
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.agent = self.new_agent(args)
        self.agent.register_memory(self.base, geometry.size())
        self.agent.set_rate(args.rate)
        self.rooms = {}
        self.free_pages = list(range(geometry.num_pages))
        self.free_aux = list(range(geometry.aux_slots))
        self.local_port = self.bind(args, number, ctx)
        self.socket = ctx.socket(zmq.PUSH)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.connect(f"tcp://127.0.0.1:{args.rank_port}")
        self.socket.send_multipart(self.registration(size, number))

    def new_agent(self, args):
        import _nixl_standin

        return _nixl_standin.Agent(str(uuid.uuid4()))

    def bind(self, args, number, ctx):
        """The port that prefill is told; nothing comes there over NIXL."""
        return args.local_port + number

    def registration(self, size, number):
        geometry = self.geometry
        return KVArgsRegisterInfo(
            room="None", endpoint="127.0.0.1", dst_port=self.local_port,
            agent_name=self.agent.name, agent_metadata=self.agent.get_agent_metadata(),
            dst_kv_ptrs=[self.base + at for at in geometry.kv_offsets()],
            dst_aux_ptrs=[self.base + geometry.aux_offset()],
            dst_state_data_ptrs=[[self.base + geometry.state_offset()]], gpu_id=0,
            decode_tp_size=size, decode_tp_rank=number, dst_kv_item_len=geometry.item_len,
            dst_num_slots=geometry.num_pages).to_zmq()

    def announce(self, room, tokens, prefix, required, state, times=1):
        self.forget(room)
        count = -(-(tokens - prefix) // self.geometry.page_size)
        if count > len(self.free_pages) or not self.free_aux:
            emit(ev="refused", room=str(room), why="no free pages or no free auxiliary slot")
            return
        pages = [self.free_pages.pop() for _ in range(count)]
        aux = self.free_aux.pop()
        self.rooms[room] = Room(pages, prefix // self.geometry.page_size, aux, state)
        for _ in range(times):
            self.send_metadata(room, pages, aux, required, [[aux]] if state else [], prefix)

    def send_metadata(self, room, pages, aux, required, state=(), prefix=0):
        self.socket.send_multipart(self.metadata(room, pages, aux, required, state, prefix))

    def metadata(self, room, pages, aux, required, state, prefix):
        return TransferInfo(
            room=room, endpoint="127.0.0.1", dst_port=self.local_port,
            agent_name=self.agent.name, dst_kv_indices=array.array("i", pages),
            dst_aux_index=aux, required_dst_info_num=required,
            dst_state_indices=list(state), decode_prefix_len=prefix).to_zmq()

    def abort(self, room):
        self.socket.send_multipart([b"ABORT", b"%d" % room, b"127.0.0.1",
                                    b"%d" % self.local_port])

    def forget(self, room):
        gone = self.rooms.pop(room, None)
        if gone:
            self.free_pages.extend(gone.pages)
            self.free_aux.append(gone.aux_index)

    def take_notifs(self):
        """The rooms that are complete now."""
        done = []
        for texts in self.agent.get_new_notifs().values():
            for text in texts:
                parts = text.decode("ascii").split("_")
                room = self.rooms.get(int(parts[0]))
                if room:
                    room.take(parts)
                    if room.is_done():
                        done.append(int(parts[0]))
        return done

    def content_ok(self, room):
        """Every page begins with the mark that the forward pass left in it."""
        info = self.rooms[room]
        return all(
            PAGE_HEAD.unpack_from(self.memory, at + page * self.geometry.item_len)
            == (room, info.first_page + i)
            for at in self.geometry.kv_offsets() for i, page in enumerate(info.pages))


class Decode:
    def __init__(self, args):
        geometry = Geometry(num_pages=args.num_pages, item_len=args.item_len)
        self.ctx = zmq.Context()
        cls = Rank
        if args.transport == "mooncake":
            from mooncake_decode import MooncakeRank as cls
        self.ranks = [cls(args.first_rank + i, args.first_rank + args.ranks, args, geometry,
                          self.ctx) for i in range(args.ranks)]
        self.left = {}  # room -> ranks of ours that are not done
        self.commands = collections.deque()
        self.ended = False
        threading.Thread(target=self.read_commands, daemon=True).start()

    def read_commands(self):
        for line in sys.stdin:
            self.commands.append(json.loads(line))
        self.ended = True

    def run(self):
        emit(ev="ready", agents=[r.agent.name for r in self.ranks], pid=os.getpid())
        while not self.ended:
            while self.commands:
                self.do(self.commands.popleft())
            for rank in self.ranks:
                rank.agent.progress(1 if self.left else 10)
                for room in rank.take_notifs():
                    self.rank_done(rank, room)

    def do(self, command):
        what, room = command["do"], command.get("room")
        if what == "announce":
            mine = command.get("ranks")
            mine = self.ranks if mine is None else [self.ranks[i] for i in mine]
            self.left[room] = set(mine)
            for rank in mine:
                rank.announce(room, command["tokens"], command.get("prefix", 0),
                              command.get("required") or len(self.ranks),
                              command.get("state", False), command.get("times", 1))
        elif what == "announce_part":
            # Rooms of which this rank is one of two: none of them is ever written, so they may
            # share one page, and there may be more of them than pages.
            for one in command["rooms"]:
                self.ranks[0].send_metadata(one, [0], 0, required=2)
        elif what == "abort":
            for rank in self.ranks[:1]:
                rank.abort(room)
            for rank in self.ranks:
                rank.forget(room)
            self.left.pop(room, None)
        elif what == "raw":
            self.ranks[0].socket.send_multipart([bytes.fromhex(f) for f in command["frames"]])
        elif what == "rate":
            for rank in self.ranks:
                rank.agent.set_rate(command["bytes"])
        else:
            raise ValueError(f"no command {what}")
        emit(ev="sent", do=what, room=str(room))

    def rank_done(self, rank, room):
        left = self.left.get(room)
        ok = rank.content_ok(room)
        rank.forget(room)
        if left is None:
            return
        left.discard(rank)
        if not ok:
            emit(ev="corrupt", room=str(room))
        if not left:
            del self.left[room]
            emit(ev="done", room=str(room), ok=ok)


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rank-port", type=int, required=True)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--first-rank", type=int, default=0)
    parser.add_argument("--local-port", type=int, default=41000, help="told to prefill, not bound")
    parser.add_argument("--rate", type=int, default=0, help="receive so many bytes a second")
    parser.add_argument("--num-pages", type=int, default=1024)
    parser.add_argument("--item-len", type=int, default=16384)
    parser.add_argument("--build", default=node_build())
    parser.add_argument("--transport", default="nixl", choices=("nixl", "mooncake"))
    parser.add_argument("--workers", type=int, default=4, help="of the prefill")
    parser.add_argument("--on-worker", type=int, default=-1, help="mooncake: whose sessions go to this worker")
    parser.add_argument("--scheduler", action="store_true", help="with the real one's loop and queues")
    parser.add_argument("--waiting-timeout", type=float, default=300.0, help="of a scheduler")
    parser.add_argument("--idle-sleep", type=float, default=0.001, help="of a scheduler's loop")
    return parser.parse_args()


def main():
    args = parse_args()
    die_with_parent()
    sys.path.insert(0, args.build)
    decode = Decode(args)
    if not args.scheduler:
        decode.run()
        return
    import setproctitle

    import decode_server
    setproctitle.setproctitle("sglang::scheduler_TP0")
    emit(ev="ready", agents=[r.agent.name for r in decode.ranks], pid=os.getpid())
    decode_server.Scheduler(decode, args, emit).event_loop_overlap_disagg_decode()


if __name__ == "__main__":
    main()
