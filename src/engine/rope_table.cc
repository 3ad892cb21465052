#include "engine/rope_table.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "model/rope.h"

namespace vivace {
namespace {

using model::RopeScaling;
using model::RopeSpec;

int32_t TablePositions(size_t half, int32_t max_positions) {
  if (half == 0) return 0;
  const size_t most = RopeTable::kMaxTableBytes / (2 * half * sizeof(float));
  return static_cast<int32_t>(std::min(most, static_cast<size_t>(max_positions)));
}

}  // namespace

int32_t LongPrompt(const model::ModelSpec& spec) {
  for (const model::LayerSpec& layer : spec.layers) {
    const RopeSpec& rope = layer.attention.rope;
    if (rope.scaling == RopeScaling::kLongrope) return rope.original_context;
  }
  return 0;
}

size_t RopeTable::Bytes(const RopeSpec& rope, int32_t max_rows, int32_t max_positions) {
  const auto half = static_cast<size_t>(rope.dims / 2);
  const int64_t tables = rope.scaling == RopeScaling::kLongrope ? 2 : 1;
  const int64_t rows = int64_t{max_rows} + tables * TablePositions(half, max_positions);
  return static_cast<size_t>(rows) * 2 * half * sizeof(float);
}

RopeTable::Angles::Angles(const RopeSpec& rope, int64_t prompt, int32_t max_positions)
    : inverse_frequencies(model::InverseFrequencies(rope, prompt)),
      factor(model::AttentionFactor(rope)),
      capacity(TablePositions(inverse_frequencies.size(), max_positions)),
      table(std::make_unique_for_overwrite<float[]>(static_cast<size_t>(capacity) * 2 *
                                                    inverse_frequencies.size())) {}

RopeTable::RopeTable(const RopeSpec& rope, int32_t max_rows, int32_t max_positions)
    : spec_(rope),
      cos_(static_cast<size_t>(max_rows) * static_cast<size_t>(rope.dims / 2)),
      sin_(cos_.size()) {
  // Dynamic scaling takes the greatest length there may be: the length at hand would change keys
  // that are cached already.
  const bool by_prompt = rope.scaling == RopeScaling::kLongrope;
  angles_.emplace_back(rope, by_prompt ? 0 : max_positions, max_positions);
  if (by_prompt) angles_.emplace_back(rope, int64_t{rope.original_context} + 1, max_positions);
}

void RopeTable::Angles::Compute(int32_t position, float* cos, float* sin) const {
  for (size_t i = 0; i < inverse_frequencies.size(); ++i) {
    const double angle = position * inverse_frequencies[i];
    cos[i] = static_cast<float>(std::cos(angle) * factor);
    sin[i] = static_cast<float>(std::sin(angle) * factor);
  }
}

void RopeTable::Angles::Grow(int32_t position) {
  const size_t half = inverse_frequencies.size();
  for (; size <= position; ++size) {
    float* row = table.get() + static_cast<size_t>(size) * 2 * half;
    Compute(size, row, row + half);
  }
}

void RopeTable::Fill(std::span<const int32_t> positions, std::span<const int32_t> prompts) {
  VIVACE_DCHECK(angles_.size() == 1 || prompts.size() == positions.size());
  const auto half = static_cast<size_t>(spec_.dims / 2);
  for (size_t row = 0; row < positions.size(); ++row) {
    const bool longer = angles_.size() > 1 && prompts[row] > spec_.original_context;
    Angles& angles = angles_[longer ? 1 : 0];
    float* cos = cos_.data() + row * half;
    float* sin = sin_.data() + row * half;
    const int32_t position = positions[row];
    if (position >= angles.capacity) {
      angles.Compute(position, cos, sin);
      continue;
    }
    angles.Grow(position);
    const float* known = angles.table.get() + static_cast<size_t>(position) * 2 * half;
    std::copy_n(known, half, cos);
    std::copy_n(known + half, half, sin);
  }
}

kernels::RopeRows RopeTable::rows() const {
  return {
      .cos = cos_.data(), .sin = sin_.data(), .dims = spec_.dims, .interleaved = spec_.interleaved};
}

}  // namespace vivace
