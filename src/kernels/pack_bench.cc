// How fast weights of each format are packed at start, and rows of an embedding table come back
// out.
#include <benchmark/benchmark.h>

#include <random>
#include <string>
#include <vector>

#include "kernels/x86/pack.h"

namespace vivace::kernels::x86 {
namespace {

constexpr int32_t kRows = 1536, kCols = 1536;

std::vector<std::byte> MakeSource(DType dtype) {
  std::mt19937 random(1);
  std::vector<std::byte> source(static_cast<size_t>(RowBytes(Info(dtype), kCols) * kRows));
  for (auto& byte : source) byte = static_cast<std::byte>(random());
  return source;
}

// Bytes per second are those of the file.
void PackMatrix(benchmark::State& state, DType dtype) {
  const auto source = MakeSource(dtype);
  std::vector<std::byte> out(PackedBytes(dtype, kRows, kCols));
  for (auto _ : state) {
    Pack({dtype, kRows, kCols, source.data()}, 0, NumPanels(kRows), out.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(source.size()));
  state.SetItemsProcessed(state.iterations() * kRows * kCols);
}

void UnpackRows(benchmark::State& state, DType dtype) {
  const auto source = MakeSource(dtype);
  std::vector<std::byte> packed(PackedBytes(dtype, kRows, kCols));
  Pack({dtype, kRows, kCols, source.data()}, 0, NumPanels(kRows), packed.data());
  const PackedMatrix matrix{dtype, kRows, kCols, packed.data()};
  std::vector<float> row(kCols);
  int32_t i = 0;
  for (auto _ : state) {
    UnpackRow(matrix, i = (i + 617) % kRows, 1.0f, row.data());
    benchmark::DoNotOptimize(row.data());
  }
  state.SetItemsProcessed(state.iterations() * kCols);
}

[[maybe_unused]] const bool kRegistered = [] {
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ4_0, DType::kQ4_1,
                      DType::kQ5_0, DType::kQ5_1, DType::kQ8_0, DType::kQ3_K, DType::kQ4_K,
                      DType::kQ5_K, DType::kQ6_K, DType::kIQ4_NL}) {
    const std::string name(Info(dtype).name);
    benchmark::RegisterBenchmark(("Pack/" + name).c_str(), PackMatrix, dtype);
    benchmark::RegisterBenchmark(("UnpackRow/" + name).c_str(), UnpackRows, dtype);
  }
  return true;
}();

}  // namespace
}  // namespace vivace::kernels::x86
