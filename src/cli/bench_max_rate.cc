#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "base/limits.h"
#include "cli/bench_commands.h"
#include "cli/bench_load.h"
#include "cli/commands.h"
#include "cli/traffic_flags.h"
#include "cli/value_flags.h"
#include "load/arrivals.h"
#include "load/rate_search.h"
#include "load/report/json_writer.h"
#include "load/report/report.h"
#include "load/report/text.h"
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
  size_t most_prompts = 0;  // of a trial; 0: the user gave no number
};

// A trial cannot be longer, whatever its rate and --trial-sec: prompts are made before it begins.
constexpr size_t kMostTrialRequests = 100'000;
constexpr double kWholeTrial = 0.99;  // of --trial-sec

struct Trial {
  double rate = 0, seconds = 0;
  bool kept = false;
  bool cut = false;  // shorter than --trial-sec
  bool client_was_late = false;
  int64_t failed = 0;
  std::vector<double> values;  // of each promise; -1: none
};

struct MaxRateSearch {
  explicit MaxRateSearch(const load::RateSearch::Options& options) : rates(options) {}

  load::RateSearch rates;
  std::vector<load::RunResult> runs;
  std::vector<Trial> trials;  // of the runs, without one that was interrupted
  bool finished = false;
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
          "Each trial is an open loop with Poisson arrivals and prompts of its own, of the "
          "requests "
          "of --trial-sec. A rate\nat which over 1 % of the requests fail is not kept. "
          "--output-json has the answer and every trial. Exit code 1: no\nrate was kept.\n\n"
          "Examples:\n"
          "  vivace bench max-rate --slo p99:ttft:500 p99:itl:50 --ignore-eos\n"
          "  vivace bench max-rate --slo p95:e2el:2000 --rate-low 4 --rate-high 64 --trial-sec 30",
      .flags = {}};
  command.flags = SearchFlags(options);
  for (Flag& flag : LoadFlags(&options->load)) {
    const bool prompts = flag.name == "num-prompts";
    command.flags.push_back(prompts ? PromptsFlag(&options->most_prompts, "those of --trial-sec",
                                                  "requests of a trial, at most")
                                    : std::move(flag));
  }
  for (Flag& flag : ReportFlags(&options->load.report)) command.flags.push_back(std::move(flag));
  return command;
}

// Those of --trial-sec: a shorter trial ends before a queue has built up, and calls a rate kept
// that is not.
size_t RequestsOf(const BenchMaxRateOptions& o, double rate) {
  const double wanted = std::max(std::ceil(rate * o.trial_s), static_cast<double>(o.min_requests)) *
                        load::TurnsOf(o.load.dataset);
  const size_t most = o.most_prompts > 0 ? o.most_prompts : kMostTrialRequests;
  return static_cast<size_t>(std::min(wanted, static_cast<double>(most)));
}

