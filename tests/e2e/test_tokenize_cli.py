"""`vivace tokenize`: bytes in, ids out, and back."""

import json
import lzma
import resource
import subprocess

import pytest

from conftest import BINARY, MODEL, SHARED, need


def tokenize(text, tokenizer, *flags):
    data = text if isinstance(text, bytes) else text.encode()
    result = subprocess.run([BINARY, "tokenize", "--tokenizer", str(tokenizer), *flags], input=data,
                            capture_output=True, timeout=60)
    assert result.returncode == 0, result.stderr
    return result.stdout


CASES = [("12345 67", [33, 34, 35, 36, 37, 216, 38, 39]), ("a    b", [81, 333, 278]), ("x\r\ny", [104, 201, 198, 105]),
         ("'s 'S don't DON'T", [506, 637, 67, 1326, 982, 422, 2154, 23, 68]), ("é", [2756]),
         ("e\u0301", [85, 151, 219]), ("strawberry", [302, 1709, 9500]), ("日本語", [23274, 115, 40993, 179, 120, 248]),
         ("", []), ("Hello world", [19556, 905]), ("<|im_start|>", [1]), ("trailing  ", [4861, 4966, 256])]


@pytest.mark.parametrize("text, ids", CASES, ids=[repr(c[0]) for c in CASES])
def test_there_and_back(text, ids):
    out = tokenize(text, need(MODEL))
    assert json.loads(out) == ids
    assert tokenize(out, MODEL, "--decode") == text.encode()


@pytest.mark.parametrize("name", ["llama3_1", "qwen3"])
def test_tokenizer_json(name, tmp_path):
    packed = need(SHARED / "tokenizers" / name / "tokenizer.json.xz")
    (tmp_path / "tokenizer.json").write_bytes(lzma.decompress(packed.read_bytes()))
    for case in json.loads((SHARED / "tokenizers/cases.json").read_text())[name][:20]:
        ids = json.loads(tokenize(case["text"], tmp_path, "--no-add-special-tokens"))
        assert ids == case["ids"], case["text"]


def test_the_model_is_an_argument_as_elsewhere():
    result = subprocess.run([BINARY, "tokenize", str(need(MODEL))], input=b"Hello world", capture_output=True,
                            timeout=60)
    assert json.loads(result.stdout) == [19556, 905]


def test_a_bad_line_is_named():
    result = subprocess.run([BINARY, "tokenize", str(need(MODEL)), "--lines"], input=b'"a"\n"b\n', capture_output=True,
                            timeout=60)
    assert result.returncode == 1 and b"line 2" in result.stderr


def test_refuses_what_is_not_ids():
    result = subprocess.run([BINARY, "tokenize", "--tokenizer", str(need(MODEL)), "--decode"], input=b"[1, -4]",
                            capture_output=True, timeout=60)
    assert result.returncode == 1 and len(result.stderr.splitlines()) == 1


def test_out_of_memory_names_no_flag_it_lacks():
    with open("/dev/zero", "rb") as endless:
        result = subprocess.run([BINARY, "tokenize", "--tokenizer", str(need(MODEL))], stdin=endless, capture_output=True,
                                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29)), timeout=60)
    assert result.returncode == 1
    assert result.stderr == b"vivace: out of memory; free some\n"
