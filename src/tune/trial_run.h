// One trial: an engine of its own for a setting, warmed up, and the traffic. One thread.
#pragma once

#include <optional>

#include "base/result.h"
#include "tune/session.h"
#include "tune/setting.h"
#include "tune/traffic.h"
#include "tune/trial.h"

namespace vivace::tune {

struct TrialBounds {
  double most_seconds = 0;  // of the traffic
  bool keep_cut = false;    // what the budget cut is better than nothing
};

struct TrialRun {
  std::optional<Trial> trial;  // nothing: the user stopped it, or the budget ended
  double prepare_s = 0;        // loading and warming up; 0: it did not come to its end
};

Result<TrialRun> RunTrial(const Session& session, const Setting& setting, const Traffic& traffic,
                          const TrialBounds& bounds);

}  // namespace vivace::tune
