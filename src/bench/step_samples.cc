#include "bench/step_samples.h"

#include <algorithm>

#include "base/clock.h"
#include "bench/step_driver.h"
#include "engine/cpu_executor.h"
#include "engine/load_plan.h"

namespace vivace::bench {
namespace {

constexpr int32_t kMostSequences = 128;
constexpr int32_t kMostStepTokens = 2048;
constexpr int kMostRounds = 5;
constexpr double kSlowStepSeconds = 0.5;  // is not warmed up for

struct Case {
  int32_t decodes = 0, context = 0;             // each at this position
  int32_t prompts = 0, position = 0, rows = 0;  // rows of each from there
  int32_t tokens() const { return decodes + prompts * rows; }
  StepShape shape() const {
    StepShape shape{.decodes = decodes, .decode_context = int64_t{decodes} * (context + 1)};
    for (int32_t i = 0; i < prompts; ++i) shape.AddPrompt(position, rows, false, false);
    return shape;
  }
};

struct Sizes {
  int32_t sequences = 1, input = 1, context = 1, step_tokens = 1;
};

std::vector<Case> CasesFor(const Sizes& sizes) {
  std::vector<Case> cases;
  const auto add = [&](Case c) {
    if (c.decodes + c.prompts <= sizes.sequences && c.tokens() <= sizes.step_tokens)
      cases.push_back(c);
  };
  const int32_t far = sizes.context - 1;
  const int32_t near = std::min(far, 16);
  for (int32_t d = 1; d <= sizes.sequences; d *= 2) add({.decodes = d, .context = far});
  for (const int32_t d : {4, 32}) add({.decodes = d, .context = near});
  const auto prompts_of = [&](int32_t tokens) {
    const int32_t rows = std::min(tokens, sizes.input);
    return Case{.prompts = tokens / rows, .rows = rows};
  };
  for (int32_t tokens = 16; tokens <= kMostStepTokens; tokens *= 4) add(prompts_of(tokens));
  add(prompts_of(kMostStepTokens));
  if (sizes.input >= 256) add({.prompts = 1, .position = sizes.input - 64, .rows = 64});
  for (const int32_t d : {sizes.sequences / 8, sizes.sequences / 2}) {
    for (const int32_t tokens : {16, 128, 512}) {
      if (d == 0) continue;
      Case mixed = prompts_of(tokens);
      mixed.decodes = d;
      mixed.context = far;
      add(mixed);
    }
  }
  std::ranges::stable_sort(cases, {}, &Case::tokens);
  return cases;
}

// What the cache has room for.
Result<Sizes> SizesFor(const SampleOptions& options, const model::ModelFile& file,
                       EngineConfig* config) {
  Sizes sizes;
  sizes.sequences = std::clamp(options.sequences + 1, 2, kMostSequences);
  sizes.step_tokens = std::clamp(options.step_tokens, 16, kMostStepTokens) + sizes.sequences;
  config->max_num_seqs = sizes.sequences;
  config->max_num_batched_tokens = sizes.step_tokens;
  VIVACE_ASSIGN(const LoadPlan plan, PlanLoad(*config, file, AvailableMemory()));
  const ExecutorLimits& limits = plan.memory.limits;
  sizes.context = std::min(options.input_len + options.output_len, limits.max_model_len);
  const int32_t groups = limits.kv_windows.size();
  const int32_t blocks = (sizes.context + limits.block_size - 1) / limits.block_size * groups;
  sizes.sequences = std::min(limits.max_sequences, limits.num_blocks / blocks);
  if (sizes.sequences < 1) {
    sizes.sequences = 1;
    sizes.context = limits.num_blocks / groups * limits.block_size;
  }
  sizes.input = std::clamp(options.input_len, 1, sizes.context);
  config->max_num_seqs = sizes.sequences;
  config->max_model_len = sizes.context;
  config->kv_cache_memory_bytes = 0;
  config->num_kv_blocks = std::min(
      limits.num_blocks,
      sizes.sequences * ((sizes.context + limits.block_size - 1) / limits.block_size * groups));
  return sizes;
}

}  // namespace

Result<std::vector<StepSample>> SampleSteps(const SampleOptions& options,
                                            const model::ModelFile& file) {
  EngineConfig config = options.engine;
  VIVACE_ASSIGN(const Sizes sizes, SizesFor(options, file, &config));
  const std::vector<Case> cases = CasesFor(sizes);
  const auto over = [&options](double seconds_more) {
    const bool late =
        options.deadline_ns > 0 &&
        SteadyNanos() + static_cast<int64_t>(seconds_more * kNanosPerSecond) >= options.deadline_ns;
    return late || (options.stop != nullptr && options.stop->load());
  };
  std::vector<StepSample> samples;
  const auto executor =
      CreateCpuExecutor(config, file, {}, [&](uint64_t, uint64_t) { return !over(0); });
  if (!executor && over(0)) return samples;
  if (!executor) return tl::unexpected(executor.error());
  StepDriver driver(executor->get(), sizes.sequences, sizes.context);
  driver.Bind(sizes.sequences, sizes.context);
  const auto step = [&](const Case& c) {
    driver.Mix(c.decodes, c.context, c.prompts, c.position, c.rows);
    return static_cast<double>(driver.wall_ns()) * 1e-9;
  };
  const int64_t start = SteadyNanos();
  bool decodes = false, prompts = false;
  double a_token = 0;  // seconds, in the last step
  for (int round = 0; round < kMostRounds; ++round) {
    for (const Case& c : cases) {
      const double seconds = static_cast<double>(SteadyNanos() - start) * 1e-9;
      if (over(a_token * c.tokens())) return samples;
      if (decodes && prompts && seconds > options.most_seconds) return samples;
      double took = step(c);
      if (round == 0 && took < kSlowStepSeconds && !over(took)) {
        took = step(c);  // its memory is there now
      }
      a_token = took / c.tokens();
      samples.push_back({c.shape(), took});
      decodes = decodes || c.decodes > 0;
      prompts = prompts || c.prompts > 0;
    }
  }
  return samples;
}

}  // namespace vivace::bench
