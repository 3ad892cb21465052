#include <fmt/format.h>

#include "base/limits.h"
#include "base/log.h"
#include "base/output_file.h"
#include "bench/offline.h"
#include "bench/offline_report.h"
#include "cli/bench_commands.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/offline_setup.h"
#include "cli/progress.h"
#include "cli/serve_options.h"
#include "cli/traffic_flags.h"
#include "cli/value_flags.h"
#include "load/datasets/dataset.h"
#include "load/datasets/tokenizer_counter.h"

namespace vivace::cli {
namespace {

struct BenchLatencyOptions {
  EngineConfig engine;
  HubOptions hub;
  int32_t input_len = 32, output_len = 128, batch_size = 8;
  int32_t warmup = 10, iterations = 30;
  int32_t num_choices = 1;
  bool limits = true;
  std::string output_json;
};

Command BenchLatencyCommand(BenchLatencyOptions* options) {
  Command command = {
      .name = "bench latency",
      .positional = "MODEL",
      .summary = "Times one batch of equal requests in process, from the first to the last token.",
      .details =
          "The rest are flags of `vivace serve`. The prefix cache is off, as every iteration "
          "would find\nthe one before in it. Ctrl-C ends it with what was measured.\n\n"
          "Examples:\n"
          "  vivace bench latency model.gguf\n"
          "  vivace bench latency model.gguf --batch-size 1 --input-len 512 --output-len 64",
      .flags = {},
      .takes_config = true};
  options->engine.enable_prefix_caching = false;
  const auto add = [&](Flag flag) { command.flags.push_back(std::move(flag)); };
  add(CountFlag("input-len", "tokens of a prompt", &options->input_len, 1,
                limits::kMaxBenchTokens));
  add(CountFlag("output-len", "tokens of an answer", &options->output_len, 1,
                limits::kMaxBenchTokens));
  add(CountFlag("batch-size", "requests at once", &options->batch_size, 1,
                limits::kMaxBenchSequences));
  add(CountFlag("n", "answers to each prompt", &options->num_choices, 1, limits::kMaxChoices));
  add(CountFlag("num-iters-warmup", "iterations before the measured ones", &options->warmup, 0,
                limits::kMaxBenchRounds));
  add(CountFlag("num-iters", "measured iterations", &options->iterations, 1,
                limits::kMaxBenchRounds));
  add({"limits", "", "on", "measure the machine too, and say what share of its limit was reached",
       StoreSwitch(&options->limits)});
  add(DisableDetokenizeFlag());
  add({"output-json", "FILE", "", "the figures as JSON", StoreText(&options->output_json)});
  for (Flag& flag : EngineFlags(&options->engine)) {
    if (flag.name == "enable-prefix-caching") flag.default_text = "off";
    add(std::move(flag));
  }
  for (Flag& flag : WeightCacheFlags(&options->engine)) add(std::move(flag));
  for (Flag& flag : HubFlags(&options->hub)) add(std::move(flag));
  return command;
}

Result<bench::LatencyReport> MeasureLatency(BenchLatencyOptions* options,
                                            const std::string& argument, const StopFlag& stop) {
  VIVACE_ASSIGN(const OpenedModel model, OpenForOffline(argument, options->hub, &options->engine));
  VIVACE_ASSIGN(const auto limits, LimitsFor(options->limits, options->engine, model.file));
  VIVACE_ASSIGN(const auto engine, LoadForOffline(options->engine, model, options->limits, stop));
  load::TokenizerCounter counter(model.text.tokenizer);
  load::DatasetOptions dataset;
  dataset.num_prompts = static_cast<size_t>(options->batch_size);
  dataset.seed = options->engine.seed;
  dataset.input_len = options->input_len;
  dataset.output_len = options->output_len;
  dataset.token_ids = true;
  VIVACE_ASSIGN(const load::Workload workload, load::MakeWorkload(dataset, &counter));
  const LoadPlan& plan = engine->plan();
  bench::LatencyReport report{.model = argument,
                              .isa = std::string(Name(plan.ops->isa)),
                              .kv_dtype = std::string(kernels::Name(plan.memory.kv.dtype)),
                              .threads = plan.threads,
                              .input_len = options->input_len,
                              .output_len = options->output_len,
                              .batch_size = options->batch_size};
  Progress progress("measuring");
  const int32_t total = options->warmup + options->iterations;
  for (int32_t i = 0; i < total && !stop.stopped(); ++i) {
    progress.Update(static_cast<uint64_t>(i), static_cast<uint64_t>(total));
    VIVACE_ASSIGN(const bench::OfflineRun run,
                  engine->Run(workload, {.num_choices = options->num_choices,
                                         .seed = options->engine.seed,
                                         .stop = stop.flag()}));
    if (run.partial || i < options->warmup) continue;
    report.latencies.push_back(run.elapsed_s);
    report.use = run.use;
  }
  progress.Clear();
  if (report.latencies.empty()) {
    return Fail(ErrorCode::kUnavailable, "interrupted", "", "no measured iteration had ended");
  }
  if (!stop.stopped()) {
    VIVACE_ASSIGN(report.limit, LimitOfRun(limits, options->engine, model.file, *engine));
  }
  return report;
}

}  // namespace

int BenchLatency(std::span<const std::string> args) {
  BenchLatencyOptions options;
  const auto words = ParseWords(BenchLatencyCommand(&options), args, {1, 1, "give one model"});
  if (!words) return words.error();
  StopFlag stop;
  log::Configure({.level = log::Level::kWarn});  // figures are what is wanted
  const Status possible = CheckOutputPath(options.output_json);
  if (!possible) return Refuse(possible.error());
  const auto report = MeasureLatency(&options, (*words)[0], stop);
  if (!report) return RefuseOffline(report.error(), stop);
  return FinishOffline(
      {.text = bench::Text(*report),
       .json = bench::Json(*report),
       .json_path = options.output_json,
       .interrupted = stop.stopped() ? fmt::format("interrupted after {} of {} iterations",
                                                   report->latencies.size(), options.iterations)
                                     : "",
       .limit = report->limit});
}

}  // namespace vivace::cli
