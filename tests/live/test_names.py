# SPDX-License-Identifier: Apache-2.0
"""The shipped profiles pass `silentpin check`, and the globs of their NIXL and ZMQ probes take the names of the
releases that they were written from, not those of functions with other arguments; a call through two of them is one."""
import fnmatch
import json
import os
import sqlite3
import subprocess
import sys
import unittest

import sp

PROBES = os.path.join(sp.ROOT, "probes.yaml")
PROFILES = ("sglang-nixl-prefill", "sglang-nixl-decode", "vllm-nixl", "sglang-mooncake-prefill")

S = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
HANDLE = "P12nixlXferReqH"
OPTIONS = "PK21nixlAgentOptionalArgs"
OPERATION = "RK14nixl_xfer_op_t"
LISTS = "RK12nixlDescListI13nixlBasicDescE"
MAP = f"St13unordered_mapI{S}St6vectorIS6_SaIS6_EESt4hashIS6_ESt8equal_toIS6_ESaISt4pairIKS6_S9_EEE"

# Mangled from the declarations in nixl.h from before release 0.2 to the main branch of 2026, by the place of the
# handle among their arguments. probe -> names that it reads rightly
TAKES = {
    "xfer_make": {f"_ZNK9nixlAgent11makeXferReqE{OPERATION}PK{lists}RKSt6vectorIiSaIiEES5_SA_R{HANDLE}{OPTIONS}"
                  for lists in ("10nixlDlistH", "12nixlPreppedH")},
    # of sources newer than 1.4: indices by std::span, each two arguments
    "xfer_make_span": {f"_ZNK9nixlAgent11makeXferReqE14nixl_xfer_op_tRK10nixlDlistHSt4spanIKiLm18446744073709551615EE"
                       f"S3_S6_R{HANDLE}{OPTIONS}"},
    "xfer_create": {f"_ZNK9nixlAgent13createXferReqE{OPERATION}{LISTS}S7_RK{S}R{HANDLE}{OPTIONS}"},
    "xfer_post": {f"_ZNK9nixlAgent11postXferReqE{HANDLE}{OPTIONS}"},
    # not const in early releases
    "xfer_status": {f"_ZN{const}9nixlAgent13getXferStatusE{HANDLE}" for const in ("", "K")},
    "xfer_release": {f"_ZN{const}9nixlAgent14releaseXferReqE{HANDLE}" for const in ("", "K")},
    # the map; the map and a count; since 0.2 the map and options
    "notifs": {f"_ZN9nixlAgent9getNotifsER{MAP}{tail}" for tail in ("", "Ri", OPTIONS)},
    "notify": {f"_ZN9nixlAgent8genNotifERK{S}S7_", f"_ZN9nixlAgent8genNotifERK{S}S7_{OPTIONS}",
               f"_ZNK9nixlAgent8genNotifERK{S}S7_{OPTIONS}"},
    "zmq_recv": {"zmq_msg_recv"},
    "zmq_send": {"zmq_msg_send"},
}
# Other functions of the same libraries, and the same ones with their arguments elsewhere.
SIDES = "PK13nixlXferSideHRKSt6vectorIiSaIiEES2_S7_"
OTHERS = {
    # before 0.2: lists and text first
    f"_ZN9nixlAgent11makeXferReqE{SIDES}RK{S}{OPERATION}R{HANDLE}",
    f"_ZNK9nixlAgent11makeXferReqE{SIDES}RK{S}{OPERATION}R{HANDLE}",
    f"_ZN9nixlAgent13createXferReqE{LISTS}S4_RK{S}SC_{OPERATION}R{HANDLE}",
    f"_ZNK9nixlAgent13createXferReqE{LISTS}S4_RK{S}SC_{OPERATION}R{HANDLE}PK12nixlBackendH",
    f"_ZN9nixlAgent11postXferReqE{HANDLE}",
    f"_ZN9nixlAgent11postXferReqE{OPERATION}{HANDLE}RK{S}",
    # a remote agent by its handle
    f"_ZNK9nixlAgent13createXferReqE{OPERATION}{LISTS}S7_PK16nixlRemoteAgentHR{HANDLE}{OPTIONS}",
    f"_ZNK9nixlAgent18postXferReqBatchedERKSt6vectorI{HANDLE}SaIS2_EERKS0_I{OPTIONS}SaIS9_EE",
    "_ZNK9nixlAgent16getXferTelemetryEPK12nixlXferReqHR17nixlXferTelemetry",
    "_ZNK9nixlAgent16queryXferBackendEPK12nixlXferReqHRP12nixlBackendH",
    f"_ZN9nixlAgent17invalidateXferReqE{HANDLE}",
    "_ZNK9nixlAgent14releasedDlistHEP10nixlDlistH",
    f"_ZNK9nixlAgent13prepXferDlistERK{S}{LISTS}RP10nixlDlistH{OPTIONS}",
    "_ZN16nixlServiceAgent13getXferStatusEP19nixlServiceXferReqH",
    f"_ZN9nixlAgent9getNotifsERSt3mapI{S}St6vectorIS6_SaIS6_EESt4lessIS6_ESaISt4pairIKS6_S9_EEE",
    # libzmq
    "zmq_msg_recvmsg", "zmq_recvmsg", "zmq_sendmsg", "zmq_recv", "zmq_send", "zmq_msg_init", "zmq_msg_data",
    "zmq_send_const", "zmq_msg_set_routing_id", "zmq_sendiov", "zmq_recviov",
}


