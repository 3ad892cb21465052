#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/limits.h"
#include "cli/bench_commands.h"
#include "cli/bench_load.h"
#include "cli/commands.h"
#include "cli/value_flags.h"
#include "load/rate_search.h"
#include "load/report/report.h"
#include "load/slo.h"
#include "load/validity.h"

namespace vivace::cli {
namespace {

struct BenchMaxRateOptions {
  LoadOptions load;
  std::vector<load::Slo> slos;
  load::RateSearch::Options search;
  double trial_s = 60;
  int32_t min_requests = 100;
};

std::vector<Flag> SearchFlags(BenchMaxRateOptions* o) {
  return {{"slo", "STAT:FIGURE:MS", "",
           "what must hold: mean, p50, p90, p95, p99 or max of ttft, tpot, itl or e2el",
           [o](const std::string& text) -> Status {
             VIVACE_ASSIGN(const auto more, load::ParseSlos(text, "slo"));
             o->slos.insert(o->slos.end(), more.begin(), more.end());
             return {};
           }},
          NumberFlag("rate-low", "R", "the first rate to try; 0: 1 request a second",
                     &o->search.low, 0, limits::kMaxLoadRate),
          NumberFlag("rate-high", "R", "none above is tried; 0: no bound", &o->search.high, 0,
                     limits::kMaxLoadRate),
          NumberFlag("precision", "SHARE", "how close the ends of the answer are to be",
                     &o->search.precision, 0.001, 0.5),
          CountFlag("max-trials", "runs at most", &o->search.max_trials, 1, 64),
          NumberFlag("trial-sec", "S", "requests of a trial are those of so many seconds",
                     &o->trial_s, 0.1, limits::kMaxLoadSeconds),
          CountFlag("min-requests", "and at least so many, for percentiles", &o->min_requests, 1,
                    limits::kMaxLoadRequests)};
}

Command BenchMaxRateCommand(BenchMaxRateOptions* options) {
  Command command = {
      .name = "bench max-rate",
      .positional = "",
      .summary =
          "Finds the highest rate of requests at which a server keeps its promises, by "
          "doubling and bisection.",
      .details =
          "Each trial is an open loop with Poisson arrivals and prompts of its own, of at most "
          "--num-prompts requests. A rate\nat which over 1 % of the requests fail is not kept. "
          "Exit code 1: no rate was kept.\n\n"
          "Examples:\n"
          "  vivace bench max-rate --slo p99:ttft:500 p99:itl:50 --ignore-eos\n"
          "  vivace bench max-rate --slo p95:e2el:2000 --rate-low 4 --rate-high 64 --trial-sec 30",
      .flags = {}};
  command.flags = SearchFlags(options);
  for (Flag& flag : LoadFlags(&options->load)) command.flags.push_back(std::move(flag));
  for (Flag& flag : ReportFlags(&options->load.report)) command.flags.push_back(std::move(flag));
  return command;
}

size_t RequestsOf(const BenchMaxRateOptions& o, double rate) {
  const double wanted = std::max(std::ceil(rate * o.trial_s), static_cast<double>(o.min_requests));
  return static_cast<size_t>(std::min(wanted, static_cast<double>(o.load.dataset.num_prompts)));
}

// Failures count, and what the client could not measure does not: its lateness only makes
// latencies larger, so what is kept is kept.
bool KeepsPromises(const BenchMaxRateOptions& o, const load::Figures& figures) {
  const auto ended = static_cast<double>(figures.completed + figures.failed);
  if (figures.completed == 0 || static_cast<double>(figures.failed) > load::kMostFailures * ended) {
    return false;
  }
  return std::all_of(o.slos.begin(), o.slos.end(),
                     [&](const load::Slo& slo) { return load::Keeps(slo, figures); });
}

void PrintTrial(const BenchMaxRateOptions& o, const load::RunResult& run, bool kept) {
  std::string line = fmt::format("{:>10.4g}/s  {:<8}", run.request_rate, kept ? "kept" : "broken");
  for (const load::Slo& slo : o.slos) {
    line += fmt::format("  {} (was {:.1f})", load::Name(slo), load::ValueOf(slo, run.figures));
  }
  if (run.figures.failed > 0) line += fmt::format("  {} failed", run.figures.failed);
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

std::string Promised(const BenchMaxRateOptions& o) {
  std::string text;
  for (const load::Slo& slo : o.slos) text += (text.empty() ? "" : ", ") + load::Name(slo);
  return text;
}

void PrintAnswer(const BenchMaxRateOptions& o, const load::RateSearch& search,
                 bool client_was_late) {
  if (search.kept() == 0) {
    fmt::print(
        "No rate was kept, down to {:.4g} requests/s: {}. Lower the lengths, relax the "
        "promise, or give --rate-low below that.\n",
        search.broken(), Promised(o));
  } else if (search.broken() == 0) {
    fmt::print(
        "Kept at every rate that was tried, up to {:.4g} requests/s: {}. Give a higher "
        "--rate-high or more --max-trials to find the end.\n",
        search.kept(), Promised(o));
  } else {
    fmt::print("Highest rate: {:.4g} requests/s (kept there, broken at {:.4g}): {}.\n",
               search.kept(), search.broken(), Promised(o));
  }
  if (client_was_late) {
    fmt::print(
        "This program was the bottleneck where the promise was broken: the server may be "
        "able to do more. Run it on a machine of its own.\n");
  }
}

Status SearchRate(const BenchMaxRateOptions& o, LoadBench* bench, load::RateSearch* search,
                  std::vector<load::RunResult>* runs) {
  bool client_was_late = false;
  while (const auto rate = search->Next()) {
    VIVACE_ASSIGN(load::RunResult run, bench->Run({.rate = *rate,
                                                   .concurrency = 0,
                                                   .num_prompts = RequestsOf(o, *rate),
                                                   .number = runs->size(),
                                                   .label = fmt::format("rate {:.4g}/s", *rate),
                                                   .promises = {}}));
    runs->push_back(std::move(run));
    if (bench->interrupted()) return {};
    const bool kept = KeepsPromises(o, runs->back().figures);
    search->Report(*rate, kept);
    client_was_late |= !kept && runs->back().client.bottleneck;
    PrintTrial(o, runs->back(), kept);
  }
  PrintAnswer(o, *search, client_was_late);
  return {};
}

Status FinishMaxRateOptions(BenchMaxRateOptions* o) {
  if (o->slos.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "bad_value", "slo",
                "give what must hold with --slo, such as --slo p99:ttft:500 p99:itl:50");
  }
  if (o->search.high > 0 && o->search.low > o->search.high) {
    return Fail(ErrorCode::kInvalidArgument, "flag_conflict", "rate-low",
                "--rate-low is above --rate-high");
  }
  VIVACE_RETURN_IF_ERROR(FinishLoadOptions(&o->load));
  return CheckReports(o->load.report);
}

}  // namespace

int BenchMaxRate(std::span<const std::string> args) {
  BenchMaxRateOptions options;
  const auto words = ParseWords(BenchMaxRateCommand(&options), RepeatFlags(args, kLoadLists),
                                {0, 0, "the server is named by --base-url"});
  if (!words) return words.error();
  if (const Status finished = FinishMaxRateOptions(&options); !finished)
    return Refuse(finished.error());
  auto bench = LoadBench::Open(options.load);
  if (!bench) return Refuse(bench.error());
  std::vector<load::RunResult> runs;
  load::RateSearch search(options.search);
  const Status searched = SearchRate(options, bench->get(), &search, &runs);
  const Status written = WriteReports(options.load.report, runs);
  if (!searched) return Refuse(searched.error());
  if (!written) return Refuse(written.error());
  if ((*bench)->interrupted()) {
    fmt::print(stderr, "vivace: interrupted; kept until then: {:.4g} requests/s\n", search.kept());
    return kExitInterrupted;
  }
  return search.kept() > 0 ? 0 : kExitRefused;
}

}  // namespace vivace::cli
