#include "bench/steps.h"

#include <algorithm>
#include <memory>

#include "base/limits.h"
#include "base/units.h"
#include "bench/statistics.h"
#include "bench/step_driver.h"
#include "engine/cpu_executor.h"
#include "engine/load_engine.h"
#include "engine/memory_plan.h"
#include "engine/weights.h"
#include "kernels/fastest_isa.h"

namespace vivace::bench {
namespace {

constexpr double kRoundSeconds = 0.02;  // decoding steps of a round, at least one
constexpr int32_t kMostStepsInRound = 16;
constexpr size_t kKvShare = 2;  // of the free memory the cache may take

int32_t Greatest(const std::vector<int32_t>& values, int32_t least) {
  return values.empty() ? least : std::max(least, *std::max_element(values.begin(), values.end()));
}

Status CheckList(const char* flag, const std::vector<int32_t>& values, int32_t most) {
  for (const int32_t value : values) {
    if (value < 1 || value > most) {
      return Fail(ErrorCode::kInvalidArgument, "flag_range", flag,
                  "--{} has {}; give numbers from 1 to {}", flag, value, most);
    }
  }
  return {};
}

kernels::KvGeometry GeometryOf(const EngineConfig& config, const model::ModelSpec& spec,
                               const kernels::BlockOps& ops) {
  kernels::KvGeometry geometry = LayerGeometry(spec.first_attention());
  geometry.dtype = config.kv_cache_dtype.value_or(ops.default_kv_dtype);
  geometry.block_size = config.block_size;
  return geometry;
}

// One run: the model, the executor and the cases.
class Bench {
 public:
  Bench(const StepOptions& options, const model::ModelFile& file)
      : options_(options),
        file_(file),
        ops_(kernels::GetBlockOps(options.engine.isa.value_or(kernels::FastestIsa()))),
        geometry_(GeometryOf(options.engine, file.spec(), ops_)) {}

  Status Run(const std::function<void(int, int)>& progress, StepReport* report);

 private:
  using Sample = StepTimes;  // total_ns is the wall time

  Status Start(StepReport* report);
  void ChooseCases(StepReport* report);
  Result<MachineLimits> Measure() const;
  int64_t BlocksOf(int32_t tokens) const {
    return (int64_t{tokens} + geometry_.block_size - 1) / geometry_.block_size;
  }
  Sample Prompt(int32_t tokens);
  std::vector<Sample> Decode(const StepCase& step);
  StepFigures Summarise(const StepCase& step, const std::vector<Sample>& samples) const;
  StepLimit Limit(const StepCase& step, const MachineLimits& limits) const;
  void Judge(StepReport* report) const;

