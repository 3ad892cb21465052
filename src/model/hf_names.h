// How Hugging Face's names stand to the canonical ones: of configuration keys and of tensors. Data.
// What most families share is here; a recipe has a table of what its own family calls otherwise.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace vivace::model {

// Where config.json keeps a value. kRope: in the RoPE object of either spelling (rope_parameters,
// there for full attention if it tells layer types apart, or rope_scaling), else at the top.
enum class KeyPlace : uint8_t { kTop, kRope, kLocalRope };

struct HfKey {
  std::string_view key;   // canonical: "attention.head_count_kv"
  std::string_view name;  // "num_key_value_heads"; empty: this family has no such key
  KeyPlace place = KeyPlace::kTop;
};

// The stem of a tensor: "blk.{}.attn_q" and "model.layers.{}.self_attn.q_proj"; what follows
// (".weight", ".bias") is the same in both, unless `name` ends with '!', which stands for nothing
// more. A second {} is the expert's number.
struct HfTensorName {
  std::string_view stem;
  std::string_view name;
};

// What transformers' class of the family takes where a configuration has no such key, if that is
// another number than a recipe takes itself. GGUF files have none of these.
struct HfDefault {
  std::string_view key;  // canonical
  double value;
  bool null_is_none = false;  // of a class that may lack it; else null is as absent
};

struct HfNames {
  std::span<const std::string_view> architectures;  // as config.json calls them
  std::span<const HfKey> keys = {};                 // looked at before the standard ones
  std::span<const HfTensorName> tensors = {};       // likewise
  std::span<const HfDefault> defaults = {};
};

std::span<const HfKey> StandardKeys();

// "blk.3.ffn_up.7.weight" as this family's folders call it; an unknown name is returned as it is.
std::string HfTensor(const HfNames& names, std::string_view canonical);

}  // namespace vivace::model
