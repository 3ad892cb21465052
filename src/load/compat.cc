#include "load/compat.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace vivace::load {
namespace {

using Columns = std::vector<CompatColumn>;
using SortedValues = std::vector<double>;

// What the other tools see of a completed request: their clock starts when it is sent.
struct View {
  std::vector<const RequestRecord*> done;
  double duration_s = 0;  // see Span
};

enum class Span {
  kCompleted,  // first sent to the last end of a completed request
  kWhole,      // from before the first arrival's gap to the last end, of failures as well
};

// A client for which every event with `choices` is a chunk, whether it brings text or not.
RequestRecord WithEmptyEvents(const RequestRecord& record) {
  RequestRecord r = record;
  const auto with_text = static_cast<std::ptrdiff_t>(r.chunk_ns.size());
  r.chunk_ns.insert(r.chunk_ns.end(), r.empty_ns.begin(), r.empty_ns.end());
  std::inplace_merge(r.chunk_ns.begin(), r.chunk_ns.begin() + with_text, r.chunk_ns.end());
  if (!r.empty_ns.empty()) r.chunk_tokens.clear();
  if (!r.chunk_ns.empty()) {
    r.first_ns = r.chunk_ns.front();
    r.last_ns = r.chunk_ns.back();
  }
  return r;
}

std::vector<RequestRecord> WithEmptyEvents(const RunResult& run) {
  std::vector<RequestRecord> records;
  records.reserve(run.records.size());
  for (const RequestRecord& r : run.records) records.push_back(WithEmptyEvents(r));
  return records;
}

View Look(std::span<const RequestRecord> records, Span span, int64_t started_ns) {
  View view;
  int64_t first = std::numeric_limits<int64_t>::max(), last = 0;
  for (const RequestRecord& r : records) {
    const bool done = r.outcome == Outcome::kCompleted && r.first_ns != 0;
    if (done) view.done.push_back(&r);
    if (r.sent_ns == 0 || r.ended_ns == 0 || (!done && span == Span::kCompleted)) continue;
    first = std::min(first, r.sent_ns);
    last = std::max(last, r.ended_ns);
  }
  if (span == Span::kWhole && started_ns != 0) first = std::min(first, started_ns);
  if (!view.done.empty()) view.duration_s = Seconds(last - first);
  return view;
}

View Look(const RunResult& run, Span span = Span::kCompleted) {
  return Look(run.records, span, run.started_ns);
}

// Formulas over one request, in seconds; NaN: this request has none.
using Formula = double (*)(const RequestRecord&);

double Ttft(const RequestRecord& r) { return Seconds(r.first_ns - r.sent_ns); }
double ToLast(const RequestRecord& r) { return Seconds(r.last_ns - r.sent_ns); }
double ToEnd(const RequestRecord& r) { return Seconds(r.ended_ns - r.sent_ns); }
double PerLaterToken(const RequestRecord& r) {
  return r.output_tokens > 1 ? Seconds(r.last_ns - r.first_ns) / (r.output_tokens - 1) : NAN;
}
double PerToken(const RequestRecord& r) {
  return r.output_tokens > 0 ? ToLast(r) / r.output_tokens : NAN;
}
double PerTokenToEnd(const RequestRecord& r) {
  return r.output_tokens > 0 ? ToEnd(r) / r.output_tokens : NAN;
}
double AfterFirstChunk(const RequestRecord& r) {
  const int32_t first = CountsTokens(r) ? r.chunk_tokens[0] : 1;
  return r.output_tokens > first ? Seconds(r.ended_ns - r.first_ns) / (r.output_tokens - first)
                                 : NAN;
}
double SecondToken(const RequestRecord& r) {
  return r.chunk_ns.size() > 1 ? Seconds(r.chunk_ns[1] - r.chunk_ns[0]) : NAN;
}
double TokensPerUser(const RequestRecord& r) { return 1 / PerLaterToken(r); }
double InputTokens(const RequestRecord& r) { return r.prompt_tokens; }
double OutputTokens(const RequestRecord& r) { return r.output_tokens; }

SortedValues ValuesOf(const View& view, Formula formula, double scale = 1) {
  SortedValues values;
  for (const RequestRecord* r : view.done) {
    if (const double value = formula(*r); std::isfinite(value)) values.push_back(value * scale);
  }
  std::sort(values.begin(), values.end());
  return values;
}

SortedValues Gaps(const View& view, bool per_token) {
  SortedValues gaps;
  for (const RequestRecord* r : view.done) AppendGaps(*r, per_token && CountsTokens(*r), &gaps);
  std::sort(gaps.begin(), gaps.end());
  return gaps;
}

double Mean(const SortedValues& v) {
  return v.empty() ? NAN : std::accumulate(v.begin(), v.end(), 0.0) / v.size();
}
double Deviation(const SortedValues& v, int freedom) {
  if (static_cast<int>(v.size()) <= freedom) return NAN;
  const double mean = Mean(v);
  double squares = 0;
  for (double value : v) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / (v.size() - freedom));
}
double Rank(const SortedValues& v, double percent) {
  return v.empty() ? NAN : Percentile(v, percent);
}

