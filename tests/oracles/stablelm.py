#!/usr/bin/env python3
"""A small StableLM with random weights and its logits by numpy; small_model.py says what is written. Logits of
transformers 5.24 in float32 for the same weights are within 1e-5 of these.

    pip install numpy && python3 tests/oracles/stablelm.py FOLDER [--parallel] [--qkv-bias]
"""

import argparse

import numpy as np

import small_model

SEED = 11
LAYERS = 3


def make_config(parallel, qkv_bias):
    """Without what is false by default; converters to GGUF then write that it is parallel."""
    config = {
        "architectures": ["StableLmForCausalLM"], "model_type": "stablelm", "vocab_size": 260, "hidden_size": 64,
        "intermediate_size": 160, "num_hidden_layers": LAYERS, "num_attention_heads": 4, "num_key_value_heads": 2,
        "hidden_act": "silu", "max_position_embeddings": 256, "layer_norm_eps": 1e-5, "tie_word_embeddings": False,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.25},
        "bos_token_id": 0, "eos_token_id": 2}
    flags = {"use_qkv_bias": qkv_bias, "use_parallel_residual": parallel}
    return config | {key: True for key, value in flags.items() if value}


def shapes(c):
    hidden, ffn = c["hidden_size"], c["intermediate_size"]
    kv = hidden // c["num_attention_heads"] * c["num_key_value_heads"]
    out = {"model.embed_tokens.weight": (c["vocab_size"], hidden), "lm_head.weight": (c["vocab_size"], hidden)}
    norms = ["model.norm"]
    for i in range(c["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        norms.append(layer + "input_layernorm")
        if not c.get("use_parallel_residual"):
            norms.append(layer + "post_attention_layernorm")
        for part, rows in (("q", hidden), ("k", kv), ("v", kv)):
            out[f"{layer}self_attn.{part}_proj.weight"] = (rows, hidden)
            if c.get("use_qkv_bias"):
                out[f"{layer}self_attn.{part}_proj.bias"] = (rows,)
        out[layer + "self_attn.o_proj.weight"] = (hidden, hidden)
        out[layer + "mlp.gate_proj.weight"] = out[layer + "mlp.up_proj.weight"] = (ffn, hidden)
        out[layer + "mlp.down_proj.weight"] = (hidden, ffn)
    return out | {f"{norm}.{part}": (hidden,) for norm in norms for part in ("weight", "bias")}


def rotate(x, c):
    """x: [tokens, heads, head_dim], its first dims rotated by their positions, pairs half of them apart."""
    rope = c["rope_parameters"]
    dims = int(x.shape[-1] * rope["partial_rotary_factor"])
    angles = np.arange(len(x))[:, None] / rope["rope_theta"] ** (np.arange(0, dims, 2) / dims)
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    a, b = x[..., :dims // 2], x[..., dims // 2:dims]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin, x[..., dims:]], -1).astype(np.float32)


def forward(c, weights, ids):
    """Logits [tokens, vocab]."""
    def linear(name, x):
        return x @ weights[name + ".weight"].T + weights.get(name + ".bias", np.float32(0))

    def norm(name, x):
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + np.float32(c["layer_norm_eps"]))
        return scaled * weights[name + ".weight"] + weights[name + ".bias"]

    def attention(layer, x):
        heads, kv_heads = c["num_attention_heads"], c["num_key_value_heads"]
        q, k, v = (linear(f"{layer}self_attn.{part}_proj", x).reshape(len(x), n, -1)
                   for part, n in (("q", heads), ("k", kv_heads), ("v", kv_heads)))
        q, k, v = rotate(q, c), *(np.repeat(part, heads // kv_heads, 1) for part in (rotate(k, c), v))
        scores = np.einsum("ihd,jhd->hij", q, k) / np.float32(np.sqrt(q.shape[-1]))
        scores[:, np.triu(np.ones(scores.shape[1:], bool), 1)] = -np.inf
        mixed = np.einsum("hij,jhd->ihd", np.exp(small_model.log_softmax(scores)), v)
        return linear(layer + "self_attn.o_proj", mixed.reshape(len(x), -1))

    def mlp(layer, x):
        gate = linear(layer + "mlp.gate_proj", x)
        return linear(layer + "mlp.down_proj", gate / (1 + np.exp(-gate)) * linear(layer + "mlp.up_proj", x))

    x = weights["model.embed_tokens.weight"][ids]
    for i in range(c["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        normed = norm(layer + "input_layernorm", x)
        mixed = x + attention(layer, normed)
        if not c.get("use_parallel_residual"):
            normed = norm(layer + "post_attention_layernorm", mixed)
        x = mixed + mlp(layer, normed)
    return linear("lm_head", norm("model.norm", x))


def write(folder, *, parallel=False, qkv_bias=False):
    config = make_config(parallel, qkv_bias)
    small_model.write(folder, config, small_model.random_weights(shapes(config), SEED), forward, SEED)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--parallel", action="store_true")
    parser.add_argument("--qkv-bias", action="store_true")
    args = parser.parse_args()
    write(args.folder, parallel=args.parallel, qkv_bias=args.qkv_bias)


if __name__ == "__main__":
    main()
