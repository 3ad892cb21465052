"""--max-itl: a long prompt that arrives does not stall running streams, and is not starved by them."""

import random
import subprocess
import sys

import pytest

from conftest import BINARY, MODEL, ROOT, need

sys.path.append(str(ROOT / "tests/bench"))
import itl  # noqa: E402


@pytest.mark.slow
def test_a_long_prompt_does_not_stall_streams(make_server):
    rounds = {}
    for target in (50, 0):
        server = make_server(need(MODEL), "--served-model-name", "m", "--max-itl", target)
        rounds[target] = itl.mixed_round(server, random.Random(target), streams=8, prompt_tokens=4000)
        server.wait_idle()
    with_target, without = rounds[50], rounds[0]
    # Steps of whole chunks are some hundred milliseconds on any machine that runs this; both are measured in one
    # run, so that a slow or busy machine slows both.
    assert itl.percentile(without["gaps"], 0.9) > 3 * itl.percentile(with_target["gaps"], 0.9)
    assert with_target["ratio"] < 3, "the prompt waited much longer than its own work and the streams' take"
    assert 16 <= chunk(with_target) < chunk(without) / 2


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
