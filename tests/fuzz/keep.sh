#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: tests/fuzz/keep.sh BUILD/fuzz SECONDS
# Renews tests/fuzz/corpus/NAME for every BUILD/fuzz/fuzz_NAME: fuzz from the seeds and from what is
# kept, all targets at once; then keep the inputs that cover every edge, and of those that differ in
# counts only (loops run twice, ...) the shortest, up to MAX in all.
set -eu
cd "$(dirname "$0")/../.."
build=$1 seconds=$2
MAX=40
[ -x "$build/fuzz_zmtp" ] || { echo "keep.sh: no fuzz targets in $build: make fuzzers" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 tests/fuzz/seeds.py "$work/seeds"
pids=()
for f in "$build"/fuzz_*; do
	[ -x "$f" ] || continue
	name=${f##*/fuzz_}
	mkdir -p "$work/$name/"{new,edges,counts} "$work/seeds/$name" "tests/fuzz/corpus/$name"
	dict=()
	[ ! -f "tests/fuzz/$name.dict" ] || dict=("-dict=tests/fuzz/$name.dict")
	"$f" "${dict[@]}" -max_len=2048 -max_total_time="$seconds" \
		-artifact_prefix="$build/crash-$name-" \
		"$work/$name/new" "$work/seeds/$name" "tests/fuzz/corpus/$name" > "$work/$name/log" 2>&1 &
	pids+=($!)
done
for p in "${pids[@]}"; do
	wait "$p" || {
		kill "${pids[@]}" 2>/dev/null || true
		grep -h -A 30 ERROR "$work"/*/log >&2
		exit 1
	}
done
for f in "$build"/fuzz_*; do
	[ -x "$f" ] || continue
	name=${f##*/fuzz_} w=$work/${f##*/fuzz_}
	all=("$w/new" "$work/seeds/$name" "tests/fuzz/corpus/$name")
	"$f" -set_cover_merge=1 -use_counters=0 "$w/edges" "${all[@]}" > "$w/log" 2>&1
	"$f" -set_cover_merge=1 "$w/counts" "${all[@]}" > "$w/log" 2>&1
	more=$((MAX - $(ls "$w/edges" | wc -l)))
	find "$w/counts" -type f -printf '%s %p\n' | sort -n | cut -d' ' -f2- |
		head -n $((more > 0 ? more : 0)) | xargs -r cp -t "$w/edges"
	rm -f "tests/fuzz/corpus/$name"/*
	cp "$w/edges"/* "tests/fuzz/corpus/$name/"
	echo "$name: $(ls "tests/fuzz/corpus/$name" | wc -l) inputs"
done
