"""The engines, one class each: which formats they run, how they are started, how a case is measured on them.

`kernel(fmt)` gives something with measure(KernelCase) -> {item: figures}, an item per prompt length or batch;
`served(fmt, c)` gives something with measure(ServedCase, prompts) -> figures. Either is None where an engine has no such thing.
"""

import json
import subprocess
import sys

import load_client
from places import HERE
from process import Server, Worker, free_port


class Served:
    """A server and the load client."""

    def __init__(self, server):
        self.server = server

    def measure(self, case, prompts):
        return load_client.drive(self.server.url, self.server.model, prompts, case.output, case.concurrency)

    def wake(self):
        self.server.wake()

    def rest(self):
        self.server.rest()

    def stop(self):
        self.server.stop()


class Vivace:
    name = "vivace"
    formats = ("Q4_1", "Q4_0", "Q8_0", "Q4_K_M", "BF16")
    served_formats = ("Q4_0", "Q8_0")
    needs_concurrency = False

    def __init__(self, places, threads, isa, binary):
        self.places, self.threads, self.isa, self.binary = places, threads, isa, binary

    class Kernel:
        def __init__(self, engine, fmt):
            self.engine, self.model = engine, engine.places.model(fmt)

        def measure(self, case):
            lists = {"prompt": [], "decode": [], "context": []}
            if case.prompts:
                lists["prompt"] = case.prompts
            else:
                lists["decode"], lists["context"] = case.batches, [case.context]
            flags = [f"--{name}={','.join(map(str, values)) or 'none'}" for name, values in lists.items()]
            done = subprocess.run(
                [self.engine.binary, "bench", "steps", self.model, "--threads", str(self.engine.threads),
                 "--isa", self.engine.isa, "--rounds", "3", "--json", *flags],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
            if not done.stdout:
                raise load_client.Broken(f"vivace bench steps: {done.stderr.strip()}")
            if done.returncode != 0:
                print(done.stderr, file=sys.stderr)  # a fraction above the limit: kept, and said
            report = json.loads(done.stdout)
            out = {}
            for step in report["steps"]:
                key = str(step["prompt"] or step["batch"])
                out[key] = {"seconds": step["seconds"], "fraction_of_limit": step["fraction_of_limit"],
                            "binds": step["binds"], "outside_kernels": 1 - step["kernel_share"]}
            return out

        def wake(self):
            pass

        rest = stop = wake

    def kernel(self, fmt):
        return self.Kernel(self, fmt)

    def served(self, fmt, concurrency):
        port = free_port()
        return Served(Server(
            [self.binary, "serve", self.places.model(fmt), "--port", port, "--threads", self.threads, "--isa", self.isa,
             "--served-model-name", "model", "--max-num-seqs", "64", "--max-model-len", "2048",
             "--weight-cache", "off"],
            self.places.logs / f"vivace-{fmt}.log", port, health="/ready"))


class LlamaCpp:
    name = "llama.cpp"
    formats = Vivace.formats
    served_formats = ("Q4_0", "Q8_0")
    needs_concurrency = True  # llama-server is started for so many slots

    def __init__(self, places, threads):
        self.places, self.threads = places, threads

    class Kernel(Worker):
        def measure(self, case):
            if case.prompts:
                return {str(n): {"seconds": self.ask({"prompt": n})["seconds"]} for n in case.prompts}
            out = {}
            for batch in case.batches:
                times = sorted(self.ask({"batch": batch, "context": case.context, "steps": 5})["seconds"])
                out[str(batch)] = {"seconds": times[len(times) // 2]}
            return out

    def kernel(self, fmt):
        return self.Kernel([self.places.llama_cpp(), HERE / "worker_llama.py", self.places.model(fmt), self.threads],
                           self.places.logs / f"llama-{fmt}.log")

    def served(self, fmt, concurrency):
        port = free_port()
        tokens = concurrency * 1024  # the longest case has 896 a slot
        return Served(Server(
            [self.places.llama_server(), "-m", self.places.model(fmt), "--host", "127.0.0.1", "--port", port,
             "-t", self.threads, "-tb", self.threads, "-np", concurrency, "-c", tokens, "--no-webui"],
            self.places.logs / f"llama-server-{fmt}.log", port))


class OpenVino:
    name = "openvino"
    formats = ()
    served_formats = ("Q4_0", "Q8_0")
    needs_concurrency = False

    def __init__(self, places, threads):
        self.places, self.threads = places, threads

    class Offline(Worker):
        def measure(self, case, prompts):
            return self.ask({"prompts": prompts, "max_tokens": case.output, "concurrency": case.concurrency})

    def kernel(self, fmt):
        return None

    def served(self, fmt, concurrency):
        return self.Offline([self.places.openvino(), HERE / "worker_openvino.py", self.places.model(fmt), self.threads],
                            self.places.logs / f"openvino-{fmt}.log")


class Vllm:
    name = "vllm"
    formats = ()
    served_formats = ("BF16",)
    needs_concurrency = False
    CACHE_GB = "4"

    def __init__(self, places, threads):
        self.places, self.threads = places, threads

    def kernel(self, fmt):
        return None

    def served(self, fmt, concurrency):
        port = free_port()
        return Served(Server(
            [self.places.vllm(), "-m", "vllm.entrypoints.openai.api_server", "--model", self.places.hf_folder(),
             "--served-model-name", "model", "--dtype", "bfloat16", "--host", "127.0.0.1", "--port", port,
             "--max-model-len", "2048", "--max-num-seqs", "64", "--no-enable-prefix-caching"],
            self.places.logs / "vllm.log", port,
            env={"VLLM_CPU_KVCACHE_SPACE": self.CACHE_GB, "VLLM_CPU_OMP_THREADS_BIND": f"0-{self.threads - 1}",
                 "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"}))


class Remote:
    """A server that runs already, given by --url name=http://host:port[/model]."""

    formats = ()
    served_formats = ("as served",)
    needs_concurrency = False

    def __init__(self, text):
        self.name, _, rest = text.partition("=")
        scheme, _, address = rest.partition("://")
        host, _, self.model = address.partition("/")
        if not self.name or scheme != "http" or ":" not in host:
            raise SystemExit(f"--url {text}: give name=http://host:port or name=http://host:port/model")
        self.url = f"http://{host}"
        self.model = self.model or "model"

    def kernel(self, fmt):
        return None

    def served(self, fmt, concurrency):
        return self

    def measure(self, case, prompts):
        return load_client.drive(self.url, self.model, prompts, case.output, case.concurrency)

    def wake(self):
        pass

    rest = stop = wake
