#include "engine/rope_table.h"

#include <cmath>

#include "model/rope.h"

namespace vivace {

RopeTable::RopeTable(const model::RopeSpec& rope, int32_t max_rows)
    : spec_(rope),
      inverse_frequencies_(model::InverseFrequencies(rope)),
      attention_factor_(model::AttentionFactor(rope)),
      cos_(static_cast<size_t>(max_rows) * inverse_frequencies_.size()),
      sin_(cos_.size()) {}

void RopeTable::Fill(std::span<const int32_t> positions) {
  const size_t half = inverse_frequencies_.size();
  for (size_t row = 0; row < positions.size(); ++row) {
    for (size_t i = 0; i < half; ++i) {
      const double angle = positions[row] * inverse_frequencies_[i];
      cos_[row * half + i] = static_cast<float>(std::cos(angle) * attention_factor_);
      sin_[row * half + i] = static_cast<float>(std::sin(angle) * attention_factor_);
    }
  }
}

kernels::RopeRows RopeTable::rows() const {
  return {
      .cos = cos_.data(), .sin = sin_.data(), .dims = spec_.dims, .interleaved = spec_.interleaved};
}

}  // namespace vivace
