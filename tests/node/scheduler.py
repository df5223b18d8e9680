# SPDX-License-Identifier: Apache-2.0
"""The scheduler process: queues, forward passes and the event loops of a prefill rank.

The request moves bootstrap queue -> waiting queue -> (forward pass: in no list) -> inflight queue.
A request leaves the waiting queue before its forward pass and enters the inflight queue after it.
"""
import collections
import json
import logging
import os
import sys
import threading
import time

import zmq

from kv import FAKE_BOOTSTRAP_HOST, PAGE_HEAD, Geometry, KVPoll
from messages import AbortReq, Reply, ServerArgs
from proc import die_with_parent, precise_sleep
from sender import FakeKVSender, MooncakeKVSender, NixlKVSender
from truth import Ledger

logger = logging.getLogger("node")
MAX_BATCH = 64


def transport(name):
    """(manager, sender) of a transport."""
    if name == "mooncake":
        from mooncake_manager import MooncakeKVManager
        return MooncakeKVManager, MooncakeKVSender
    from nixl_manager import NixlKVManager
    return NixlKVManager, NixlKVSender


class Req:
    """One request. Like the real one it has more attributes than CPython shares keys for."""

    def __init__(self, recv):
        self.rid = recv.rid
        self.origin_input_text = recv.input_text
        self.origin_input_ids = recv.input_ids
        self.origin_input_ids_unpadded = recv.input_ids
        self.output_ids = []
        self.fill_ids = []
        self.sampling_params = recv.sampling_params
        self.custom_logit_processor = None
        self.return_hidden_states = False
        self.session_id = None
        self.input_embeds = None
        self.req_pool_idx = None
        self.mamba_pool_idx = None
        self.multimodal_inputs = None
        self.stream = False
        self.eos_token_ids = None
        self.vocab_size = 32000
        self.tokenizer = None
        self.finished_reason = None
        self.finished_len = None
        self.to_finish = None
        self.prefix_indices = []
        self.extend_input_len = 0
        self.last_node = None
        self.is_chunked = 0
        self.is_retracted = False
        self.logprob_start_len = 0
        self.return_logprob = False
        self.top_logprobs_num = 0
        self.grammar = None
        self.cached_tokens = 0
        self.spec_verify_ct = 0
        self.lora_id = None
        self.priority = None
        self.bootstrap_host = recv.bootstrap_host
        self.bootstrap_port = recv.bootstrap_port
        self.bootstrap_room = recv.bootstrap_room
        self.disagg_kv_sender = None
        self.start_send_idx = 0
        self.tmp_end_idx = -1
        self.metadata_buffer_index = -1
        self.kv_pages = []
        self.forward_ms = recv.forward_ms
        self.life = None


class ScheduleBatch:
    """(request, tokens before, tokens after) of one forward pass."""

    def __init__(self, parts, chunked_req):
        self.parts = parts
        self.chunked_req = chunked_req

    @property
    def reqs(self):
        return [req for req, _, _ in self.parts]


