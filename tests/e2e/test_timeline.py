"""What can be seen of requests: timelines, Server-Timing, ids in the log, metrics and the dashboard on them."""

import json
import re

import pytest
import requests

from conftest import ROOT

pytestmark = pytest.mark.sanitize

PROMPT = "One two three four five six seven eight nine ten. " * 16


@pytest.fixture(scope="module")
def seen(make_server, mini_model):
    return make_server(mini_model, "--served-model-name", "m", "--kv-cache-memory-bytes", "4MiB",
                       "--max-num-batched-tokens", 64, "--log-format", "json", "--api-key", "sk-one",
                       "--api-key", "sk-two", "--admin-api-key", "sk-admin", "--metrics-public")


def bearer(key):
    return {"Authorization": f"Bearer {key}"}


def ask(server, key="sk-one", **body):
    answer = server.post("/v1/completions", {"prompt": PROMPT, "max_tokens": 8, "ignore_eos": True} | body,
                         headers=bearer(key))
    assert answer.status_code == 200
    return answer


def get(server, path, key="sk-one"):
    return requests.get(server.base + path, headers=bearer(key), timeout=10)


def timing(answer):
    return {name: float(ms) for name, ms in re.findall(r"(\w+);dur=([\d.]+)", answer.headers["server-timing"])}


def test_a_timeline(seen):
    answer = ask(seen)
    timeline = get(seen, f"/v1/requests/{answer.headers['x-request-id']}/timeline").json()
    usage = answer.json()["usage"]
    assert timeline["state"] == "ended" and timeline["status"] == 200 and timeline["outcome"] == "length"
    assert timeline["prompt_tokens"] == usage["prompt_tokens"] and timeline["output_tokens"] == 8
    events = timeline["events"]
    kinds = [event["event"] for event in events]
    assert kinds[0] == "started" and kinds[-2:] == ["first_token", "finished"]
    chunks = [event for event in events if event["event"] == "prompt_chunk"]
    assert sum(chunk["tokens"] for chunk in chunks) == usage["prompt_tokens"] and len(chunks) > 2
    assert all(chunk["tokens"] <= 64 and chunk["bound_by"] == "prompt" for chunk in chunks)
    assert [event["at_ms"] for event in events] == sorted(event["at_ms"] for event in events)
    assert timeline["decode"][0]["steps"] == 7
    assert timeline["summary"].count("took most of the time") == 1
    times = timeline["times"]
    parts = times["prepare_ms"] + times["queue_ms"] + times["prefill_ms"] + times["decode_ms"]
    assert parts == pytest.approx(times["total_ms"], rel=0.2, abs=2)

    again = get(seen, f"/v1/requests/{ask(seen).headers['x-request-id']}/timeline").json()
    assert again["cached_tokens"] > 0 and again["events"][0]["cached_tokens"] == again["cached_tokens"]


def test_the_list(seen):
    ids = [ask(seen, max_tokens=1).headers["x-request-id"] for _ in range(3)]
    rows = get(seen, "/v1/requests").json()["data"]
    assert [row["id"] for row in rows][:3] == ids[::-1]
    assert {"state", "times", "prompt_tokens", "output_tokens", "cached_tokens", "path"} <= set(rows[0])


def test_everyone_sees_their_own(seen):
    mine = ask(seen, "sk-two").headers["x-request-id"]
    path = f"/v1/requests/{mine}/timeline"
    assert [get(seen, path, key).status_code for key in ("sk-two", "sk-one", "sk-admin")] == [200, 404, 200]
    assert mine not in get(seen, "/v1/requests", "sk-one").text
    assert mine in get(seen, "/v1/requests", "sk-admin").text
    assert get(seen, "/v1/requests", "none").status_code == 401


def test_server_timing(seen):
    whole = timing(ask(seen))
    assert list(whole) == ["prepare", "queue", "prefill", "decode", "total"]
    assert sum(list(whole.values())[:4]) == pytest.approx(whole["total"], rel=0.2, abs=2)
    assert list(timing(ask(seen, stream=True))) == ["prepare", "queue", "prefill"]


def test_ids_in_the_log(seen):
    wanted = ask(seen).headers["x-request-id"]
    seen.post("/v1/completions", {"prompt": 5}, headers=bearer("sk-one"))

    def lines():
        parsed = [json.loads(line) for line in list(seen.log) if line.startswith("{")]
        return [line for line in parsed if line.get("msg", line.get("message")) == "request"]

    while not any(line["status"] == 400 for line in lines()):
        pass
    found = [line for line in lines() if line["id"] == wanted]
    assert len(found) == 1 and found[0]["status"] == 200 and found[0]["output_tokens"] == 8
    assert 0 <= found[0]["first_token_ms"] <= found[0]["ms"]
    assert all(line["id"] for line in lines())


def names_of(expression):
    """The metrics that a PromQL expression queries."""
    words = re.findall(r"[a-zA-Z_:][a-zA-Z0-9_:]*", re.sub(r"\{[^}]*\}|\[[^]]*\]|by \([^)]*\)", " ", expression))
    return {word for word in words if ":" in word or word.startswith("process_")}


def test_the_dashboard_queries_what_there_is(seen):
    ask(seen)
    page = requests.get(seen.base + "/metrics", timeout=10).text  # public here
    there = {re.split(r"[{ ]", line)[0] for line in page.splitlines() if line and not line.startswith("#")}
    dashboard = json.loads((ROOT / "deploy/grafana.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    expressions += [variable["query"] for variable in dashboard["templating"]["list"]]
    wanted = set().union(*map(names_of, expressions))
    assert len(wanted) > 20 and wanted <= there, wanted - there


VLLM_NAMES = """num_requests_running num_requests_waiting num_requests_waiting_by_reason kv_cache_usage_perc
prefix_cache_queries_total prefix_cache_hits_total num_preemptions_total prompt_tokens_total prompt_tokens_cached_total
generation_tokens_total request_success_total time_to_first_token_seconds_bucket inter_token_latency_seconds_bucket
request_time_per_output_token_seconds_bucket e2e_request_latency_seconds_bucket request_queue_time_seconds_bucket
request_inference_time_seconds_bucket request_prefill_time_seconds_bucket request_decode_time_seconds_bucket
request_prompt_tokens_bucket request_generation_tokens_bucket request_max_num_generation_tokens_bucket
request_params_n_bucket request_params_max_tokens_bucket iteration_tokens_total_bucket cache_config_info
request_prefill_kv_computed_tokens_bucket request_num_preemptions_bucket gpu_cache_usage_perc
gpu_prefix_cache_queries_total gpu_prefix_cache_hits_total""".split()


def test_vllms_names(seen):
    before = seen.metrics()
    ask(seen)
    after = seen.metrics()
    assert not [name for name in VLLM_NAMES if "vllm:" + name not in after]
    for name in ("generation_tokens_total", "iteration_tokens_total_sum", "request_inference_time_seconds_count",
                 "request_time_per_output_token_seconds_count", "request_max_num_generation_tokens_count"):
        assert after["vllm:" + name] > before["vllm:" + name], name
    page = requests.get(seen.base + "/metrics", timeout=10).text
    assert re.search(r'inter_token_latency_seconds_bucket\{[^}]*le="0.0005"', page)
