"""Serves requests through OpenVINO GenAI's continuous batching, in process; run by its Python.

One JSON request a line on stdin, one answer a line: {"prompts": [[ids]], "max_tokens": 64, "concurrency": 8} is
answered with the figures load_client.summary makes. There is no HTTP in between, which favours it.
"""

import json
import sys
import time

import numpy
import openvino
import openvino_genai

from load_client import summary

CACHE_GB = 2


def pipeline(model, threads):
    scheduler = openvino_genai.SchedulerConfig()
    scheduler.cache_size = CACHE_GB
    scheduler.enable_prefix_caching = False
    return openvino_genai.ContinuousBatchingPipeline(model, scheduler, "CPU", {"INFERENCE_NUM_THREADS": threads})


class Request:
    def __init__(self, pipe, number, prompt, config):
        self.sent_at = time.perf_counter()
        self.first_at = self.last_at = None
        self.tokens = 0
        ids = openvino.Tensor(numpy.array([prompt], dtype=numpy.int64))
        self.handle = pipe.add_request(number, ids, config)

    def take(self, wanted):
        """Reads what has come; True when all of it has."""
        while self.handle.can_read():
            self.tokens += sum(len(output.generated_ids) for output in self.handle.read().values())
            self.last_at = time.perf_counter()
            self.first_at = self.first_at or self.last_at
        return self.tokens >= wanted

    def figures(self):
        return {"ttft": self.first_at - self.sent_at, "tpot": (self.last_at - self.first_at) / (self.tokens - 1)}


def drive(pipe, prompts, max_tokens, concurrency):
    config = openvino_genai.GenerationConfig()
    config.max_new_tokens = max_tokens
    config.ignore_eos = True
    config.do_sample = False
    waiting = list(enumerate(prompts))[::-1]
    running, done = [], []
    began = time.perf_counter()
    while waiting or running:
        while waiting and len(running) < concurrency:
            number, prompt = waiting.pop()
            running.append(Request(pipe, number, prompt, config))
        pipe.step()
        ended = [request for request in running if request.take(max_tokens)]
        running = [request for request in running if request not in ended]
        done += ended
    while pipe.has_non_finished_requests():
        pipe.step()
    seconds = time.perf_counter() - began
    return summary([request.figures() for request in done], max_tokens, seconds) | {"client_cpu": 0.0}


def main():
    pipe = pipeline(sys.argv[1], int(sys.argv[2]))
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(drive(pipe, request["prompts"], request["max_tokens"], request["concurrency"])), flush=True)


if __name__ == "__main__":
    main()
