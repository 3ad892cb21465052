#include "load/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/limits.h"
#include "load/bootstrap.h"
#include "load/validity.h"

namespace vivace::load {
namespace {

constexpr int kSlices = 20;         // of time, for rates
constexpr double kMostSkew = 0.05;  // between a report's duration and its records'
constexpr double kOtherLengths = 0.02;
constexpr double kOtherCached = 0.05;
constexpr double kMostUnpaired = 0.05;

struct ComparedStat {
  std::string_view name;
  double Distribution::*member;
  int64_t least;  // requests below which nothing is said
};
constexpr ComparedStat kComparedStats[] = {{"mean", &Distribution::mean, 10},
                                           {"p50", &Distribution::p50, 10},
                                           {"p90", &Distribution::p90, 30},
                                           {"p99", &Distribution::p99, 100}};

struct ComparedLatency {
  std::string_view name;
  Distribution Figures::*figures;
  double RequestTimes::*time;  // null: gaps
};
constexpr ComparedLatency kComparedLatencies[] = {
    {"TTFT", &Figures::ttft_ms, &RequestTimes::ttft_ms},
    {"TPOT", &Figures::tpot_ms, &RequestTimes::tpot_ms},
    {"ITL", &Figures::itl_ms, nullptr},
    {"E2EL", &Figures::e2el_ms, &RequestTimes::e2el_ms},
};

enum class Of { kRequests, kOutputTokens, kGoodRequests };
struct RateFigure {
  std::string_view name, unit;
  double Figures::*figure;
  Of of;
};
constexpr RateFigure kRates[] = {
    {"request throughput", "requests/s", &Figures::request_throughput, Of::kRequests},
    {"output throughput", "tokens/s", &Figures::output_throughput, Of::kOutputTokens},
    {"goodput", "requests/s", &Figures::goodput, Of::kGoodRequests},
};

// One figure's values of each completed request, by the request's index.
using ByRequest = std::map<int32_t, std::vector<double>>;

ByRequest ValuesByRequest(const RunResult& run, const ComparedLatency& latency) {
  ByRequest values;
  const bool per_token = run.figures.itl_per_token && GapsPerToken(run.records);
  for (const RequestRecord& r : run.records) {
    if (r.outcome != Outcome::kCompleted || r.first_ns == 0) continue;
    std::vector<double> own;
    if (latency.time == nullptr) {
      AppendGaps(r, per_token && CountsTokens(r), &own);
    } else if (const double value = TimesOf(r).*latency.time; value >= 0) {
      own.push_back(value);
    }
    if (!own.empty()) values[r.index] = std::move(own);
  }
  return values;
}

// Whether both sent the same requests and (nearly) all of them are there to be paired.
bool Pairs(const RunResult& a, const RunResult& b, const ByRequest& va, const ByRequest& vb) {
  if (a.seed != b.seed || a.workload != b.workload || a.workload.empty()) return false;
  size_t both = 0;
  for (const auto& [index, values] : va) both += vb.contains(index);
  const double most = static_cast<double>(std::max(va.size(), vb.size()));
  return both > 0 && static_cast<double>(both) >= (1 - kMostUnpaired) * most;
}

// The requests' indexes in the order in which they were due.
std::vector<int32_t> OrderOf(const RunResult& run) {
  std::vector<std::pair<int64_t, int32_t>> due;
  for (const RequestRecord& r : run.records) due.emplace_back(r.scheduled_ns, r.index);
  std::sort(due.begin(), due.end());
  std::vector<int32_t> order;
  for (const auto& [at, index] : due) order.push_back(index);
  return order;
}

GroupedValues Group(const ByRequest& values, const ByRequest* only,
                    const std::vector<int32_t>& order) {
  std::vector<std::vector<double>> groups;
  for (const int32_t index : order) {
    const auto own = values.find(index);
    if (own == values.end() || (only != nullptr && !only->contains(index))) continue;
    groups.push_back(own->second);
  }
  return GroupedValues(groups);
}

Verdict Judge(const ComparedValue& v, bool high_is_good, double least) {
  if (std::isnan(v.low) || std::isnan(v.high)) return Verdict::kTooFew;
  if ((v.low <= 1 && v.high >= 1) || std::abs(v.ratio - 1) < least) return Verdict::kNoDifference;
  return (v.ratio > 1) == high_is_good ? Verdict::kBetter : Verdict::kWorse;
}

// The value, the ratio, and what can be said without an interval.
ComparedValue Start(double base, double value) {
  ComparedValue v;
  v.value = value;
  if (base == 0) {  // of goodput, where no request kept the promise
    v.ratio = value == 0 ? 1 : INFINITY;
  } else {
    v.ratio = std::isfinite(base) && base > 0 ? value / base : NAN;
  }
  v.low = v.high = NAN;
  v.verdict = std::isnan(v.ratio) || std::isnan(value) ? Verdict::kNone : Verdict::kNoInterval;
  return v;
}

double StatOf(const Distribution& d, const ComparedStat& stat) {
  return d.n > 0 ? d.*stat.member : NAN;
}

void CompareLatency(const ComparedLatency& latency, const std::vector<const RunResult*>& runs,
                    const CompareOptions& options, std::vector<ComparedFigure>* out) {
  const size_t first = out->size();
  const Distribution& base = runs[0]->figures.*latency.figures;
  for (const ComparedStat& stat : kComparedStats) {
    out->push_back(
        {fmt::format("{} {}", stat.name, latency.name), "ms", false, StatOf(base, stat), {}});
  }
  const ByRequest of_base = ValuesByRequest(*runs[0], latency);
  for (size_t i = 1; i < runs.size(); ++i) {
    const ByRequest of_other = ValuesByRequest(*runs[i], latency);
    const bool paired = Pairs(*runs[0], *runs[i], of_base, of_other);
    const bool intervals = !of_base.empty() && !of_other.empty();
    std::array<Interval, 4> found{};
    if (intervals) {
      const std::vector<int32_t> order = OrderOf(*runs[0]);
      found = RatioIntervals(
          Group(of_base, paired ? &of_other : nullptr, order),
          Group(of_other, paired ? &of_base : nullptr, paired ? order : OrderOf(*runs[i])), paired,
          {options.confidence, options.resamples, options.seed});
    }
    const auto n = static_cast<int64_t>(std::min(of_base.size(), of_other.size()));
    for (size_t s = 0; s < std::size(kComparedStats); ++s) {
      ComparedValue v = Start((*out)[first + s].base,
                              StatOf(runs[i]->figures.*latency.figures, kComparedStats[s]));
      if (intervals && v.verdict == Verdict::kNoInterval) {
        v.low = found[s].low;
        v.high = found[s].high;
        v.paired = paired;
        v.verdict = n < kComparedStats[s].least ? Verdict::kTooFew : Judge(v, false, options.least);
      }
      (*out)[first + s].others.push_back(v);
    }
  }
}

// What of a rate one completed request is.
double AmountOf(const RequestRecord& r, Of of, std::span<const Promise> promises) {
  if (of == Of::kOutputTokens) return r.output_tokens;
  return of == Of::kRequests || KeepsPromises(r, promises) ? 1 : 0;
}

// What was done in each slice of the run's time, per second; empty where the records do not say. A
// request's part is spread over its chunks: a closed loop completes in waves, and how many ends of
// waves fall into a slice tells nothing of the server.
std::vector<double> Slices(const RunResult& run, Of of, std::span<const Promise> promises) {
  int64_t begin = std::numeric_limits<int64_t>::max(), end = 0;
  for (const RequestRecord& r : run.records) {
    if (r.ended_ns == 0 || r.outcome == Outcome::kNotRun) continue;
    begin = std::min(begin, r.scheduled_ns);
    end = std::max(end, r.ended_ns);
  }
  const double seconds = end > begin ? static_cast<double>(end - begin) / 1e9 : 0;
  // Some tools' files have no start times: what looks like their duration is not.
  if (seconds <= 0 || std::abs(seconds / run.figures.duration_s - 1) > kMostSkew) return {};
  std::vector<double> slices(kSlices, 0);
  const auto add = [&](int64_t at, double amount) {
    const double share = static_cast<double>(at - begin) / static_cast<double>(end - begin);
    slices[static_cast<size_t>(std::clamp(share * kSlices, 0.0, kSlices - 1.0))] += amount;
  };
  for (const RequestRecord& r : run.records) {
    if (r.outcome != Outcome::kCompleted) continue;
    const double amount = AmountOf(r, of, promises);
    if (r.chunk_ns.empty()) add(r.ended_ns, amount);
    for (const int64_t at : r.chunk_ns) add(at, amount / static_cast<double>(r.chunk_ns.size()));
  }
  for (double& slice : slices) slice *= kSlices / seconds;
  return slices;
}

void CompareRate(const RateFigure& rate, const std::vector<const RunResult*>& runs,
                 const CompareOptions& options, std::vector<ComparedFigure>* out) {
  const auto value_of = [&](const RunResult& run) {
    const double value = run.figures.*rate.figure;
    return value >= 0 ? value : NAN;
  };
  ComparedFigure figure{
      std::string(rate.name), std::string(rate.unit), true, value_of(*runs[0]), {}};
  if (!std::isfinite(figure.base)) return;
  const std::vector<double> base = Slices(*runs[0], rate.of, runs[0]->promises);
  for (size_t i = 1; i < runs.size(); ++i) {
    ComparedValue v = Start(figure.base, value_of(*runs[i]));
    const std::vector<double> other = Slices(*runs[i], rate.of, runs[0]->promises);
    if (v.verdict == Verdict::kNoInterval && !base.empty() && !other.empty()) {
      const Interval found =
          MeanRatioInterval(base, other, {options.confidence, options.resamples, options.seed});
      v.low = figure.base > 0 ? found.low : v.ratio;
      v.high = figure.base > 0 ? found.high : v.ratio;
      const int64_t n = std::min(runs[0]->figures.completed, runs[i]->figures.completed);
      v.verdict = n < kSlices ? Verdict::kTooFew : Judge(v, true, options.least);
    }
    figure.others.push_back(v);
  }
  out->push_back(std::move(figure));
}

double MeanOutput(const RunResult& run) {
  return run.figures.completed > 0
             ? static_cast<double>(run.figures.output_tokens) / run.figures.completed
             : 0;
}

bool SamePromises(const RunResult& a, const RunResult& b) {
  return std::equal(a.promises.begin(), a.promises.end(), b.promises.begin(), b.promises.end(),
                    [](const Promise& x, const Promise& y) {
                      return x.what == y.what && x.most_ms == y.most_ms;
                    });
}

class Warner {
 public:
  explicit Warner(std::vector<std::string>* out) : out_(out) {}

