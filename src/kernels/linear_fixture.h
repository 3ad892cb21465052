// What the tests of the linear ops share: weights of any format, packed, and calls of the ops.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <vector>

#include "kernels/linear.h"

namespace vivace::kernels::fixture {

// Those every tier has kernels for.
inline constexpr DType kFormats[] = {DType::kF32,   DType::kF16,  DType::kBF16, DType::kQ4_0,
                                     DType::kQ4_1,  DType::kQ5_0, DType::kQ5_1, DType::kQ8_0,
                                     DType::kQ3_K,  DType::kQ4_K, DType::kQ5_K, DType::kQ6_K,
                                     DType::kIQ4_NL};

// Exactly-sized, 64-byte aligned memory, so that a sanitizer sees the first byte past the end.
class Bytes {
 public:
  explicit Bytes(size_t size)
      : size_(size), data_(static_cast<std::byte*>(::operator new (size, std::align_val_t{64}))) {
    std::memset(data_.get(), 0xa5, size);
  }
  std::byte* data() const { return data_.get(); }
  size_t size() const { return size_; }

 private:
  struct Delete {
    void operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{64}); }
  };
  size_t size_;
  std::unique_ptr<std::byte, Delete> data_;
};

inline uint16_t ToHalf(float value) {  // cut to fp16; zero below its normal range
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::abs(value) < 0x1p-14f) return 0;
  return static_cast<uint16_t>(((bits >> 16) & 0x8000) | ((((bits >> 23) & 255) - 112) << 10) |
                               ((bits >> 13) & 1023));
}

// Offsets of the fp16 fields of a block.
inline std::vector<int> HalfFields(DType dtype) {
  switch (dtype) {
    case DType::kQ4_0:
    case DType::kQ5_0:
    case DType::kQ8_0:
    case DType::kIQ4_NL:
      return {0};
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K:
      return {0, 2};
    case DType::kQ3_K:
      return {108};
    case DType::kQ6_K:
      return {208};
    default:
      return {};
  }
}

enum class Fill { kRandom, kZeros, kOnes };  // of the bits that are not scales

inline std::vector<std::byte> MakeWeights(DType dtype, int rows, int cols, uint32_t seed,
                                          Fill fill = Fill::kRandom) {
  const DTypeInfo& info = Info(dtype);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, 1.0f);
  std::vector<std::byte> data(static_cast<size_t>(RowBytes(info, cols) * rows));
  for (auto& byte : data) {
    byte = fill == Fill::kRandom ? static_cast<std::byte>(random())
                                 : static_cast<std::byte>(fill == Fill::kZeros ? 0x00 : 0xff);
  }
  if (info.block_elems == 1) {
    for (size_t i = 0; i < data.size(); i += static_cast<size_t>(info.block_bytes)) {
      const float value = normal(random);
      const auto bits = std::bit_cast<uint32_t>(value);
      const uint16_t half =
          dtype == DType::kF16 ? ToHalf(value) : static_cast<uint16_t>(bits >> 16);
      if (dtype == DType::kF32) std::memcpy(&data[i], &bits, 4);
      if (dtype != DType::kF32) std::memcpy(&data[i], &half, 2);
    }
  }
  for (size_t i = 0; i < data.size(); i += static_cast<size_t>(info.block_bytes)) {
    for (int offset : HalfFields(dtype)) {
      const uint16_t half = ToHalf(0.01f + 0.05f * std::abs(normal(random)));
      std::memcpy(&data[i + static_cast<size_t>(offset)], &half, 2);
    }
  }
  return data;
}

inline std::vector<float> MakeRows(int rows, int cols, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, 1.0f);
  std::vector<float> x(static_cast<size_t>(rows) * static_cast<size_t>(cols));
  for (auto& value : x) value = normal(random);
  return x;
}

// A matrix packed for one tier.
class Matrix {
 public:
  Matrix(const LinearOps& ops, DType dtype, int rows, int cols, const std::vector<std::byte>& data)
      : packed_(ops.packed_bytes(dtype, rows, cols)) {
    const WeightView view{dtype, rows, cols, data.data()};
    const int tiles = (rows + kTileRows - 1) / kTileRows;
    ops.pack(view, tiles / 2, tiles, packed_.data());  // in two parts, out of order
    ops.pack(view, 0, tiles / 2, packed_.data());
    matrix_ = {dtype, rows, cols, packed_.data()};
  }
  const PackedMatrix& get() const { return matrix_; }

 private:
  Bytes packed_;
  PackedMatrix matrix_;
};

struct Call {
  MatrixGroup group = {};
  Epilogue epilogue = Epilogue::kStore;
  RmsNorm norm = {};
  int cols = 0;
  int outputs = 0;
};

// Rows [first, first + count) of x through the call; `out` starts as 1s.
inline std::vector<float> Apply(const LinearOps& ops, const Call& call, const std::vector<float>& x,
                                int first, int count, ThreadPool& pool) {
  const Bytes buffer(ops.input_bytes(count, call.cols, pool.size()));
  // The rows lie in memory of just their size, and the results too.
  const std::vector<float> rows(x.begin() + int64_t{first} * call.cols,
                                x.begin() + int64_t{first + count} * call.cols);
  const InputRows input{
      .x = rows.data(), .stride = call.cols, .rows = count, .cols = call.cols, .norm = call.norm};
  std::vector<float> out(static_cast<size_t>(count) * static_cast<size_t>(call.outputs), 1.0f);
  const PreparedInput prepared = ops.prepare(input, call.group, buffer.data(), pool);
  ops.multiply(call.group, prepared, call.epilogue, out.data(), call.outputs, pool);
  return out;
}

}  // namespace vivace::kernels::fixture
