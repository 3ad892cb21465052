"""Ids and texts of `vivace tokenize` against PyPI `tokenizers`, over random Unicode, code and long runs.

The tokenizers are trained or built here, one for each kind of model and pipeline, so that nothing is fetched.
"""

import json
import lzma
import random
import struct
import subprocess
import unicodedata

import gguf
import pytest
import sentencepiece
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)

from conftest import BINARY, MODEL, SHARED, need

CORPUS = """def add(a, b):\n    return a + b  # it's 12,345.67\n\nThe quick brown fox doesn't jump over 3 lazy dogs!
Naïve café, Ελληνικά, русский язык, 日本語のテスト, 한국어, العربية, हिन्दी 🙂👩‍👩‍👧 I'LL we've they're
for (int i = 0; i < 10; ++i) { sum += x[i] * 3.14; }\r\n\ttabs\tand   spaces\n\n\n<tool>not special</tool> Straße ﬁne""" * 3
ALPHABETS = ["abcdefghij  \n", "aAbB'sStTrReEvVlLdDmM ", "0123456789½Ⅷ२ ,.", " \t\n\r\u00a0\u2003\u3000\u0085x", "!?.,'\"-_/\\|<>[]{}()#`~$+= a",
             "éèe\u0301\u0316\u0327o\u0308ßſK\u1e9eǅǆİıΣσς", "日本語漢字かなカナ한국어각ᄀ\u1161\u11a8", "🙂👍🏽👩\u200d👩🇩🇪\u200d\ufe0f\u0600",
             "हिन्दीதமிழ்ไทยעבריתعرب", "ﬁﬂ①㌀Å\u212bª²₂ｶﾞＡ\ufdfa", "\u2581▁ _<0x0A><s></s>[MASK]</w>##"]


def texts(count, seed):
    rng = random.Random(seed)
    anything = [chr(c) for c in rng.sample(range(0x20, 0x30000), 6000) if unicodedata.category(chr(c)) != "Cs"]
    words = CORPUS.split(" ")
    out = ["", " ", "  ", "a", "\n", " a", "a ", "Hello, world!", "<s>", " <s> hi</s>", "[MASK] x [MASK]", CORPUS[:400]]
    while len(out) < count:
        kind = rng.random()
        if kind < 0.35:
            alphabet = rng.choice(ALPHABETS)
            out.append("".join(rng.choice(alphabet) for _ in range(rng.randrange(1, 30))))
        elif kind < 0.5:
            out.append("".join(rng.choice(rng.choice(ALPHABETS)) for _ in range(rng.randrange(1, 40))))
        elif kind < 0.65:
            out.append("".join(rng.choice(anything) for _ in range(rng.randrange(1, 20))))
        elif kind < 0.9:
            out.append(rng.choice(["", " ", "  "]).join(rng.choice(words) for _ in range(rng.randrange(1, 12))))
        else:
            out.append(rng.choice(rng.choice(ALPHABETS)) * rng.randrange(1, 300))
    return out + [c * 3000 for c in "a 語\u0301\n1"]


def vivace(path, values, *flags):
    lines = "".join(json.dumps(value) + "\n" for value in values)
    result = subprocess.run([BINARY, "tokenize", "--tokenizer", str(path), "--lines", *flags], input=lines.encode(),
                            capture_output=True, timeout=600)
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.split(b"\n")[:-1]]


def check(tokenizer, path, count=400, seed=1, decode=True, special=True):
    samples = texts(count, seed)
    wanted = [e.ids for e in tokenizer.encode_batch(samples, add_special_tokens=special)]
    got = vivace(path, samples, *([] if special else ["--no-add-special-tokens"]))
    for text, a, b in zip(samples, wanted, got, strict=True):
        assert a == b, (text, a, b)
    if not decode:
        return
    rng = random.Random(seed)
    known = [i for i in range(tokenizer.get_vocab_size()) if tokenizer.id_to_token(i) is not None]
    lists = wanted + [rng.choices(known, k=rng.randrange(12)) for _ in range(count)]
    for ids, a, b in zip(lists, tokenizer.decode_batch(lists, skip_special_tokens=False), vivace(path, lists, "--decode"),
                         strict=True):
        assert a == b, (ids, a, b)


def save(tokenizer, tmp_path):
    path = tmp_path / "tokenizer.json"
    tokenizer.save(str(path))
    return path


