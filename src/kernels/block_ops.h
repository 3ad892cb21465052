// The table of block ops: what a backend computes, one entry per fused block of a transformer.
// Each tier (reference/, x86/ per ISA) exports one `const BlockOps`; engine/ walks a model with it.
//
// Every op obeys design rule 1: the result of a row depends on the weights, the row and its
// position only; never on the other rows of the step, the thread count or how the prompt was cut.
// Reduction order is fixed by K and by position. No op allocates: scratch comes from `Workspace`.
// All pointers are 64-byte aligned unless said. Thread: ops are called by the engine thread, one at
// a time, and run on `pool`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "base/cpu.h"
#include "base/ids.h"
#include "base/thread_pool.h"
#include "tensor/dtype.h"

namespace vivace::kernels {

// ---- weights ------------------------------------------------------------------------------------

// A matrix as it stands in a model file: `rows` rows of `cols` values, row-major, in `dtype`
// blocks.
struct WeightView {
  DType dtype = DType::kF32;
  int32_t rows = 0;  // outputs
  int32_t cols = 0;  // inputs
  const std::byte* data = nullptr;
};

// A matrix as one tier's kernels read it. Immutable once packed; `data` belongs to the weight
// arena.
struct PackedMatrix {
  DType dtype = DType::kF32;  // of the source
  int32_t rows = 0;
  int32_t cols = 0;
  const std::byte* data = nullptr;
};

// Up to three matrices over the same input, computed as one (Q, K, V; gate, up): outputs
// concatenate.
struct MatrixGroup {
  static constexpr int kMaxParts = 3;
  PackedMatrix parts[kMaxParts];
  int num_parts = 0;
  const float* bias = nullptr;  // [sum of rows] or null
};

// y = (x - mean) / sqrt(mean of squares + eps) * weight + bias; RMSNorm takes no mean off and has
// no bias.
enum class NormKind : uint8_t { kRms, kLayer };

struct Norm {
  NormKind kind = NormKind::kRms;
  const float* weight = nullptr;  // null: no norm, values as they are
  const float* bias = nullptr;    // of kLayer, or null
  float eps = 0;

  bool present() const { return weight != nullptr; }
};

// The weights of down(act(gate) * up), or of down(act(up)) if there is no gate.
struct FeedForward {
  MatrixGroup gate_up;  // gate and up, [ffn, hidden] each; or up alone
  MatrixGroup down;     // [hidden, ffn]

  bool present() const { return down.num_parts > 0; }
};

// How a router's outputs become scores, and a group of experts gets one.
enum class RouterScore : uint8_t { kSoftmax, kSigmoid, kSoftmaxOfChosen };
enum class GroupScore : uint8_t { kMax, kSumOfTwo };

// Rows of a packed matrix are packed and computed in tiles of this many outputs.
inline constexpr int kTileRows = 16;

// ---- step inputs --------------------------------------------------------------------------------

// Of cached K and V. kI8 keeps one fp32 scale for each token and kv head beside the int8 values.
enum class KvDType : uint8_t { kF32, kBF16, kI8 };

std::string_view Name(KvDType dtype);  // "f32", "bf16", "int8": what --kv-cache-dtype takes
std::optional<KvDType> ParseKvDType(std::string_view name);

// Geometry of one layer's paged cache. Block size is a multiple of 16 tokens. The byte layout
// inside a block is the tier's own; a block holds K and V of all kv heads for `block_size`
// positions.
struct KvGeometry {
  KvDType dtype = KvDType::kBF16;
  int32_t block_size = 16;
  int32_t kv_heads = 0;
  int32_t head_dim = 0;  // multiple of 2
  // Above 0: a value is the first latent_dim (a multiple of 2) dims of its key and is not kept
  // again (latent attention). 0: values have head_dim dims of their own.
  int32_t latent_dim = 0;

