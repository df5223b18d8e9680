# SPDX-License-Identifier: Apache-2.0
"""The decode end of the stand-in node, watched with sglang-nixl-decode, and both ends at once: rooms have one id."""
import fnmatch
import os
import re
import sys
import unittest

import sp
from scenario_case import deadlines

sys.path.insert(0, os.path.join(sp.ROOT, "tests", "node"))
from node import Node  # noqa: E402

DEADLINES = deadlines(5, 5)

S = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
MAP = f"St13unordered_mapI{S}St6vectorIS6_SaIS6_EESt4hashIS6_ESt8equal_toIS6_ESaISt4pairIKS6_S9_EEE"
# Mangled from the declarations in nixl.h of the releases: 0.1 (only the map; the map and a count), 0.2 to 1.4.
GET_NOTIFS = (f"_ZN9nixlAgent9getNotifsER{MAP}", f"_ZN9nixlAgent9getNotifsER{MAP}Ri",
              f"_ZN9nixlAgent9getNotifsER{MAP}PK21nixlAgentOptionalArgs")
GEN_NOTIF = (f"_ZN9nixlAgent8genNotifERK{S}S7_", f"_ZN9nixlAgent8genNotifERK{S}S7_PK21nixlAgentOptionalArgs",
             f"_ZNK9nixlAgent8genNotifERK{S}S7_PK21nixlAgentOptionalArgs")
# Neighbours that are other functions, or hand out other things.
OTHERS = (f"_ZN9nixlAgent9getNotifsERSt3mapI{S}St6vectorIS6_SaIS6_EESt4lessIS6_ESaISt4pairIKS6_S9_EEE",
          "_ZN9nixlAgent15getRemoteNotifsERSt6vectorISt4pairIjSt6vectorIhSaIhEEESaIS4_EEPK21nixlAgentOptionalArgs",
          "_ZN16nixlUcxEngineImpl9getNotifsERSt6vectorISt4pairINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEES7_EE")


def symbol(profile, probe):
    """The glob that `silentpin check` shows for a probe of probes.yaml."""
    with open(os.path.join(sp.ROOT, "probes.yaml"), encoding="utf-8") as f:
        text = f.read().partition(f"- name: {profile}\n")[2].partition("\n  - name: ")[0]
    return re.search(rf'- name: {probe}\n.*?symbol: "?([^"\n]+)"?\n', text, re.S).group(1)


class Symbols(unittest.TestCase):
    def test_names_of_releases(self):
        for profile in ("sglang-nixl-decode", "vllm-nixl"):
            glob = symbol(profile, "notifs")
            for name in GET_NOTIFS:
                self.assertTrue(fnmatch.fnmatchcase(name, glob), (profile, name))
            for name in OTHERS + GEN_NOTIF:
                self.assertFalse(fnmatch.fnmatchcase(name, glob), (profile, name))
        glob = symbol("vllm-nixl", "notify")
        for name in GEN_NOTIF:
            self.assertTrue(fnmatch.fnmatchcase(name, glob), name)
        for name in OTHERS + GET_NOTIFS:
            self.assertFalse(fnmatch.fnmatchcase(name, glob), name)


