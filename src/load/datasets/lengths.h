// How long the prompts and answers of a synthetic dataset are. Pure, seeded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "load/datasets/dataset.h"

namespace vivace::load {

struct Lengths {
  int32_t input = 0, output = 0;
};

// Whether the options can be met at all; errors name the flag.
Status CheckLengths(const DatasetOptions& options);

// For checked options: fixed, normal around the lengths (at least 1), or uniform in their range.
std::vector<Lengths> DrawLengths(const DatasetOptions& options, size_t count);

// "1024/128", "1024±64/128", "1024/128 ±20 %".
std::string DescribeLengths(const DatasetOptions& options);

}  // namespace vivace::load