  const StepOptions& options_;
  const model::ModelFile& file_;
  const kernels::BlockOps& ops_;
  const kernels::KvGeometry geometry_;
  ModelCost cost_;
  int threads_ = 0;
  int32_t chunk_ = 0;
  int64_t blocks_ = 0;
  std::vector<StepCase> cases_;
  std::unique_ptr<Executor> executor_;
};

// What fits into memory and into the model's context; the cache is as large as the largest needs.
void Bench::ChooseCases(StepReport* report) {
  const int32_t context = file_.spec().context;
  const auto attend = std::ranges::count_if(file_.spec().layers,
                                            [](const auto& layer) { return !layer.recurrent; });
  const size_t block_bytes = ops_.kv_block_bytes(geometry_) * static_cast<size_t>(attend);
  const size_t available = AvailableMemory();
  const size_t free = available > report->weight_bytes ? available - report->weight_bytes : 0;
  const auto add = [&](const StepCase& step, int32_t sequences, int32_t tokens) {
    const int64_t blocks = sequences * BlocksOf(tokens);
    const size_t bytes = static_cast<size_t>(blocks) * block_bytes;
    if (tokens > context) {
      report->left_out.push_back(
          fmt::format("{}: the model was made for {} tokens", Name(step), context));
    } else if (available > 0 && bytes > free / kKvShare) {
      report->left_out.push_back(fmt::format("{}: its cache would take {} and {} are free",
                                             Name(step), FormatBytes(bytes), FormatBytes(free)));
    } else {
      cases_.push_back(step);
      blocks_ = std::max(blocks_, blocks);
    }
  };
  for (const int32_t prompt : options_.prompts) add({.prompt = prompt}, 1, prompt);
  for (const int32_t at : options_.contexts)
    for (const int32_t batch : options_.batches)
      add({.batch = batch, .context = at}, batch, at + 1);
}

Status Bench::Start(StepReport* report) {
  EngineConfig config = options_.engine;
  threads_ = config.threads > 0 ? config.threads : UsableCpus();
  config.threads = threads_;
  VIVACE_ASSIGN(report->weight_bytes, WeightArenaBytes(file_, ops_));
  VIVACE_ASSIGN(cost_, CostOf(file_, ops_, geometry_));
  ChooseCases(report);
  if (cases_.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "nothing_to_measure", "", "{}",
                report->left_out.empty() ? "no case is left to measure; give --prompt or --decode"
                                         : report->left_out.front());
  }
  config.max_num_seqs = Greatest(options_.batches, 1);
  config.max_num_batched_tokens = std::max(config.max_num_batched_tokens, *config.max_num_seqs);
  config.max_model_len =
      std::max(Greatest(options_.prompts, 1), Greatest(options_.contexts, 1) + 1);
  config.max_model_len = std::min(config.max_model_len, file_.spec().context);
  config.max_model_len =
      static_cast<int32_t>(std::min<int64_t>(config.max_model_len, blocks_ * geometry_.block_size));
  const size_t groups = GroupsOf(file_.spec(), config.max_model_len).groups.size();
  config.num_kv_blocks = static_cast<int32_t>(blocks_ * static_cast<int64_t>(groups));
  config.kv_cache_memory_bytes = 0;
  VIVACE_RETURN_IF_ERROR(Validate(config));
  chunk_ = config.max_num_batched_tokens;
  VIVACE_ASSIGN(report->limits, Measure());
  VIVACE_ASSIGN(executor_, CreateCpuExecutor(config, file_, {}, {}));
  return {};
}

Result<MachineLimits> Bench::Measure() const {
  if (options_.limits != nullptr) return *options_.limits;
  const auto weights = static_cast<size_t>(cost_.body.bytes + cost_.tail.bytes + cost_.head.bytes);
  return MeasureLimits({.threads = threads_, .working_sets = {weights}});
}

Bench::Sample Bench::Prompt(int32_t tokens) {
  StepDriver driver(executor_.get(), 1, tokens);
  driver.Bind(1, tokens);
  Sample sum;
  for (int32_t first = 0; first < tokens; first += chunk_) {
    const int32_t count = std::min(chunk_, tokens - first);
    driver.Chunk(first, count, first + count == tokens);
    sum.kernel_ns += driver.times().kernel_ns;
    sum.sample_ns += driver.times().sample_ns;
    sum.total_ns += driver.wall_ns();
  }
  return sum;
}

std::vector<Bench::Sample> Bench::Decode(const StepCase& step) {
  StepDriver driver(executor_.get(), step.batch, step.context + 1);
  driver.Bind(step.batch, step.context);
  driver.Decode(step.batch, step.context);  // warms up
  const double seconds = static_cast<double>(driver.wall_ns()) / 1e9;
  const auto steps = static_cast<int32_t>(
      std::clamp(kRoundSeconds / seconds, 1.0, static_cast<double>(kMostStepsInRound)));
  std::vector<Sample> samples;
  for (int32_t i = 0; i < options_.rounds * steps; ++i) {
    driver.Decode(step.batch, step.context);
    samples.push_back({driver.times().kernel_ns, driver.times().sample_ns, driver.wall_ns()});
  }
  return samples;
}

StepFigures Bench::Summarise(const StepCase& step, const std::vector<Sample>& samples) const {
  std::vector<double> seconds;
  double kernels = 0, sampling = 0, total = 0;
  for (const Sample& sample : samples) {
    seconds.push_back(static_cast<double>(sample.total_ns) / 1e9);
    kernels += static_cast<double>(sample.kernel_ns);
    sampling += static_cast<double>(sample.sample_ns);
    total += static_cast<double>(sample.total_ns);
  }
  StepFigures figures;
  figures.step = step;
  figures.seconds = Median(seconds);
  figures.fastest = *std::min_element(seconds.begin(), seconds.end());
  figures.slowest = *std::max_element(seconds.begin(), seconds.end());
  figures.tokens_per_second = (step.is_prompt() ? step.prompt : step.batch) / figures.seconds;
  figures.kernel_share = kernels / total;
  figures.sample_share = sampling / total;
  return figures;
}

StepLimit Bench::Limit(const StepCase& step, const MachineLimits& limits) const {
  const auto of = [&](const std::vector<StepPart>& parts) {
    const StepCost cost = CostOf(cost_, parts);
    return LimitOf(cost, RatesFor(limits, ops_.isa, geometry_.dtype, threads_, cost.bytes));
  };
  if (!step.is_prompt())
    return of(std::vector<StepPart>(static_cast<size_t>(step.batch), {step.context, 1, 1}));
  StepLimit sum;
  double longest = 0;
  for (int32_t first = 0; first < step.prompt; first += chunk_) {
    const int32_t count = std::min(chunk_, step.prompt - first);
    const StepLimit part = of({{first, count, first + count == step.prompt ? 1 : 0}});
    sum.seconds += part.seconds;
    if (part.seconds > longest) sum.side = part.side;  // the side of the longest chunk
    longest = std::max(longest, part.seconds);
  }
  return sum;
}

void Bench::Judge(StepReport* report) const {
  for (StepFigures& figures : report->figures) {
    figures.limit = Limit(figures.step, report->limits);
    figures.fraction_of_limit = figures.limit.seconds / figures.seconds;
  }
}

Status Bench::Run(const std::function<void(int, int)>& progress, StepReport* report) {
  VIVACE_RETURN_IF_ERROR(Start(report));
  report->model = file_.path();
  report->isa = Name(ops_.isa);
  report->kv_dtype = kernels::Name(geometry_.dtype);
  report->threads = threads_;
  StepDriver(executor_.get(), 1, 1).TouchCache();

  // Prompts take turns, so that a slow moment hits them alike; decoding steps are many and short.
  std::vector<std::vector<Sample>> samples(cases_.size());
  const int total = static_cast<int>(cases_.size());
  for (int32_t round = -1; round < options_.rounds; ++round) {
    for (size_t i = 0; i < cases_.size(); ++i) {
      if (!cases_[i].is_prompt()) continue;
      const Sample sample = Prompt(cases_[i].prompt);
      if (round >= 0) samples[i].push_back(sample);  // the first warms up
    }
  }
  for (size_t i = 0; i < cases_.size(); ++i) {
    if (!cases_[i].is_prompt()) samples[i] = Decode(cases_[i]);
    report->figures.push_back(Summarise(cases_[i], samples[i]));
    if (progress) progress(static_cast<int>(i) + 1, total);
  }
  Judge(report);
  if (!CheckFractions(*report)) {
    executor_.reset();
    VIVACE_ASSIGN(const MachineLimits again, Measure());
    report->limits = Better(report->limits, again);
    Judge(report);
  }
  return {};
}

}  // namespace