  void Differ(const std::string& name, const std::string& what, const std::string& a,
              const std::string& b) {
    if (a != b) {
      out_->push_back(fmt::format("{}: {} differs: {} against {}", name, what,
                                  a.empty() ? "none" : a, b.empty() ? "none" : b));
    }
  }
  void Say(std::string text) { out_->push_back(std::move(text)); }

 private:
  std::vector<std::string>* out_;
};

std::string Limit(const RunResult& r) {
  return r.max_concurrency > 0 ? fmt::to_string(r.max_concurrency) : "unlimited";
}
std::string RateOf(const RunResult& r) {
  const std::string rate = RateText(r);
  if (rate.empty()) return "unlimited";
  return r.burstiness == 1 ? rate : fmt::format("{} of burstiness {:g}", rate, r.burstiness);
}

std::vector<std::string> WhyNotComparable(const std::vector<std::string>& names,
                                          const std::vector<const RunResult*>& runs) {
  std::vector<std::string> out;
  Warner warn(&out);
  const RunResult& base = *runs[0];
  for (size_t i = 0; i < runs.size(); ++i) {
    const RunResult& run = *runs[i];
    for (const std::string& why : InvalidBecause(run)) {
      warn.Say(fmt::format("{}: invalid: {}", names[i], why));
    }
    if (run.records.empty()) {
      warn.Say(
          fmt::format("{} has no records, so there are ratios and no intervals: run it with "
                      "--save-detailed",
                      names[i]));
    }
    if (i == 0) continue;
    warn.Differ(names[i], "model", base.model, run.model);
    warn.Differ(names[i], "workload", base.workload, run.workload);
    warn.Differ(names[i], "maximum concurrency", Limit(base), Limit(run));
    warn.Differ(names[i], "request rate", RateOf(base), RateOf(run));
    if (!SamePromises(base, run)) {
      warn.Say(fmt::format("{}: the promise differs: goodputs are of different things", names[i]));
    }
    if (base.figures.itl_per_token != run.figures.itl_per_token) {
      warn.Say(fmt::format("{}: ITL is per token in one and per chunk in the other", names[i]));
    }
    const double cached = CachedShare(run.figures), base_cached = CachedShare(base.figures);
    if (std::abs(cached - base_cached) > kOtherCached) {
      warn.Say(fmt::format(
          "{}: {:.0f} % of the prompts' tokens came from the prefix cache, {:.0f} % in the first: "
          "TTFT does not compare",
          names[i], cached * 100, base_cached * 100));
    }
    const double a = MeanOutput(base), b = MeanOutput(run);
    if (a > 0 && std::abs(b / a - 1) > kOtherLengths) {
      warn.Say(
          fmt::format("{}: answers are {:.1f} tokens long, {:.1f} in the first: E2EL and "
                      "requests/s do not compare",
                      names[i], b, a));
    }
  }
  return out;
}

ComparedRun CompareRuns(const std::vector<std::string>& names,
                        const std::vector<const RunResult*>& runs, const CompareOptions& options) {
  ComparedRun compared;
  compared.label = runs[0]->label;
  compared.warnings = WhyNotComparable(names, runs);
  for (const RateFigure& rate : kRates) CompareRate(rate, runs, options, &compared.figures);
  for (const ComparedLatency& latency : kComparedLatencies) {
    CompareLatency(latency, runs, options, &compared.figures);
  }
  return compared;
}

// The run that is labelled as runs[at] of `like`: of several the one in the same order.
const RunResult* Labelled(const std::vector<RunResult>& runs, const std::vector<RunResult>& like,
                          size_t at) {
  const std::string& label = like[at].label;
  const auto is_alike = [&](const RunResult& r) { return r.label == label; };
  auto before =
      std::count_if(like.begin(), like.begin() + static_cast<std::ptrdiff_t>(at), is_alike);
  for (const RunResult& run : runs) {
    if (is_alike(run) && before-- == 0) return &run;
  }
  return nullptr;
}

std::string Labels(const std::vector<RunResult>& runs) {
  std::string text;
  for (const RunResult& run : runs) text += (text.empty() ? "" : ", ") + run.label;
  return text;
}

}  // namespace

std::string_view Name(Verdict verdict) {
  constexpr std::string_view kNames[] = {"better",           "worse",       "no difference",
                                         "too few requests", "no interval", "none"};
  return kNames[static_cast<size_t>(verdict)];
}

Result<Comparison> Compare(const std::vector<std::string>& names,
                           const std::vector<std::vector<RunResult>>& reports,
                           const CompareOptions& options) {
  if (reports.size() < 2 || reports.size() > limits::kMaxComparedReports) {
    return Fail(ErrorCode::kInvalidArgument, "wrong_count", "", "give 2 to {} reports to compare",
                limits::kMaxComparedReports);
  }
  Comparison comparison;
  comparison.names = names;
  comparison.options = options;
  const bool single = std::all_of(reports.begin(), reports.end(),
                                  [](const auto& runs) { return runs.size() == 1; });
  for (size_t at = 0; at < reports[0].size(); ++at) {
    const RunResult& run = reports[0][at];
    std::vector<const RunResult*> runs = {&run};
    for (size_t i = 1; i < reports.size(); ++i) {
      const RunResult* other = single ? &reports[i][0] : Labelled(reports[i], reports[0], at);
      if (other == nullptr) {
        comparison.warnings.push_back(
            fmt::format("\"{}\" is in {} and not in {}: left out", run.label, names[0], names[i]));
        break;
      }
      runs.push_back(other);
    }
    if (runs.size() == reports.size()) {
      comparison.runs.push_back(CompareRuns(names, runs, options));
    }
  }
  if (comparison.runs.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "nothing_matches", "",
                "the reports have no run in common: {} has {}; {} has {}", names[0],
                Labels(reports[0]), names[1], Labels(reports[1]));
  }
  return comparison;
}

}  // namespace vivace::load
