"""Writes src/text/unicode_tables.cc: what the tokenizers need to know about every code point.

    pip install --target v16 unicodedata2==16.0.0
    pip install --target v17 unicodedata2==17.0.0
    pip install tokenizers==0.23.3
    python make_unicode_tables.py v16 v17 > ../../src/text/unicode_tables.cc

The versions are those of the parts of Hugging Face `tokenizers` that we must agree with, found by
comparing every code point: its regex engine has the categories of Unicode 16, its `Digits` those of
Unicode 17, and its NFC is older than both, so the normalisation data of 16 is cut down to what that
NFC does. The program fails if `tokenizers` and the tables would differ anywhere.
"""

import importlib
import sys

import tokenizers

BLOCK = 128
LETTER, NUMBER, MARK, SPACE, NUMERIC, NFC_ACTIVE = 1, 2, 4, 8, 16, 32
CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def load(folder):
    sys.path.insert(0, folder)
    sys.modules.pop("unicodedata2", None)
    module = importlib.import_module("unicodedata2")
    sys.path.pop(0)
    return module


def left_out(splitter):
    """The code points that a pre-tokenizer which removes them removes."""
    found = set(CODE_POINTS)
    for i in range(0, len(CODE_POINTS), 4096):
        chunk = "".join(map(chr, CODE_POINTS[i : i + 4096]))
        for piece, _ in splitter.pre_tokenize_str(chunk):
            found -= set(map(ord, piece))
    return found


def regex_class(pattern):
    return left_out(tokenizers.pre_tokenizers.Split(tokenizers.Regex(pattern), "removed"))


def digits_class():
    digits = tokenizers.pre_tokenizers.Digits(individual_digits=True)
    return {c for c in CODE_POINTS if len(digits.pre_tokenize_str(f"a{chr(c)}b")) > 1}


def normalisation(ucd):
    """(canonical decompositions, combining classes, compositions) as the oracle's NFC has them."""
    nfc = tokenizers.normalizers.NFC().normalize_str
    combining = {c: ucd.combining(chr(c)) for c in CODE_POINTS if ucd.combining(chr(c))}
    for c in list(combining):
        # Marks of class 240 sort after all others, marks of class 1 before: neither moves past a
        # code point whose class the oracle does not know.
        probes = ("b\u0345" + chr(c), "b" + chr(c) + "\u0334")
        if any(nfc(p) != ucd.normalize("NFC", p) for p in probes):
            del combining[c]
    decompositions, compositions = {}, {}
    for c in CODE_POINTS:
        raw = ucd.decomposition(chr(c))
        if not raw or raw.startswith("<") or 0xAC00 <= c < 0xD7A4:
            continue
        parts = [int(x, 16) for x in raw.split()]
        full = [ord(x) for x in ucd.normalize("NFD", chr(c))]
        if len(parts) == 2 and ucd.normalize("NFC", chr(c)) == chr(c):
            if nfc("".join(map(chr, full))) != chr(c):
                continue  # a composition the oracle does not know
            compositions[tuple(parts)] = c
        decompositions[c] = full
    return decompositions, combining, compositions


def properties(ucd16, ucd17, decompositions, combining, compositions):
    table = [0] * 0x110000
    for c in CODE_POINTS:
        major = ucd16.category(chr(c))[0]
        table[c] |= {"L": LETTER, "N": NUMBER, "M": MARK}.get(major, 0)
        table[c] |= NUMERIC if ucd17.category(chr(c))[0] == "N" else 0
    for c in regex_class(r"\s"):
        table[c] |= SPACE
    composed = set(compositions.values())
    active = set(combining) | {b for _, b in compositions} | set(decompositions) - composed
    active |= set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3))  # Hangul vowels and finals
    for c in active:
        table[c] |= NFC_ACTIVE
    for bit, found in (
        (LETTER, regex_class(r"\p{L}")),
        (NUMBER, regex_class(r"\p{N}")),
        (MARK, regex_class(r"\p{M}")),
        (NUMERIC, digits_class()),
    ):
        wrong = [c for c in CODE_POINTS if bool(table[c] & bit) != (c in found)]
        if wrong:
            sys.exit(f"bit {bit} differs from tokenizers at {[hex(c) for c in wrong[:9]]}")
    return table


def array(declaration, values, form=str):
    print(f"{declaration} = {{")
    line = "   "
    for value in values:
        item = f" {form(value)},"
        if len(line) + len(item) > 100:
            print(line)
            line = "   "
        line += item
    print(f"{line}\n}};\n")


def main():
    ucd16, ucd17 = load(sys.argv[1]), load(sys.argv[2])
    assert (ucd16.unidata_version, ucd17.unidata_version) == ("16.0.0", "17.0.0")
    decompositions, combining, compositions = normalisation(ucd16)
    table = properties(ucd16, ucd17, decompositions, combining, compositions)

    blocks, index = {}, []
    for i in range(0, len(table), BLOCK):
        index.append(blocks.setdefault(tuple(table[i : i + BLOCK]), len(blocks)))
    assert len(blocks) <= 256

    print("// Written by tests/oracles/make_unicode_tables.py: do not edit.")
    print('#include "text/unicode_tables.h"\n')
    print("namespace vivace::unicode {\n\n// clang-format off")
    array("const uint8_t kBlockIndex[]", index)
    array(f"const uint8_t kBlocks[][{BLOCK}]", blocks, lambda b: "{" + ",".join(map(str, b)) + "}\n  ")
    array("const CombiningClass kCombiningClasses[]", sorted(combining.items()),
          lambda e: f"{{0x{e[0]:X},{e[1]}}}")
    pool, entries = [], []
    for c, full in sorted(decompositions.items()):
        entries.append((c, len(pool), len(full)))
        pool += full
    array("const Decomposition kDecompositions[]", entries,
          lambda e: f"{{0x{e[0]:X},{e[1]},{e[2]}}}")
    array("const uint32_t kDecompositionPool[]", pool, lambda c: f"0x{c:X}")
    array("const Composition kCompositions[]", sorted(compositions.items()),
          lambda e: f"{{0x{e[0][0]:X},0x{e[0][1]:X},0x{e[1]:X}}}")
    for name in ("CombiningClass", "Decomposition", "Composition"):
        plural = name + ("es" if name.endswith("s") else "s")
        print(f"const size_t k{name}Count = sizeof(k{plural}) / sizeof(k{plural}[0]);")
    print("// clang-format on\n\n}  // namespace vivace::unicode")


if __name__ == "__main__":
    main()