class PrefillBootstrapQueue:
    def __init__(self, scheduler, kv_manager, kv_sender):
        self.queue = []
        self.kv_sender = kv_sender
        self.scheduler = scheduler
        self.kv_manager = kv_manager
        self.tp_rank = 0
        self.pp_rank = 0

    def add(self, req):
        cls = FakeKVSender if req.bootstrap_host == FAKE_BOOTSTRAP_HOST else self.kv_sender
        req.disagg_kv_sender = cls(
            mgr=self.kv_manager, bootstrap_addr=f"{req.bootstrap_host}:{req.bootstrap_port}",
            bootstrap_room=req.bootstrap_room, dest_tp_ranks=[self.tp_rank], pp_rank=self.pp_rank)
        self.queue.append(req)

    def pop_bootstrapped(self):
        if not self.queue:
            return []
        bootstrapped, left = [], []
        polls = [req.disagg_kv_sender.poll() for req in self.queue]
        page_size = self.scheduler.geometry.page_size
        for req, poll in zip(self.queue, polls):
            if poll == KVPoll.Failed:
                self.scheduler.end_failed(req, "bootstrap failed")
                continue
            if poll == KVPoll.Bootstrapping or not self.scheduler.free_aux:
                left.append(req)
                continue
            req.metadata_buffer_index = self.scheduler.free_aux.pop()
            req.start_send_idx = req.disagg_kv_sender.pop_decode_prefix_len()
            tokens = len(req.origin_input_ids) - req.start_send_idx
            req.disagg_kv_sender.init(-(-tokens // page_size), req.metadata_buffer_index)
            self.scheduler.ledger.mark(req, "bootstrapped_ns")
            bootstrapped.append(req)
        self.queue = left
        return bootstrapped


class Scheduler:
    def __init__(self, args, rank, front_address):
        self.server_args = args
        self.rank = rank
        self.tp_rank = 0
        self.tp_size = 1
        self.pp_rank = 0
        self.dp_rank = rank
        self.gpu_id = 0
        self.page_size = 16
        self.enable_overlap = args.loop == "overlap"
        self.enable_metrics = True
        self.enable_hicache_storage = False
        self.chunked_prefill_size = args.chunked_prefill_size
        self.max_running_requests = MAX_BATCH
        self.geometry = Geometry(num_pages=args.num_pages, item_len=args.item_len)
        self.ledger = Ledger()
        self.waiting_queue = []
        self.disagg_prefill_inflight_queue = []
        self.running_batch = None
        self.cur_batch = None
        self.last_batch = None
        self.chunked_req = None
        self.set_aside = collections.deque()  # partly prefilled, it is another's turn
        self.passes = -1  # test hook: how many more are begun; negative: no limit
        self.result_queue = collections.deque()
        self.forward_ct = 0
        self.gpu_free_at = 0.0
        self.iterations = 0
        self.num_transfer_failed = 0
        self.num_bootstrap_failed = 0
        self.free_pages = list(range(args.num_pages))
        self.free_aux = list(range(self.geometry.aux_slots))
        self.tree_cache = None
        self.grammar_manager = None
        self.session_controller = None
        self.calls = collections.deque()  # for the main thread, from the control thread
        self._zmq_ctx = zmq.Context()
        self.recv_from_tokenizer = self._zmq_ctx.socket(zmq.PULL)
        self.input_address = f"ipc://@node-{os.getpid()}-{rank}"
        self.recv_from_tokenizer.bind(self.input_address)
        self.send_to_tokenizer = self._zmq_ctx.socket(zmq.PUSH)
        self.send_to_tokenizer.connect(front_address)
        manager, sender = transport(args.transport)
        self.disagg_prefill_bootstrap_queue = PrefillBootstrapQueue(
            self, manager(args, self.geometry), sender)

    # ---- the two event loops -------------------------------------------------------------------
    def event_loop_normal_disagg_prefill(self):
        while True:
            self.take_requests()
            batch = self.next_batch()
            self.cur_batch = batch
            if batch:
                self.process_batch_result(batch, self.run_batch(batch))
            else:
                self.on_idle()
            self.process_disagg_prefill_inflight_queue()
            self.last_batch = batch

    def event_loop_overlap_disagg_prefill(self):
        """The result of a forward pass is processed after the next one has been launched."""
        while True:
            self.take_requests()
            batch = self.next_batch()
            self.cur_batch = batch
            if batch:
                self.result_queue.append((batch, self.run_batch(batch)))
            if self.last_batch:
                self.process_batch_result(*self.result_queue.popleft())
            elif batch is None:
                self.on_idle()
            self.process_disagg_prefill_inflight_queue()
            self.last_batch = batch

    def on_idle(self):
        while self.calls:
            self.calls.popleft()()
        if self.server_args.idle_sleep:
            time.sleep(self.server_args.idle_sleep)

    # ---- requests in ---------------------------------------------------------------------------
    def take_requests(self):
        self.iterations += 1
        self.process_input_requests(self.recv_requests())
        self.waiting_queue.extend(self.disagg_prefill_bootstrap_queue.pop_bootstrapped())

    def recv_requests(self):
        reqs = []
        while True:
            try:
                reqs.append(self.recv_from_tokenizer.recv_pyobj(zmq.NOBLOCK))
            except zmq.ZMQError:
                return reqs

    def process_input_requests(self, recv_reqs):
        for recv in recv_reqs:
            if isinstance(recv, AbortReq):
                self.abort_request(recv.rid)
                continue
            req = Req(recv)
            self.ledger.open(req)
            if -(-len(req.origin_input_ids) // self.page_size) > self.geometry.num_pages:
                self.ledger.end(req, "failed")
                self.reply(req, "the prompt is larger than the cache")
                continue
            self.disagg_prefill_bootstrap_queue.add(req)

    def abort_request(self, rid):
        for req in [r for r in self.waiting_queue if r.rid == rid]:
            self.waiting_queue.remove(req)
            req.disagg_kv_sender.abort()
            req.disagg_kv_sender.clear()
            self.release(req, "aborted")
            self.reply(req, "aborted")
        for req in self.disagg_prefill_bootstrap_queue.queue + self.disagg_prefill_inflight_queue:
            if req.rid == rid:
                req.disagg_kv_sender.abort()

    # ---- forward passes ------------------------------------------------------------------------
    def next_batch(self):
        """One chunk of tokens: first what is left of the chunked request, then new requests."""
        budget, parts = self.chunked_prefill_size, []
        if self.chunked_req and not self.enable_overlap:
            self.send_kv_chunk(self.chunked_req)
        if self.passes == 0:
            return None
        self.take_turns()
        if self.chunked_req:
            budget -= self._extend(self.chunked_req, budget, parts)
        while (budget > 0 and self.waiting_queue and not self.chunked_req
               and len(parts) < MAX_BATCH):
            req = self.waiting_queue[0]
            tokens = len(req.origin_input_ids)
            if (len(self.free_pages) < -(-tokens // self.page_size)
                    or budget < min(tokens, self.page_size)):
                break
            self.waiting_queue.pop(0)
            self.ledger.mark(req, "forward_ns")
            budget -= self._extend(req, budget, parts)
        if not parts:
            return None
        self.passes -= self.passes > 0
        return ScheduleBatch(parts, self.chunked_req)

    def take_turns(self):
        """What is partly prefilled goes behind those that wait."""
        if self.chunked_req and self.server_args.take_turns and (self.waiting_queue
                                                                 or self.set_aside):
            self.set_aside.append(self.chunked_req)
            self.chunked_req = None
        if not self.chunked_req and self.set_aside and not self.waiting_queue:
            self.chunked_req = self.set_aside.popleft()

    def _extend(self, req, budget, parts):
        done, total = len(req.fill_ids), len(req.origin_input_ids)
        end = min(total, done + budget)
        if end < total:
            end -= end % self.page_size
        while len(req.kv_pages) * self.page_size < end:
            req.kv_pages.append(self.free_pages.pop())
        req.fill_ids = req.origin_input_ids[:end]
        self.chunked_req = req if end < total else None
        if self.chunked_req:
            req.is_chunked += 1
            req.tmp_end_idx = end
        parts.append((req, done, end))
        return max(end - done, 1)

    def run_batch(self, batch):
        """Launches the pass; the answer is the time at which its result is there."""
        self.forward_ct += 1
        start = max(time.monotonic(), self.gpu_free_at)
        self.gpu_free_at = start + max(req.forward_ms for req in batch.reqs) / 1000
        if not self.enable_overlap:
            self._wait_for(self.gpu_free_at)
        return self.gpu_free_at

    def _wait_for(self, ready_at):
        left = ready_at - time.monotonic()
        if left > 0:
            time.sleep(left)

    def process_batch_result(self, batch, ready_at):
        self._wait_for(ready_at)
        for req, start, end in batch.parts:
            self._leave_kv(req, start, end)
            if req.is_chunked > 0:
                req.is_chunked -= 1
                if self.enable_overlap:
                    self.send_kv_chunk(req, end_idx=end)
                continue
            req.output_ids.append(1)
            self.disagg_prefill_inflight_queue.append(req)
            self.ledger.mark(req, "inflight_ns")
            self.send_kv_chunk(req, last_chunk=True)

    def _leave_kv(self, req, start, end):
        """What the pass computed: a mark at the head of each page, that decode checks."""
        memory = self.disagg_prefill_bootstrap_queue.kv_manager.memory
        for page in range(start // self.page_size, -(-end // self.page_size)):
            for at in self.geometry.kv_offsets():
                PAGE_HEAD.pack_into(memory, at + req.kv_pages[page] * self.geometry.item_len,
                                    req.bootstrap_room, page)

    def send_kv_chunk(self, req, last_chunk=False, end_idx=None):
        start_idx = req.start_send_idx
        end_idx = len(req.fill_ids) if end_idx is None else end_idx
        if not last_chunk:
            end_idx -= end_idx % self.page_size
        if end_idx < start_idx:
            return
        pages = [req.kv_pages[t // self.page_size]
                 for t in range(start_idx, end_idx, self.page_size)]
        req.start_send_idx = end_idx
        if not pages and not last_chunk:
            return
        state = [[req.metadata_buffer_index]] if last_chunk and self.server_args.hybrid else None
        req.disagg_kv_sender.send(pages, state)

    # ---- requests out --------------------------------------------------------------------------
    def process_disagg_prefill_inflight_queue(self):
        if not self.disagg_prefill_inflight_queue:
            return
        undone = []
        polls = [req.disagg_kv_sender.poll() for req in self.disagg_prefill_inflight_queue]
        for req, poll in zip(self.disagg_prefill_inflight_queue, polls):
            if poll == KVPoll.Success:
                req.disagg_kv_sender.clear()
                self.release(req, "done")
                self.reply(req)
            elif poll == KVPoll.Failed:
                self.end_failed(req, "transfer failed")
            else:
                undone.append(req)
        self.disagg_prefill_inflight_queue = undone

    def end_failed(self, req, what):
        try:
            req.disagg_kv_sender.failure_exception()
        except Exception as e:
            what += f": {e}"
        if what.startswith("bootstrap"):
            self.num_bootstrap_failed += 1
        else:
            self.num_transfer_failed += 1
        logger.warning("request %s room %d: %s", req.rid, req.bootstrap_room, what)
        self.release(req, "failed")
        self.reply(req, what)

    def release(self, req, outcome):
        self.free_pages.extend(req.kv_pages)
        req.kv_pages = []
        if req.metadata_buffer_index >= 0:
            self.free_aux.append(req.metadata_buffer_index)
            req.metadata_buffer_index = -1
        self.ledger.end(req, outcome)

    def reply(self, req, error=""):
        self.send_to_tokenizer.send_pyobj(
            Reply(req.rid, not error, error, len(req.origin_input_ids)))

    def run(self):
        if self.enable_overlap:
            self.event_loop_overlap_disagg_prefill()
        else:
            self.event_loop_normal_disagg_prefill()


_kept = []  # the parent's scheduler, in a forked child: nothing of it may be finalised there


def run_scheduler(args, rank, front_address, control_address):
    import setproctitle
    from control import ControlThread

    die_with_parent()
    precise_sleep()
    setproctitle.setproctitle(args.title)
    scheduler = Scheduler(args, rank, front_address)
    _kept.append(scheduler)

    def fork_another(new_rank):
        if os.fork() == 0:
            run_scheduler(args, new_rank, front_address, control_address)

    ControlThread(scheduler, control_address, fork_another).start()
    try:
        scheduler.run()
    except Exception:
        logger.exception("scheduler ends")
    finally:
        sys.stderr.flush()
        os._exit(1)


def main():
    opts = json.loads(sys.argv[1])
    args = ServerArgs(**opts["args"])
    logging.basicConfig(level=logging.WARNING, format="[scheduler] %(message)s")
    sys.path.insert(0, args.build)
    threading.current_thread().name = "scheduler"
    run_scheduler(args, opts["rank"], opts["front"], opts["control"])


if __name__ == "__main__":
    main()
