"""Real faults of other servers, re-cast (../shared/cases/bug_cases.md): those whose place is no other test's.

The rest stands beside what it is about: 1.2, 1.3, 2.1, 3.x in test_openai_client, 2.3, 9.1 to 9.3 in test_bad_http, 4.x in
test_structured_output and src/grammar, 5.x in src/text and service_test, 6.x in src/text, 8.x in test_scheduling, 9.4 in
hostile_client_test and test_access, 11.4 in src/server/metrics.
"""

import concurrent.futures
import subprocess
import time

import pytest
import requests

from conftest import BINARY

USER = [{"role": "user", "content": "go"}]


def texts(events):
    return [choice["delta"].get("content") or "" for event in events for choice in event["choices"]]


def test_1_1_characters_split_over_tokens(smol):
    """No chunk has half a character, the whole is exact."""
    value = "😀👩‍👩‍👧‍👦日本語ď안녕"
    body = {"model": "m", "temperature": 0, "max_tokens": 64, "messages": USER, "response_format": {
        "type": "json_schema", "json_schema": {"name": "e", "strict": True, "schema": {"type": "string", "enum": [value]}}}}
    parts = texts(smol.stream("/v1/chat/completions", body))
    assert "".join(parts) == f'"{value}"' and not any("\ufffd" in part for part in parts)
    whole = smol.post("/v1/chat/completions", body).json()["choices"][0]["message"]["content"]
    assert whole == "".join(parts)


def test_2_2_every_road_to_greedy_is_greedy(mini):
    def text(**members):
        answer = mini.post("/v1/completions", {"prompt": "Once upon", "max_tokens": 8, "ignore_eos": True, **members})
        assert answer.status_code == 200, answer.text
        return answer.json()["choices"][0]["text"]

    greedy = text(temperature=0)
    assert text(temperature=1e-30) == greedy
    for seed in range(1, 4):
        assert text(temperature=1.5, top_p=1e-9, seed=seed) == greedy
        assert text(temperature=1.5, top_k=1, seed=seed) == greedy
    free = [text(temperature=1.5, seed=seed) for seed in range(1, 5)]
    assert text(temperature=1.5, seed=1, top_k=0) == text(temperature=1.5, seed=1, top_k=-1) == free[0]
    assert any(other != greedy for other in free)
    assert mini.post("/v1/completions", {"prompt": "x", "top_p": 0}).status_code == 400


def test_2_3_bad_ids_disturb_nobody(smol):
    """A long answer under way is what it is alone, whatever ids are refused meanwhile."""
    long = {"prompt": "Once upon a time", "max_tokens": 30, "ignore_eos": True, "temperature": 0}
    alone = smol.post("/v1/completions", long).json()["choices"][0]["text"]
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        running = pool.submit(smol.post, "/v1/completions", long)
        for bad in ('{"prompt":"x","logit_bias":{"49152":5}}', '{"prompt":"x","logit_bias":{"33662":1e999}}',
                    '{"prompt":[49152]}', '{"prompt":"x","stop_token_ids":[-1]}', '{"prompt":"x","allowed_token_ids":[49152]}'):
            answer = requests.post(smol.base + "/v1/completions", data=bad, headers={"Content-Type": "application/json"}, timeout=30)
            assert answer.status_code == 400, bad
        assert running.result().json()["choices"][0]["text"] == alone
    for fine in ({"prompt": "x", "logit_bias": {"49151": 0}}, {"prompt": [49151]}):
        assert smol.post("/v1/completions", fine | {"max_tokens": 1}).status_code == 200


def test_5_2_an_unknown_tag_is_told_at_the_start(mini_model, tmp_path):
    template = tmp_path / "bad.jinja"
    template.write_text("a\n{% frobnicate x %}\n")
    result = subprocess.run([BINARY, "serve", mini_model, "--port", "0", "--weight-cache", "off", "--chat-template", template],
                            capture_output=True, text=True, timeout=60)
    assert result.returncode in (1, 2) and "frobnicate" in result.stderr and "line 2" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_6_3_long_runs_hold_nobody_up(smol):
    body = {"messages": [{"role": "user", "content": "Z" * 131072}], "max_tokens": 1}
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        begun = time.monotonic()
        long = pool.submit(smol.post, "/v1/chat/completions", body)
        assert smol.post("/v1/completions", {"prompt": "x", "max_tokens": 1}).status_code == 200
        assert long.result().status_code == 400
        assert long.result().json()["error"]["code"] == "context_length_exceeded"
        assert time.monotonic() - begun < 30  # a quadratic one takes minutes


@pytest.mark.parametrize("body", [
    b'\xef\xbb\xbf{"prompt":"x","max_tokens":1}', b'{"prompt":"x","max_tokens":1,"max_tokens":2}'], ids=["bom", "twice"])
def test_9_1_odd_but_whole_json(mini, body):
    answer = requests.post(mini.base + "/v1/completions", data=body, headers={"Content-Type": "application/json"}, timeout=30)
    assert answer.status_code in (200, 400)
    if answer.status_code == 400:
        assert answer.json()["error"]["message"]


def test_9_4_sizes(smol):
    def post(size):
        return smol.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "internationalization " * (size // 21)}], "max_tokens": 1})

    assert post(20_000).status_code == 200
    large = post(1_000_000)
    assert large.status_code == 400 and large.json()["error"]["code"] == "context_length_exceeded"
    # Refused from the header: nothing of it is read.
    begun = time.monotonic()
    with requests.Session() as session:
        request = requests.Request("POST", smol.base + "/v1/completions", headers={
            "Content-Type": "application/json", "Content-Length": str(10**12)}, data=b"").prepare()
        request.headers["Content-Length"] = str(10**12)
        assert session.send(request, timeout=30).status_code == 413
    assert time.monotonic() - begun < 10


def test_11_4_a_served_name_is_a_label(make_server, mini_model):
    server = make_server(mini_model, "--served-model-name", 'm"x\\y', "--kv-cache-memory-bytes", "4MiB")
    assert server.post("/v1/completions", {"prompt": "x", "max_tokens": 1}).status_code == 200
    assert server.post("/v1/completions", {"prompt": "x", "model": 'a"b\nc'}).status_code == 404
    page = requests.get(server.base + "/metrics", timeout=30)
    assert page.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert page.text.endswith("\n") and 'a\\"b' not in page.text
    from prometheus_client.parser import text_string_to_metric_families
    names = {sample.labels["model_name"] for family in text_string_to_metric_families(page.text)
             for sample in family.samples if "model_name" in sample.labels}
    assert names == {'m"x\\y'}
