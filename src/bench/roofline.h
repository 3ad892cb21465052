// The least time a step can take on a machine with given limits: bytes that must be read over the
// bandwidth, multiply-adds that must be done over their peak rates, whichever is longer.
//
//   bytes  weights as packed, once a step (the head only if a row wants logits), and each
//          sequence's keys and values up to its last position and its recurrent states, once a step
//   MACs   every row through the layers, logit rows through the head, each row against the
//          positions it sees
//
// Of a mixture of experts the bytes are those of one row's experts: more rows may want the same.
// What the last layer does beside its keys and values counts for logit rows only: of the others
// nobody would read it.
//
// Embedding rows, norms, activations and the arithmetic of unpacking are not counted: a limit that
// leaves work out stays a limit. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/cpu.h"
#include "base/result.h"
#include "bench/machine_limits.h"
#include "kernels/block_ops.h"
#include "model/loaded_model.h"
#include "model/spec.h"

namespace vivace::bench {

// What one matrix costs: packed bytes, and whether its products are of integers.
struct MatrixCost {
  size_t bytes = 0;
  bool integer = false;
};

// What the parts of a model cost, once.
struct ModelCost {
  struct Part {
    double bytes = 0;
    double integer_macs = 0;  // per row
    double float_macs = 0;
  };
  Part body;  // the layers' matrices, but for
  Part tail;  // those of the last layer that only logits need
  Part head;
  struct AttentionLayer {
    double macs_per_position = 0;  // of one row against one position, both products
    double bytes_per_position = 0;
    int32_t window = 0;  // 0: all
    bool last = false;   // of the model's layers
  };
  std::vector<AttentionLayer> attention;
  double state_bytes = 0;  // of recurrent layers, for each sequence of a step
};

// `matrix` says what a weight costs; `kv_block_bytes` is of one block of one layer.
ModelCost CostOf(const model::ModelSpec& spec, size_t kv_block_bytes, int32_t block_size,
                 const std::function<MatrixCost(const model::WeightSpec&)>& matrix);

// The same for a checked file as `ops` packs it.
Result<ModelCost> CostOf(const model::ModelFile& file, const kernels::BlockOps& ops,
                         const kernels::KvGeometry& kv);

// One sequence's part of a step: rows at [first_position, first_position + rows).
struct StepPart {
  int32_t first_position = 0;
  int32_t rows = 1;
  int32_t logit_rows = 1;  // the last of them
};

struct StepCost {
  double bytes = 0;
  double integer_macs = 0;
  double float_macs = 0;
  double attention_macs = 0;
};

StepCost CostOf(const ModelCost& model, std::span<const StepPart> parts);

// What the machine can do, for this kind of step.
struct StepRates {
  double bytes = 0;  // a second
  double integer_macs = 0;
  double float_macs = 0;
  double attention_macs = 0;
};

// The best instruction of each kind a tier may use, and the bandwidth at the step's working set.
StepRates RatesFor(const MachineLimits& limits, Isa isa, kernels::KvDType kv, int threads,
                   double working_set);

enum class Side : uint8_t { kBandwidth, kCompute };
std::string_view Name(Side side);

struct StepLimit {
  double seconds = 0;
  Side side = Side::kBandwidth;
};

StepLimit LimitOf(const StepCost& cost, const StepRates& rates);

// A measured time below the limit's by more than this says that the limit is wrong.
inline constexpr double kMostFraction = 1.03;

}  // namespace vivace::bench
