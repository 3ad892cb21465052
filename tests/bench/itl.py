#!/usr/bin/env python3
"""Gaps of running streams while a long prompt arrives, through HTTP, by --max-itl.

    .venv/bin/python tests/bench/itl.py [--max-itl 50 0] [--streams 8] [--prompt 4000] [--rounds 3]

One server per value, all alive at once, rounds interleaved. In a round: the prompt's time to first token alone;
then the streams start, and when all of them run the prompt (other tokens, so nothing is cached) arrives. Gaps are
those between the events of a stream, as this client's sockets see them, from the prompt's sending to its first
token. One thread, raw sockets, next to no parsing: on two cores a busier client would measure itself.
"""

import argparse
import json
import os
import pathlib
import random
import selectors
import signal
import socket
import statistics
import subprocess
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
VOCAB = range(100, 40_000)
SETTLE_EVENTS = 24  # of every stream before the prompt is sent, and after it
STREAM_PROMPT = 64
EVENT = b"data: {"


class Server:
    def __init__(self, binary, model, flags):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.process = subprocess.Popen([binary, "serve", model, "--port", str(self.port), "--weight-cache", "off",
                                         *flags], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self._await_ready(flags)
        except BaseException:
            self.stop()
            raise

    def _await_ready(self, flags):
        for _ in range(2400):
            if self.process.poll() is not None:
                raise SystemExit(f"the server ended with {self.process.returncode}; flags: {flags}")
            try:
                self.get("/ready")
                return
            except OSError:
                time.sleep(0.05)
        raise SystemExit("the server did not get ready")

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=30) as answer:
            return answer.read().decode()

    def metrics(self):
        """Sample with its labels, model_name aside -> value."""
        values = {}
        for line in self.get("/metrics").splitlines():
            if not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                labels = [x for x in name.partition("{")[2].rstrip("}").split(",") if x and "model_name" not in x]
                values[name.partition("{")[0] + "".join(sorted(labels))] = float(value)
        return values

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Stream:
    """A streaming completion; `times` are those of its events that carry a token."""

    def __init__(self, server, prompt, max_tokens):
        body = json.dumps({"prompt": prompt, "max_tokens": max_tokens, "ignore_eos": True, "temperature": 0,
                           "stream": True, "return_token_ids": True}).encode()
        self.times, self.ended, self._tail = [], False, b""
        self.socket = socket.create_connection(("127.0.0.1", server.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sent = time.perf_counter()
        self.socket.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                            b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    def read(self):
        data = self.socket.recv(1 << 16)
        now = time.perf_counter()
        self.ended = not data
        data = self._tail + data
        self.times += [now] * data.count(EVENT)
        self._tail = data[-len(EVENT) + 1:]  # an event may be split between reads


def wait(selector, until):
    deadline = time.perf_counter() + 300
    while not until():
        for key, _ in selector.select(30):
            key.data.read()
            if key.data.ended:
                selector.unregister(key.fileobj)
        assert time.perf_counter() < deadline, "nothing comes"


def start(selector, server, prompt, max_tokens):
    stream = Stream(server, prompt, max_tokens)
    selector.register(stream.socket, selectors.EVENT_READ, stream)
    return stream


def random_prompt(rng, count):
    return [rng.choice(VOCAB) for _ in range(count)]


def prompt_alone(server, prompt):
    with selectors.DefaultSelector() as selector:
        stream = start(selector, server, prompt, 1)
        wait(selector, lambda: stream.times)
        stream.socket.close()
    return stream.times[0] - stream.sent


def mixed_round(server, rng, streams, prompt_tokens):
    alone = prompt_alone(server, random_prompt(rng, prompt_tokens))
    with selectors.DefaultSelector() as selector:
        running = [start(selector, server, random_prompt(rng, STREAM_PROMPT), 4000) for _ in range(streams)]
        wait(selector, lambda: all(len(s.times) >= SETTLE_EVENTS for s in running))
        before = server.metrics()
        prompt = start(selector, server, random_prompt(rng, prompt_tokens), 2)
        wait(selector, lambda: prompt.times)
        after = server.metrics()
        sent, first = prompt.sent, prompt.times[0]
        counts = [len(s.times) for s in running]
        wait(selector, lambda: all(len(s.times) >= n + SETTLE_EVENTS for s, n in zip(running, counts)))
        for s in [*running, prompt]:
            s.socket.close()
    gaps, quiet = [], []
    for s in running:
        for a, b in zip(s.times[4:], s.times[5:]):
            if a >= first + 0.1 or b <= sent:
                quiet.append(b - a)
            elif b > sent and a < first:
                gaps.append(b - a)
    ttft = first - sent
    decodes = len(gaps) / streams * statistics.median(quiet)
    return {"gaps": gaps, "quiet": statistics.median(quiet), "alone": alone, "ttft": ttft,
            "ratio": (ttft - decodes) / alone,
            "metrics": {name: after[name] - before.get(name, 0) for name in after}}


def percentile(values, share):
    values = sorted(values)
    return values[min(int(share * len(values)), len(values) - 1)]


def report(value, rounds):
    gaps = [g for r in rounds for g in r["gaps"]]
    ms = 1e3
    median = lambda name: statistics.median(r[name] for r in rounds)
    total = lambda name: sum(r["metrics"].get(name, 0) for r in rounds)
    steps = total("vivace:engine_steps_total")
    time_us = {part: total(f'vivace:engine_step_microseconds_totalpart="{part}"')
               for part in ("kernels", "sampling", "other")}
    predicted = total("vivace:mixed_step_predicted_microseconds_total")
    actual = total("vivace:mixed_step_microseconds_total")
    mixed = total("vivace:mixed_steps_total")
    print(f"| {value:g} | {median('quiet') * ms:.1f} | {percentile(gaps, 0.5) * ms:.1f} | "
          f"{percentile(gaps, 0.99) * ms:.1f} | {max(gaps) * ms:.1f} | {median('alone') * ms:.0f} | "
          f"{median('ttft') * ms:.0f} | {median('ratio'):.2f} | "
          f"{total('vivace:mixed_step_prompt_tokens_total') / max(mixed, 1):.0f} | "
          f"{predicted / actual if actual else 0:.2f} | "
          f"{100 * time_us['other'] / max(sum(time_us.values()), 1):.1f} % of {steps:.0f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=ROOT / "build/release/vivace")
    parser.add_argument("--model", default=ROOT / "models/SmolLM2-135M-Instruct.Q4_1.gguf")
    parser.add_argument("--max-itl", type=float, nargs="+", default=[50, 0])
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--prompt", type=int, default=4000, help="tokens")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--flags", nargs="*", default=[], help="more flags of vivace serve, without their dashes")
    args = parser.parse_args()

    more = [word if i % 2 else "--" + word for i, word in enumerate(args.flags)]
    servers = {}
    rounds = {value: [] for value in args.max_itl}
    rng = random.Random(1)
    try:
        for value in rounds:
            servers[value] = Server(args.binary, args.model,
                                    ["--max-itl", str(value), "--threads", str(args.threads), *more])
        for _ in range(args.rounds):
            for value, server in servers.items():
                rounds[value].append(mixed_round(server, rng, args.streams, args.prompt))
        print(f"{args.streams} streams, a prompt of {args.prompt} tokens arrives; ms, {args.rounds} rounds, "
              f"gaps pooled, the rest medians; (TTFT - the decodes' own time) / alone")
        print("| --max-itl | gap without prompt | gap p50 | p99 | max | TTFT alone | TTFT beside streams | ratio | "
              "chunk | predicted/actual | outside kernels and sampling, of steps |")
        print("|---|---|---|---|---|---|---|---|---|---|---|")
        for value in servers:
            report(value, rounds[value])
    finally:
        for server in servers.values():
            server.stop()


if __name__ == "__main__":
    main()
