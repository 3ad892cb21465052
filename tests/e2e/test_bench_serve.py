"""`vivace bench serve`, `max-rate` and `simulate` by the command line: against simulated servers, whose truth is
known, and against a real one."""

import csv
import http.server
import json
import re
import resource
import signal
import statistics
import subprocess
import threading
import time

import pytest
import requests

from conftest import BINARY, free_port

@pytest.fixture
def simulate():
    """Starts simulated servers; each is ended by its own pid."""
    processes = []

    def start(*flags):
        process = subprocess.Popen([BINARY, "bench", "simulate", "--port", "0", *map(str, flags)],
                                   stdout=subprocess.PIPE, text=True)
        processes.append(process)
        line = process.stdout.readline()
        assert "ready on http://" in line
        return line.split("ready on ")[1].split()[0]

    yield start
    for process in processes:
        process.send_signal(signal.SIGTERM)
    for process in processes:
        assert process.wait(20) == 0
        process.stdout.close()


def bench(*args, code=0, timeout=60):
    done = subprocess.run([BINARY, "bench", *map(str, args)], capture_output=True, text=True, timeout=timeout)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def measure(*args, report, timeout=60):
    """A run and its JSON. On a machine that is busy the client may be late, which is exit code 1 and no fault."""
    done = subprocess.run([BINARY, "bench", "serve", *map(str, args), "--output-json", report], capture_output=True,
                          text=True, timeout=timeout)
    assert done.returncode in (0, 1), done.stderr
    saved = json.loads(report.read_text())
    for run in saved.get("runs", [saved]):
        assert run["valid"] == (not run["invalid_because"])
        assert all("the client slowed the run down" in why for why in run["invalid_because"]), run["invalid_because"]
    return done, saved


SMALL = ("--random-input-len", 12, "--random-output-len", 6)


def test_figures_are_the_servers_truth(simulate, tmp_path):
    url = simulate("--ttft-ms", 12, "--prefill-ms-per-token", 0.5, "--itl-ms", 4)
    report = tmp_path / "report.json"
    done, run = measure("--base-url", url + "/v1", "--max-concurrency", 4, "--num-prompts", 24, *SMALL,
                        "--goodput", "ttft:5000", "tpot:1000", "--metadata", "place=here", "--ignore-eos", report=report)
    assert run["completed"] == 24 and run["failed"] == 0
    assert run["model_id"] == "simulated"
    assert run["environment"]["place"] == "here" and "client_cpu" in run["environment"]
    assert run["total_input_tokens"] == 24 * 12 and run["total_output_tokens"] == 24 * 6
    assert run["request_goodput"] == pytest.approx(run["request_throughput"])
    truth = {t["id"].rsplit("-", 1)[-1]: t for t in requests.get(url + "/sim/truth", timeout=10).json()["requests"]}
    mine = [truth[str(i)] for i in range(24)]
    gaps = [gap for t in mine for gap in t["gaps_ms"]]
    late = run["client"]["loop_lag_p99_ms"]
    # From the server's arrival, so the way to it is on top.
    assert statistics.median(t["ttft_ms"] for t in mine) == pytest.approx(run["median_ttft_ms"], abs=3 + late)
    assert statistics.mean(gaps) == pytest.approx(run["mean_itl_ms"], abs=1 + late)
    # Nothing is seen before the server did it, so no percentile is below the server's. (To the digit, by scripted
    # times: src/load/client/scripted_truth_test.cc.)
    def p99(values):
        values = sorted(values)
        at = 0.99 * (len(values) - 1)
        return values[int(at)] + (values[min(int(at) + 1, len(values) - 1)] - values[int(at)]) * (at - int(at))

    slack = 60 + late
    ttft, e2el = p99(t["ttft_ms"] for t in mine), p99(t["ttft_ms"] + sum(t["gaps_ms"]) for t in mine)
    assert ttft - 0.01 <= run["p99_ttft_ms"] <= ttft + slack
    assert e2el - 0.01 <= run["p99_e2el_ms"] <= e2el + slack
    assert min(gaps) - 1 <= run["p99_tpot_ms"] <= p99(gaps) + slack
    assert min(gaps) <= run["p99_itl_ms"] <= max(gaps) + slack
    assert "Time to First Token" in done.stdout


