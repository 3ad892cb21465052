"""Processes of the engines under measurement: started, stopped for the others' turns, ended by their own id."""

import json
import os
import select
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

READY_S = 900  # vLLM compiles the model first
ANSWER_S = 1800  # for the largest case a worker is asked for


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Process:
    """A process group of its own, which rests (SIGSTOP) whenever it is not its turn: an engine that only waits
    still takes time from the one that is measured."""

    def __init__(self, command, log, env=None, **options):
        self.command = [str(word) for word in command]
        self.log_path = log
        with open(log, "ab") as out:
            self.process = subprocess.Popen(self.command, stderr=out, process_group=0,
                                            env={**os.environ, **(env or {})}, **({"stdout": out} | options))

    def _signal(self, number):
        try:
            os.killpg(self.process.pid, number)  # the group process_group=0 made: nobody else's
        except ProcessLookupError:
            pass

    def rest(self):
        self._signal(signal.SIGSTOP)

    def wake(self):
        self._signal(signal.SIGCONT)

    def stop(self):
        self.wake()
        self._signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self.process.wait()

    def check(self):
        if self.process.poll() is not None:
            raise SystemExit(f"{self.command[0]} ended with {self.process.returncode}; see {self.log_path}")


class Server(Process):
    """An OpenAI-compatible server on 127.0.0.1."""

    def __init__(self, command, log, port, model="model", health="/health", env=None):
        super().__init__(command, log, env)
        self.url, self.model = f"http://127.0.0.1:{port}", model
        try:
            self._await_ready(self.url + health)
        except BaseException:
            self.stop()
            raise

    def _await_ready(self, url):
        deadline = time.monotonic() + READY_S
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(url, timeout=5) as answer:
                    if answer.status == 200:
                        return
            except (urllib.error.URLError, OSError):
                pass
            self.check()
            time.sleep(0.2)
        raise SystemExit(f"{self.command[0]} was not ready after {READY_S} s; see {self.log_path}")


class Worker(Process):
    """A script of ours inside a peer's Python: a line of JSON in, a line of JSON out."""

    def __init__(self, command, log):
        super().__init__(command, log, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            self._read()
        except BaseException:
            self.stop()
            raise

    def _read(self):
        # One line an answer, so nothing waits in the buffer when the pipe is empty.
        if not select.select([self.process.stdout], [], [], ANSWER_S)[0]:
            raise SystemExit(f"{self.command[0]} gave no answer in {ANSWER_S} s; see {self.log_path}")
        line = self.process.stdout.readline()
        if not line:
            self.process.wait(20)
            self.check()
        return json.loads(line)

    def ask(self, request):
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended, and reading says so
        return self._read()
