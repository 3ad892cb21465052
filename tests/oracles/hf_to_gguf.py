#!/usr/bin/env python3
"""Writes a Hugging Face folder of one of our families as a GGUF file, as llama.cpp's converters store it.

    pip install gguf numpy && python3 tests/oracles/hf_to_gguf.py FOLDER OUT.gguf [--type F32|F16|BF16|Q8_0]

For tests: weights of any size go through memory, and the tokenizer is byte-level BPE's alone.
"""

import argparse
import json
import pathlib
import re
import struct

import gguf
import numpy as np

ARCHES = {
    "llama": "llama", "mistral": "llama", "mixtral": "llama", "qwen2": "qwen2", "qwen3": "qwen3",
    "qwen2_moe": "qwen2moe", "qwen3_moe": "qwen3moe", "gemma2": "gemma2", "gemma3_text": "gemma3",
    "phi3": "phi3", "deepseek_v2": "deepseek2", "deepseek_v3": "deepseek2", "gpt_oss": "gpt-oss",
    "olmo2": "olmo2", "granite": "granite", "smollm3": "smollm3", "glm4": "glm4",
    "exaone4": "exaone4", "starcoder2": "starcoder2", "cohere2": "cohere2",
    "stablelm": "stablelm",
    "qwen3_next": "qwen3next", "granitemoehybrid": "granitehybrid", "lfm2": "lfm2",
}
PERMUTED = {"llama", "mistral", "mixtral", "granite", "smollm3", "granitemoehybrid"}  # q and k rows, pairs side by side

