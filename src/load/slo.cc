#include "load/slo.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/limits.h"

namespace vivace::load {
namespace {

using What = Promise::What;

constexpr std::pair<std::string_view, What> kPromiseNames[] = {
    {"ttft", What::kTtft}, {"tpot", What::kTpot}, {"itl", What::kItl},
    {"e2el", What::kE2el}, {"e2e", What::kE2el},
};

constexpr std::pair<std::string_view, double Distribution::*> kStatistics[] = {
    {"mean", &Distribution::mean}, {"p50", &Distribution::p50}, {"median", &Distribution::p50},
    {"p90", &Distribution::p90},   {"p95", &Distribution::p95}, {"p99", &Distribution::p99},
    {"max", &Distribution::max},
};

const Distribution& FigureOf(What what, const Figures& figures) {
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

tl::unexpected<Error> BadWord(const std::string& flag, std::string_view word,
                              std::string_view wanted) {
  return Fail(ErrorCode::kInvalidArgument, "bad_value", flag, "--{} has '{}'; give {}", flag, word,
              wanted);
}

// FIGURE:MILLISECONDS; false: it is not that.
bool ParsePromise(std::string_view word, Promise* promise) {
  const size_t colon = word.find(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view number = word.substr(colon + 1);
  const auto read = std::from_chars(number.data(), number.data() + number.size(), promise->most_ms);
  if (read.ec != std::errc() || read.ptr != number.data() + number.size() ||
      !(promise->most_ms > 0 && promise->most_ms <= limits::kMaxLoadSeconds * 1e3)) {
    return false;
  }
  for (const auto& [name, what] : kPromiseNames) {
    if (name != word.substr(0, colon)) continue;
    promise->what = what;
    return true;
  }
  return false;
}

std::vector<std::string_view> Words(std::string_view text) {
  std::vector<std::string_view> words;
  while (true) {
    const size_t begin = text.find_first_not_of(", ");
    if (begin == std::string_view::npos) return words;
    text.remove_prefix(begin);
    words.push_back(text.substr(0, text.find_first_of(", ")));
    text.remove_prefix(words.back().size());
  }
}

}  // namespace

Result<std::vector<Promise>> ParsePromises(std::string_view text, const std::string& flag) {
  std::vector<Promise> promises;
  for (const std::string_view word : Words(text)) {
    Promise promise{};
    if (!ParsePromise(word, &promise) || promises.size() == limits::kMaxBenchCases) {
      return BadWord(flag, word, "ttft, tpot, itl or e2el and milliseconds, such as ttft:200");
    }
    promises.push_back(promise);
  }
  if (promises.empty()) return BadWord(flag, text, "promises, such as ttft:200 tpot:50");
  return promises;
}

Result<std::vector<Slo>> ParseSlos(std::string_view text, const std::string& flag) {
  constexpr std::string_view kWanted =
      "a statistic (mean, p50, p90, p95, p99, max), a figure (ttft, tpot, itl, e2el) and "
      "milliseconds, such as p99:ttft:500";
  std::vector<Slo> slos;
  for (const std::string_view word : Words(text)) {
    Slo slo{};
    std::string_view rest = word;
    for (const auto& [name, member] : kStatistics) {
      if (!word.starts_with(name) || word.substr(name.size(), 1) != ":") continue;
      slo.statistic = name;
      rest.remove_prefix(name.size() + 1);
    }
    if (!ParsePromise(rest, &slo.promise) || slos.size() == limits::kMaxBenchCases) {
      return BadWord(flag, word, kWanted);
    }
    slos.push_back(std::move(slo));
  }
  if (slos.empty()) return BadWord(flag, text, kWanted);
  return slos;
}

std::string Name(const Slo& slo) {
  std::string_view figure;
  for (const auto& [name, what] : kPromiseNames) {
    if (figure.empty() && what == slo.promise.what) figure = name;
  }
  return fmt::format("{} {} <= {:g} ms", slo.statistic, figure, slo.promise.most_ms);
}

double ValueOf(const Slo& slo, const Figures& figures) {
  const Distribution& figure = FigureOf(slo.promise.what, figures);
  if (figure.n == 0) return -1;
  for (const auto& [name, member] : kStatistics) {
    if (name == slo.statistic) return figure.*member;
  }
  return -1;
}

bool Keeps(const Slo& slo, const Figures& figures) {
  const double value = ValueOf(slo, figures);
  return value >= 0 && value <= slo.promise.most_ms;
}

Status CheckSlos(const std::vector<Slo>& slos, const Workload& workload, const std::string& flag) {
  const bool single_tokens =
      std::all_of(workload.requests.begin(), workload.requests.end(),
                  [](const PlannedRequest& request) { return request.output_tokens == 1; });
  if (!single_tokens) return {};
  for (const Slo& slo : slos) {
    const bool between_tokens = slo.promise.what == What::kItl || slo.promise.what == What::kTpot;
    if (!between_tokens) continue;
    return Fail(ErrorCode::kInvalidArgument, "bad_value", flag,
                "--{} promises {}, and answers of one token have no time between tokens; ask for "
                "longer answers (--output-len), or promise ttft or e2el",
                flag, Name(slo));
  }
  return {};
}

}  // namespace vivace::load
