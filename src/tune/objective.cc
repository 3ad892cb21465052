#include "tune/objective.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace vivace::tune {
namespace {

using What = load::Promise::What;

constexpr double kMostMs = 86'400'000;  // a day
constexpr double kBroken = 0.5;         // of the throughput, at the edge of the promise

struct OfName {
  SloTerm::Of of;
  std::string_view name;
};
constexpr OfName kOfNames[] = {{SloTerm::Of::kMean, "mean"},  {SloTerm::Of::kP50, "p50"},
                               {SloTerm::Of::kP50, "median"}, {SloTerm::Of::kP90, "p90"},
                               {SloTerm::Of::kP95, "p95"},    {SloTerm::Of::kP99, "p99"},
                               {SloTerm::Of::kMax, "max"}};

struct WhatName {
  What what;
  std::string_view name, shown;
};
constexpr WhatName kWhatNames[] = {{What::kTtft, "ttft", "TTFT"},
                                   {What::kTpot, "tpot", "TPOT"},
                                   {What::kItl, "itl", "ITL"},
                                   {What::kE2el, "e2el", "E2E"}};

std::string ShownName(const SloTerm& term) {
  const auto of = std::ranges::find(kOfNames, term.of, &OfName::of);
  const auto what = std::ranges::find(kWhatNames, term.promise.what, &WhatName::what);
  return fmt::format("{} {}", of->name, what->shown);
}

const load::Distribution& DistributionOf(What what, const load::Figures& figures) {
  switch (what) {
    case What::kTtft:
      return figures.ttft_ms;
    case What::kTpot:
      return figures.tpot_ms;
    case What::kItl:
      return figures.itl_ms;
    case What::kE2el:
      break;
  }
  return figures.e2el_ms;
}

}  // namespace

Result<SloTerm> ParseSloTerm(std::string_view text) {
  const auto refuse = [&] {
    return Fail(ErrorCode::kInvalidArgument, "bad_value", "slo",
                "--slo has '{}'; give terms such as p99:ttft:500 (mean, p50, p90, p95, p99 or max; "
                "ttft, tpot, itl or e2el; milliseconds)",
                text);
  };
  const size_t first = text.find(':');
  const size_t second = first == std::string_view::npos ? first : text.find(':', first + 1);
  if (second == std::string_view::npos) return refuse();
  const auto of = std::ranges::find(kOfNames, text.substr(0, first), &OfName::name);
  const auto what =
      std::ranges::find(kWhatNames, text.substr(first + 1, second - first - 1), &WhatName::name);
  const std::string_view number = text.substr(second + 1);
  double ms = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), ms);
  if (of == std::end(kOfNames) || what == std::end(kWhatNames) || error != std::errc() ||
      end != number.data() + number.size() || !(ms > 0 && ms <= kMostMs)) {
    return refuse();
  }
  return SloTerm{.of = of->of, .promise = {.what = what->what, .most_ms = ms}};
}

std::string Name(const SloTerm& term) {
  return fmt::format("{} <= {} ms", ShownName(term), term.promise.most_ms);
}

double ValueOf(const SloTerm& term, const load::Figures& figures) {
  const load::Distribution& d = DistributionOf(term.promise.what, figures);
  if (d.n == 0) return -1;
  switch (term.of) {
    case SloTerm::Of::kMean:
      return d.mean;
    case SloTerm::Of::kP50:
      return d.p50;
    case SloTerm::Of::kP90:
      return d.p90;
    case SloTerm::Of::kP95:
      return d.p95;
    case SloTerm::Of::kP99:
      return d.p99;
    case SloTerm::Of::kMax:
      break;
  }
  return d.max;
}

Score Objective::Of(const load::Figures& figures, bool partial) const {
  Score score;
  if (figures.completed == 0) return {.value = 0, .kept = false, .broken = {"nothing completed"}};
  if (latency_) {
    // Whoever was not served by the end would have taken longest.
    const double share =
        static_cast<double>(figures.completed) / static_cast<double>(figures.requests);
    return {.value = share * 1e3 / std::max(figures.e2el_ms.mean, 1e-3), .kept = !partial};
  }
  score.value = figures.output_throughput;
  for (const SloTerm& term : slo_) {
    const double value = ValueOf(term, figures);
    if (value <= term.promise.most_ms) continue;
    const double ratio = term.promise.most_ms / value;
    score.value *= ratio * ratio;
    score.kept = false;
    score.broken.push_back(
        fmt::format("{} is {:.0f} ms, not {}", ShownName(term), value, term.promise.most_ms));
  }
  if (partial && !slo_.empty()) {
    score.kept = false;
    score.broken.emplace_back("it was too slow to be let end");
  }
  if (!score.kept) score.value *= kBroken;
  return score;
}

std::string Objective::name() const {
  if (latency_) return "the shortest mean time to the last token at the given rate";
  if (slo_.empty()) return "the most output tokens a second";
  std::vector<std::string> names;
  for (const SloTerm& term : slo_) names.push_back(Name(term));
  return fmt::format("the most output tokens a second with {}", fmt::join(names, " and "));
}

std::string_view Objective::unit() const { return latency_ ? "1/s" : "tok/s"; }

}  // namespace vivace::tune
