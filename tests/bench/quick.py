#!/usr/bin/env python3
"""Serving figures of this machine, through HTTP; with --llama-cpp as ratios against llama.cpp in the same run.

    ./dev bench [--llama-cpp] [--rounds 7] [--isa auto]

Rounds are interleaved (Vivace, llama.cpp, Vivace, ...) and medians are printed, because machines are noisy.
llama.cpp is llama-cpp-python 0.3.36 (pip install llama-cpp-python==0.3.36) on the same GGUF file, called in
process with the same number of threads, best of flash attention on and off; Vivace is measured through its
HTTP server, so its figures include parsing, JSON and sockets.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import signal
import socket
import statistics
import subprocess
import time

import requests

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "models/SmolLM2-135M-Instruct.Q4_1.gguf"
BINARY = ROOT / "build/release/vivace"
PROMPT_TOKENS = 512
DECODE_TOKENS = 128
SERVED = {"prompt": 104, "output": 64}  # tokens per request of the concurrency runs
VOCAB = range(100, 40_000)


def random_prompt(rng, count):
    return [rng.choice(VOCAB) for _ in range(count)]


class Vivace:
    def __init__(self, threads, isa):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.base = f"http://127.0.0.1:{self.port}"
        self.process = subprocess.Popen(
            [BINARY, "serve", MODEL, "--port", str(self.port), "--threads", str(threads), "--isa", isa],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.session = requests.Session()
        deadline = time.monotonic() + 60
        while True:
            try:
                if self.session.get(self.base + "/ready", timeout=5).status_code == 200:
                    return
            except requests.ConnectionError:
                pass
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("vivace did not start; run ./dev serve to see why")
            time.sleep(0.05)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)

    def prefill_seconds(self, prompt):
        began = time.perf_counter()
        answer = self.session.post(self.base + "/v1/completions",
                                   json={"prompt": prompt, "max_tokens": 1, "ignore_eos": True})
        assert answer.status_code == 200, answer.text
        return time.perf_counter() - began

    def decode_rate(self, prompt):
        """Tokens a second after the first one, of one stream."""
        times = stream_times(self.session, self.base, prompt, DECODE_TOKENS)
        return (DECODE_TOKENS - 1) / (times[-1] - times[0])

    def served_rate(self, concurrency, count, rng):
        prompts = [random_prompt(rng, SERVED["prompt"]) for _ in range(count)]

        def one(prompt):
            with requests.Session() as session:
                return stream_times(session, self.base, prompt, SERVED["output"])

        began = time.perf_counter()
        with concurrent.futures.ThreadPoolExecutor(concurrency) as pool:
            list(pool.map(one, prompts))
        return count * SERVED["output"] / (time.perf_counter() - began)


def stream_times(session, base, prompt, max_tokens):
    """Arrival times of the chunks that carry text; checks that every token came."""
    times, usage = [], None
    with session.post(base + "/v1/completions", stream=True, json={
            "prompt": prompt, "max_tokens": max_tokens, "ignore_eos": True, "stream": True, "temperature": 0,
            "stream_options": {"include_usage": True}}) as answer:
        assert answer.status_code == 200, answer.text
        for line in answer.iter_lines(chunk_size=1024):
            if not line.startswith(b"data: {"):
                continue
            event = json.loads(line[6:])
            if event["choices"]:
                times.append(time.perf_counter())
            usage = event.get("usage") or usage
    assert usage["completion_tokens"] == max_tokens
    return times


class LlamaCpp:
    def __init__(self, threads):
        import llama_cpp
        self.contexts = {}
        for flash in (False, True):
            self.contexts[flash] = llama_cpp.Llama(str(MODEL), n_ctx=2048, n_batch=512, n_ubatch=512, n_threads=threads,
                                                   n_threads_batch=threads, flash_attn=flash, verbose=False)

    def _each(self, run):
        return [run(context) for context in self.contexts.values()]

    def prefill_seconds(self, prompt):
        def run(llm):
            llm.reset()
            began = time.perf_counter()
            llm.eval(prompt)
            return time.perf_counter() - began
        return min(self._each(run))

    def decode_rate(self, prompt):
        def run(llm):
            llm.reset()
            llm.eval(prompt)
            began = time.perf_counter()
            for _ in range(DECODE_TOKENS // 2):
                llm.eval([llm.sample(temp=0.0)])
            return (DECODE_TOKENS // 2) / (time.perf_counter() - began)
        return max(self._each(run))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llama-cpp", action="store_true")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--isa", default="auto")
    parser.add_argument("--concurrency", type=int, nargs="*", default=[1, 8, 32])
    args = parser.parse_args()

    engines = {"vivace": Vivace(args.threads, args.isa)}
    if args.llama_cpp:
        engines["llama.cpp"] = LlamaCpp(args.threads)
    rng = random.Random(1)
    figures = {name: {"prompt": [], "decode": []} for name in engines}
    for round_ in range(args.rounds + 1):
        for name, engine in engines.items():
            prefill = PROMPT_TOKENS / engine.prefill_seconds(random_prompt(rng, PROMPT_TOKENS))
            decode = engine.decode_rate(random_prompt(rng, 16))
            if round_ > 0:  # the first one warms up
                figures[name]["prompt"].append(prefill)
                figures[name]["decode"].append(decode)
    median = {name: {k: statistics.median(v) for k, v in kinds.items()} for name, kinds in figures.items()}
    for name, kinds in median.items():
        print(f"{name:10} prompt {PROMPT_TOKENS}: {kinds['prompt']:8.0f} tok/s   "
              f"decode, one stream: {kinds['decode']:6.1f} tok/s")
    if args.llama_cpp:
        print("ratio      " + "   ".join(f"{kind}: {median['vivace'][kind] / median['llama.cpp'][kind]:.2f}x"
                                         for kind in ("prompt", "decode")))
    for concurrency in args.concurrency:
        rate = engines["vivace"].served_rate(concurrency, max(8, 3 * concurrency), rng)
        print(f"served, {SERVED['prompt']} in / {SERVED['output']} out, c={concurrency:<3} {rate:7.0f} output tok/s")
    engines["vivace"].stop()


if __name__ == "__main__":
    main()