  int32_t value_dim() const { return latent_dim > 0 ? latent_dim : head_dim; }
};

struct KvCacheView {
  KvGeometry geometry;
  std::byte* data = nullptr;  // num_blocks * kv_block_bytes(geometry)
  int32_t num_blocks = 0;
};

// What a layer of fixed state computes in attention's place.
enum class RecurrentKind : uint8_t {
  kShortConv,   // LFM2: y = c * conv(b * x)
  kMamba2,      // arXiv:2405.21060: S = exp(dt a) S + dt B x^T; y = S^T C + D x
  kGatedDelta,  // arXiv:2412.06464: S = exp(g) S; S += beta k (v - S^T k)^T; y = S^T q
};

// Value head j goes with key head j / (heads / key_heads). kMamba2's keys are its B, queries its C,
// values its x; key heads are the groups of B and C, and key_dim the size of the state. kShortConv
// is one value head without keys.
struct RecurrentGeometry {
  static constexpr int32_t kMaxConvWidth = 8;
  static constexpr int32_t kMaxKeyDim = 256;

  RecurrentKind kind = RecurrentKind::kShortConv;
  int32_t heads = 1;
  int32_t key_heads = 1;  // divides `heads`
  int32_t key_dim = 0;
  int32_t value_dim = 0;
  int32_t conv_width = 2;  // taps, at least 2: the state holds the inputs of all but the last

  constexpr int32_t inner() const { return heads * value_dim; }  // outputs
  // Channels of the convolution: q, k, v of kGatedDelta; x, B, C of kMamba2; b * x of kShortConv;
  // all heads of one after the other.
  constexpr int32_t conv_channels() const { return inner() + 2 * key_heads * key_dim; }

  // A sequence's state: earlier inputs of the convolution, then each head's S. How S lies is the
  // tier's business.
  constexpr int64_t conv_floats() const { return Padded((conv_width - 1) * conv_channels()); }
  constexpr int64_t head_floats() const { return key_dim * Padded(value_dim); }
  constexpr int64_t state_floats() const { return conv_floats() + heads * head_floats(); }

