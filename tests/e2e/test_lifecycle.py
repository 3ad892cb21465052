"""Start, stop, refusals at the door."""

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest
import requests

from conftest import BINARY, MODEL, SHARED, Server, free_port, need


def run(*args, **options):
    return subprocess.run([BINARY, *map(str, args)], capture_output=True, timeout=120, **options)


def refused(*args):
    """The one line on stderr of a command that must end with exit code 1."""
    result = run(*args)
    lines = result.stderr.decode().strip().splitlines()
    assert result.returncode == 1, (result.returncode, lines)
    assert len(lines) == 1 and result.stdout == b"", lines
    return lines[0]


def test_port_in_use():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        line = refused("serve", need(MODEL), "--port", s.getsockname()[1], "--weight-cache", "off")
    assert "in use" in line and "--port" in line


def test_no_model():
    assert "nowhere.gguf" in refused("serve", "nowhere.gguf")
    assert run("serve").returncode == 2


def test_no_memory():
    line = refused("serve", need(MODEL), "--kv-cache-memory-bytes", "1000TiB", "--port", free_port())
    assert "--kv-cache-memory-bytes" in line or "memory" in line


def test_wrong_flags():
    typo = run("serve", "x.gguf", "--max-modle-len", "1")
    assert typo.returncode == 2 and b"did you mean --max-model-len" in typo.stderr
    value = run("serve", "x.gguf", "--max-num-seqs", "many")
    assert value.returncode == 2 and b"--max-num-seqs" in value.stderr
    verb = run("sevre")
    assert verb.returncode == 2 and b"serve" in verb.stderr


def test_switches_take_no_value():
    for word in ("--enable-prefix-caching=false", "--no-enable-prefix-caching=1"):
        result = run("serve", "x.gguf", word)
        assert result.returncode == 2 and b"takes no value" in result.stderr
    assert run("serve", "x.gguf", "--host", "").returncode == 2


def test_seed_is_taken(mini_model):
    texts = []
    for _ in range(2):
        server = Server(mini_model, "--seed", 7)
        texts.append(server.post("/v1/completions", {"prompt": "x", "max_tokens": 12}).json()["choices"][0]["text"])
        assert server.stop() == 0
    assert texts[0] == texts[1]


def test_output_nobody_takes():
    piped = subprocess.run(f"{BINARY} inspect {need(MODEL)} | head -1", shell=True, capture_output=True, timeout=60)
    assert b"terminate" not in piped.stderr and piped.stderr == b""
    with open("/dev/full", "wb") as full:
        lost = subprocess.run([BINARY, "tokenize", "--tokenizer", MODEL], input=b"hello", stdout=full,
                              stderr=subprocess.PIPE, timeout=60)
    assert lost.returncode == 1 and b"cannot write" in lost.stderr


class CannedServer(threading.Thread):
    """Answers one request with fixed bytes."""

    def __init__(self, answer):
        super().__init__()
        self.answer = answer
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.start()

    def run(self):
        connection, _ = self.listener.accept()
        with connection, self.listener:
            self.request = connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
                               + self.answer)


DELTA = b'data: {"choices":[{"index":0,"delta":{"content":"Hi\\u001b[2J"}}]}\n\n'


@pytest.mark.parametrize("answer, code, wanted", [
    (DELTA + b"data: [DONE]\n\n", 0, b""),
    (DELTA, 1, b"cut off"),
    (DELTA + b'data: {"error":{"message":"went away"}}\n\ndata: [DONE]\n\n', 1, b"went away"),
    (DELTA + b"data: {nonsense\n\ndata: [DONE]\n\n", 1, b"not JSON"),
])
def test_chat_tells_a_failed_answer(answer, code, wanted):
    server = CannedServer(answer)
    result = subprocess.run([BINARY, "chat", server.url], input=b"hello\n", capture_output=True, timeout=60)
    server.join()
    assert result.returncode == code and wanted in result.stderr
    assert b"Hi" in result.stdout and b"\x1b" not in result.stdout


