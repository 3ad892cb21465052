#include "load/rate_search.h"

#include <algorithm>

namespace vivace::load {

std::optional<double> RateSearch::Next() const {
  if (trials_ >= options_.max_trials) return std::nullopt;
  if (trials_ == 0) {
    const double first = options_.low > 0 ? options_.low : options_.first;
    return options_.high > 0 ? std::min(first, options_.high) : first;
  }
  if (broken_ == 0) {  // kept so far: up
    if (options_.high > 0 && kept_ >= options_.high) return std::nullopt;
    return options_.high > 0 ? std::min(kept_ * 2, options_.high) : kept_ * 2;
  }
  if (kept_ == 0) {  // never kept: down
    const double next = broken_ / 2;
    if (next < options_.least) return std::nullopt;
    return next;
  }
  if (broken_ - kept_ <= options_.precision * broken_) return std::nullopt;
  return (kept_ + broken_) / 2;
}

// A trial within the bracket can only make it smaller, whatever came of it.
void RateSearch::Report(double rate, bool kept) {
  ++trials_;
  if (kept) {
    kept_ = std::max(kept_, rate);
  } else {
    broken_ = broken_ == 0 ? rate : std::min(broken_, rate);
  }
}

}  // namespace vivace::load
