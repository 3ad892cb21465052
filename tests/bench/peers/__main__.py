#!/usr/bin/env python3
"""Vivace and its peers on the same model, machine and run, as ratios.

    ./dev bench peers                                 everything; hours on two cores
    ./dev bench peers --quick                         a few minutes: prompt 512, decoding, one shape at 1 and 8 clients
    ./dev bench peers --peers llama.cpp --cases kernel --formats Q4_1,BF16 --prompts 512 --batches 1,8 --contexts 128
    ./dev bench peers --url mine=http://127.0.0.1:9000/model-name --cases served

Engines take turns within each case and round, an engine whose turn it is not rests (SIGSTOP), medians are
reported. What was measured is kept in the results file and not measured again; --redo ENGINE forgets one
engine's, --fresh all. Peers come from PyPI at pinned versions into .peers/. Writes ratios.json, ratios.md and
ratios.svg beside the results.
"""

import argparse
import os
import signal
import sys

import cases
import report
from engines import LlamaCpp, OpenVino, Remote, Vivace, Vllm
from load_client import Broken
from places import ROOT, Places, say
from results import Results

PEERS = {"llama.cpp": LlamaCpp, "openvino": OpenVino, "vllm": Vllm}


def parse():
    parser = argparse.ArgumentParser(prog="./dev bench peers", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    words = lambda text: [word for word in text.split(",") if word]  # noqa: E731
    parser.add_argument("--peers", type=words, default=list(PEERS), help="of " + ", ".join(PEERS) + "; '' for none")
    parser.add_argument("--cases", type=words, default=["kernel", "served"], help="kernel, served")
    numbers = lambda text: tuple(int(word) for word in words(text))  # noqa: E731
    shapes = lambda text: tuple(tuple(map(int, word.split("/"))) for word in words(text))  # noqa: E731
    for name, kind, what in (("prompts", numbers, "prompt lengths"), ("batches", numbers, "sequences decoded at once"),
                             ("contexts", numbers, "tokens each has"), ("shapes", shapes, "IN/OUT tokens of a request"),
                             ("clients", numbers, "requests at a time")):
        told = ",".join("/".join(map(str, x)) if isinstance(x, tuple) else str(x) for x in cases.ALL[name])
        parser.add_argument(f"--{name}", type=kind, default=None, help=f"{what} (default: {told}); '' for none")
    parser.add_argument("--formats", type=words, default=None, help="of " + ", ".join(Vivace.formats))
    parser.add_argument("--url", action="append", default=[], help="NAME=http://host:port[/model]: a server that runs")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--isa", default="auto", help="Vivace's tier")
    parser.add_argument("--binary", default=str(ROOT / "build/release/vivace"), help="another build of Vivace")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--without-vivace", action="store_true", help="collect the peers alone")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--redo", action="append", default=[], metavar="ENGINE")
    parser.add_argument("--folder", default=str(ROOT / ".peers"))
    parser.add_argument("--results", default=None)
    args = parser.parse_args()
    for what, given, known in (("peer", args.peers, PEERS), ("kind of case", args.cases, ("kernel", "served")),
                               ("format", args.formats or (), Vivace.formats)):
        for name in given:
            if name not in known:
                parser.error(f"no {what} {name}; there are {', '.join(known)}")
    usual = cases.QUICK if args.quick else cases.ALL
    args.chosen = {name: usual[name] if getattr(args, name) is None else getattr(args, name) for name in usual}
    return args


class Turns:
    """One case over all engines and formats: started once, then measured in turns."""

    def __init__(self, level, case, contestants, results):
        self.level, self.case, self.results = level, case, results
        self.contestants = contestants  # [(engine name, format, runner)]

    def round(self, number, prompts):
        for name, fmt, runner in self.contestants:
            key = (self.level, self.case.key, name, fmt, number)
            case = self.case.lacking(self.results.items(*key))
            if case is None:
                continue
            runner.wake()
            try:
                metrics = runner.measure(case, prompts) if self.level == "served" else runner.measure(case)
            except Broken as fault:
                say(f"{name} {fmt}, {self.case.key}: {fault}")
                continue
            finally:
                runner.rest()
            metrics = {"all": metrics} if self.level == "served" else metrics
            self.results.put(*key, metrics=metrics)
            say(f"{self.level} {self.case.key} round {number}: {name} {fmt} {short(metrics)}")


