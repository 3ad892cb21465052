#include "engine/weights.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <utility>

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

// Walks a model's weights once to measure the arena and once to fill it, or to find what fills it
// already, so that these cannot disagree.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual Result<PackedMatrix> Matrix(const WeightSpec& spec) = 0;
  // fp32 vectors of `specs` one after the other; an absent one counts sizes[i] zeros. One at least
  // is present.
  virtual Result<const float*> Vector(std::initializer_list<const WeightSpec*> specs,
                                      std::initializer_list<int32_t> sizes) = 0;
};

size_t VectorBytes(std::initializer_list<int32_t> sizes) {
  size_t count = 0;
  for (const int32_t size : sizes) count += static_cast<size_t>(size);
  return Arena::Rounded(count * sizeof(float));
}

class Measure final : public Sink {
 public:
  Measure(const model::ModelFile& file, const BlockOps& ops) : file_(file), ops_(ops) {}

  Result<PackedMatrix> Matrix(const WeightSpec& spec) override {
    VIVACE_ASSIGN(const WeightView view, file_.Weight(spec));
    if (!ops_.can_pack(view.dtype, view.rows, view.cols)) {
      return Fail(ErrorCode::kUnsupported, "unsupported_weight", spec.name,
                  "{}: tensor {} ({}, {} x {}) is not one the {} kernels can compute with",
                  file_.path(), spec.name, Info(view.dtype).name, view.rows, view.cols,
                  Name(ops_.isa));
    }
    const size_t bytes = ops_.packed_bytes(view.dtype, view.rows, view.cols);
    bytes_ += Arena::Rounded(bytes);
    fmt::format_to(std::back_inserter(plan_), "{} {} {}x{} {}\n", spec.name, Info(view.dtype).name,
                   view.rows, view.cols, bytes);
    return PackedMatrix{view.dtype, view.rows, view.cols, nullptr};
  }

  Result<const float*> Vector(std::initializer_list<const WeightSpec*> specs,
                              std::initializer_list<int32_t> sizes) override {
    for (const WeightSpec* spec : specs) plan_ += spec->name + ' ';
    plan_ += fmt::format("{}\n", fmt::join(sizes, "+"));
    bytes_ += VectorBytes(sizes);
    return nullptr;
  }

  size_t bytes() const { return bytes_; }
  uint64_t plan_digest() const {
    return weight_cache::Digest(std::as_bytes(std::span(std::as_const(plan_))));
  }

 private:
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
    VIVACE_ASSIGN(const WeightView view, file_.Weight(spec));
    return PackedMatrix{view.dtype, view.rows, view.cols,
                        arena_->Take(ops_.packed_bytes(view.dtype, view.rows, view.cols))};
  }

  Result<const float*> Vector(std::initializer_list<const WeightSpec*>,
                              std::initializer_list<int32_t> sizes) override {
    return reinterpret_cast<const float*>(arena_->Take(VectorBytes(sizes)));
  }

 private:
  const model::ModelFile& file_;
  const BlockOps& ops_;
  Arena* arena_;
};

class Pack final : public Sink {
 public:
  Pack(const model::ModelFile& file, const BlockOps& ops, ThreadPool& pool, Arena* arena,
       const std::function<void(uint64_t, uint64_t)>& progress)
      : file_(file), ops_(ops), pool_(pool), arena_(arena), progress_(progress) {}

  Result<PackedMatrix> Matrix(const WeightSpec& spec) override {
    VIVACE_ASSIGN(const WeightView view, file_.Weight(spec));
    const size_t bytes = ops_.packed_bytes(view.dtype, view.rows, view.cols);
    std::byte* out = arena_->Take(bytes);
    file_.Prefetch(spec);
    const int32_t tiles = (view.rows + kernels::kTileRows - 1) / kernels::kTileRows;
    pool_.ForEach((tiles + kTilesPerItem - 1) / kTilesPerItem, [&](int64_t item) {
      const auto first = static_cast<int32_t>(item) * kTilesPerItem;
      ops_.pack(view, first, std::min(first + kTilesPerItem, tiles), out);
    });
    file_.Release(spec);
    Done(bytes);
    return PackedMatrix{view.dtype, view.rows, view.cols, out};
  }

