"""Of the speed gate: what passes it, what does not, and that it checks something on every tier there is."""

import collections
import json
import pathlib
import re
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import gate  # noqa: E402

FLOORS = json.loads(gate.FLOORS.read_text())
TIERS = re.findall(r'return "(avx\w*)";', (gate.ROOT / "src/base/cpu.cc").read_text())


def report(isa, macs_a_cycle=0):
    macs = [{"kind": "vpdpbusd zmm", "threads": 1, "macs_per_second": macs_a_cycle * 3e9}] if macs_a_cycle else []
    return {"isa": isa, "limits": {"clock_hz_after": 3e9, "macs": macs}}


@pytest.mark.parametrize("isa", TIERS)
def test_every_tier_has_floors_and_each_is_of_something_measured(isa, monkeypatch):
    step = {"limit_seconds": 1.0, "fastest": 2.0, "kernel_share": 0.97}
    monkeypatch.setattr(gate, "steps", lambda binary, *flags, fractions=False: (
        collections.defaultdict(lambda: step), report(isa, 64 if "512" in isa else 0)))
    values, names = gate.measure("vivace")
    assert set(gate.floors_of(names, FLOORS)) <= set(values)


def test_a_class_goes_before_its_tier():
    general, narrow = FLOORS["avx512"], FLOORS["avx512, 64 MAC a cycle"]
    assert gate.floors_of(gate.classes(report("avx512bf16", 63.5)), FLOORS) == general | narrow
    assert gate.floors_of(gate.classes(report("avx512", 126)), FLOORS) == general


def test_a_tier_without_floors_is_an_error():
    with pytest.raises(SystemExit, match="no floors for avx1024"):
        gate.floors_of(gate.classes(report("avx1024")), FLOORS)


def outcome(monkeypatch, isa, *tries):
    left = list(tries)

    def measure(_binary):
        values = left.pop(0)
        if isinstance(values, Exception):
            raise values
        return values, gate.classes(report(isa))

    monkeypatch.setattr(gate, "measure", measure)
    return gate.main([])


def of_the_floor(factor, **others):
    return {name: floor * others.get(name.split()[0], factor) for name, floor in FLOORS["avx2"].items()}


def test_a_loss_in_all_tries_fails_and_noise_in_some_does_not(monkeypatch):
    good, bad = of_the_floor(1.4), of_the_floor(0.98)
    noise = gate.Disturbed("the limit was measured wrongly")
    assert outcome(monkeypatch, "avx2", good) == 0
    assert outcome(monkeypatch, "avx2", bad, noise, good) == 0
    assert outcome(monkeypatch, "avx2", bad, bad, bad) == 1
    assert outcome(monkeypatch, "avx2", noise, noise, noise) == 1
    # Each check by itself: one that is good in the first try, others in the second.
    assert outcome(monkeypatch, "avx2", of_the_floor(0.9, prompt=1.1), of_the_floor(1.1, prompt=0.9)) == 0


def test_what_was_not_measured_does_not_pass(monkeypatch):
    part = of_the_floor(2.0)
    part.pop("decode 8, share inside kernels")
    assert outcome(monkeypatch, "avx2", part, part, part) == 1


def test_the_reference_tier_is_not_meant_to_be_fast(monkeypatch):
    assert outcome(monkeypatch, "reference", {}) == 0
