#include "engine/rope_table.h"

#include <algorithm>
#include <cmath>

#include "model/rope.h"

namespace vivace {
namespace {

int32_t TablePositions(size_t half, int32_t max_positions) {
  if (half == 0) return 0;
  const size_t most = RopeTable::kMaxTableBytes / (2 * half * sizeof(float));
  return static_cast<int32_t>(std::min(most, static_cast<size_t>(max_positions)));
}

}  // namespace

size_t RopeTable::Bytes(const model::RopeSpec& rope, int32_t max_rows, int32_t max_positions) {
  const auto half = static_cast<size_t>(rope.dims / 2);
  const int64_t rows = int64_t{max_rows} + TablePositions(half, max_positions);
  return static_cast<size_t>(rows) * 2 * half * sizeof(float);
}

RopeTable::RopeTable(const model::RopeSpec& rope, int32_t max_rows, int32_t max_positions)
    : spec_(rope),
      inverse_frequencies_(model::InverseFrequencies(rope)),
      attention_factor_(model::AttentionFactor(rope)),
      cos_(static_cast<size_t>(max_rows) * inverse_frequencies_.size()),
      sin_(cos_.size()),
      table_capacity_(TablePositions(inverse_frequencies_.size(), max_positions)),
      table_(std::make_unique_for_overwrite<float[]>(static_cast<size_t>(table_capacity_) * 2 *
                                                     inverse_frequencies_.size())) {}

void RopeTable::Compute(int32_t position, float* cos, float* sin) const {
  for (size_t i = 0; i < inverse_frequencies_.size(); ++i) {
    const double angle = position * inverse_frequencies_[i];
    cos[i] = static_cast<float>(std::cos(angle) * attention_factor_);
    sin[i] = static_cast<float>(std::sin(angle) * attention_factor_);
  }
}

void RopeTable::GrowTable(int32_t position) {
  const size_t half = inverse_frequencies_.size();
  for (; table_size_ <= position; ++table_size_) {
    float* row = table_.get() + static_cast<size_t>(table_size_) * 2 * half;
    Compute(table_size_, row, row + half);
  }
}

void RopeTable::Fill(std::span<const int32_t> positions) {
  const size_t half = inverse_frequencies_.size();
  for (size_t row = 0; row < positions.size(); ++row) {
    float* cos = cos_.data() + row * half;
    float* sin = sin_.data() + row * half;
    const int32_t position = positions[row];
    if (position >= table_capacity_) {
      Compute(position, cos, sin);
      continue;
    }
    GrowTable(position);
    const float* known = table_.get() + static_cast<size_t>(position) * 2 * half;
    std::copy_n(known, half, cos);
    std::copy_n(known + half, half, sin);
  }
}

kernels::RopeRows RopeTable::rows() const {
  return {
      .cos = cos_.data(), .sin = sin_.data(), .dims = spec_.dims, .interleaved = spec_.interleaved};
}

}  // namespace vivace