def test_lists_run_one_after_another_with_other_prompts(simulate, tmp_path):
    url = simulate()
    done, saved = measure("--base-url", url, "--max-concurrency", "1,2", "--request-rate", "inf", 200,
                          "--num-prompts", 5, *SMALL, "--apply-chat-template", "--output-csv", tmp_path / "a.csv",
                          "--output-html", tmp_path / "a.html", "--save-result", "--result-dir", tmp_path / "results",
                          report=tmp_path / "a.json")
    runs = saved["runs"]
    assert [run["label"] for run in runs] == ["c=1", "rate 200/s, c=1", "c=2", "rate 200/s, c=2"]
    assert len({run["seed"] for run in runs}) == 4
    assert all(run["endpoint"] == "/v1/chat/completions" and run["completed"] == 5 for run in runs)
    assert len(list(csv.reader((tmp_path / "a.csv").open()))) == 5
    assert "<svg" in (tmp_path / "a.html").read_text()
    assert len(list((tmp_path / "results").glob("openai-*qps-concurrency*-simulated-*.json"))) >= 1
    assert "rate 200/s, c=2" in done.stdout


def test_failures_are_apart_and_make_a_run_invalid(simulate, tmp_path):
    url = simulate("--ttft-ms", 2, "--itl-ms", 1, "--error-every", 6, "--cut-every", 5)
    report = tmp_path / "report.json"
    done = bench("serve", "--base-url", url, "--max-concurrency", 2, "--num-prompts", 20, *SMALL,
                 "--output-json", report, code=1)
    run = json.loads(report.read_text())
    assert not run["valid"] and run["failed"] + run["completed"] == 20
    reasons = " ".join(run["failures"])
    assert "HTTP 500: The simulated server failed" in reasons and "connection" in reasons
    assert run["n_ttft"] == run["completed"]
    assert "INVALID" in done.stdout


