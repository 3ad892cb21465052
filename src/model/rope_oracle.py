#!/usr/bin/env python3
"""Writes rope_oracle.inc: RoPE frequencies for rope_test.cc.

The formulas are those of transformers' modeling_rope_utils (default, linear, llama3, yarn), written
out in numpy float64, independently of rope.cc. Run: python3 src/model/rope_oracle.py
"""
import math
import pathlib

import numpy as np


def default(dims, theta):
    return 1.0 / theta ** (np.arange(0, dims, 2, dtype=np.float64) / dims)


def linear(dims, theta, factor):
    return default(dims, theta) / factor


def llama3(dims, theta, factor, low, high, context):
    freq = default(dims, theta)
    wavelen = 2 * math.pi / freq
    out = np.where(wavelen > context / low, freq / factor, freq)
    smooth = (context / wavelen - low) / (high - low)
    blended = (1 - smooth) * out / factor + smooth * out
    medium = ~(wavelen < context / high) & ~(wavelen > context / low)
    return np.where(medium, blended, out)


def yarn(dims, theta, factor, fast, slow, context):
    def dim_of(rotations):
        return dims * math.log(context / (rotations * 2 * math.pi)) / (2 * math.log(theta))

    low = max(math.floor(dim_of(fast)), 0)
    high = min(math.ceil(dim_of(slow)), dims - 1)
    if low == high:
        high += 0.001
    ramp = np.clip((np.arange(dims // 2, dtype=np.float64) - low) / (high - low), 0, 1)
    extrapolated = default(dims, theta)
    return extrapolated / factor * ramp + extrapolated * (1 - ramp)


def mscale(factor):
    return 1.0 if factor <= 1 else 0.1 * math.log(factor) + 1.0


# kind, dims, theta, factor, original context, a, b (llama3: low, high; yarn: fast, slow)
CASES = [
    ("kNone", 64, 100000.0, 1.0, 0, 0, 0),
    ("kNone", 128, 10000.0, 1.0, 0, 0, 0),
    ("kLinear", 64, 10000.0, 4.0, 0, 0, 0),
    ("kLlama3", 64, 500000.0, 32.0, 8192, 1.0, 4.0),   # Llama 3.2 1B
    ("kLlama3", 128, 500000.0, 8.0, 8192, 1.0, 4.0),   # Llama 3.1 8B
    ("kYarn", 128, 1000000.0, 4.0, 32768, 32.0, 1.0),  # Qwen2.5 long context
    ("kYarn", 64, 10000.0, 16.0, 4096, 32.0, 1.0),
    ("kYarn", 64, 150000.0, 32.0, 4096, 32.0, 1.0),
    ("kYarn", 16, 10000.0, 2.0, 64, 32.0, 1.0),
]


def frequencies(kind, dims, theta, factor, context, a, b):
    if kind == "kNone":
        return default(dims, theta)
    if kind == "kLinear":
        return linear(dims, theta, factor)
    if kind == "kLlama3":
        return llama3(dims, theta, factor, a, b, context)
    return yarn(dims, theta, factor, a, b, context)


def main():
    lines = ["// Made by rope_oracle.py: do not edit."]
    for case in CASES:
        kind, dims, theta, factor, context, a, b = case
        attention = mscale(factor) if kind == "kYarn" else 1.0
        values = [f"{v:.12e}" for v in frequencies(*case)]
        rows = [", ".join(values[i:i + 5]) for i in range(0, len(values), 5)]
        body = ",\n      ".join(rows)
        lines.append(f"{{RopeScaling::{kind}, {dims}, {theta:.1f}f, {factor:.1f}f, {context}, "
                     f"{a:.1f}f, {b:.1f}f, {attention:.12f},\n     {{{body}}}}},")
    path = pathlib.Path(__file__).with_name("rope_oracle.inc")
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