double Tokens(const View& view, Formula formula) {
  const SortedValues values = ValuesOf(view, formula);
  return std::accumulate(values.begin(), values.end(), 0.0);
}
double Rate(double amount, const View& view) {
  return view.duration_s > 0 ? amount / view.duration_s : NAN;
}
double Count(const View& view) { return static_cast<double>(view.done.size()); }

// "mean", "median", "std" and "pNN" of sorted values.
double StatOfSorted(const SortedValues& values, std::string_view stat, int freedom) {
  if (stat == "mean" || stat == "avg") return Mean(values);
  if (stat == "median") return Rank(values, 50);
  if (stat == "std" || stat == "stddev") return Deviation(values, freedom);
  if (stat == "min") return values.empty() ? NAN : values.front();
  if (stat == "max") return values.empty() ? NAN : values.back();
  return Rank(values, std::atof(std::string(stat.substr(1)).c_str()));
}

struct Metric {
  std::string_view name;  // of the tool
  Formula formula;        // null: the pooled gaps
  std::string_view definition;
};

// A column for each metric and statistic, named by `pattern` with {0} the statistic, {1} the
// metric.
void Add(Columns* columns, std::span<const Metric> metrics, std::span<const std::string_view> stats,
         std::string_view pattern, double scale, int freedom, const View& view,
         bool gaps_per_token) {
  for (const Metric& metric : metrics) {
    const SortedValues values = metric.formula != nullptr ? ValuesOf(view, metric.formula, scale)
                                                          : Gaps(view, gaps_per_token);
    for (std::string_view stat : stats) {
      columns->push_back({fmt::format(fmt::runtime(pattern), stat, metric.name),
                          StatOfSorted(values, stat, freedom), metric.definition});
    }
  }
}

double Good(const RunResult& run, const View& view) {
  if (run.promises.empty()) return NAN;
  int64_t good = 0;
  for (const RequestRecord* r : view.done) {
    RequestRecord sent = *r;
    sent.scheduled_ns = sent.sent_ns;
    good += KeepsPromises(sent, run.promises);
  }
  return Rate(static_cast<double>(good), view);
}

