// Cosines and sines of a step's positions, made once per step and rotary kind and shared by all
// layers of that kind. A row depends on its position only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/block_ops.h"
#include "model/spec.h"

namespace vivace {

class RopeTable {
 public:
  RopeTable(const model::RopeSpec& rope, int32_t max_rows);

  // Fills one row for each position; no allocation.
  void Fill(std::span<const int32_t> positions);
  kernels::RopeRows rows() const;
  const model::RopeSpec& spec() const { return spec_; }

 private:
  model::RopeSpec spec_;
  std::vector<double> inverse_frequencies_;  // radians per position
  double attention_factor_;
  std::vector<float> cos_, sin_;  // [max_rows, dims/2]
};

}  // namespace vivace