@pytest.mark.parametrize("flags, variables, said", [
    ([], {}, None),
    (["--api-key", "k-flag"], {"VIVACE_API_KEY": "k-variable"}, b"k-flag"),
    ([], {"VIVACE_API_KEY": "k-variable"}, b"k-variable"),
])
def test_chat_brings_its_key(flags, variables, said):
    server = CannedServer(DELTA + b": ping\n\ndata: [DONE]\n\n")
    result = subprocess.run([BINARY, "chat", server.url, *flags], input=b"hello\n", capture_output=True, timeout=60,
                            env={"PATH": os.environ["PATH"], **variables})
    server.join()
    assert result.returncode == 0 and b"Hi" in result.stdout, result.stderr
    lines = [line for line in server.request.split(b"\r\n") if line.lower().startswith(b"authorization:")]
    assert lines == ([b"Authorization: Bearer " + said] if said else [])


def test_chat_refuses_keys_that_are_none():
    for target, key in (("http://127.0.0.1:1", "a b"), ("http://127.0.0.1:1", "a\r\nX: 1"), (__file__, "k")):
        result = subprocess.run([BINARY, "chat", target, "--api-key", key], input=b"", capture_output=True, timeout=60)
        assert result.returncode == 2 and b"--api-key" in result.stderr, result.stderr


def test_chat_with_a_model():
    result = subprocess.run([BINARY, "chat", need(MODEL), "--temperature", "0"], input=b"Say hello.\n/reset\n/quit\n",
                            capture_output=True, timeout=120)
    assert result.returncode == 0 and len(result.stdout.strip()) > 0 and result.stderr == b""


def test_help_and_version():
    assert b"vivace" in run("--version").stdout.lower()
    text = run("serve", "--help").stdout.decode()
    for flag in ("host", "port", "served-model-name", "max-model-len", "max-num-seqs", "max-num-batched-tokens",
                 "max-itl", "kv-cache-memory-bytes", "num-kv-blocks", "block-size", "enable-prefix-caching", "threads",
                 "isa", "shutdown-timeout", "seed", "log-format"):
        assert flag in text


def stream_text(server, seconds, out):
    body = {"prompt": "Once", "max_tokens": 100, "stream": True, "ignore_eos": True}
    with requests.post(server.base + "/v1/completions", json=body, stream=True, timeout=seconds) as answer:
        out.extend(line for line in answer.iter_lines() if line)


@pytest.mark.race
def test_sigterm_drains(mini_model):
    server = Server(mini_model, "--shutdown-timeout", 60)
    outputs = [[] for _ in range(8)]
    threads = [threading.Thread(target=stream_text, args=(server, 60, out)) for out in outputs]
    for thread in threads:
        thread.start()
    while not all(outputs):
        time.sleep(0.005)
    server.process.send_signal(signal.SIGTERM)
    for thread in threads:
        thread.join()
    ended = time.monotonic()
    for out in outputs:
        assert out[-1] == b"data: [DONE]"
        assert any(b'"finish_reason":"length"' in line for line in out)
    assert server.process.wait(30) == 0
    assert time.monotonic() - ended < 5  # not the drain's timeout
    with pytest.raises(requests.ConnectionError):
        requests.get(server.base + "/health", timeout=5)


def test_probes_see_the_drain():
    server = Server(need(MODEL), "--shutdown-timeout", 60)
    body = {"prompt": "Once", "max_tokens": 8000, "stream": True, "ignore_eos": True}
    running = requests.post(server.base + "/v1/completions", json=body, stream=True, timeout=60)
    upload = socket.create_connection(("127.0.0.1", server.port), timeout=10)
    upload.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
    requests.get(server.base + "/live", timeout=10)  # behind it: the upload has been read
    server.process.send_signal(signal.SIGTERM)
    assert b" 503 " in upload.recv(4096)
    upload.close()
    assert requests.get(server.base + "/live", timeout=10).status_code == 200
    for path in ("/ready", "/health"):
        assert requests.get(server.base + path, timeout=10).status_code == 503
    refused = requests.post(server.base + "/v1/completions", json={"prompt": "x"}, timeout=10)
    assert refused.status_code == 503 and refused.headers["connection"] == "close"
    assert refused.json()["error"]["code"] == "shutting_down"
    running.close()  # the last answer ends: so does the drain
    assert server.process.wait(10) == 0


