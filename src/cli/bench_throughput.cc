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
#include "load/datasets/tokenizer_counter.h"
#include "load/figures.h"

namespace vivace::cli {
namespace {

struct BenchThroughputOptions {
  EngineConfig engine;
  HubOptions hub;
  load::DatasetOptions dataset;
  bench::OfflineOptions run;
  bool limits = true;
  std::string output_json;
};

Command BenchThroughputCommand(BenchThroughputOptions* options) {
  options->dataset.token_ids = options->dataset.renders = true;
  Command command = {
      .name = "bench throughput",
      .positional = "MODEL",
      .summary = "Computes a whole dataset in process, all of it at once, and says how fast.",
      .details =
          DatasetHelp() +
          "\nThe rest are flags of `vivace serve`. Ctrl-C ends it with what was measured.\n\n"
          "Examples:\n"
          "  vivace bench throughput model.gguf --num-prompts 64 --input-len 128 "
          "--output-len 64\n"
          "  vivace bench throughput model.gguf --dataset-name sharegpt --dataset-path "
          "FILE --output-json result.json",
      .flags = DatasetFlags(&options->dataset),
      .takes_config = true};
  const auto add = [&](Flag flag) { command.flags.push_back(std::move(flag)); };
  add(PromptsFlag(&options->dataset.num_prompts, "1000", "requests"));
  add(CountFlag("n", "answers to each prompt", &options->run.num_choices, 1, limits::kMaxChoices));
  add(CountFlag("max-concurrency", "requests at a time; 0: all of them",
                &options->run.max_concurrency, 0, limits::kMaxLoadConcurrency));
  for (Flag& flag : OfflineSamplingFlags(&options->run.temperature, &options->run.ignore_eos))
    add(std::move(flag));
  add({"limits", "", "on", "measure the machine too, and say what share of its limit was reached",
       StoreSwitch(&options->limits)});
  add(DisableDetokenizeFlag());
  add({"output-json", "FILE", "", "the figures as JSON", StoreText(&options->output_json)});
  for (Flag& flag : EngineFlags(&options->engine)) add(std::move(flag));
  for (Flag& flag : WeightCacheFlags(&options->engine)) add(std::move(flag));
  for (Flag& flag : HubFlags(&options->hub)) add(std::move(flag));
  return command;
}

Result<bench::ThroughputReport> MeasureThroughput(BenchThroughputOptions* options,
                                                  const std::string& argument,
                                                  const StopFlag& stop) {
  VIVACE_ASSIGN(const OpenedModel model, OpenForOffline(argument, options->hub, &options->engine));
  // First what costs little and may be wrong.
  load::TokenizerCounter counter(model.text.tokenizer);
  options->dataset.seed = options->engine.seed;
  options->run.seed = options->engine.seed;
  VIVACE_ASSIGN(load::Workload workload, load::MakeWorkload(options->dataset, &counter));
  for (load::PlannedRequest& request : workload.requests) request.at_s = -1;  // all of it at once
  VIVACE_ASSIGN(const auto limits, LimitsFor(options->limits, options->engine, model.file));
  VIVACE_ASSIGN(const auto engine, LoadForOffline(options->engine, model, options->limits, stop));
  Progress progress("measuring");
  options->run.stop = stop.flag();
  options->run.progress = [&](size_t done, size_t total) { progress.Update(done, total); };
  VIVACE_ASSIGN(const bench::OfflineRun run, engine->Run(workload, options->run));
  progress.Clear();
  std::optional<bench::OfflineLimit> limit;
  if (!stop.stopped()) {
    VIVACE_ASSIGN(limit, LimitOfRun(limits, options->engine, model.file, *engine));
  }
  const LoadPlan& plan = engine->plan();
  return bench::ThroughputReport{.model = argument,
                                 .isa = std::string(Name(plan.ops->isa)),
                                 .kv_dtype = std::string(kernels::Name(plan.memory.kv.dtype)),
                                 .workload = workload.name,
                                 .threads = plan.threads,
                                 .max_num_seqs = plan.memory.limits.max_sequences,
                                 .max_num_batched_tokens = plan.memory.limits.max_batched_tokens,
                                 .elapsed_s = run.elapsed_s,
                                 .figures = load::ComputeFigures(run.records, {}),
                                 .use = run.use,
                                 .limit = limit};
}

}  // namespace

int BenchThroughput(std::span<const std::string> args) {
  BenchThroughputOptions options;
  const auto words = ParseWords(BenchThroughputCommand(&options), args, {1, 1, "give one model"});
  if (!words) return words.error();
  StopFlag stop;
  log::Configure({.level = log::Level::kWarn});  // figures are what is wanted
  const Status possible = CheckOutputPath(options.output_json);
  if (!possible) return Refuse(possible.error());
  const auto report = MeasureThroughput(&options, (*words)[0], stop);
  if (!report) return RefuseOffline(report.error(), stop);
  return FinishOffline(
      {.text = bench::Text(*report),
       .json = bench::Json(*report),
       .json_path = options.output_json,
       .interrupted =
           stop.stopped() ? "interrupted: these are the figures of what had ended by then" : "",
       .limit = report->limit});
}

}  // namespace vivace::cli
