#include "load/datasets/lengths.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/limits.h"
#include "load/random.h"

namespace vivace::load {
namespace {

constexpr uint64_t kLengthPurpose = 0x1E46;

Status InRange(double value, double low, double high, std::string flag) {
  if (value >= low && value <= high) return {};
  return Fail(ErrorCode::kInvalidArgument, "out_of_range", flag, "--{} is {}; give {} to {}", flag,
              value, low, high);
}

int32_t Draw(int32_t mean, double deviation, double ratio, Random* random) {
  double value = mean;
  if (deviation > 0) {
    value = std::round(mean + deviation * random->Normal());
  } else if (ratio > 0) {
    const double low = std::floor(mean * (1 - ratio)), high = std::ceil(mean * (1 + ratio));
    value = low + static_cast<double>(random->Below(static_cast<size_t>(high - low) + 1));
  }
  return static_cast<int32_t>(std::clamp(value, 1.0, double{limits::kMaxPromptTokens}));
}

}  // namespace

Status CheckLengths(const DatasetOptions& o) {
  constexpr double kMost = limits::kMaxPromptTokens;
  VIVACE_RETURN_IF_ERROR(InRange(static_cast<double>(o.num_prompts), 1,
                                 double{limits::kMaxDatasetRequests}, "num-prompts"));
  VIVACE_RETURN_IF_ERROR(InRange(o.input_len, 1, kMost, "random-input-len"));
  VIVACE_RETURN_IF_ERROR(InRange(o.output_len, 1, kMost, "random-output-len"));
  VIVACE_RETURN_IF_ERROR(InRange(o.input_len_std, 0, kMost, "input-len-std"));
  VIVACE_RETURN_IF_ERROR(InRange(o.output_len_std, 0, kMost, "output-len-std"));
  VIVACE_RETURN_IF_ERROR(InRange(o.range_ratio, 0, 1, "random-range-ratio"));
  VIVACE_RETURN_IF_ERROR(InRange(o.prefix_len, 0, kMost, "random-prefix-len"));
  VIVACE_RETURN_IF_ERROR(
      InRange(o.num_prefixes, 1, double{limits::kMaxDatasetRequests}, "num-prefixes"));
  VIVACE_RETURN_IF_ERROR(InRange(o.turns, 1, limits::kMaxLoadTurns, "turns"));
  if (o.range_ratio > 0 && (o.input_len_std > 0 || o.output_len_std > 0)) {
    return Fail(ErrorCode::kInvalidArgument, "two_spreads", "random-range-ratio",
                "give --random-range-ratio or --input-len-std and --output-len-std, not both");
  }
  return {};
}

std::vector<Lengths> DrawLengths(const DatasetOptions& options, size_t count) {
  Random random(options.seed, kLengthPurpose);
  std::vector<Lengths> lengths(count);
  for (Lengths& l : lengths) {
    l.input = Draw(options.input_len, options.input_len_std, options.range_ratio, &random);
    l.output = Draw(options.output_len, options.output_len_std, options.range_ratio, &random);
  }
  return lengths;
}

std::string DescribeLengths(const DatasetOptions& o) {
  const auto one = [](int32_t length, double deviation) {
    return deviation > 0 ? fmt::format("{}±{:g}", length, deviation) : fmt::to_string(length);
  };
  std::string text = one(o.input_len, o.input_len_std) + "/" + one(o.output_len, o.output_len_std);
  if (o.range_ratio > 0) text += fmt::format(" ±{:g} %", o.range_ratio * 100);
  return text;
}

}  // namespace vivace::load
