"""Every family of small models, served over HTTP, answers as transformers does in float32."""

import json

import pytest

from conftest import SHARED, Server

TINY = SHARED / "models/tiny"
RECURRENT = {"granitemoehybrid", "lfm2", "qwen3_next"}
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


@pytest.mark.parametrize("config", ["config.json", "config.v4.json"])
@pytest.mark.parametrize("family", [name for name in FAMILIES if name not in RECURRENT])
def test_answers_as_transformers(tmp_path, family, config):
    server = Server(folder_with(tmp_path, family, config), "--isa", "reference",
                    "--kv-cache-memory-bytes", "16MiB")
    try:
        for case in json.loads((TINY / family / "reference.json").read_text())["cases"]:
            check_case(server, case)
    finally:
        assert server.stop() == 0


@pytest.mark.parametrize("family", sorted(RECURRENT))
def test_recurrent_families_are_refused_by_name(family):
    with pytest.raises(RuntimeError, match="recurrent layers"):
        Server(TINY / family)
