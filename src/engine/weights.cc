#include "engine/weights.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/check.h"
#include "engine/weight_cache/digest.h"
#include "quant/dequantize.h"

namespace vivace {
namespace {

using kernels::BlockOps;
using kernels::MatrixGroup;
using kernels::PackedMatrix;
using kernels::WeightView;
using model::WeightSpec;

constexpr int32_t kTilesPerItem = 16;

// A vector of the file, or `size` zeros if it has none.
struct VectorPart {
  const WeightSpec* spec = nullptr;
  int32_t size = 0;
};

// Walks a model's weights once to measure the arena and once to fill it, or to find what fills it
// already, so that these cannot disagree.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual Result<PackedMatrix> Matrix(const WeightSpec& spec) = 0;
  // The parts as fp32, one after the other. One at least is present.
  virtual Result<const float*> Vector(std::span<const VectorPart> parts) = 0;
};

size_t VectorBytes(std::span<const VectorPart> parts) {
  size_t count = 0;
  for (const VectorPart& part : parts) count += static_cast<size_t>(part.size);
  return Arena::Rounded(count * sizeof(float));
}

class Measure final : public Sink {
 public:
  Measure(const model::ModelFile& file, const BlockOps& ops) : file_(file), ops_(ops) {}

  Result<PackedMatrix> Matrix(const WeightSpec& spec) override {
    VIVACE_ASSIGN(const WeightView view, file_.WeightShape(spec, ops_));
    if (!ops_.can_pack(view.dtype, view.rows, view.cols)) {
      return Fail(ErrorCode::kUnsupported, "unsupported_weight", spec.name,
                  "{}: tensor {} ({}, {} x {}) is not one the {} kernels can compute with",
                  file_.path(), spec.name, Info(view.dtype).name, view.rows, view.cols,
                  Name(ops_.isa));
    }
    const size_t bytes = ops_.packed_bytes(view.dtype, view.rows, view.cols);
    bytes_ += Arena::Rounded(bytes);
    Note(spec);
    fmt::format_to(std::back_inserter(plan_), "{} {}x{} {}\n", Info(view.dtype).name, view.rows,
                   view.cols, bytes);
    return PackedMatrix{view.dtype, view.rows, view.cols, nullptr};
  }

  Result<const float*> Vector(std::span<const VectorPart> parts) override {
    for (const VectorPart& part : parts) {
      Note(*part.spec);
      fmt::format_to(std::back_inserter(plan_), "{} ", part.size);
    }
    plan_ += '\n';
    bytes_ += VectorBytes(parts);
    return nullptr;
  }

  size_t bytes() const { return bytes_; }
  uint64_t plan_digest() const {
    return weight_cache::Digest(std::as_bytes(std::span(std::as_const(plan_))));
  }

 private:
  // Where it lies and what becomes of its values.
  void Note(const WeightSpec& spec) {
    fmt::format_to(std::back_inserter(plan_), "{} {}/{} {}*{}/{}{} {}{} {} [{}] ", spec.name,
                   spec.slice, spec.slices, spec.first_row, spec.row_stride, spec.row_block,
                   spec.transposed ? "t" : "", spec.neg_exp ? "e" : "", spec.offset, spec.scale,
                   spec.scales);
  }

  const model::ModelFile& file_;
  const BlockOps& ops_;
  size_t bytes_ = 0;
  std::string plan_;  // all that a packed arena's meaning depends on beside the packing itself
};

// Finds the weights in an arena that was filled before.
class Place final : public Sink {
 public:
  Place(const model::ModelFile& file, const BlockOps& ops, Arena* arena)
      : file_(file), ops_(ops), arena_(arena) {}

  Result<PackedMatrix> Matrix(const WeightSpec& spec) override {
    VIVACE_ASSIGN(const WeightView view, file_.WeightShape(spec, ops_));
    return PackedMatrix{view.dtype, view.rows, view.cols,
                        arena_->Take(ops_.packed_bytes(view.dtype, view.rows, view.cols))};
  }

  Result<const float*> Vector(std::span<const VectorPart> parts) override {
    return reinterpret_cast<const float*>(arena_->Take(VectorBytes(parts)));
  }