  Result<const float*> Vector(std::initializer_list<const WeightSpec*> specs,
                              std::initializer_list<int32_t> sizes) override {
    auto* out = reinterpret_cast<float*>(arena_->Take(VectorBytes(sizes)));
    float* at = out;
    for (size_t i = 0; i < specs.size(); ++i) {
      const WeightSpec& spec = **(specs.begin() + i);
      if (spec.present()) {
        VIVACE_ASSIGN(const WeightView view, file_.Weight(spec));
        quant::DequantizeRow(view.dtype, view.data, int64_t{view.rows} * view.cols, at);
      }
      at += *(sizes.begin() + i);
    }
    Done(VectorBytes(sizes));
    return out;
  }

 private:
  void Done(size_t bytes) {
    done_ += Arena::Rounded(bytes);
    if (progress_) progress_(done_, arena_->size());
  }

  const model::ModelFile& file_;
  const BlockOps& ops_;
  ThreadPool& pool_;
  Arena* arena_;
  const std::function<void(uint64_t, uint64_t)>& progress_;
  uint64_t done_ = 0;
};

// A group of matrices over the same input, with their biases joined if any has one.
Result<MatrixGroup> Group(Sink* sink, std::initializer_list<const WeightSpec*> matrices,
                          std::initializer_list<const WeightSpec*> biases) {
  MatrixGroup group;
  for (const WeightSpec* spec : matrices) {
    VIVACE_ASSIGN(group.parts[group.num_parts], sink->Matrix(*spec));
    ++group.num_parts;
  }
  const bool any =
      std::any_of(biases.begin(), biases.end(), [](const WeightSpec* b) { return b->present(); });
  if (!any) return group;
  const auto rows = [&](int i) { return i < group.num_parts ? group.parts[i].rows : 0; };
  VIVACE_ASSIGN(group.bias, sink->Vector(biases, {rows(0), rows(1), rows(2)}));
  return group;
}

Result<const float*> Norm(Sink* sink, const WeightSpec& spec) {
  if (!spec.present()) return nullptr;
  return sink->Vector({&spec}, {spec.rows * spec.cols});
}

Result<LayerWeights> Layer(Sink* sink, const model::LayerSpec& spec) {
  const model::AttentionSpec& a = spec.attention;
  const model::MlpSpec& m = spec.mlp;
  LayerWeights layer;
  VIVACE_ASSIGN(layer.attention_norm, Norm(sink, a.norm));
  VIVACE_ASSIGN(layer.q_norm, Norm(sink, a.q_norm));
  VIVACE_ASSIGN(layer.k_norm, Norm(sink, a.k_norm));
  VIVACE_ASSIGN(layer.qkv, Group(sink, {&a.q, &a.k, &a.v}, {&a.q_bias, &a.k_bias, &a.v_bias}));
  VIVACE_ASSIGN(layer.o, Group(sink, {&a.o}, {&a.o_bias}));
  VIVACE_ASSIGN(layer.mlp_norm, Norm(sink, m.norm));
  VIVACE_ASSIGN(layer.gate_up, Group(sink, {&m.gate, &m.up}, {&m.gate_bias, &m.up_bias}));
  VIVACE_ASSIGN(layer.down, Group(sink, {&m.down}, {&m.down_bias}));
  return layer;
}

Status Walk(Sink* sink, const model::ModelSpec& spec, Weights* weights) {
  VIVACE_ASSIGN(weights->embedding, sink->Matrix(spec.embedding));
  for (const model::LayerSpec& layer : spec.layers) {
    VIVACE_ASSIGN(LayerWeights packed, Layer(sink, layer));
    weights->layers.push_back(packed);
  }
  VIVACE_ASSIGN(weights->final_norm, Norm(sink, spec.final_norm));
  weights->lm_head.num_parts = 1;
  weights->lm_head.parts[0] = weights->embedding;
  if (!spec.tied_embeddings) {
    VIVACE_ASSIGN(weights->lm_head.parts[0], sink->Matrix(spec.lm_head));
  }
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
                            const BlockOps& ops, ThreadPool& pool,
                            const std::function<void(uint64_t, uint64_t)>& progress) {
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
