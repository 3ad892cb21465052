#!/usr/bin/env python3
"""The speed gate of `./dev ci`: fails when something became much slower, and never because a machine is slow.

    ./dev bench gate [BINARY]

Every check is a ratio of two figures of one process run, or a fraction of a limit that the same run measured, and
its floor in floors.json is about 0.7 of what it was when it was set, by class of processor. Best times of a run are
compared, and a check passes if it does in one of three tries: noise cannot fail it, a loss of 30 % does.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "models/SmolLM2-135M-Instruct.Q4_1.gguf"
FLOORS = pathlib.Path(__file__).with_name("floors.json")
TRIES = 3
RUNS = 4  # of a case whose limits are measured wrongly, in one try
RUN_S = 600  # a run takes half a minute


class Disturbed(Exception):
    """A run that found its own limits wrong: its fractions mean nothing."""


def steps(binary, *flags, fractions=False):
    """One run, as {("prompt", 512): figures, ("decode", 8, 128): figures}, and the whole report. `fractions`: of its
    limits are wanted, so a run that finds these wrong is made again."""
    for _ in range(RUNS - 1):
        try:
            return one_run(binary, flags, fractions)
        except Disturbed as fault:
            print(f"speed gate, again: {fault}", file=sys.stderr)
    return one_run(binary, flags, fractions)


def one_run(binary, flags, fractions):
    threads = min(2, len(os.sched_getaffinity(0)))
    done = subprocess.run([binary, "bench", "steps", MODEL, "--threads", str(threads), "--rounds", "5", "--json", *flags],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=RUN_S)
    if not done.stdout:
        raise SystemExit(f"vivace bench steps failed: {done.stderr}")
    if done.returncode != 0 and fractions:
        raise Disturbed(done.stderr.strip())
    report = json.loads(done.stdout)
    figures = {}
    for step in report["steps"]:
        key = ("prompt", step["prompt"]) if step["prompt"] else ("decode", step["batch"], step["context"])
        figures[key] = step
    return figures, report


def fraction(step):
    return step["limit_seconds"] / step["fastest"]


def classes(report):
    """Names of this machine in floors.json, the general one first: its tier, and what its integer unit does."""
    tier = report["isa"].removesuffix("bf16")  # the model's weights are integers: these two differ in bf16 only
    rates = [mac["macs_per_second"] for mac in report["limits"]["macs"]
             if mac["kind"] == "vpdpbusd zmm" and mac["threads"] == 1]
    if not rates:
        return [tier]
    per_cycle = rates[0] / report["limits"]["clock_hz_after"]
    return [tier, f"{tier}, {64 if per_cycle < 96 else 128} MAC a cycle"]


def floors_of(names, floors):
    """{check: floor}; what is said of a class goes before what is said of its tier."""
    wanted = {}
    for name in names:
        wanted |= floors.get(name, {})
    if not wanted:
        raise SystemExit(f"speed gate: {FLOORS.name} has no floors for {names[0]}")
    return wanted


def measure(binary):
    """{check: value} of this machine, and its classes."""
    best, report = steps(binary, "--prompt=512", "--decode=1,8,32", "--context=128", fractions=True)
    values = {
        "prompt 512, fraction of the limit": fraction(best["prompt", 512]),
        "decode 1, fraction of the limit": fraction(best["decode", 1, 128]),
        "decode 8, fraction of the limit": fraction(best["decode", 8, 128]),
        "decode 32, fraction of the limit": fraction(best["decode", 32, 128]),
        "decode 8, share inside kernels": best["decode", 8, 128]["kernel_share"],
    }
    tier = report["isa"]
    if tier not in ("avx2", "reference"):
        low, _ = steps(binary, "--isa=avx2", "--prompt=512", "--decode=1", "--context=128")
        values["prompt 512, best tier against avx2"] = low["prompt", 512]["fastest"] / best["prompt", 512]["fastest"]
        values["decode 1, best tier against avx2"] = low["decode", 1, 128]["fastest"] / best["decode", 1, 128]["fastest"]
    if tier != "reference":
        long = {dtype: steps(binary, f"--kv-cache-dtype={dtype}", "--prompt=none", "--decode=16", "--context=1024")[0]
                for dtype in ("bf16", "int8")}
        values["decode 16 at 1024, int8 cache against bf16"] = (
            long["bf16"]["decode", 16, 1024]["fastest"] / long["int8"]["decode", 16, 1024]["fastest"])
    return values, classes(report)


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="./dev bench gate", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", nargs="?", default=ROOT / "build/release/vivace", help="another build of Vivace")
    args = parser.parse_args(arguments)
    floors = json.loads(FLOORS.read_text())
    best, wanted, low = {}, {}, ["everything"]
    for number in range(1, TRIES + 1):
        try:
            values, names = measure(args.binary)
        except Disturbed as fault:
            print(f"speed gate, try {number}: {fault}", file=sys.stderr)
            continue
        if names[0] == "reference":
            print("speed gate: this machine has the reference tier only, which is not meant to be fast")
            return 0
        wanted = floors_of(names, floors)
        for name, value in values.items():
            best[name] = max(value, best.get(name, 0))
        low = [name for name, floor in wanted.items() if best.get(name, 0) < floor]
        if not low:
            break
        print(f"speed gate, try {number}: below the floor: {', '.join(low)}", file=sys.stderr)
    for name, floor in wanted.items():
        told = f"{best[name]:6.2f}" if name in best else "   not measured"
        print(f"{'ok  ' if name not in low else 'LOW '} {name:48} {told}   floor {floor:.2f}")
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main())
