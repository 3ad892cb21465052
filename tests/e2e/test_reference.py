"""Greedy text and log-likelihood against the float32 references of real models, over HTTP."""

import json
import subprocess

import pytest

from conftest import BINARY, GEMMA, ISA_TIERS, MODEL, ROOT, SHARED, need

# Model file, what transformers makes of it in float32 (tests/oracles/make_gemma_reference.py).
MODELS = {"smollm2": (MODEL, SHARED / "models/smollm2_reference.json"),
          "gemma3": (GEMMA, ROOT / "tests/golden/gemma3.json")}

# ISA tier -> (margin below which a step may differ, tolerance of the mean NLL).
# int8 activations move logits by up to 0.3; the reference tier computes in fp32.
TIERS = {"auto": (0.3, 0.02), "avx2": (0.3, 0.02), "reference": (0.02, 0.002)}


def reference_of(name):
    return json.loads(need(MODELS[name][1]).read_text())


@pytest.fixture(scope="module")
def reference():
    return reference_of("smollm2")


@pytest.fixture(scope="module", params=[
    pytest.param((name, tier), id=f"{name}-{tier}", marks=[pytest.mark.slow] if tier != "auto" else [])
    for name in MODELS for tier in ISA_TIERS])
def tier(request, make_server):
    """A server, its model's reference, and the tier's tolerances."""
    name, isa = request.param
    server = make_server(need(MODELS[name][0]), "--served-model-name", "m", "--isa", isa, "--max-num-seqs", 8)
    yield server, reference_of(name), *TIERS[isa]
    server.stop()


def test_prompt_ids(smol, reference):
    for case in reference["cases"]:
        answer = smol.post("/tokenize", {"messages": case["messages"], "add_generation_prompt": True})
        assert answer.json()["tokens"] == case["prompt_ids"]


def test_ids_of_plain_text(make_server):
    """Of another tokenizer than the default model's."""
    server = make_server(need(GEMMA), "--max-num-seqs", 1)
    for case in reference_of("gemma3")["cases"]:
        assert server.post("/tokenize", {"prompt": case["prompt"]}).json()["tokens"] == case["prompt_ids"]
    server.stop()


def test_greedy_ids(tier):
    server, reference, margin, _ = tier
    for case in reference["cases"]:
        wanted = case["greedy_ids"]
        answer = server.post("/v1/completions", {
            "prompt": case["prompt_ids"], "temperature": 0, "max_tokens": len(wanted), "return_token_ids": True})
        ids = answer.json()["choices"][0]["token_ids"]
        for step, (got, want) in enumerate(zip(ids, wanted)):
            if got != want:
                assert case["margin"][step] < margin, f"step {step} of {case}"
                break
        else:
            assert len(ids) == len(wanted)


def test_mean_nll(tier):
    server, reference, _, tolerance = tier
    assert mean_nll(server, reference) == pytest.approx(reference["long"]["mean_nll"], abs=tolerance)


def mean_nll(server, reference):
    answer = server.post("/v1/completions", {
        "prompt": reference["long"]["ids"], "max_tokens": 0, "echo": True, "logprobs": 0})
    values = answer.json()["choices"][0]["logprobs"]["token_logprobs"][1:]
    assert len(values) == len(reference["long"]["prompt_logprobs"])
    return -sum(values) / len(values)


def test_int8_kv_cache_costs_little(make_server, reference):
    means = {}
    for dtype in ("auto", "int8"):
        server = make_server(need(MODEL), "--served-model-name", "m", "--kv-cache-dtype", dtype)
        means[dtype] = mean_nll(server, reference)
        server.stop()
    assert means["int8"] == pytest.approx(means["auto"], abs=0.01)


def test_the_reference_tier_has_no_int8_kv_cache():
    need(MODEL)
    done = subprocess.run([BINARY, "serve", str(MODEL), "--isa", "reference", "--kv-cache-dtype", "int8"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "--kv-cache-dtype" in done.stderr