 private:
  const model::ModelFile& file_;
  const BlockOps& ops_;
  Arena* arena_;
};

class Pack final : public Sink {
 public:
  Pack(const model::ModelFile& file, const BlockOps& ops, ThreadPool& pool, Arena* arena,
       const LoadProgress& progress)
      : file_(file), ops_(ops), pool_(pool), arena_(arena), progress_(progress) {}

  Result<PackedMatrix> Matrix(const WeightSpec& spec) override {
    file_.Prefetch(spec);
    VIVACE_ASSIGN(const WeightView view, file_.Weight(spec, ops_, &scratch_));
    const size_t bytes = ops_.packed_bytes(view.dtype, view.rows, view.cols);
    std::byte* out = arena_->Take(bytes);
    const int32_t tiles = (view.rows + kernels::kTileRows - 1) / kernels::kTileRows;
    pool_.ForEach((tiles + kTilesPerItem - 1) / kTilesPerItem, [&](int64_t item) {
      const auto first = static_cast<int32_t>(item) * kTilesPerItem;
      ops_.pack(view, first, std::min(first + kTilesPerItem, tiles), out);
    });
    file_.Release(spec);
    VIVACE_RETURN_IF_ERROR(Done(bytes));
    return PackedMatrix{view.dtype, view.rows, view.cols, out};
  }

  Result<const float*> Vector(std::span<const VectorPart> parts) override {
    auto* out = reinterpret_cast<float*>(arena_->Take(VectorBytes(parts)));
    float* at = out;
    for (const VectorPart& part : parts) {
      if (part.spec->present()) VIVACE_RETURN_IF_ERROR(file_.ReadVector(*part.spec, at));
      at += part.size;
    }
    VIVACE_RETURN_IF_ERROR(Done(VectorBytes(parts)));
    return out;
  }

 private:
  Status Done(size_t bytes) {
    done_ += Arena::Rounded(bytes);
    if (!progress_ || progress_(done_, arena_->size())) return {};
    return Fail(ErrorCode::kUnavailable, "load_stopped", "", "loading the model was stopped");
  }

