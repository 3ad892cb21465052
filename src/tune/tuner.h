// `vivace tune`: which setting serves a given traffic best on this machine.
//
//   calibrate  steps of many shapes are timed for each number of threads and kind of cache, and a
//              StepCost fitted (under a minute, a quarter of the budget at most)
//   forecast   the real scheduler runs the traffic with every setting of the space; settings that
//              would behave alike become one
//   measure    the search picks, the real engine computes the traffic, the journal keeps it; steps
//              of trials make the next forecasts better
//
// Every trial is an engine of its own, from weights that are mapped once, and the same requests.
// Thread: one; `progress` is called on it. Ends when the search is done, at the budget or soon
// after `stop` is set: loading ends between two weights, warm-up and trials after the step under
// way, and what was measured before is the result. A trial that the budget cut is dropped, but for
// the first.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/config.h"
#include "engine/model_text.h"
#include "load/datasets/dataset.h"
#include "model/loaded_model.h"
#include "tune/candidate.h"
#include "tune/objective.h"
#include "tune/search.h"
#include "tune/setting.h"
#include "tune/trial.h"

namespace vivace::tune {

struct TuneProgress {
  std::string doing;         // "calibrating", "forecasting", "measuring 32 sequences, ..."
  double share = 0;          // of the budget
  std::string leading = {};  // the best so far; empty: none
};

struct TuneOptions {
  EngineConfig engine;  // flags that are not tuned
  Space space;
  load::DatasetOptions dataset;  // num_prompts 0: as many as a trial has time for
  double request_rate = 0;       // a second; 0: a closed loop, or all at once
  double burstiness = 1;
  int32_t max_concurrency = 0;  // 0: any number
  float temperature = 1;
  bool ignore_eos = true;
  std::vector<load::Slo> slo;
  double budget_s = 600;   // of all sessions together
  bool full_grid = false;  // measures every setting of the space once instead of searching
  std::string out;         // folder, made if it is not there
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const TuneProgress&)> progress = {};
};

// One setting, or several that would behave alike, of which this is the one nearest to the
// defaults.
struct TuneResult {
  std::vector<Candidate> candidates;  // in the space's order
  // Settings of the space that were forecast, and the index of the candidate each is one with.
  std::vector<std::pair<Setting, size_t>> standing;
  size_t defaults = 0;  // index of what `serve` would use
  size_t winner = 0;    // index; only if any was tried
  bool any = false;
  std::vector<size_t> rivals;  // not clearly worse than the winner, best first
  double noise = 0;            // of one trial, as a share
  ForecastError error;
  double step_error = 0;  // of the fit with the most threads, typical
  size_t settings = 0;    // of the space
  size_t left_out = 0;    // that this machine has no room for
  int trials = 0;
  double spent_s = 0;
  bool interrupted = false;
  bool resumed = false;
  std::string why_done;
  std::vector<std::string> notes;  // for people
  std::string workload;            // its name
  size_t requests = 0;             // of one trial
  std::string model, machine;      // for reports
  std::string objective, unit;
};

Result<TuneResult> RunTune(const TuneOptions& options, const model::ModelFile& file,
                           const ModelText& text);

}  // namespace vivace::tune
