"""`vivace inspect --check` gives every handed file the right verdict and reason, quickly, in little memory."""

import json
import resource
import subprocess

import pytest

from conftest import BINARY, MODEL, SHARED, need

BAD = SHARED / "cases/bad"
SANITIZED = "asan" in BINARY or "tsan" in BINARY
# render_reject: the template engine's budgets; reject and load_reject: the readers'.
REFUSED = {"reject", "load_reject", "render_reject"}


def cases():
    manifest = BAD / "manifest.json"
    if not manifest.exists():
        return []
    kinds = ("gguf/", "safetensors/", "tokenizer/", "template/")
    return [c for c in json.loads(manifest.read_text())["cases"] if c["name"].startswith(kinds)]


def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))


def check(path):
    return subprocess.run([BINARY, "inspect", "--check", str(path)], capture_output=True, timeout=30,
                          preexec_fn=None if SANITIZED else limit_memory)


@pytest.mark.sanitize
@pytest.mark.parametrize("case", cases(), ids=lambda c: c["name"])
def test_verdict(case):
    result = check(BAD / case["name"])
    stderr = result.stderr.decode()
    if case["expect"] in REFUSED:
        assert result.returncode == 1, (result.returncode, stderr)
        lines = stderr.strip().splitlines()
        assert len(lines) == 1, stderr
        assert case["reason"] in lines[0] and case["name"].split("/")[1] in lines[0]
    elif "refused" in case.get("note", ""):
        assert result.returncode in (0, 1) and "Sanitizer" not in stderr
    else:
        assert result.returncode == 0, stderr
        assert stderr == ""


def test_there_are_cases():
    need(BAD)
    assert len(cases()) > 80


@pytest.mark.sanitize
def test_serve_refuses_in_one_line():
    path = need(BAD / "gguf/tensor_offset_past_eof.gguf")
    result = subprocess.run([BINARY, "serve", str(path), "--port", "0"], capture_output=True, timeout=60)
    assert result.returncode == 1 and result.stdout == b""
    lines = result.stderr.decode().strip().splitlines()
    assert len(lines) == 1 and path.name in lines[0] and "tensor_out_of_file" in lines[0]


@pytest.mark.parametrize("keep", [0.5, -1])
def test_cut_model(tmp_path, keep):
    """A download that stopped half way, or one byte short."""
    data = need(MODEL).read_bytes()
    path = tmp_path / "cut.gguf"
    path.write_bytes(data[: int(len(data) * keep) if keep > 0 else keep])
    result = check(path)
    assert result.returncode == 1 and b"tensor_out_of_file" in result.stderr


def test_missing_and_unknown_files(tmp_path):
    for path in (tmp_path / "none.gguf", tmp_path):
        assert check(path).returncode == 1
    (tmp_path / "notes.txt").write_text("hello")
    assert check(tmp_path / "notes.txt").returncode == 1
    assert check(need(MODEL)).returncode == 0
