"""Embeddings, rerank and score over HTTP: the openai client, the same bytes in any company."""

import base64
import re
import struct

import pytest
import requests
from conftest import MODEL, need

TEXTS = ["The cat sat on the mat.", "A kitten is sitting on a rug.",
         "Stock prices fell sharply in early trading today.", "x", "word " * 300]


@pytest.fixture(scope="module")
def server(make_server):
    need(MODEL)
    return make_server(MODEL, "--max-num-batched-tokens", "128", "--max-model-len", "1024")


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


@pytest.mark.sanitize
def test_openai_client(server):
    model = requests.get(server.base + "/v1/models", timeout=30).json()["data"][0]["id"]
    answer = server.client().embeddings.create(model=model, input=TEXTS)
    assert [item.index for item in answer.data] == list(range(len(TEXTS)))
    for item in answer.data:
        assert len(item.embedding) == 576
        assert dot(item.embedding, item.embedding) == pytest.approx(1, abs=1e-5)
    assert answer.usage.prompt_tokens == answer.usage.total_tokens > 300
    near = dot(answer.data[0].embedding, answer.data[1].embedding)
    far = dot(answer.data[0].embedding, answer.data[2].embedding)
    assert near > far


def embed(server, body):
    response = server.post("/v1/embeddings", body)
    assert response.status_code == 200, response.text
    return [item["embedding"] for item in response.json()["data"]]


@pytest.mark.parametrize("pooling", ["mean", "last"])
def test_the_same_in_any_company(server, pooling):
    together = embed(server, {"input": TEXTS, "pooling": pooling})
    for text, vector in zip(TEXTS, together):
        assert embed(server, {"input": text, "pooling": pooling}) == [vector]
    ids = server.post("/tokenize", {"prompt": TEXTS[0]}).json()["tokens"]
    assert embed(server, {"input": ids, "pooling": pooling}) == together[:1]


def test_formats_and_dimensions(server):
    plain = embed(server, {"input": TEXTS[0]})[0]
    packed = base64.b64decode(embed(server, {"input": TEXTS[0], "encoding_format": "base64"})[0])
    assert list(struct.unpack(f"<{len(plain)}f", packed)) == pytest.approx(plain, abs=1e-7)
    short = embed(server, {"input": TEXTS[0], "dimensions": 64})[0]
    assert len(short) == 64 and dot(short, short) == pytest.approx(1, abs=1e-5)
    scale = plain[0] / short[0]
    assert [x * scale for x in short] == pytest.approx(plain[:64], abs=1e-5)


def test_rerank_and_score(server):
    body = {"query": TEXTS[0], "documents": TEXTS[1:3] + [{"text": TEXTS[0]}]}
    results = server.post("/v1/rerank", body).json()["results"]
    assert [r["index"] for r in results] == [2, 0, 1]
    assert results[0]["relevance_score"] == pytest.approx(1, abs=1e-5)
    assert results[0]["document"]["text"] == TEXTS[0]
    scores = server.post("/v1/score", {"text_1": TEXTS[0], "text_2": TEXTS[1:3]}).json()["data"]
    assert [s["score"] for s in scores] == [results[1]["relevance_score"],
                                            results[2]["relevance_score"]]


def test_refusals_and_truncation(server):
    too_long = "word " * 2000
    response = server.post("/v1/embeddings", {"input": too_long})
    assert response.status_code == 400 and response.json()["error"]["param"] == "input"
    cut = server.post("/v1/embeddings", {"input": too_long, "truncate_prompt_tokens": -1})
    assert cut.status_code == 200
    assert cut.json()["usage"]["prompt_tokens"] == 1024
    assert cut.json()["vivace"]["truncated_prompt_tokens"] > 500
    response = server.post("/v1/embeddings", {"input": "x", "dimensions": 577})
    assert response.status_code == 400 and response.json()["error"]["param"] == "dimensions"


def test_prompt_parameters(server):
    """What sampling and prompts learnt beside embeddings."""
    prompt = {"prompt": "The capital of France is", "max_tokens": 8, "temperature": 0}
    free = server.post("/v1/completions", {**prompt, "return_token_ids": True}).json()["choices"][0]
    first = free["token_ids"][0]
    banned = server.post("/v1/completions", {**prompt, "bad_words": re.findall(r"\w+", free["text"])[:1],
                                             "return_token_ids": True}).json()["choices"][0]
    assert banned["token_ids"][0] != first
    only = server.post("/v1/completions", {**prompt, "allowed_token_ids": [first],
                                           "return_token_ids": True}).json()["choices"][0]
    assert set(only["token_ids"]) == {first}
    ids = server.post("/tokenize", {"prompt": prompt["prompt"]}).json()["tokens"]
    cut = server.post("/v1/completions", {**prompt, "truncate_prompt_tokens": 3,
                                          "return_token_ids": True})
    assert cut.json()["choices"][0]["prompt_token_ids"] == ids[-3:]
    assert cut.headers["x-vivace-truncated-prompt-tokens"] == str(len(ids) - 3)
    ranked = server.post("/v1/completions", {**prompt, "prompt_logprobs": 2}).json()
    rows = ranked["choices"][0]["prompt_logprobs"]
    assert rows[0] is None and len(rows) == len(ids)
    for token, row in zip(ids[1:], rows[1:]):
        own = row[str(token)]
        assert own["rank"] >= 1 and own["logprob"] <= 0 and 2 <= len(row) <= 3
