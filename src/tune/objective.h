// What "best" means: a number for a run, larger is better, and whether it kept its promises, which
// goes before any number.
//
//   with --slo                 output tokens a second; whatever keeps every term is better than
//                              whatever breaks one, and of those that break one, the further off
//                              the worse
//   without, closed loop       output tokens a second
//   without, a given rate      all that keep up have the same throughput, so the inverse of the
//                              mean time to the last token (E2E)
//
// Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "load/figures.h"
#include "load/slo.h"

namespace vivace::tune {

// Logarithms: a figure this much below or above its promise is far off it, however far.
inline constexpr double kFar = 2;

struct Score {
  double value = 0;  // tokens a second, or the inverse of seconds
  // Of the promise that is nearest to being broken: log(promised / measured), cut to -kFar .. kFar;
  // kFar where there are no promises. kept == (margin >= 0).
  double margin = kFar;
  std::vector<std::string> broken = {};  // "p99 ttft is 730 ms, not 500"
  bool kept() const { return margin >= 0; }
};

// The order of what breaks a promise: a factor on the value, 1 for what keeps all.
double BrokenFactor(double margin);

// Orders those that keep their promises, and those that do not, each among themselves.
inline double RankOf(const Score& score) { return score.value * BrokenFactor(score.margin); }

// Whether `a` is better than `b`.
bool Better(const Score& a, const Score& b);

// The score in the middle, from the worst to the best: of an even number the lower one, so that a
// promise is kept where more than half of them keep it. Its index.
size_t MiddleOf(const std::vector<Score>& scores);

class Objective {
 public:
  Objective(std::vector<load::Slo> slo, bool open_loop)
      : slo_(std::move(slo)), latency_(slo_.empty() && open_loop) {}

  // A run that was ended early has figures of what had completed: it keeps no promise.
  Score Of(const load::Figures& figures, bool partial) const;

  std::string name() const;       // for people, in a sentence
  std::string_view unit() const;  // of the value

 private:
  std::vector<load::Slo> slo_;
  bool latency_;
};

}  // namespace vivace::tune