def test_an_interrupted_run_is_kept(simulate, tmp_path):
    url = simulate("--ttft-ms", 5, "--stall-every", 4, "--stall-ms", 600_000)
    report = tmp_path / "report.json"
    process = subprocess.Popen(
        [BINARY, "bench", "serve", "--base-url", url, "--max-concurrency", "1", "--num-prompts", "50",
         *map(str, SMALL), "--output-json", report], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 20
    while "vllm:num_requests_running 1" not in requests.get(url + "/metrics", timeout=5).text \
            or len(requests.get(url + "/sim/truth", timeout=5).json()["requests"]) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130 and "interrupted" in err
    run = json.loads(report.read_text())
    assert run["partial"] and run["note"] == "interrupted" and run["completed"] == 2
    assert run["not_run"] == 48 and run["interrupted"] == 1
    assert "47 of 50 requests were never sent" in out and "1 of 50 requests were sent and interrupted" in out


def test_a_run_keeps_the_load_it_was(simulate, tmp_path):
    url = simulate("--null-server")
    small = ("--base-url", url, "--token-ids", "--random-input-len", 4, "--random-output-len", 2, "--num-prompts", 12)
    saved = {}
    for strategy in ("linear", "exponential"):
        _, saved[strategy] = measure(
            *small, "--ramp-up-strategy", strategy, "--ramp-up-start-rps", 20, "--ramp-up-end-rps", 200,
            "--max-concurrency", 4, 8, "--label", "my ramp", "--output-html", tmp_path / f"{strategy}.html",
            "--save-result", "--result-dir", tmp_path / strategy, report=tmp_path / f"{strategy}.json")
        runs = saved[strategy]["runs"]
        assert [run["label"] for run in runs] == [f"rate 20 to 200/s {strategy}, c={c}" for c in (4, 8)]
        assert all(run["ramp_up_strategy"] == strategy and run["ramp_up_start_rps"] == 20
                   and run["ramp_up_end_rps"] == 200 and run["environment"]["label"] == "my ramp" for run in runs)
        assert f"20 to 200/s {strategy}" in (tmp_path / f"{strategy}.html").read_text()
        assert len(list((tmp_path / strategy).glob(f"my ramp-ramp-up-{strategy}-20qps-200qps-concurrency*"))) == 2
    one = {}
    for strategy, both in saved.items():
        one[strategy] = tmp_path / f"{strategy}-4.json"
        one[strategy].write_text(json.dumps(both["runs"][0]))
    compared = bench("compare", one["linear"], one["exponential"]).stdout
    assert "request rate differs: 20 to 200/s linear against 20 to 200/s exponential" in compared
    again = json.loads(bench("compare", tmp_path / "linear.json", tmp_path / "linear.json", "--json").stdout)
    assert [run["label"] for run in again["runs"]] == [run["label"] for run in saved["linear"]["runs"]]
    assert all(value["ratio"] == pytest.approx(1) for run in again["runs"] for figure in run["figures"]
               for value in figure["against"] if value["ratio"] is not None)
    trace = tmp_path / "trace.jsonl"
    trace.write_text("".join(json.dumps({"timestamp": 10 * i, "input_length": 4, "output_length": 2, "hash_ids": [i]})
                             + "\n" for i in range(3)))
    done, run = measure("--base-url", url, "--dataset-name", "trace", "--dataset-path", trace,
                        report=tmp_path / "trace.json")
    assert run["label"] == "trace" and run["own_times"] and "each at its own time" in done.stdout
    assert "note: the dataset has 3 requests, fewer than the 1000 of --num-prompts" in done.stderr


def test_no_result_takes_anothers_place(simulate, tmp_path):
    url = simulate("--null-server")
    small = ("--base-url", url, "--num-prompts", 2, *SMALL, "--token-ids", "--max-concurrency", "2,2,2")
    measure(*small, "--save-result", "--result-dir", tmp_path / "all", report=tmp_path / "all/result.json")
    assert len(list((tmp_path / "all").iterdir())) == 1 + 3  # none of which is called result.json
    measure(*small, "--result-filename", "mine.json", "--result-dir", tmp_path / "named", report=tmp_path / "r.json")
    assert sorted(path.name for path in (tmp_path / "named").iterdir()) == ["mine-2.json", "mine-3.json", "mine.json"]
    sent = len(requests.get(url + "/sim/truth", timeout=10).json()["requests"])
    twice = bench("serve", *small, "--output-json", tmp_path / "a.json", "--output-csv", tmp_path / "." / "a.json",
                  code=1)
    assert "another output of this command goes there" in twice.stderr
    assert len(requests.get(url + "/sim/truth", timeout=10).json()["requests"]) == sent  # refused before


def test_connections_that_this_process_may_not_have(simulate):
    url = simulate("--ttft-ms", 300)
    args = [BINARY, "bench", "serve", "--base-url", url, "--num-prompts", "60", "--random-input-len", "4",
            "--random-output-len", "1", "--token-ids"]

    def with_few_files(*more):
        return subprocess.run([*args, *more], capture_output=True, text=True, timeout=60,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (96, 96)))

    short = with_few_files("--request-rate", "2000")
    assert short.returncode == 1 and "INVALID" in short.stdout
    assert re.search(r"[0-9]+ requests waited for a connection, of which this process may have 32", short.stdout)
    assert re.search(r"Successful requests: +60\b", short.stdout)
    strict = with_few_files("--max-concurrency", "50")
    assert strict.returncode == 1 and "need 114 open files, and this process may have 96" in strict.stderr
    assert with_few_files("--max-concurrency", "20").returncode in (0, 1)