class BothEnds(unittest.TestCase):
    @staticmethod
    def told(watch):
        return {a["room"] for a in watch.stuck()}

    def test_both_ends(self):
        with Node() as node:
            decode = node.decode(more=["--scheduler"])
            with sp.Watch("-p", node.pid, *DEADLINES) as prefill, \
                    sp.Watch("-p", decode.pid, "--min-confidence", "possible", *DEADLINES) as view, \
                    sp.Watch("-p", decode.pid, "--no-python", "--min-confidence", "possible", *DEADLINES) as native:
                never, aux, held = node.room(), node.room(), node.room()
                healthy = [self.transfer(node, decode, tokens) for tokens in (96, 8192, 40)]
                healthy.append(self.transfer(node, decode, 96, prefix=96))
                decode.announce(never, 96)
                node.hook(lose_aux=[aux])
                decode.announce(aux, 96)
                node.post(aux, 96)
                decode.do("hold", room=held)
                decode.announce(held, 96)
                self.check_never(view.wait_stuck(never), view.wait_stuck(held))
                self.check_aux(prefill.wait_stuck(aux), view.wait_stuck(aux), native.wait_stuck(aux))
                self.assertEqual(native.wait_stuck(never)["cause"], "never-sent")
                # rooms that come and go while others are held, and the one that got its memory
                decode.do("admit", room=held)
                node.post(held, 96)
                decode.done(held)
                recovered = view.wait_alert(lambda a: a["type"] == "recovered" and a["room"] == str(held))
                self.assertIn(recovered["outcome"], ("moving", "done"))
                healthy += [self.transfer(node, decode, 600) for _ in range(3)]
                for one in (prefill, native):
                    sp.wait_for(lambda w=one: self.done(w, healthy), 10,
                                lambda w=one: f"the healthy rooms to end: {healthy}; {sp.rooms(w.db)}; {w.err}")
                for one in (prefill, view, native):
                    one.stop()
                self.assertEqual(self.told(view), {str(never), str(aux), str(held)})
                self.assertEqual(self.told(native), {str(never), str(aux)})
                self.assertEqual(self.told(prefill) - {str(never)}, {str(aux)})

    @staticmethod
    def done(watch, rooms):
        ended = {r["room"]: r["outcome"] for r in sp.rooms(watch.db)}
        return all(ended.get(str(room)) == "done" for room in rooms)

    @staticmethod
    def transfer(node, decode, tokens, **more):
        room = node.room()
        decode.announce(room, tokens, **more)
        node.post(room, tokens)
        decode.done(room)
        return room

    def check_never(self, never, held):
        self.assertEqual((never["cause"], never["stage"], never["pin"]), ("never-sent", "inflight", False))
        self.assertIn(never["confidence"], ("likely", "certain"))
        self.assertEqual((held["cause"], held["stage"]), ("never-sent", "ready"))
        self.assertNotEqual(held["confidence"], "certain")
        self.assertIsNone(held["pin"])

    def check_aux(self, prefill, view, native):
        self.assertEqual((prefill["cause"], prefill["confidence"], prefill["pin"]), ("aux-missing", "certain", True))
        # the decode's own timeout ends it
        self.assertEqual((view["cause"], view["confidence"], view["pin"]), ("aux-missing", "certain", False))
        self.assertEqual((native["cause"], native["confidence"], native["pin"]), ("aux-missing", "likely", False))
        self.assertEqual(len({a["room"] for a in (prefill, view, native)}), 1)

    def test_timeout_of_its_own(self):
        """What the decode gives up by itself is over, and said so."""
        with Node() as node:
            decode = node.decode(more=["--scheduler", "--waiting-timeout", "10"])
            with sp.Watch("-p", decode.pid, *DEADLINES) as watch:
                room = node.room()
                decode.announce(room, 96)
                self.assertIs(watch.wait_stuck(room)["pin"], False)
                decode.expect("failed", room=str(room))
                over = watch.wait_alert(lambda a: a["type"] == "recovered" and a["room"] == str(room))
                self.assertEqual(over["outcome"], "failed")


class Choice(unittest.TestCase):
    def test_the_root_tells_the_ends_apart(self):
        """Title and libraries are the same on both ends."""
        with Node() as node:
            decode = node.decode(more=["--scheduler"])
            for pid, name in ((node.pid, "sglang-nixl-prefill"), (decode.pid, "sglang-nixl-decode")):
                self.assertIn(f"profile {name} of", sp.run("doctor", "-p", pid).stdout)
            # oldest first: prefill would have been taken before decode is
            with sp.Watch("--find", "--profile", "sglang-nixl-decode", attached=False) as watch:
                watch.wait_alert(lambda a: a["type"] == "target" and a["pid"] == decode.pid)
                self.assertNotIn(node.pid, {a["pid"] for a in watch.of_type("target")})


if __name__ == "__main__":
    unittest.main()
