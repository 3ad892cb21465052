"""Makes other formats of a GGUF model; run by llama.cpp's Python.

    worker_formats.py quantize IN.gguf OUT.gguf FTYPE
    worker_formats.py hf IN.gguf OUT_FOLDER        (llama architecture; BF16 safetensors, tokenizer, config)
"""

import json
import pathlib
import sys


def quantize(source, target, ftype):
    import llama_cpp
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = int(ftype)
    params.allow_requantize = True
    if llama_cpp.llama_model_quantize(source.encode(), target.encode(), params) != 0:
        raise SystemExit(f"llama.cpp could not make {target}")


def value(reader, key, default=None):
    field = reader.get_field(key)
    return default if field is None else field.contents()


def bf16_bytes(array):
    """Rounded to nearest even, as everyone's BF16 is."""
    import numpy
    bits = numpy.ascontiguousarray(array, dtype=numpy.float32).view(numpy.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16).tobytes()


def rotary_halves(weight, heads):
    """GGUF keeps the two halves of a head's rotated dims interleaved; Hugging Face keeps them apart."""
    rows, cols = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, cols).swapaxes(1, 2).reshape(rows, cols)


NAMES = {
    "token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight", "attn_norm.weight": "input_layernorm.weight",
    "ffn_norm.weight": "post_attention_layernorm.weight", "attn_q.weight": "self_attn.q_proj.weight",
    "attn_k.weight": "self_attn.k_proj.weight", "attn_v.weight": "self_attn.v_proj.weight",
    "attn_output.weight": "self_attn.o_proj.weight", "ffn_gate.weight": "mlp.gate_proj.weight",
    "ffn_up.weight": "mlp.up_proj.weight", "ffn_down.weight": "mlp.down_proj.weight",
}


def hf_name(name):
    if not name.startswith("blk."):
        return NAMES[name]
    _, layer, rest = name.split(".", 2)
    return f"model.layers.{layer}.{NAMES[rest]}"


def write_tensors(reader, heads, kv_heads, path):
    import gguf
    header, chunks, at = {}, [], 0
    for tensor in reader.tensors:
        array = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        if ".attn_q." in tensor.name or ".attn_k." in tensor.name:
            array = rotary_halves(array, heads if ".attn_q." in tensor.name else kv_heads)
        data = bf16_bytes(array)
        header[hf_name(tensor.name)] = {"dtype": "BF16", "shape": list(array.shape),
                                        "data_offsets": [at, at + len(data)]}
        chunks.append(data)
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        for data in chunks:
            out.write(data)
    return header


def write_tokenizer(reader, folder):
    import tokenizers
    tokens, types = value(reader, "tokenizer.ggml.tokens"), value(reader, "tokenizer.ggml.token_type")
    merges = [tuple(m.split(" ", 1)) for m in value(reader, "tokenizer.ggml.merges")]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE({t: i for i, t in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    control = [t for t, kind in zip(tokens, types) if kind == 3]
    tokenizer.add_special_tokens(control)
    tokenizer.save(str(folder / "tokenizer.json"))
    eos = tokens[value(reader, "tokenizer.ggml.eos_token_id")]
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": eos, "bos_token": eos}))


def hf(source, folder):
    import gguf
    reader, folder = gguf.GGUFReader(source), pathlib.Path(folder)
    get = lambda key, default=None: value(reader, "llama." + key, default)  # noqa: E731
    heads, kv_heads = get("attention.head_count"), get("attention.head_count_kv")
    header = write_tensors(reader, heads, kv_heads, folder / "model.safetensors.part")
    write_tokenizer(reader, folder)
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16",
        "hidden_size": get("embedding_length"), "intermediate_size": get("feed_forward_length"),
        "num_hidden_layers": get("block_count"), "num_attention_heads": heads, "num_key_value_heads": kv_heads,
        "max_position_embeddings": get("context_length"), "rms_norm_eps": get("attention.layer_norm_rms_epsilon"),
        "rope_theta": get("rope.freq_base", 10000.0), "hidden_act": "silu", "attention_bias": False,
        "vocab_size": header["model.embed_tokens.weight"]["shape"][0],
        "tie_word_embeddings": "lm_head.weight" not in header,
        "bos_token_id": value(reader, "tokenizer.ggml.bos_token_id"),
        "eos_token_id": value(reader, "tokenizer.ggml.eos_token_id"),
    }, indent=1))
    (folder / "model.safetensors.part").rename(folder / "model.safetensors")


if __name__ == "__main__":
    {"quantize": quantize, "hf": hf}[sys.argv[1]](*sys.argv[2:])