def test_what_is_not_used_is_said(simulate):
    url = simulate("--null-server")
    small = ("serve", "--base-url", url, "--num-prompts", 2, *SMALL, "--token-ids")
    done = subprocess.run([BINARY, "bench", *map(str, small), "--burstiness", "0.5"], capture_output=True, text=True,
                          timeout=60)
    assert "note: --burstiness shapes the arrivals of --request-rate" in done.stderr
    assert "foo" in bench(*small, "--percentile-metrics", "ttft,foo", code=2).stderr


def test_a_server_that_goes_between_runs(simulate, tmp_path):
    """A server that ends while the first of three runs is measured."""
    process = subprocess.Popen([BINARY, "bench", "simulate", "--port", "0", "--ttft-ms", "2", "--itl-ms", "1"],
                               stdout=subprocess.PIPE, text=True)
    url = process.stdout.readline().split("ready on ")[1].split()[0]
    client = subprocess.Popen(
        [BINARY, "bench", "serve", "--base-url", url, "--max-concurrency", "1,2,4", "--num-prompts", "400",
         *map(str, SMALL), "--output-json", tmp_path / "r.json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True)
    deadline = time.monotonic() + 30
    while len(requests.get(url + "/sim/truth", timeout=5).json()["requests"]) < 5:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.kill()
    process.wait(10)
    process.stdout.close()
    _, err = client.communicate(timeout=60)
    assert client.returncode == 1
    assert "run 2 of 3 was not measured: " in err and "nor was the one after it" in err, err
    assert json.loads((tmp_path / "r.json").read_text())["failed"] > 0


def test_a_redirect_says_where_to():
    class Redirect(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(301)
            self.send_header("Location", "http://elsewhere" + self.path)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_POST = do_GET

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Redirect) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        for more in ((), ("--model", "m")):
            err = bench("serve", "--base-url", url, *more, code=1).stderr
            assert "it redirects to http://elsewhere/v1/" in err and "correct --base-url" in err, err
        server.shutdown()


def test_what_is_not_answered_when_the_drain_ends_has_failed(simulate, tmp_path):
    url = simulate("--ttft-ms", 1, "--stall-every", 10, "--stall-ms", 600_000)
    report = tmp_path / "report.json"
    done = bench("serve", "--base-url", url, "--request-rate", 200, "--num-prompts", 20, *SMALL, "--output-json", report,
                 "--drain-timeout-sec", 0.5, code=1)
    run = json.loads(report.read_text())
    assert run["failed"] == 2 and run["not_run"] == 0 and not run["valid"]
    assert "--drain-timeout-sec" in next(iter(run["failures"]))
    assert "INVALID: 2 of 20 requests failed" in done.stdout


def test_prompts_that_the_server_knows_from_the_run_before_are_noted(smol, tmp_path):
    args = ("--base-url", smol.base, "--max-concurrency", 2, "--num-prompts", 3, "--random-input-len", 64,
            "--random-output-len", 2, "--ignore-eos", "--seed", 7_777)
    first, _ = measure(*args, report=tmp_path / "a.json")
    again, run = measure(*args, report=tmp_path / "b.json")
    assert "prefix cache" not in first.stdout and "--seed" in again.stdout
    assert run["total_cached_tokens"] > 0 and any("prefix cache" in warning for warning in run["warnings"])
    compared = bench("compare", tmp_path / "a.json", tmp_path / "b.json")
    assert "TTFT does not compare" in compared.stdout


def test_a_server_that_is_not_ready_is_waited_for(simulate, tmp_path):
    url = simulate("--slow-start-sec", 1)
    done = bench("serve", "--base-url", url, "--num-prompts", 2, *SMALL, code=1)
    assert "--ready-check-timeout-sec" in done.stderr
    measure("--base-url", url, "--num-prompts", 2, *SMALL, "--ready-check-timeout-sec", 20, report=tmp_path / "r.json")


def test_what_is_wrong_is_one_sentence(simulate, tmp_path):
    def refusal(*args, code=1):
        done = bench("serve", *args, code=code)
        lines = [line for line in done.stderr.splitlines() if line.startswith("vivace: ")]
        assert len(lines) == 1, done.stderr
        return lines[0]

    assert "start the server" in refusal("--base-url", f"http://127.0.0.1:{free_port()}")
    url = simulate("--garbage-every", 1)
    assert "--model" in refusal("--base-url", url, "--model", "other")
    assert "--endpoint" in refusal("--base-url", url, "--endpoint", "/x/completions", "--model", "simulated")
    assert "does not answer as OpenAI's API does" in refusal("--base-url", url, "--model", "simulated")
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"prompt": "a b", "output_len": 2}\n{"prompt": \n')
    good = simulate()
    assert "line 2" in refusal("--base-url", good, "--dataset-name", "jsonl", "--dataset-path", broken)
    assert "days at this rate" in refusal("--base-url", good, "--request-rate", "0.001", "--num-prompts", 700,
                                       "--token-ids", *SMALL, code=2)
    assert "folder" in refusal("--base-url", good, "--output-json", tmp_path / "no" / "where.json")
    for args in (("--goodput", "first:3"), ("--request-rate", "0"), ("--num-promts", "3"), ("--extra-body", "[1]"),
                 ("--extra-body", '{"stream": false}'), ("--compat", "nothing"), ("--dataset-name", "nothing"),
                 ("--request-rate", "1e-12"), ("--burstiness", "1e-9"), ("--ramp-up-strategy", "linear"),
                 ("--base-url", "ftp://x"), ("--endpoint", "/v1/embeddings")):
        assert refusal(*args, code=2)


def test_a_rate_that_cannot_be_sent_is_said(simulate):
    url = simulate("--null-server")
    done = bench("serve", "--base-url", url, "--num-prompts", 300, "--request-rate", 1_000_000, *SMALL, code=1)
    assert "requests were due at" in done.stdout


def test_an_endless_answer_is_ended(simulate, tmp_path):
    url = simulate("--endless-every", 2)
    bench("serve", "--base-url", url, "--num-prompts", 2, "--max-concurrency", 1, *SMALL, "--output-json",
          tmp_path / "r.json", code=1)
    run = json.loads((tmp_path / "r.json").read_text())
    assert "does not end" in " ".join(run["failures"])


def test_a_first_answer_without_end_is_said(simulate):
    url = simulate("--endless-every", 1, "--itl-ms", 1)
    done = bench("serve", "--base-url", url, "--num-prompts", 12, "--max-concurrency", 3, *SMALL, code=1)
    assert "the stream does not end" in done.stderr


def test_what_completes_in_waves_compares_as_its_tokens_do(simulate, tmp_path):
    reports = [tmp_path / "fast.json", tmp_path / "slow.json"]
    for report, ttft, itl in zip(reports, (40, 60), (8, 12)):
        measure("--base-url", simulate("--ttft-ms", ttft, "--itl-ms", itl), "--max-concurrency", 8, "--num-prompts", 80,
                "--random-input-len", 8, "--random-output-len", 10, "--token-ids", report=report)
    figures = {f["name"]: f["against"][0]
               for f in json.loads(bench("compare", *reports, "--json").stdout)["runs"][0]["figures"]}
    requests_s, tokens_s = figures["request throughput"], figures["output throughput"]
    assert requests_s["verdict"] == tokens_s["verdict"]
    for end in ("low", "high"):  # with answers of one length they are one quantity
        assert requests_s[end] == pytest.approx(tokens_s[end], abs=0.01)


def test_max_rate_brackets_what_the_server_can_do(simulate, tmp_path):
    # One request at a time of 20 ms: 50 a second, and less with a queue that keeps the promise.
    url = simulate("--ttft-ms", 20, "--queue", 1)
    done = bench("max-rate", "--base-url", url, "--slo", "p50:ttft:100", "p99:e2el:60000", "--rate-low", 10,
                 "--trial-sec", 0.7, "--min-requests", 10, "--precision", 0.4, "--random-input-len", 4,
                 "--random-output-len", 1, "--output-json", tmp_path / "trials.json", "--output-html",
                 tmp_path / "trials.html", "--compat", "sglang")
    assert "kept" in done.stdout and "broken" in done.stdout
    saved = json.loads((tmp_path / "trials.json").read_text())
    search = saved["search"]
    assert search["finished"] and search["answer"] in done.stdout
    assert search["slo"][0] == {"statistic": "p50", "figure": "ttft", "most_ms": 100}
    # Trials are short and the machine may be busy, so the ends are wide; 80 a second cannot be kept, 5 can.
    assert 5 <= search["kept"] < search["broken"] <= 80
    assert search["kept"] <= 60
    assert len(saved["runs"]) == len(search["trials"]) >= 2
    assert all(trial["kept"] == (trial["rate"] <= search["kept"]) for trial in search["trials"])
    assert all(run["request_goodput"] is not None for run in saved["runs"])
    assert "Goodput against rate" in (tmp_path / "trials.html").read_text()
    assert "mean_e2e_latency_ms" in done.stdout


def test_a_trial_of_max_rate_is_as_long_as_it_says(simulate, tmp_path):
    url = simulate("--null-server")
    one = ("max-rate", "--base-url", url, "--slo", "mean:e2el:60000", "--random-input-len", 2, "--random-output-len", 1,
           "--token-ids", "--output-json", tmp_path / "trials.json")
    bench(*one, "--rate-low", 2_000, "--rate-high", 2_000, "--trial-sec", 0.6)
    saved = json.loads((tmp_path / "trials.json").read_text())
    assert saved["runs"][0]["num_requests"] == 1_200 and not saved["search"]["trials"][0]["cut"]
    done = bench(*one, "--rate-low", 100, "--rate-high", 100, "--trial-sec", 30, "--num-prompts", 20)
    trial = json.loads((tmp_path / "trials.json").read_text())["search"]["trials"][0]
    assert trial["cut"] and trial["seconds"] == pytest.approx(0.2)
    assert "only 0.2 s" in done.stdout and "Give more --num-prompts" in done.stdout


def test_what_an_interrupted_search_knows_is_kept(simulate, tmp_path):
    url = simulate("--ttft-ms", 1)
    report = tmp_path / "trials.json"
    process = subprocess.Popen(
        [BINARY, "bench", "max-rate", "--base-url", url, "--slo", "mean:e2el:60000", "--rate-low", "10", "--rate-high",
         "10", "--token-ids", "--trial-sec", "60", *map(str, SMALL), "--output-json", report],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    while len(requests.get(url + "/sim/truth", timeout=5).json()["requests"]) < 4:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130 and "interrupted" in err
    search = json.loads(report.read_text())["search"]
    assert not search["finished"] and search["kept"] is None and "not finished" in search["answer"]


def test_max_rate_needs_a_promise():
    assert "--slo" in bench("max-rate", code=2).stderr


def test_max_rate_refuses_a_promise_that_no_answer_could_keep(simulate):
    url = simulate()
    done = bench("max-rate", "--base-url", url, "--slo", "p99:itl:50", "--random-output-len", 1, code=2)
    assert "answers of one token have no time between tokens" in done.stderr


def test_a_real_server(smol, tmp_path):
    _, run = measure("--base-url", smol.base, "--max-concurrency", 3, "--num-prompts", 6, "--num-warmups", 1,
                     "--random-input-len", 40, "--random-output-len", 8, "--ignore-eos", "--temperature", 0,
                     report=tmp_path / "report.json", timeout=120)
    assert run["completed"] == 6 and run["model_id"] == "m"
    assert run["total_output_tokens"] == 48
    assert run["total_input_tokens"] == 6 * 40  # exact in the server's tokens
    assert run["itl_per_token"]
    assert run["server_samples"] and run["environment"]["server_version"]
    # What a first event holds has no time between it; one may hold two.
    assert run["mean_ttft_ms"] > 0 and 6 * 6 <= run["n_itl"] <= 6 * 7
