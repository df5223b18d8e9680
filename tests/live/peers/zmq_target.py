#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A process with pyzmq to be watched: commands as zmq_peer.c, one a line, each answered by a line.

zmq_target.py [curve|plain]: its PULL socket asks for that; curve prints the server's public key after "ready".
"""
import itertools
import sys
import threading

import zmq
import zmq.auth
from zmq.auth.thread import ThreadAuthenticator


class Target:
    def __init__(self, security):
        self.ctx = zmq.Context()
        self.security = security
        self.push, self.numbers = {}, itertools.count()
        self.received = 0
        self.heart = 0
        if security:
            self.auth = ThreadAuthenticator(self.ctx)
            self.auth.start()
            self.auth.configure_curve(domain="*", location=zmq.auth.CURVE_ALLOW_ANY)
            self.auth.configure_plain(domain="*", passwords={"user": "secret"})
            self.public, self.secret = zmq.curve_keypair()
        print("ready" + (" " + self.public.decode() if security else ""), flush=True)

    def make(self, kind):
        s = self.ctx.socket(kind)
        s.linger = 10000
        if self.heart:
            s.heartbeat_ivl = self.heart
        return s

    def bind(self, endpoint):
        self.pull = self.make(zmq.PULL)
        self.pull.rcvhwm = 0
        if self.security == "curve":
            self.pull.curve_secretkey, self.pull.curve_server = self.secret, True
        elif self.security == "plain":
            self.pull.plain_server = True
        self.pull.bind(endpoint)
        threading.Thread(target=self.receive, daemon=True).start()
        return self.pull.last_endpoint.decode()

    def receive(self):
        while True:
            self.pull.recv_multipart()
            self.received += 1

    def run(self, verb, *words):
        if verb == "bind":
            return self.bind(*words)
        if verb == "connect":
            n = next(self.numbers)
            self.push[n] = self.make(zmq.PUSH)
            self.push[n].connect(words[0])
            return n
        if verb == "heartbeat":
            self.heart = int(words[0])
        elif verb == "send":
            self.push[int(words[0])].send_multipart(
                [b"x" * int(w[1:]) if w.startswith("*") else w.encode() for w in words[1:]])
        elif verb == "close":
            self.push.pop(int(words[0])).close()
        elif verb == "count":
            return self.received
        return 0


def main():
    target = Target(sys.argv[1] if len(sys.argv) > 1 else None)
    for line in sys.stdin:
        print(target.run(*line.split()), flush=True)


if __name__ == "__main__":
    main()
