"""--max-itl: a long prompt that arrives does not stall running streams, and is not starved by them."""

import random
import subprocess
import sys

import pytest

from conftest import BINARY, MODEL, ROOT, need

sys.path.append(str(ROOT / "tests/bench"))
import itl  # noqa: E402


TRIES = 3  # a machine that is busy with other things may spoil one


@pytest.mark.slow
def test_a_long_prompt_does_not_stall_streams(make_server):
    """Ratios of one run: a slow machine slows both sides."""
    servers = {target: make_server(need(MODEL), "--served-model-name", "m", "--max-itl", target) for target in (50, 0)}
    for number in range(TRIES):
        rounds = {}
        for target, server in servers.items():
            rounds[target] = itl.mixed_round(server, random.Random(10 * number + target), streams=8, prompt_tokens=1200)
            server.wait_idle()
        stall, waited = compare(rounds[50], rounds[0])
        if stall > 2 and waited < 3:
            break
    # Steps of whole chunks take some hundred milliseconds beside a long prompt's.
    assert stall > 2, "with a target, gaps are hardly shorter than without"
    assert waited < 3, "the prompt waited much longer than its own work and the streams' take"
    assert 16 <= chunk(rounds[50]) < chunk(rounds[0]) / 2


def compare(with_target, without):
    gaps = [itl.percentile(figures["gaps"], 0.9) for figures in (without, with_target)]
    return gaps[0] / gaps[1], with_target["ratio"]


def chunk(figures):
    """Prompt tokens beside running streams, a step."""
    metrics = figures["metrics"]
    return metrics["vivace:mixed_step_prompt_tokens_total"] / metrics["vivace:mixed_steps_total"]


@pytest.mark.parametrize("value, word", [("-1", "0 (off)"), ("60001", "60000"), ("nan", "0 (off)"),
                                         ("soon", "milliseconds"), ("5x", "milliseconds"), ("", "value")])
def test_bad_values_are_refused_in_a_sentence(mini_model, value, word):
    result = subprocess.run([BINARY, "serve", mini_model, f"--max-itl={value}"], capture_output=True, timeout=60,
                            text=True)
    assert result.returncode != 0
    assert "--max-itl" in result.stderr and word in result.stderr
    assert len(result.stderr.strip().splitlines()) <= 2
