#include "bench/roofline.h"

#include <algorithm>
#include <initializer_list>

#include "engine/memory_plan.h"
#include "tensor/dtype.h"

namespace vivace::bench {
namespace {

using MatrixCosts = std::function<MatrixCost(const model::WeightSpec&)>;

void Add(const model::WeightSpec& weight, const MatrixCosts& matrix, ModelCost::Part* part) {
  const MatrixCost cost = matrix(weight);
  const double macs = static_cast<double>(weight.rows) * weight.cols;
  part->bytes += static_cast<double>(cost.bytes);
  (cost.integer ? part->integer_macs : part->float_macs) += macs;
}

void AddPresent(std::initializer_list<const model::LinearSpec*> linears, const MatrixCosts& matrix,
                ModelCost::Part* part) {
  for (const model::LinearSpec* linear : linears) {
    if (linear->present()) Add(linear->weight, matrix, part);
  }
}

void AddLatent(const model::LatentSpec& latent, const MatrixCosts& matrix, ModelCost::Part* body,
               ModelCost::Part* rest) {
  Add(latent.kv_a.weight, matrix, body);
  AddPresent({&latent.q_a, &latent.q_b}, matrix, rest);
  for (const model::WeightSpec& head : latent.k_b) Add(head, matrix, rest);
  for (const model::WeightSpec& head : latent.v_b) Add(head, matrix, rest);
}

// Products of a row with its sequence's state: what it decays and takes up, and what is read.
double StateMacs(const kernels::RecurrentGeometry& g) {
  if (g.kind == kernels::RecurrentKind::kShortConv) return 0;
  const double state = static_cast<double>(g.heads) * g.key_dim * g.value_dim;
  return g.kind == kernels::RecurrentKind::kGatedDelta ? 3 * state : 2 * state;
}

void AddRecurrent(const model::RecurrentSpec& recurrent, const MatrixCosts& matrix, ModelCost* cost,
                  ModelCost::Part* rest) {
  for (const model::LinearSpec& input : recurrent.input) Add(input.weight, matrix, &cost->body);
  Add(recurrent.o.weight, matrix, rest);
  cost->body.float_macs += StateMacs(recurrent.geometry);
  cost->state_bytes +=
      static_cast<double>(recurrent.geometry.state_floats()) * double{sizeof(float)};
}

void AddFeedForward(const model::FeedForwardSpec& ffn, const MatrixCosts& matrix,
                    ModelCost::Part* part) {
  AddPresent({&ffn.gate, &ffn.up, &ffn.down}, matrix, part);
}

// Of experts a step reads those of one row at least, and every row computes as many.
void AddMlp(const model::MlpSpec& mlp, const MatrixCosts& matrix, ModelCost::Part* part) {
  if (!mlp.moe) return AddFeedForward(mlp.dense, matrix, part);
  const model::MoeSpec& moe = *mlp.moe;
  for (int32_t i = 0; i < moe.router.top_k; ++i) {
    AddFeedForward(moe.experts[static_cast<size_t>(i)], matrix, part);
  }
  AddFeedForward(moe.shared, matrix, part);
}

// Positions seen by rows at [first, first + rows), added up; the row at p sees itself and all
// before it, or the last `window`.
double PositionsSeen(int32_t first, int32_t rows, int32_t window) {
  const auto triangle = [](double n) { return n * (n + 1) / 2; };
  const double from = first, to = static_cast<double>(first) + rows;
  if (window == 0) return triangle(to) - triangle(from);
  const double growing_end = std::clamp<double>(window, from, to);  // rows before see all
  return triangle(growing_end) - triangle(from) + (to - growing_end) * window;
}

double BestRate(const MachineLimits& limits, int threads, std::initializer_list<MacKind> kinds) {
  double best = 0;
  for (const MacKind kind : kinds) best = std::max(best, limits.MacRate(kind, threads));
  return best;
}

// Zero work takes no time, whatever the rate.
double Seconds(double work, double rate) { return work > 0 ? work / rate : 0; }

}  // namespace

ModelCost CostOf(const model::ModelSpec& spec, size_t kv_block_bytes, int32_t block_size,
                 const std::function<MatrixCost(const model::WeightSpec&)>& matrix) {
  ModelCost cost;
  for (const model::LayerSpec& layer : spec.layers) {
    const model::AttentionSpec& a = layer.attention;
    const bool last = &layer == &spec.layers.back();
    ModelCost::Part* rest = last ? &cost.tail : &cost.body;
    AddMlp(layer.mlp, matrix, rest);
    if (layer.recurrent) {
      AddRecurrent(*layer.recurrent, matrix, &cost, rest);
      continue;
    }
    AddPresent({&a.k, &a.v}, matrix, &cost.body);
    AddPresent({&a.q, &a.gate, &a.o}, matrix, rest);
    if (a.latent) AddLatent(*a.latent, matrix, &cost.body, rest);
    const kernels::KvGeometry kv = LayerGeometry(a);
    cost.attention.push_back(
        {.macs_per_position = static_cast<double>(a.heads) * (kv.head_dim + kv.value_dim()),
         .bytes_per_position = static_cast<double>(kv_block_bytes) / block_size,
         .window = a.window,
         .last = last});
  }
  Add(spec.lm_head.weight, matrix, &cost.head);
  return cost;
}

Result<ModelCost> CostOf(const model::ModelFile& file, const kernels::BlockOps& ops,
                         const kernels::KvGeometry& kv) {
  Status fault;
  const bool integer_tier = ops.isa != Isa::kReference;
  ModelCost cost = CostOf(file.spec(), ops.kv_block_bytes(kv), kv.block_size,
                          [&](const model::WeightSpec& weight) {
                            const auto view = file.WeightShape(weight, ops);
                            if (!view) {
                              fault = tl::unexpected<Error>(view.error());
                              return MatrixCost{};
                            }
                            return MatrixCost{ops.packed_bytes(view->dtype, view->rows, view->cols),
                                              integer_tier && Info(view->dtype).block_elems > 1};
                          });
  VIVACE_RETURN_IF_ERROR(fault);
  return cost;
}

StepCost CostOf(const ModelCost& model, std::span<const StepPart> parts) {
  double rows = 0, logit_rows = 0;
  StepCost cost;
  for (const StepPart& part : parts) {
    cost.bytes += model.state_bytes;
    rows += part.rows;
    logit_rows += part.logit_rows;
    const int32_t end = part.first_position + part.rows;
    for (const ModelCost::AttentionLayer& layer : model.attention) {
      const int32_t asking = layer.last ? part.logit_rows : part.rows;
      if (asking == 0) continue;
      const double read = layer.window > 0 ? std::min(end, layer.window + asking - 1) : end;
      cost.bytes += read * layer.bytes_per_position;
      cost.attention_macs +=
          layer.macs_per_position * PositionsSeen(end - asking, asking, layer.window);
    }
  }
  cost.bytes += model.body.bytes;
  if (logit_rows > 0) cost.bytes += model.tail.bytes + model.head.bytes;
  cost.integer_macs = rows * model.body.integer_macs +
                      logit_rows * (model.tail.integer_macs + model.head.integer_macs);
  cost.float_macs =
      rows * model.body.float_macs + logit_rows * (model.tail.float_macs + model.head.float_macs);
  return cost;
}

StepRates RatesFor(const MachineLimits& limits, Isa isa, kernels::KvDType kv, int threads,
                   double working_set) {
  using enum MacKind;
  StepRates rates;
  rates.bytes = limits.ReadRate(static_cast<size_t>(working_set), threads);
  const double scalar = BestRate(limits, threads, {kFp32Xmm});
  if (isa == Isa::kReference) {
    rates.integer_macs = rates.float_macs = rates.attention_macs = scalar;
    return rates;
  }
  if (isa >= Isa::kAvx512) {
    rates.integer_macs = BestRate(limits, threads, {kDpbusdZmm, kDpbusdYmm});
    rates.float_macs = BestRate(limits, threads, {kFp32Zmm, kFp32Ymm});
    if (isa > Isa::kAvx512)  // bf16 products
      rates.float_macs = std::max(rates.float_macs, BestRate(limits, threads, {kDpbf16Zmm}));
  } else {
    rates.integer_macs = BestRate(limits, threads, {kMaddubsYmm, kFp32Ymm});
    if (isa > Isa::kAvx2)
      rates.integer_macs = std::max(rates.integer_macs, BestRate(limits, threads, {kDpbusdVex}));
    rates.float_macs = BestRate(limits, threads, {kFp32Ymm});
  }
  // An integer cache may be multiplied as integers.
  const bool float_cache = kv == kernels::KvDType::kF32 || kv == kernels::KvDType::kBF16;
  rates.attention_macs =
      float_cache ? rates.float_macs : std::max(rates.integer_macs, rates.float_macs);
  return rates;
}

std::string_view Name(Side side) { return side == Side::kBandwidth ? "bandwidth" : "compute"; }

StepLimit LimitOf(const StepCost& cost, const StepRates& rates) {
  const double reading = Seconds(cost.bytes, rates.bytes);
  const double computing = Seconds(cost.integer_macs, rates.integer_macs) +
                           Seconds(cost.float_macs, rates.float_macs) +
                           Seconds(cost.attention_macs, rates.attention_macs);
  return {std::max(reading, computing), reading >= computing ? Side::kBandwidth : Side::kCompute};
}

}  // namespace vivace::bench