Columns Vllm(const RunResult& run) {
  static constexpr Metric kMetrics[] = {
      {"ttft", Ttft, "first event with choices - sent: a role without text ends it"},
      {"tpot", PerLaterToken, "(latency - TTFT) / (output tokens - 1), of each request"},
      {"itl", nullptr, "every gap between events with choices, pooled"},
      {"e2el", ToLast, "last event with choices - sent"},
  };
  static constexpr std::string_view kStats[] = {"mean", "median", "std", "p99"};
  const std::vector<RequestRecord> records = WithEmptyEvents(run);
  const View view = Look(records, Span::kWhole, run.started_ns);
  const double in = Tokens(view, InputTokens), out = Tokens(view, OutputTokens);
  Columns columns = {
      {"completed", Count(view), "requests with a first chunk"},
      {"duration", view.duration_s, "the run's start - last ended, failures too"},
      {"total_input_tokens", in, "usage"},
      {"total_output_tokens", out, "usage"},
      {"request_throughput", Rate(Count(view), view), "completed / duration"},
      {"request_goodput", Good(run, view), "completed that keep every promise / duration"},
      {"output_throughput", Rate(out, view), "output tokens / duration"},
      {"total_token_throughput", Rate(in + out, view), "tokens / duration"},
  };
  Add(&columns, kMetrics, kStats, "{0}_{1}_ms", 1e3, 0, view, false);
  return columns;
}

Columns Sglang(const RunResult& run) {
  static constexpr Metric kMetrics[] = {
      {"e2e_latency", ToEnd, "end - sent"},
      {"ttft", Ttft, "first chunk - sent"},
      {"tpot", PerLaterToken, "(latency - TTFT) / (output tokens - 1), of each request"},
      {"itl", nullptr, "gaps between chunks, shared by the tokens that end them, pooled"},
  };
  static constexpr std::string_view kStats[] = {"mean", "median", "std", "p90", "p95", "p99"};
  const View view = Look(run, Span::kWhole);
  const double in = Tokens(view, InputTokens), out = Tokens(view, OutputTokens);
  Columns columns = {
      {"completed", Count(view), "successful requests"},
      {"request_throughput", Rate(Count(view), view), "completed / duration"},
      {"input_throughput", Rate(in, view), "input tokens / duration"},
      {"output_throughput", Rate(out, view), "output tokens / duration"},
      {"total_throughput", Rate(in + out, view), "tokens / duration"},
      {"concurrency", Rate(Tokens(view, ToEnd), view), "sum of latencies / duration"},
  };
  Add(&columns, kMetrics, kStats, "{0}_{1}_ms", 1e3, 0, view, true);
  return columns;
}

Columns Mlc(const RunResult& run) {
  static constexpr Metric kMetrics[] = {
      {"end_to_end_latency_s", ToEnd, "end - sent"},
      {"inter_token_latency_s", PerTokenToEnd, "end-to-end latency / output tokens: contains TTFT"},
      {"time_per_output_token_s", AfterFirstChunk,
       "(end-to-end - TTFT) / (output tokens - tokens of the first chunk)"},
      {"time_to_first_token_s", Ttft, "first chunk - sent"},
  };
  static constexpr std::string_view kRanks[] = {"p25", "p50", "p75", "p90", "p95", "p99"};
  static constexpr std::string_view kStats[] = {"mean", "min", "max", "stddev"};
  const View view = Look(run);
  const double in = Tokens(view, InputTokens), out = Tokens(view, OutputTokens);
  Columns columns = {
      {"duration", view.duration_s, "first start - last finish"},
      {"num_total_requests", static_cast<double>(run.figures.requests), "of the plan"},
      {"num_completed_requests", Count(view), "successful"},
      {"request_throughput", Rate(Count(view), view), "completed / duration"},
      {"total_input_tokens", in, "usage (there: tokenised again)"},
      {"total_output_tokens", out, "usage (there: tokenised again)"},
      {"input_token_throughput", Rate(in, view), "input tokens / duration"},
      {"output_token_throughput", Rate(out, view), "output tokens / duration"},
  };
  Add(&columns, kMetrics, kRanks, "{1}.quantiles.{0}", 1, 1, view, false);
  Add(&columns, kMetrics, kStats, "{1}.{0}", 1, 1, view, false);
  return columns;
}

