# SPDX-License-Identifier: Apache-2.0
"""What processes do with sockets besides reading and writing them: whatever it is, no message is made up and
none told twice, and where something passed unseen that is said."""
import os
import socket
import struct
import unittest

import sp
from sock_case import PROFILE_ALL, PROFILE_IN, PROFILE_OUT, Peer, SockCase, SockWatch, Truth
import raw_zmtp

TRAP = 40  # messages whose loss a decoder out of step would show


def data_of(frames):
    return raw_zmtp.message(*frames)


class FaultCase(SockCase):
    def setUp(self):
        self.truth = Truth(30)

    def opened(self, target, kind=b"PUSH"):
        """(socket here, descriptor there) after the handshake, which the target has read."""
        if not hasattr(target, "port"):
            target.port = int(target.ok("listen"))
        here = socket.create_connection(("127.0.0.1", target.port), timeout=20)
        self.addCleanup(here.close)
        here.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        fd = target.ok("accept")
        here.sendall(raw_zmtp.opening(kind))
        other = raw_zmtp.opening(b"PULL" if kind == b"PUSH" else b"PUSH", as_server=True)
        target.ok("write", "send", fd, other.hex())
        target.ok("read", "recv", fd, len(raw_zmtp.opening(kind)))
        return here, fd

    def say(self, here, target, fd, truth=None, call="recv", count=1, size=37):
        data = b"".join(data_of((truth or self.truth).metadata()) for _ in range(count))
        here.sendall(data)
        self.assertEqual(target.ok("read", call, fd, len(data), size), str(len(data)))

    def watched(self, profile=PROFILE_IN, env=None):
        target = Peer.calls()
        self.addCleanup(target.end)
        watch = SockWatch(target.pid, profile, env=env)
        self.addCleanup(watch.__exit__)
        return target, watch.__enter__()


class Descriptors(FaultCase):
    def test_number_used_again(self):
        """Another connection gets the number of one that was closed in the middle of a message."""
        target, watch = self.watched()
        numbers = set()
        for i in range(50):
            here, fd = self.opened(target)
            numbers.add(fd)
            self.say(here, target, fd)
            half = data_of(Truth(31).metadata(b"q" * 500))
            here.sendall(half[:60 + i])
            target.ok("read", "recv", fd, 60 + i)
            target.ok("close", fd)
            here.close()
        self.assertLess(len(numbers), 3)
        self.finish(watch, self.truth)

    def test_duplicates(self):
        """A message read through several descriptors; the connection goes on when one is closed."""
        target, watch = self.watched()
        here, fd = self.opened(target)
        other = target.ok("dup", fd)
        data = data_of(self.truth.metadata()) + data_of(self.truth.abort())
        here.sendall(data)
        target.ok("read", "recv", fd, 33)
        target.ok("read", "read", other, 20)
        target.ok("close", fd)
        target.ok("read", "readv", other, len(data) - 53)
        self.say(here, target, other)
        self.assertEqual([d for d in watch.peers() if d["kind"] == "closed"], [])
        target.ok("close", other)
        watch.wait_peer("closed")
        self.finish(watch, self.truth)

    def test_dup2_over_a_connection(self):
        """dup2 closes what had that number."""
        target, watch = self.watched()
        one, fd1 = self.opened(target)
        two, fd2 = self.opened(target)
        one.sendall(data_of(Truth(32).metadata())[:50])
        target.ok("read", "recv", fd1, 50)
        target.ok("dup2", fd2, fd1)
        self.say(two, target, fd1)
        self.say(two, target, fd2)
        self.finish(watch, self.truth)


