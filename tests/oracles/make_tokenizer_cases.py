"""Writes src/text/testdata/golden_cases.json: what Hugging Face `tokenizers` makes of a few hundred hard strings.

    pip install tokenizers==0.23.3 gguf
    python make_tokenizer_cases.py MODEL.gguf > ../../src/text/testdata/golden_cases.json

MODEL is SmolLM2-135M-Instruct.

pieces: by pre-tokenizer, the pieces' lengths in bytes.  nfc: strings the NFC normaliser changes.
smollm2: the ids of the first strings.
"""

import json
import random
import sys

import gguf
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers
from tokenizers import pre_tokenizers as pre

TAIL = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
HEAD = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
BYTES = {"add_prefix_space": False}
SMOLLM = pre.Sequence([pre.Digits(individual_digits=True), pre.ByteLevel(**BYTES)])
PRETOKENIZERS = {
    "gpt-2": pre.ByteLevel(**BYTES),
    "smollm": SMOLLM,
    "llama-bpe": pre.Sequence([pre.Split(Regex(HEAD + r"\p{N}{1,3}" + TAIL), "isolated"),
                               pre.ByteLevel(use_regex=False, **BYTES)]),
    "qwen2": pre.Sequence([pre.Split(Regex(HEAD + r"\p{N}" + TAIL), "isolated"),
                           pre.ByteLevel(use_regex=False, **BYTES)]),
}
PARTS = ["the", " hello", "I'm", "'S", "'\u017f", "'\u017fa", "'LL", "'lL", "'Re", "''", "日本語", "한국어",
         "नमस्ते", "Привет", "café", "cafe\u0301", "😀", "👩\u200d👩", "1", "12", "3456", "６", "½", "Ⅷ",
         "२४", "\n", "\r\n", "\n\n", " \n", "\t", " ", "  ", "   ", "\u00a0", "\u2003", "\u3000",
         "\u0085", "\u2028", "\u200b", "\u180e", "\x1c", "...", "--", "{\"a\":", "_x", ".\n", "\u0301",
         "\u1100\u1161\u11a8", "\uac00\u11a8", "\u1e9b\u0323", "\u0f71\u0f72\u0f74", "\u2adc",
         "\U00016ff4", "\U00011de0", "\U0001d160", "\u212b", "\x00", "\x04", "<|im_end|>", "<|"]


def smollm2(path):
    fields = gguf.GGUFReader(path).fields
    tokens, merges, types = (fields[f"tokenizer.ggml.{name}"].contents()
                             for name in ("tokens", "merges", "token_type"))
    tokenizer = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)},
                                     merges=[tuple(m.split(" ")) for m in merges]))
    tokenizer.pre_tokenizer = SMOLLM
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False)
                                  for t, kind in zip(tokens, types) if kind == 3])
    return tokenizer


def main():
    rng = random.Random(20)
    texts = ["".join(rng.choice(PARTS) for _ in range(rng.randint(1, 9))) for _ in range(320)]
    tokenizer = smollm2(sys.argv[1])
    nfc = normalizers.NFC().normalize_str
    pieces = [{"text": text} | {name: [len(piece) for piece, _ in p.pre_tokenize_str(text)]
                                for name, p in PRETOKENIZERS.items()} for text in texts]
    cases = {
        "pieces": pieces,
        "nfc": [[text, nfc(text)] for text in texts if nfc(text) != text],
        "smollm2": [[text, tokenizer.encode(text, add_special_tokens=False).ids]
                    for text in texts[:160]],
    }
    print("{")
    for i, (name, rows) in enumerate(cases.items()):
        print(f'"{name}": [')
        print(",\n".join(json.dumps(row, separators=(",", ":")) for row in rows))
        print("]" if i == len(cases) - 1 else "],")
    print("}")


if __name__ == "__main__":
    main()