Columns Guidellm(const RunResult& run) {
  static constexpr Metric kLatency[] = {{"request_latency", ToEnd, "end - start, seconds"}};
  static constexpr Metric kMetrics[] = {
      {"time_to_first_token_ms", Ttft, "first token - start"},
      {"inter_token_latency_ms", PerLaterToken,
       "(last - first token) / (output tokens - 1), of each request: others' TPOT"},
      {"time_per_output_token_ms", PerToken, "(last token - start) / output tokens: contains TTFT"},
  };
  static constexpr std::string_view kStats[] = {"mean", "median", "p95", "p99"};
  const View view = Look(run);
  const double in = Tokens(view, InputTokens), out = Tokens(view, OutputTokens);
  Columns columns = {
      {"requests_per_second", Rate(Count(view), view), "completed / duration"},
      {"request_concurrency", Rate(Tokens(view, ToEnd), view), "mean under way"},
      {"output_tokens_per_second", Rate(out, view), "output tokens / duration"},
      {"tokens_per_second", Rate(in + out, view), "tokens / duration"},
  };
  Add(&columns, kLatency, kStats, "{1}.{0}", 1, 0, view, false);
  Add(&columns, kMetrics, kStats, "{1}.{0}", 1e3, 0, view, false);
  return columns;
}

Columns Aiperf(const RunResult& run) {
  static constexpr Metric kTimes[] = {
      {"time_to_first_token", Ttft, "first response - sent, ms"},
      {"time_to_second_token", SecondToken, "second response - first, ms"},
      {"request_latency", ToLast, "last response - sent, ms"},
      {"inter_token_latency", PerLaterToken,
       "(request latency - TTFT) / (output tokens - 1), of each request, ms: others' TPOT"},
      {"inter_chunk_latency", nullptr, "every gap between responses, pooled, ms"},
  };
  static constexpr Metric kCounts[] = {
      {"output_token_throughput_per_user", TokensPerUser, "1 / inter-token latency, tokens/s"},
      {"output_sequence_length", OutputTokens, "output tokens"},
      {"input_sequence_length", InputTokens, "input tokens"},
  };
  static constexpr std::string_view kStats[] = {"avg", "min", "max", "p99", "p90", "p75", "std"};
  const View view = Look(run);
  Columns columns = {
      {"output_token_throughput", Rate(Tokens(view, OutputTokens), view), "tokens / duration"},
      {"request_throughput", Rate(Count(view), view), "completed / duration"},
      {"request_count", Count(view), "completed"},
      {"goodput", Good(run, view), "completed that keep every promise / duration"},
      {"benchmark_duration", view.duration_s, "first sent - last response, s"},
  };
  Add(&columns, kTimes, kStats, "{1}.{0}", 1e3, 0, view, false);
  Add(&columns, kCounts, kStats, "{1}.{0}", 1, 0, view, false);
  return columns;
}

constexpr CompatTool kTools[] = {
    {"vllm",
     "vllm bench serve: the clock starts when a request is sent, and every event with choices is a "
     "chunk",
     Vllm},
    {"sglang", "sglang.bench_serving: ITL per token where the server counts them", Sglang},
    {"mlc", "mlc_llm.bench: its ITL contains the first token; seconds", Mlc},
    {"guidellm", "guidellm: its ITL is others' TPOT, its TPOT contains the first token", Guidellm},
    {"aiperf", "aiperf: its ITL is others' TPOT, gaps are inter-chunk latency", Aiperf},
};

}  // namespace

std::span<const CompatTool> CompatTools() { return kTools; }

Result<const CompatTool*> FindCompatTool(std::string_view name) {
  std::vector<std::string_view> names;
  for (const CompatTool& tool : kTools) {
    if (tool.name == name) return &tool;
    names.push_back(tool.name);
  }
  return Fail(ErrorCode::kInvalidArgument, "bad_value", "compat", "--compat is '{}'; there are {}",
              name, fmt::join(names, ", "));
}

}  // namespace vivace::load
