"""`vivace bench throughput`: what a dataset's own times and several answers to a prompt are to it."""

import json
import subprocess

from conftest import BINARY


def throughput(model, path, *args):
    done = subprocess.run([BINARY, "bench", "throughput", model, "--no-limits", "--weight-cache", "off", "--num-kv-blocks",
                           "256", "--output-json", path, *map(str, args)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(path.read_text())


def test_a_dataset_with_times_is_computed_at_once(mini_model, tmp_path):
    dataset = tmp_path / "timed.jsonl"
    dataset.write_text("".join(json.dumps({"prompt": "Hello", "output_len": 4, "timestamp": 1_000_000 * i}) + "\n"
                               for i in range(4)))
    result = throughput(mini_model, tmp_path / "r.json", "--dataset-name", "jsonl", "--dataset-path", dataset)
    assert result["num_requests"] == 4 and result["output_tokens"] == 16
    assert result["elapsed_time"] < 50  # the last is of a time 3,000 seconds on


def test_of_several_answers_nothing_is_said_per_token(mini_model, tmp_path):
    result = throughput(mini_model, tmp_path / "r.json", "--num-prompts", 2, "--input-len", 8, "--output-len", 4, "--n", 3)
    assert result["output_tokens"] == 2 * 3 * 4 and result["ttft_ms"]["n"] == 2
    assert result["tpot_ms"] is None and result["itl_ms"] is None
