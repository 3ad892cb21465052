#include <fmt/format.h>

#include <algorithm>

#include "base/limits.h"
#include "cli/bench_commands.h"
#include "cli/bench_load.h"
#include "cli/commands.h"
#include "cli/value_flags.h"
#include "load/report/report.h"
#include "load/slo.h"

namespace vivace::cli {
namespace {

struct BenchServeOptions {
  LoadOptions load;
  std::vector<double> rates;
  std::vector<int32_t> concurrencies;
  std::vector<load::Promise> goodput;
};

Status StoreRates(const std::string& text, std::vector<double>* rates) {
  VIVACE_ASSIGN(const std::vector<double> more, ParseRates(text, "request-rate"));
  rates->insert(rates->end(), more.begin(), more.end());
  return {};
}

Status StoreConcurrencies(const std::string& text, std::vector<int32_t>* to) {
  VIVACE_ASSIGN(const std::vector<int32_t> counts, ParseCounts(text, "max-concurrency"));
  for (const int32_t count : counts) {
    if (count > limits::kMaxLoadConcurrency) {
      return BadValue("max-concurrency", text,
                      fmt::format("numbers from 1 to {}", limits::kMaxLoadConcurrency));
    }
    to->push_back(count);
  }
  return {};
}

std::vector<Flag> LoadPointFlags(BenchServeOptions* o) {
  load::ArrivalOptions* arrivals = &o->load.arrivals;
  return {{"request-rate", "LIST", "inf",
           "requests a second, sent whether or not others are answered: 1,2,4 or inf",
           [o](const std::string& text) { return StoreRates(text, &o->rates); }},
          {"max-concurrency", "LIST", "unlimited",
           "requests under way at once, the next when one ends: 1,8,64",
           [o](const std::string& text) { return StoreConcurrencies(text, &o->concurrencies); }},
          {"ramp-up-strategy", "NAME", "", "linear or exponential: the rate rises during the run",
           [arrivals](const std::string& text) -> Status {
             using Ramp = load::ArrivalOptions::Ramp;
             if (text != "linear" && text != "exponential") {
               return BadValue("ramp-up-strategy", text, "linear or exponential");
             }
             arrivals->ramp = text == "linear" ? Ramp::kLinear : Ramp::kExponential;
             return {};
           }},
          NumberFlag("ramp-up-start-rps", "R", "from so many requests a second",
                     &arrivals->ramp_from, load::kLeastArrivalRate, limits::kMaxLoadRate),
          NumberFlag("ramp-up-end-rps", "R", "to so many", &arrivals->ramp_to,
                     load::kLeastArrivalRate, limits::kMaxLoadRate),
          {"goodput", "FIGURE:MS", "",
           "count requests that keep all of these, such as ttft:200 tpot:50",
           [o](const std::string& text) -> Status {
             VIVACE_ASSIGN(const auto more, load::ParsePromises(text, "goodput"));
             o->goodput.insert(o->goodput.end(), more.begin(), more.end());
             return {};
           }}};
}

Command BenchServeCommand(BenchServeOptions* options) {
  Command command = {
      .name = "bench serve",
      .positional = "",
      .summary =
          "Measures a server that speaks OpenAI's API: ours or any other, on this machine or "
          "elsewhere.",
      .details =
          "Lists run one after another, each with prompts of its own. Latencies count from when a "
          "request was due.\nCtrl-C ends a run and keeps what was measured. Exit code 1: a run is "
          "not valid (over 1 % failed, or this\nprogram was the bottleneck); the reports are "
          "written all the same.\n\n"
          "Examples:\n"
          "  vivace bench serve --max-concurrency 1,8,32 --num-prompts 200 --ignore-eos\n"
          "  vivace bench serve --base-url http://host:8000 --request-rate 2,4 --goodput ttft:200 "
          "tpot:50\n"
          "  vivace bench serve --dataset-name sharegpt --dataset-path chats.json "
          "--apply-chat-template --output-html report.html",
      .flags = {}};
  command.flags = LoadPointFlags(options);
  for (Flag& flag : LoadFlags(&options->load)) command.flags.push_back(std::move(flag));
  for (Flag& flag : ReportFlags(&options->load.report)) command.flags.push_back(std::move(flag));
  return command;
}

Status FinishServeOptions(BenchServeOptions* o) {
  const load::ArrivalOptions& arrivals = o->load.arrivals;
  const bool ramps = arrivals.ramp != load::ArrivalOptions::Ramp::kNone;
  if (ramps && !o->rates.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "flag_conflict", "request-rate",
                "--request-rate and --ramp-up-strategy contradict each other: a ramp has its own "
                "rates");
  }
  if (ramps != (arrivals.ramp_from > 0 && arrivals.ramp_to > 0)) {
    return Fail(ErrorCode::kInvalidArgument, "flag_conflict", "ramp-up-strategy",
                "--ramp-up-strategy, --ramp-up-start-rps and --ramp-up-end-rps go together");
  }
  const auto paced = [](double rate) { return rate > 0; };
  if (arrivals.burstiness != 1 && !ramps && std::ranges::none_of(o->rates, paced)) {
    fmt::print(stderr,
               "note: --burstiness shapes the arrivals of --request-rate or of a ramp; there is "
               "neither, and it is not used\n");
  }
  if (o->rates.empty()) o->rates.push_back(0);
  if (o->concurrencies.empty()) o->concurrencies.push_back(0);
  if (o->rates.size() * o->concurrencies.size() > limits::kMaxBenchCases) {
    return Fail(ErrorCode::kInvalidArgument, "bad_value", "request-rate",
                "{} rates by {} concurrencies are more than {} runs", o->rates.size(),
                o->concurrencies.size(), limits::kMaxBenchCases);
  }
  VIVACE_RETURN_IF_ERROR(FinishLoadOptions(&o->load));
  return CheckReports(o->load.report);
}

// In the order in which they run. --label names a single one; those of a list are told apart by
// their loads.
std::vector<LoadBench::Point> PointsOf(const BenchServeOptions& o) {
  std::vector<LoadBench::Point> points;
  const bool single = o.rates.size() * o.concurrencies.size() == 1;
  for (const int32_t concurrency : o.concurrencies) {
    for (const double rate : o.rates) {
      points.push_back({.rate = rate,
                        .concurrency = concurrency,
                        .num_prompts = o.load.dataset.num_prompts,
                        .number = points.size(),
                        .label = single ? o.load.report.label : "",
                        .promises = o.goodput,
                        .slos = {}});
    }
  }
  return points;
}

// Why a list of runs ended, and which are missing.
Error OfRun(Error error, size_t at, size_t count) {
  if (count == 1) return error;
  error.message = fmt::format("run {} of {} was not measured: {}", at + 1, count, error.message);
  if (at + 1 < count) {
    error.message +=
        fmt::format("; nor {} after it", at + 2 == count ? "was the one" : "were those");
  }
  if (error.reason == "no_answer") error.message += "; look into the server's log";
  return error;
}

// What was measured before a fault is kept.
Status RunAll(const BenchServeOptions& o, LoadBench* bench, std::vector<load::RunResult>* runs) {
  const std::vector<LoadBench::Point> points = PointsOf(o);
  for (const LoadBench::Point& point : points) {
    auto run = bench->Run(point);
    if (!run) {
      return tl::unexpected<Error>(OfRun(std::move(run.error()), runs->size(), points.size()));
    }
    runs->push_back(std::move(*run));
    if (bench->interrupted()) return {};
  }
  return {};
}

// A dataset may have fewer requests than a run was to have.
void NoteFewRequests(const BenchServeOptions& o, const std::vector<load::RunResult>& runs) {
  const auto wanted = static_cast<int64_t>(o.load.dataset.num_prompts);
  if (runs.empty() || runs[0].figures.requests >= wanted) return;
  fmt::print(stderr, "note: the dataset has {} requests, fewer than the {} of --num-prompts\n",
             runs[0].figures.requests, wanted);
}

}  // namespace

int BenchServe(std::span<const std::string> args) {
  BenchServeOptions options;
  const auto words = ParseWords(BenchServeCommand(&options), RepeatFlags(args, kLoadLists),
                                {0, 0, "the server is named by --base-url"});
  if (!words) return words.error();
  if (const Status finished = FinishServeOptions(&options); !finished)
    return Refuse(finished.error());
  auto bench = LoadBench::Open(options.load);
  if (!bench) return Refuse(bench.error());
  std::vector<load::RunResult> runs;
  const Status ran = RunAll(options, bench->get(), &runs);
  const Status written = WriteReports(options.load.report, runs);  // first: what is saved is safe
  NoteFewRequests(options, runs);
  if (!runs.empty()) fmt::print("{}", load::TerminalTable(runs, options.load.report.compat));
  if (!written) return Refuse(written.error());
  if ((*bench)->interrupted()) {
    fmt::print(stderr, "vivace: interrupted; the figures are of what was measured until then\n");
  } else if (!ran) {
    return Refuse(ran.error());
  }
  return ExitCodeOf(runs, (*bench)->interrupted());
}

}  // namespace vivace::cli
