"""Handed HTTP and API cases against a live server: right status, closed when it must be, alive afterwards."""

import json
import socket
import urllib.parse

import pytest
import requests

from conftest import SHARED

BAD = SHARED / "cases/bad"
pytestmark = pytest.mark.sanitize


def cases(kind):
    manifest = BAD / "manifest.json"
    if not manifest.exists():
        return []
    return [c for c in json.loads(manifest.read_text())["cases"] if c["name"].startswith(kind + "/")]


def alive(server):
    assert requests.get(server.base + "/health", timeout=5).status_code == 200
    assert server.post("/v1/completions", {"prompt": "x", "max_tokens": 1}).status_code == 200


def exchange(port, payload, step):
    """Sends bytes `step` at a time, half-closes if the case is about a cut body; returns (status or 0, closed)."""
    with socket.create_connection(("127.0.0.1", port), timeout=15) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            for i in range(0, len(payload), step):
                s.sendall(payload[i:i + step])
        except OSError:
            pass
        return read_answer(s)


def read_answer(s):
    data, closed = b"", False
    s.settimeout(1.5)
    try:
        while True:
            got = s.recv(65536)
            if not got:
                closed = True
                break
            data += got
    except socket.timeout:
        pass
    except ConnectionResetError:
        closed = True
    status = int(data.split(b" ", 2)[1]) if data.startswith(b"HTTP/1.1 ") else 0
    return status, closed


@pytest.mark.parametrize("step", [1 << 20, 1])
@pytest.mark.parametrize("case", cases("http"), ids=lambda c: c["name"])
def test_http(mini, case, step):
    payload = (BAD / case["name"]).read_bytes()
    if step == 1 and len(payload) > 8192:
        step = 97
    if case["name"] == "http/body_cut.http":
        with socket.create_connection(("127.0.0.1", mini.port), timeout=15) as s:
            s.sendall(payload)
            s.shutdown(socket.SHUT_WR)
            status, closed = read_answer(s)
    else:
        status, closed = exchange(mini.port, payload, step)
    assert status in case["status"], status
    if case["must_close"]:
        assert closed
    alive(mini)


@pytest.mark.parametrize("case", cases("api"), ids=lambda c: c["name"])
def test_api(mini, case):
    answer = requests.post(mini.base + case["route"], data=(BAD / case["name"]).read_bytes(),
                           headers={"Content-Type": "application/json"}, timeout=60)
    allowed = case["status"]
    if "ignored" in case.get("note", ""):
        allowed = [*allowed, 200]
    assert answer.status_code in allowed, answer.text[:300]
    answer.json()
    if answer.status_code != 200:
        error = answer.json()["error"]
        assert error["message"] and set(error) == {"message", "type", "param", "code"}
    alive(mini)