// Over how long the arrivals of a trial were spread.
double SecondsOf(const load::RunResult& run) {
  std::set<int32_t> conversations;
  size_t starts = 0;
  for (const load::RequestRecord& record : run.records) {
    starts += record.conversation < 0 || conversations.insert(record.conversation).second;
  }
  return static_cast<double>(starts) / run.request_rate;
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

Trial TrialOf(const BenchMaxRateOptions& o, const load::RunResult& run) {
  Trial trial{.rate = run.request_rate,
              .seconds = SecondsOf(run),
              .kept = KeepsPromises(o, run.figures),
              .client_was_late = run.client.bottleneck,
              .failed = run.figures.failed,
              .values = {}};
  trial.cut = trial.seconds < kWholeTrial * o.trial_s;
  for (const load::Slo& slo : o.slos) trial.values.push_back(load::ValueOf(slo, run.figures));
  return trial;
}

std::string TrialText(const BenchMaxRateOptions& o, const Trial& trial) {
  std::string text = fmt::format("{:<8}", trial.kept ? "kept" : "broken");
  for (size_t i = 0; i < o.slos.size(); ++i) {
    text += fmt::format("  {} (was {})", load::Name(o.slos[i]),
                        trial.values[i] < 0 ? "-" : fmt::format("{:.1f}", trial.values[i]));
  }
  if (trial.failed > 0) text += fmt::format("  {} failed", trial.failed);
  if (trial.cut) text += fmt::format("  only {:.1f} s", trial.seconds);
  return text;
}

std::string Promised(const BenchMaxRateOptions& o) {
  std::string text;
  for (const load::Slo& slo : o.slos) text += (text.empty() ? "" : ", ") + load::Name(slo);
  return text;
}

std::string Bracket(const BenchMaxRateOptions& o, const MaxRateSearch& s) {
  const double kept = s.rates.kept(), broken = s.rates.broken();
  if (!s.finished) {
    std::string text = "The search was not finished: ";
    text += kept > 0 ? fmt::format("kept at {:.4g} requests/s", kept) : "no rate kept yet";
    if (broken > 0) text += fmt::format(", broken at {:.4g}", broken);
    return text + fmt::format(": {}.", Promised(o));
  }
  if (kept == 0) {
    return fmt::format(
        "No rate was kept, down to {:.4g} requests/s: {}. Lower the lengths, relax the promise, or "
        "give --rate-low below that.",
        broken, Promised(o));
  }
  if (broken == 0) {
    return fmt::format(
        "Kept at every rate that was tried, up to {:.4g} requests/s: {}. Give a higher --rate-high "
        "or more --max-trials to find the end.",
        kept, Promised(o));
  }
  return fmt::format("Highest rate: {:.4g} requests/s (kept there, broken at {:.4g}): {}.", kept,
                     broken, Promised(o));
}

// Why the answer may be wrong.
std::vector<std::string> Doubts(const BenchMaxRateOptions& o, const MaxRateSearch& s) {
  std::vector<std::string> doubts;
  const auto any = [&](auto which) { return std::any_of(s.trials.begin(), s.trials.end(), which); };
  if (any([](const Trial& t) { return t.cut && t.kept; })) {
    doubts.push_back(fmt::format(
        "Rates were called kept after trials shorter than the {:g} s of --trial-sec, in which no "
        "queue has time to build up: the rate may be too high. {}",
        o.trial_s,
        o.most_prompts > 0 ? "Give more --num-prompts."
                           : "Give --num-prompts, or a dataset that has more."));
  }
  if (any([](const Trial& t) { return t.client_was_late && !t.kept; })) {
    doubts.push_back(
        "This program was the bottleneck where the promise was broken: the server may be able to "
        "do "
        "more. Run it on a machine of its own.");
  }
  return doubts;
}

std::string SearchJson(const BenchMaxRateOptions& o, const MaxRateSearch& s) {
  std::string out;
  load::JsonWriter json(&out);
  const auto rate = [&](double value) { value > 0 ? json.Number(value) : json.Null(); };
  json.BeginObject().Key("finished").Bool(s.finished).Key("answer").Text(Bracket(o, s));
  json.Key("doubts").Texts(Doubts(o, s));
  json.Key("kept");
  rate(s.rates.kept());
  json.Key("broken");
  rate(s.rates.broken());
  json.Key("precision").Number(o.search.precision).Key("trial_sec").Number(o.trial_s);
  json.Key("slo").BeginArray();
  for (const load::Slo& slo : o.slos) {
    json.BeginObject().Key("statistic").Text(slo.statistic);
    json.Key("figure").Text(load::Name(slo.promise.what));
    json.Key("most_ms").Number(slo.promise.most_ms).EndObject();
  }
  json.EndArray().Key("trials").BeginArray();
  for (const Trial& trial : s.trials) {
    json.BeginObject().Key("rate").Number(trial.rate).Key("kept").Bool(trial.kept);
    json.Key("seconds").Number(trial.seconds).Key("cut").Bool(trial.cut);
    json.Key("client_was_late").Bool(trial.client_was_late).Key("failed").Int(trial.failed);
    json.Key("values_ms").BeginArray();
    for (const double value : trial.values) value < 0 ? json.Null() : json.Number(value);
    json.EndArray().EndObject();
  }
  json.EndArray().EndObject();
  return out;
}

// Until the rates are found, or it is interrupted, or a run fails: what is known then is in `s`.
Status SearchRate(const BenchMaxRateOptions& o, LoadBench* bench, MaxRateSearch* s) {
  while (const auto rate = s->rates.Next()) {
    VIVACE_ASSIGN(load::RunResult run, bench->Run({.rate = *rate,
                                                   .concurrency = 0,
                                                   .num_prompts = RequestsOf(o, *rate),
                                                   .number = s->runs.size(),
                                                   .label = fmt::format("rate {:.4g}/s", *rate),
                                                   .promises = {},
                                                   .slos = o.slos}));
    s->runs.push_back(std::move(run));
    if (bench->interrupted()) return {};  // what was cut short says nothing
    s->trials.push_back(TrialOf(o, s->runs.back()));
    s->rates.Report(*rate, s->trials.back().kept);
    fmt::print("{:>10.4g}/s  {}\n", *rate, TrialText(o, s->trials.back()));
    std::fflush(stdout);
  }
  s->finished = true;
  return {};
}

// What the runs warn of, each once.
void PrintNotes(const std::vector<load::RunResult>& runs) {
  std::set<std::string> noted;
  for (const load::RunResult& run : runs) {
    for (const std::string& warning : load::Warnings(run)) {
      if (!noted.insert(warning).second) continue;
      fmt::print("note ({}): {}\n", load::Printable(run.label), load::Printable(warning, 400));
    }
  }
}

// Into files first: what is saved is safe.
Status TellAnswer(const BenchMaxRateOptions& o, MaxRateSearch* s) {
  const std::string answer = Bracket(o, *s);
  for (size_t i = 0; i < s->runs.size(); ++i) {
    auto& environment = s->runs[i].environment;
    environment["max_rate"] = answer;
    environment["max_rate_trial"] = i < s->trials.size() ? TrialText(o, s->trials[i]) : "not ended";
  }
  const Status written = WriteReports(o.load.report, s->runs, SearchJson(o, *s));
  const bool table = !o.load.report.compat.empty();  // it has the notes
  if (table) fmt::print("{}", load::TerminalTable(s->runs, o.load.report.compat));
  if (!s->trials.empty()) fmt::print("{}\n", answer);
  for (const std::string& doubt : Doubts(o, *s)) fmt::print("{}\n", doubt);
  if (!table) PrintNotes(s->runs);
  return written;
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
  for (const auto& [flag, rate] :
       {std::pair("rate-low", o->search.low), std::pair("rate-high", o->search.high)}) {
    if (rate == 0 || rate >= load::kLeastArrivalRate) continue;
    return BadValue(flag, fmt::format("{:g}", rate),
                    fmt::format("0, or at least {:g} requests a second", load::kLeastArrivalRate));
  }
  if (o->search.high == 0) o->search.high = limits::kMaxLoadRate;
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
  MaxRateSearch search(options.search);
  const Status searched = SearchRate(options, bench->get(), &search);
  const Status written = TellAnswer(options, &search);
  if ((*bench)->interrupted()) {
    const double kept = search.rates.kept();
    fmt::print(stderr, "vivace: interrupted; {}\n",
               kept > 0 ? fmt::format("kept until then: {:.4g} requests/s", kept)
                        : "no rate was kept until then");
    return kExitInterrupted;
  }
  if (!searched) return Refuse(searched.error());
  if (!written) return Refuse(written.error());
  return search.rates.kept() > 0 ? 0 : kExitRefused;
}

}  // namespace vivace::cli
