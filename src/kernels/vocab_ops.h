// The long loops of sampling: passes over one row of logits, per tier. Results depend on the row
// only. Rows need no alignment; `count` is anything. No op allocates. Any thread.
#pragma once

#include <cstdint>

#include "base/cpu.h"

namespace vivace::kernels {

struct VocabOps {
  // Greatest value; NaN if any is NaN or +inf. (-inf bans a token and is fine.)
  float (*max)(const float* x, int32_t count);
  // Index of the first x[i] == value, or -1.
  int32_t (*find)(const float* x, int32_t count, float value);
  // Sum of exp((x[i] - shift) * scale), summed in double in a fixed order; x[i] <= shift.
  double (*sum_exp)(const float* x, int32_t count, float shift, float scale);
  // How many x[i] > value.
  int32_t (*count_above)(const float* x, int32_t count, float value);
  // Writes the i with x[i] >= floor to `out` [count], ascending; returns how many.
  int32_t (*collect)(const float* x, int32_t count, float floor, int32_t* out);
};

const VocabOps& GetVocabOps(Isa isa);

}  // namespace vivace::kernels
