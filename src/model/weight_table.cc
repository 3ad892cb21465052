#include "model/weight_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

namespace vivace::model {
namespace {

constexpr DType kMatrixTypes[] = {DType::kF32,   DType::kF16,  DType::kBF16, DType::kQ8_0,
                                  DType::kQ4_0,  DType::kQ4_1, DType::kQ5_0, DType::kQ5_1,
                                  DType::kQ3_K,  DType::kQ4_K, DType::kQ5_K, DType::kQ6_K,
                                  DType::kIQ4_NL};
constexpr DType kVectorTypes[] = {DType::kF32, DType::kF16, DType::kBF16};

bool HasShape(const std::vector<uint64_t>& shape, int64_t rows, int64_t cols) {
  // Sizes of 1 in front say nothing: [1, n] is a vector of n.
  const auto first = std::ranges::find_if(shape, [](uint64_t dim) { return dim != 1; });
  const std::span<const uint64_t> dims(first, shape.end());
  const auto wanted_rows = static_cast<uint64_t>(rows);
  const auto wanted_cols = static_cast<uint64_t>(cols);
  if (rows == 1 && cols == 1) return dims.empty();
  if (rows == 1) return dims.size() == 1 && dims[0] == wanted_cols;
  return dims.size() == 2 && dims[0] == wanted_rows && dims[1] == wanted_cols;
}

bool IsVectorType(DType dtype) {
  return std::ranges::find(kVectorTypes, dtype) != std::end(kVectorTypes);
}

std::string ShapeText(int64_t rows, int64_t cols) {
  return rows == 1 ? fmt::format("[{}]", cols) : fmt::format("[{}, {}]", rows, cols);
}

}  // namespace

bool IsMatrixType(DType dtype) {
  return std::ranges::find(kMatrixTypes, dtype) != std::end(kMatrixTypes);
}

Result<SourceTensor> WeightTable::Find(std::string_view name, int64_t rows, int64_t cols) {
  auto tensor = source_.Tensor(name);
  if (!tensor) {
    return source_.TensorFault(ErrorCode::kCorruptData, "missing_tensor", name,
                               "the file lacks this tensor");
  }
  if (!HasShape(tensor->shape, rows, cols)) {
    return source_.TensorFault(ErrorCode::kCorruptData, "shape_mismatch", name,
                               fmt::format("has shape [{}], the model needs {}",
                                           fmt::join(tensor->shape, ", "), ShapeText(rows, cols)));
  }
  used_.emplace_back(tensor->name);
  return *std::move(tensor);
}

Result<WeightSpec> WeightTable::Matrix(std::string_view name, int64_t rows, int64_t cols) {
  VIVACE_ASSIGN(const SourceTensor tensor, Find(name, rows, cols));
  if (!tensor.dtype || !IsMatrixType(*tensor.dtype)) {
    return source_.TensorFault(
        ErrorCode::kUnsupported, "unsupported_type", name,
        fmt::format("weights of type {} are not supported", tensor.type_name));
  }
  return WeightSpec{std::string(tensor.name), static_cast<int32_t>(rows),
                    static_cast<int32_t>(cols)};
}

Result<WeightSpec> WeightTable::Vector(std::string_view name, int64_t length) {
  VIVACE_ASSIGN(const SourceTensor tensor, Find(name, 1, length));
  if (!tensor.dtype || !IsVectorType(*tensor.dtype)) {
    return source_.TensorFault(
        ErrorCode::kUnsupported, "unsupported_type", name,
        fmt::format("vectors of type {} are not supported", tensor.type_name));
  }
  return WeightSpec{std::string(tensor.name), 1, static_cast<int32_t>(length)};
}

Result<WeightSpec> WeightTable::OptionalVector(std::string_view name, int64_t length) {
  if (!Has(name)) return WeightSpec{};
  return Vector(name, length);
}

Result<std::vector<float>> WeightTable::ReadFloats(std::string_view name, int64_t length) {
  VIVACE_ASSIGN(const SourceTensor tensor, Find(name, 1, length));
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
