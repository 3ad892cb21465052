#include "model/weight_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

namespace vivace::model {
namespace {

constexpr DType kVectorTypes[] = {DType::kF32, DType::kF16, DType::kBF16};
constexpr std::string_view kBytes = "U8";  // safetensors' name of the type

// Sizes of 1 in front say nothing: [1, n] is a vector of n.
template <typename T>
std::span<const T> Significant(std::span<const T> shape) {
  const auto first = std::ranges::find_if(shape, [](T dim) { return dim != 1; });
  return {first, shape.end()};
}

bool SameShape(std::span<const uint64_t> shape, std::span<const int64_t> wanted) {
  const auto a = Significant(shape);
  const auto b = Significant(wanted);
  return std::ranges::equal(a, b,
                            [](uint64_t x, int64_t y) { return x == static_cast<uint64_t>(y); });
}

bool IsVectorType(DType dtype) {
  return std::ranges::find(kVectorTypes, dtype) != std::end(kVectorTypes);
}

// Some rows of slice `slice`, of a tensor yet to be named.
WeightSpec Place(int64_t slice, int64_t slices, const RowRange& rows, int64_t cols) {
  return {.name = {},
          .rows = static_cast<int32_t>(rows.count),
          .cols = static_cast<int32_t>(cols),
          .slice = static_cast<int32_t>(slice),
          .slices = static_cast<int32_t>(slices),
          .first_row = static_cast<int32_t>(rows.first),
          .row_stride = rows.stride,
          .row_block = rows.block};
}

WeightSpec Whole(int64_t rows, int64_t cols) { return Place(0, 1, {rows, 0, rows}, cols); }

}  // namespace

tl::unexpected<Error> WeightTable::Missing(std::string_view name) const {
  return source_.TensorFault(ErrorCode::kCorruptData, "missing_tensor", name,
                             "the file lacks this tensor");
}

Result<SourceTensor> WeightTable::Find(std::string_view name,
                                       std::initializer_list<int64_t> shape) {
  auto tensor = source_.Tensor(name);
  if (!tensor) return Missing(name);
  if (!SameShape(tensor->shape, shape)) {
    // A vector's one row goes without saying.
    const std::span<const int64_t> wanted(shape.begin() + (*shape.begin() == 1), shape.end());
    return source_.TensorFault(
        ErrorCode::kCorruptData, "shape_mismatch", name,
        fmt::format("has shape [{}], the model needs [{}]", fmt::join(tensor->shape, ", "),
                    fmt::join(wanted, ", ")));
  }
  used_.emplace_back(tensor->name);
  return *std::move(tensor);
}

Result<WeightSpec> WeightTable::Typed(std::string_view name, std::initializer_list<int64_t> shape,
                                      bool vector, WeightSpec place) {
  VIVACE_ASSIGN(const SourceTensor tensor, Find(name, shape));
  if (!tensor.dtype || (vector && !IsVectorType(*tensor.dtype))) {
    return source_.TensorFault(ErrorCode::kUnsupported, "unsupported_type", name,
                               fmt::format("{} of type {} are not supported",
                                           vector ? "vectors" : "weights", tensor.type_name));
  }
  place.name = tensor.name;
  return place;
}

Result<WeightSpec> WeightTable::Matrix(std::string_view name, int64_t rows, int64_t cols) {
  return Placed(name, {rows, cols}, Whole(rows, cols));
}

Result<WeightSpec> WeightTable::Vector(std::string_view name, int64_t length) {
  return Typed(name, {1, length}, /*vector=*/true, Whole(1, length));
}

Result<LinearSpec> WeightTable::Linear(std::string_view name, int64_t rows, int64_t cols,
                                       Bias bias) {
  LinearSpec linear;
  VIVACE_ASSIGN(linear.weight, Matrix(fmt::format("{}.weight", name), rows, cols));
  const std::string bias_name = fmt::format("{}.bias", name);
  if (bias == Bias::kNeeded || (bias == Bias::kOptional && Has(bias_name))) {
    VIVACE_ASSIGN(linear.bias, Vector(bias_name, rows));
  }
  return linear;
}

Result<LinearSpec> WeightTable::Rows(std::string_view name, const RowRange& rows, int64_t cols,
                                     Bias bias) {
  LinearSpec linear;
  VIVACE_ASSIGN(linear.weight, Slice(fmt::format("{}.weight", name), 0, 1, rows, cols));
  const std::string bias_name = fmt::format("{}.bias", name);
  if (bias == Bias::kNeeded || (bias == Bias::kOptional && Has(bias_name))) {
    VIVACE_ASSIGN(linear.bias, VectorSlice(bias_name, 0, 1, rows));
  }
  return linear;
}

Result<WeightSpec> WeightTable::Slice(std::string_view name, int64_t slice, int64_t slices,
                                      const RowRange& rows, int64_t cols) {
  return Placed(name, {slices, rows.total, cols}, Place(slice, slices, rows, cols));
}

Result<WeightSpec> WeightTable::TransposedSlice(std::string_view name, int64_t slice,
                                                int64_t slices, const RowRange& rows,
                                                int64_t cols) {
  WeightSpec place = Place(slice, slices, rows, cols);
  place.transposed = true;
  return Placed(name, {slices, cols, rows.total}, std::move(place));
}

Result<WeightSpec> WeightTable::Placed(std::string_view name, std::initializer_list<int64_t> shape,
                                       WeightSpec place) {
  return Typed(name, shape, /*vector=*/false, std::move(place));
}

Result<WeightSpec> WeightTable::MxSlice(std::string_view blocks, std::string_view scales,
                                        int64_t slice, int64_t slices, const RowRange& rows,
                                        int64_t cols) {
  constexpr int64_t kBlock = 32;
  VIVACE_ASSIGN(const SourceTensor pairs,
                Find(blocks, {slices, rows.total, cols / kBlock, kBlock / 2}));
  VIVACE_ASSIGN(const SourceTensor exponents, Find(scales, {slices, rows.total, cols / kBlock}));
  for (const auto& [name, tensor] : {std::pair(blocks, pairs), std::pair(scales, exponents)}) {
    if (tensor.type_name != kBytes || cols % kBlock != 0) {
      return source_.TensorFault(
          ErrorCode::kUnsupported, "unsupported_type", name,
          fmt::format("is of type {}, U8 in whole blocks is needed", tensor.type_name));
    }
  }
  WeightSpec weight = Place(slice, slices, rows, cols);
  weight.name = pairs.name;
  weight.scales = exponents.name;
  return weight;
}

Result<WeightSpec> WeightTable::VectorSlice(std::string_view name, int64_t slice, int64_t slices,
                                            const RowRange& rows) {
  return Typed(name, {slices, rows.total}, /*vector=*/true, Place(slice, slices, rows, /*cols=*/1));
}

Result<std::vector<float>> WeightTable::ReadFloats(std::string_view name, int64_t length) {
  VIVACE_ASSIGN(const SourceTensor tensor, Find(name, {1, length}));
  if (tensor.dtype != DType::kF32) {
    return source_.TensorFault(ErrorCode::kUnsupported, "unsupported_type", name,
                               fmt::format("is of type {}, F32 is needed", tensor.type_name));
  }
  std::vector<float> values(static_cast<size_t>(length));
  std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  return values;
}

Status WeightTable::CheckAllUsed() const {
  std::vector<std::string_view> used(used_.begin(), used_.end());
  std::ranges::sort(used);
  for (const std::string_view name : source_.TensorNames()) {
    if (!std::ranges::binary_search(used, name)) {
      return source_.TensorFault(
          ErrorCode::kUnsupported, "unexpected_tensor", name,
          fmt::format("is no part of a {} model of this configuration", source_.architecture()));
    }
  }
  return {};
}

}  // namespace vivace::model
