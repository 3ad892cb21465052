// Weights that do not lie in a file the way kernels pack them: rows of a stacked, fused,
// interleaved or transposed tensor, MXFP4 in two tensors, types no kernel of a tier knows,
// `--quantization`. Pure functions over checked tensors; load time, any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/result.h"
#include "kernels/block_ops.h"
#include "model/spec.h"
#include "model/weight_files.h"

namespace vivace::model {

// A WeightSpec's place in the tensor it names. `scales` is for MXFP4 in two tensors, else null.
struct WeightSource {
  const WeightSpec* spec;
  const StoredTensor* tensor;
  const StoredTensor* scales;
};

// True if the rows the spec names are inside the tensor, whole blocks of its type. Every
// WeightSource is checked with this before it is read.
bool Fits(const WeightSource& source);

DType StoredType(const WeightSource& source);
// The rows lie one after the other, as they are: where. Null: they have to be made.
const std::byte* ContiguousRows(const WeightSource& source);

// The type kernels of `ops` get: the stored one if they know it, else what is nearest; the one of
// `quantization` if the weight is a matrix of floats that it suits; fp32 if it is `full`.
DType LoadType(const WeightSource& source, std::optional<DType> quantization,
               const kernels::BlockOps& ops);

// `rows` rows of `cols` values as `dtype`, one after the other. Fails (unsupported_weight) where a
// type cannot hold a value.
Result<std::vector<std::byte>> MakeRows(const WeightSource& source, DType dtype);

// Rows as fp32, without offset and scale.
void ReadRows(const WeightSource& source, float* out);

}  // namespace vivace::model
