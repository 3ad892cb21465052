// The names of figures in files, one table for the JSON, its reader, the CSV and `compare`. vLLM's
// names where it has one.
#pragma once

#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "load/figures.h"

namespace vivace::load {

using FigureMember =
    std::variant<double Figures::*, int64_t Figures::*, int32_t Figures::*, bool Figures::*>;
struct FigureField {
  std::string_view name;
  FigureMember member;
  bool may_lack = false;  // negative says there is none: null
};
std::span<const FigureField> FigureFields();

// "ttft" of "mean_ttft_ms".
struct LatencyField {
  std::string_view name;
  Distribution Figures::*member;
};
std::span<const LatencyField> LatencyFields();

// "mean" of "mean_ttft_ms".
struct StatField {
  std::string_view name;
  double Distribution::*member;
};
std::span<const StatField> StatFields();

// A statistic of it; NaN where nothing was measured.
inline double OfN(const Distribution& d, double value) { return d.n > 0 ? value : NAN; }

std::string StatName(const StatField& stat, const LatencyField& latency);  // "mean_ttft_ms"

}  // namespace vivace::load
