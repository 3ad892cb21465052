"""Generated chat templates, rendered by our engine and by jinja2 set up as apply_chat_template does."""

import json
import pathlib
import re
import subprocess
import sys

import pytest

from conftest import BINARY, ROOT

pytest.importorskip("jinja2")
sys.path.insert(0, str(ROOT / "tests/oracles"))
import jinja_generator  # noqa: E402
import jinja_oracle  # noqa: E402

RENDER = pathlib.Path(BINARY).parent / "tests/render_templates"

# What we refuse and jinja2 renders: by reason, or by a part of the message.
BY_POLICY = {
    "step_limit": "templates have a budget of steps",
    "output_limit": "and of text",
    "memory_limit": "and of memory",
    "64 bits": "integers have 64 bits",
    "no attribute 'casefold'": "methods of strings that chat templates do not use",
    "no attribute 'isidentifier'": "likewise",
    "can't be sliced": "jinja2 takes a constant that has no slices for undefined, and only a constant",
}
# Text that is another one in each run of Python.
ADDRESS = re.compile(r" [ab]t 0x[0-9a-f]{6,}>", re.IGNORECASE)  # the filters of the generator make a b of an a


def render_all(cases):
    """Our answer for each case: its text, or (reason, message)."""
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    run = subprocess.run([RENDER], input=lines, capture_output=True, text=True, encoding="utf-8", timeout=120)
    assert run.returncode == 0, run.stderr
    answers = [json.loads(line) for line in run.stdout.split("\n") if line]
    assert len(answers) == len(cases)
    return [answer["text"] if "text" in answer else (answer["reason"], answer["message"]) for answer in answers]


def by_policy(refusal):
    return any(key == refusal[0] or key in refusal[1] for key in BY_POLICY)


def compare(cases):
    """The differences, and how many cases both rendered."""
    rendered, differences = 0, []
    for case, ours in zip(cases, render_all(cases), strict=True):
        theirs = jinja_oracle.render(case["template"], case["variables"])
        if theirs is None:
            if not isinstance(ours, tuple):
                differences.append((case, ours, theirs))
        elif isinstance(ours, tuple):
            if not by_policy(ours):
                differences.append((case, ours, theirs))
        elif not ADDRESS.search(theirs):
            rendered += 1
            if ours != theirs:
                differences.append((case, ours, theirs))
    return differences, rendered


def check(seed, count):
    cases = jinja_generator.cases(seed, count)
    differences, rendered = compare(cases)
    for case, ours, theirs in differences[:5]:
        print(json.dumps(case, ensure_ascii=False), f"\nours:   {ours!r}\njinja2: {theirs!r}\n")
    assert not differences, f"{len(differences)} of {count} differ"
    assert rendered > count * 0.5, "the generator makes too little that renders"


def test_generated_templates_render_as_in_jinja2():
    check(seed=1, count=200)


@pytest.mark.slow
def test_thousands_of_generated_templates_render_as_in_jinja2():
    check(seed=2, count=3000)
