# SPDX-License-Identifier: Apache-2.0
"""A server that has nothing to do with any real one: orders wait, are put into the oven's queue, one worker bakes
them, the main loop hands them out. Commands come as lines of JSON on stdin, each answered by one on stdout."""
import collections
import json
import os
import sys
import threading

ACCEPTED, BAKING, BAKED = 1, 2, 3
TURN_S = 0.01


class Order:
    def __init__(self, ticket, name, seconds, end):
        self.ticket, self.name, self.seconds, self.end = ticket, name, seconds, end
        self.go_on = threading.Event()


class Oven:
    def __init__(self):
        self.q = collections.deque()
        self.ready = threading.Condition()

    def put(self, order):
        with self.ready:
            self.q.append(order)
            self.ready.notify()

    def take(self):
        with self.ready:
            while not self.q:
                self.ready.wait()
            return self.q.popleft()


class Bakery:
    def __init__(self):
        self.waiting, self.baking = [], collections.deque()
        self.status = {}
        self.oven = Oven()
        self.held, self.delivered, self.next = [], 0, 100
        self.turn = threading.Event()

    def bake_loop(self, oven):
        while True:
            order = oven.take()
            self.status[order.ticket] = BAKING
            order.go_on.wait(order.seconds)
            if order.end == "leave":
                return  # and nobody bakes what is in the queue
            if order.end == "burn":
                del self.status[order.ticket]  # what the main loop waits for will never come
            else:
                self.status[order.ticket] = BAKED

    def serve(s):
        threading.Thread(target=s.bake_loop, args=(s.oven,), daemon=True).start()
        while True:
            for order in [o for o in s.baking if s.status.get(o.ticket) == BAKED]:
                s.baking.remove(order)
                del s.status[order.ticket]
                s.delivered += 1
            while s.waiting:
                order = s.waiting.pop(0)
                s.baking.append(order)
                s.oven.put(order)
            s.turn.wait(TURN_S)

    def order(self, seconds, end):
        self.next += 1
        order = Order(self.next, f"loaf-{self.next}", seconds, end)
        self.status[order.ticket] = ACCEPTED
        self.waiting.append(order)
        return order

    def command(self, do, n=1, seconds=0.1):
        if do == "hold":
            self.held.append(self.order(None, "bake"))
        elif do == "let_go":
            for order in self.held:
                order.go_on.set()
        elif do in ("bake", "burn", "leave"):
            return {"tickets": [self.order(seconds, do).ticket for _ in range(n)]}
        return {"delivered": self.delivered, "baking": len(self.baking), "queued": len(self.oven.q),
                "status": list(self.status.values())}


def listen(bakery):
    for line in sys.stdin:
        print(json.dumps(bakery.command(**json.loads(line))), flush=True)
    os._exit(0)  # whoever has started it is gone


if __name__ == "__main__":
    shop = Bakery()
    threading.Thread(target=listen, args=(shop,), daemon=True).start()
    shop.serve()
