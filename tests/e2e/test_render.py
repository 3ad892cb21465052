"""Prompts without answers, the API's own description, and what requests are told of themselves."""

import pytest
import requests


def test_rendered_prompts_are_those_that_are_answered(smol):
    body = {"messages": [{"role": "user", "content": "Hi"}]}
    rendered = smol.post("/v1/chat/completions/render", body).json()
    assert "<|im_start|>user\nHi<|im_end|>" in rendered["prompt"]
    answered = smol.post("/v1/chat/completions", body | {"max_tokens": 1, "return_token_ids": True}).json()
    assert rendered["token_ids"] == answered["prompt_token_ids"]
    assert smol.post("/apply-template", body).json() == {"prompt": rendered["prompt"]}
    assert smol.post("/detokenize", {"tokens": rendered["token_ids"]}).json()["prompt"] == rendered["prompt"]
    assert smol.post("/v1/chat/completions/render", {"messages": []}).status_code == 400


def test_openapi_is_valid(smol):
    document = requests.get(smol.base + "/openapi.json", timeout=30).json()
    assert document["openapi"].startswith("3.1")
    validator = pytest.importorskip("openapi_spec_validator")
    validator.validate(document)


def test_openapi_says_what_the_server_does(smol):
    """Values at and past the bounds that the document gives."""
    document = requests.get(smol.base + "/openapi.json", timeout=30).json()
    chat = document["components"]["schemas"]["ChatRequest"]["properties"]
    body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
    tried = 0
    for name in ("temperature", "top_p", "min_p", "presence_penalty", "top_k", "n", "priority"):
        schema = chat[name]
        assert smol.post("/v1/chat/completions", body | {name: None}).status_code == 200
        if name not in ("n",):
            assert smol.post("/v1/chat/completions", body | {name: schema["maximum"]}).status_code == 200
        refused = smol.post("/v1/chat/completions", body | {name: schema["maximum"] + 1})
        assert refused.status_code == 400 and refused.json()["error"]["param"] == name
        tried += 1
    assert tried == 7


def test_strict_requests(smol):
    body = {"prompt": "a", "max_tokens": 1, "strict": True}
    assert smol.post("/v1/completions", body).status_code == 200
    for more, param in (({"user": "u"}, "user"), ({"foo": 1}, "foo"),
                        ({"max_tokens": 10**6}, "max_tokens")):
        refused = smol.post("/v1/completions", body | more)
        assert refused.status_code == 400 and refused.json()["error"]["param"] == param


def test_reports(smol):
    answer = smol.post("/v1/completions", {"prompt": "a", "max_new_tokens": 1, "user": "u"})
    assert answer.headers["x-vivace-ignored"] == "user"
    assert answer.headers["x-vivace-renamed"] == "max_new_tokens=max_tokens"
    assert answer.json()["vivace"]["renamed"] == [{"alias": "max_new_tokens", "name": "max_tokens"}]


def test_request_ids(smol):
    body = {"prompt": "a", "max_tokens": 1}
    answer = smol.post("/v1/completions", body, headers={"X-Request-Id": "from-a-proxy"})
    assert answer.headers["x-request-id"] == "from-a-proxy"
    assert answer.json()["id"] == "cmpl-from-a-proxy"
    assert smol.post("/v1/completions", body, headers={"X-Request-Id": "a b"}).status_code == 400
