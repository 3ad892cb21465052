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
#include <vector>

#include "base/result.h"
#include "load/figures.h"

namespace vivace::tune {

// "p99:ttft:500": the 99th percentile of TTFT is at most 500 ms.
struct SloTerm {
  enum class Of : uint8_t { kMean, kP50, kP90, kP95, kP99, kMax } of = Of::kP99;
  load::Promise promise;
};
Result<SloTerm> ParseSloTerm(std::string_view text);
std::string Name(const SloTerm& term);  // "p99 TTFT <= 500 ms"

// What the run had of it, in milliseconds; negative where it has no such figure.
double ValueOf(const SloTerm& term, const load::Figures& figures);

struct Score {
  double value = 0;
  bool kept = true;                 // every term
  std::vector<std::string> broken;  // "p99 TTFT is 730 ms, not 500"
};

class Objective {
 public:
  Objective(std::vector<SloTerm> slo, bool open_loop)
      : slo_(std::move(slo)), latency_(slo_.empty() && open_loop) {}

  // A run that was ended early has figures of what had completed: it keeps no promise.
  Score Of(const load::Figures& figures, bool partial) const;

  std::string name() const;       // a sentence for people
  std::string_view unit() const;  // of the value
  const std::vector<SloTerm>& slo() const { return slo_; }

 private:
  std::vector<SloTerm> slo_;
  bool latency_;
};

}  // namespace vivace::tune
