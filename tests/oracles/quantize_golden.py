#!/usr/bin/env python3
"""Writes tests/golden/quantize.txt: random values and what gguf-py quantises them to.

    pip install gguf numpy && python3 tests/oracles/quantize_golden.py

One line per format: its name, little-endian fp32 values in hex, the blocks in hex.
"""

import pathlib

import gguf
import numpy as np
from gguf.quants import quantize

FORMATS = ["F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"]
VALUES = 128


def main() -> None:
    rng = np.random.default_rng(21)
    values = (rng.standard_normal(VALUES) * 0.05).astype(np.float32)
    values[32:64] *= 1e-3
    values[64:96] = np.abs(values[64:96])
    values[96:128] = 0.0
    lines = []
    for name in FORMATS:
        data = quantize(values, gguf.GGMLQuantizationType[name]).view(np.uint8)
        lines.append(f"{name} {values.astype('<f4').tobytes().hex()} {data.tobytes().hex()}\n")
    path = pathlib.Path(__file__).resolve().parent.parent / "golden" / "quantize.txt"
    path.write_text("".join(lines))


if __name__ == "__main__":
    main()
