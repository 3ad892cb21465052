// What each setting of the space would give by the model of step times; those that would behave
// alike become one candidate. One thread.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "bench/offline.h"
#include "tune/calibration.h"
#include "tune/candidate.h"
#include "tune/objective.h"
#include "tune/session.h"
#include "tune/setting.h"
#include "tune/traffic.h"

namespace vivace::tune {

struct Candidates {
  std::vector<Candidate> all;      // in the space's order
  std::vector<Score> forecasts;    // of each, by the last fit
  std::optional<size_t> defaults;  // among `all`; none: they do not fit, or there was no time
  // Settings of the space that were forecast, and what stands for each.
  std::vector<std::pair<Setting, Setting>> standing;
  size_t left_out = 0;  // settings that could never serve the traffic

  // The one that a setting is, or that stands for it; none: it was not forecast.
  std::optional<size_t> Find(const Setting& setting) const;
};

// What a run gave, measured or forecast. Of one that was ended early the tokens of unfinished
// answers count too: it is behind, not at 0.
Measured MeasuredOf(const bench::OfflineRun& run);

Result<bench::OfflineRun> ForecastOf(const Session& session, const StepTimes& times,
                                     const Setting& setting, const Traffic& traffic);

// The settings in the order in which they are forecast: `first` first, the others shuffled, so that
// where time ends early, what was seen is spread over all.
std::vector<Setting> ForecastOrder(std::vector<Setting> settings,
                                   const std::vector<Setting>& first);

// Forecasts every setting: `own` (the defaults) and `measured` (by earlier sessions) whatever it
// takes, others while there is time. Settings whose forecasts are equal to the nanosecond never met
// the bounds in which they differ, and the one nearest to the defaults stands for them. Defaults
// that are no setting of the space stand alone, outside of it. Fails where no setting could ever
// serve the traffic.
Result<Candidates> MakeCandidates(Session* session, const StepTimes& times, const Traffic& traffic,
                                  const Objective& objective, const std::optional<Setting>& own,
                                  const std::vector<Setting>& settings,
                                  const std::vector<Setting>& measured);

// By the last fit of this kind of step. Of what has no chance, and of what cannot be forecast any
// more, the figure of an earlier fit stays.
void ForecastAgain(const Session& session, const StepTimes& times, const Traffic& traffic,
                   const Objective& objective, const CostKey& key, Candidates* candidates);

}  // namespace vivace::tune