NAMES = [  # of tensors, first match counts
    (r"model\.embed_tokens\.weight", "token_embd.weight"),
    (r"model\.norm\.(weight|bias)", r"output_norm.\1"),
    (r"model\.embedding_norm\.weight", "token_embd_norm.weight"),  # the last norm, for all its name
    (r"lm_head\.weight", "output.weight"),
    (r"LAYER\.self_attn\.([qkv])_proj\.(weight|bias)", r"attn_\2.\3"),
    (r"LAYER\.self_attn\.qkv_proj\.weight", "attn_qkv.weight"),
    (r"LAYER\.self_attn\.(?:o|out)_proj\.(weight|bias)", r"attn_output.\2"),
    (r"LAYER\.self_attn\.([qk])_(?:layer)?norm\.weight", r"attn_\2_norm.weight"),
    (r"LAYER\.self_attn\.sinks", "attn_sinks.weight"),
    (r"LAYER\.self_attn\.q_a_proj\.weight", "attn_q_a.weight"),
    (r"LAYER\.self_attn\.q_a_layernorm\.weight", "attn_q_a_norm.weight"),
    (r"LAYER\.self_attn\.q_b_proj\.weight", "attn_q_b.weight"),
    (r"LAYER\.self_attn\.kv_a_proj_with_mqa\.weight", "attn_kv_a_mqa.weight"),
    (r"LAYER\.self_attn\.kv_a_layernorm\.weight", "attn_kv_a_norm.weight"),
    (r"LAYER\.mlp\.(?:gate_up_proj|c_fc|up_proj)\.(weight|bias)", r"ffn_up.\2"),
    (r"LAYER\.mlp\.(?:c_proj|down_proj)\.(weight|bias)", r"ffn_down.\2"),
    (r"LAYER\.mlp\.gate_proj\.weight", "ffn_gate.weight"),
    (r"LAYER\.(?:mlp\.gate|mlp\.router|block_sparse_moe\.gate)\.(weight|bias)", r"ffn_gate_inp.\2"),
    (r"LAYER\.mlp\.shared_experts?\.(gate|up|down)_proj\.weight", r"ffn_\2_shexp.weight"),
    (r"LAYER\.mlp\.shared_expert_gate\.weight", "ffn_gate_inp_shexp.weight"),
    (r"LAYER\.mlp\.gate\.e_score_correction_bias", "exp_probs_b.bias"),
    (r"LAYER\.block_sparse_moe\.router\.layer\.weight", "ffn_gate_inp.weight"),
    (r"LAYER\.block_sparse_moe\.output_linear\.weight", "ffn_down_exps.weight"),
    (r"LAYER\.shared_mlp\.output_linear\.weight", "ffn_down_shexp.weight"),
    (r"LAYER\.feed_forward\.w1\.weight", "ffn_gate.weight"),
    (r"LAYER\.feed_forward\.w2\.weight", "ffn_down.weight"),
    (r"LAYER\.feed_forward\.w3\.weight", "ffn_up.weight"),
    (r"LAYER\.conv\.(conv|in_proj|out_proj)\.(weight|bias)", r"shortconv.\2.\3"),
    (r"LAYER\.(?:mamba|linear_attn)\.A_log", "ssm_a"),
    (r"LAYER\.(?:mamba|linear_attn)\.dt_bias", "ssm_dt.bias"),
    (r"LAYER\.(?:mamba|linear_attn)\.(conv1d|norm)\.(weight|bias)", r"ssm_\2.\3"),
    (r"LAYER\.(?:mamba|linear_attn)\.out_proj\.weight", "ssm_out.weight"),
    (r"LAYER\.mamba\.in_proj\.weight", "ssm_in.weight"),
    (r"LAYER\.mamba\.D", "ssm_d"),
    (r"LAYER\.linear_attn\.in_proj_ba\.weight", "ssm_ba.weight"),
]
NORMS = {  # of layers, by family; the others' are the default's
    "": {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"},
    "gemma2": {"input_layernorm": "attn_norm", "post_attention_layernorm": "post_attention_norm",
               "pre_feedforward_layernorm": "ffn_norm",
               "post_feedforward_layernorm": "post_ffw_norm"},
    "olmo2": {"post_attention_layernorm": "post_attention_norm",
              "post_feedforward_layernorm": "post_ffw_norm"},
    "glm4": {"input_layernorm": "attn_norm", "post_self_attn_layernorm": "post_attention_norm",
             "post_attention_layernorm": "ffn_norm", "post_mlp_layernorm": "post_ffw_norm"},
    "gpt_oss": {"input_layernorm": "attn_norm", "post_attention_layernorm": "post_attention_norm"},
    "lfm2": {"operator_norm": "attn_norm", "ffn_norm": "ffn_norm"},
}
NORMS["gemma3_text"] = NORMS["gemma2"]
NORMS["exaone4"] = NORMS["olmo2"]
NORMS["qwen3_next"] = NORMS["gpt_oss"]
EXPERTS = {"w1": "gate", "w2": "down", "w3": "up", "gate_proj": "gate", "up_proj": "up",
           "down_proj": "down"}


def read_safetensors(path: pathlib.Path) -> dict[str, np.ndarray]:
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        raw = np.frombuffer(data[8 + length + begin:8 + length + end], dtype=np.uint8)
        if entry["dtype"] == "BF16":
            values = (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        else:
            values = raw.view({"F32": np.float32, "F16": np.float16, "U8": np.uint8}[entry["dtype"]])
            values = values if entry["dtype"] == "U8" else values.astype(np.float32)
        tensors[name] = values.reshape(entry["shape"])
    return tensors


class Converter:
    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.config = json.loads((folder / "config.json").read_text())
        self.family = self.config["model_type"]
        self.out: dict[str, np.ndarray] = {}
        self.raw: dict[str, np.ndarray] = {}  # MXFP4 blocks
        rope = self.config.get("rope_parameters") or dict(
            self.config.get("rope_scaling") or {}, rope_theta=self.config.get("rope_theta", 10000.0))
        self.local_rope = rope.get("sliding_attention", {})
        self.rope = rope.get("full_attention", rope)

    # ---- tensors --------------------------------------------------------------------------------

    def permute(self, rows: np.ndarray, heads: int) -> np.ndarray:
        return rows.reshape(heads, 2, rows.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(rows.shape)

    def layer_norm_name(self, part: str) -> str | None:
        return NORMS.get(self.family, NORMS[""]).get(part)

    def put(self, name: str, values: np.ndarray) -> None:
        if name.endswith("norm.weight") and (self.family.startswith("gemma") or (
                self.family == "qwen3_next" and not name.endswith("ssm_norm.weight"))):
            values = values + 1.0
        if name.endswith("ssm_a"):
            values = -np.exp(values)
        if "conv" in name and values.ndim == 3:
            values = values[:, 0]
        if self.family == "granitemoehybrid":
            if re.search(r"ssm_[ad]$", name):
                values = values[:, None]
            if name.endswith("ssm_norm.weight"):
                values = values.reshape(self.config["mamba_n_groups"], -1)
        if self.family in PERMUTED:
            if re.search(r"attn_q\.(weight|bias)", name):
                values = self.permute(values, self.config["num_attention_heads"])
            if re.search(r"attn_k\.(weight|bias)", name):
                values = self.permute(values, self.config["num_key_value_heads"])
        self.out[name] = values.astype(np.float32)

    def convert_tensors(self) -> None:
        stacked: dict[str, dict[int, np.ndarray]] = {}
        for name, values in read_safetensors(self.folder / "model.safetensors").items():
            layer = re.match(r"model\.layers\.(\d+)\.(.*)", name)
            blk = f"blk.{layer[1]}." if layer else ""
            expert = re.search(r"experts\.(\d+)\.(\w+)\.weight", name)
            if expert:
                key = f"{blk}ffn_{EXPERTS[expert[2]]}_exps.weight"
                stacked.setdefault(key, {})[int(expert[1])] = values
            elif layer and ".experts." in name:
                self.gpt_oss_experts(blk, name.rsplit(".", 1)[1], values)
            elif "kv_b_proj" in name:
                self.kv_b(blk, values)
            elif name.endswith("in_proj_qkvz.weight"):
                self.delta_input(blk, values)
            elif name.endswith("input_linear.weight"):
                which = "exps" if "block_sparse_moe" in name else "shexp"
                gate, up = np.split(values, 2, axis=-2)
                self.put(f"{blk}ffn_gate_{which}.weight", gate)
                self.put(f"{blk}ffn_up_{which}.weight", up)
            elif layer and (norm := self.layer_norm_name(layer[2].rsplit(".", 1)[0])):
                self.put(f"{blk}{norm}.{name.rsplit('.', 1)[1]}", values)
            else:
                self.put(blk + self.plain_name(name), values)
        for name, experts in stacked.items():
            self.out[name] = np.stack([experts[i] for i in range(len(experts))])

    @staticmethod
    def plain_name(name: str) -> str:
        for pattern, target in NAMES:
            match = re.fullmatch(pattern.replace("LAYER", r"model\.layers\.(\d+)"), name)
            if match:
                return match.expand(target)
        raise SystemExit(f"no name for {name}")

    def kv_b(self, blk: str, values: np.ndarray) -> None:
        c = self.config
        nope, value = c["qk_nope_head_dim"], c["v_head_dim"]
        heads = values.reshape(c["num_attention_heads"], nope + value, -1)
        self.out[blk + "attn_k_b.weight"] = heads[:, :nope].swapaxes(1, 2)
        self.out[blk + "attn_v_b.weight"] = heads[:, nope:]

    def delta_input(self, blk: str, values: np.ndarray) -> None:
        c = self.config
        keys, dim = c["linear_num_key_heads"], c["linear_key_head_dim"]
        wide = c["linear_value_head_dim"] * c["linear_num_value_heads"] // keys
        heads = values.reshape(keys, 2 * dim + 2 * wide, -1)
        parts = np.split(heads, [dim, 2 * dim, 2 * dim + wide], axis=1)
        q, k, v, z = (part.reshape(-1, values.shape[-1]) for part in parts)
        self.put(blk + "attn_qkv.weight", np.concatenate([q, k, v]))
        self.put(blk + "attn_gate.weight", z)

    def gpt_oss_experts(self, blk: str, part: str, values: np.ndarray) -> None:
        if part.endswith("_blocks"):
            self.raw[blk + part] = values
            return
        if part.endswith("_scales"):
            blocks = self.raw.pop(blk + part.replace("_scales", "_blocks"))
            low, high = blocks & 15, blocks >> 4
            flat = np.stack([low, high], axis=-1).reshape(*blocks.shape[:-1], 32)
            packed = flat[..., :16] | flat[..., 16:] << 4
            joined = np.concatenate([values[..., None], packed], axis=-1)
            joined = joined.reshape(*joined.shape[:2], -1)
            if part.startswith("down"):
                self.raw[blk + "ffn_down_exps.weight"] = joined
            else:
                self.raw[blk + "ffn_gate_exps.weight"] = joined[:, 0::2]
                self.raw[blk + "ffn_up_exps.weight"] = joined[:, 1::2]
            return
        suffix = "bias" if part.endswith("_bias") else "weight"
        if suffix == "weight":
            values = values.swapaxes(1, 2)
        if part.startswith("down"):
            self.out[f"{blk}ffn_down_exps.{suffix}"] = values
        else:
            self.out[f"{blk}ffn_gate_exps.{suffix}"] = values[:, 0::2]
            self.out[f"{blk}ffn_up_exps.{suffix}"] = values[:, 1::2]

    # ---- metadata -------------------------------------------------------------------------------

    def write_metadata(self, w: gguf.GGUFWriter) -> None:
        c = self.config
        w.add_name(self.folder.name)
        w.add_block_count(c["num_hidden_layers"])
        w.add_context_length(c["max_position_embeddings"])
        w.add_embedding_length(c["hidden_size"])
        w.add_feed_forward_length(c["intermediate_size"])
        w.add_head_count(c["num_attention_heads"])
        w.add_vocab_size(c["vocab_size"])
        head_dim = c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"]
        if "kv_lora_rank" in c:
            self.write_latent(w)
        else:
            w.add_head_count_kv(self.kv_heads())
            w.add_key_length(head_dim)
            w.add_value_length(head_dim)
            w.add_rope_dimension_count(int(head_dim * self.rope.get(
                "partial_rotary_factor", c.get("partial_rotary_factor", 1.0))))
        if (eps := c.get("rms_norm_eps", c.get("norm_eps"))) is not None:
            w.add_layer_norm_rms_eps(eps)
        if (eps := c.get("layer_norm_eps", c.get("norm_epsilon"))) is not None:
            w.add_layer_norm_eps(eps)
        if self.family == "stablelm":
            w.add_parallel_residual(c.get("use_parallel_residual", True))
        self.write_rope(w)
        self.write_experts(w)
        self.write_recurrent(w)
        if window := c.get("sliding_window"):
            w.add_sliding_window(window)
            if self.family == "exaone4":
                w.add_sliding_window_pattern([t == "sliding_attention" for t in c["layer_types"]])
        for key, add in (("attn_logit_softcapping", w.add_attn_logit_softcapping),
                         ("final_logit_softcapping", w.add_final_logit_softcapping),
                         ("attention_multiplier", w.add_attention_scale),
                         ("embedding_multiplier", w.add_embedding_scale),
                         ("residual_multiplier", w.add_residual_scale),
                         ("logits_scaling", w.add_logit_scale), ("logit_scale", w.add_logit_scale)):
            if c.get(key) is not None:
                add(c[key])

    def write_latent(self, w: gguf.GGUFWriter) -> None:
        c = self.config
        rope, rank = c["qk_rope_head_dim"], c["kv_lora_rank"]
        w.add_head_count_kv(1)
        w.add_kv_lora_rank(rank)
        if c.get("q_lora_rank"):
            w.add_q_lora_rank(c["q_lora_rank"])
        w.add_key_length(rank + rope)
        w.add_value_length(rank)
        w.add_key_length_mla(c["qk_nope_head_dim"] + rope)
        w.add_value_length_mla(c["v_head_dim"])
        w.add_rope_dimension_count(rope)
        w.add_leading_dense_block_count(c["first_k_dense_replace"])
        if (mscale := self.rope.get("mscale_all_dim")) is not None:
            w.add_rope_scaling_yarn_log_mul(0.1 * mscale)

    def kv_heads(self) -> int | list[int]:
        heads = self.config["num_key_value_heads"]
        if self.family not in ("lfm2", "granitemoehybrid"):
            return heads
        return [heads if "attention" in t and "linear" not in t else 0 for t in self.config["layer_types"]]

    def write_recurrent(self, w: gguf.GGUFWriter) -> None:
        c = self.config
        if self.family == "lfm2":
            w.add_shortconv_l_cache(c["conv_L_cache"])
        if self.family == "qwen3_next":
            w.add_ssm_conv_kernel(c["linear_conv_kernel_dim"])
            w.add_ssm_state_size(c["linear_key_head_dim"])
            w.add_ssm_group_count(c["linear_num_key_heads"])
            w.add_ssm_time_step_rank(c["linear_num_value_heads"])
            w.add_ssm_inner_size(c["linear_value_head_dim"] * c["linear_num_value_heads"])
            w.add_full_attention_interval(c.get("full_attention_interval", 4))
        if self.family == "granitemoehybrid":
            w.add_ssm_conv_kernel(c["mamba_d_conv"])
            w.add_ssm_state_size(c["mamba_d_state"])
            w.add_ssm_group_count(c["mamba_n_groups"])
            w.add_ssm_time_step_rank(c["mamba_n_heads"])
            w.add_ssm_inner_size(c["mamba_expand"] * c["hidden_size"])
            w.add_rope_scaling_finetuned(c.get("position_embedding_type") == "rope")

    def write_rope(self, w: gguf.GGUFWriter) -> None:
        w.add_rope_freq_base(self.rope.get("rope_theta", 10000.0))
        if "rope_theta" in self.local_rope:
            w.add_rope_freq_base_swa(self.local_rope["rope_theta"])
        kind = self.rope.get("rope_type", "default")
        if kind in ("linear", "yarn"):
            w.add_rope_scaling_type(gguf.RopeScalingType(kind))
            w.add_rope_scaling_factor(self.rope["factor"])
        if kind == "yarn":
            w.add_rope_scaling_orig_ctx_len(self.rope["original_max_position_embeddings"])
            if "beta_fast" in self.rope:
                w.add_rope_scaling_yarn_beta_fast(self.rope["beta_fast"])
                w.add_rope_scaling_yarn_beta_slow(self.rope["beta_slow"])
        if kind == "llama3":
            self.out["rope_freqs.weight"] = self.llama3_divisors()
        if kind == "longrope":
            original = self.config["original_max_position_embeddings"]
            w.add_rope_scaling_type(gguf.RopeScalingType.LONGROPE)
            w.add_rope_scaling_orig_ctx_len(original)
            scale = self.config["max_position_embeddings"] / original
            w.add_rope_scaling_attn_factors(
                float(np.sqrt(1 + np.log(scale) / np.log(original))) if scale > 1 else 1.0)
            for which in ("short", "long"):
                self.out[f"rope_factors_{which}.weight"] = np.array(
                    self.rope[f"{which}_factor"], dtype=np.float32)

    def llama3_divisors(self) -> np.ndarray:
        c, r = self.config, self.rope
        dim = c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"]
        freqs = 1.0 / r["rope_theta"] ** (np.arange(0, dim, 2) / dim)
        turns = r["original_max_position_embeddings"] * freqs / (2 * np.pi)
        smooth = np.clip((turns - r["low_freq_factor"]) /
                         (r["high_freq_factor"] - r["low_freq_factor"]), 0, 1)
        return (1 / ((1 - smooth) / r["factor"] + smooth)).astype(np.float32)

    def write_experts(self, w: gguf.GGUFWriter) -> None:
        c = self.config
        experts = next((c[k] for k in ("num_experts", "num_local_experts", "n_routed_experts")
                        if c.get(k)), 0)
        if not experts:
            return
        w.add_expert_count(experts)
        w.add_expert_used_count(c["num_experts_per_tok"])
        if self.family == "gpt_oss":
            w.add_expert_feed_forward_length(c["intermediate_size"])
        for key, add in (("moe_intermediate_size", w.add_expert_feed_forward_length),
                         ("shared_expert_intermediate_size", w.add_expert_shared_feed_forward_length),
                         ("shared_intermediate_size", w.add_expert_shared_feed_forward_length),
                         ("n_shared_experts", w.add_expert_shared_count),
                         ("routed_scaling_factor", w.add_expert_weights_scale),
                         ("n_group", w.add_expert_group_count),
                         ("topk_group", w.add_expert_group_used_count)):
            if c.get(key) is not None:
                add(c[key])
        if self.family.startswith("deepseek"):
            sigmoid = self.family == "deepseek_v3"
            w.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID if sigmoid
                                     else gguf.ExpertGatingFuncType.SOFTMAX)
            if sigmoid and c.get("norm_topk_prob"):
                w.add_expert_weights_norm(True)

    def write_vocabulary(self, w: gguf.GGUFWriter) -> None:
        tokenizer = json.loads((self.folder / "tokenizer.json").read_text())
        special = {t["id"] for t in tokenizer["added_tokens"] if t["special"]}
        names = {i: t for t, i in tokenizer["model"]["vocab"].items()}
        names.update({t["id"]: t["content"] for t in tokenizer["added_tokens"]})
        size = self.config["vocab_size"]
        w.add_tokenizer_model("gpt2")
        w.add_tokenizer_pre("smollm")
        w.add_token_list([names.get(i, f"[PAD{i}]") for i in range(size)])
        w.add_token_types([3 if i in special else 1 if i in names else 5 for i in range(size)])
        merges = tokenizer["model"]["merges"]
        w.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in merges])
        w.add_bos_token_id(self.config["bos_token_id"])
        w.add_eos_token_id(self.config["eos_token_id"])

    def write(self, path: str, kind: str) -> None:
        self.convert_tensors()
        w = gguf.GGUFWriter(path, ARCHES[self.family])
        self.write_metadata(w)
        self.write_vocabulary(w)
        quantized = gguf.GGMLQuantizationType[kind]
        block = gguf.GGML_QUANT_SIZES[quantized][0]
        for name, values in self.out.items():
            matrix = (values.ndim > 1 and values.shape[-1] % block == 0 and "ffn_gate_inp" not in name
                      and name.endswith(".weight"))
            if matrix and kind != "F32":
                w.add_tensor(name, gguf.quants.quantize(np.ascontiguousarray(values), quantized),
                             raw_dtype=quantized)
            else:
                w.add_tensor(name, np.ascontiguousarray(values))
        for name, blocks in self.raw.items():
            w.add_tensor(name, np.ascontiguousarray(blocks), raw_dtype=gguf.GGMLQuantizationType.MXFP4)
        w.write_header_to_file()
        w.write_kv_data_to_file()
        w.write_tensors_to_file()
        w.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("out")
    parser.add_argument("--type", default="F32", choices=["F32", "F16", "BF16", "Q8_0"])
    args = parser.parse_args()
    Converter(args.folder).write(args.out, args.type)


if __name__ == "__main__":
    main()