def shown():
    """profile -> {probe: symbol} of NIXL and ZMQ, as `silentpin check` shows them."""
    done = sp.run("check", PROBES)
    if done.returncode or done.stderr:
        raise AssertionError(f"check: {done.returncode} {done.stderr}")
    found = {}
    for line in done.stdout.splitlines():
        words = line.split()
        if line.startswith("profile "):
            probes = found[words[1]] = {}
        elif len(words) >= 4 and words[1] in ("nixl", "zmq"):
            probes[words[0]] = words[3]
    return found


class Names(unittest.TestCase):
    maxDiff = None

    def test_globs(self):
        found = shown()
        self.assertEqual(set(found), set(PROFILES))
        names = set.union(OTHERS, *TAKES.values())
        for profile, probes in found.items():
            for probe, glob in probes.items():
                with self.subTest(profile=profile, probe=probe):
                    self.assertEqual({n for n in names if fnmatch.fnmatchcase(n, glob)}, TAKES[probe])
        self.assertEqual(set().union(*found.values()), set(TAKES))


class Newer(unittest.TestCase):
    """A library that has makeXferReq twice, the older one of which calls the other."""

    def test_made_through_either(self):
        p = subprocess.Popen([sys.executable, os.path.join(sp.ROOT, "tests", "node", "made.py")], text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(p.communicate)
        pid = json.loads(p.stdout.readline())["pid"]
        said = sp.run("doctor", "-p", pid, "--profile", "sglang-nixl-prefill").stdout
        self.assertRegex(said, r"ok +probe xfer_make_span: _ZNK9nixlAgent11makeXferReqE14nixl_xfer_op_t")
        self.assertNotIn("probe xfer_make:", said)
        with sp.Watch("-p", pid, "--profile", "sglang-nixl-prefill", "--only", "uprobes", "--record", "all") as w:
            p.stdin.write("go\n")
            p.stdin.flush()
            self.assertEqual(json.loads(p.stdout.readline())["done"], 2)
            w.stop()
            with sqlite3.connect(f"file:{w.db}?mode=ro", uri=True) as c:
                posts = c.execute("SELECT coalesce(e.room, l.room), count(*), count(DISTINCT e.op) FROM event e"
                                  " JOIN role r ON r.id = e.role LEFT JOIN life l ON l.id = e.life"
                                  " WHERE r.name = 'post' GROUP BY 1 ORDER BY 1").fetchall()
        self.assertEqual(posts, [("71", 2, 1), ("72", 2, 1)], "each is made once and posted once")


if __name__ == "__main__":
    unittest.main()
