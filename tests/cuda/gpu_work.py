# SPDX-License-Identifier: Apache-2.0
"""The watched process of gpu_check.py: PyTorch, made to copy and to wait. Obeys lines: "work N": N turns, each one of
every kind of call; "rate SECONDS": turns a second. Needs torch and a GPU, nothing else."""
import sys
import time

import torch

HOST = torch.ones(1 << 18, pin_memory=True)
BACK = torch.empty(1 << 18, pin_memory=True)
ONE, TWO = torch.empty(1 << 18, device="cuda"), torch.empty(1 << 18, device="cuda")
STREAM, EVENT = torch.cuda.Stream(), torch.cuda.Event()


def turn():
    with torch.cuda.stream(STREAM):
        ONE.copy_(HOST, non_blocking=True)
        TWO.copy_(ONE, non_blocking=True)
        BACK.copy_(TWO, non_blocking=True)
        EVENT.record()
    torch.cuda.current_stream().wait_event(EVENT)
    EVENT.query()
    EVENT.synchronize()
    STREAM.synchronize()


def main():
    turn()
    print(f"ready torch {torch.__version__}, CUDA {torch.version.cuda}, {torch.cuda.get_device_name()}", flush=True)
    for line in sys.stdin:
        word, _, number = line.partition(" ")
        if word == "work":
            for _ in range(int(number)):
                turn()
            print("done", flush=True)
        elif word == "rate":
            end, turns = time.monotonic() + float(number), 0
            while time.monotonic() < end:
                turn()
                turns += 1
            print(turns / float(number), flush=True)


main()
