"""Writes tests/golden/gemma3.json: what transformers makes of Gemma 3 270M's GGUF file, in float32.

    python3 tests/oracles/make_gemma_reference.py models/gemma-3-270m-q4_k_m.gguf

Needs torch, transformers 5 and gguf. `long` is the project's LICENSE, longer than the windows of the model.
"""

import json
import pathlib
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROMPTS = [
    "The capital of France is",
    "def fibonacci(n):\n    ",
    "Zwölf Boxkämpfer jagen Viktor quer über den großen",
    "1, 1, 2, 3, 5, 8, 13,",
]
GREEDY_TOKENS = 12
LONG_TOKENS = 700


def greedy(model, ids):
    chosen, margins = [], []
    for _ in range(GREEDY_TOKENS):
        logits = model(torch.tensor([ids + chosen])).logits[0, -1]
        best = torch.topk(logits, 2)
        chosen.append(int(best.indices[0]))
        margins.append(round(float(best.values[0] - best.values[1]), 4))
    return chosen, margins


def log_probabilities(model, ids):
    logits = model(torch.tensor([ids])).logits[0].log_softmax(-1)
    return [round(float(logits[i, token]), 4) for i, token in enumerate(ids[1:])]


@torch.inference_mode()
def main(file):
    file = pathlib.Path(file)
    names = {"pretrained_model_name_or_path": file.parent, "gguf_file": file.name}
    tokenizer = AutoTokenizer.from_pretrained(**names)
    model = AutoModelForCausalLM.from_pretrained(**names, dtype=torch.float32, attn_implementation="eager").eval()
    cases = []
    for prompt in PROMPTS:
        ids = tokenizer(prompt).input_ids
        chosen, margins = greedy(model, ids)
        cases.append({"prompt": prompt, "prompt_ids": ids, "greedy_ids": chosen, "margin": margins})
    ids = tokenizer((ROOT / "LICENSE").read_text()).input_ids[:LONG_TOKENS]
    values = log_probabilities(model, ids)
    long = {"ids": ids, "mean_nll": round(-sum(values) / len(values), 5), "prompt_logprobs": values}
    out = ROOT / "tests/golden/gemma3.json"
    out.write_text(json.dumps({"cases": cases, "long": long}, separators=(",", ":")) + "\n")


main(sys.argv[1])