std::string Name(const StepCase& step) {
  return step.is_prompt() ? fmt::format("prompt {}", step.prompt)
                          : fmt::format("decode {} at {}", step.batch, step.context);
}

Result<StepReport> RunStepBench(const StepOptions& options,
                                const std::function<void(int, int)>& progress) {
  VIVACE_RETURN_IF_ERROR(Validate(options.engine));
  VIVACE_RETURN_IF_ERROR(CheckList("prompt", options.prompts, limits::kMaxBenchTokens));
  VIVACE_RETURN_IF_ERROR(CheckList("decode", options.batches, limits::kMaxBenchSequences));
  VIVACE_RETURN_IF_ERROR(CheckList("context", options.contexts, limits::kMaxBenchTokens));
  VIVACE_RETURN_IF_ERROR(CheckList("rounds", {options.rounds}, limits::kMaxBenchRounds));
  VIVACE_ASSIGN(const model::ModelFile file, OpenModel(options.engine));
  StepReport report;
  VIVACE_RETURN_IF_ERROR(Bench(options, file).Run(progress, &report));
  return report;
}

Status CheckFractions(const StepReport& report) {
  for (const StepFigures& figures : report.figures) {
    if (figures.fraction_of_limit <= kMostFraction) continue;
    return Fail(
        ErrorCode::kInternal, "limit_exceeded", "",
        "{} took {:.2f} of the time the machine's limit allows ({} side): the limit "
        "was measured wrongly, so none of these fractions holds; let the machine be idle and "
        "run it again",
        Name(figures.step), 1 / figures.fraction_of_limit, Name(figures.limit.side));
  }
  return {};
}

}  // namespace vivace::bench