def trained(model, trainer, pre=None, normalizer=None, decoder=None, post=None):
    tokenizer = Tokenizer(model)
    if pre is not None:
        tokenizer.pre_tokenizer = pre
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    if decoder is not None:
        tokenizer.decoder = decoder
    tokenizer.train_from_iterator([CORPUS] * 2, trainer)
    if post is not None:
        tokenizer.post_processor = post(tokenizer)
    return tokenizer


GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
FIRST = r"[^\r\n\p{L}\p{N}]?"
PATTERNS = {
    "gpt2": [GPT2],
    "llama3": [CONTRACTIONS + "|" + FIRST + r"\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + SPACES],
    "qwen2": [CONTRACTIONS + "|" + FIRST + r"\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + SPACES],
    "o200k": [f"{FIRST}{UPPER}*{LOWER}+{CONTRACTIONS}?|{FIRST}{UPPER}+{LOWER}*{CONTRACTIONS}?"
              r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + SPACES],
    "tekken": [f"{FIRST}{UPPER}*{LOWER}+|{FIRST}{UPPER}+{LOWER}*" r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + SPACES],
    "deepseek3": [r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
                  r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|" + SPACES],
    "deepseek_coder": ["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-\ud7ff]+"],
    "exaone4": [CONTRACTIONS + "|" + FIRST + r"(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"],
    "possessive": [r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"],
    "nested": ["(a+)+$", r"((?=[\p{L}])([^A-Z]))+"],
    "lazy": [r"\w+?\d|\bfox\b|(?<=a)b|(?<!a)e", r"[^\W\d_]{2,}?", r"\p{Han}+|\p{Hiragana}+|[\p{Latin}&&[^aeiou]]+|[[x]y]"],
    "lines": [r"^\s+|\A\w|\W$|.\z", r"\h+\H?"],
}


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns(name, tmp_path):
    steps = [pre_tokenizers.Split(Regex(p), "isolated") for p in PATTERNS[name]]
    pre = pre_tokenizers.Sequence([*steps, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer = trained(models.BPE(), trainers.BpeTrainer(vocab_size=500, initial_alphabet=alphabet, show_progress=False), pre,
                        decoder=decoders.ByteLevel())
    check(tokenizer, save(tokenizer, tmp_path), count=700)


def byte_level(pre, **settings):
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=450, initial_alphabet=alphabet, show_progress=False,
                                  special_tokens=["<s>", "</s>", "<pad>"])
    return trained(models.BPE(**settings), trainer, pre, decoder=decoders.ByteLevel())


BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False)
BYTE_LEVEL = {
    "plain": BYTES,
    "prefix": pre_tokenizers.ByteLevel(add_prefix_space=True),
    "no_regex": pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    "starcoder": pre_tokenizers.Sequence([pre_tokenizers.Digits(True), BYTES]),
    "falcon": pre_tokenizers.Sequence([pre_tokenizers.Punctuation("contiguous"), BYTES, pre_tokenizers.Digits(False),
                                       pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated")]),
    "split_prefix": pre_tokenizers.Sequence([pre_tokenizers.Split(" ", "merged_with_next"),
                                             pre_tokenizers.ByteLevel(add_prefix_space=True)]),
}


@pytest.mark.parametrize("name", BYTE_LEVEL)
@pytest.mark.parametrize("ignore_merges", [False, True])
def test_byte_level(name, ignore_merges, tmp_path):
    tokenizer = byte_level(BYTE_LEVEL[name], ignore_merges=ignore_merges)
    check(tokenizer, save(tokenizer, tmp_path))


SPLITS = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]


@pytest.mark.parametrize("behavior", SPLITS)
@pytest.mark.parametrize("invert", [False, True])
@pytest.mark.parametrize("pattern", [" ", Regex(r"\s+"), Regex("a*"), Regex(r"\d|[aeiou]")], ids=["string", "spaces", "empty", "class"])
def test_split_behaviors(behavior, invert, pattern, tmp_path):
    tokenizer = byte_level(pre_tokenizers.Sequence([pre_tokenizers.Split(pattern, behavior, invert), BYTES]))
    check(tokenizer, save(tokenizer, tmp_path), count=150, decode=False)


PRE = {
    "whitespace": pre_tokenizers.Whitespace(),
    "whitespace_split": pre_tokenizers.WhitespaceSplit(),
    "bert": pre_tokenizers.BertPreTokenizer(),
    "delimiter": pre_tokenizers.CharDelimiterSplit("e"),
    "digits": pre_tokenizers.Sequence([pre_tokenizers.Digits(False), pre_tokenizers.Punctuation()]),
    **{"punctuation_" + b: pre_tokenizers.Punctuation(b) for b in SPLITS},
    **{f"metaspace_{s}_{x}": pre_tokenizers.Metaspace(prepend_scheme=s, split=x) for s in ("always", "never", "first")
       for x in (True, False)},
    "none": None,
}


@pytest.mark.parametrize("name", PRE)
def test_pre_tokenizers_of_words(name, tmp_path):
    trainer = trainers.BpeTrainer(vocab_size=300, show_progress=False, special_tokens=["[UNK]", "<s>"])
    tokenizer = trained(models.BPE(unk_token="[UNK]"), trainer, PRE[name])
    check(tokenizer, save(tokenizer, tmp_path))


NORMALIZERS = {
    "nfc": normalizers.NFC(), "nfd": normalizers.NFD(), "nfkc": normalizers.NFKC(), "nfkd": normalizers.NFKD(),
    "lowercase": normalizers.Lowercase(),
    "accents": normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()]),
    "accents_kd": normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]),
    "bert": normalizers.BertNormalizer(),
    "bert_cased": normalizers.BertNormalizer(lowercase=False),
    "bert_accents": normalizers.BertNormalizer(strip_accents=True, lowercase=False, clean_text=False, handle_chinese_chars=False),
    "strip": normalizers.Strip(), "strip_left": normalizers.Strip(right=False), "nmt": normalizers.Nmt(),
    "prepend": normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]),
    "replace_regex": normalizers.Replace(Regex(r"\s{2,}|\d"), "#"),
    "byte_level": normalizers.ByteLevel(),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NORMALIZERS)
