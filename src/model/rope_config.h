// The RoPE part of a configuration: scaling kind and its numbers, range-checked.
#pragma once

#include "base/result.h"
#include "model/hparams.h"
#include "model/source.h"
#include "model/spec.h"
#include "model/weight_table.h"

namespace vivace::model {

// Reads the rope.scaling.* keys; dims and theta come from `hparams`. Unknown kinds are refused by
// name. `interleaved` is the pair order this family's files store. What a file keeps as tensors
// (divisors: rope_freqs, rope_factors_short and _long) is read and counted as used.
Result<RopeSpec> ReadRope(const ModelSource& source, const Hparams& hparams, bool interleaved,
                          WeightTable* weights);

}  // namespace vivace::model
