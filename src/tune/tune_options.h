// What `vivace tune` is asked for, and what it tells while it is at it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/config.h"
#include "load/datasets/dataset.h"
#include "load/slo.h"
#include "tune/setting.h"

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
  std::optional<size_t> available = {};  // bytes free for an engine; unset: what the system says
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const TuneProgress&)> progress = {};
};

}  // namespace vivace::tune
