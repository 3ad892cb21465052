#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "base/cpu.h"
#include "base/limits.h"
#include "base/log.h"
#include "cli/bench_commands.h"
#include "cli/commands.h"
#include "cli/duration.h"
#include "cli/flags.h"
#include "cli/offline_setup.h"
#include "cli/progress.h"
#include "cli/serve_options.h"
#include "cli/traffic_flags.h"
#include "cli/value_flags.h"
#include "load/slo.h"
#include "tune/report.h"
#include "tune/tuner.h"

namespace vivace::cli {
namespace {

constexpr double kLeastRate = 1e-4;                 // requests a second
constexpr double kMostItlMs = 60'000;               // as Validate has it
constexpr std::string_view kTuneLists[] = {"slo"};  // flags that take several words

struct TuneArguments {
  tune::TuneOptions tune;
  HubOptions hub;
  bool allow_int8_kv = false;
  // Flags of `serve` that were given: they go into the configuration.
  boost::json::object fixed;
};

// Flags of `serve` that stay as they are while the others are tuned.
constexpr std::string_view kFixed[] = {
    "max-model-len", "kv-cache-memory-bytes", "num-kv-blocks", "block-size",    "quantization",
    "isa",           "enable-prefix-caching", "seed",          "kv-cache-dtype"};

// Keeps what was given for the configuration as well.
Flag KeptForConfig(Flag flag, boost::json::object* fixed) {
  const bool is_switch = flag.value.empty();
  flag.store = [store = flag.store, name = flag.name, is_switch,
                fixed](const std::string& text) -> Status {
    VIVACE_RETURN_IF_ERROR(store(text));
    (*fixed)[name] = is_switch ? boost::json::value(text == "true") : boost::json::value(text);
    return {};
  };
  return flag;
}

// A list of counts that one dimension of the space has.
Flag Dimension(std::string name, std::string help, std::vector<int32_t>* to,
               std::string default_text) {
  auto store = [name, to](const std::string& text) -> Status {
    VIVACE_ASSIGN(*to, ParseCounts(text, name));
    if (to->empty() || to->size() > limits::kMaxTuneValues) {
      return BadValue(name, text,
                      fmt::format("1 to {} numbers, such as 16,32", limits::kMaxTuneValues));
    }
    return {};
  };
  return {std::move(name), "N,N,...", std::move(default_text), std::move(help), std::move(store)};
}

Status StoreItls(const std::string& text, std::vector<double>* to) {
  std::vector<double> values;
  for (const std::string& word : CutList(text)) {
    double value = 0;
    VIVACE_RETURN_IF_ERROR(NumberFlag("max-itl", "MS", "", &value, 0, kMostItlMs).store(word));
    values.push_back(value);
  }
  if (values.empty() || values.size() > limits::kMaxTuneValues) {
    return BadValue("max-itl", text,
                    fmt::format("1 to {} numbers, such as 0,50", limits::kMaxTuneValues));
  }
  *to = std::move(values);
  return {};
}

void AddSpace(tune::Space* space, std::vector<Flag>* flags) {
  flags->push_back(Dimension("max-num-seqs", "sequences in a step, to choose from",
                             &space->max_num_seqs,
                             fmt::format("{}", fmt::join(space->max_num_seqs, ","))));
  flags->push_back(Dimension("max-num-batched-tokens", "tokens of a step, to choose from",
                             &space->max_num_batched_tokens,
                             fmt::format("{}", fmt::join(space->max_num_batched_tokens, ","))));
  flags->push_back(
      {"max-itl", "MS,MS,...", fmt::format("{}", fmt::join(space->max_itl_ms, ",")),
       "most milliseconds between tokens, to choose from; 0: any",
       [space](const std::string& text) { return StoreItls(text, &space->max_itl_ms); }});
  space->threads = tune::ThreadChoices(UsableCpus());
  flags->push_back(Dimension("threads", "compute threads, to choose from", &space->threads,
                             fmt::format("{}", fmt::join(space->threads, ","))));
}

Status StoreRate(const std::string& text, double* to) {
  *to = 0;
  if (text == "inf") return {};
  return NumberFlag("request-rate", "R", "", to, kLeastRate, limits::kMaxLoadRate).store(text);
}

void AddTraffic(TuneArguments* options, std::vector<Flag>* flags) {
  tune::TuneOptions& t = options->tune;
  t.dataset.token_ids = t.dataset.renders = true;
  t.dataset.num_prompts = 0;
  for (Flag& flag : DatasetFlags(&t.dataset)) flags->push_back(std::move(flag));
  flags->push_back(PromptsFlag(&t.dataset.num_prompts, "as many as a trial has time for",
                               "requests of one trial"));
  flags->push_back({"request-rate", "R", "inf",
                    "requests a second; inf: as --max-concurrency allows",
                    [&t](const std::string& text) { return StoreRate(text, &t.request_rate); }});
  flags->push_back(NumberFlag("burstiness", "B", "1: a Poisson process; less: burstier, more: even",
                              &t.burstiness, 1e-3, 1e6));
  flags->push_back(CountFlag("max-concurrency", "requests at a time; 0: any number",
                             &t.max_concurrency, 0, limits::kMaxLoadConcurrency));
  for (Flag& flag : OfflineSamplingFlags(&t.temperature, &t.ignore_eos))
    flags->push_back(std::move(flag));
}

Command TuneCommand(TuneArguments* options) {
  tune::TuneOptions& t = options->tune;
  Command command = {
      .name = "tune",
      .positional = "MODEL",
      .summary =
          "Finds the settings of `vivace serve` that serve your traffic best on this machine.",
      .details =
          DatasetHelp() +
          "\nTimes steps, forecasts every setting with the real scheduler, and measures the best "
          "forecasts on the real\nengine until one is clearly ahead or the budget ends. Writes "
          "vivace.json, report.html, pareto.json, pareto.csv\nand journal.jsonl into --out; the "
          "same "
          "command goes on where an interrupted one ended.\n\nAn int8 KV cache changes answers "
          "slightly, so it is tried only with --allow-int8-kv.\n\n"
          "Examples:\n"
          "  vivace tune model.gguf --input-len 512 --output-len 128 --max-concurrency 16 --out "
          "tuned\n"
          "  vivace tune model.gguf --request-rate 4 --slo p99:ttft:500 p99:itl:50 --budget 10m "
          "--out tuned\n"
          "  vivace serve --config tuned/vivace.json",
      .flags = {},
      .takes_config = false};
  AddTraffic(options, &command.flags);
  const auto add = [&](Flag flag) { command.flags.push_back(std::move(flag)); };
  add({"slo", "TERM ...", "none: throughput",
       "promises to keep, such as p99:ttft:500 p99:itl:50 (milliseconds)",
       [&t](const std::string& text) -> Status {
         VIVACE_ASSIGN(const auto terms, load::ParseSlos(text, "slo"));
         t.slo.insert(t.slo.end(), terms.begin(), terms.end());
         return {};
       }});
  add({"budget", "TIME", FormatDuration(t.budget_s), "time for all of it, such as 90s, 10m or 1h",
       [&t](const std::string& text) -> Status {
         VIVACE_ASSIGN(t.budget_s,
                       ParseDuration(text, "budget", static_cast<double>(limits::kMaxTuneSeconds)));
         return {};
       }});
  add({"out", "DIR", "none: give one", "folder for the results, and for going on",
       StoreText(&t.out)});
  AddSpace(&t.space, &command.flags);
  add({"allow-int8-kv", "", "off", "try an int8 KV cache too: it changes answers slightly",
       StoreSwitch(&options->allow_int8_kv)});
  add({"full-grid", "", "off", "measure every setting once instead of searching: slow",
       StoreSwitch(&t.full_grid)});
  for (Flag& flag : EngineFlags(&t.engine, kFixed))
    add(KeptForConfig(std::move(flag), &options->fixed));
  for (Flag& flag : WeightCacheFlags(&t.engine)) add(std::move(flag));
  for (Flag& flag : HubFlags(&options->hub)) {
    add(flag.name == "revision" ? KeptForConfig(std::move(flag), &options->fixed)
                                : std::move(flag));
  }
  return command;
}

// What `serve` is to be given: a path wherever it is started, or the hub's name.
std::string ModelForConfig(const std::string& argument, const std::string& path) {
  std::error_code error;
  if (argument != path) return argument;
  const auto absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.lexically_normal().string();
}

std::string TuneCommandLine(std::span<const std::string> args) {
  return fmt::format("vivace tune {}", fmt::join(args, " "));
}

void PrintTuneResult(const tune::TuneResult& result, const TuneArguments& options) {
  fmt::print("{}\n", tune::TerminalTable(result));
  if (result.any) {
    fmt::print("Best: {}\n", tune::Name(result.candidates[result.winner].setting));
    for (const std::string& reason : tune::Reasons(result)) fmt::print("  {}\n", reason);
  }
  fmt::print("{} trial{} in {:.0f} s, ended because {}.", result.trials,
             result.trials == 1 ? "" : "s", result.spent_s, result.why_done);
  if (result.error.n > 0) {
    fmt::print(" Forecasts were off by {:.1f} % in throughput (median of {}).",
               result.error.throughput * 100, result.error.n);
  }
  fmt::print("\n");
  for (const std::string& note : result.notes) fmt::print("{}\n", note);
  if (!options.allow_int8_kv && !options.fixed.contains("kv-cache-dtype")) {
    fmt::print("Not tried: an int8 KV cache, as it changes answers slightly (--allow-int8-kv).\n");
  }
  fmt::print("Wrote {0}/report.html, pareto.json, pareto.csv{1}\n", options.tune.out,
             result.any ? " and vivace.json" : "");
  if (result.any) fmt::print("  vivace serve --config {}/vivace.json\n", options.tune.out);
}

Result<tune::TuneResult> RunTuner(TuneArguments* options, const std::string& argument,
                                  std::span<const std::string> args, const StopFlag& stop) {
  tune::TuneOptions& t = options->tune;
  VIVACE_ASSIGN(const OpenedModel model, OpenForOffline(argument, options->hub, &t.engine));
  t.dataset.seed = t.engine.seed;
  t.space.kv_cache_dtypes = {t.engine.kv_cache_dtype};
  if (options->allow_int8_kv && t.engine.kv_cache_dtype != kernels::KvDType::kI8)
    t.space.kv_cache_dtypes.emplace_back(kernels::KvDType::kI8);
  Progress progress("tuning");
  t.stop = stop.flag();
  t.progress = [&progress](const tune::TuneProgress& p) {
    progress.Update(static_cast<uint64_t>(p.share * 1000), 1000,
                    p.leading.empty() ? p.doing : fmt::format("{} | best {}", p.doing, p.leading));
  };
  VIVACE_ASSIGN(const tune::TuneResult result, tune::RunTune(t, model.file, model.text));
  progress.Clear();
  VIVACE_RETURN_IF_ERROR(
      tune::WriteReports(result, {.command = TuneCommandLine(args),
                                  .model = ModelForConfig(argument, t.engine.model),
                                  .fixed = options->fixed,
                                  .out = t.out}));
  return result;
}

}  // namespace

int Tune(std::span<const std::string> args) {
  TuneArguments options;
  const auto words =
      ParseWords(TuneCommand(&options), RepeatFlags(args, kTuneLists), {1, 1, "give one model"});
  if (!words) return words.error();
  if (options.tune.out.empty()) {
    fmt::print(stderr, "vivace: give a folder for the results: --out DIR\n");
    return kExitUsage;
  }
  StopFlag stop;
  log::Configure({.level = log::Level::kWarn});  // figures are what is wanted
  const auto result = RunTuner(&options, (*words)[0], args, stop);
  if (!result) return Refuse(result.error());
  PrintTuneResult(*result, options);
  if (result->interrupted) {
    fmt::print(stderr,
               "vivace: interrupted; what was measured is kept, and the same command goes on\n");
    return kExitInterrupted;
  }
  return result->any ? 0 : kExitRefused;
}

}  // namespace vivace::cli