 private:
  static constexpr int64_t Padded(int32_t floats) { return (int64_t{floats} + 15) / 16 * 16; }
};

// One sequence's part of the step: rows [first_row, first_row + num_rows) are its positions
// [first_position, first_position + num_rows); everything before is in the cache already.
struct SequenceRows {
  int32_t first_row = 0;
  int32_t num_rows = 0;
  int32_t first_position = 0;
  // Block table covering positions 0 .. first_position + num_rows - 1. Places that are all left of
  // the op's window may hold no block.
  const BlockId* blocks = nullptr;
  int32_t slot = 0;  // of the sequence's recurrent states
};

// RoPE of the step's rows, made once per step and RoPE kind, shared by all layers that use it.
struct RopeRows {
  const float* cos = nullptr;  // [rows, dims/2], attention factor (yarn) multiplied in
  const float* sin = nullptr;
  int32_t dims = 0;          // rotated dims of each head, even, <= head_dim; 0: no rotation
  bool interleaved = false;  // pairs (2i, 2i+1), as GGUF llama stores them; else (i, i + dims/2)
};

// Sequences of a step, by ascending index, whose block tables are the same for the positions
// [0, shared_positions): a hint, so that an op may read those once for all of them. Results are the
// same without it.
struct PrefixGroup {
  std::span<const int32_t> sequences;
  int32_t shared_positions = 0;
};

struct StepRows {
  int32_t num_rows = 0;
  std::span<const SequenceRows> sequences;
  std::span<const PrefixGroup> prefix_groups = {};  // a sequence is in one of them at most
};

// ---- op arguments -------------------------------------------------------------------------------

// Scratch of one op call, sized by `workspace_bytes` for the largest step.
struct Workspace {
  std::byte* data = nullptr;
  size_t bytes = 0;
};

struct EmbedArgs {
  const PackedMatrix* table;        // [vocab, hidden]
  std::span<const TokenId> tokens;  // [rows], each < vocab
  float scale = 1.0f;
  float* out;  // [rows, hidden]
};

struct NormQkvArgs {
  const float* x;  // [rows, hidden]
  Norm norm;
  const MatrixGroup* qkv;  // outputs: q [heads*head_dim], k, v [kv_heads*head_dim] each
  Norm q_norm = {};        // before RoPE, of each head alone
  Norm k_norm = {};
  bool whole_norms = false;  // or of all heads' values of a row together
  int32_t hidden;
  int32_t heads;
  RopeRows rope;
  StepRows step;
  KvCacheView kv;  // K and V of the rows are written here
  float* q;        // [rows, heads*head_dim], rotated
};

// Multi-head latent attention (arXiv:2405.04434) in the latent space: one kv head, whose keys are
// {latent [rank], rotated part [rope_dims]}, and queries to match. `attention` does the rest, over
// a cache of latent_dim = rank and head_dim = rank + rope_dims, and latent_values takes its outputs
// out of the latent space.
struct LatentQkvArgs {
  const float* x;  // [rows, hidden]
  Norm norm;
  // Two parts: q_a [q_rank], or if there is none q_b; and kv_a [rank + rope_dims].
  const MatrixGroup* input;
  Norm q_norm = {};                  // of q_a's outputs
  const MatrixGroup* q_b = nullptr;  // [heads * (nope_dims + rope_dims)]; null: part of `input`
  Norm kv_norm;                      // of the latent
  std::span<const MatrixGroup> k_b;  // of each head, [rank, nope_dims]
  RopeRows rope;
  StepRows step;
  KvCacheView kv;  // keys of the rows are written here
  float* q;        // [rows, heads * (rank + rope_dims)]
};

struct LatentValuesArgs {
  const float* y;                    // [rows, heads * rank]
  std::span<const MatrixGroup> v_b;  // of each head, [value_dims, rank]
  int32_t num_rows;
  float* out;  // [rows, heads * value_dims]
};

struct AttentionArgs {
  const float* q;  // [rows, heads*head_dim]
  int32_t heads;
  float scale;                   // of q.k, usually 1/sqrt(head_dim)
  float softcap = 0.0f;          // c > 0: scaled scores s become c tanh(s / c)
  int32_t window = 0;            // 0: full causal; w: position p sees (p-w, p]
  const float* sinks = nullptr;  // [heads]: scores in each softmax that have no value; or null
  StepRows step;
  KvCacheView kv;
  float* out;  // [rows, heads * value_dim()]
};

// y *= sigmoid(W norm(x) (+ bias)): the output gate of attention (Qwen3-Next).
struct GateArgs {
  const float* x;  // [rows, hidden]
  Norm norm;
  const MatrixGroup* gate;  // one part, [heads * value_dim, hidden]
  int32_t num_rows;
  float* y;  // [rows, rows of W]
};

// Where a part of each key head's share stands in a projected row: head h's at first + h * stride.
// Of what each value head has its own, those of a key head lie side by side.
struct HeadColumns {
  int32_t first = 0;
  int32_t stride = 0;
};

// Norm and projections, a causal convolution of each channel alone (then SiLU, but for kShortConv),
// the recurrence, and the gated norm. project_residual does the rest. A sequence whose
// first_position is 0 starts from zeros, whatever its slot holds.
struct RecurrentArgs {
  const float* x;  // [rows, hidden]
  Norm norm;
  const MatrixGroup* input;  // its outputs are a projected row
  RecurrentGeometry geometry;
  // Columns of a projected row:
  HeadColumns q = {};        // of kGatedDelta; C of kMamba2
  HeadColumns k = {};        // of kGatedDelta; B of kMamba2
  HeadColumns v = {};        // of kGatedDelta; x of the others
  HeadColumns z = {};        // the output's gate: z, but c of kShortConv
  HeadColumns b = {};        // of kGatedDelta: beta = sigmoid(b); of kShortConv
  HeadColumns a = {};        // of kGatedDelta: g = decay * softplus(a + dt_bias); dt of kMamba2
  const float* conv_weight;  // [conv_width, conv_channels()], the oldest tap first
  const float* conv_bias = nullptr;  // [conv_channels()]
  const float* decay = nullptr;      // [heads]: -exp(A_log)
  const float* dt_bias = nullptr;    // [heads]
  const float* skip = nullptr;       // [heads]: D of kMamba2
  float min_dt = 0.0f;               // kMamba2: bounds of softplus(dt + dt_bias)
  float max_dt = std::numeric_limits<float>::infinity();
  // kGatedDelta: norm(y) * silu(z), each head's y [value_dim] alone; kMamba2: norm(y * silu(z)), of
  // whole rows [inner()]. kRms.
  Norm out_norm = {};
  StepRows step;
  float* states;  // [slots, state_floats()]
  float* out;     // [rows, inner()]
};

// x += scale * norm(W y (+ bias)): the output projection of attention, and the down projection of
// the MLP.
struct ProjectResidualArgs {
  const float* y;             // [rows, cols of W]
  const MatrixGroup* weight;  // one part
  Norm norm = {};
  float scale = 1.0f;
  int32_t num_rows;
  float* x;  // [rows, rows of W]
};

// kSwigluClamped: (up + 1) * gate * sigmoid(alpha * gate), gate at most `limit` and up within it
// either way (gpt-oss).
enum class Activation : uint8_t { kSilu, kGeluTanh, kGelu, kRelu2, kSwigluClamped };

struct ActivationSpec {
  Activation kind = Activation::kSilu;
  float alpha = 0;  // kSwigluClamped
  float limit = 0;
};

// Whether products of gate and up can end in it; else they are stored first.
constexpr bool Fused(Activation kind) {
  return kind == Activation::kSilu || kind == Activation::kGeluTanh;
}

// out = act(Wg n) * (Wu n), n = norm(x); act(Wu n) if there is no gate.
struct NormGateUpArgs {
  const float* x;  // [rows, hidden]
  Norm norm;
  const MatrixGroup* gate_up;  // two parts: gate, up; [ffn, hidden] each. Or up alone
  ActivationSpec activation;
  int32_t num_rows;
  float* out;  // [rows, ffn]
};

// Which experts a row goes to, and what they count. Ties go to the lower id.
struct Router {
  MatrixGroup weight;  // [experts, hidden], packed from F32 so that products are in fp32
  int32_t top_k = 0;
  RouterScore score = RouterScore::kSoftmax;
  const float* selection_bias = nullptr;  // [experts], added to scores for choosing only; or null
  int32_t groups = 1;                     // of equal size, consecutive; if there are several,
  int32_t top_groups = 1;                 // scores outside the best of them count as 0
  GroupScore group_score = GroupScore::kMax;
  bool normalize = false;  // weights of the chosen sum to 1
  float scale = 1.0f;      // of the weights, at last

