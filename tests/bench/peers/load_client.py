"""A light load client for OpenAI-compatible servers: one thread, one selector, raw sockets.

It shares the machine with the server it measures, so it does as little as it can: requests are bytes made before
the run, answers are only searched for event marks, and the one thing parsed is the usage at the end. It reports
its own share of a processor.
"""

import json
import re
import selectors
import socket
import time
import urllib.parse

EVENT = b"data: {"
USAGE = re.compile(rb'"completion_tokens"\s*:\s*(\d+)')
TAIL = 8192  # bytes kept of an answer: more than the event that carries usage
CHUNK = 1 << 16
DEADLINE_S = 600


class Broken(Exception):
    """An engine that gave anything but the tokens asked for."""


def request_bytes(url, model, prompt, max_tokens):
    parts = urllib.parse.urlsplit(url)
    body = json.dumps({"model": model, "prompt": prompt, "max_tokens": max_tokens, "temperature": 0, "stream": True,
                       "ignore_eos": True, "cache_prompt": False, "stream_options": {"include_usage": True}}).encode()
    head = (f"POST {parts.path.rstrip('/')}/v1/completions HTTP/1.1\r\nHost: {parts.netloc}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n")
    return head.encode() + body


class Stream:
    """One request on the wire."""

    def __init__(self, address, data):
        self.sent_at = time.perf_counter()
        self.first_at = self.last_at = None
        self.tail = b""
        self.head = b""
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.sendall(data)
        self.socket.setblocking(False)

    def read(self):
        """Takes what has come; True at the end of the answer."""
        data = self.socket.recv(CHUNK)
        if not data:
            self.socket.close()
            return True
        if len(self.head) < 16:
            self.head += data[:16]
        # A mark may be cut in two by the network.
        if EVENT in self.tail[-len(EVENT) + 1:] + data:
            self.last_at = time.perf_counter()
            self.first_at = self.first_at or self.last_at
        self.tail = (self.tail + data)[-TAIL:]
        return False

    def figures(self, wanted):
        if b" 200 " not in self.head or self.first_at is None:
            raise Broken((self.head + b" ... " + self.tail[-600:]).decode(errors="replace"))
        usage = USAGE.findall(self.tail)
        count = int(usage[-1]) if usage else None
        if count != wanted:
            raise Broken(f"{count} tokens instead of {wanted}")
        return {"ttft": self.first_at - self.sent_at, "tpot": (self.last_at - self.first_at) / (wanted - 1),
                "e2e": self.last_at - self.sent_at}


def drive(url, model, prompts, max_tokens, concurrency):
    """Sends all prompts (lists of token ids), `concurrency` at a time. Returns the figures of the run."""
    parts = urllib.parse.urlsplit(url)
    address = (parts.hostname, parts.port)
    waiting = [request_bytes(url, model, prompt, max_tokens) for prompt in reversed(prompts)]
    done = []
    selector = selectors.DefaultSelector()
    began, cpu = time.perf_counter(), time.process_time()

    def start():
        stream = Stream(address, waiting.pop())
        selector.register(stream.socket, selectors.EVENT_READ, stream)

    try:
        for _ in range(min(concurrency, len(waiting))):
            start()
        while selector.get_map():
            if time.perf_counter() - began > DEADLINE_S:
                raise Broken(f"not done after {DEADLINE_S} s")
            for key, _ in selector.select(timeout=5):
                stream = key.data
                if not stream.read():
                    continue
                selector.unregister(key.fileobj)
                done.append(stream)
                if waiting:
                    start()
    finally:
        for key in list(selector.get_map().values()):
            key.data.socket.close()
        selector.close()
    seconds = time.perf_counter() - began
    client = (time.process_time() - cpu) / seconds
    return summary([stream.figures(max_tokens) for stream in done], max_tokens, seconds) | {"client_cpu": client}


def percentile(values, share):
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def summary(requests, max_tokens, seconds):
    """Of a list of {"ttft", "tpot"} in seconds; the same for every way of driving an engine."""
    figures = {"requests": len(requests), "seconds": seconds, "output_tok_s": len(requests) * max_tokens / seconds}
    for name in ("ttft", "tpot"):
        values = [request[name] * 1e3 for request in requests]
        figures[f"{name}_ms_mean"] = sum(values) / len(values)
        figures[f"{name}_ms_p90"] = percentile(values, 0.9)
    return figures
