"""Bug cases of kind 8: what can never fit, who waits, who left, where the context ends."""

import concurrent.futures
import socket
import struct
import threading
import time

import pytest

from conftest import MODEL, need

FORCED = {"temperature": 0, "logit_bias": {"33662": 100}, "ignore_eos": True}


@pytest.fixture(scope="module")
def small(make_server):
    """16 blocks of 16 tokens under a model length of 8192."""
    return make_server(need(MODEL), "--served-model-name", "m", "--num-kv-blocks", 16, "--block-size", 16)


@pytest.fixture(scope="module")
def short(make_server):
    return make_server(need(MODEL), "--served-model-name", "m", "--max-model-len", 512)


def complete(server, prompt, max_tokens=None, **more):
    body = {"prompt": prompt, **FORCED, **more}
    if max_tokens is not None:
        body["max_tokens"] = max_tokens
    return server.post("/v1/completions", body)


def test_never_fits_is_refused_and_blocks_nobody(small):
    refused = complete(small, " hello" * 300, 1)
    assert refused.status_code == 400
    message = refused.json()["error"]["message"]
    assert "300" in message and "256" in message
    assert complete(small, " hello" * 2, 1).status_code == 200
    ended = complete(small, " hello" * 200, 100)
    assert ended.status_code == 200 and ended.json()["choices"][0]["finish_reason"] == "length"
    small.wait_idle()


def test_prompts_do_not_starve_a_stream(small):
    gaps, done = [], threading.Event()

    def flood():
        while not done.is_set():
            complete(small, " hello" * 40, 1, cache_salt=str(time.monotonic()))

    flooders = [threading.Thread(target=flood) for _ in range(2)]
    for thread in flooders:
        thread.start()
    try:
        last, text = time.monotonic(), ""
        with small.post("/v1/completions", {"prompt": "x", "max_tokens": 150, "stream": True, **FORCED},
                        stream=True) as answer:
            for line in answer.iter_lines():
                if line.startswith(b"data: {"):
                    now = time.monotonic()
                    gaps.append(now - last)
                    last = now
                    text += line.decode()
        assert text.count(" hello") == 150
    finally:
        done.set()
        for thread in flooders:
            thread.join()
    # A stall would be seconds; the bound is loose because the machine is shared.
    assert max(gaps) < max(1.0, 50 * sorted(gaps)[len(gaps) // 2])
    small.wait_idle()


def test_small_ones_behind_a_large_one(small):
    with concurrent.futures.ThreadPoolExecutor(11) as pool:
        large = pool.submit(complete, small, " hello" * 150, 8)
        others = [pool.submit(complete, small, " hello" * 4, 4) for _ in range(10)]
        for answer in [large, *others]:
            assert answer.result().status_code == 200
    small.wait_idle()


@pytest.mark.parametrize("stream", [False, True])
def test_context_limits(short, stream):
    assert complete(short, " hello" * 511, 1).json()["usage"]["completion_tokens"] == 1
    for count, max_tokens in ((512, None), (512, 1), (513, 2)):
        refused = complete(short, " hello" * count, max_tokens, stream=stream)
        assert refused.status_code == 400
        error = refused.json()["error"]
        assert error["code"] == "context_length_exceeded"
        assert str(count) in error["message"] and "512" in error["message"]
    cut = complete(short, " hello" * 500, 100).json()
    assert cut["choices"][0]["finish_reason"] == "length" and cut["usage"]["completion_tokens"] == 12
    for max_tokens in (0, -1):
        assert complete(short, " hello", max_tokens, stream=stream).status_code == 400


def test_chat_runs_to_the_context_and_no_further(short):
    answer = short.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}], **FORCED}).json()
    assert answer["usage"]["total_tokens"] == 512 and answer["choices"][0]["finish_reason"] == "length"
    both = short.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9,
                                               "max_completion_tokens": 3, **FORCED}).json()
    assert both["usage"]["completion_tokens"] == 3


def raw_request(body):
    return (f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}").encode()


def leave(server, body, after_s, reset):
    """Sends a request and goes away after a while, by FIN or RST."""
    with socket.create_connection(("127.0.0.1", server.port)) as s:
        s.sendall(raw_request(body))
        time.sleep(after_s)
        if reset:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@pytest.mark.parametrize("stream", ["true", "false"])
@pytest.mark.parametrize("after_s", [0, 0.02, 0.3])
def test_a_client_that_leaves_frees_its_blocks(smol, stream, after_s):
    survivor = {}

    def survive():
        survivor["ids"] = complete(smol, "Once", 64, return_token_ids=True).json()["choices"][0]["token_ids"]

    thread = threading.Thread(target=survive)
    thread.start()
    for i in range(12):
        prompt = '"' + " hello" * (3000 if i % 3 == 0 else 3) + '"'
        body = (f'{{"prompt":{prompt},"max_tokens":4000,"ignore_eos":true,"stream":{stream},"n":{1 + i % 4},'
                f'"temperature":1,"cache_salt":"{i}"}}')
        leave(smol, body, after_s if i % 4 else 0, reset=i % 2)
    thread.join()
    assert survivor["ids"] == [33662] * 64
    smol.wait_idle(seconds=5)


def test_priority_and_n_share_the_prompt(smol):
    prompt = " hello" * 400
    answer = complete(smol, prompt, 2, n=4, cache_salt="n-shares").json()
    assert answer["usage"]["prompt_tokens"] == 400 and answer["usage"]["completion_tokens"] == 8
    values = smol.wait_idle()
    assert values["vllm:prefix_cache_hits_total"] >= 3 * 384