  const model::ModelFile& file_;
  const BlockOps& ops_;
  ThreadPool& pool_;
  Arena* arena_;
  const LoadProgress& progress_;
  uint64_t done_ = 0;
  std::vector<std::byte> scratch_;  // a weight that does not lie in the file as it is packed
};

// A group of matrices over the same input, with their biases joined if any has one.
Result<MatrixGroup> Group(Sink* sink, std::span<const model::LinearSpec* const> parts) {
  VIVACE_CHECK(parts.size() <= MatrixGroup::kMaxParts);
  MatrixGroup group;
  std::array<VectorPart, MatrixGroup::kMaxParts> biases;
  bool any = false;
  for (const model::LinearSpec* part : parts) {
    if (!part->present()) continue;
    const auto i = static_cast<size_t>(group.num_parts++);
    VIVACE_ASSIGN(group.parts[i], sink->Matrix(part->weight));
    biases[i] = {&part->bias, part->weight.rows};
    any = any || part->bias.present();
  }
  if (!any) return group;
  VIVACE_ASSIGN(group.bias,
                sink->Vector(std::span(biases).first(static_cast<size_t>(group.num_parts))));
  return group;
}

Result<MatrixGroup> Group(Sink* sink, std::initializer_list<const model::LinearSpec*> parts) {
  return Group(sink, std::span(parts.begin(), parts.size()));
}

Result<std::vector<MatrixGroup>> Groups(Sink* sink, std::span<const WeightSpec> specs) {
  std::vector<MatrixGroup> groups;
  for (const WeightSpec& spec : specs) {
    MatrixGroup& group = groups.emplace_back();
    group.num_parts = 1;
    VIVACE_ASSIGN(group.parts[0], sink->Matrix(spec));
  }
  return groups;
}

// Null if the model has none.
Result<const float*> Vector(Sink* sink, const WeightSpec& spec) {
  if (!spec.present()) return nullptr;
  const VectorPart part{&spec, spec.rows * spec.cols};
  return sink->Vector({&part, 1});
}

Result<kernels::Norm> Norm(Sink* sink, const model::NormSpec& spec) {
  kernels::Norm norm{.kind = spec.kind, .eps = spec.eps};
  VIVACE_ASSIGN(norm.weight, Vector(sink, spec.weight));
  VIVACE_ASSIGN(norm.bias, Vector(sink, spec.bias));
  return norm;
}

Result<kernels::FeedForward> Ffn(Sink* sink, const model::FeedForwardSpec& spec) {
  kernels::FeedForward ffn;
  if (!spec.present()) return ffn;
  VIVACE_ASSIGN(ffn.gate_up, Group(sink, {&spec.gate, &spec.up}));
  VIVACE_ASSIGN(ffn.down, Group(sink, {&spec.down}));
  return ffn;
}

Result<MoeWeights> Moe(Sink* sink, const model::MoeSpec& spec) {
  const model::RouterSpec& r = spec.router;
  MoeWeights moe;
  moe.router = {.weight = {},
                .top_k = r.top_k,
                .score = r.score,
                .groups = r.groups,
                .top_groups = r.top_groups,
                .group_score = r.group_score,
                .normalize = r.normalize,
                .scale = r.scale};
  VIVACE_ASSIGN(moe.router.weight, Group(sink, {&r.weight}));
  VIVACE_ASSIGN(moe.router.selection_bias, Vector(sink, r.selection_bias));
  moe.experts.reserve(spec.experts.size());
  for (const model::FeedForwardSpec& expert : spec.experts) {
    VIVACE_ASSIGN(kernels::FeedForward packed, Ffn(sink, expert));
    moe.experts.push_back(packed);
  }
  VIVACE_ASSIGN(moe.shared, Ffn(sink, spec.shared));
  VIVACE_ASSIGN(moe.shared_gate, Group(sink, {&spec.shared_gate}));
  return moe;
}

Result<LatentWeights> Latent(Sink* sink, const model::LatentSpec& spec) {
  LatentWeights latent;
  const model::LinearSpec& first = spec.q_a.present() ? spec.q_a : spec.q_b;
  VIVACE_ASSIGN(latent.input, Group(sink, {&first, &spec.kv_a}));
  VIVACE_ASSIGN(latent.q_norm, Norm(sink, spec.q_norm));
  if (spec.q_a.present()) {
    VIVACE_ASSIGN(latent.q_b, Group(sink, {&spec.q_b}));
  }
  VIVACE_ASSIGN(latent.kv_norm, Norm(sink, spec.kv_norm));
  VIVACE_ASSIGN(latent.k_b, Groups(sink, spec.k_b));
  VIVACE_ASSIGN(latent.v_b, Groups(sink, spec.v_b));
  return latent;
}

Result<RecurrentWeights> Recurrent(Sink* sink, const model::RecurrentSpec& spec) {
  RecurrentWeights recurrent;
  std::vector<const model::LinearSpec*> input;
  for (const model::LinearSpec& part : spec.input) input.push_back(&part);
  VIVACE_ASSIGN(recurrent.input, Group(sink, input));
  VIVACE_ASSIGN(recurrent.conv_weight, Vector(sink, spec.conv_weight));
  VIVACE_ASSIGN(recurrent.conv_bias, Vector(sink, spec.conv_bias));
  VIVACE_ASSIGN(recurrent.decay, Vector(sink, spec.decay));
  VIVACE_ASSIGN(recurrent.dt_bias, Vector(sink, spec.dt_bias));
  VIVACE_ASSIGN(recurrent.skip, Vector(sink, spec.skip));
  VIVACE_ASSIGN(recurrent.out_norm, Norm(sink, spec.out_norm));
  return recurrent;
}

Result<LayerWeights> Layer(Sink* sink, const model::LayerSpec& spec) {
  const model::AttentionSpec& a = spec.attention;
  const model::MlpSpec& m = spec.mlp;
  LayerWeights layer;
  VIVACE_ASSIGN(layer.attention_norm, Norm(sink, a.norm));
  VIVACE_ASSIGN(layer.attention_post_norm, Norm(sink, a.post_norm));
  VIVACE_ASSIGN(layer.q_norm, Norm(sink, a.q_norm));
  VIVACE_ASSIGN(layer.k_norm, Norm(sink, a.k_norm));
  VIVACE_ASSIGN(layer.qkv, Group(sink, {&a.q, &a.k, &a.v}));
  if (a.latent) {
    VIVACE_ASSIGN(layer.latent, Latent(sink, *a.latent));
  }
  if (spec.recurrent) {
    VIVACE_ASSIGN(layer.recurrent, Recurrent(sink, *spec.recurrent));
  }
  VIVACE_ASSIGN(layer.gate, Group(sink, {&a.gate}));
  VIVACE_ASSIGN(layer.sinks, Vector(sink, a.sinks));
  VIVACE_ASSIGN(layer.o, Group(sink, {spec.recurrent ? &spec.recurrent->o : &a.o}));
  VIVACE_ASSIGN(layer.mlp_norm, Norm(sink, m.norm));
  VIVACE_ASSIGN(layer.mlp_post_norm, Norm(sink, m.post_norm));
  VIVACE_ASSIGN(layer.dense, Ffn(sink, m.dense));
  if (m.moe) {
    VIVACE_ASSIGN(layer.moe, Moe(sink, *m.moe));
  }
  return layer;
}

Status Walk(Sink* sink, const model::ModelSpec& spec, Weights* weights) {
  VIVACE_ASSIGN(weights->embedding, sink->Matrix(spec.embedding));
  weights->layers.reserve(spec.layers.size());
  for (const model::LayerSpec& layer : spec.layers) {
    VIVACE_ASSIGN(LayerWeights packed, Layer(sink, layer));
    weights->layers.push_back(std::move(packed));
  }
  VIVACE_ASSIGN(weights->final_norm, Norm(sink, spec.final_norm));
  weights->lm_head.num_parts = 1;
  weights->lm_head.parts[0] = weights->embedding;
  if (!spec.tied_embeddings) {
    VIVACE_ASSIGN(weights->lm_head.parts[0], sink->Matrix(spec.lm_head.weight));
  }
  VIVACE_ASSIGN(weights->lm_head.bias, Vector(sink, spec.lm_head.bias));
  return {};
}

struct WeightPlan {
  size_t bytes;
  uint64_t digest;
};

Result<WeightPlan> PlanWeights(const model::ModelFile& file, const BlockOps& ops) {
  Measure measure(file, ops);
  Weights unused;
  VIVACE_RETURN_IF_ERROR(Walk(&measure, file.spec(), &unused));
  return WeightPlan{measure.bytes(), measure.plan_digest()};
}

}  // namespace

