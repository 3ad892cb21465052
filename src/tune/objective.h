// What "best" means: one number for a run, larger is better, and whether it kept its promises.
//
//   with --slo                 output tokens a second where every term is kept; a run that breaks
//                              one counts for half of them at most, less the further it is off
//   without, closed loop       output tokens a second
//   without, a given rate      all that keep up have the same throughput, so the inverse of the
//   mean
//                              time to the last token (E2E)
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

struct Score {
  double value = 0;
  bool kept = true;                      // every term
  std::vector<std::string> broken = {};  // "p99 ttft is 730 ms, not 500"
};

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
