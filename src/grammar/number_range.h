// Numbers within bounds as grammar expressions: strict JSON, no exponents, at most 15 digits in
// all where the bounds have no more, so that a reader of doubles finds them within the bounds too.
// Pure functions; the text is linear in the bounds' digits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "grammar/schema_shape.h"

namespace vivace::grammar {

// Whole numbers are written with at most this many digits where nothing else bounds them.
inline constexpr int64_t kMostWhole = 999'999'999'999'999'999;

// The whole numbers from `low` to `high`, both in [-kMostWhole, kMostWhole]; low <= high.
std::string WholeRange(int64_t low, int64_t high);

// The numbers within the bounds, either of which may be absent. Nothing: there is none, or a bound
// is beyond 1e15.
std::optional<std::string> NumberRange(const std::optional<NumberBound>& lower,
                                       const std::optional<NumberBound>& upper);

// The multiples of `factor` (at most 1000), of any size, as rules; the name of the first.
std::string Multiples(int64_t factor, EbnfWriter* out);

}  // namespace vivace::grammar
