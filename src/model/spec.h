// A model as data: what a recipe makes of a file's configuration. No maths, no memory, no format.
// engine/ walks it with the block ops; sizes here have passed every range check.
//
// A layer is a mixer (attention, or a recurrence) and an MLP, each
// `x += scale * post_norm(f(norm(x)))`; a norm that a family lacks is not present. What families
// differ in is a value of a field here: a new family is a new recipe, and only what no field can
// say needs a new field.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "kernels/block_ops.h"

namespace vivace::model {

// ---- weights ------------------------------------------------------------------------------------

// A weight by its name in the file and the shape it must have there; shapes are exact. Families and
// formats store weights fused, stacked, interleaved or transposed: a WeightSpec says where in the
// named tensor the weight lies, seen as [slices, outputs, inputs] with leading sizes of 1 left out.
struct WeightSpec {
  std::string name;    // empty: the model has none
  int32_t rows = 0;    // outputs; 1 for vectors
  int32_t cols = 0;    // inputs
  int32_t slice = 0;   // of a stacked tensor: the expert
  int32_t slices = 1;  // that the tensor has
  // Output i is row first_row + i / row_block * row_stride + i % row_block of the slice: a stride
  // of 2 where gate and up take turns, blocks of a head where its parts do.
  int32_t first_row = 0;
  int32_t row_stride = 1;
  int32_t row_block = 1;
  bool transposed = false;  // the slice is stored [inputs, outputs]
  float offset = 0.0f;      // added to every value: 1 for Gemma's norms as Hugging Face stores them
  float scale = 1.0f;       // then multiplied; of vectors only, as `offset`
  bool neg_exp = false;     // a value x of the vector means -e^x: the decay kept as A_log
  std::string scales = {};  // MXFP4 in two tensors: the one with the scales; else empty
  // Packed as fp32 whatever the file or --quantization says: routers, whose products decide.
  bool full = false;

  bool present() const { return !name.empty(); }
};

struct NormSpec {
  kernels::NormKind kind = kernels::NormKind::kRms;
  float eps = 1e-5f;
  WeightSpec weight = {};
  WeightSpec bias = {};  // of a LayerNorm, which may lack it

  bool present() const { return weight.present(); }
};

// A matrix and its bias, which may not be present.
struct LinearSpec {
  WeightSpec weight = {};
  WeightSpec bias = {};

  bool present() const { return weight.present(); }
};

// ---- attention ----------------------------------------------------------------------------------

enum class RopeScaling : uint8_t { kNone, kLinear, kDynamic, kLlama3, kYarn, kLongrope };

struct RopeSpec {
  int32_t dims = 0;  // rotated dims per head, the first ones; 0: NoPE
  float theta = 10000.0f;
  bool interleaved = false;  // pair order the weights are stored for
  RopeScaling scaling = RopeScaling::kNone;
  float factor = 1.0f;
  int32_t original_context = 0;      // llama3, yarn, longrope, dynamic
  float low_freq_factor = 1.0f;      // llama3
  float high_freq_factor = 4.0f;     // llama3
  float beta_fast = 32.0f;           // yarn
  float beta_slow = 1.0f;            // yarn
  bool truncate = true;              // yarn: the ramp's ends are whole pairs
  float attention_factor = 0.0f;     // yarn, longrope; 0: what the scaling says by default
  std::vector<float> freq_divisors;  // per pair, a file's rope_freqs tensor; empty: none
  // longrope: divisors per pair, for prompts of up to original_context tokens and for longer ones.
  // A request's prompt decides for all of it, so that a token already cached never changes
  // (ARCHITECTURE.md).
  std::vector<float> short_divisors, long_divisors;

