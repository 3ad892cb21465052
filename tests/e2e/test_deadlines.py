"""Limits of time that requests bring, and refusals that say when to come back."""

import concurrent.futures
import threading

import pytest

from conftest import text_of

pytestmark = pytest.mark.sanitize

LONG = {"prompt": "x", "max_tokens": 900, "ignore_eos": True}


def first_cut(ask, choices_of):
    """The first answer that its deadline cut: a fast machine is done before the longer ones."""
    for deadline_ms in (700, 350, 170, 80):
        answer = ask(LONG | {"n": 128, "deadline_ms": deadline_ms})
        if any(choice["stop_reason"] == "deadline" for choice in choices_of(answer)):
            break
    return answer


def test_an_answer_is_cut_at_its_deadline(mini):
    answer = first_cut(lambda body: mini.post("/v1/completions", body).json(), lambda answer: answer["choices"])
    ends = {(choice["finish_reason"], choice["stop_reason"]) for choice in answer["choices"]}
    assert ends <= {("length", "deadline"), ("length", None)} and ("length", "deadline") in ends
    assert 0 < answer["usage"]["completion_tokens"] < 128 * 900
    mini.wait_idle()


def test_a_stream_is_cut_at_its_deadline(mini):
    def ends_of(events):
        return [choice for event in events for choice in event["choices"] if choice["finish_reason"]]

    events = first_cut(lambda body: mini.stream("/v1/completions", body), ends_of)
    ends = ends_of(events)
    assert len(ends) == 128 and any(end["stop_reason"] == "deadline" for end in ends)
    for event in events:
        late = any(choice["stop_reason"] == "deadline" for choice in event["choices"] if choice["finish_reason"])
        assert event.get("vivace", {}) == ({"deadline": True} if late else {})
    mini.wait_idle()


def test_the_text_until_the_deadline_is_the_beginning_of_the_whole(mini):
    body = LONG | {"seed": 3, "n": 8}
    cut = mini.post("/v1/completions", body | {"deadline_ms": 500}).json()["choices"][0]["text"]
    assert text_of(mini.post("/v1/completions", body)).startswith(cut.rstrip("\N{REPLACEMENT CHARACTER}"))


def test_no_output_is_an_error(mini):
    with concurrent.futures.ThreadPoolExecutor() as pool:
        busy = pool.submit(mini.stream, "/v1/completions", LONG | {"n": 128, "deadline_ms": 2000})
        while mini.metrics()["vllm:num_requests_running"] == 0:  # alone, a small model has a token within the millisecond
            assert not busy.done()
        refused = mini.post("/v1/completions", {"prompt": "word " * 180, "deadline_ms": 1})
    assert refused.status_code in (503, 504)
    error = refused.json()["error"]
    assert error["code"] == "deadline_exceeded"
    mini.wait_idle()


def test_a_deadline_that_is_kept(mini):
    body = {"prompt": "x", "max_tokens": 5, "seed": 1, "ignore_eos": True}
    kept = mini.post("/v1/completions", body | {"deadline_ms": 60_000, "max_queue_ms": 60_000})
    assert kept.status_code == 200 and kept.json()["choices"][0]["stop_reason"] is None
    assert text_of(kept) == text_of(mini.post("/v1/completions", body))


@pytest.fixture(scope="module")
def narrow(make_server, mini_model):
    """One at a time, and two that wait."""
    return make_server(mini_model, "--served-model-name", "m", "--kv-cache-memory-bytes", "4MiB",
                       "--max-num-seqs", 1, "--max-num-queued-reqs", 2)


def test_a_full_server_says_when_to_come_back(narrow):
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(narrow.post("/v1/completions", LONG)))
               for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    refused = [answer for answer in answers if answer.status_code == 503]
    assert len(refused) + sum(answer.status_code == 200 for answer in answers) == 6 and refused
    for answer in refused:
        assert answer.json()["error"]["code"] == "server_is_overloaded"
        assert 1 <= int(answer.headers["retry-after"]) <= 60
    narrow.wait_idle()


def test_who_would_wait_too_long_is_refused(narrow):
    over = threading.Event()

    def keep_busy():
        while not over.is_set():
            narrow.post("/v1/completions", LONG)

    busy = [threading.Thread(target=keep_busy) for _ in range(2)]
    for thread in busy:
        thread.start()
    try:
        # Between two of theirs nobody waits, and one may slip in.
        for _ in range(100):
            refused = narrow.post("/v1/completions", {"prompt": "x", "max_tokens": 1, "max_queue_ms": 1})
            if refused.status_code == 503 and refused.json()["error"]["code"] == "queue_timeout":
                break
        assert refused.status_code == 503 and refused.json()["error"]["code"] == "queue_timeout"
        assert 1 <= int(refused.headers["retry-after"]) <= 60
    finally:
        over.set()
        for thread in busy:
            thread.join()
    narrow.wait_idle()


def test_a_request_that_is_more_than_may_wait_is_let_in_alone(narrow, make_server, mini_model):
    body = {"prompt": ["x"] * 8, "max_tokens": 2}
    assert len(narrow.post("/v1/completions", body).json()["choices"]) == 8
    tight = make_server(mini_model, "--served-model-name", "m", "--max-queued-tokens", 10)
    for prompt in ([5] * 40, [[5] * 40] * 3):
        assert tight.post("/v1/completions", {"prompt": prompt, "max_tokens": 1}).status_code == 200
    tight.stop()