def test_normalizers(name, tmp_path):
    everything = [chr(c) for c in range(1, 0x32000) if not 0xD800 <= c < 0xE000]
    vocabulary = {c: i for i, c in enumerate(everything)}
    tokenizer = Tokenizer(models.BPE(vocabulary, [], unk_token="\u0001"))
    tokenizer.normalizer = NORMALIZERS[name]
    path = save(tokenizer, tmp_path)
    check(tokenizer, path, decode=False)
    lines = ["a" + c + "b" for c in everything]
    for text, a, b in zip(lines, tokenizer.encode_batch(lines), vivace(path, lines), strict=True):
        assert a.ids == b, text


def sentence_piece_bpe(fuse, unk, byte_tokens):
    trainer = trainers.BpeTrainer(vocab_size=500, show_progress=False,
                                  special_tokens=["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(byte_tokens))])
    tokenizer = trained(models.BPE(byte_fallback=True, fuse_unk=fuse, unk_token=unk), trainer,
                        pre_tokenizers.Split(" ", "merged_with_previous"), normalizers.Replace(" ", "▁"))
    data = json.loads(tokenizer.to_str())
    data["added_tokens"] = data["added_tokens"][:3]
    data["pre_tokenizer"] = None
    return data


@pytest.mark.parametrize("fuse", [True, False])
@pytest.mark.parametrize("unk", ["<unk>", None])
@pytest.mark.parametrize("byte_tokens", [256, 200])
@pytest.mark.parametrize("legacy", [True, False])
def test_bpe_with_byte_fallback(fuse, unk, byte_tokens, legacy, tmp_path):
    tokenizer = Tokenizer.from_str(json.dumps(sentence_piece_bpe(fuse, unk, byte_tokens)))
    if legacy:
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
        tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                               decoders.Strip(" ", 1, 0)])
    else:
        tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)])
    check(tokenizer, save(tokenizer, tmp_path), count=800)


@pytest.mark.parametrize("prefix, suffix", [("##", None), (None, "</w>"), ("@", "</w>")])
def test_bpe_with_prefix_and_suffix(prefix, suffix, tmp_path):
    settings = {k: v for k, v in (("continuing_subword_prefix", prefix), ("end_of_word_suffix", suffix)) if v}
    trainer = trainers.BpeTrainer(vocab_size=400, show_progress=False, special_tokens=["<unk>"], **settings)
    tokenizer = trained(models.BPE(unk_token="<unk>", **settings), trainer, pre_tokenizers.Whitespace(),
                        normalizers.Lowercase(), decoders.BPEDecoder(suffix or "</w>"))
    check(tokenizer, save(tokenizer, tmp_path))


