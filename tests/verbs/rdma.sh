#!/bin/bash
# usage: tests/verbs/rdma.sh BUILD [rxe|siw]
# Watches ibv_rc_pingpong (Debian's ibverbs-utils) on an RDMA device made of software, with the provider of the
# distribution: the server once it runs, the client from its start. For a machine or an emulated one that may have a
# new network interface; needs root and the kernel modules rdma_rxe or siw, ib_uverbs, dummy.
set -euo pipefail
build=$(realpath "$1") kind=${2:-rxe} count=2000
here=$(dirname "$(realpath "$0")")
probes=$(mktemp -d)/probes.yaml
ip link add rdma_dummy type dummy
ip address add 10.98.76.54/24 dev rdma_dummy
ip link set rdma_dummy up
ip link set lo up
rdma link add test0 type "$kind" netdev rdma_dummy
trap 'ip link del rdma_dummy' EXIT
python3 -c '
import sys
sys.path.insert(0, sys.argv[1])
import cuda_rig
text = open(sys.argv[2]).read().replace("profiles:\n", cuda_rig.groups() + "\nprofiles:\n", 1)
open(sys.argv[3], "w").write(text)' "$here/../cuda" "$here/rdma.yaml" "$probes"
for gid in 1 0; do
	[ -e "/sys/class/infiniband/test0/ports/1/gids/$gid" ] &&
		grep -qv '^0000:0000:0000:0000:0000:0000:0000:0000$' "/sys/class/infiniband/test0/ports/1/gids/$gid" && break
done
ibv_rc_pingpong -d test0 -g "$gid" -n "$count" >/dev/null &
server=$!
until grep -q rdmav /proc/$server/maps; do sleep 0.1; done
"$build/silentpin" doctor -p $server --probes "$probes" | grep -E 'probe|library'
"$build/silentpin" watch -p $server --probes "$probes" -v -o server.db 2>server.err >/dev/null &
watch=$!
until grep -q 'recording to' server.err; do sleep 0.1; done
"$build/silentpin" watch --probes "$probes" -v -o client.db -- ibv_rc_pingpong -d test0 -g "$gid" -n "$count" 10.98.76.54 2>client.err |
	grep -v '"v":' || true
wait $server
wait $watch || true
for end in server client; do
	echo "== $end"
	cat $end.err
	sqlite3 $end.db "SELECT p.name, sum(e.count) FROM event e JOIN probe p ON p.id = e.probe WHERE e.kind = 'count' GROUP BY 1"
done