  int32_t experts() const { return weight.parts[0].rows; }
};

// out = the chosen experts' down(act(gate) * up) of n = norm(x), each times its weight, added up in
// the order of their ids; then the shared one's.
struct MoeArgs {
  const float* x;  // [rows, hidden]
  Norm norm;
  const Router* router;
  std::span<const FeedForward> experts;
  const FeedForward* shared = nullptr;
  const MatrixGroup* shared_gate = nullptr;  // [1, hidden]: its sigmoid is the shared one's weight
  ActivationSpec activation;
  int32_t num_rows;
  float* out;  // [rows, hidden]
};

// x += scale * norm(y)
struct AddRowsArgs {
  const float* y;  // [rows, cols]
  Norm norm = {};
  float scale = 1.0f;
  int32_t num_rows;
  int32_t cols;
  float* x;  // [rows, cols]
};

// logits = W norm(x[row]) (+ bias) for the chosen rows.
struct LmHeadArgs {
  const float* x;                 // [num_rows, hidden]
  std::span<const int32_t> rows;  // which rows of x
  Norm norm;
  const MatrixGroup* head;  // one part, [vocab, hidden]
  float softcap = 0.0f;     // c > 0: logits become c tanh(logit / c)
  float* logits;            // [rows.size(), vocab], rows padded to `logits_stride`
  int64_t logits_stride;    // floats, multiple of 16, >= vocab
};

// The best token of the chosen rows, by the logits of lm_head bit for bit (without a softcap, which
// makes ties); none of them is stored.
struct LmHeadArgmaxArgs {
  const float* x;                 // [num_rows, hidden]
  std::span<const int32_t> rows;  // which rows of x
  Norm norm;
  const MatrixGroup* head;  // one part, [vocab, hidden]
  // [rows.size()]: the first id of the greatest logit; -1 if a logit of the row is NaN or
  // +infinity, or none is above -infinity.
  TokenId* best;
};

// Largest step and model a workspace must serve.
struct WorkspaceShape {
  int32_t max_rows = 0;
  int32_t hidden = 0;
  int32_t max_cols = 0;  // widest matrix input of the model
  int32_t qkv_rows = 0;  // sum of q, k, v outputs
  int32_t ffn = 0;
  int32_t raw_ffn = 0;    // gate and up outputs of layers whose activation is not Fused() with them
  int32_t gate_rows = 0;  // outputs of attention's gate
  // Of mixtures of experts: all experts and those of a row.
  int32_t experts = 0;
  int32_t top_k = 0;
  // Of latent attention: outputs of LatentQkvArgs::input and of q_b, and the widest input of a
  // head.
  int32_t latent_outputs = 0;
  int32_t latent_cols = 0;
  int32_t recurrent_outputs = 0;  // widest projected row of recurrent layers
  int32_t max_context = 0;
  int32_t max_sequences = 0;
  int32_t threads = 1;
};

struct BlockOps {
  Isa isa;

