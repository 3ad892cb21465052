"""Writes src/text/unicode_class_tables.cc: categories, scripts, case and compatibility data.

    pip install tokenizers==0.23.3 regex==2026.11.19
    python make_unicode_class_tables.py > ../../src/text/unicode_class_tables.cc

What Hugging Face `tokenizers` does with every code point is asked of it, one by one: its parts come
from crates of different Unicode versions, so no one version's files say the same. Only the cluster
classes, which it does not show, are those of the `regex` package.
"""

import regex
from tokenizers import normalizers as norm
from tokenizers import pre_tokenizers as pre

from make_unicode_tables import BLOCK, CODE_POINTS, array, left_out, regex_class

CATEGORIES = "Cn Cc Cf Co Cs Ll Lm Lo Lt Lu Mc Me Mn Nd Nl No Pc Pd Pe Pf Pi Po Ps Sc Sk Sm So Zl Zp Zs".split()
SCRIPTS = ("Han Hiragana Katakana Hangul Bopomofo Latin Greek Cyrillic Arabic Hebrew Thai Lao Devanagari Bengali "
           "Tamil Telugu Armenian Georgian Ethiopic Khmer Myanmar Tibetan").split()
WORD, PUNCTUATION, ACCENT, CONTROL, BERT_ACCENT, REGEX_WORD, BERT_SPACE, CJK = (32 << i for i in range(8))
CLUSTERS = ("Other CR LF Control Extend ZWJ Regional_Indicator Prepend SpacingMark L V T LV LVT").split()


def gone(normalizer, text="a{}b"):
    return {c for c in CODE_POINTS if normalizer.normalize_str(text.format(chr(c))) == text.format("")}


def mapped(normalizer):
    pairs = ((c, normalizer.normalize_str(chr(c))) for c in CODE_POINTS)
    return {c: [ord(x) for x in out] for c, out in pairs if out != chr(c)}


def classes():
    table = [0] * 0x110000
    for number, name in enumerate(CATEGORIES):
        for c in regex_class(r"\p{%s}" % name):
            table[c] |= number
    bert = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    cleaner = norm.BertNormalizer(**{**bert, "clean_text": True})
    # `Whitespace` is \w+|[^\w\s]+ of the regex crate: a letter beside a code point joins it or not.
    flags = (
        (WORD, {c for c in CODE_POINTS if len(pre.Whitespace().pre_tokenize_str("a" + chr(c))) == 1
                and len(pre.Whitespace().pre_tokenize_str("!" + chr(c))) == 2}),
        (PUNCTUATION, left_out(pre.Punctuation("removed"))),
        (ACCENT, gone(norm.StripAccents())),
        (CONTROL, gone(cleaner)),
        # Spacing marks decompose to others in its NFD, so these are asked behind a letter.
        (BERT_ACCENT, gone(norm.BertNormalizer(**{**bert, "strip_accents": True}))),
        (REGEX_WORD, regex_class(r"\w")),
        (BERT_SPACE, {c for c in CODE_POINTS if c != 32 and cleaner.normalize_str(chr(c)) == " "}),
        (CJK, {c for c in CODE_POINTS if
               norm.BertNormalizer(**{**bert, "handle_chinese_chars": True}).normalize_str(chr(c)) == f" {chr(c)} "}),
    )
    for bit, found in flags:
        for c in found:
            table[c] |= bit
    return table


def clusters():
    table = [0] * 0x110000
    for number, name in enumerate(CLUSTERS):
        if number:
            pattern = regex.compile(r"\p{Grapheme_Cluster_Break=%s}" % name)
            for c in CODE_POINTS:
                if pattern.match(chr(c)):
                    table[c] = number
    pictographic = regex.compile(r"\p{Extended_Pictographic}")
    for c in CODE_POINTS:
        if pictographic.match(chr(c)) and table[c] == 0:
            table[c] = len(CLUSTERS)
    return table


def two_stages(name, kind, table):
    blocks, index = {}, []
    for i in range(0, len(table), BLOCK):
        index.append(blocks.setdefault(tuple(table[i : i + BLOCK]), len(blocks)))
    assert len(blocks) <= 0xFFFF
    array(f"const uint16_t k{name}Index[]", index)
    array(f"const {kind} k{name}Blocks[][{BLOCK}]", blocks, lambda b: "{" + ",".join(map(str, b)) + "}\n  ")


def maps(name, table):
    pool, entries = [], []
    for c, out in sorted(table.items()):
        entries.append((c, len(pool), len(out)))
        pool += out
    array(f"const CharacterMap k{name}Map[]", entries, lambda e: f"{{0x{e[0]:X},{e[1]},{e[2]}}}")
    array(f"const uint32_t k{name}Pool[]", pool, lambda c: f"0x{c:X}")
    print(f"const size_t k{name}Count = sizeof(k{name}Map) / sizeof(k{name}Map[0]);\n")


def ranges(found):
    out = []
    for c in sorted(found):
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def scripts():
    pool, entries = [], []
    for name in sorted(SCRIPTS):
        part = ranges(regex_class(r"\p{%s}" % name))
        entries.append((name, len(pool), len(part)))
        pool += part
    array("const ScriptRange kScriptRanges[]", pool, lambda r: f"{{0x{r[0]:X},0x{r[1]:X}}}")
    array("const Script kScripts[]", entries, lambda e: f'{{"{e[0]}",{e[1]},{e[2]}}}')
    print("const size_t kScriptCount = sizeof(kScripts) / sizeof(kScripts[0]);\n")


def main():
    print("// Written by tests/oracles/make_unicode_class_tables.py: do not edit.")
    print('#include "text/unicode_class_tables.h"\n')
    print("namespace vivace::unicode {\n\n// clang-format off")
    two_stages("Class", "uint16_t", classes())
    two_stages("Cluster", "uint8_t", clusters())
    scripts()
    lower = mapped(norm.Lowercase())
    maps("Lower", lower)
    canonical = mapped(norm.NFD())
    hangul = range(0xAC00, 0xD7A4)
    maps("Compatibility", {c: out for c, out in mapped(norm.NFKD()).items()
                           if canonical.get(c) != out and c not in hangul})
    print("// clang-format on\n\n}  // namespace vivace::unicode")


if __name__ == "__main__":
    main()
