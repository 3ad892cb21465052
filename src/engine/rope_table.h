// Cosines and sines of a step's positions, made once per step and rotary kind and shared by all
// layers of that kind. A row depends on its position only. Positions seen before come out of a
// table, which grows as far as positions do and at most to kMaxTableBytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/block_ops.h"
#include "model/spec.h"

namespace vivace {

class RopeTable {
 public:
  static constexpr size_t kMaxTableBytes = size_t{8} << 20;

  // What such a table takes at most.
  static size_t Bytes(const model::RopeSpec& rope, int32_t max_rows, int32_t max_positions);

  // For steps of up to `max_rows` rows at positions below `max_positions`.
  RopeTable(const model::RopeSpec& rope, int32_t max_rows, int32_t max_positions);

  // Fills one row for each position; no allocation.
  void Fill(std::span<const int32_t> positions);
  kernels::RopeRows rows() const;
  const model::RopeSpec& spec() const { return spec_; }

 private:
  // Cosines, then sines of one position.
  void Compute(int32_t position, float* cos, float* sin) const;
  void GrowTable(int32_t position);

  model::RopeSpec spec_;
  std::vector<double> inverse_frequencies_;  // radians per position
  double attention_factor_;
  std::vector<float> cos_, sin_;    // [max_rows, dims/2]
  int32_t table_capacity_;          // positions
  int32_t table_size_ = 0;          // of them known
  std::unique_ptr<float[]> table_;  // [table_capacity_][cos, sin][dims/2]; untouched until known
};

}  // namespace vivace
