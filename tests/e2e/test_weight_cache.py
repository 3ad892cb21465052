"""Packed weights kept between starts: found again, never stale, never in the way."""

import concurrent.futures
import os
import pathlib
import resource
import shutil
import subprocess
import time

import pytest

from conftest import BINARY, Server, free_port

READ = "packed weights read from the cache"
KEPT = "packed weights kept for the next start"
NOT_KEPT = "packed weights not kept for the next start"
SETTLE_S = 2.1  # a file changed more lately is not cached: a further change might not show


@pytest.fixture
def model(mini_model, tmp_path):
    path = tmp_path / "model.gguf"
    shutil.copy(mini_model, path)
    time.sleep(SETTLE_S)
    return path


def logged(server, text, seconds=10):
    """Waits for a line of the log."""
    deadline = time.monotonic() + seconds
    while not any(text in line for line in server.log):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def answer(model, cache, expect):
    """The answer of a server of its own, once its log says `expect`."""
    server = Server(model, "--weight-cache", cache, "--kv-cache-memory-bytes", "4MiB")
    try:
        assert logged(server, expect), "".join(server.log)
        body = {"prompt": "Hello", "max_tokens": 20, "temperature": 0, "logprobs": 3, "ignore_eos": True}
        return server.post("/v1/completions", body).json()["choices"][0]
    finally:
        assert server.stop() == 0


@pytest.mark.sanitize
def test_second_start_reads_what_the_first_kept(model, tmp_path):
    cache = tmp_path / "cache"
    first = answer(model, cache, KEPT)
    assert len(list(cache.iterdir())) == 1
    assert cache.stat().st_mode & 0o777 == 0o700
    assert answer(model, cache, READ) == first


@pytest.mark.sanitize
def test_changed_model_is_packed_again(model, tmp_path):
    cache = tmp_path / "cache"
    first = answer(model, cache, KEPT)
    before = model.stat()
    data = bytearray(model.read_bytes())
    for i in range(len(data) // 2, len(data) - 256):
        if i % 20 == 7:  # some quants of Q4_1 blocks
            data[i] ^= 0x11
    model.write_bytes(data)
    os.utime(model, ns=(before.st_atime_ns, before.st_mtime_ns))  # as if nothing had been
    time.sleep(SETTLE_S)
    second = answer(model, cache, KEPT)
    assert second != first
    assert answer(model, cache, READ) == second
    assert len(list(cache.iterdir())) == 1


@pytest.mark.sanitize
@pytest.mark.parametrize("damage", ["cut", "flip", "empty"])
def test_damaged_entry_is_replaced(model, tmp_path, damage):
    cache = tmp_path / "cache"
    first = answer(model, cache, KEPT)
    [entry] = cache.iterdir()
    data = bytearray(entry.read_bytes())
    if damage == "cut":
        del data[-1:]
    elif damage == "flip":
        data[len(data) // 2] ^= 1
    else:
        data.clear()
    entry.write_bytes(data)
    assert answer(model, cache, KEPT) == first
    assert answer(model, cache, READ) == first


def test_folder_that_cannot_be_made(model, tmp_path):
    (tmp_path / "file").write_text("")
    answer(model, tmp_path / "file", NOT_KEPT)
    answer(model, "/proc/nowhere", NOT_KEPT)


def test_several_servers_start_at_once(model, tmp_path):
    cache = tmp_path / "cache"
    start = lambda _: Server(model, "--weight-cache", cache, "--kv-cache-memory-bytes", "4MiB")  # noqa: E731
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        servers = list(pool.map(start, range(3)))
    assert any(logged(server, KEPT) or logged(server, READ, 1) for server in servers)
    for server in servers:
        assert server.stop() == 0
    [entry] = cache.iterdir()
    assert entry.name.endswith("-x86.weights")
    answer(model, cache, READ)


def test_limits(model, tmp_path):
    cache = tmp_path / "cache"
    server = Server(model, "--weight-cache", cache, "--weight-cache-size", "1KiB", "--kv-cache-memory-bytes", "4MiB")
    assert logged(server, "--weight-cache-size is 1.0 KiB")
    assert server.stop() == 0
    assert not cache.exists()


def start_with(environment, model, *flags, before=None):
    """What a server with just these variables says until it is ready, and on its way out."""
    process = subprocess.Popen(
        [BINARY, "serve", str(model), "--port", str(free_port()), "--kv-cache-memory-bytes", "4MiB", *flags],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=before)
    try:
        assert "ready" in process.stdout.readline()
        time.sleep(0.5)
    finally:
        process.terminate()
    _, log = process.communicate(timeout=30)
    assert process.returncode == 0, log
    return log


def test_default_folder(model, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    base = {k: v for k, v in os.environ.items() if k not in ("HOME", "XDG_CACHE_HOME")}
    start_with(base | {"HOME": str(home)}, model)
    assert len(list((home / ".cache/vivace").iterdir())) == 1
    start_with(base | {"HOME": str(home), "XDG_CACHE_HOME": str(tmp_path / "xdg")}, model)
    assert len(list((tmp_path / "xdg/vivace").iterdir())) == 1
    # A relative path is no place, and nothing is written anywhere.
    assert "weights" not in start_with(base | {"XDG_CACHE_HOME": "relative"}, model)
    assert not pathlib.Path("relative").exists()


def test_a_limit_on_files_is_survived(model, tmp_path):
    cache = tmp_path / "cache"
    log = start_with(os.environ, model, "--weight-cache", str(cache),
                     before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
    assert NOT_KEPT in log
    assert not list(cache.iterdir())


def test_wrong_values():
    for flags in (["--weight-cache", ""], ["--weight-cache-size", "many"], ["--weight-cache-size", "-1"]):
        result = subprocess.run([BINARY, "serve", "x.gguf", *flags], capture_output=True, timeout=30)
        assert result.returncode == 2 and flags[0].encode() in result.stderr, result.stderr