  // Changes with any change of what `pack` writes: part of the key of packed weights on disk.
  uint32_t pack_version;

  // Weights. A null-safe capability check first: `cols` must be a multiple of the format's block.
  bool (*can_pack)(DType dtype, int32_t rows, int32_t cols);
  size_t (*packed_bytes)(DType dtype, int32_t rows, int32_t cols);
  // Packs tiles [first_tile, last_tile) of `source` (kTileRows rows each, the last may be short)
  // into their places in `out`, the whole matrix's packed_bytes. Calls for disjoint ranges may run
  // at once.
  void (*pack)(const WeightView& source, int32_t first_tile, int32_t last_tile, std::byte* out);

  KvDType default_kv_dtype;
  size_t (*kv_block_bytes)(const KvGeometry& geometry);
  size_t (*workspace_bytes)(const WorkspaceShape& shape);

  void (*embed)(const EmbedArgs&, ThreadPool&);
  void (*norm_qkv)(const NormQkvArgs&, Workspace, ThreadPool&);
  void (*latent_qkv)(const LatentQkvArgs&, Workspace, ThreadPool&);
  void (*attention)(const AttentionArgs&, Workspace, ThreadPool&);
  void (*latent_values)(const LatentValuesArgs&, Workspace, ThreadPool&);
  void (*recurrent)(const RecurrentArgs&, Workspace, ThreadPool&);
  void (*gate)(const GateArgs&, Workspace, ThreadPool&);
  void (*project_residual)(const ProjectResidualArgs&, Workspace, ThreadPool&);
  void (*norm_gate_up)(const NormGateUpArgs&, Workspace, ThreadPool&);
  void (*moe)(const MoeArgs&, Workspace, ThreadPool&);
  void (*add_rows)(const AddRowsArgs&, ThreadPool&);
  void (*lm_head)(const LmHeadArgs&, Workspace, ThreadPool&);
  void (*lm_head_argmax)(const LmHeadArgmaxArgs&, Workspace, ThreadPool&);
};

// The ops of a tier; the machine must support it (base/cpu.h). Static storage.
const BlockOps& GetBlockOps(Isa isa);

}  // namespace vivace::kernels