class Sharing(FaultCase):
    def shared(self):
        """A target that got its connection from this process, which keeps its end of it too."""
        server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(server.close)
        here = socket.create_connection(server.getsockname(), timeout=20)
        self.addCleanup(here.close)
        mine = server.accept()[0]
        self.addCleanup(mine.close)
        target = Peer.calls(pass_fds=[mine.fileno()])
        self.addCleanup(target.end)
        watch = SockWatch(target.pid, PROFILE_IN)
        self.addCleanup(watch.__exit__)
        watch.__enter__()
        here.sendall(raw_zmtp.opening())
        fd = mine.fileno()
        target.ok("read", "recv", fd, len(raw_zmtp.opening()))
        return here, mine, target, fd, watch

    def test_untraced_process_reads_some(self):
        """From the middle of a frame to that of another: what follows cannot be followed, and that is said."""
        here, mine, target, fd, watch = self.shared()
        self.say(here, target, fd)
        data = data_of(Truth(33).metadata(Truth(34).fake_payload(2000))) * TRAP
        here.sendall(data)
        target.ok("read", "recv", fd, 100)
        self.assertEqual(len(mine.recv(2500, socket.MSG_WAITALL)), 2500)
        target.ok("read", "recv", fd, len(data) - 2600, 500)
        watch.wait_peer("lost")
        self.finish(watch, self.truth)

    def test_untraced_process_reads_a_whole_message(self):
        """Nothing is made up of the parts left; what is decoded later was really said."""
        here, mine, target, fd, watch = self.shared()
        self.say(here, target, fd)
        one = data_of(Truth(35).metadata())
        here.sendall(one)
        mine.recv(len(one), socket.MSG_WAITALL)
        later = Truth(36)
        self.say(here, target, fd, later, count=3)
        watch.wait_peer("lost")
        watch.stop()
        later.said += self.truth.said
        self.assert_only_said(watch.db, later)

    def test_untraced_process_writes_some(self):
        server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(server.close)
        here = socket.create_connection(server.getsockname(), timeout=20)
        self.addCleanup(here.close)
        mine = server.accept()[0]
        self.addCleanup(mine.close)
        fd = mine.fileno()
        with Peer.calls(pass_fds=[fd]) as target, SockWatch(target.pid, PROFILE_OUT) as watch:
            target.ok("write", "send", fd, raw_zmtp.opening(b"PUSH").hex())
            target.ok("write", "send", fd, data_of(self.truth.told()).hex())
            whole = raw_zmtp.message(*Truth(37).told()) * TRAP
            target.ok("write", "send", fd, whole[:10].hex())
            mine.sendall(whole[10:25])
            target.ok("write", "send", fd, whole[25:].hex())
            watch.wait_peer("lost")
            self.finish(watch, self.truth)

    def test_child_reads_some(self):
        """A forked child, which is followed from some moment on: all of it or some, nothing false."""
        target, watch = self.watched()
        here, fd = self.opened(target)
        truth = self.truth
        data = b"".join(data_of(truth.metadata(truth.fake_payload(300))) for _ in range(TRAP))
        here.sendall(data)
        target.ok("read", "recv", fd, 1000)
        target.ok("child", "read", "recv", fd, 3333, 50)
        target.ok("read", "recv", fd, len(data) - 4333, 500)
        target.ok("close", fd)
        watch.wait_peer("closed")
        watch.stop()
        self.assert_only_said(watch.db, truth)

    def test_two_threads_read_one_connection(self):
        target, watch = self.watched()
        here, fd = self.opened(target)
        truth = self.truth
        data = b"".join(data_of(truth.metadata()) for _ in range(300))
        each = len(data) // 2
        readers = [target.ok("bg", "read", "recv", fd, n, 61) for n in (each, len(data) - each)]
        here.sendall(data)
        for reader in readers:
            target.ok("join", reader)
        target.ok("close", fd)
        watch.wait_peer("closed")
        watch.stop()
        self.assert_only_said(watch.db, truth)