  bool operator==(const RopeSpec&) const = default;
};

// Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434): keys and values are made of one
// latent per token, and the cache keeps only that (and the rotated part of the key). The engine
// computes attention in the latent space: heads of rank + rope_dims against one kv head.
struct LatentSpec {
  int32_t rank = 0;       // of the latent
  int32_t nope_dims = 0;  // of a head's query and key that are not rotated
  int32_t rope_dims = 0;  // of them that are
  int32_t value_dims = 0;
  LinearSpec q_a;    // [q_rank, hidden]; not present: q_b reads the layer's input
  NormSpec q_norm;   // of q_a's outputs
  LinearSpec q_b;    // [heads * (nope_dims + rope_dims), q_rank or hidden]
  LinearSpec kv_a;   // [rank + rope_dims, hidden]
  NormSpec kv_norm;  // of the first `rank`
  // Of each head: what takes a query's nope_dims into the latent space, [rank, nope_dims], and a
  // latent to a value, [value_dims, rank].
  std::vector<WeightSpec> k_b, v_b;
};

enum class QkNorm : uint8_t { kNone, kPerHead, kWhole };  // one norm for all of a row's heads

struct AttentionSpec {
  NormSpec norm;       // of the layer's input
  NormSpec post_norm;  // of what is added to the residual
  int32_t heads = 0;
  int32_t kv_heads = 0;  // divides heads
  int32_t head_dim = 0;
  float scale = 0.0f;    // of q.k
  float softcap = 0.0f;  // 0: none; c: scores become c tanh(s / c)
  int32_t window = 0;    // 0: full; w: position p sees (p - w, p]
  RopeSpec rope;
  LinearSpec q, k, v;  // not present with `latent`
  LinearSpec gate;     // [heads * head_dim, hidden]: its sigmoid scales what attention makes
  LinearSpec o;
  QkNorm qk_norm = QkNorm::kNone;
  NormSpec q_norm, k_norm;  // weight of head_dim, or of all heads' (kWhole); before RoPE
  WeightSpec sinks;         // [heads]: a score that takes part in the softmax and has no value
  std::optional<LatentSpec> latent;
};

// ---- recurrence ---------------------------------------------------------------------------------

// A mixer that keeps a state of fixed size of a sequence instead of its past. What the fields are
// to each kind, RecurrentArgs says (kernels/block_ops.h).
struct RecurrentSpec {
  kernels::RecurrentGeometry geometry;
  std::vector<LinearSpec> input;          // of the layer's input; outputs concatenate
  kernels::HeadColumns q, k, v, z, b, a;  // among these
  WeightSpec conv_weight;                 // [width, channels], the oldest tap first
  WeightSpec conv_bias;                   // [channels], or not present
  WeightSpec decay;                       // [heads], below zero
  WeightSpec dt_bias;                     // [heads]
  WeightSpec skip;                        // [heads]
  NormSpec out_norm;
  float min_dt = 0.0f;
  float max_dt = std::numeric_limits<float>::infinity();
  LinearSpec o;  // [hidden, geometry.inner()]
};

// ---- MLP ----------------------------------------------------------------------------------------

// down(act(gate) * up), or down(act(up)) if there is no gate.
struct FeedForwardSpec {
  int32_t ffn = 0;
  LinearSpec gate, up, down;

  bool present() const { return up.present(); }
};

// Which experts a token goes to: scores of all, the best of them, and what they count.
struct RouterSpec {
  LinearSpec weight;  // [experts, hidden]
  int32_t experts = 0;
  int32_t top_k = 0;
  kernels::RouterScore score = kernels::RouterScore::kSoftmax;
  WeightSpec selection_bias;  // [experts], added for choosing only (DeepSeek-V3)
  int32_t groups = 1;         // experts are chosen from the best `top_groups` of these
  int32_t top_groups = 1;
  kernels::GroupScore group_score = kernels::GroupScore::kMax;
  bool normalize = false;  // the chosen ones' weights sum to 1
  float scale = 1.0f;      // of the weights, at last
};

struct MoeSpec {
  RouterSpec router;
  std::vector<FeedForwardSpec> experts;  // all of one shape
  FeedForwardSpec shared;                // every token's; may be absent
  LinearSpec shared_gate;  // [1, hidden]: sigmoid of it scales `shared`; may be absent
};

struct MlpSpec {
  NormSpec norm;
  NormSpec post_norm;
  kernels::Activation activation = kernels::Activation::kSilu;
  float activation_alpha = 0.0f;  // kSwigluClamped
  float activation_limit = 0.0f;
  FeedForwardSpec dense;       // this,
  std::optional<MoeSpec> moe;  // or this
};

// ---- the model ----------------------------------------------------------------------------------

struct LayerSpec {
  AttentionSpec attention;
  // In the attention's place: of `attention` only the norms of the mixer then count.
  std::optional<RecurrentSpec> recurrent;
  MlpSpec mlp;
  // Both read the layer's input and are added to it together (Cohere). mlp.norm is attention.norm.
  bool parallel = false;
};

struct ModelSpec {
  std::string architecture;  // the recipe's name: "llama"
  std::string name;          // for people; may be empty
  int32_t vocab = 0;
  int32_t hidden = 0;
  int32_t context = 0;  // tokens; what RoPE scaling makes of the trained length
  // What --max-model-len may ask for beyond `context`, where doing so changes the answers to short
  // prompts too (dynamic RoPE scaling). 0: nothing.
  int32_t longest_context = 0;
  float embedding_scale = 1.0f;  // of the embedding's rows
  float residual_scale = 1.0f;   // of what attention and MLP add
  float logit_softcap = 0.0f;    // 0: none
  WeightSpec embedding;          // [vocab, hidden]
  NormSpec final_norm;           // a scale of the logits is part of its weights
  LinearSpec lm_head;            // names the embedding when tied
  bool tied_embeddings = false;
  std::vector<std::string> notes;  // what was assumed for absent keys; shown to people
  std::vector<LayerSpec> layers;   // one at least has attention

  const AttentionSpec& first_attention() const {
    const auto has = [](const LayerSpec& layer) { return !layer.recurrent; };
    return std::find_if(layers.begin(), layers.end(), has)->attention;
  }
};

}  // namespace vivace::model
