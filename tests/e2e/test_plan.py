"""`vivace plan` says what `vivace serve` then takes."""

import concurrent.futures
import json
import subprocess

import pytest

from conftest import BINARY, MODEL, SHARED, need

BLOCKS = 200
FLAGS = ["--num-kv-blocks", str(BLOCKS), "--max-num-seqs", "8", "--max-num-batched-tokens", "512", "--threads", "2"]


def plan(model, *flags):
    return subprocess.run([BINARY, "plan", str(model), *flags], capture_output=True, text=True, timeout=60)


def resident(pid, part="VmRSS"):
    with open(f"/proc/{pid}/status") as status:
        line = next(line for line in status if line.startswith(part))
    return int(line.split()[1]) * 1024


@pytest.mark.parametrize("dtype", ["bf16", "int8"])
def test_what_serve_takes_once_its_cache_is_full(make_server, dtype):
    model = need(MODEL)
    flags = [*FLAGS, "--kv-cache-dtype", dtype]
    planned = json.loads(plan(model, *flags, "--json").stdout)
    assert planned["num_kv_blocks"] == BLOCKS
    assert planned["max_num_seqs"] == 8
    parts = ("weight_bytes", "kv_cache_bytes", "work_bytes", "program_bytes")
    assert sum(planned[part] for part in parts) == planned["total_bytes"]
    # Prompts that share nothing, until every block of the cache has been written, and steps as
    # large as they come: of all tokens that fit, and with as many answers.
    server = make_server(model, *flags, "--max-itl", "0")
    length = 1000
    for i in range(BLOCKS * 16 // length + 1):
        ids = [1000 + (i * 7919 + k * 31) % 40000 for k in range(length)]
        server.post("/v1/completions", {"prompt": ids, "max_tokens": 1, "temperature": 1.0})
    server.post("/v1/completions", {"prompt": ids[:100], "n": 8, "max_tokens": 4, "temperature": 1.0})
    used = resident(server.process.pid)
    assert abs(used - planned["total_bytes"]) < 0.02 * planned["total_bytes"], (used, planned)


def test_figures_without_windows(mini_model):
    figures = json.loads(plan(mini_model, "--json", "--num-kv-blocks", "64").stdout)
    assert figures["kv_cache_tokens"] == 64 * 16
    assert figures["sequences_of_max_model_len"] * figures["max_model_len"] <= 64 * 16


def test_windows_make_sequences_cheaper():
    model = need(SHARED / "models/tiny/gemma3_text")
    shown = plan(model, "--json", "--isa", "reference", "--num-kv-blocks", "670", "--max-num-batched-tokens", "64",
                 "--max-num-seqs", "8")
    figures = json.loads(shown.stdout)
    whole = figures["sequences_of_max_model_len"] * figures["max_model_len"] * figures["kv_bytes_per_token"]
    assert whole > figures["kv_cache_bytes"]


def test_recurrent_states_are_planned(make_server):
    model = need(SHARED / "models/tiny/granitemoehybrid")
    flags = ["--num-kv-blocks", "2048", "--max-num-seqs", "512", "--threads", "2"]
    planned = json.loads(plan(model, *flags, "--json").stdout)
    # Two layers of eight heads of 16 x 16, and three inputs of a convolution of 160 channels.
    assert planned["state_bytes"] == 512 * 2 * 4 * (8 * 16 * 16 + 3 * 160)
    parts = ("weight_bytes", "kv_cache_bytes", "state_bytes", "work_bytes", "program_bytes")
    assert sum(planned[part] for part in parts) == planned["total_bytes"]
    server = make_server(model, *flags, "--max-itl", "0")
    program = resident(server.process.pid, "RssFile")
    # All slots at once, and every block of the cache.
    body = {"prompt": [5, 6, 7], "n": 128, "max_tokens": 58, "temperature": 1.0, "ignore_eos": True}
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda seed: server.post("/v1/completions", body | {"seed": seed}), range(4)))
    assert all(answer.status_code == 200 for answer in answers)
    # How much of the program's file is read meanwhile differs from run to run.
    used = resident(server.process.pid, "RssAnon") + program
    # Of a model this small, 512 answers at once weigh too; they are no part of a plan.
    requests = 512 * (8 << 10)
    assert planned["state_bytes"] > 2 * requests
    assert abs(used - planned["total_bytes"]) < 0.02 * planned["total_bytes"] + requests, (used, planned)


def test_text_names_states():
    shown = plan(need(SHARED / "models/tiny/granitemoehybrid"))
    assert "states" in shown.stdout
    assert "no prefix caching" in shown.stdout


def test_refuses_what_serve_would_refuse(mini_model):
    refused = plan(mini_model, "--kv-cache-memory-bytes", "100000GiB")
    assert refused.returncode == 1
    assert "--kv-cache-memory-bytes" in refused.stderr
    assert refused.stdout == ""


def test_text_names_every_part(mini_model):
    shown = plan(mini_model)
    assert shown.returncode == 0
    for part in ("weights", "KV cache", "work space", "program", "total"):
        assert part in shown.stdout