class Ends(FaultCase):
    def test_a_thread_closes_what_another_reads(self):
        """The read goes on: what it brings is seen; the number belongs to another connection by then."""
        target, watch = self.watched()
        for _ in range(20):
            one, fd = self.opened(target)
            reader = target.ok("bg", "read", "recv", fd, 10, 10)
            sp.wait_for(lambda fd=fd: self.waits(target.pid, fd), 10, "the thread to be inside recv")
            target.ok("close", fd)
            two, again = self.opened(target)
            data = data_of(self.truth.metadata())
            two.sendall(data)
            two.shutdown(socket.SHUT_WR)
            one.sendall(data_of(Truth(38).metadata())[:10])
            one.close()
            target.do("join", reader)
            target.do("read", "recv", again, len(data), 9)
            target.ok("close", again)
            two.close()
        watch.wait_peer("closed", count=20)
        watch.stop()
        self.assert_only_said(watch.db, self.truth)

    def test_a_read_that_waits_while_its_descriptor_is_closed(self):
        """Surely inside the call (/proc says so) when another thread closes: the bytes of this message come
        from the connection that the call was made on."""
        target, watch = self.watched()
        one, fd = self.opened(target)
        data = data_of(self.truth.metadata())
        reader = target.ok("bg", "read", "recv", fd, len(data), 65536)
        sp.wait_for(lambda: self.waits(target.pid, fd), 10, "the thread to be inside recv")
        target.ok("close", fd)
        one.sendall(data)
        self.assertEqual(target.ok("join", reader), str(len(data)))
        two, fd = self.opened(target)
        self.say(two, target, fd)
        watch.stop()
        self.assert_only_said(watch.db, self.truth)

    @staticmethod
    def waits(pid, fd):
        for tid in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{tid}/syscall", encoding="ascii") as f:
                words = f.read().split()
            if len(words) > 2 and words[0] == "45" and int(words[1], 16) == int(fd):  # recvfrom
                return True
        return False

    def test_reset_in_the_middle(self):
        target, watch = self.watched()
        here, fd = self.opened(target)
        here.sendall(data_of(self.truth.register()))
        target.ok("read", "recv", fd, len(data_of([*self.truth_register()])), 50)
        here.sendall(data_of(Truth(39).metadata())[:40])
        target.ok("read", "recv", fd, 40)
        here.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        here.close()
        self.assertIn("ECONNRESET", target.do("read", "recv", fd, 1))
        watch.wait_peer("reset", agent="agent-1")
        self.finish(watch, self.truth)

    @staticmethod
    def truth_register():
        """The same frames as the first registration of any Truth."""
        return Truth().register()

    def test_half_closed(self):
        """The peer has said all and waits: no end before the target closes too, and what it said counts."""
        target, watch = self.watched()
        here, fd = self.opened(target)
        data = data_of(self.truth.metadata())
        here.sendall(data)
        here.shutdown(socket.SHUT_WR)
        self.assertEqual(target.ok("read", "recv", fd, len(data) + 1, 20), str(len(data)))
        target.ok("close", fd)
        watch.wait_peer("closed")
        self.finish(watch, self.truth)

    def test_target_killed(self):
        target, watch = self.watched()
        here, fd = self.opened(target)
        self.say(here, target, fd)
        watch.wait_said(1)
        target.p.kill()
        watch.wait_err("", 0.1)
        sp.wait_for(lambda: watch.p.poll() is not None, 20, "the watch to end with its target")
        watch.stop()
        self.assert_said(watch.db, self.truth)