@pytest.mark.parametrize("byte_fallback", [False, True])
def test_unigram(byte_fallback, tmp_path):
    trainer = trainers.UnigramTrainer(vocab_size=300, show_progress=False, unk_token="<unk>", special_tokens=["<unk>", "<s>", "</s>"])
    tokenizer = trained(models.Unigram(), trainer, pre_tokenizers.Metaspace(), normalizers.NFKC(), decoders.Metaspace())
    if byte_fallback:
        data = json.loads(tokenizer.to_str())
        data["model"]["byte_fallback"] = True
        data["model"]["vocab"] += [[f"<0x{i:02X}>", -20.0] for i in range(256)]
        tokenizer = Tokenizer.from_str(json.dumps(data))
        tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    tokenizer.post_processor = processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", 2)])
    check(tokenizer, save(tokenizer, tmp_path), count=800)


@pytest.mark.parametrize("post", ["bert", "roberta", "template"])
@pytest.mark.parametrize("cleanup", [True, False])
def test_word_piece(post, cleanup, tmp_path):
    trainer = trainers.WordPieceTrainer(vocab_size=400, show_progress=False, special_tokens=["[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    tokenizer = trained(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=20), trainer, pre_tokenizers.BertPreTokenizer(),
                        normalizers.BertNormalizer(), decoders.WordPiece(cleanup=cleanup))
    tokenizer.post_processor = {
        "bert": processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1)),
        "roberta": processors.RobertaProcessing(("[SEP]", 2), ("[CLS]", 1)),
        "template": processors.TemplateProcessing("[CLS] $A [SEP] [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]),
    }[post]
    check(tokenizer, save(tokenizer, tmp_path))


def test_word_level(tmp_path):
    trainer = trainers.WordLevelTrainer(vocab_size=100, show_progress=False, special_tokens=["[UNK]"])
    tokenizer = trained(models.WordLevel(unk_token="[UNK]"), trainer, pre_tokenizers.Whitespace())
    check(tokenizer, save(tokenizer, tmp_path))


@pytest.mark.parametrize("normalizer", [None, normalizers.Lowercase(), normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])],
                         ids=["none", "lowercase", "prepend"])
@pytest.mark.parametrize("first", [0, 5, 10])
def test_added_tokens_with_every_flag(normalizer, first, tmp_path):
    tokenizer = byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    contents = ["fox", "The", " e", "ab", "MASK", "xyz", "12", "é", "語", "  ", "a\n", "Fo", "foxes", "<m>", "lazy dogs"]
    flags = ("single_word", "lstrip", "rstrip", "normalized")
    for number, content in enumerate(contents):
        bits = (first + number) % 16
        if content.isspace():  # `tokenizers` panics where all of such a token is stripped by the one before
            bits &= 0b1001
        token = AddedToken(content, special=number % 5 == 4, **{f: bool(bits >> i & 1) for i, f in enumerate(flags)})
        (tokenizer.add_special_tokens if number % 5 == 4 else tokenizer.add_tokens)([token])
    path = save(tokenizer, tmp_path)
    check(tokenizer, path)
    rng = random.Random(5)
    parts = [*contents, "mask", "FOX", "AB", " ", "   ", "\n", "x", "_", "1", "É", ".", "\u0301"]
    samples = ["".join(rng.choices(parts, k=rng.randrange(1, 9))) for _ in range(3000)]
    for text, a, b in zip(samples, tokenizer.encode_batch(samples), vivace(path, samples), strict=True):
        assert a.ids == b, (text, a.ids, b)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["llama3_1", "qwen3", "llama2"])
