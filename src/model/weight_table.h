// The weights a recipe names, checked as they are named: there, of the exact shape, of a type the
// block ops compute with. Lives as long as one recipe call; not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/source.h"
#include "model/spec.h"

namespace vivace::model {

class WeightTable {
 public:
  explicit WeightTable(const ModelSource& source) : source_(source) {}

  // missing_tensor, shape_mismatch (with both shapes), unsupported_type. Sizes are checked
  // hyper-parameters or products of two of them.
  Result<WeightSpec> Matrix(std::string_view name, int64_t rows, int64_t cols);
  Result<WeightSpec> Vector(std::string_view name, int64_t length);
  // A weight that is not present if the file has none.
  Result<WeightSpec> OptionalVector(std::string_view name, int64_t length);
  bool Has(std::string_view name) const { return source_.Tensor(name).has_value(); }

  // The floats of an F32 vector that is configuration, not weight (rope_freqs).
  Result<std::vector<float>> ReadFloats(std::string_view name, int64_t length);

  // A tensor nobody asked for means that this is not the model we take it for: unexpected_tensor.
  Status CheckAllUsed() const;

 private:
  Result<SourceTensor> Find(std::string_view name, int64_t rows, int64_t cols);

  const ModelSource& source_;
  std::vector<std::string> used_;
};

// Types the block ops compute matrices of; vectors (norms, biases) may be F32, F16 or BF16.
bool IsMatrixType(DType dtype);

}  // namespace vivace::model
