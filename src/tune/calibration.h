// How long steps take, for each number of threads and kind of cache: timed on the real executor
// before anything is forecast, and learned from the steps of trials. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "bench/step_samples.h"
#include "tune/session.h"
#include "tune/setting.h"
#include "tune/step_time_model.h"
#include "tune/traffic.h"

namespace vivace::tune {

class RunJournal;

using CostKey = std::pair<int32_t, std::string>;  // threads, kind of cache
CostKey KeyOf(const Setting& setting);

class StepTimes {
 public:
  // Times steps for all kinds that `own` (the defaults, where they fit) and `settings` have, but
  // those in the journal, in a quarter of the budget and a minute at most. Settings whose kind
  // there was no time for are removed from `settings` with a note.
  Status Calibrate(Session* session, RunJournal* journal, const Traffic& traffic,
                   const std::optional<Setting>& own, std::vector<Setting>* settings);

  // Steps that trials took make the model better, where the workload really goes, from the next
  // Fit on.
  void Learn(const CostKey& key, const std::vector<bench::StepSample>& steps);
  // Of what was learned. False: no trial had steps of this kind.
  bool Fit(const CostKey& key);

  std::vector<CostKey> keys() const;
  bool known(const CostKey& key) const { return kinds_.contains(key); }
  const StepTimeModel& model(const CostKey& key) const { return kinds_.at(key).model; }

 private:
  struct Kind {
    std::vector<bench::StepSample> calibration, trials;
    StepTimeModel model;
  };
  struct Widest {  // of the settings
    int32_t sequences = 1, tokens = 1;
  };

  Status CalibrateOne(Session* session, RunJournal* journal, const Traffic& traffic,
                      const Setting& setting, const Widest& widest, double seconds);

  std::map<CostKey, Kind> kinds_;
};

}  // namespace vivace::tune
