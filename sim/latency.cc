#include "sim/latency.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "sched/scheduler.h"
#include "sim/step_timer.h"

namespace vivace::sim {
namespace {

constexpr int32_t kPrompts = 6;         // long ones, one after the other
constexpr int32_t kStepsBetween = 40;   // of only the streams
constexpr int32_t kMostSteps = 20'000;  // for one prompt; beyond, it starves
constexpr TokenId kToken = 1;

SchedulerConfig ConfigOf(double target_ms) {
  SchedulerConfig config;
  config.max_num_seqs = 64;
  config.max_num_batched_tokens = 2048;
  config.max_model_len = 16'384;
  config.max_itl_ns = static_cast<int64_t>(target_ms * 1e6);
  config.kv = {.num_blocks = 16'384, .block_size = 16, .enable_prefix_caching = false};
  return config;
}

// A scheduler whose steps take as long as the timer says.
class TimedRun {
 public:
  TimedRun(const SchedulerConfig& config, const MachineSpeed& speed, uint64_t seed)
      : scheduler_(config), timer_(speed, seed) {
    scheduler_.Reserve(&plan_, &changes_, &effects_);
  }

  SeqKey Add(int32_t prompt_len, int32_t max_tokens) {
    const std::vector<TokenId> prompt(static_cast<size_t>(prompt_len), kToken);
    const SeqKey key = next_key_++;
    scheduler_.Add({.key = key,
                    .group = key,
                    .choice = 0,
                    .priority = 0,
                    .prompt = prompt,
                    .max_tokens = max_tokens,
                    .min_tokens = 0,
                    .stop_ids = {},
                    .cache_salt = {},
                    .adapter = {},
                    .prompt_logprobs = false});
    return key;
  }

  // Milliseconds that the step took; what it brought is in effects().
  double Step() {
    scheduler_.Plan(&plan_, &changes_);
    if (plan_.empty()) return 0.0;
    result_.Clear();
    result_.step = plan_.step;
    result_.elapsed_ns = timer_.Measure(plan_);
    for (size_t i = 0; i < plan_.items.size(); ++i) {
      const PlanItem& item = plan_.items[i];
      digest_ = digest_ * 0x100000001b3ull + static_cast<uint64_t>(item.num_tokens);
      if (!item.sample) continue;
      result_.sampled.push_back({.item = static_cast<int32_t>(i), .token = kToken, .error = {}});
    }
    scheduler_.Commit(plan_, result_, &effects_);
    return static_cast<double>(result_.elapsed_ns) * 1e-6;
  }

  bool Ended(SeqKey key) const {
    return std::ranges::any_of(effects_.outputs, [key](const Effects::Output& output) {
      return output.key == key && output.finish != SeqFinish::kNone;
    });
  }
  double cost_ms() const { return timer_.Cost(plan_) * 1e-6; }
  double decode_cost_ms() const { return timer_.DecodeCost(plan_) * 1e-6; }
  bool least_mixed() const {
    return plan_.decode_tokens > 0 && plan_.prefill_tokens > 0 &&
           plan_.prefill_tokens <= ChunkBudget::kMinChunk;
  }
  uint64_t digest() const { return digest_; }

 private:
  Scheduler scheduler_;
  StepTimer timer_;
  StepPlan plan_;
  PlanChanges changes_;
  StepResult result_;
  Effects effects_;
  SeqKey next_key_ = 1;
  uint64_t digest_ = 0;
};

// A prompt's time on the same machine with nobody else there, once it has seen some.
double AloneMs(const SchedulerConfig& config, MachineSpeed speed, int32_t prompt_len) {
  speed.noise = 0.0;
  speed.outliers_per_mille = 0;
  TimedRun run(config, speed, 0);
  double ms = 0.0;
  for (int warm = 0; warm < 2; ++warm) {
    const SeqKey key = run.Add(prompt_len, 1);
    ms = 0.0;
    do {
      ms += run.Step();
    } while (!run.Ended(key));
  }
  return ms;
}

}  // namespace

LatencyReport SimulateLatency(uint64_t seed) {
  Random random(seed);
  const MachineSpeed speed = RandomSpeed(&random);
  const int32_t streams = random.Between(1, 16);
  LatencyReport report;
  report.target_ms = random.Of<double>({25, 50, 50, 50, 100, 200});
  const SchedulerConfig config = ConfigOf(report.target_ms);
  TimedRun run(config, speed, random.Word());

  for (int32_t i = 0; i < streams; ++i) run.Add(random.Between(4, 300), 10'000);
  for (int32_t i = 0; i < kStepsBetween; ++i) run.Step();

  std::vector<double> gaps;
  for (int32_t i = 0; i < kPrompts; ++i) {
    const int32_t prompt_len = random.Between(1'000, 6'000);
    const SeqKey key = run.Add(prompt_len, 1);
    double ttft = 0.0;
    double decodes = 0.0;
    int32_t steps = 0;
    do {
      gaps.push_back(run.Step());
      ttft += run.cost_ms();
      decodes += run.decode_cost_ms();
      if (run.least_mixed()) report.least_mixed_ms = std::max(report.least_mixed_ms, run.cost_ms());
    } while (!run.Ended(key) && ++steps < kMostSteps);
    report.unfinished_prompts += steps == kMostSteps;
    report.worst_prompt_ratio =
        std::max(report.worst_prompt_ratio, (ttft - decodes) / AloneMs(config, speed, prompt_len));
    for (int32_t k = 0; k < kStepsBetween; ++k) {
      run.Step();
      report.decodes_alone_ms = std::max(report.decodes_alone_ms, run.decode_cost_ms());
    }
  }
  report.gaps = static_cast<int64_t>(gaps.size());
  report.long_gaps =
      std::ranges::count_if(gaps, [&](double gap) { return gap > report.target_ms; });
  report.digest = run.digest();
  report.description = fmt::format(
      "seed {}: {} streams take {:.1f} ms, a prompt's row {:.2f} ms, noise {:.1f} %, {} outliers "
      "in 1000 of up to {:.0f} ms, target {:.0f} ms",
      seed, streams, report.decodes_alone_ms, speed.batch_row * 1e-6, speed.noise * 100,
      speed.outliers_per_mille, speed.outlier * 1e-6, report.target_ms);
  return report;
}

}  // namespace vivace::sim
