#include "tune/trial_run.h"

#include <algorithm>
#include <span>
#include <utility>

#include "bench/offline.h"
#include "engine/load_plan.h"
#include "tune/settings_forecast.h"

namespace vivace::tune {
namespace {

constexpr size_t kStepsKept = 128;  // of a trial, for fitting
constexpr size_t kWarmUpRequests = 8;
constexpr size_t kWarmUpPrompt = 64;
constexpr int32_t kWarmUpTokens = 4;
constexpr double kMostWarmUpS = 60;

// The first pages of the cache, the threads' stacks, the clock: not the trial's.
Status WarmUp(const Session& session, const Traffic& traffic, bench::OfflineEngine* engine) {
  load::Workload warm{.name = "warm-up", .requests = {}};
  for (size_t i = 0; i < std::min(kWarmUpRequests, traffic.turns.size()); ++i) {
    const auto prompt =
        std::span(traffic.turns[i]).first(std::min(traffic.turns[i].size(), kWarmUpPrompt));
    warm.requests.push_back(
        {.prompt = load::PromptIds(prompt.begin(), prompt.end()), .output_tokens = kWarmUpTokens});
  }
  VIVACE_ASSIGN(const bench::OfflineRun run,
                engine->Run(warm, {.temperature = session.options.temperature,
                                   .most_seconds = std::min(session.budget.Left(), kMostWarmUpS),
                                   .stop = session.options.stop}));
  engine->ResetPrefixCache();
  return {};
}

std::vector<bench::StepSample> SomeSteps(const std::vector<bench::RecordedStep>& steps) {
  std::vector<bench::StepSample> some;
  const size_t stride = steps.size() / kStepsKept + 1;
  for (size_t i = 0; i < steps.size(); i += stride)
    some.push_back({steps[i].shape, static_cast<double>(steps[i].ns) * 1e-9});
  return some;
}

// As it was forecast: with the blocks that the session's reading of the memory gives, not with
// those of what is free by now.
EngineConfig ConfigOf(const Session& session, const Setting& setting) {
  EngineConfig config = session.ConfigOf(setting);
  if (config.num_kv_blocks > 0 || config.kv_cache_memory_bytes > 0) return config;
  const auto plan = PlanLoad(config, session.file, session.available);
  if (plan) config.num_kv_blocks = plan->memory.limits.num_blocks;
  return config;
}

}  // namespace

Result<TrialRun> RunTrial(const Session& session, const Setting& setting, const Traffic& traffic,
                          const TrialBounds& bounds) {
  const Budget& budget = session.budget;
  const int64_t start = SteadyNanos();
  TrialRun run;
  Trial trial{.setting = setting};
  const auto engine =
      bench::OfflineEngine::Load(ConfigOf(session, setting), session.file, session.text, false,
                                 [&budget](uint64_t, uint64_t) { return !budget.Over(); });
  if (!engine) {
    if (budget.Over()) return run;
    trial.error = engine.error().message;
  } else {
    VIVACE_RETURN_IF_ERROR(WarmUp(session, traffic, engine->get()));
    run.prepare_s = SecondsSince(start);
    if (budget.Over()) return run;
    VIVACE_ASSIGN(const bench::OfflineRun done,
                  (*engine)->Run(traffic.workload, {.max_concurrency = traffic.max_concurrency,
                                                    .arrivals = traffic.arrivals,
                                                    .temperature = session.options.temperature,
                                                    .ignore_eos = session.options.ignore_eos,
                                                    .seed = session.options.dataset.seed,
                                                    .most_seconds = bounds.most_seconds,
                                                    .stop = session.options.stop}));
    trial.measured = MeasuredOf(done);
    trial.steps = SomeSteps((*engine)->steps());
  }
  if (budget.Stopped()) return run;
  const bool cut = budget.Out() && trial.measured.partial;
  const bool empty = trial.measured.figures.output_throughput <= 0;
  if (cut && (!bounds.keep_cut || empty)) return run;
  trial.took_s = SecondsSince(start);
  run.trial = std::move(trial);
  return run;
}

}  // namespace vivace::tune
