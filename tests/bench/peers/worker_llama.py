"""Times llama_decode in process; run by llama.cpp's Python. One JSON request a line on stdin, one answer a line.

    {"prompt": 512}                      seconds of one llama_decode of so many tokens
    {"batch": 8, "context": 1024, "steps": 5}   seconds of each step of 8 sequences with such a context

Each sequence has cache cells of its own (kv_unified off, seq_cp copies). The better of flash attention on and off
is taken. Logits of the last tokens are computed, nothing is sampled from them.
"""

import ctypes
import json
import random
import sys
import time

import llama_cpp

VOCAB = range(100, 40_000)


def quiet(_level, _text, _data):
    return None


class Context:
    def __init__(self, model, threads, sequences, tokens, flash):
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = sequences * ((tokens + 16 + 255) // 256 * 256)
        params.n_seq_max = sequences
        params.n_batch, params.n_ubatch = 2048, 512
        params.n_threads = params.n_threads_batch = threads
        params.flash_attn_type = 1 if flash else 0
        params.kv_unified = False
        params.no_perf = True
        self.handle = llama_cpp.llama_init_from_model(model, params)
        if not self.handle:
            raise SystemExit("llama.cpp could not make a context")
        self.memory = llama_cpp.llama_get_memory(self.handle)
        self.batch = llama_cpp.llama_batch_init(2048, 0, 1)

    def close(self):
        llama_cpp.llama_batch_free(self.batch)
        llama_cpp.llama_free(self.handle)

    def decode(self, rows):
        """rows: (token, position, sequence, wants logits). Seconds until the logits are there."""
        for i, (token, position, sequence, logits) in enumerate(rows):
            self.batch.token[i], self.batch.pos[i] = token, position
            self.batch.n_seq_id[i], self.batch.seq_id[i][0] = 1, sequence
            self.batch.logits[i] = logits
        self.batch.n_tokens = len(rows)
        began = time.perf_counter()
        if llama_cpp.llama_decode(self.handle, self.batch) != 0:
            raise SystemExit("llama_decode failed")
        llama_cpp.llama_synchronize(self.handle)
        return time.perf_counter() - began

    def fill(self, sequence, tokens):
        """Puts random tokens into a sequence; seconds."""
        seconds = 0
        for first in range(0, tokens, 2048):
            last = min(first + 2048, tokens)
            seconds += self.decode([(random.choice(VOCAB), at, sequence, at == tokens - 1) for at in range(first, last)])
        return seconds


class Worker:
    def __init__(self, path, threads):
        self.log = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(quiet)
        llama_cpp.llama_log_set(self.log, None)
        llama_cpp.llama_backend_init()
        params = llama_cpp.llama_model_default_params()
        self.model = llama_cpp.llama_model_load_from_file(path.encode(), params)
        self.threads = threads
        self.prompt_contexts = {}

    def prompt(self, tokens):
        seconds = []
        for flash in (False, True):
            if flash not in self.prompt_contexts:
                self.prompt_contexts[flash] = Context(self.model, self.threads, 1, 2048, flash)
                self.prompt_contexts[flash].fill(0, 64)  # warms up
            context = self.prompt_contexts[flash]
            llama_cpp.llama_memory_clear(context.memory, True)
            seconds.append(context.fill(0, tokens))
        return min(seconds)

    def steps(self, batch, context_tokens, steps):
        best = None
        for flash in (False, True):
            context = Context(self.model, self.threads, batch, context_tokens, flash)
            context.fill(0, context_tokens)
            for sequence in range(1, batch):
                llama_cpp.llama_memory_seq_cp(context.memory, 0, sequence, -1, -1)
            times = []
            for step in range(steps + 1):
                rows = [(random.choice(VOCAB), context_tokens + step, sequence, True) for sequence in range(batch)]
                times.append(context.decode(rows))
            context.close()
            times = times[1:]  # the first one copies the cache
            if best is None or sorted(times)[len(times) // 2] < sorted(best)[len(best) // 2]:
                best = times
        return best


def main():
    worker = Worker(sys.argv[1], int(sys.argv[2]))
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if "prompt" in request:
            answer = {"seconds": worker.prompt(request["prompt"])}
        else:
            answer = {"seconds": worker.steps(request["batch"], request["context"], request["steps"])}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
