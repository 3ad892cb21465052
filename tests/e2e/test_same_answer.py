"""Rule 1 on the real model: alone == in a batch == chunked == preempted == prefix hit, token for token."""

import concurrent.futures

import pytest

from conftest import ISA_TIERS, MODEL, need

TIERS = [pytest.param(tier, marks=[pytest.mark.slow] if tier != "auto" else []) for tier in ISA_TIERS]
STORY = "The old mill by the river had not turned for forty years, and nobody in the village remembered why. "


def requests_of(count, longest=64):
    """Greedy and seeded; first short prompts with long answers, then prompts of many lengths."""
    for i in range(count):
        grows = 2 * i < count
        prompt = f"Chapter {i}. " + ("" if grows else STORY * (1 + i % 5) + "Then" * (i % 3))
        yield {"prompt": prompt, "max_tokens": longest if grows else 16, "ignore_eos": True, "return_token_ids": True,
               "temperature": 0 if i % 2 else 0.9, "seed": 100 + i}


def ids(server, request):
    answer = server.post("/v1/completions", request)
    assert answer.status_code == 200, answer.text
    return answer.json()["choices"][0]["token_ids"]


@pytest.mark.parametrize("isa", TIERS)
def test_batch_chunk_preemption_and_prefix_hit(make_server, isa):
    # The scalar tier takes minutes for more.
    count, longest, blocks = (6, 64, 10) if isa == "reference" else (24, 64, 26)
    wanted = list(requests_of(count, longest))
    base = ("--isa", isa)
    plain = make_server(need(MODEL), *base, "--no-enable-prefix-caching")
    alone = [ids(plain, r) for r in wanted]
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        assert list(pool.map(lambda r: ids(plain, r), wanted)) == alone, "in a batch"
    plain.stop()

    chunked = make_server(need(MODEL), *base, "--max-num-batched-tokens", 17)
    assert [ids(chunked, r) for r in wanted] == alone, "chunked at 17"
    assert [ids(chunked, r) for r in wanted] == alone, "prefix hit"
    assert chunked.metrics()["vllm:prefix_cache_hits_total"] > 0
    chunked.stop()

    # Room for some to start and for few to grow: others are preempted and recomputed.
    # (Where the machine lets them come one after another, none is: again then.)
    tiny = make_server(need(MODEL), *base, "--num-kv-blocks", blocks, "--max-model-len", 150)
    for _ in range(5):
        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            assert list(pool.map(lambda r: ids(tiny, r), wanted)) == alone, "in a tiny cache"
        if tiny.metrics()["vllm:num_preemptions_total"] > 0:
            break
    assert tiny.metrics()["vllm:num_preemptions_total"] > 0
    tiny.wait_idle()
    tiny.stop()


def test_threads_do_not_matter(make_server):
    wanted = list(requests_of(6))
    answers = []
    for threads in (1, 2, 3):
        server = make_server(need(MODEL), "--threads", threads)
        answers.append([ids(server, r) for r in wanted])
        server.stop()
    assert answers[0] == answers[1] == answers[2]
