// The traffic that settings are judged by, ready to be computed or forecast: what is sent, when,
// and how many at a time. Immutable while it is used.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "engine/model_text.h"
#include "load/workload.h"
#include "tune/tune_options.h"

namespace vivace::tune {

struct Traffic {
  load::Workload workload;
  // Of each request, the tokens that its turn adds; of messages about these.
  std::vector<std::vector<TokenId>> turns;
  std::vector<double> arrivals;  // of conversations; empty: the trace's, or all at once
  int32_t max_concurrency = 0;   // 0: any number
  bool open_loop() const {
    return !arrivals.empty() || (!workload.requests.empty() && workload.requests[0].at_s >= 0);
  }
};

// So many requests of the options' dataset. Refuses one that has none, and promises (`slo`) that
// its answers cannot have.
Result<Traffic> MakeTraffic(const TuneOptions& options, const ModelText& text, size_t requests);

// Of everything that is sent and when, in hexadecimal: equal for equal traffic only.
std::string DigestOf(const Traffic& traffic);

// Tokens of a typical prompt and answer, for sizing: means, at least 1.
struct TypicalLengths {
  int32_t input = 1, output = 1;
};
TypicalLengths TypicalOf(const Traffic& traffic);

}  // namespace vivace::tune
