#include "load/load_point.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace vivace::load {
namespace {

constexpr std::string_view kRampNames[] = {"", "linear", "exponential"};

}  // namespace

std::string_view Name(ArrivalOptions::Ramp ramp) { return kRampNames[static_cast<size_t>(ramp)]; }

ArrivalOptions::Ramp RampNamed(std::string_view name) {
  const auto* const found = std::find(std::begin(kRampNames), std::end(kRampNames), name);
  return found == std::end(kRampNames)
             ? ArrivalOptions::Ramp::kNone
             : static_cast<ArrivalOptions::Ramp>(found - std::begin(kRampNames));
}

std::string RateText(const LoadPoint& load) {
  if (load.ramp != ArrivalOptions::Ramp::kNone) {
    return fmt::format("{:g} to {:g}/s {}", load.ramp_from, load.ramp_to, Name(load.ramp));
  }
  if (load.request_rate > 0) return fmt::format("{:g}/s", load.request_rate);
  return load.own_times ? "each at its own time" : "";
}

std::string LabelOf(const LoadPoint& load) {
  const bool rated = load.ramp != ArrivalOptions::Ramp::kNone || load.request_rate > 0;
  std::string label = rated ? "rate " + RateText(load) : load.own_times ? "trace" : "";
  if (load.max_concurrency > 0) {
    label += fmt::format("{}c={}", label.empty() ? "" : ", ", load.max_concurrency);
  }
  return label.empty() ? "all at once" : label;
}

}  // namespace vivace::load
