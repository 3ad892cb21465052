"""Fixtures: real servers of the binary under test, on free ports, ended by their own pid."""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time

import pytest
import requests
from openai import OpenAI

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
BINARY = os.environ.get("VIVACE_BINARY", str(ROOT / "build/release/vivace"))
MODEL = ROOT / "models/SmolLM2-135M-Instruct.Q4_1.gguf"
GEMMA = ROOT / "models/gemma-3-270m-q4_k_m.gguf"  # `./dev ci` gets it
MAKE_TINY_MODEL = pathlib.Path(BINARY).parent / "tests/make_tiny_model"
START_TIMEOUT_S = 120

# What `--isa auto` is taken for, and the tiers it cannot be here.
_CPU = set(re.search(r"^flags.*$", pathlib.Path("/proc/cpuinfo").read_text(), re.M).group().split())
ISA_TIERS = ["auto", *(["avx2"] if _CPU & {"avx512f", "avx_vnni"} else []), "reference"]


# No test touches the cache of the user who runs it, whatever it starts.
_CACHE = tempfile.TemporaryDirectory(prefix="vivace_cache_")
os.environ["XDG_CACHE_HOME"] = _CACHE.name


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: left out of ./dev test")
    config.addinivalue_line("markers", "sanitize: also run against the ASan build")
    config.addinivalue_line("markers", "race: also run against the TSan build")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """One `vivace serve`; `log` collects its stderr. Without a weight cache, if `flags` name none."""

    def __init__(self, model, *flags):
        if "--weight-cache" not in flags:
            flags += ("--weight-cache", "off")
        self.port = free_port()
        self.base = f"http://127.0.0.1:{self.port}"
        self.process = subprocess.Popen(
            [BINARY, "serve", str(model), "--port", str(self.port), *map(str, flags)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.log = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._wait_ready()

    def _read(self):
        for line in self.process.stdout:
            self.log.append(line)

    def _wait_ready(self):
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                self._reader.join(5)
                raise RuntimeError(f"server ended with {self.process.returncode}: {''.join(self.log)}")
            try:
                if requests.get(self.base + "/ready", timeout=5).status_code == 200:
                    return
            except requests.ConnectionError:
                pass
            time.sleep(0.02)
        raise RuntimeError("server did not get ready")

    def client(self, **options):
        return OpenAI(base_url=self.base + "/v1", api_key="none", max_retries=0, **options)

    def post(self, path, body, **options):
        return requests.post(self.base + path, json=body, timeout=120, **options)

    def stream(self, path, body):
        """The `data:` payloads of an SSE answer, parsed, without the closing [DONE]; checks the framing."""
        events = []
        with self.post(path, body | {"stream": True}, stream=True) as answer:
            assert answer.status_code == 200, answer.text
            assert answer.headers["content-type"].startswith("text/event-stream")
            lines = [line for line in answer.iter_lines() if line]
        assert lines[-1] == b"data: [DONE]"
        for line in lines[:-1]:
            assert line.startswith(b"data: ") and line != b"data: [DONE]"
            events.append(json.loads(line[6:].decode()))
        return events

    def metrics(self):
        """Metric name (without labels) -> sum of its samples."""
        from prometheus_client.parser import text_string_to_metric_families
        values = {}
        for family in text_string_to_metric_families(requests.get(self.base + "/metrics", timeout=30).text):
            for sample in family.samples:
                values[sample.name] = values.get(sample.name, 0) + sample.value
        return values

    def wait_idle(self, seconds=10):
        """Waits until nothing runs, waits or holds a block; returns the last metrics."""
        deadline = time.monotonic() + seconds
        while True:
            values = self.metrics()
            busy = (values["vllm:num_requests_running"], values["vllm:num_requests_waiting"],
                    values["vivace:kv_blocks_used"])
            if busy == (0, 0, 0):
                return values
            assert time.monotonic() < deadline, f"not idle: running, waiting, blocks = {busy}"
            time.sleep(0.02)

    def stop(self, timeout=60):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout)
        self._reader.join(5)
        return code


@pytest.fixture(scope="session")
def make_server():
    servers = []

    def make(model, *flags):
        server = Server(model, *flags)
        servers.append(server)
        return server

    yield make
    for server in servers:
        assert server.stop() == 0, "".join(server.log[-20:])


def need(path):
    if not path.exists():
        pytest.skip(f"{path.name} is not here")
    return path


@pytest.fixture(scope="session")
def smol(make_server):
    """The default model with default flags."""
    return make_server(need(MODEL), "--served-model-name", "m")


@pytest.fixture(scope="session")
def mini_model(tmp_path_factory):
    """A two-layer model of random weights: thousands of tokens a second, also under sanitizers."""
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    subprocess.run([MAKE_TINY_MODEL, path], check=True, timeout=60)
    return path


@pytest.fixture(scope="session")
def mini(make_server, mini_model):
    return make_server(mini_model, "--served-model-name", "m", "--kv-cache-memory-bytes", "4MiB")


def text_of(response):
    return response.json()["choices"][0]["text"]
