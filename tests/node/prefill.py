#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The stand-in prefill server: an HTTP front process and its scheduler processes.

usage: prefill.py [--loop overlap|normal] [--workers N] ...   (every field of messages.ServerArgs)

On stdout one JSON line when it is ready: {"port":..,"pid":..,"schedulers":[{"rank":..,"pid":..}]}.
  POST /generate        one request or a batch, answered when it has ended
  POST /abort_request   {"rid": ..}
  GET  /route?rank=N    where a decode finds the PULL socket of a rank
  GET  /state?rank=N    the truth about a rank: see truth.py; &brief=1: lengths and counters only
  GET  /metrics         the gauges and counters that operators watch
  POST /hook            {"rank": N, ...}: test hooks, see control.py; {"spawn": true} adds a rank
"""
import argparse
import asyncio
import dataclasses
import itertools
import json
import logging
import os
import secrets
import subprocess
import sys
import urllib.parse
import uuid

import zmq
import zmq.asyncio

from messages import AbortReq, ServerArgs, TokenizedGenerateReqInput
from proc import HERE, die_with_parent, node_build

MAX_BODY = 256 << 20


class HttpError(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class Rank:
    """One scheduler as the front knows it."""

    def __init__(self, hello, reader, writer, to_input):
        self.number = hello["hello"]
        self.pid = hello["pid"]
        self.rank_port = hello["rank_port"]
        self.reader, self.writer = reader, writer
        self.to_input = to_input
        self.asked = {}
        self.ids = itertools.count()

    async def ask(self, **what):
        ask_id = next(self.ids)
        answer = self.asked[ask_id] = asyncio.get_running_loop().create_future()
        self.writer.write(json.dumps(dict(what, id=ask_id)).encode() + b"\n")
        result = await asyncio.wait_for(answer, 20)
        if "error" in result:
            raise HttpError(500, result["error"])
        return result

    async def listen(self):
        try:
            while line := await self.reader.readline():
                answer = json.loads(line)
                self.asked.pop(answer.pop("id")).set_result(answer)
        except (OSError, ValueError):
            pass
        for answer in self.asked.values():
            if not answer.done():
                answer.set_exception(HttpError(503, "the scheduler is gone"))


class Front:
    def __init__(self, args):
        self.args = args
        self.ranks = {}
        self.waiting = {}  # rid -> future of its Reply
        self.new_rank = asyncio.Condition()
        self.control = f"node-control-{os.getpid()}-{secrets.token_hex(4)}"
        self.ctx = zmq.asyncio.Context()
        self.replies = self.ctx.socket(zmq.PULL)
        self.reply_address = f"ipc://@node-front-{os.getpid()}"
        self.replies.bind(self.reply_address)
        self.children = []

    # ---- the schedulers ------------------------------------------------------------------------
    def spawn(self, rank):
        opts = {"args": dataclasses.asdict(self.args), "rank": rank,
                "front": self.reply_address, "control": self.control}
        self.children.append(subprocess.Popen(
            [sys.executable, os.path.join(HERE, "scheduler.py"), json.dumps(opts)],
            stdin=subprocess.DEVNULL, stdout=sys.stderr))

    async def on_control(self, reader, writer):
        hello = json.loads(await reader.readline())
        to_input = self.ctx.socket(zmq.PUSH)
        to_input.connect(hello["input"])
        rank = Rank(hello, reader, writer, to_input)
        async with self.new_rank:
            self.ranks[rank.number] = rank
            self.new_rank.notify_all()
        await rank.listen()

    async def wait_for_rank(self, number):
        async with self.new_rank:
            await asyncio.wait_for(self.new_rank.wait_for(lambda: number in self.ranks), 20)
        return self.ranks[number]

    async def take_replies(self):
        while True:
            reply = await self.replies.recv_pyobj()
            future = self.waiting.pop(reply.rid, None)
            if future and not future.done():
                future.set_result(reply)

    # ---- requests ------------------------------------------------------------------------------
    def parse_generate(self, body):
        """The requests of a body, each (rank, TokenizedGenerateReqInput)."""
        text = body.get("text", "")
        texts = text if isinstance(text, list) else [text]

        def nth(key, i, default):
            value = body.get(key, default)
            if isinstance(value, list):
                if len(value) != len(texts):
                    raise HttpError(400, f"{key}: {len(value)} values for {len(texts)} prompts")
                return value[i]
            return value

        for i, one in enumerate(texts):
            room = nth("bootstrap_room", i, None)
            if not isinstance(one, str) or not isinstance(room, int) or not 0 <= room < 1 << 63:
                raise HttpError(400, "a request needs a text and a bootstrap_room below 2^63")
            params = dict(nth("sampling_params", i, None) or {})
            extra = params.pop("custom_params", None) or {}
            tokens = int(extra.get("tokens", max(1, len(one) // 4)))
            yield nth("data_parallel_rank", i, 0), TokenizedGenerateReqInput(
                rid=nth("rid", i, None) or uuid.uuid4().hex, input_text=one,
                input_ids=list(range(tokens)), sampling_params=params,
                forward_ms=float(extra.get("forward_ms", self.args.forward_ms)),
                bootstrap_host=nth("bootstrap_host", i, "127.0.0.1"),
                bootstrap_port=nth("bootstrap_port", i, self.args.port), bootstrap_room=room)

    async def generate(self, body, gone):
        reqs = list(self.parse_generate(body))
        futures = []
        for rank, req in reqs:
            if rank not in self.ranks:
                raise HttpError(400, f"no rank {rank}")
            if req.rid in self.waiting:
                raise HttpError(400, f"rid {req.rid} is in use")
            future = self.waiting[req.rid] = asyncio.get_running_loop().create_future()
            futures.append(future)
            await self.ranks[rank].to_input.send_pyobj(req)
        done = asyncio.gather(*futures)
        await asyncio.wait([done, gone], return_when=asyncio.FIRST_COMPLETED)
        if not done.done():  # the client has gone: the server aborts what it asked for
            done.cancel()
            await asyncio.gather(done, return_exceptions=True)
            for rank, req in reqs:
                self.waiting.pop(req.rid, None)
                await self.ranks[rank].to_input.send_pyobj(AbortReq(req.rid))
            raise ConnectionResetError
        answers = [{"text": "", "meta_info": {
            "id": r.rid, "prompt_tokens": r.prompt_tokens,
            "finish_reason": {"type": "length"} if r.ok else
            {"type": "abort", "message": r.message}}} for r in done.result()]
        ok = all(r.ok for r in done.result())
        return 200 if ok else 500, answers if isinstance(body.get("text"), list) else answers[0]

    def rank_of(self, query):
        try:
            return self.ranks[int(query.get("rank", 0))]
        except (KeyError, ValueError):
            raise HttpError(404, "no such rank") from None

    async def hook(self, body):
        if body.get("spawn"):
            number = max(self.ranks) + 1
            self.spawn(number)
            rank = await self.wait_for_rank(number)
            return {"rank": number, "pid": rank.pid}
        rank = self.rank_of(body)
        hooks = {k: v for k, v in body.items() if k != "rank"}
        if "fork" in hooks:
            hooks["fork"] = max(self.ranks) + 1
        answer = await rank.ask(cmd="hook", hook=hooks)
        if "fork" in hooks:
            other = await self.wait_for_rank(hooks["fork"])
            return {"rank": other.number, "pid": other.pid}
        return answer

    async def metrics(self):
        names = {"inflight": ("gauge", "num_prefill_inflight_queue_reqs"),
                 "bootstrap": ("gauge", "num_prefill_bootstrap_queue_reqs"),
                 "transfer_failed": ("counter", "num_transfer_failed_reqs_total"),
                 "bootstrap_failed": ("counter", "num_bootstrap_failed_reqs_total")}
        lines = []
        for number, rank in sorted(self.ranks.items()):
            brief = await rank.ask(cmd="brief")
            for key, (kind, name) in names.items():
                if not number:
                    lines.append(f"# TYPE sglang:{name} {kind}")
                lines.append(f'sglang:{name}{{tp_rank="{number}"}} {brief[key]}')
        return "\n".join(lines) + "\n"

    async def answer(self, method, path, query, body, gone):
        if (method, path) == ("POST", "/generate"):
            return await self.generate(body, gone)
        if (method, path) == ("POST", "/abort_request"):
            for rank in self.ranks.values():
                await rank.to_input.send_pyobj(AbortReq(body["rid"]))
            return 200, {}
        if (method, path) == ("GET", "/state"):
            rank = self.rank_of(query)
            state = await rank.ask(cmd="brief" if query.get("brief") else "state")
            return 200, dict(state, pid=rank.pid, front_pid=os.getpid())
        if (method, path) == ("GET", "/route"):
            rank = self.rank_of(query)
            return 200, {"rank_ip": "127.0.0.1", "rank_port": rank.rank_port}
        if (method, path) == ("POST", "/hook"):
            return 200, await self.hook(body)
        if (method, path) == ("GET", "/metrics"):
            return 200, await self.metrics()
        if (method, path) == ("GET", "/health"):
            return 200, {}
        raise HttpError(404, f"no {method} {path}")

    # ---- HTTP ----------------------------------------------------------------------------------
    async def on_http(self, reader, writer):
        try:
            while await self.one_request(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    async def one_request(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = head[0].split(" ", 2)
        headers = {k.lower(): v.strip() for k, _, v in (h.partition(":") for h in head[1:])}
        length = int(headers.get("content-length", 0))
        if length > MAX_BODY:
            return False
        raw = await reader.readexactly(length)
        url = urllib.parse.urlsplit(target)
        # Until the answer is out nothing more may come: what comes is the client's end.
        gone = asyncio.ensure_future(reader.read(1))
        try:
            body = json.loads(raw) if raw else {}
            query = dict(urllib.parse.parse_qsl(url.query))
            status, answer = await self.answer(method, url.path, query, body, gone)
        except HttpError as e:
            status, answer = e.status, {"error": {"message": str(e)}}
        except (ValueError, KeyError, TypeError) as e:
            status, answer = 400, {"error": {"message": repr(e)}}
        finally:
            gone.cancel()
            await asyncio.wait([gone])
        text = answer if isinstance(answer, str) else json.dumps(answer)
        data = text.encode()
        kind = "text/plain" if isinstance(answer, str) else "application/json"
        writer.write(f"HTTP/1.1 {status} {'OK' if status == 200 else 'Error'}\r\n"
                     f"Content-Type: {kind}\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
        await writer.drain()
        return gone.cancelled() and headers.get("connection", "").lower() != "close"

    async def run(self):
        await asyncio.start_unix_server(self.on_control, "\0" + self.control, limit=1 << 30)
        server = await asyncio.start_server(self.on_http, "127.0.0.1", self.args.port,
                                            backlog=4096, limit=1 << 20)
        self.args.port = server.sockets[0].getsockname()[1]
        self.replier = asyncio.ensure_future(self.take_replies())
        self.spawn(0)
        await self.wait_for_rank(0)
        print(json.dumps({"port": self.args.port, "pid": os.getpid(), "schedulers": [
            {"rank": r.number, "pid": r.pid} for r in self.ranks.values()]}), flush=True)
        await server.serve_forever()


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for field in dataclasses.fields(ServerArgs):
        flag = "--" + field.name.replace("_", "-")
        if field.type in (bool, "bool"):
            parser.add_argument(flag, action="store_true")
        else:
            parser.add_argument(flag, type=type(field.default), default=field.default)
    args = ServerArgs(**vars(parser.parse_args()))
    args.build = os.path.abspath(args.build or node_build())
    if args.loop not in ("overlap", "normal"):
        parser.error("--loop is overlap or normal")
    if args.chunked_prefill_size < 16 or args.chunked_prefill_size % 16:
        parser.error("--chunked-prefill-size is a multiple of 16")
    return args


async def main():
    front = Front(parse_args())
    await front.run()


if __name__ == "__main__":
    die_with_parent()
    logging.basicConfig(level=logging.WARNING, format="[front] %(message)s")
    asyncio.run(main())
