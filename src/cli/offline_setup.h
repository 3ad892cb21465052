// What `bench throughput`, `bench latency` and `tune` have in common: a model opened once, Ctrl-C
// as a flag, and a run's share of the machine's limit.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "bench/machine_limits.h"
#include "bench/offline.h"
#include "bench/offline_report.h"
#include "cli/model_argument.h"
#include "cli/signals.h"
#include "engine/config.h"
#include "engine/model_text.h"
#include "model/loaded_model.h"

namespace vivace::cli {

struct OpenedModel {
  model::ModelFile file;
  ModelText text;
};

// Resolves the argument, sets config->model and opens what it names.
Result<OpenedModel> OpenForOffline(const std::string& argument, const HubOptions& hub,
                                   EngineConfig* config);

// Ctrl-C and SIGTERM set a flag; a second one ends the process. Make it before other threads start.
class StopFlag {
 public:
  const std::atomic<bool>* flag() const { return &stop_; }
  bool stopped() const { return stop_.load(); }

 private:
  struct Block {
    Block() { BlockSignals(); }
  } block_;  // before the thread
  std::atomic<bool> stop_{false};
  SignalThread thread_{[this](int, int count) { OnSignal(count); }};

  void OnSignal(int count);
};

// Loads the model, with a bar; a stop ends it with the reason "load_stopped".
Result<std::unique_ptr<bench::OfflineEngine>> LoadForOffline(const EngineConfig& config,
                                                             const OpenedModel& model,
                                                             bool with_cost, const StopFlag& stop);

// The machine's limits, measured before a model takes its memory; nothing if they are not wanted.
Result<std::optional<bench::MachineLimits>> LimitsFor(bool wanted, const EngineConfig& config,
                                                      const model::ModelFile& file);

// Of the engine's last run. Where the share is impossible, the limits are measured once more.
Result<std::optional<bench::OfflineLimit>> LimitOfRun(
    const std::optional<bench::MachineLimits>& limits, const EngineConfig& config,
    const model::ModelFile& file, const bench::OfflineEngine& engine);

// The exit code where nothing was measured: 130 after Ctrl-C, which needs no other reason.
int RefuseOffline(const Error& error, const StopFlag& stop);

// Prints what an offline benchmark measured and writes its JSON if `json_path` is not empty; the
// exit code. `interrupted`: what a person is told then; empty: it was not.
struct OfflineOutcome {
  std::string text, json, json_path, interrupted;
  std::optional<bench::OfflineLimit> limit;
};
int FinishOffline(const OfflineOutcome& outcome);

}  // namespace vivace::cli
