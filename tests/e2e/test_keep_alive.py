"""Streams that wait are heard of, and no client minds."""

import threading
import time

import anthropic
import pytest

from conftest import MODEL, need

USER = [{"role": "user", "content": "Hi"}]


@pytest.fixture(scope="module")
def busy(make_server):
    """A server of one place, which a long answer holds for a few seconds."""
    server = make_server(need(MODEL), "--served-model-name", "m", "--max-num-seqs", 1, "--sse-ping-interval", 1)
    stop = threading.Event()

    def hold():
        with server.post("/v1/completions", {"prompt": "x", "max_tokens": 4000, "ignore_eos": True, "stream": True},
                         stream=True) as answer:
            for _ in answer.iter_lines():
                if stop.is_set():
                    break

    holder = threading.Thread(target=hold)
    holder.start()
    deadline = time.monotonic() + 10
    while server.metrics()["vllm:num_requests_running"] < 1:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    yield server, stop
    stop.set()
    holder.join()


def test_streams_that_wait_get_pings_and_clients_do_not_mind(busy):
    server, stop = busy
    answers = {}

    def chat():
        chunks = list(server.client().chat.completions.create(model="m", messages=USER, max_tokens=3, stream=True,
                                                              extra_body={"ignore_eos": True}))
        answers["chat"] = [c.choices[0].finish_reason for c in chunks if c.choices][-1]

    def responses():
        events = list(server.client().responses.create(model="m", input="Hi", max_output_tokens=3, stream=True))
        answers["responses"] = (events[0].type, events[-1].type)

    def messages():
        client = anthropic.Anthropic(base_url=server.base, api_key="none", max_retries=0)
        with client.messages.stream(model="m", max_tokens=3, messages=USER) as stream:
            answers["messages"] = stream.get_final_message().stop_reason

    def raw(path):
        body = {"messages": USER, "max_tokens": 3, "stream": True}
        with server.post(path, body, stream=True) as answer:
            answers[path] = answer.status_code, b"".join(answer.iter_content(None))

    threads = [threading.Thread(target=work) for work in (chat, responses, messages)]
    threads += [threading.Thread(target=raw, args=(path,)) for path in ("/v1/chat/completions", "/v1/messages")]
    for thread in threads:
        thread.start()
    time.sleep(2)  # twice the interval, within which all of them wait
    assert not answers
    stop.set()
    for thread in threads:
        thread.join(60)
    assert answers["chat"] in ("length", "stop")
    assert answers["responses"][0] == "response.created"
    assert answers["responses"][1] in ("response.completed", "response.incomplete")
    assert answers["messages"] in ("max_tokens", "end_turn")
    status, body = answers["/v1/chat/completions"]
    assert status == 200 and body.startswith(b": ping\n\n") and body.endswith(b"data: [DONE]\n\n")
    status, body = answers["/v1/messages"]
    assert status == 200 and body.startswith(b"event: message_start\n") and body.count(b"event: message_start\n") == 1
    assert b"event: ping\n" in body and b"event: message_stop\n" in body