Result<size_t> WeightArenaBytes(const model::ModelFile& file, const BlockOps& ops) {
  VIVACE_ASSIGN(const WeightPlan plan, PlanWeights(file, ops));
  return plan.bytes;
}

Result<Weights> LoadWeights(const EngineConfig& config, const model::ModelFile& file,
                            const BlockOps& ops, ThreadPool& pool, const LoadProgress& progress) {
  Weights weights;
  VIVACE_ASSIGN(const WeightPlan plan, PlanWeights(file, ops));
  VIVACE_ASSIGN(weights.arena, Arena::Map(plan.bytes, "the weights"));
  std::optional<weight_cache::WeightCache> cache;
  if (!config.weight_cache.empty()) {
    cache.emplace(config.weight_cache, static_cast<uint64_t>(config.weight_cache_size), file, ops,
                  plan.digest, weights.arena.size());
    if (cache->Read(weights.arena.bytes(), pool, progress)) {
      Place place(file, ops, &weights.arena);
      VIVACE_RETURN_IF_ERROR(Walk(&place, file.spec(), &weights));
      return weights;
    }
    // Packing counts on zeros, and half an entry may have been read.
    VIVACE_ASSIGN(weights.arena, Arena::Map(plan.bytes, "the weights"));
  }
  Pack pack(file, ops, pool, &weights.arena, progress);
  VIVACE_RETURN_IF_ERROR(Walk(&pack, file.spec(), &weights));
  VIVACE_RETURN_IF_ERROR(file.CheckUnchanged());
  if (cache) weights.writer = cache->Write(weights.arena.bytes());
  return weights;
}

}  // namespace vivace