def short(metrics):
    if "all" in metrics:
        m = metrics["all"]
        return (f"{m['output_tok_s']:.0f} tok/s, TTFT {m['ttft_ms_mean']:.0f} ms, TPOT {m['tpot_ms_mean']:.1f} ms, "
                f"client {m['client_cpu'] * 100:.1f} %")
    return ", ".join(f"{item}: {int(item) / m['seconds']:.0f} tok/s" for item, m in metrics.items())


class Runners:
    """Started engines, kept as long as they serve the next case as well."""

    def __init__(self):
        self.started = {}

    def get(self, key, start):
        if key not in self.started:
            self.started[key] = start()
            if self.started[key] is not None:
                self.started[key].rest()
        return self.started[key]

    def stop(self, keep=lambda key: False):
        for key in [key for key in self.started if not keep(key)]:
            runner = self.started.pop(key)
            if runner is not None:
                runner.stop()


def missing(results, level, case, name, fmt, rounds):
    return any(case.lacking(results.items(level, case.key, name, fmt, number)) for number in range(rounds))


def run_kernels(args, engines, results, runners):
    for fmt in args.formats or Vivace.formats:
        for case in cases.kernel_cases(args.chosen):
            contestants = []
            for engine in engines:
                if fmt in engine.formats and missing(results, "kernel", case, engine.name, fmt, args.rounds):
                    runner = runners.get((engine.name, fmt), lambda e=engine: e.kernel(fmt))
                    contestants.append((engine.name, fmt, runner))
            turns = Turns("kernel", case, contestants, results)
            for number in range(args.rounds):
                turns.round(number, None)
        runners.stop()


def warm(name, runner):
    """The runner after some requests; None if it cannot answer them."""
    try:
        runner.measure(cases.WARM_UP, cases.WARM_UP.prompts("warm-up"))
    except Broken as fault:
        say(f"{name} is left out: {fault}")
        runner.stop()
        return None
    except BaseException:
        runner.stop()
        raise
    return runner


def run_served(args, engines, results, runners):
    for case in cases.served_cases(args.chosen):
        contestants = []
        for engine in engines:
            for fmt in engine.served_formats:
                if args.formats and fmt not in args.formats and fmt in Vivace.formats:
                    continue
                if not missing(results, "served", case, engine.name, fmt, args.rounds):
                    continue
                clients = case.concurrency if engine.needs_concurrency else None
                key = (engine.name, fmt, clients)
                runner = runners.get(key, lambda e=engine, f=fmt: warm(e.name, e.served(f, case.concurrency)))
                if runner is not None:
                    contestants.append((engine.name, fmt, runner))
        turns = Turns("served", case, contestants, results)
        for number in range(args.rounds):
            turns.round(number, case.prompts(number))
        runners.stop(keep=lambda key: key[2] in (None, case.concurrency))
    runners.stop()


def main():
    args = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM; call again to go on"))
    places = Places(args.folder)
    path = args.results or places.folder / "results.json"
    if args.fresh and os.path.exists(path):
        os.remove(path)
    results = Results(path, "./dev bench peers " + " ".join(sys.argv[1:]))
    for name in args.redo:
        results.drop(name)
    engines = [] if args.without_vivace else [Vivace(places, args.threads, args.isa, args.binary)]
    engines += [PEERS[name](places, args.threads) for name in args.peers]
    engines += [Remote(text) for text in args.url]
    runners = Runners()
    try:
        if "kernel" in args.cases:
            run_kernels(args, engines, results, runners)
        if "served" in args.cases:
            run_served(args, engines, results, runners)
    finally:
        runners.stop()
    report.write(results, results.path.parent)
    print(report.markdown(results))
    say(f"written: {results.path.parent}/ratios.json, ratios.md, ratios.svg")


if __name__ == "__main__":
    main()