BROKEN_BODIES = [
    b"", b"{:", b'{"model":"m"', b"[]", b"null", b'"x"', b'{"prompt":"x","model":"m"}garbage',
    b'{"model":"m","prompt":"x","y":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b'{"model":"m","prompt":"x","tools":' + b"[" * 3000 + b"]" * 3000 + b"}",
    b'{"prompt":NaN}', b'{"prompt":"x","temperature":1e400}', b'{"prompt":"\xff"}', b'{"prompt":null}',
    b'{"prompt":"x","model":5}',
]


@pytest.mark.parametrize("body", BROKEN_BODIES, ids=lambda b: b[:24].decode("latin-1"))
def test_broken_json(mini, body):
    answer = requests.post(mini.base + "/v1/completions", data=body,
                           headers={"Content-Type": "application/json"}, timeout=30)
    assert answer.status_code == 400 and answer.json()["error"]["message"]
    alive(mini)


def test_unknown_plain_fields_are_reported(mini):
    answer = mini.post("/v1/completions", {"prompt": "x", "max_tokens": 1, "foo": 1})
    assert answer.status_code == 200 and "foo" in answer.headers["x-vivace-ignored"]


def test_unknown_fields_of_any_name_are_in_a_streams_header(mini):
    names = ["a b", "foo,bar", "température", 'q"', "x=%20"]
    answer = mini.post("/v1/completions", {"prompt": "x", "max_tokens": 1, "stream": True} | dict.fromkeys(names, 1))
    assert answer.status_code == 200
    assert [urllib.parse.unquote(name) for name in answer.headers["x-vivace-ignored"].split(",")] == names


CHAT_NULLS = ("max_tokens max_completion_tokens stop tools tool_choice response_format logit_bias logprobs top_logprobs "
              "n seed temperature top_p user stream stream_options presence_penalty frequency_penalty").split()


def test_null_means_absent(mini):
    base = {"messages": [{"role": "user", "content": "Hi"}], "max_completion_tokens": 8, "seed": 1}
    plain = mini.post("/v1/chat/completions", base).json()["choices"]
    nulls = {name: None for name in CHAT_NULLS if name not in ("max_completion_tokens", "seed")}
    for extra in (nulls, {"stop": [], "logit_bias": {}, "tools": []}):
        answer = mini.post("/v1/chat/completions", base | extra)
        assert answer.status_code == 200, answer.text
        assert answer.json()["choices"] == plain
    assert mini.post("/v1/chat/completions", {"messages": None}).status_code == 400


BAD_IDS = [{"logit_bias": {"999999": 5}}, {"logit_bias": {"-1": 5}}, {"logit_bias": {"AI": 5}},
           {"logit_bias": {"1": "5"}}, {"stop_token_ids": [151645], "min_tokens": 1}, {"stop_token_ids": [-1]},
           {"prompt": [-1]}, {"prompt": [999999]}, {"prompt": [5279552648203111001]}, {"prompt": [1.5]}]


@pytest.mark.parametrize("body", BAD_IDS, ids=str)
def test_ids_outside_the_vocabulary(mini, body):
    answer = mini.post("/v1/completions", {"prompt": "x", "max_tokens": 2} | body)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"].split(".")[0].split("[")[0] in body
    alive(mini)


def test_paths_and_methods(mini):
    def status(method, path):
        answer = requests.request(method, mini.base + path, timeout=10)
        return answer

    assert status("POST", "/v1/nope").status_code == 404
    wrong = status("GET", "/v1/chat/completions")
    assert wrong.status_code == 405 and "POST" in wrong.headers["allow"]
    assert status("DELETE", "/v1/models").status_code == 405
    for path in ("/health", "/v1/models"):
        head, get = status("HEAD", path), status("GET", path)
        assert (head.status_code, head.content) == (get.status_code, b"")
        assert head.headers["content-length"] == get.headers["content-length"]
    assert status("GET", "/v1/models/m").status_code == 200
    assert status("GET", "/v1/models/nope").status_code == 404
    for path in ("//v1/completions", "/v1/models/%00", "/%2e%2e/etc/passwd"):
        assert status("POST", path).status_code in (400, 404)
    assert mini.post("/v1/chat/completions", {"model": 5, "messages": [{"role": "user", "content": "x"}]}).status_code == 400


def test_non_finite_model(make_server):
    """NaN weights load; every answer is a clean error, and the server lives."""
    server = make_server(BAD / "gguf/model_nan_weights.gguf", "--kv-cache-memory-bytes", "16MiB")
    for body in ({}, {"logprobs": 2}, {"temperature": 0}):
        answer = server.post("/v1/completions", {"prompt": "x", "max_tokens": 4} | body)
        assert answer.status_code == 500 and answer.json()["error"]["code"] == "non_finite_logits"
    streamed = server.post("/v1/completions", {"prompt": "x", "max_tokens": 4, "stream": True})
    assert "NaN" not in streamed.text
    if streamed.status_code == 200:
        lines = [line for line in streamed.text.split("\n") if line]
        assert lines[-1] == "data: [DONE]" and '"error"' in lines[-2]
    server.wait_idle()


def test_template_recursion_and_huge_context(make_server):
    recursive = make_server(BAD / "gguf/model_template_recursion.gguf", "--kv-cache-memory-bytes", "16MiB")
    assert recursive.post("/v1/completions", {"prompt": "x", "max_tokens": 1}).status_code == 200
    chat = recursive.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]})
    assert 400 <= chat.status_code < 600 and chat.json()["error"]["message"]
    huge = make_server(BAD / "gguf/model_ctx_4g.gguf", "--kv-cache-memory-bytes", "16MiB")
    assert huge.post("/v1/completions", {"prompt": "x", "max_tokens": 1}).status_code == 200
