#!/usr/bin/env python3
"""Writes src/quant/iq_grids.inc: the codebooks of the IQ formats, as gguf-py has them.

    pip install gguf numpy && python3 tests/oracles/iq_grids.py

A row of a codebook is one 16-bit word of indices into the format's few values: 8 of 2 bits or 4 of
3, the first in the low bits.
"""

import pathlib

import gguf.quants as quants
import numpy as np

GRIDS = ["IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ1_S"]
PER_LINE = 14


def words(kind) -> np.ndarray:
    kind.init_grid()
    grid = kind.grid.reshape(kind.grid_shape)
    bits = 16 // grid.shape[1] if grid.shape[1] == 8 else 3
    index = np.searchsorted(np.array(kind.grid_map, dtype=np.float32), grid)
    assert (np.array(kind.grid_map)[index] == grid).all()
    return (index << (np.arange(grid.shape[1]) * bits)).sum(axis=1)


def main() -> None:
    lines = ["// Written by tests/oracles/iq_grids.py.\n"]
    for name in GRIDS:
        values = [f"0x{word:04x}," for word in words(getattr(quants, name))]
        lines.append(f"constexpr uint16_t kGrid{name.replace('_', '')}[{len(values)}] = {{\n")
        for i in range(0, len(values), PER_LINE):
            lines.append("    " + " ".join(values[i:i + PER_LINE]) + "\n")
        lines.append("};\n")
    path = pathlib.Path(__file__).resolve().parents[2] / "src" / "quant" / "iq_grids.inc"
    path.write_text("".join(lines))


if __name__ == "__main__":
    main()
