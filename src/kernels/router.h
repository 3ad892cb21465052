// Which experts rows go to, from the router's outputs: the choice, and rows sorted by expert. Plain
// loops in a fixed order, the same for all tiers; a NaN makes its own row's weights NaN and its
// choice the first experts. No allocation.
#pragma once

#include <cstdint>

#include "kernels/block_ops.h"

namespace vivace::kernels {

// Floats SelectExperts needs beside the logits.
constexpr int64_t SelectScratch(int32_t experts) { return int64_t{2} * experts; }

// One row: ids and weights [top_k] of the experts chosen, best first. `logits` [experts] is used
// up.
void SelectExperts(const Router& router, float* logits, float* scratch, int32_t* ids,
                   float* weights);

// Rows by expert. Expert e has entries [first[e], first[e + 1]) of `rows` and `weights`, by
// ascending row.
struct Dispatch {
  int32_t* first = nullptr;  // [experts + 1]
  int32_t* rows = nullptr;   // [num_rows * top_k]
  float* weights = nullptr;  // likewise
};

// ids and weights [num_rows, top_k].
void SortByExpert(const int32_t* ids, const float* weights, int32_t num_rows, int32_t top_k,
                  int32_t experts, const Dispatch& out);

}  // namespace vivace::kernels
