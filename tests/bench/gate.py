#!/usr/bin/env python3
"""The speed gate of `./dev ci`: fails when something became much slower, and never because a machine is slow.

    ./dev bench gate [BINARY]

Every check is a ratio of two figures of one process run, or a fraction of a limit that the same run measured, and
its floor in floors.json is about 0.7 of what it was when it was set, by class of processor. Best times of a run are compared, and a check
passes if it does in one of three tries: noise cannot fail it, a loss of 30 % does.
"""

import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "models/SmolLM2-135M-Instruct.Q4_1.gguf"
BINARY = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build/release/vivace"
FLOORS = pathlib.Path(__file__).with_name("floors.json")
TRIES = 3


def steps(*flags):
    """One run, as {("prompt", 512): figures, ("decode", 8, 128): figures}, and the whole report."""
    threads = min(2, len(os.sched_getaffinity(0)))
    done = subprocess.run([BINARY, "bench", "steps", MODEL, "--threads", str(threads), "--rounds", "5", "--json", *flags],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if not done.stdout:
        raise SystemExit(f"vivace bench steps failed: {done.stderr}")
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
    tier = report["isa"].split("-")[0]
    rates = [mac["macs_per_second"] for mac in report["limits"]["macs"]
             if mac["kind"] == "vpdpbusd zmm" and mac["threads"] == 1]
    if not rates:
        return [tier]
    per_cycle = rates[0] / report["limits"]["clock_hz_after"]
    return [tier, f"{tier}, {64 if per_cycle < 96 else 128} MAC a cycle"]


def measure():
    """{check: value} of this machine, and its classes."""
    best, report = steps("--prompt=512", "--decode=1,8,32", "--context=128")
    values = {
        "prompt 512, fraction of the limit": fraction(best["prompt", 512]),
        "decode 1, fraction of the limit": fraction(best["decode", 1, 128]),
        "decode 8 against 1, tokens a second": 8 * best["decode", 1, 128]["fastest"] / best["decode", 8, 128]["fastest"],
        "decode 32, fraction of the limit": fraction(best["decode", 32, 128]),
        "decode 8, share inside kernels": best["decode", 8, 128]["kernel_share"],
    }
    tier = report["isa"]
    if tier not in ("avx2", "reference"):
        low, _ = steps("--isa=avx2", "--prompt=512", "--decode=1", "--context=128")
        values["prompt 512, best tier against avx2"] = low["prompt", 512]["fastest"] / best["prompt", 512]["fastest"]
        values["decode 1, best tier against avx2"] = low["decode", 1, 128]["fastest"] / best["decode", 1, 128]["fastest"]
    if tier != "reference":
        long = {dtype: steps(f"--kv-cache-dtype={dtype}", "--prompt=none", "--decode=16", "--context=1024")[0]
                for dtype in ("bf16", "int8")}
        values["decode 16 at 1024, int8 cache against bf16"] = (
            long["bf16"]["decode", 16, 1024]["fastest"] / long["int8"]["decode", 16, 1024]["fastest"])
    return values, classes(report)


def main():
    floors = json.loads(FLOORS.read_text())
    best = {}
    for number in range(1, TRIES + 1):
        values, names = measure()
        wanted = {}
        for name in names:
            wanted |= floors.get(name, {})
        if not wanted:
            print(f"speed gate: no floors for {names[-1]}; nothing to check")
            return 0
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