def test_shared(name, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_bytes(lzma.decompress(need(SHARED / "tokenizers" / name / "tokenizer.json.xz").read_bytes()))
    check(Tokenizer.from_file(str(path)), path, count=3000)


def test_shared_tiny():
    path = need(SHARED / "models/tiny/llama/tokenizer.json")
    check(Tokenizer.from_file(str(path)), path, count=1500)


def test_cases(tmp_path):
    cases = json.loads(need(SHARED / "tokenizers/cases.json").read_text())
    for name, rows in cases.items():
        path = MODEL
        if name != "smollm2":
            path = tmp_path / f"{name}.json"
            path.write_bytes(lzma.decompress((SHARED / "tokenizers" / name / "tokenizer.json.xz").read_bytes()))
        got = vivace(need(path), [row["text"] for row in rows], "--no-add-special-tokens")
        assert got == [row["ids"] for row in rows]
        assert vivace(path, [row["ids"] for row in rows], "--decode") == [row["decoded"] for row in rows]


# ---- The same tokenizers as GGUF files, and SentencePiece's own files.


def write_gguf(path, model, tokens, types, add=lambda writer: None):
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_tokenizer_model(model)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    add(writer)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


CONTROL, USER, BYTE = gguf.TokenType.CONTROL, gguf.TokenType.USER_DEFINED, gguf.TokenType.BYTE
GGUF_NAMES = {"gpt-2": "gpt2", "llama-bpe": "llama3", "qwen2": "qwen2", "gpt-4o": "o200k", "tekken": "tekken", "exaone4": "exaone4",
              "deepseek-v3": "deepseek3", "starcoder": None, "falcon": None}


@pytest.mark.parametrize("name", GGUF_NAMES)
def test_gguf_byte_level(name, tmp_path):
    if GGUF_NAMES[name]:
        steps = [pre_tokenizers.Split(Regex(p), "isolated") for p in PATTERNS[GGUF_NAMES[name]]]
        pre = pre_tokenizers.Sequence([*steps, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    else:
        pre = BYTE_LEVEL[name]
    tokenizer = byte_level(pre, ignore_merges=name in ("llama-bpe", "tekken"))
    if name == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    data = json.loads(tokenizer.to_str())
    tokens = sorted(data["model"]["vocab"], key=data["model"]["vocab"].get)
    types = [CONTROL if i < 3 else gguf.TokenType.NORMAL for i in range(len(tokens))]

    def add(writer):
        writer.add_tokenizer_pre(name)
        writer.add_token_merges([" ".join(m) for m in data["model"]["merges"]])
        writer.add_add_bos_token(False)

    check(tokenizer, write_gguf(tmp_path / "t.gguf", "gpt2", tokens, types, add), special=False)


def sentence_piece(tmp_path, **settings):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join(CORPUS.replace("\n", " ").split(". ") * 4))
    sentencepiece.SentencePieceTrainer.train(input=str(corpus), model_prefix=str(tmp_path / "tokenizer"), minloglevel=2,
                                             hard_vocab_limit=False, character_coverage=0.98, **settings)
    return sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "tokenizer.model"))


def piece_types(oracle):
    return [gguf.TokenType.UNKNOWN if oracle.IsUnknown(i) else CONTROL if oracle.IsControl(i) else BYTE if oracle.IsByte(i)
            else gguf.TokenType.NORMAL for i in range(len(oracle))]


def against_sentence_piece(oracle, paths, samples):
    for path in paths:
        got = vivace(path, samples, "--no-add-special-tokens")
        for text, ids in zip(samples, got, strict=True):
            assert oracle.EncodeAsIds(text) == ids, (path, text, oracle.EncodeAsPieces(text), ids)
        lists = [ids for ids in got if not any(oracle.IsUnknown(i) for i in ids)]
        for ids, text in zip(lists, vivace(path, lists, "--decode"), strict=True):
            assert oracle.DecodeIds(ids) == text, (path, ids)


@pytest.mark.parametrize("prefix", [True, False])
def test_sentence_piece_bpe(prefix, tmp_path):
    oracle = sentence_piece(tmp_path, model_type="bpe", vocab_size=700, byte_fallback=True, add_dummy_prefix=prefix,
                            normalization_rule_name="identity", remove_extra_whitespaces=False, max_sentence_length=100000)

    def add(writer):
        writer.add_token_scores([oracle.GetScore(i) for i in range(len(oracle))])
        writer.add_unk_token_id(0)
        writer.add_add_space_prefix(prefix)

    path = write_gguf(tmp_path / "t.gguf", "llama", [oracle.IdToPiece(i) for i in range(len(oracle))], piece_types(oracle), add)
    samples = [t for t in texts(600, 3) if "<s>" not in t and "\0" not in t and "\u2581" not in t]
    against_sentence_piece(oracle, [path, tmp_path / "tokenizer.model"], samples)


