// The weights a recipe names, checked as they are named: there, of the exact shape, of a type that
// can be read. Names are canonical; WeightSpecs have the file's. Lives as long as one recipe call;
// not thread-safe.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/source.h"
#include "model/spec.h"

namespace vivace::model {

// Whether a weight's bias is taken: never (one in the file is then unexpected), if the file has it,
// always.
enum class Bias : uint8_t { kNone, kOptional, kNeeded };

// Rows of a matrix that holds several, one after the other or by turns.
struct RowRange {
  int64_t total = 0;  // of the matrix
  int64_t first = 0;
  int64_t count = 0;
  int32_t stride = 1;  // of blocks of so many rows
  int32_t block = 1;
};

class WeightTable {
 public:
  explicit WeightTable(const ModelSource& source) : source_(source) {}

  // missing_tensor, shape_mismatch (with both shapes), unsupported_type. Sizes are checked
  // hyper-parameters or products of two of them.
  Result<WeightSpec> Matrix(std::string_view name, int64_t rows, int64_t cols);
  Result<WeightSpec> Vector(std::string_view name, int64_t length);
  // `name`.weight, and `name`.bias as `bias` says.
  Result<LinearSpec> Linear(std::string_view name, int64_t rows, int64_t cols,
                            Bias bias = Bias::kOptional);
  // The same of some rows of a fused matrix (and of its bias).
  Result<LinearSpec> Rows(std::string_view name, const RowRange& rows, int64_t cols,
                          Bias bias = Bias::kOptional);
  // Matrix `slice` of [slices, rows.total, cols], or some of its rows. `name` is whole.
  Result<WeightSpec> Slice(std::string_view name, int64_t slice, int64_t slices,
                           const RowRange& rows, int64_t cols);
  // The same of [slices, cols, rows.total].
  Result<WeightSpec> TransposedSlice(std::string_view name, int64_t slice, int64_t slices,
                                     const RowRange& rows, int64_t cols);
  // Of MXFP4 in two tensors of bytes: [slices, rows.total, cols / 32, 16] and, of scales,
  // [slices, rows.total, cols / 32].
  Result<WeightSpec> MxSlice(std::string_view blocks, std::string_view scales, int64_t slice,
                             int64_t slices, const RowRange& rows, int64_t cols);
  // A weight at a place of its own in the tensor `name` of this shape.
  Result<WeightSpec> Placed(std::string_view name, std::initializer_list<int64_t> shape,
                            WeightSpec place);
  // Values `rows` of row `slice` of [slices, rows.total].
  Result<WeightSpec> VectorSlice(std::string_view name, int64_t slice, int64_t slices,
                                 const RowRange& rows);
  bool Has(std::string_view name) const { return source_.Tensor(name).has_value(); }

  // The floats of an F32 vector that is configuration, not weight (rope_freqs).
  Result<std::vector<float>> ReadFloats(std::string_view name, int64_t length);

  // A tensor that is no weight of the model's layers (of another head, say): not unexpected.
  void Ignore(std::string_view file_name) { used_.emplace_back(file_name); }

  // A tensor nobody asked for means that this is not the model we take it for: unexpected_tensor.
  Status CheckAllUsed() const;

 private:
  Result<SourceTensor> Find(std::string_view name, std::initializer_list<int64_t> shape);
  // Placed, of types that matrices or vectors may have.
  Result<WeightSpec> Typed(std::string_view name, std::initializer_list<int64_t> shape, bool vector,
                           WeightSpec place);
  tl::unexpected<Error> Missing(std::string_view name) const;

  const ModelSource& source_;
  std::vector<std::string> used_;
};

}  // namespace vivace::model
