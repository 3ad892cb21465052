#!/usr/bin/env python3
"""Writes tests/golden/dequantize.txt: random blocks of each weight format and the values gguf-py gives.

    pip install gguf numpy && python3 tests/oracles/quant_golden.py

One line per row: format, data bytes in hex, little-endian fp32 values in hex.
"""

import pathlib

import gguf
import numpy as np
from gguf.quants import dequantize

FORMATS = ["F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K",
           "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4", "IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S",
           "IQ3_XXS", "IQ3_S", "TQ1_0", "TQ2_0"]
# Byte offsets of the fp16 fields of a block: random bits there would be NaN or huge too often.
HALVES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82],
          "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0],
          "IQ1_S": [0], "IQ2_XXS": [0], "IQ2_XS": [0], "IQ2_S": [0], "IQ3_XXS": [0], "IQ3_S": [0],
          "TQ1_0": [52], "TQ2_0": [64]}
VALUES = 256


def main() -> None:
    rng = np.random.default_rng(20)
    lines = []
    for name in FORMATS:
        kind = gguf.GGMLQuantizationType[name]
        elems, size = gguf.GGML_QUANT_SIZES[kind]
        blocks = VALUES // elems
        if name in ("F16", "BF16"):
            values = rng.standard_normal(VALUES).astype(np.float32)
            data = (values.astype(np.float16).view(np.uint8) if name == "F16"
                    else (values.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8))
        else:
            data = rng.integers(0, 256, (blocks, size), dtype=np.uint8)
            for offset in HALVES.get(name, []):
                scale = (rng.standard_normal(blocks) * 0.1).astype(np.float16)
                data[:, offset:offset + 2] = scale.view(np.uint8).reshape(blocks, 2)
            if name == "MXFP4":
                data[:, 0] = rng.integers(110, 140, blocks)
                data[0, 0], data[1, 0] = 0, 1
            if name == "IQ1_M":  # the high nibbles of four words are an fp16: of a small number
                data[:, 55] = data[:, 55] & 0x0f | 0x20
            data = data.reshape(-1)
        out = dequantize(data, kind).astype("<f4").reshape(-1)
        assert out.size == VALUES
        lines.append(f"{name} {data.tobytes().hex()} {out.tobytes().hex()}\n")
    path = pathlib.Path(__file__).resolve().parent.parent / "golden" / "dequantize.txt"
    path.write_text("".join(lines))


if __name__ == "__main__":
    main()
