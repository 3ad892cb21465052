"""Writes a small model of a family with random weights, and what a forward pass in numpy makes of it, in the layout
of ../shared/models/tiny: config.json, config.v4.json, model.safetensors, tokenizer.json, reference.json.

A family is a module beside this one (stablelm.py): its configuration, the shapes of its tensors by Hugging Face's
names, and forward(config, weights, ids) in float32, written from transformers' modeling_NAME.py.
"""

import json
import pathlib
import struct

import numpy as np

CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
PROMPTS = [9, 70]  # tokens
GREEDY_TOKENS = 16


def random_weights(shapes, seed):
    """Norms about 1, biases large enough to matter."""
    rng = np.random.default_rng(seed)
    weights = {}
    for name, shape in shapes.items():
        values = rng.standard_normal(shape) * 0.12
        weights[name] = (values + ("norm" in name and name.endswith("weight"))).astype(np.float32)
    return weights


def log_softmax(logits):
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def case(forward, ids):
    logprobs = log_softmax(forward(ids))
    chosen, margins = [], []
    for _ in range(GREEDY_TOKENS):
        last = forward(ids + chosen)[-1]
        second, best = np.argsort(last)[-2:]
        chosen.append(int(best))
        margins.append(float(last[best] - last[second]))
    return {"prompt_ids": ids, "greedy_ids": chosen, "greedy_margin": margins,
            "prompt_logprobs": [float(logprobs[i, token]) for i, token in enumerate(ids[1:])]}


def write_safetensors(path, weights):
    header, offset = {}, 0
    for name, values in weights.items():
        header[name] = {"dtype": "F32", "shape": values.shape, "data_offsets": [offset, offset + values.nbytes]}
        offset += values.nbytes
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(v.tobytes() for v in weights.values()))


def tokenizer(vocab_size):
    """Control tokens, bytes in GPT-2's spelling, and one merge, as a GGUF file can't have none."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    letters = [chr(byte) for byte in plain] + [chr(256 + i) for i in range(len(others))]
    vocab = {token: i for i, token in enumerate(CONTROL + letters + ["er"])}
    assert len(vocab) == vocab_size
    return {"version": "1.0", "normalizer": None, "post_processor": None,
            "added_tokens": [{"id": i, "content": token, "single_word": False, "lstrip": False, "rstrip": False,
                              "normalized": False, "special": True} for i, token in enumerate(CONTROL)],
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
            "decoder": {"type": "ByteLevel", "add_prefix_space": True, "use_regex": True},
            "model": {"type": "BPE", "vocab": vocab, "merges": [["e", "r"]]}}


def version_4(config):
    """The spelling of transformers 4: RoPE's base and share of a head at the top."""
    rope = config["rope_parameters"]
    rest = {key: value for key, value in config.items() if key != "rope_parameters"}
    return rest | {key: rope[key] for key in ("rope_theta", "partial_rotary_factor") if key in rope}


def write(folder, config, weights, forward, seed):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    prompts = [[int(i) for i in rng.integers(len(CONTROL), config["vocab_size"], n)] for n in PROMPTS]
    cases = [case(lambda ids: forward(config, weights, ids), ids) for ids in prompts]
    write_safetensors(folder / "model.safetensors", weights)
    for name, content in (("config.json", config), ("config.v4.json", version_4(config)),
                          ("tokenizer.json", tokenizer(config["vocab_size"])),
                          ("reference.json", {"made_with": "numpy, float32", "cases": cases})):
        (folder / name).write_text(json.dumps(content, indent=1))
