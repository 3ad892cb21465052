"""`vivace tune`: interrupted, gone on with, and what `vivace serve --config` makes of it; `bench throughput` and
`bench latency`."""

import csv
import json
import signal
import subprocess
import time

from conftest import BINARY, text_of

TRAFFIC = ["--input-len", "24", "--output-len", "8", "--num-prompts", "16", "--max-concurrency", "4"]
SPACE = ["--max-num-seqs", "1,8", "--max-num-batched-tokens", "64,256", "--max-itl", "0", "--threads", "1"]
FLAGS = [*TRAFFIC, *SPACE, "--num-kv-blocks", "256", "--weight-cache", "off"]


def run(*args, timeout=60):
    return subprocess.run([BINARY, *map(str, args)], capture_output=True, text=True, timeout=timeout)


def trials(out):
    journal = out / "journal.jsonl"
    lines = journal.read_text().splitlines() if journal.exists() else []
    return sum('"kind":"trial"' in line for line in lines)


def interrupt_after(count, process, out, seconds=30):
    deadline = time.monotonic() + seconds
    while trials(out) < count and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    return process.communicate(timeout=30)


def test_interrupted_gone_on_with_and_served(mini_model, make_server, tmp_path):
    out = tmp_path / "tuned"
    command = ["tune", mini_model, *FLAGS, "--budget", "4s", "--out", out]
    # Enough repeats of a larger space that it cannot end by itself before the signal.
    process = subprocess.Popen([BINARY, *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    shown, told = interrupt_after(1, process, out)
    assert process.returncode == 130, told
    assert "what was measured is kept" in told
    kept = trials(out)
    assert kept >= 1
    partial = json.loads((out / "pareto.json").read_text())
    assert partial["interrupted"] and partial["trials"] == kept
    assert "Interrupted" in (out / "report.html").read_text()

    done = run(*command)
    assert done.returncode == 0, done.stderr
    assert "<- best" in done.stdout
    result = json.loads((out / "pareto.json").read_text())
    assert not result["interrupted"] and result["trials"] > kept
    assert result["candidates"][0]["measured"]["completed"] == 16
    rows = list(csv.DictReader((out / "pareto.csv").open()))
    assert all(abs(float(row["score"]) / float(row["output_throughput"]) - 1) < 1e-4 for row in rows)
    assert sum(row["winner"] == "true" for row in rows) == 1

    config = json.loads((out / "vivace.json").read_text())
    assert config["model"] == str(mini_model)
    assert config["provenance"]["objective"] == "the most output tokens a second"
    server = make_server(f"--config={out / 'vivace.json'}")
    assert f"{config['max-num-seqs']} sequences" in "".join(server.log)
    assert len(text_of(server.post("/v1/completions", {"prompt": "Hello", "max_tokens": 4}))) > 0

    other = run("tune", mini_model, *FLAGS, "--input-len", "25", "--budget", "4s", "--out", out)
    assert other.returncode == 1
    assert "the traffic differs; give another --out" in other.stderr


def grid(model, out, *args):
    done = run("tune", model, *FLAGS, "--full-grid", "--budget", "30s", "--out", out, *args)
    assert done.returncode == 0, done.stderr
    return json.loads((out / "pareto.json").read_text()), done.stdout


def by_sequences(result, figure):
    """The median of each setting of the space, by the sequences it allows."""
    found = {}
    for candidate in result["candidates"]:
        if not candidate["outside"]:
            found.setdefault(candidate["setting"]["max_num_seqs"], []).append(candidate["measured"][figure]["p50"])
    return found


def test_a_promise_decides(mini_model, tmp_path):
    # Four users of one place wait for each other, and of eight they do not: a first token is promised between the two.
    answers = ("--output-len", "900")  # a wait well beyond what a busy machine adds
    free, _ = grid(mini_model, tmp_path / "free", *answers)
    waits = by_sequences(free, "ttft_ms")
    least_of_one, most_of_eight = min(waits[1]), max(waits[8])
    assert most_of_eight < least_of_one
    promise = (least_of_one * most_of_eight) ** 0.5
    result, _ = grid(mini_model, tmp_path / "bound", *answers, "--slo", f"p50:ttft:{promise:.3f}")
    assert result["objective"].endswith("ms") and "p50 ttft <= " in result["objective"]
    of_one = [c for c in result["candidates"] if c["setting"]["max_num_seqs"] == 1]
    assert len(of_one) == 2 and not any(c["kept"] for c in of_one)
    assert all("p50 ttft is " in c["broken"][0] for c in of_one)
    kept = [c["kept"] for c in result["candidates"]]
    assert kept == sorted(kept, reverse=True)  # best first: whatever keeps it
    assert result["winner"]["max_num_seqs"] == 8

    result, shown = grid(mini_model, tmp_path / "hopeless", "--slo", "p99:ttft:0.0001")
    assert not any(c["kept"] for c in result["candidates"])
    assert "None of the 4 settings measured keeps the promise" in shown
    done = run("tune", mini_model, *FLAGS, "--budget", "10s", "--out", tmp_path / "searched",
               "--slo", "p99:ttft:0.0001")
    assert done.returncode == 0, done.stderr
    assert "keeps the promise" in done.stdout and "clearly ahead" not in done.stdout
    assert "clearly ahead" not in json.loads((tmp_path / "searched" / "vivace.json").read_text())["provenance"][
        "ended_because"]


def test_what_the_flags_leave_out_cannot_win(mini_model, tmp_path):
    result, shown = grid(mini_model, tmp_path / "out", "--max-num-seqs", "1")
    outside = [c for c in result["candidates"] if c["outside"]]
    assert len(outside) == 1 and outside[0]["defaults"] and outside[0]["setting"]["max_num_seqs"] == 64
    assert result["winner"]["max_num_seqs"] == 1
    assert "(defaults, not among the choices)" in shown


def test_a_promise_that_no_answer_can_have_is_refused(mini_model, tmp_path):
    refused = run("tune", mini_model, *FLAGS, "--output-len", "1", "--slo", "p99:itl:50", "--out", tmp_path / "out")
    assert refused.returncode != 0
    assert "answers of one token have no time between tokens" in refused.stderr


def test_wrong_words_are_refused(mini_model, tmp_path):
    for args, words in [(["--slo", "p99:speed:3"], "--slo has 'p99:speed:3'"), (["--budget", "long"], "--budget is"),
                        (["--max-num-seqs", "none"], "--max-num-seqs"), (["--dataset-name", "nothing"], "--dataset-name")]:
        refused = run("tune", mini_model, "--out", tmp_path / "x", *args)
        assert refused.returncode == 2 and words in refused.stderr, refused.stderr
    assert "--out DIR" in run("tune", mini_model).stderr


def test_configuration_files(mini_model, tmp_path):
    config = tmp_path / "c.json"
    config.write_text(json.dumps({"model": str(mini_model), "max_num_seq": 3}))
    refused = run("serve", "--config", config)
    assert refused.returncode == 2
    assert '"max_num_seq" is no flag of `vivace serve`; did you mean "max-num-seqs"?' in refused.stderr
    config.write_text(json.dumps({"model": str(mini_model), "max_num_seqs": 3, "num-kv-blocks": 64}))
    done = run("bench", "throughput", "--config", config, "--num-prompts", "4", "--input-len", "8", "--output-len", "4",
               "--no-limits", "--weight-cache", "off")
    assert done.returncode == 0, done.stderr
    assert "at most 3 sequences" in done.stdout


def test_throughput_and_latency(mini_model, tmp_path):
    path = tmp_path / "result.json"
    flags = ["--no-limits", "--weight-cache", "off", "--num-kv-blocks", "256", "--output-json", path]
    done = run("bench", "throughput", mini_model, "--num-prompts", "8", "--input-len", "20", "--output-len", "5", *flags)
    assert done.returncode == 0, done.stderr
    assert "Throughput: " in done.stdout and " output tokens/s" in done.stdout
    result = json.loads(path.read_text())
    assert result["num_requests"] == 8 and result["output_tokens"] == 8 * 5
    assert result["total_num_tokens"] == result["prompt_tokens"] + result["output_tokens"]
    assert abs(result["requests_per_second"] * result["elapsed_time"] - 8) < 0.01

    done = run("bench", "latency", mini_model, "--num-iters", "3", "--num-iters-warmup", "1", "--output-len", "6", *flags)
    assert done.returncode == 0, done.stderr
    assert "Avg latency: " in done.stdout and "99% percentile latency: " in done.stdout
    result = json.loads(path.read_text())
    assert len(result["latencies"]) == 3 and set(result["percentiles"]) == {"10", "25", "50", "75", "90", "99"}


def test_what_cannot_be_is_refused_before_anything_is_measured(mini_model, tmp_path):
    def refusal(*args):
        done = run("bench", "throughput", mini_model, "--num-prompts", "2", *args)
        assert done.returncode in (1, 2) and not done.stdout, done.stdout
        return done.stderr

    assert "reads no file" in refusal("--dataset-path", tmp_path / "chats.json")
    assert "absent.json" in refusal("--dataset-name", "sharegpt", "--dataset-path", tmp_path / "absent.json")
    assert "there is no folder" in refusal("--output-json", tmp_path / "none" / "result.json")


def test_a_budget_that_ends_before_a_trial(mini_model, tmp_path):
    out = tmp_path / "tuned"
    done = run("tune", mini_model, *FLAGS, "--budget", "0.001s", "--out", out)
    assert done.returncode == 1
    assert "give a larger --budget" in done.stdout
    assert "Forecasts were off" not in done.stdout  # there are none to judge
    assert not (out / "vivace.json").exists()
    done = run("tune", mini_model, *FLAGS, "--budget", "4s", "--out", out)  # goes on
    assert done.returncode == 0, done.stderr
    assert (out / "vivace.json").exists()
