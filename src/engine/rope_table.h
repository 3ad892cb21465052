// Cosines and sines of a step's positions, made once per step and rotary kind and shared by all
// layers of that kind. A row depends on its position only, and with longrope on which side of the
// trained length the request's prompt is: that decides for all of the request, so that what it has
// cached never changes (ARCHITECTURE.md). Positions seen before come out of a table, which grows as
// far as positions do and at most to kMaxTableBytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/block_ops.h"
#include "model/spec.h"

namespace vivace {

// Prompts of more tokens turn faster or slower than shorter ones and cannot share what is cached; 0
// if the model has no such length.
int32_t LongPrompt(const model::ModelSpec& spec);

class RopeTable {
 public:
  static constexpr size_t kMaxTableBytes = size_t{8} << 20;

  // What such a table takes at most.
  static size_t Bytes(const model::RopeSpec& rope, int32_t max_rows, int32_t max_positions);

  // For steps of up to `max_rows` rows at positions below `max_positions`.
  RopeTable(const model::RopeSpec& rope, int32_t max_rows, int32_t max_positions);

  // Fills one row for each position; no allocation. `prompts`: the length of each row's prompt;
  // only longrope reads it.
  void Fill(std::span<const int32_t> positions, std::span<const int32_t> prompts = {});
  kernels::RopeRows rows() const;
  const model::RopeSpec& spec() const { return spec_; }

 private:
  // One set of frequencies and what is known of it.
  struct Angles {
    std::vector<double> inverse_frequencies;  // radians per position
    double factor = 1;                        // of cos and sin
    int32_t capacity = 0;                     // positions
    int32_t size = 0;                         // of them known
    std::unique_ptr<float[]> table;           // [capacity][cos, sin][dims/2]; untouched until known

    // Of prompts of so many tokens.
    Angles(const model::RopeSpec& rope, int64_t prompt, int32_t max_positions);
    // Cosines, then sines of one position.
    void Compute(int32_t position, float* cos, float* sin) const;
    void Grow(int32_t position);
  };

  model::RopeSpec spec_;
  std::vector<Angles> angles_;    // of all prompts, or of short and of long ones
  std::vector<float> cos_, sin_;  // [max_rows, dims/2]
};

}  // namespace vivace