class Unseen(FaultCase):
    def moved(self, call):
        """Bytes of a message that no buffer of the target ever held."""
        target, watch = self.watched(PROFILE_OUT)
        here, fd = self.opened(target, b"PULL")
        target.ok("write", "send", fd, data_of(self.truth.told()).hex())
        target.ok("write", call, fd, (data_of(Truth(40).told()) * 3).hex())
        target.ok("write", "send", fd, (data_of(Truth(41).told())[3:] * TRAP).hex())
        got = watch.wait_peer("lost")
        self.assertRegex(got[0]["note"].lower(), "sendfile|splice|unseen")
        self.finish(watch, self.truth)

    def test_sendfile(self):
        self.moved("sendfile")

    def test_splice(self):
        self.moved("splice")

    def test_body_of_a_frame_by_sendfile(self):
        """Within what is skipped anyway nothing is missed."""
        target, watch = self.watched(PROFILE_OUT)
        here, fd = self.opened(target, b"PULL")
        for _ in range(3):
            target.ok("write", "send", fd, (data_of(self.truth.told()) + b"\2" + struct.pack(">Q", 70000)
                                            + b"q" * 2000).hex())
            target.ok("write", "sendfile", fd, "*66000")
            target.ok("write", "send", fd, (b"q" * 2000 + data_of(self.truth.told())).hex())
        self.finish(watch, self.truth)

    def test_calls_that_bypass_libc(self):
        """Under libc's probes a raw system call passes unseen: said, and nothing made up."""
        target, watch = self.watched(env={"SILENTPIN_SOCKETS": "libc"})
        here, fd = self.opened(target)
        self.say(here, target, fd)
        self.say(here, target, fd, Truth(42), call="sysread", count=TRAP, size=100)
        self.say(here, target, fd, Truth(43), call="recv", count=3, size=11)
        watch.wait_peer("lost")
        watch.stop()
        later = Truth(43)
        for _ in range(3):
            later.metadata()
        later.said += self.truth.said
        self.assert_only_said(watch.db, later)

    def test_calls_that_bypass_libc_under_syscall(self):
        target, watch = self.watched(env={"SILENTPIN_SOCKETS": "syscall"})
        here, fd = self.opened(target)
        for size in (1, 13, 65536):
            self.say(here, target, fd, call="sysread", count=3, size=size)
        self.finish(watch, self.truth)

    def io_uring(self, before):
        """A ring that exists at the attach, or is made later: what goes through it is not seen, and that is
        said. Where the kernel refuses rings there is none to warn of."""
        target = Peer.calls()
        self.addCleanup(target.end)
        made = target.do("uring") if before else ""
        with SockWatch(target.pid, PROFILE_ALL) as watch:
            if not before:
                made = target.do("uring")
            if made.startswith("-1 "):
                self.assertIn(made.split()[1], ("ENOSYS", "EPERM"))
                watch.stop()
                self.assertFalse([line for line in watch.err if "io_uring" in line])
            else:
                watch.wait_err("io_uring", 30)  # looked for every ten seconds
                watch.stop()

    def test_io_uring_before_the_attach(self):
        self.io_uring(True)

    def test_io_uring_made_later(self):
        self.io_uring(False)

    def test_no_io_uring_no_word(self):
        target, watch = self.watched()
        here, fd = self.opened(target)
        self.say(here, target, fd)
        self.finish(watch, self.truth)
        self.assertFalse([line for line in watch.err if "io_uring" in line], watch.err)


class InFlight(FaultCase):
    """The call that waits when the watch begins."""

    def first_message(self, call, env=None):
        target = Peer.calls()
        self.addCleanup(target.end)
        here, fd = self.opened(target)
        data = data_of(self.truth.metadata())
        reader = target.ok("bg", "read", call, fd, len(data))
        idle = sp.time.monotonic()
        with SockWatch(target.pid, PROFILE_IN, env=env) as watch:
            # a frame's boundary is believed after a second of silence
            sp.wait_for(lambda: sp.time.monotonic() > idle + 1.2, 5, "a second of silence")
            here.sendall(data)
            self.assertEqual(target.ok("join", reader), str(len(data)))
            self.say(here, target, fd, size=65536)
            self.finish(watch, self.truth)
            self.assertTrue([d for d in watch.peers() if d["kind"] == "trusted"], watch.peers())

    def test_recv(self):
        self.first_message("recv")

    def test_read(self):
        self.first_message("read")

    def test_recvmsg(self):
        self.first_message("recvmsg")

    def test_recv_syscall(self):
        self.first_message("recv", {"SILENTPIN_SOCKETS": "syscall"})


if __name__ == "__main__":
    unittest.main()
