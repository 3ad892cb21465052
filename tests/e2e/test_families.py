"""Every family of small models, served over HTTP, answers as transformers does in float32."""

import concurrent.futures
import json
import sys

import pytest

from conftest import ROOT, SHARED, Server

sys.path.insert(0, str(ROOT / "tests/oracles"))
import hf_to_gguf  # noqa: E402

TINY = SHARED / "models/tiny"
FAMILIES = sorted(path.name for path in TINY.iterdir()) if TINY.is_dir() else []
pytestmark = pytest.mark.skipif(not FAMILIES, reason="the reference models are not here")

LOGPROB_TOLERANCE = 0.01
CLEAR_MARGIN = 0.01  # below it greedy choices may differ


def folder_with(tmp_path, family, config):
    """The family's folder with `config` as its config.json."""
    for file in (TINY / family).iterdir():
        if file.name not in ("config.json", "config.v4.json"):
            (tmp_path / file.name).symlink_to(file)
    (tmp_path / "config.json").symlink_to(TINY / family / config)
    return tmp_path


def check_case(server, case):
    answer = server.post("/v1/completions", {
        "prompt": case["prompt_ids"], "max_tokens": 0, "echo": True, "logprobs": 1}).json()
    logprobs = answer["choices"][0]["logprobs"]["token_logprobs"]
    assert len(logprobs) == len(case["prompt_logprobs"]) + 1
    for got, want in zip(logprobs[1:], case["prompt_logprobs"]):
        assert abs(got - want) < LOGPROB_TOLERANCE
    answer = server.post("/v1/completions", {
        "prompt": case["prompt_ids"], "max_tokens": len(case["greedy_ids"]), "temperature": 0,
        "ignore_eos": True, "return_token_ids": True}).json()
    for got, want, margin in zip(answer["choices"][0]["token_ids"], case["greedy_ids"],
                                 case["greedy_margin"], strict=True):
        if margin <= CLEAR_MARGIN:
            break
        assert got == want


def check_answers(model, folder):
    """`model` served on the fp32 tier, against the reference in `folder`."""
    server = Server(model, "--isa", "reference", "--kv-cache-memory-bytes", "16MiB")
    try:
        for case in json.loads((folder / "reference.json").read_text())["cases"]:
            check_case(server, case)
    finally:
        assert server.stop() == 0


@pytest.mark.parametrize("form", ["config.json", "config.v4.json", "gguf"])
@pytest.mark.parametrize("family", FAMILIES)
def test_answers_as_transformers(tmp_path, family, form):
    if form == "gguf":
        model = tmp_path / "model.gguf"
        hf_to_gguf.Converter(TINY / family).write(str(model), "F32")
    else:
        model = folder_with(tmp_path, family, form)
    check_answers(model, TINY / family)


def test_recurrent_states_stay_with_their_sequence(make_server):
    """Answers at once are those of one after the other, and equal prompts find nothing in the cache."""
    server = make_server(TINY / "granitemoehybrid", "--max-num-seqs", "4", "--kv-cache-memory-bytes", "16MiB")
    assert any("no prefix caching" in line for line in server.log)
    cases = json.loads((TINY / "granitemoehybrid/reference.json").read_text())["cases"]
    requests = [{"prompt": case["prompt_ids"], "max_tokens": 30, "temperature": 1.0, "seed": seed,
                 "ignore_eos": True, "return_token_ids": True} for case in cases for seed in range(4)]

    def tokens(request):
        answer = server.post("/v1/completions", request).json()
        assert answer["usage"].get("prompt_tokens_details", {}).get("cached_tokens", 0) == 0
        return answer["choices"][0]["token_ids"]

    alone = [tokens(request) for request in requests]
    with concurrent.futures.ThreadPoolExecutor(len(requests)) as pool:
        assert list(pool.map(tokens, requests)) == alone
