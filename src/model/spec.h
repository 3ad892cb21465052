// A model as data: what a recipe makes of a file's configuration. No maths, no memory, no format.
// engine/ walks it with the block ops; sizes here have passed every range check.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/block_ops.h"

namespace vivace::model {

enum class RopeScaling : uint8_t { kNone, kLinear, kLlama3, kYarn };

struct RopeSpec {
  int32_t dims = 0;  // rotated dims per head; 0: NoPE
  float theta = 10000.0f;
  bool interleaved = false;  // pair order the weights are stored for
  RopeScaling scaling = RopeScaling::kNone;
  float factor = 1.0f;
  int32_t original_context = 0;      // llama3, yarn
  float low_freq_factor = 1.0f;      // llama3
  float high_freq_factor = 4.0f;     // llama3
  float beta_fast = 32.0f;           // yarn
  float beta_slow = 1.0f;            // yarn
  float attention_factor = 0.0f;     // yarn; 0: 0.1 ln(factor) + 1
  std::vector<float> freq_divisors;  // per pair, a file's rope_freqs tensor; empty: none

  bool operator==(const RopeSpec&) const = default;
};

// A weight by its name in the file and the shape it must have there; shapes are exact.
struct WeightSpec {
  std::string name;  // empty: the model has none
  int32_t rows = 0;  // outputs; 1 for vectors
  int32_t cols = 0;
  bool present() const { return !name.empty(); }
};

struct AttentionSpec {
  int32_t heads = 0;
  int32_t kv_heads = 0;  // divides heads
  int32_t head_dim = 0;
  float scale = 0.0f;
  int32_t window = 0;  // 0: full
  RopeSpec rope;
  WeightSpec norm, q, k, v, o;
  WeightSpec q_bias, k_bias, v_bias, o_bias;
  WeightSpec q_norm, k_norm;
};

struct MlpSpec {
  int32_t ffn = 0;
  kernels::Activation activation = kernels::Activation::kSilu;
  WeightSpec norm, gate, up, down;
  WeightSpec gate_bias, up_bias, down_bias;
};

struct LayerSpec {
  AttentionSpec attention;
  MlpSpec mlp;
};

struct ModelSpec {
  std::string architecture;  // the recipe's name: "llama"
  std::string name;          // for people; may be empty
  int32_t vocab = 0;
  int32_t hidden = 0;
  int32_t context = 0;  // trained length, tokens
  float norm_eps = 1e-5f;
  float embedding_scale = 1.0f;
  WeightSpec embedding;  // [vocab, hidden]
  WeightSpec final_norm;
  WeightSpec lm_head;  // names the embedding when tied
  bool tied_embeddings = false;
  std::vector<std::string> notes;  // what was assumed for absent keys; shown to people at load
  std::vector<LayerSpec> layers;
};

}  // namespace vivace::model
