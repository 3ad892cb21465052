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
  // Writes the i with x[i] >= floor, ascending, and those x[i]; returns how many. `floor` is above
  // -infinity, here and below.
  int32_t (*collect)(const float* x, int32_t count, float floor, int32_t* ids, float* values);
  // x[i] = exp((x[i] - shift) * scale), x[i] <= shift; zero where that is less than about 1e-38.
  // Returns their sum, as sum_exp does.
  double (*weigh)(float* x, int32_t count, float shift, float scale);
  // Sum of the x[i] > value, in a fixed order.
  double (*sum_above)(const float* x, int32_t count, float value);
  // Writes the x[i] with low < x[i] <= high in their order; returns how many. `out` may be x.
  int32_t (*keep_between)(const float* x, int32_t count, float low, float high, float* out);
  // Leaves the pairs with x[i] >= floor, in their order, in place; returns how many.
  int32_t (*keep_pairs)(int32_t* ids, float* x, int32_t count, float floor);
};

// Room the ops may write to behind what they return, in elements: outputs of collect, keep_between
// and keep_pairs have count + kVocabSlack.
inline constexpr int32_t kVocabSlack = 16;

const VocabOps& GetVocabOps(Isa isa);

}  // namespace vivace::kernels
