#include "cli/offline_setup.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "base/output_file.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "engine/load_engine.h"
#include "engine/load_plan.h"

namespace vivace::cli {
namespace {

bench::OfflineLimit LimitOf(const bench::MachineLimits& limits,
                            const bench::OfflineEngine& engine) {
  bench::OfflineLimit limit{.least_s = engine.LeastSeconds(limits)};
  for (const bench::RecordedStep& step : engine.steps())
    limit.steps_s += static_cast<double>(step.ns) * 1e-9;
  return limit;
}

}  // namespace

void StopFlag::OnSignal(int count) {
  if (count > 1) _exit(kExitInterrupted);
  stop_ = true;
}

Result<OpenedModel> OpenForOffline(const std::string& argument, const HubOptions& hub,
                                   EngineConfig* config) {
  VIVACE_ASSIGN(const ModelArgument model, ResolveModel(argument, hub));
  config->model = model.path;
  VIVACE_RETURN_IF_ERROR(Validate(*config));
  VIVACE_ASSIGN(model::ModelFile file, OpenModel(*config));
  VIVACE_ASSIGN(ModelText text, ReadModelText(file));
  return OpenedModel{std::move(file), std::move(text)};
}

Result<std::unique_ptr<bench::OfflineEngine>> LoadForOffline(const EngineConfig& config,
                                                             const OpenedModel& model,
                                                             bool with_cost, const StopFlag& stop) {
  Progress progress("loading the model");
  return bench::OfflineEngine::Load(config, model.file, model.text, with_cost,
                                    [&](uint64_t done, uint64_t total) {
                                      progress.Update(done, total);
                                      return !stop.stopped();
                                    });
}

Result<std::optional<bench::MachineLimits>> LimitsFor(bool wanted, const EngineConfig& config,
                                                      const model::ModelFile& file) {
  if (!wanted) return std::optional<bench::MachineLimits>();
  Progress progress("measuring the machine's limits");
  progress.Update(0, 1);
  VIVACE_ASSIGN(const LoadPlan plan, PlanLoad(config, file, AvailableMemory()));
  VIVACE_ASSIGN(auto limits, bench::MeasureLimits(
                                 {.threads = plan.threads, .working_sets = {plan.weight_bytes}}));
  return std::optional<bench::MachineLimits>(std::move(limits));
}

Result<std::optional<bench::OfflineLimit>> LimitOfRun(
    const std::optional<bench::MachineLimits>& limits, const EngineConfig& config,
    const model::ModelFile& file, const bench::OfflineEngine& engine) {
  if (!limits) return std::optional<bench::OfflineLimit>();
  std::optional<bench::OfflineLimit> limit = LimitOf(*limits, engine);
  if (!bench::CheckFraction(*limit)) {
    VIVACE_ASSIGN(const auto again, LimitsFor(true, config, file));
    limit = LimitOf(bench::Better(*limits, *again), engine);
  }
  return limit;
}

int RefuseOffline(const Error& error, const StopFlag& stop) {
  if (!stop.stopped()) return Refuse(error);
  fmt::print(stderr, "vivace: interrupted before anything was measured\n");
  return kExitInterrupted;
}

int FinishOffline(const OfflineOutcome& outcome) {
  fmt::print("{}", outcome.text);
  if (!outcome.json_path.empty()) {
    const Status written = WriteOutput(outcome.json_path, outcome.json + "\n");
    if (!written) return Refuse(written.error());
  }
  if (!outcome.interrupted.empty()) {
    fmt::print(stderr, "vivace: {}\n", outcome.interrupted);
    return kExitInterrupted;
  }
  if (outcome.limit) {
    const Status checked = bench::CheckFraction(*outcome.limit);
    if (!checked) return Refuse(checked.error());
  }
  return 0;
}

}  // namespace vivace::cli
