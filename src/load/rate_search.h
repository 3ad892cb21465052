// The highest rate at which a promise is kept, by trials: doubling until it is broken, then halving
// the bracket. Pure: says which rate to try next and is told what came of it.
//
// Sound where a promise that is broken at one rate is broken at all higher ones. Trials are noisy,
// so the answer is an interval: kept at its low end, broken at its high end.
#pragma once

#include <optional>

namespace vivace::load {

class RateSearch {
 public:
  struct Options {
    double low = 0;   // the first rate to try; 0: `first`
    double high = 0;  // nothing above is tried; 0: no such bound
    double first = 1;
    double precision = 0.05;  // stop when the bracket is this share of its high end
    double least = 0.01;      // below this rate none is kept
    int max_trials = 16;
  };

  explicit RateSearch(const Options& options) : options_(options) {}

  // The rate to try; none: the search is over.
  std::optional<double> Next() const;
  void Report(double rate, bool kept);

  double kept() const { return kept_; }      // the highest rate that was kept; 0: none was
  double broken() const { return broken_; }  // the lowest that was not; 0: all were kept
  int trials() const { return trials_; }

 private:
  const Options options_;
  double kept_ = 0, broken_ = 0;
  int trials_ = 0;
};

}  // namespace vivace::load