def test_uploads_and_unread_answers_do_not_hold_the_drain(mini_model):
    server = Server(mini_model, "--shutdown-timeout", 60)
    head = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
    upload = socket.create_connection(("127.0.0.1", server.port))
    upload.sendall(head % 100 + b"{")
    unread = socket.socket()
    unread.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    unread.connect(("127.0.0.1", server.port))
    body = json.dumps({"prompt": "x", "n": 128, "max_tokens": 100, "logprobs": 20, "ignore_eos": True}).encode()
    unread.sendall(head % len(body) + body)
    while server.metrics()["vllm:request_success_total"] < 128:
        time.sleep(0.05)
    started = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(30) == 0
    assert time.monotonic() - started < 10
    upload.close()
    unread.close()


def test_idle_uploads_hold_no_place(mini):
    """Headers that promise much, and send nothing, keep nobody out."""
    sockets = []
    for length in [16 << 20] * 8 + [100] * 400:
        sockets.append(socket.create_connection(("127.0.0.1", mini.port)))
        sockets[-1].sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n{" % length)
    requests.get(mini.base + "/live", timeout=10)
    assert mini.post("/v1/completions", {"prompt": "x", "max_tokens": 1}).status_code == 200
    for s in sockets:
        s.close()


def test_a_doubled_signal_is_one(mini_model):
    """GNU timeout signals a process and its group; the answer that runs may end all the same."""
    server = Server(mini_model, "--shutdown-timeout", 60)
    out = []
    thread = threading.Thread(target=stream_text, args=(server, 60, out))
    thread.start()
    while not out:
        time.sleep(0.005)
    server.process.send_signal(signal.SIGTERM)
    server.process.send_signal(signal.SIGINT)
    thread.join()
    assert out[-1] == b"data: [DONE]" and b"length" in b"".join(out[-3:])
    assert server.process.wait(30) == 0


@pytest.mark.race
def test_second_sigterm_ends_at_once():
    server = Server(need(MODEL), "--shutdown-timeout", 60)
    out = []
    body = {"prompt": "Once", "max_tokens": 8000, "stream": True, "ignore_eos": True}

    def read():
        try:
            with requests.post(server.base + "/v1/completions", json=body, stream=True, timeout=60) as answer:
                out.extend(line for line in answer.iter_lines() if line)
        except requests.exceptions.RequestException:
            pass

    thread = threading.Thread(target=read)
    thread.start()
    while server.metrics()["vllm:num_requests_running"] == 0:
        time.sleep(0.01)
    server.process.send_signal(signal.SIGTERM)
    time.sleep(0.3)
    assert server.process.poll() is None
    server.process.send_signal(signal.SIGTERM)
    server.process.wait(30)  # half of what the drain may take
    thread.join()
    if out:
        assert b"error" in b"".join(out[-3:])


@pytest.mark.parametrize("chat", [True, False])
def test_the_curl_line_works(chat, tmp_path):
    ignored = [] if chat else ["chat_template.jinja"]
    shutil.copytree(need(SHARED / "models/tiny/llama"), tmp_path / "model", ignore=shutil.ignore_patterns(*ignored))
    server = Server(tmp_path / "model")
    ready, curl = [line for line in server.log if "127.0.0.1" in line][:2]
    assert f"http://127.0.0.1:{server.port}" in ready
    words = shlex.split(curl)
    header, value = words[words.index("-H") + 1].split(": ")
    answer = requests.post(words[1], words[words.index("-d") + 1], headers={header: value}, timeout=60)
    assert answer.status_code == 200 and answer.json()["choices"]
    assert ("chat" in words[1]) == chat
    assert server.stop() == 0


def test_log_format_json(mini_model):
    server = Server(mini_model, "--log-format", "json")
    server.post("/v1/completions", {"prompt": "x", "max_tokens": 1})
    assert server.stop() == 0
    lines = [line for line in server.log if line.startswith("{")]
    assert lines and all("level" in json.loads(line) for line in lines)