@pytest.mark.parametrize("rule", ["identity", "nmt_nfkc", "nmt_nfkc_cf"])
@pytest.mark.parametrize("byte_fallback", [False, True])
def test_sentence_piece_unigram(rule, byte_fallback, tmp_path):
    oracle = sentence_piece(tmp_path, model_type="unigram", vocab_size=400, byte_fallback=byte_fallback,
                            normalization_rule_name=rule, remove_extra_whitespaces=rule != "identity")
    samples = [t for t in texts(500, 4) if "<s>" not in t and "\u2581" not in t]
    # Hugging Face normalises cluster by cluster and keeps a space that SentencePiece drops: compare words.
    samples = [" ".join(t.split()) for t in samples if t.isascii() and t.isprintable() and t.split()]
    against_sentence_piece(oracle, [tmp_path / "tokenizer.model"], samples)


def protobuf_field(message, wanted):
    """The first length-delimited field of that number; enough of protocol buffers for a model file."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while True:
        tag = varint()
        if tag & 7 == 0:
            varint()
            continue
        size = {1: 8, 5: 4}.get(tag & 7) or varint()
        if tag >> 3 == wanted:
            return message[at : at + size]
        at += size


def charsmap(tmp_path, rule):
    sentence_piece(tmp_path, model_type="unigram", vocab_size=400, normalization_rule_name=rule)
    return protobuf_field(protobuf_field((tmp_path / "tokenizer.model").read_bytes(), 3), 2)


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["nmt_nfkc", "nfkc_cf"])
def test_precompiled(rule, tmp_path):
    everything = [chr(c) for c in range(1, 0x32000) if not 0xD800 <= c < 0xE000]
    tokenizer = Tokenizer(models.BPE({c: i for i, c in enumerate(everything)}, [], unk_token="\u0001"))
    tokenizer.normalizer = normalizers.Precompiled(charsmap(tmp_path, rule))
    path = save(tokenizer, tmp_path)
    check(tokenizer, path, decode=False, count=3000)


def test_gguf_unigram(tmp_path):
    trainer = trainers.UnigramTrainer(vocab_size=300, show_progress=False, unk_token="<unk>", special_tokens=["<unk>", "<s>", "</s>"])
    tokenizer = trained(models.Unigram(), trainer, pre_tokenizers.Metaspace(), decoder=decoders.Metaspace())
    blob = charsmap(tmp_path, "nmt_nfkc")
    tokenizer.normalizer = normalizers.Sequence([normalizers.Precompiled(blob), normalizers.Strip(left=False),
                                                 normalizers.Replace(Regex(" {2,}"), "▁")])
    vocabulary = json.loads(tokenizer.to_str())["model"]["vocab"]

    def add(writer):
        writer.add_token_scores([score for _, score in vocabulary])
        writer.add_unk_token_id(0)
        writer.add_precompiled_charsmap(blob)
        writer.add_remove_extra_whitespaces(True)
        writer.add_add_space_prefix(True)
        writer.add_add_eos_token(False)

    types = [gguf.TokenType.UNKNOWN, CONTROL, CONTROL] + [gguf.TokenType.NORMAL] * (len(vocabulary) - 3)
    single = json.loads(tokenizer.to_str())
    # Scores are float32 in the file.
    single["model"]["vocab"] = [[t, struct.unpack("f", struct.pack("f", s))[0]] for t, s in vocabulary]
    check(Tokenizer.from_str(json.dumps(single)), write_gguf(tmp_path / "t.gguf", "t5", [t for t, _ in vocabulary], types, add),
          special=False)


def test_gguf_word_piece(tmp_path):
    trainer = trainers.WordPieceTrainer(vocab_size=400, show_progress=False, special_tokens=["[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    tokenizer = trained(models.WordPiece(unk_token="[UNK]"), trainer, pre_tokenizers.BertPreTokenizer(),
                        normalizers.BertNormalizer(), decoders.WordPiece())
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    vocabulary = tokenizer.get_vocab()
    tokens = [t if i < 4 else t[2:] if t.startswith("##") else "▁" + t for t, i in sorted(vocabulary.items(), key=lambda x: x[1])]

    def add(writer):
        writer.add_unk_token_id(0)
        writer.add_bos_token_id(1)
        writer.add_sep_token_id(2)

    types = [gguf.TokenType.UNKNOWN, CONTROL, CONTROL, CONTROL] + [gguf.TokenType.NORMAL] * (len(tokens) - 4)
    check(tokenizer, write_gguf(tmp_path / "t.gguf", "bert", tokens, types, add))
