#!/usr/bin/env python3
"""Checks what a reader would trip over and a compiler does not: includes that go up the layers, Boost.Beast
outside server/http, folders without a README, tests that no target builds, `#pragma once`.

The order of the layers is VIVACE_FOLDERS in CMakeLists.txt. Exit 1 and one line per fault.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
INCLUDE = re.compile(r'^\s*#include\s+["<]([^">]+)[">]', re.M)


def layers():
    text = (ROOT / "CMakeLists.txt").read_text()
    return re.search(r"set\(VIVACE_FOLDERS ([^)]*)\)", text).group(1).split()


def check_file(path, order):
    folder = path.relative_to(SRC).parts[0]
    text = path.read_text()
    for include in INCLUDE.findall(text):
        target = include.split("/")[0]
        if target in order and "/" in include and order.index(target) > order.index(folder):
            yield f"{path.relative_to(ROOT)}: {folder}/ may not include {include} (a higher layer)"
        if re.match(r"boost/(beast|asio)", include) and path.parent.name != "http":
            yield f"{path.relative_to(ROOT)}: {include} belongs to src/server/http only"
    if path.suffix == ".h" and "#pragma once" not in text:
        yield f"{path.relative_to(ROOT)}: no #pragma once"


def main():
    order = layers()
    faults = []
    for path in sorted(SRC.rglob("*")):
        if path.suffix in (".h", ".cc", ".inc"):
            faults += check_file(path, order)
    present = {p.name for p in SRC.iterdir() if p.is_dir()}
    faults += [f"src/{name}: not in VIVACE_FOLDERS" for name in sorted(present - set(order))]
    for folder in [SRC / name for name in order] + [ROOT / name for name in ("sim", "fuzz", "tests", "docs")]:
        if not (folder / "README.md").is_file():
            faults.append(f"{folder.relative_to(ROOT)}: no README.md")
    print("\n".join(faults) if faults else "layers: ok")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
