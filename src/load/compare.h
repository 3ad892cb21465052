// Two or more reports side by side, with intervals and a verdict for each figure.
//
// A figure's ratio to the first report has a percentile bootstrap interval (Efron 1979): latencies
// resample requests in blocks of neighbours in time (the same ones of both runs where both sent the
// same requests: paired), rates resample slices of time, a request's part in
// them spread over its chunks, so that neighbours that share a queue or a step stay together. "No
// difference" is said when the interval holds 1, or when the difference is below `least`. The
// intervals know how requests vary within a run; how one run varies from the next only repeats can
// tell, and the report says so. Cost: bounded by kMaxBootstrapWork however long the runs; pure and
// seeded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "load/run_result.h"

namespace vivace::load {

struct CompareOptions {
  double confidence = 0.95;
  double least = 0.01;  // share below which a difference does not matter
  int resamples = 2000;
  uint64_t seed = 0;
};

enum class Verdict : uint8_t {
  kBetter,
  kWorse,
  kNoDifference,
  kTooFew,      // requests, for this figure
  kNoInterval,  // a report without records: a ratio only
  kNone,        // one of the two has no such figure
};
std::string_view Name(Verdict verdict);

struct ComparedValue {                  // against the first report's
  double value = 0;                     // NaN: none
  double ratio = 0, low = 0, high = 0;  // infinite where the first report's is 0 and this is not
  bool paired = false;
  Verdict verdict = Verdict::kNone;
};

struct ComparedFigure {
  std::string name;  // "p99 TTFT"
  std::string unit;
  bool high_is_good = false;
  double base = 0;  // of the first report; NaN: none
  std::vector<ComparedValue> others;
};

struct ComparedRun {  // one load point, in all reports
  std::string label;
  std::vector<ComparedFigure> figures;
  std::vector<std::string> warnings;  // why these runs may not be comparable
};

struct Comparison {
  std::vector<std::string> names;  // of the reports
  std::vector<ComparedRun> runs;
  std::vector<std::string> warnings;
  CompareOptions options;
};

// `reports` are at least two, each with its runs. Runs are matched by label, those that
// are labelled alike in their order; where each report has one run, those are compared whatever
// their labels. Fails if nothing matches.
Result<Comparison> Compare(const std::vector<std::string>& names,
                           const std::vector<std::vector<RunResult>>& reports,
                           const CompareOptions& options);

std::string ComparisonText(const Comparison& comparison);
std::string ComparisonJson(const Comparison& comparison);

}  // namespace vivace::load
